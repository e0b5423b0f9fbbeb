//! Open WebUI: exported chats. The tree is `chat.history.messages`; `chat.messages` is its current branch again.

use std::io::Read;

use kernel::graph::edge::EdgeType;
use serde_json::Value;
use struson::reader::ValueType;

use super::super::json::JsonStream;
use super::super::message::{
    ImportedTurn, Message, append, file, parent_id, plain, text_of, timestamp,
};
use super::{MessageSink, Stop, each_conversation, each_message, text};

pub(in super::super) fn read<R: Read>(source: R, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    each_conversation(source, sink, conversation)
}

fn conversation<R: Read>(json: &mut JsonStream<R>, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    let place = json.place();
    let id = chat(json, sink)?;
    Ok(sink.end_of_conversation(place, id)?)
}

/// Reads an exported row, which has the chat in it, or the chat itself. Returns its id, that of the row first.
fn chat<R: Read>(
    json: &mut JsonStream<R>,
    sink: &mut dyn MessageSink,
) -> Result<Option<String>, Stop> {
    let (mut id, mut inner) = (None, None);
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        let is_object = json.kind()? == ValueType::Object;
        match key.as_str() {
            "id" => id = text(json)?,
            "chat" if is_object => inner = chat(json, sink)?,
            "history" if is_object => {
                json.begin_object()?;
                while let Some(key) = json.next_key()? {
                    match key.as_str() {
                        "messages" => each_message(json, sink, |id, message| {
                            Ok(vec![turn(id.ok_or("the messages are no object")?, message)?])
                        })?,
                        _ => json.skip()?,
                    }
                }
            }
            _ => json.skip()?,
        }
    }
    Ok(id.or(inner))
}

fn turn(id: String, message: &Value) -> Result<Message, String> {
    let mut content = plain(&message["content"]);
    for named in message["files"].as_array().into_iter().flatten() {
        let name = named["name"].as_str().or(named["file"]["filename"].as_str());
        append(&mut content, &file(named["type"].as_str().unwrap_or("file"), name));
    }
    let turn = ImportedTurn {
        role: text_of(message, "role")?,
        content,
        created_at: timestamp(&message["timestamp"])?,
        tokens: None,
    };
    Ok(Message {
        id,
        parent: parent_id(&message["parentId"]),
        edge: EdgeType::Reply,
        turn: Some(turn),
    })
}
