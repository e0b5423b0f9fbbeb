//! ChatGPT: `conversations.json` of a data export. Each conversation has a tree of nodes, `mapping`.

use std::io::Read;

use kernel::graph::edge::EdgeType;
use serde_json::Value;

use super::super::json::JsonStream;
use super::super::message::{
    ImportedTurn, Message, append, file, listed, object, parent_id, plain, text_of, timestamp,
};
use super::{MessageSink, Stop, each_conversation, each_message, text};

pub(in super::super) fn read<R: Read>(source: R, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    each_conversation(source, sink, conversation)
}

fn conversation<R: Read>(json: &mut JsonStream<R>, sink: &mut dyn MessageSink) -> Result<(), Stop> {
    let (place, mut id) = (json.place(), None);
    json.begin_object()?;
    while let Some(key) = json.next_key()? {
        match key.as_str() {
            "mapping" => each_message(json, sink, |id, node| {
                Ok(vec![message(id.ok_or("a node has no id")?, node)?])
            })?,
            "conversation_id" => id = text(json)?.or(id),
            "id" => id = id.or(text(json)?),
            _ => json.skip()?,
        }
    }
    Ok(sink.end_of_conversation(place, id)?)
}

/// The message of a node. A node without one, as the root, is skipped: its children follow its parent.
fn message(id: String, node: &Value) -> Result<Message, String> {
    if !node.is_object() {
        return Err("a node is not an object".to_owned());
    }
    let turn = match &node["message"] {
        Value::Null => None,
        message => {
            let role = text_of(&message["author"], "role")?;
            let payload = object([
                ("role", role.clone().into()),
                ("name", message["author"]["name"].clone()),
                ("recipient", recipient(message).map_or(Value::Null, Value::from)),
                ("channel", message["channel"].clone()),
                ("content", message["content"].clone()),
                ("attachments", listed(&message["metadata"]["attachments"])),
            ]);
            let created_at = timestamp(&message["create_time"])?;
            Some(ImportedTurn {
                role,
                content: content(message),
                created_at,
                tokens: None,
                payload,
            })
        }
    };
    Ok(Message { id, parent: parent_id(&node["parent"])?, edge: EdgeType::Reply, turn })
}

/// The tool that a message is for; for all others it is `all`.
fn recipient(message: &Value) -> Option<&str> {
    message["recipient"].as_str().filter(|name| !matches!(*name, "all" | ""))
}

fn content(message: &Value) -> String {
    let content = &message["content"];
    let attachments = message["metadata"]["attachments"].as_array().map_or(&[][..], Vec::as_slice);
    let mut said = match content["content_type"].as_str().unwrap_or("text") {
        "user_editable_context" => {
            let mut said = plain(&content["user_profile"]);
            append(&mut said, &plain(&content["user_instructions"]));
            said
        }
        "model_editable_context" => plain(&content["model_set_context"]),
        // What the model has thought is in the payload.
        "thoughts" | "reasoning_recap" => String::new(),
        "tether_quote" | "sonic_webpage" | "system_error" => {
            let mut said = String::new();
            for key in ["name", "title", "url", "snippet", "text"] {
                append(&mut said, &plain(&content[key]));
            }
            said
        }
        _ => match &content["parts"] {
            Value::Array(parts) => {
                let mut said = String::new();
                parts.iter().for_each(|value| append(&mut said, &part(value, attachments)));
                said
            }
            _ => plain(content),
        },
    };
    if let Some(tool) = recipient(message) {
        said = format!("[call {tool}] {said}").trim_end().to_owned();
    }
    let parts = content["parts"].to_string();
    for attachment in attachments {
        // An image stands among the parts as well.
        if attachment["id"].as_str().is_none_or(|id| id.is_empty() || !parts.contains(id)) {
            append(&mut said, &file("file", attachment["name"].as_str()));
        }
    }
    said
}

/// A part of a message with images or audio. A file among the attachments has its name there.
fn part(part: &Value, attachments: &[Value]) -> String {
    let kind = part["content_type"].as_str().unwrap_or_default();
    let Some(kind) = kind.strip_suffix("_asset_pointer") else { return plain(part) };
    let (kind, pointer) = match kind {
        "real_time_user_audio_video" => ("audio", &part["audio_asset_pointer"]["asset_pointer"]),
        kind => (kind, &part["asset_pointer"]),
    };
    let pointer = pointer.as_str();
    let named = attachments.iter().find(|attachment| {
        let id = attachment["id"].as_str().filter(|id| !id.is_empty());
        id.zip(pointer).is_some_and(|(id, pointer)| pointer.ends_with(id))
    });
    file(kind, named.and_then(|attachment| attachment["name"].as_str()).or(pointer))
}
