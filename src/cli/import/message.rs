//! Messages of an export, and what the formats have in common: texts, times, calls and their results.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::graph::edge::EdgeType;

use super::json::is_data_url;
use super::value::{Map, Value};

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
    /// What the message needs to be sent again, as its source has it: an object with its role.
    pub(super) payload: Map,
}

/// An object of these values, without those that are null.
pub(super) fn object<const N: usize>(pairs: [(&str, Value); N]) -> Map {
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_null());
    pairs.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The list, or null where there is nothing in it.
pub(super) fn listed(list: &Value) -> Value {
    if list.as_array().is_some_and(|list| !list.is_empty()) { list.clone() } else { Value::Null }
}

/// Whether a payload says no more than the role and the text that are stored beside it.
pub(super) fn is_plain(payload: &Map, role: &str, text: &str) -> bool {
    let is_text = |(key, value): (&String, &Value)| match key.as_str() {
        "role" => value == role,
        "content" | "output" => is_plain_text(value, text),
        _ => false,
    };
    payload.iter().all(is_text)
}

/// Whether a value is this text alone, also in a block or a list of one.
fn is_plain_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Array(values) => match &values[..] {
            [value] => is_plain_text(value, text),
            values => values.is_empty() && text.is_empty(),
        },
        Value::Object(object) => {
            let kind = object.get("type").or_else(|| object.get("content_type"));
            let kind = kind.and_then(Value::as_str).unwrap_or_default();
            let is_empty = |value: &Value| match value {
                Value::Null | Value::Bool(false) => true,
                Value::String(text) => text.is_empty(),
                Value::Array(values) => values.is_empty(),
                _ => false,
            };
            matches!(kind, "text" | "input_text" | "output_text" | "message")
                && object.iter().all(|(key, value)| match key.as_str() {
                    "text" | "content" | "parts" => is_plain_text(value, text),
                    "type" | "content_type" | "role" | "id" | "status" => true,
                    "start_timestamp" | "stop_timestamp" => true,
                    _ => is_empty(value),
                })
        }
        _ => false,
    }
}

/// Replaces U+0000, which jsonb cannot hold.
pub(super) fn without_null_characters(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain_text(std::mem::take(text)),
        Value::Array(values) => values.iter_mut().for_each(without_null_characters),
        Value::Object(object) => {
            if object.keys().any(|key| key.contains('\0')) {
                *object = std::mem::take(object)
                    .into_iter()
                    .map(|(key, value)| (plain_text(key), value))
                    .collect();
            }
            object.values_mut().for_each(without_null_characters);
        }
        _ => {}
    }
}

/// The payload as it is stored: without the bytes of files. What contains these keeps its other keys, such as the media
/// type.
pub(super) fn stored_payload(value: &mut Value) {
    without_null_characters(value);
    without_files(value);
}

