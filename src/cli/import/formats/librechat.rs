//! LibreChat: an exported conversation, its messages in a list or each within the one that it follows.

use std::io::Read;

use struson::reader::ValueType;

use super::super::json::{JsonStream, LineColumn};
use super::super::message::{
    ImportedTurn, Message, append, file, id_of, in_turns, listed, no_calls, object, parent_id,
    plain, timestamp, token_count,
};
use super::super::value::{Map, Value};
use super::{MessageSink, Stop, each_conversation, text};

pub(in super::super) fn read<R: Read>(source: R, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    each_conversation(source, sink, conversation)
}

fn conversation<R: Read>(json: &mut JsonStream<R>, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    let (place, mut id) = (json.place(), None);
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        match key.as_str() {
            "conversationId" => id = text(json)?,
            "messages" | "messagesTree" => tree(json, sink)?,
            _ => json.skip()?,
        }
    }
    Ok(sink.end_of_conversation(place, id)?)
}

/// An array of messages that is open, or a message that is open, with what was read of it; None once it was emitted.
enum Open {
    List,
    Message { place: LineColumn, record: Option<Map>, refused: Option<String> },
}

/// Reads messages with their `children`, however deep these are. What follows the children of a message is not read, so
/// that no more than one message is held.
fn tree<R: Read>(json: &mut JsonStream<R>, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    let mut open = Vec::new();
    enter(json, sink, &mut open)?;
    while let Some(last) = open.last_mut() {
        match last {
            Open::List => {
                if json.has_element()? {
                    enter(json, sink, &mut open)?;
                } else {
                    open.pop();
                }
            }
            Open::Message { place, record, refused } => match json.next_key()?.as_deref() {
                None => {
                    emit(*place, record, refused, sink)?;
                    open.pop();
                }
                Some("children") => {
                    emit(*place, record, refused, sink)?;
                    enter(json, sink, &mut open)?;
                }
                Some(key) => match record {
                    Some(record) if is_read(key) => match json.value()? {
                        Ok(value) => {
                            record.insert(key.to_owned(), value);
                        }
                        Err(why) => *refused = Some(why),
                    },
                    _ => json.skip()?,
                },
            },
        }
    }
    Ok(())
}

/// Opens the list or message that comes next.
fn enter<R: Read>(
    json: &mut JsonStream<R>,
    sink: &mut dyn MessageSink,
    open: &mut Vec<Open>,
) -> Result<(), Stop> {
    let kind = json.kind()?;
    match kind {
        ValueType::Array => {
            json.begin_array()?;
            open.push(Open::List);
        }
        ValueType::Object => {
            let place = json.place();
            json.begin_object()?;
            open.push(Open::Message { place, record: Some(Map::new()), refused: None });
        }
        _ => {
            if kind != ValueType::Null {
                sink.broken(json.place(), "a message is not an object".to_owned())?;
            }
            json.skip()?;
        }
    }
    Ok(())
}

/// The keys of a message that are read.
fn is_read(key: &str) -> bool {
    matches!(
        key,
        "messageId"
            | "parentMessageId"
            | "isCreatedByUser"
            | "text"
            | "content"
            | "createdAt"
            | "tokenCount"
            | "files"
            | "error"
            | "attachments"
    )
}

/// Emits what was read of a message, the first time it is called for it.
fn emit(
    place: LineColumn,
    record: &mut Option<Map>,
    refused: &mut Option<String>,
    sink: &mut dyn MessageSink,
) -> Result<(), Stop> {
    let Some(record) = record.take() else { return Ok(()) };
    if let Some(why) = refused.take() {
        return Ok(sink.broken(place, why)?);
    }
    // The root of a recursive export stands for the conversation; it has children alone.
    if record.is_empty() {
        return Ok(());
    }
    match messages(&Value::Object(record)) {
        Ok(messages) => messages.into_iter().try_for_each(|message| sink.message(message))?,
        Err(why) => sink.broken(place, why)?,
    }
    Ok(())
}

fn messages(message: &Value) -> Result<Vec<Message>, String> {
    let id = id_of(message, "messageId")?;
    let role = match message["isCreatedByUser"] {
        Value::Bool(true) => "user",
        Value::Bool(false) => "assistant",
        Value::Null => return Err("no \"isCreatedByUser\"".to_owned()),
        _ => return Err("\"isCreatedByUser\" is neither true nor false".to_owned()),
    };
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut content = if blocks.is_empty() { plain(&message["text"]) } else { String::new() };
    for named in message["files"].as_array().into_iter().flatten() {
        append(&mut content, &file("file", named["filename"].as_str()));
    }
    let text = if blocks.is_empty() { message["text"].clone() } else { Value::Null };
    let payload = object([
        ("content", text),
        ("files", listed(&message["files"])),
        ("attachments", listed(&message["attachments"])),
        ("is_error", if message["error"] == true { true.into() } else { Value::Null }),
    ]);
    let turn = ImportedTurn {
        role: role.to_owned(),
        content,
        created_at: timestamp(&message["createdAt"])?,
        tokens: token_count(&message["tokenCount"]),
        payload,
    };
    let parent = parent_id(&message["parentMessageId"])?;
    in_turns(&id, parent, turn, ("content", blocks), &no_calls)
}
