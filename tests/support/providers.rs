//! What providers ask of a prompt, checked without them.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// What is wrong with a prompt in one of the forms of `graph_messages_json`.
///
/// # Errors
/// The first thing that its provider would refuse.
pub fn check_prompt(format: &str, prompt: &Value) -> Result<(), String> {
    match format {
        "openai" => chat_completions(list(prompt, "messages", &[])?),
        "responses" => responses(list(prompt, "input", &[])?),
        "anthropic" => {
            if let Some(system) = prompt.get("system") {
                check_text(Some(system))?;
            }
            anthropic(list(prompt, "messages", &["system"])?)
        }
        "plain" => plain(list(prompt, "messages", &[])?),
        other => Err(format!("{other} is not a format")),
    }
}

fn list<'v>(prompt: &'v Value, key: &str, others: &[&str]) -> Result<&'v [Value], String> {
    let object = prompt.as_object().ok_or("the prompt is not an object")?;
    if let Some(other) = object.keys().find(|name| *name != key && !others.contains(&name.as_str()))
    {
        return Err(format!("the prompt has the key {other}"));
    }
    let list = object.get(key).and_then(Value::as_array).ok_or("the prompt has no list")?;
    if list.is_empty() { Err("the list is empty".to_owned()) } else { Ok(list) }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn check_keys(value: &Value, allowed: &[&str]) -> Result<(), String> {
    let object: &Map<String, Value> = value.as_object().ok_or("not an object")?;
    match object.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(format!("{value} has the key {key}")),
        None => Ok(()),
    }
}

fn check_text(value: Option<&Value>) -> Result<(), String> {
    match value {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(()),
        other => Err(format!("{other:?} is not a text that says something")),
    }
}

/// A content that is one text, or a list of blocks of which those of this type have texts.
fn check_content(content: Option<&Value>, text_type: &str) -> Result<(), String> {
    match content {
        Some(Value::Array(blocks)) if !blocks.is_empty() => {
            blocks.iter().try_for_each(|block| match text(block, "type") {
                "" => Err("a block has no type".to_owned()),
                kind if kind == text_type => check_text(block.get("text")),
                _ => Ok(()),
            })
        }
        other => check_text(other),
    }
}

fn check_first_is_users<'v>(mut roles: impl Iterator<Item = &'v str>) -> Result<(), String> {
    match roles.find(|role| *role != "system") {
        Some("user") => Ok(()),
        other => Err(format!("the first message is of {other:?}")),
    }
}

/// The ids of calls, which are different and of a form that all providers take.
#[derive(Default)]
struct Calls(HashSet<String>);

impl Calls {
    fn add(&mut self, id: &str, name: &str) -> Result<(), String> {
        let plain = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if id.is_empty() || id.len() > 40 || !plain(id) {
            return Err(format!("{id:?} is no id of a call"));
        }
        if name.is_empty() || name.len() > 64 || !plain(name) {
            return Err(format!("{name:?} is no name of a tool"));
        }
        if self.0.insert(id.to_owned()) { Ok(()) } else { Err(format!("{id} is used twice")) }
    }
}