fn without_files(value: &mut Value) {
    match value {
        Value::String(text) if is_data_url(text.as_bytes()) => {
            text.truncate(text.find(',').map_or(0, |comma| comma + 1));
        }
        Value::Array(values) => values.iter_mut().for_each(without_files),
        Value::Object(object) => {
            if object.get("type").is_some_and(|kind| kind == "base64") {
                object.remove("data");
            }
            if object.get("type").is_some_and(|kind| kind == "image_generation_call") {
                object.remove("result");
            }
            object.values_mut().for_each(without_files);
        }
        _ => {}
    }
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
        Value::Number(number) => {
            const FIRST_MILLISECONDS: f64 = 1e10;
            let number = number.as_f64();
            let seconds = if number.abs() >= FIRST_MILLISECONDS { number / 1e3 } else { number };
            DateTime::from_timestamp_micros((seconds * 1e6).round() as i64)
        }
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

/// The turn of a call, by the call's id, where it is in another message.
pub(super) type CallTurns<'a> = &'a dyn Fn(&str) -> Option<String>;

/// No call of another message is known.
pub(super) fn no_calls(_: &str) -> Option<String> {
    None
}

/// A part of a message that has calls and results in it.
#[derive(Default)]
struct Part {
    is_result: bool,
    content: String,
    blocks: Vec<Value>,
    /// The call of a result, if it is named.
    call: Option<String>,
    /// Bytes of calls and results beside the text, which are sent as well.
    extra_bytes: usize,
    has_reasoning: bool,
}

/// Splits one message of several blocks. First comes a message with its text and its calls. Then comes one of the role
/// `tool` for each result, which follows its call, and one with the text after these. The last has the id of the whole,
/// so that answers follow it. Each is a microsecond later than the one before, so that their times tell their order.
/// The payload of each has its blocks under `key`; that of the part with `turn`'s own text has what `turn`'s payload
/// has.
///
/// # Errors
/// More than [`MAX_BLOCKS`] blocks.
pub(super) fn in_turns(
    id: &str,
    parent: Option<String>,
    turn: ImportedTurn,
    (key, blocks): (&str, &[Value]),
    calls: CallTurns,
) -> Result<Vec<Message>, String> {
    if blocks.len() > MAX_BLOCKS {
        return Err(format!("a message has more than {MAX_BLOCKS} blocks"));
    }
    let mut parts: Vec<Part> = Vec::new();
    for block in blocks {
        let Block { said, result, output, is_reasoning, extra_bytes } = block_texts(block);
        let is_result_alone = said.is_empty() && result.is_some() && !is_call(block);
        if !is_result_alone {
            if parts.last().is_none_or(|part| part.is_result) {
                parts.push(Part::default());
            }
            let part = parts.last_mut().expect("there is one");
            append(&mut part.content, &said);
            part.blocks.push(without_output(block));
            part.extra_bytes += extra_bytes;
            part.has_reasoning |= is_reasoning;
        }
        if let Some(content) = result {
            let call = call_id(block).map(str::to_owned);
            let extra_bytes = call.as_ref().map_or(0, String::len);
            let block = match is_result_alone {
                true => block.clone(),
                false => result_of(block, output),
            };
            parts.push(Part {
                is_result: true,
                content,
                blocks: vec![block],
                call,
                extra_bytes,
                has_reasoning: false,
            });
        }
    }
    // A message of results alone has no other text.
    if parts.last().is_none_or(|part| part.is_result)
        && (parts.is_empty() || !turn.content.is_empty())
    {
        parts.push(Part::default());
    }
    let main = parts.iter().rposition(|part| !part.is_result);
    if let Some(main) = main {
        append(&mut parts[main].content, &turn.content);
    }
    let last = parts.len() - 1;
    let mut messages: Vec<Message> = Vec::with_capacity(parts.len());
    let mut call = parent.clone();
    let mut call_turns: Vec<(String, String)> = Vec::new();
    for (n, part) in parts.into_iter().enumerate() {
        let id = if n == last { id.to_owned() } else { format!("{id}#{n}") };
        let before = messages.last().map(|message| message.id.clone()).or_else(|| parent.clone());
        // Tokens were counted over the whole, with those of thoughts, which are not sent again.
        let counted = turn.tokens.filter(|_| last == 0 && !part.has_reasoning);
        let sent = part.content.len() + part.extra_bytes;
        let tokens = counted.or((part.extra_bytes > 0).then(|| quarter(sent)));
        let created_at = turn.created_at.map(|at| at + TimeDelta::microseconds(n as i64));
        let mut payload = Map::new();
        let (role, parent) = if part.is_result {
            let named = part.call.as_deref().and_then(|call| {
                let here = call_turns.iter().rev().find(|(id, _)| id == call);
                here.map(|(_, turn)| turn.clone()).or_else(|| calls(call))
            });
            payload.insert("role".to_owned(), role_of_results(&part.blocks[0]).into());
            ("tool".to_owned(), named.or_else(|| call.clone()))
        } else {
            call = Some(id.clone());
            let named = part.blocks.iter().filter(|block| is_call(block)).filter_map(call_id);
            call_turns.extend(named.map(|call| (call.to_owned(), id.clone())));
            payload.insert("role".to_owned(), turn.role.clone().into());
            (turn.role.clone(), before)
        };
        if Some(n) == main {
            payload.extend(turn.payload.clone());
        }
        if !part.blocks.is_empty() {
            payload.insert(key.to_owned(), Value::Array(part.blocks));
        }
        let turn = ImportedTurn { role, content: part.content, created_at, tokens, payload };
        messages.push(Message { id, parent, edge: EdgeType::Reply, turn: Some(turn) });
    }
    Ok(messages)
}

/// About how many tokens so many bytes are, as the extension counts them.
pub(super) fn quarter(bytes: usize) -> i32 {
    i32::try_from(bytes.div_ceil(4)).unwrap_or(i32::MAX)
}

/// The role in which a provider takes a result.
fn role_of_results(block: &Value) -> &'static str {
    let kind = block["type"].as_str().unwrap_or_default();
    if kind.ends_with("tool_result") { "user" } else { "tool" }
}

