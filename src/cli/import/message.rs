//! Messages of an export, and what the formats have in common: texts, times, calls and their results.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::graph::edge::EdgeType;
use serde_json::Value;

/// A message of a conversation, with the ids of the export.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) id: String,
    /// The message that this one follows.
    pub(super) parent: Option<String>,
    pub(super) edge: EdgeType,
    /// None: what follows this message follows its parent instead.
    pub(super) turn: Option<ImportedTurn>,
}

/// What is stored of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImportedTurn {
    pub(super) role: String,
    pub(super) content: String,
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) tokens: Option<i32>,
}

/// Ids that mark the beginning of a conversation. Siblings over such a parent would mix conversations.
const ROOT_MARKERS: [&str; 5] = [
    "",
    "client-created-root",
    "root",
    "00000000-0000-0000-0000-000000000000",
    "00000000-0000-4000-8000-000000000000",
];

/// The longest id of a message or a conversation, in bytes.
pub(super) const MAX_ID_BYTES: usize = 1024;

/// The id, if it is not too long.
pub(super) fn short_id(id: String) -> Result<String, String> {
    if id.len() <= MAX_ID_BYTES {
        return Ok(id);
    }
    Err(format!("an id is longer than {MAX_ID_BYTES} bytes"))
}

/// The id of a message.
pub(super) fn id_of(record: &Value, key: &str) -> Result<String, String> {
    text_of(record, key).and_then(short_id)
}

/// The id of a parent, unless the value is absent or marks the beginning of a conversation.
pub(super) fn parent_id(value: &Value) -> Result<Option<String>, String> {
    let id = value.as_str().filter(|id| !ROOT_MARKERS.contains(id));
    id.map(|id| short_id(id.to_owned())).transpose()
}

/// The text without U+0000, which PostgreSQL cannot store: it becomes U+FFFD.
pub(super) fn plain_text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// A string that must be there.
pub(super) fn text_of(record: &Value, key: &str) -> Result<String, String> {
    match &record[key] {
        Value::String(text) if !text.is_empty() => Ok(text.clone()),
        Value::Null => Err(format!("no \"{key}\"")),
        Value::String(_) => Err(format!("\"{key}\" is empty")),
        _ => Err(format!("\"{key}\" is not text")),
    }
}

/// A timestamp: a text of ISO 8601, or a number of seconds or, from the year 2286 on, of milliseconds since 1970.
pub(super) fn timestamp(value: &Value) -> Result<Option<DateTime<Utc>>, String> {
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64().and_then(|number| {
            const FIRST_MILLISECONDS: f64 = 1e10;
            let seconds = if number.abs() >= FIRST_MILLISECONDS { number / 1e3 } else { number };
            DateTime::from_timestamp_micros((seconds * 1e6).round() as i64)
        }),
        Value::String(text) => parse_timestamp(text),
        _ => None,
    };
    // A leap second is the first of the next minute.
    let parsed = parsed.and_then(|at| DateTime::from_timestamp_micros(at.timestamp_micros()));
    let known = parsed.filter(|timestamp| (0..=FAR_FUTURE).contains(&timestamp.timestamp()));
    known.map(Some).ok_or_else(|| format!("{value} is not a time between 1970 and 9999"))
}

/// The last second of the year 9999.
const FAR_FUTURE: i64 = 253_402_300_799;

/// A number of tokens; none that is not positive.
pub(super) fn token_count(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|tokens| i32::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
}

/// RFC 3339, also without a time zone, which is then UTC, and a date alone.
pub(super) fn parse_timestamp(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text)
        .map(|timestamp| timestamp.to_utc())
        .or_else(|_| format!("{}Z", text.replacen(' ', "T", 1)).parse())
        .or_else(|_| format!("{text}T00:00:00Z").parse())
        .ok()
}

/// How many blocks a message may have.
const MAX_BLOCKS: usize = 10_000;

/// A part of a message that has calls and results in it.
struct Part {
    is_result: bool,
    content: String,
}

/// Splits one message of several blocks: a message with its text and its calls; one of the role `tool` for each result;
/// one with the text after these. The last has the id of the whole, so that answers follow it. Each is a microsecond
/// later than the one before, so that their times tell their order.
///
/// # Errors
/// More than [`MAX_BLOCKS`] blocks.
pub(super) fn in_turns(
    id: &str,
    parent: Option<String>,
    turn: ImportedTurn,
    blocks: &[Value],
) -> Result<Vec<Message>, String> {
    if blocks.len() > MAX_BLOCKS {
        return Err(format!("a message has more than {MAX_BLOCKS} blocks"));
    }
    let mut parts: Vec<Part> = Vec::new();
    for block in blocks {
        let (said, result) = block_texts(block);
        if !said.is_empty() {
            match parts.last_mut() {
                Some(part) if !part.is_result => append(&mut part.content, &said),
                _ => parts.push(Part { is_result: false, content: said }),
            }
        }
        if let Some(content) = result {
            parts.push(Part { is_result: true, content });
        }
    }
    match parts.last_mut() {
        Some(part) if !part.is_result || turn.content.is_empty() => {
            append(&mut part.content, &turn.content)
        }
        _ => parts.push(Part { is_result: false, content: turn.content.clone() }),
    }
    let last = parts.len() - 1;
    let mut messages: Vec<Message> = Vec::with_capacity(parts.len());
    let mut call = parent.clone();
    for (n, part) in parts.into_iter().enumerate() {
        let id = if n == last { id.to_owned() } else { format!("{id}#{n}") };
        let before = messages.last().map(|message| message.id.clone()).or_else(|| parent.clone());
        let (role, parent) = if part.is_result {
            ("tool".to_owned(), call.clone())
        } else {
            call = Some(id.clone());
            (turn.role.clone(), before)
        };
        // Tokens were counted over the whole.
        let tokens = turn.tokens.filter(|_| last == 0);
        let created_at = turn.created_at.map(|at| at + TimeDelta::microseconds(n as i64));
        let turn = ImportedTurn { role, content: part.content, created_at, tokens };
        messages.push(Message { id, parent, edge: EdgeType::Reply, turn: Some(turn) });
    }
    Ok(messages)
}

