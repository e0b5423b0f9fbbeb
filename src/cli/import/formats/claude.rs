//! Claude: `conversations.json` of a data export. Older exports have no parents: messages follow each other.

use std::io::Read;

use super::super::json::JsonStream;
use super::super::message::{
    ImportedTurn, Message, append, file, id_of, in_turns, listed, no_calls, object, parent_id,
    plain, text_of, timestamp,
};
use super::super::value::Value;
use super::{MessageSink, Stop, each_conversation, each_message, text};

pub(in super::super) fn read<R: Read>(source: R, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    each_conversation(source, sink, conversation)
}

fn conversation<R: Read>(json: &mut JsonStream<R>, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    let (place, mut id, mut previous) = (json.place(), None, None);
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        match key.as_str() {
            "uuid" => id = text(json)?,
            "chat_messages" => each_message(json, sink, |_, message| {
                let found = messages(message, previous.clone())?;
                previous = found.last().map(|message| message.id.clone());
                Ok(found)
            })?,
            _ => json.skip()?,
        }
    }
    Ok(sink.end_of_conversation(place, id)?)
}

fn messages(message: &Value, previous: Option<String>) -> Result<Vec<Message>, String> {
    let id = id_of(message, "uuid")?;
    let role = match text_of(message, "sender")?.as_str() {
        "human" => "user".to_owned(),
        sender => sender.to_owned(),
    };
    let parent = match message.get("parent_message_uuid") {
        Some(Value::Null) | None => previous,
        Some(parent) => parent_id(parent)?,
    };
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let has_text = blocks.iter().any(|block| !plain(block).is_empty());
    let (blocks, mut content) = if has_text {
        (blocks, String::new())
    } else {
        let texts = [&message["text"], &message["content"]];
        let text = texts.into_iter().map(plain).find(|text| !text.is_empty());
        (&[][..], text.unwrap_or_default())
    };
    let payload = object([
        ("content", if has_text { Value::Null } else { content.clone().into() }),
        ("attachments", listed(&message["attachments"])),
        ("files", listed(&message["files"])),
    ]);
    for attachment in message["attachments"].as_array().into_iter().flatten() {
        append(&mut content, &file("file", attachment["file_name"].as_str()));
        append(&mut content, &plain(&attachment["extracted_content"]));
    }
    for named in message["files"].as_array().into_iter().flatten() {
        append(&mut content, &file("file", named["file_name"].as_str()));
    }
    let created_at = timestamp(&message["created_at"])?;
    let turn = ImportedTurn { role, content, created_at, tokens: None, payload };
    in_turns(&id, parent, turn, ("content", blocks), &no_calls)
}
