//! ChatGPT: `conversations.json` of a data export. Each conversation has a tree of nodes, `mapping`.

use std::collections::HashMap;
use std::io::Read;

use kernel::graph::edge::EdgeType;

use super::super::json::JsonStream;
use super::super::message::{
    ImportedTurn, Message, append, file, listed, object, parent_id, plain, text_of, timestamp,
};
use super::super::value::Value;
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
    let mut names: Names = HashMap::new();
    for attachment in attachments {
        if let Some(id) = attachment["id"].as_str().filter(|id| !id.is_empty()) {
            names.entry(id).or_insert((attachment["name"].as_str(), false));
        }
    }
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
                parts.iter().for_each(|value| append(&mut said, &part(value, &mut names)));
                said
            }
            _ => plain(content),
        },
    };
    if let Some(tool) = recipient(message) {
        said = format!("[call {tool}] {said}").trim_end().to_owned();
    }
    for attachment in attachments {
        // An image stands among the parts as well.
        let id = attachment["id"].as_str().unwrap_or_default();
        if names.get(id).is_none_or(|(_, is_said)| !is_said) {
            append(&mut said, &file("file", attachment["name"].as_str()));
        }
    }
    said
}

/// The names of attachments by their ids, and whether a part points there.
type Names<'a> = HashMap<&'a str, (Option<&'a str>, bool)>;

/// A part of a message with images or audio. A file among the attachments has its name there.
fn part(part: &Value, names: &mut Names) -> String {
    let kind = part["content_type"].as_str().unwrap_or_default();
    let Some(kind) = kind.strip_suffix("_asset_pointer") else { return plain(part) };
    let (kind, pointer) = match kind {
        "real_time_user_audio_video" => ("audio", &part["audio_asset_pointer"]["asset_pointer"]),
        kind => (kind, &part["asset_pointer"]),
    };
    let pointer = pointer.as_str();
    // An id is a whole segment of a pointer, as in sediment://file_1 and sediment://hash#file_1#p_0.jpg.
    let mut name = None;
    for segment in pointer.unwrap_or_default().split(['/', '#', '?']) {
        if let Some((its_name, is_said)) = names.get_mut(segment) {
            *is_said = true;
            name = name.or(*its_name);
        }
    }
    file(kind, name.or(pointer))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::import::value::json;

    use super::*;

    #[test]
    fn attachments_among_the_parts_are_said_once() {
        let kind = "image_asset_pointer";
        let image = |pointer| serde_json::json!({"content_type": kind, "asset_pointer": pointer});
        let message = json!({
            "content": {"content_type": "multimodal_text", "parts": [
                "look, file-3",
                image("file-service://file-1"),
                image("sediment://hash#file_2#p_0.jpg"),
                {"content_type": "real_time_user_audio_video_asset_pointer",
                 "audio_asset_pointer": {"asset_pointer": "sediment://file_4"}},
                image("sediment://elsewhere"),
            ]},
            "metadata": {"attachments": [
                {"id": "file-1", "name": "one.png"}, {"id": "file_2", "name": "two.pdf"},
                {"id": "file-3", "name": "three.txt"}, {"id": "file_4"}, {"name": "none.txt"},
                {"id": "", "name": "empty.txt"}, {"id": "file-1", "name": "again.png"},
            ]},
        });
        assert_eq!(
            content(&message),
            "look, file-3\n[image one.png]\n[image two.pdf]\n[audio sediment://file_4]\n\
             [image sediment://elsewhere]\n[file three.txt]\n[file none.txt]\n[file empty.txt]"
        );
    }

    #[test]
    fn many_attachments_to_a_long_message_take_no_longer_than_the_message() {
        let ids: Vec<String> = (0..30_000).map(|n| format!("file-{n}")).collect();
        let mut parts = vec![serde_json::json!("x".repeat(4 << 20))];
        parts.extend(ids.iter().map(|id| {
            serde_json::json!({"content_type": "image_asset_pointer", "asset_pointer": format!("a://{id}0")})
        }));
        let attachments: Vec<_> =
            ids.iter().map(|id| serde_json::json!({"id": id, "name": "n"})).collect();
        let message =
            json!({"content": {"parts": parts}, "metadata": {"attachments": attachments}});
        let begin = Instant::now();
        assert!(content(&message).len() > 4 << 20);
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}