/// The text of a block, and the result of a call in it. Files are named, not stored.
fn block_texts(block: &Value) -> (String, Option<String>) {
    let said = |text: String| (text, None);
    match block["type"].as_str().unwrap_or_default() {
        "text" | "input_text" | "output_text" => said(plain(&block["text"])),
        kind @ ("think" | "thinking" | "error") => {
            said(plain(if block[kind].is_null() { &block["text"] } else { &block[kind] }))
        }
        "redacted_thinking" => said("[thinking]".to_owned()),
        // What an application notes for itself.
        "token_budget" | "agent_update" | "flag" => said(String::new()),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            said(call(block["name"].as_str(), &block["input"]))
        }
        "tool_call" => {
            let inner = &block["tool_call"];
            let interpreter = &inner["code_interpreter"];
            if interpreter.is_object() {
                let said = call(Some("code_interpreter"), &interpreter["input"]);
                return (
                    said,
                    Some(plain(&interpreter["outputs"])).filter(|text| !text.is_empty()),
                );
            }
            let function = if inner["function"].is_object() { &inner["function"] } else { inner };
            let arguments =
                if function["args"].is_null() { &function["arguments"] } else { &function["args"] };
            let output = plain(&function["output"]);
            let result = Some(output).filter(|output| !output.is_empty());
            (call(function["name"].as_str(), arguments), result)
        }
        kind if kind.ends_with("tool_result") => (String::new(), Some(plain(&block["content"]))),
        _ => match block {
            Value::String(text) => said(text.clone()),
            Value::Null => said(String::new()),
            _ => said(plain(block)),
        },
    }
}

/// A call as text: the tool and its arguments.
pub(super) fn call(tool: Option<&str>, arguments: &Value) -> String {
    let arguments = match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    format!("[call {}] {arguments}", tool.unwrap_or("tool")).trim_end().to_owned()
}

/// A file as text: what it is, and its name where it has one.
pub(super) fn file(kind: &str, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("[{kind} {name}]"),
        None => format!("[{kind}]"),
    }
}

/// The keys under which objects of the exports have their texts, the first that is not empty counts.
const TEXT_KEYS: [&str; 11] = [
    "text",
    "value",
    "content",
    "result",
    "summary",
    "transcript",
    "output_str",
    "output",
    "stdout",
    "stderr",
    "title",
];

/// The text in a value: a text, the text of an object, or those of an array in lines. Other content is named by its
/// type.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let mut text = String::new();
            values.iter().for_each(|value| append(&mut text, &plain(value)));
            text
        }
        Value::Object(object) => {
            let texts = TEXT_KEYS.iter().filter_map(|key| object.get(*key));
            let mut texts =
                texts.filter(|text| text.is_string() || text.is_object() || text.is_array());
            let has_text = texts.clone().next().is_some();
            let text = texts.find_map(|text| Some(plain(text)).filter(|text| !text.is_empty()));
            let kind = object.get("type").or_else(|| object.get("content_type"));
            match text {
                Some(text) => text,
                None if has_text => String::new(),
                None => file(kind.and_then(Value::as_str).unwrap_or("content"), None),
            }
        }
        value => value.to_string(),
    }
}

/// Adds a paragraph.
pub(super) fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn timestamps_are_read_in_every_form_of_the_exports() {
        let texts = [
            json!("2025-03-01T10:00:00.5Z"),
            json!("2025-03-01T11:00:00.500+01:00"),
            json!("2025-03-01 10:00:00.5"),
            json!(1_740_823_200.5),
            json!(1_740_823_200_500_i64),
        ];
        for text in texts {
            assert_eq!(
                timestamp(&text).unwrap().unwrap().timestamp_millis(),
                1_740_823_200_500,
                "{text}"
            );
        }
        assert_eq!(timestamp(&Value::Null), Ok(None));
        for wrong in
            [json!("soon"), json!(1e300), json!(-1), json!(true), json!("+262000-01-01T00:00:00Z")]
        {
            assert!(timestamp(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn calls_and_results_become_turns() {
        let turn = ImportedTurn {
            role: "assistant".to_owned(),
            content: String::new(),
            created_at: None,
            tokens: Some(9),
        };
        let blocks = json!([
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "name": "ls", "input": {"path": "."}},
            {"type": "tool_use", "name": "pwd", "input": {}},
            {"type": "tool_result", "content": [{"type": "text", "text": "a.txt"}]},
            {"type": "tool_result", "content": "/home"},
            {"type": "text", "text": "One file."}
        ]);
        let messages =
            in_turns("m", Some("p".to_owned()), turn, blocks.as_array().unwrap()).unwrap();
        let seen: Vec<_> = messages
            .iter()
            .map(|m| {
                let turn = m.turn.as_ref().unwrap();
                (
                    m.id.as_str(),
                    m.parent.as_deref().unwrap(),
                    turn.role.as_str(),
                    turn.content.as_str(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (
                    "m#0",
                    "p",
                    "assistant",
                    "Let me look.\n[call ls] {\"path\":\".\"}\n[call pwd] {}"
                ),
                ("m#1", "m#0", "tool", "a.txt"),
                ("m#2", "m#0", "tool", "/home"),
                ("m", "m#2", "assistant", "One file."),
            ]
        );
        assert!(messages.iter().all(|m| m.turn.as_ref().unwrap().tokens.is_none()));
    }
}