/// The blocks in the payloads of messages, each with the id of its turn.
pub(super) fn blocks_in(messages: &[Message]) -> impl Iterator<Item = (&Value, &str)> {
    messages.iter().flat_map(|message| {
        let payload = message.turn.as_ref().and_then(|turn| turn.payload.get("content"));
        let blocks = payload.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        blocks.iter().map(|block| (block, message.id.as_str()))
    })
}

/// The id of the call that a block is, or whose result it is.
pub(super) fn call_id(block: &Value) -> Option<&str> {
    let keys = [&block["tool_use_id"], &block["call_id"], &block["tool_call"]["id"], &block["id"]];
    keys.into_iter().find_map(|key| key.as_str().filter(|id| !id.is_empty()))
}

/// Whether a block is a call, perhaps with its result.
pub(super) fn is_call(block: &Value) -> bool {
    let kind = block["type"].as_str().unwrap_or_default();
    kind.ends_with("tool_use") || kind.ends_with("_call") || kind == CODE_INTERPRETER
}

/// What Open WebUI calls code that it has run.
const CODE_INTERPRETER: &str = "open_webui:code_interpreter";

/// The key of a result that stands in its call.
const OUTPUT_KEYS: [&str; 2] = ["output", "outputs"];

/// A call without the result that stands in it.
fn without_output(block: &Value) -> Value {
    let path: &[&str] = match block["type"].as_str() {
        Some("tool_call") if block["tool_call"]["code_interpreter"].is_object() => {
            &["tool_call", "code_interpreter"]
        }
        Some("tool_call") if block["tool_call"]["function"].is_object() => {
            &["tool_call", "function"]
        }
        Some("tool_call") => &["tool_call"],
        Some(CODE_INTERPRETER) => &[],
        _ => return block.clone(),
    };
    let mut block = block.clone();
    let inner = path.iter().try_fold(&mut block, |value, key| value.as_object_mut()?.get_mut(*key));
    if let Some(inner) = inner.and_then(Value::as_object_mut) {
        OUTPUT_KEYS.iter().for_each(|key| drop(inner.remove(*key)));
    }
    block
}

/// The result that stands in a call, as a block of its own.
fn result_of(block: &Value, output: &Value) -> Value {
    let call = call_id(block).map_or(Value::Null, Value::from);
    let pairs =
        [("type", "function_call_output".into()), ("call_id", call), ("output", output.clone())];
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), value)).into())
}

/// What a block has in it.
struct Block<'a> {
    /// Its text, a call as text.
    said: String,
    /// The text of the result of a call in it.
    result: Option<String>,
    /// That result, where it stands with its call.
    output: &'a Value,
    /// Whether it is what the model has thought, which is not said.
    is_reasoning: bool,
    /// How many bytes of a call are sent beside its text: its id.
    extra_bytes: usize,
}

/// The text of a block, and the result of a call in it. Files are named, not stored.
fn block_texts(block: &Value) -> Block<'_> {
    let (is_reasoning, extra_bytes) = (false, 0);
    let said = |said| Block { said, result: None, output: &Value::Null, is_reasoning, extra_bytes };
    let called = |call, output| {
        let text = Some(plain(output)).filter(|text| !text.trim().is_empty() || is_nothing(output));
        Block { result: Some(text.unwrap_or_else(|| output.to_string())), output, ..said(call) }
    };
    let kind = block["type"].as_str().unwrap_or_default();
    let mut found = match kind {
        "text" | "input_text" | "output_text" => said(plain(&block["text"])),
        "message" => said(plain(&block["content"])),
        "error" => said(plain(if block[kind].is_null() { &block["text"] } else { &block[kind] })),
        "think" | "thinking" | "redacted_thinking" | "reasoning" => {
            Block { is_reasoning: true, ..said(String::new()) }
        }
        // What an application notes for itself.
        "token_budget" | "agent_update" | "flag" => said(String::new()),
        kind if kind.ends_with("tool_use") => said(call(block["name"].as_str(), &block["input"])),
        "tool_call" => {
            let inner = &block["tool_call"];
            let interpreter = &inner["code_interpreter"];
            if interpreter.is_object() {
                called(
                    call(Some("code_interpreter"), &interpreter["input"]),
                    &interpreter["outputs"],
                )
            } else {
                let function =
                    if inner["function"].is_object() { &inner["function"] } else { inner };
                let arguments = if function["args"].is_null() {
                    &function["arguments"]
                } else {
                    &function["args"]
                };
                called(call(function["name"].as_str(), arguments), &function["output"])
            }
            .without_empty_result()
        }
        CODE_INTERPRETER => {
            called(call(Some("code_interpreter"), &block["code"]), &block["output"])
                .without_empty_result()
        }
        kind if kind.ends_with("tool_result") => {
            Block { result: Some(plain(&block["content"])), ..said(String::new()) }
        }
        kind if is_output(kind) => {
            let output = ["output", "tools", "result"].map(|key| &block[key]);
            let output = output.into_iter().find(|value| !value.is_null());
            Block { result: Some(output.map_or(String::new(), plain)), ..said(String::new()) }
        }
        kind if kind.ends_with("_call") => {
            let arguments = ["arguments", "input", "action", "actions", "queries", "query"];
            let arguments =
                arguments.into_iter().map(|key| &block[key]).find(|value| !value.is_null());
            let name = block["name"].as_str().or(kind.strip_suffix("_call"));
            said(call(name, arguments.unwrap_or(&Value::Null)))
        }
        _ => match block {
            Value::String(text) => said(text.clone()),
            Value::Null => said(String::new()),
            _ => said(plain(block)),
        },
    };
    if is_call(block) {
        found.extra_bytes = call_id(block).map_or(0, str::len) + 1;
    }
    found
}

