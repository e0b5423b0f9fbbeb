//! Claude: `conversations.json` of a data export. Older exports have no parents: messages follow each other.

use std::io::Read;

use serde_json::Value;

use super::super::json::Json;
use super::super::message::{
    Message, Turn, append, file, in_turns, moment, parent_id, plain, text_of,
};
use super::{Receiver, Stop, each_conversation, each_message, text};

pub(in super::super) fn read<R: Read>(source: R, receiver: &mut dyn Receiver) -> Result<(), Stop> {
    each_conversation(source, receiver, conversation)
}

fn conversation<R: Read>(json: &mut Json<R>, receiver: &mut dyn Receiver) -> Result<(), Stop> {
    let (place, mut id, mut previous) = (json.place(), None, None);
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        match key.as_str() {
            "uuid" => id = text(json)?,
            "chat_messages" => each_message(json, receiver, |_, message| {
                let found = messages(message, previous.take());
                previous = message["uuid"].as_str().map(str::to_owned);
                found
            })?,
            _ => json.skip()?,
        }
    }
    Ok(receiver.end_of_conversation(place, id)?)
}

fn messages(message: &Value, previous: Option<String>) -> Result<Vec<Message>, String> {
    let id = text_of(message, "uuid")?;
    let role = match text_of(message, "sender")?.as_str() {
        "human" => "user".to_owned(),
        sender => sender.to_owned(),
    };
    let parent = match message.get("parent_message_uuid") {
        Some(parent) => parent_id(parent),
        None => previous,
    };
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut content = if blocks.is_empty() { plain(&message["text"]) } else { String::new() };
    for attachment in message["attachments"].as_array().into_iter().flatten() {
        append(&mut content, &file("file", attachment["file_name"].as_str()));
        append(&mut content, &plain(&attachment["extracted_content"]));
    }
    for named in message["files"].as_array().into_iter().flatten() {
        append(&mut content, &file("file", named["file_name"].as_str()));
    }
    let created_at = moment(&message["created_at"])?;
    Ok(in_turns(&id, parent, Turn { role, content, created_at, tokens: None }, blocks))
}