fn chat_completions(messages: &[Value]) -> Result<(), String> {
    check_first_is_users(messages.iter().map(|message| text(message, "role")))?;
    let (mut open, mut calls) = (HashSet::new(), Calls::default());
    for message in messages {
        let role = text(message, "role");
        if role != "tool" && !open.is_empty() {
            return Err(format!("{open:?} have no result"));
        }
        match role {
            "system" | "user" => {
                check_keys(message, &["role", "content"])?;
                check_content(message.get("content"), "text")?;
            }
            "assistant" => {
                check_keys(message, &["role", "content", "tool_calls"])?;
                if message.get("content").is_some() || message.get("tool_calls").is_none() {
                    check_content(message.get("content"), "text")?;
                }
                let made = match message.get("tool_calls") {
                    Some(calls) => calls.as_array().ok_or("the calls are not a list")?,
                    None => &Vec::new(),
                };
                if message.get("tool_calls").is_some() && made.is_empty() {
                    return Err("an empty list of calls".to_owned());
                }
                for call in made {
                    check_keys(call, &["id", "type", "function"])?;
                    let function = &call["function"];
                    if text(call, "type") != "function" || !function["arguments"].is_string() {
                        return Err(format!("{call} is not a call"));
                    }
                    calls.add(text(call, "id"), text(function, "name"))?;
                    open.insert(text(call, "id").to_owned());
                }
            }
            "tool" => {
                check_keys(message, &["role", "content", "tool_call_id"])?;
                check_text(message.get("content"))?;
                if !open.remove(text(message, "tool_call_id")) {
                    return Err(format!("{message} answers no call before it"));
                }
            }
            other => return Err(format!("{other:?} is not a role")),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} have no result")) }
}

fn responses(items: &[Value]) -> Result<(), String> {
    let role = |item: &Value| match text(item, "type") {
        "" | "message" => text(item, "role").to_owned(),
        _ => "call".to_owned(),
    };
    let roles: Vec<String> = items.iter().map(role).collect();
    check_first_is_users(roles.iter().map(String::as_str))?;
    let (mut open, mut calls, mut answering) = (HashSet::new(), Calls::default(), false);
    for item in items {
        let kind = text(item, "type");
        if kind != "function_call_output" && !open.is_empty() && (answering || kind.is_empty()) {
            return Err(format!("{open:?} have no result"));
        }
        answering = kind == "function_call_output";
        match kind {
            "function_call" => {
                check_keys(item, &["type", "call_id", "name", "arguments"])?;
                if !item["arguments"].is_string() {
                    return Err(format!("{item} has no arguments"));
                }
                calls.add(text(item, "call_id"), text(item, "name"))?;
                open.insert(text(item, "call_id").to_owned());
            }
            "function_call_output" => {
                check_keys(item, &["type", "call_id", "output"])?;
                check_text(item.get("output"))?;
                if !open.remove(text(item, "call_id")) {
                    return Err(format!("{item} answers no call before it"));
                }
            }
            "" => {
                check_keys(item, &["role", "content"])?;
                if !["user", "assistant", "system"].contains(&text(item, "role")) {
                    return Err(format!("{item} has no role"));
                }
                check_content(item.get("content"), "input_text")?;
            }
            other => return Err(format!("{other} is not a type of items")),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} have no result")) }
}

fn anthropic(messages: &[Value]) -> Result<(), String> {
    check_first_is_users(messages.iter().map(|message| text(message, "role")))?;
    let mut calls = Calls::default();
    let mut open: HashSet<String> = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        check_keys(message, &["role", "content"])?;
        check_content(message.get("content"), "text")?;
        let role = text(message, "role");
        if !["user", "assistant"].contains(&role) {
            return Err(format!("{role:?} is not a role"));
        }
        if place > 0 && text(&messages[place - 1], "role") == role {
            return Err(format!("two messages of {role} follow each other"));
        }
        let single = [Value::Null];
        let blocks = message["content"].as_array().map_or(&single[..], Vec::as_slice);
        let mut after_results = false;
        let kinds = blocks.iter().map(|block| text(block, "type"));
        let wrong = match role {
            "user" => &["thinking", "redacted_thinking"][..],
            _ => &["image", "document"],
        };
        if let Some(kind) = kinds.clone().find(|kind| wrong.contains(kind)) {
            return Err(format!("a {kind} in a message of {role}"));
        }
        if message.to_string().contains("cache_control") {
            return Err("a mark for a cache".to_owned());
        }
        for block in blocks {
            match (text(block, "type"), role) {
                ("tool_result", "user") if !after_results => {
                    check_text(block.get("content"))?;
                    if !open.remove(text(block, "tool_use_id")) {
                        return Err(format!("{block} answers no call of the message before"));
                    }
                }
                ("tool_use", "assistant") => {
                    calls.add(text(block, "id"), text(block, "name"))?;
                    if !block["input"].is_object() {
                        return Err(format!("{block} has no input"));
                    }
                    open.insert(text(block, "id").to_owned());
                }
                ("tool_result" | "tool_use", _) => {
                    return Err(format!("{block} stands in a wrong place"));
                }
                _ => after_results = true,
            }
        }
        if role == "user" && !open.is_empty() {
            return Err(format!("{open:?} have no result"));
        }
        let last = blocks.last().map_or("", |block| text(block, "type"));
        if role == "assistant" && ["thinking", "redacted_thinking"].contains(&last) {
            return Err("a message ends with a thought".to_owned());
        }
    }
    if !open.is_empty() {
        return Err(format!("{open:?} have no result"));
    }
    let last = &messages[messages.len() - 1];
    let end = match &last["content"] {
        Value::String(text) => text.as_str(),
        blocks => blocks.as_array().and_then(|b| b.last()).map_or("", |block| text(block, "text")),
    };
    match text(last, "role") == "assistant" && end.trim_end() != end {
        true => Err("the prompt ends in white space".to_owned()),
        false => Ok(()),
    }
}

fn plain(messages: &[Value]) -> Result<(), String> {
    check_first_is_users(messages.iter().map(|message| text(message, "role")))?;
    let mut before = "";
    for message in messages {
        check_keys(message, &["role", "content"])?;
        check_text(message.get("content"))?;
        let role = text(message, "role");
        if !["user", "assistant", "system"].contains(&role) || role == before {
            return Err(format!("a message of {role} follows one of {before}"));
        }
        before = role;
    }
    Ok(())
}
