//! Open WebUI: exported chats. The tree is `chat.history.messages`; `chat.messages` is its current branch again.

use std::collections::HashSet;
use std::io::Read;
use std::rc::Rc;

use struson::reader::ValueType;

use super::super::json::JsonStream;
use super::super::message::{
    ImportedTurn, Message, append, file, in_turns, listed, no_calls, object, parent_id, plain,
    text_of, timestamp, token_count,
};
use super::super::value::Value;
use super::{MessageSink, Stop, each_conversation, each_message, text};

pub(in super::super) fn read<R: Read>(source: R, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    each_conversation(source, sink, conversation)
}

fn conversation<R: Read>(json: &mut JsonStream<R>, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    let place = json.place();
    let id = row(json, sink)?;
    Ok(sink.end_of_conversation(place, id)?)
}

/// What was found of a chat's messages.
#[derive(Default)]
struct Found {
    history: bool,
    /// The list that older versions have, whose messages name no parents.
    list: bool,
}

/// Reads an exported row, which has the chat in it, or a chat itself. Returns its id, that of the row first.
fn row<R: Read>(
    json: &mut JsonStream<R>,
    sink: &mut dyn MessageSink,
) -> Result<Option<String>, Stop> {
    let (mut id, mut inner) = (None, None);
    let (place, mut found) = (json.place(), Found::default());
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        match key.as_str() {
            "id" => id = text(json)?,
            "chat" if json.kind()? == ValueType::Object => {
                json.begin_object()?;
                while let Some(key) = json.next_key()? {
                    match key.as_str() {
                        "id" => inner = text(json)?,
                        key => part_of_chat(key, json, sink, &mut found)?,
                    }
                }
            }
            key => part_of_chat(key, json, sink, &mut found)?,
        }
    }
    if found.list && !found.history {
        let why = "a chat without a history: its messages do not say what they follow".to_owned();
        sink.broken(place, why)?;
    }
    Ok(id.or(inner))
}

fn part_of_chat<R: Read>(
    key: &str,
    json: &mut JsonStream<R>,
    sink: &mut dyn MessageSink,
    found: &mut Found,
) -> Result<(), Stop> {
    if key == "messages" && json.kind()? == ValueType::Array {
        json.begin_array()?;
        while json.has_element()? {
            found.list = true;
            json.skip()?;
        }
        return Ok(());
    }
    if key != "history" || json.kind()? != ValueType::Object {
        return Ok(json.skip()?);
    }
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        match key.as_str() {
            "messages" => {
                found.history = true;
                let mut children: Vec<(Rc<str>, String)> = Vec::new();
                let (mut without_parent, mut held) = (HashSet::new(), 0);
                each_message(json, sink, |id, message| {
                    let id = id.ok_or("the messages are not an object")?;
                    let parent: Rc<str> = id.as_str().into();
                    let ids = message["childrenIds"].as_array().into_iter().flatten();
                    let ids = ids.filter_map(Value::as_str);
                    for id in ids.filter(|id| !id.is_empty()) {
                        // Of any real chat all are held.
                        held += HELD_BYTES + id.len();
                        if held <= MAX_CHILDREN_BYTES {
                            children.push((Rc::clone(&parent), id.to_owned()));
                        }
                    }
                    let turns = turns(&id, message)?;
                    if !message["parentId"].is_string() {
                        without_parent.insert(id);
                    }
                    Ok(turns)
                })?;
                // Some messages name no parent, but are named by it; by one, as any message has one.
                for (parent, child) in children {
                    if without_parent.remove(&child) {
                        sink.edge(parent.to_string(), child)?;
                    }
                }
            }
            _ => json.skip()?,
        }
    }
    Ok(())
}

/// The turns of a message. From version 0.10 on, an answer is in `output`, a list of texts, thoughts, calls and
/// results. Older versions have `content`, which counts where no text is in `output`.
fn turns(id: &str, message: &Value) -> Result<Vec<Message>, String> {
    let output = message["output"].as_array().map_or(&[][..], Vec::as_slice);
    let is_text = |item: &Value| item["type"] == "message" && !plain(&item["content"]).is_empty();
    let has_text = output.iter().any(is_text);
    let mut content = if has_text { String::new() } else { plain(&message["content"]) };
    // Several answers that were made one.
    append(&mut content, &plain(&message["merged"]));
    let is_said = !has_text && message["content"] != "";
    let payload = object([
        ("content", if is_said { message["content"].clone() } else { Value::Null }),
        ("merged", message["merged"].clone()),
        ("files", listed(&message["files"])),
        ("error", message["error"].clone()),
    ]);
    for named in message["files"].as_array().into_iter().flatten() {
        let name = named["name"].as_str().or(named["file"]["filename"].as_str());
        append(&mut content, &file(named["type"].as_str().unwrap_or("file"), name));
    }
    append(&mut content, &error_text(&message["error"]));
    // Some answers were stored without a role, but with what no question has.
    let is_answer = message["model"].is_string() || !output.is_empty();
    let role = match &message["role"] {
        Value::Null if is_answer => "assistant".to_owned(),
        _ => text_of(message, "role")?,
    };
    let tokens = [&message["usage"]["completion_tokens"], &message["info"]["eval_count"]];
    let turn = ImportedTurn {
        role,
        content,
        created_at: timestamp(&message["timestamp"])?,
        tokens: tokens.into_iter().find_map(token_count),
        payload,
    };
    in_turns(id, parent_id(&message["parentId"])?, turn, ("output", output), &no_calls)
}
/// The most bytes of the ids under `childrenIds` of a chat, which are held until its end, each with what holds it.
const MAX_CHILDREN_BYTES: usize = 64 << 20;
const HELD_BYTES: usize = 64;

/// What went wrong: a text, an object that has one, or true, which says nothing.
fn error_text(error: &Value) -> String {
    let texts = ["content", "message", "detail"].map(|key| &error[key]);
    match texts.into_iter().find_map(|text| text.as_str()) {
        Some(text) => text.to_owned(),
        None if matches!(error, Value::Bool(_)) => String::new(),
        None => plain(error),
    }
}