/// Whether a value is null, or an empty text, list or object.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

impl Block<'_> {
    fn without_empty_result(mut self) -> Self {
        self.result = self.result.filter(|_| !is_nothing(self.output));
        self
    }
}

/// Whether a block of this type is a result in OpenAI's form.
pub(super) fn is_output(kind: &str) -> bool {
    kind.ends_with("_call_output") || kind == "tool_search_output"
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
    "logs",
    "value",
    "content",
    "result",
    "summary",
    "transcript",
    "output_str",
    "output",
    "refusal",
    "title",
];

/// Where a program writes.
const STREAMS: [&str; 2] = ["stdout", "stderr"];

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
        // What code that was run has put out, in each of its ways; an object with more is JSON.
        Value::Object(object) if STREAMS.iter().any(|key| object.contains_key(*key)) => {
            let is_stream = |key: &str| STREAMS.contains(&key) || key == "result";
            if object.iter().any(|(key, value)| !is_stream(key) && !value.is_null()) {
                return value.to_string();
            }
            let mut text = String::new();
            let outputs = STREAMS.iter().chain(&["result"]).filter_map(|key| object.get(*key));
            outputs.for_each(|output| append(&mut text, &plain(output)));
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
    use super::super::json::value_in;
    use super::*;
    use crate::import::value::json;

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
        let digits = value_in(b"1e400").unwrap();
        for wrong in [
            json!("soon"),
            json!(1e300),
            json!(-1e300),
            json!(-1),
            digits,
            json!(true),
            json!("+262000-01-01T00:00:00Z"),
            json!("+262142-12-31T23:59:59-23:59"),
            json!("-262143-01-01T00:00:00+23:59"),
            json!("+99999999999-01-01"),
            json!("10000-01-01"),
            json!("-0044-03-15T00:00:00Z"),
            json!("0044-03-15T00:00:00+00:00 BC"),
            json!("2025-03-01 BC"),
            json!("0000-00-00"),
        ] {
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
            payload: Map::new(),
        };
        let blocks = json!([
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "name": "ls", "input": {"path": "."}},
            {"type": "tool_use", "name": "pwd", "input": {}},
            {"type": "tool_result", "content": [{"type": "text", "text": "a.txt"}]},
            {"type": "tool_result", "content": "/home"},
            {"type": "text", "text": "One file."}
        ]);
        let messages = in_turns(
            "m",
            Some("p".to_owned()),
            turn,
            ("content", blocks.as_array().unwrap()),
            &no_calls,
        )
        .unwrap();
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
        // What was counted over the whole belongs to none of them; calls count with their text.
        let tokens: Vec<_> = messages.iter().map(|m| m.turn.as_ref().unwrap().tokens).collect();
        assert_eq!(tokens, [Some(13), None, None, None]);
        let blocks: Vec<_> = messages
            .iter()
            .map(|m| m.turn.as_ref().unwrap().payload["content"].as_array().unwrap().len())
            .collect();
        assert_eq!(blocks, [3, 1, 1, 1]);
    }

    /// What code that was run has put out is said, and kept.
    #[test]
    fn all_that_an_interpreter_has_put_out_is_kept() {
        let blocks = json!([
            {"type": "tool_call", "tool_call": {"id": "c", "type": "code_interpreter",
             "code_interpreter": {"input": "CODE", "outputs": [{ "type": "logs", "logs": "LOG" },
              { "type": "image", "url": "https://e/" }]}}},
            {"type": CODE_INTERPRETER, "id": "d", "code": "1",
             "output": {"stdout": "OUT", "stderr": "ERR", "result": "RES"}},
            {"type": CODE_INTERPRETER, "id": "e", "code": "2",
             "output": {"stdout": "", "stderr": "", "result": "", "error": "WHY"}}
        ]);
        let turn = ImportedTurn {
            role: "assistant".to_owned(),
            content: String::new(),
            created_at: None,
            tokens: None,
            payload: Map::new(),
        };
        let blocks = blocks.as_array().unwrap();
        let messages = in_turns("m", None, turn, ("content", blocks), &no_calls).unwrap();
        let turns: Vec<_> = messages.iter().map(|message| message.turn.as_ref().unwrap()).collect();
        let texts: Vec<_> = turns.iter().map(|turn| turn.content.as_str()).collect();
        assert_eq!(texts[..2], ["[call code_interpreter] CODE", "LOG\n[image]"]);
        assert_eq!(texts[2..4], ["[call code_interpreter] 1", "OUT\nERR\nRES"]);
        let output = |turn: &ImportedTurn| {
            turn.payload["content"].as_array().unwrap()[0]["output"].to_string()
        };
        assert!(output(turns[1]).contains("LOG"), "{}", output(turns[1]));
        assert!(output(turns[3]).contains("ERR"), "{}", output(turns[3]));
        assert!(turns[5].content.contains("WHY") && output(turns[5]).contains("WHY"));
    }

    #[test]
    fn results_follow_the_calls_that_they_name() {
        let turn = ImportedTurn {
            role: "user".to_owned(),
            content: String::new(),
            created_at: None,
            tokens: None,
            payload: Map::new(),
        };
        let blocks = json!([
            {"type": "tool_result", "tool_use_id": "b", "content": "two"},
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
            {"type": "tool_result", "tool_use_id": "z", "content": "lost"},
        ]);
        let calls = |id: &str| (id != "z").then(|| format!("turn of {id}"));
        let messages = in_turns(
            "m",
            Some("p".to_owned()),
            turn,
            ("content", blocks.as_array().unwrap()),
            &calls,
        )
        .unwrap();
        let seen: Vec<_> =
            messages.iter().map(|m| (m.id.as_str(), m.parent.as_deref().unwrap())).collect();
        assert_eq!(seen, [("m#0", "turn of b"), ("m#1", "turn of a"), ("m", "p")]);
        let payload = &messages[0].turn.as_ref().unwrap().payload;
        let block = &payload["content"].as_array().unwrap()[0];
        assert_eq!((&payload["role"], &block["tool_use_id"]), (&json!("user"), &json!("b")));
    }

    #[test]
    fn payloads_that_repeat_the_text_are_plain() {
        let plain = [
            json!({"role": "user", "content": "a"}),
            json!({"role": "user"}),
            json!({"role": "user", "content": {"content_type": "text", "parts": ["a"]}}),
            json!({"role": "user", "content": [{"type": "text", "text": "a", "citations": [], "flags": null}]}),
            json!({"role": "user", "output": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}]}),
        ];
        for payload in plain {
            assert!(is_plain(payload.as_object().unwrap(), "user", "a"), "{payload}");
        }
        let more = [
            json!({"role": "developer", "content": "a"}),
            json!({"role": "user", "content": "b"}),
            json!({"role": "user", "content": "a", "files": [{"name": "f"}]}),
            json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "a"}]}),
            json!({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "x"}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "content": "a"}]}),
            json!({"role": "user", "content": [{"type": "thinking", "thinking": "a"}]}),
        ];
        for payload in more {
            assert!(!is_plain(payload.as_object().unwrap(), "user", "a"), "{payload}");
        }
    }

    #[test]
    fn payloads_hold_no_files_and_no_null_characters() {
        let mut payload = json!({"a\u{0}": "b\u{0}",
            "source": {"type": "base64", "data": "AAAA", "media_type": "image/png"},
                                 "made": {"type": "image_generation_call", "id": "i", "result": "AAAA"},
                                 "urls": ["data:image/png;base64,AAAA", "https://example.org/data:a/b;base64,"]});
        stored_payload(&mut payload);
        assert_eq!(
            payload,
            json!({"a\u{fffd}": "b\u{fffd}", "source": {"type": "base64", "media_type": "image/png"},
                   "made": {"type": "image_generation_call", "id": "i"},
                   "urls": ["data:image/png;base64,", "https://example.org/data:a/b;base64,"]})
        );
    }
}
