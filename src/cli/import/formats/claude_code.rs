//! Claude Code: transcripts of sessions, a record on each line. Messages are linked by `uuid` and
//! `parentUuid`.

use std::collections::HashMap;
use std::io::BufRead;

use kernel::graph::edge::EdgeType;
use serde_json::Value;

use super::super::json::value_in;
use super::super::lines::{Line, each_line};
use super::super::message::{ImportedTurn, Message, id_of, in_turns, parent_id, plain, timestamp};
use super::{MessageSink, Stop};

/// The calls that started subagents. The messages of a subagent are a chain of their own, perhaps in another file; it
/// has the id of the subagent in the call's result, or begins with the prompt in the call.
#[derive(Default)]
pub(in super::super) struct Subagents(HashMap<u64, String>);

/// How many ids and prompts are kept. Beyond them, chains of subagents are not joined to their calls.
const MAX_SUBAGENTS: usize = 20_000;

impl Subagents {
    fn key(session: &str, kind: &str, value: &str) -> u64 {
        let text = format!("{kind}\n{session}\n{value}");
        let digest = kernel::graph::content::sha256_hex(text.as_bytes());
        u64::from_str_radix(&digest[..16], 16).expect("a digest is hex digits")
    }

    fn insert(&mut self, session: &str, kind: &str, value: &Value, call: &str) {
        if let Some(value) = value.as_str()
            && self.0.len() < MAX_SUBAGENTS
        {
            self.0.insert(Self::key(session, kind, value), call.to_owned());
        }
    }

    fn call(&self, session: &str, kind: &str, value: &str) -> Option<String> {
        self.0.get(&Self::key(session, kind, value)).cloned()
    }
}

pub(in super::super) fn read(
    source: impl BufRead,
    subagents: &mut Subagents,
    sink: &mut dyn MessageSink,
) -> Result<(), Stop> {
    let mut session: Option<String> = None;
    let mut last = 0;
    each_line(source, &mut |number, line| {
        last = number;
        let place = (number, 0);
        let record: Value = match line {
            Line::TooLong(why) => return Ok(sink.broken(place, why)?),
            Line::Text(bytes) => match value_in(bytes) {
                Ok(record) => record,
                Err(why) => return Ok(sink.broken(place, why)?),
            },
        };
        if !record["type"].is_string() {
            let why = "no \"type\", which each record of a transcript has".to_owned();
            return Ok(sink.broken(place, why)?);
        }
        // Titles, snapshots of files and the like are not messages.
        if record["uuid"].is_null() {
            return Ok(());
        }
        let of = match id_of(&record, "sessionId") {
            Ok(id) => id,
            Err(why) => return Ok(sink.broken(place, why)?),
        };
        if session.as_ref().is_some_and(|session| *session != of) {
            sink.end_of_conversation(place, session.take())?;
        }
        match messages(&record, &of, subagents) {
            Ok(messages) => messages.into_iter().try_for_each(|message| sink.message(message))?,
            Err(why) => sink.broken(place, why)?,
        }
        session = Some(of);
        Ok(())
    })?;
    Ok(sink.end_of_conversation((last, 0), session)?)
}

fn messages(
    record: &Value,
    session: &str,
    subagents: &mut Subagents,
) -> Result<Vec<Message>, String> {
    let id = id_of(record, "uuid")?;
    let mut parent = parent_id(&record["parentUuid"])?;
    let mut edge = EdgeType::Reply;
    let skipped = |id, parent| Ok(vec![Message { id, parent, edge: EdgeType::Reply, turn: None }]);
    let queued = &record["attachment"];
    let (role, content) = match record["type"].as_str().unwrap_or_default() {
        role @ ("user" | "assistant" | "system") => {
            let has_message = record["message"].is_object();
            (role, if has_message { &record["message"]["content"] } else { &record["content"] })
        }
        // What was typed while an answer was written.
        "attachment" if queued["type"] == "queued_command" && queued["commandMode"] == "prompt" => {
            ("user", &queued["prompt"])
        }
        _ => return skipped(id, parent),
    };
    if role == "system" && content.is_null() {
        return skipped(id, parent);
    }
    if parent.is_none() {
        if let Some(before) = parent_id(&record["logicalParentUuid"])? {
            // A summary replaces the messages before it.
            (parent, edge) = (Some(before), EdgeType::Reference);
        } else if record["isSidechain"] == Value::Bool(true) {
            let by_id = record["agentId"].as_str().and_then(|id| subagents.call(session, "id", id));
            parent = by_id.or_else(|| subagents.call(session, "prompt", &plain(content)));
            edge = EdgeType::Branch;
        }
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
        subagents.insert(session, "prompt", &block["input"]["prompt"], &id);
    }
    // A result follows its call.
    if let Some(call) = &parent {
        subagents.insert(session, "id", &record["toolUseResult"]["agentId"], call);
    }
    let turn = ImportedTurn {
        role: role.to_owned(),
        content: if blocks.is_empty() { plain(content) } else { String::new() },
        created_at: timestamp(&record["timestamp"])?,
        tokens: None,
    };
    let mut messages = in_turns(&id, parent, turn, blocks)?;
    messages[0].edge = edge;
    Ok(messages)
}
