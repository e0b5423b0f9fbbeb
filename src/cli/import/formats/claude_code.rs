//! Claude Code: transcripts of sessions, a record on each line. Messages are linked by `uuid` and
//! `parentUuid`.

use std::collections::HashMap;
use std::io::BufRead;

use kernel::graph::edge::EdgeType;
use serde_json::Value;

use super::super::lines::{Line, each_line};
use super::super::message::{
    ImportedTurn, Message, in_turns, parent_id, plain, text_of, timestamp,
};
use super::{MessageSink, Stop};

/// Prompts of calls that started subagents. The messages of a subagent are a chain of their own, perhaps in another file.
#[derive(Default)]
pub(in super::super) struct Prompts(HashMap<u64, String>);

/// How many prompts are kept. Beyond them, chains of subagents are not joined to their calls.
const PROMPTS_MAX: usize = 100_000;

impl Prompts {
    fn key(session: &str, prompt: &str) -> u64 {
        let digest = kernel::graph::content::sha256_hex(format!("{session}\n{prompt}").as_bytes());
        u64::from_str_radix(&digest[..16], 16).expect("a digest is hex digits")
    }
}

pub(in super::super) fn read(
    source: impl BufRead,
    prompts: &mut Prompts,
    sink: &mut dyn MessageSink,
) -> Result<(), Stop> {
    let mut session: Option<String> = None;
    let mut last = 0;
    each_line(source, &mut |number, line| {
        last = number;
        let place = (number, 0);
        let record: Value = match line {
            Line::TooLong(why) => return Ok(sink.broken(place, why)?),
            Line::Text(bytes) => match serde_json::from_slice(bytes) {
                Ok(record) => record,
                Err(error) => return Ok(sink.broken(place, format!("no JSON: {error}"))?),
            },
        };
        if !record["type"].is_string() {
            let why = "no \"type\", which each record of a transcript has".to_owned();
            return Ok(sink.broken(place, why)?);
        }
        // Titles, snapshots of files and the like are no messages.
        if record["uuid"].is_null() {
            return Ok(());
        }
        let of = match text_of(&record, "sessionId") {
            Ok(id) => id,
            Err(why) => return Ok(sink.broken(place, why)?),
        };
        if session.as_ref().is_some_and(|session| *session != of) {
            sink.end_of_conversation(place, session.take())?;
        }
        match messages(&record, &of, prompts) {
            Ok(messages) => messages.into_iter().try_for_each(|message| sink.message(message))?,
            Err(why) => sink.broken(place, why)?,
        }
        session = Some(of);
        Ok(())
    })?;
    Ok(sink.end_of_conversation((last, 0), session)?)
}

fn messages(record: &Value, session: &str, prompts: &mut Prompts) -> Result<Vec<Message>, String> {
    let id = text_of(record, "uuid")?;
    let mut parent = parent_id(&record["parentUuid"]);
    let mut edge = EdgeType::Reply;
    let role = record["type"].as_str().unwrap_or_default();
    if !matches!(role, "user" | "assistant" | "system") {
        return Ok(vec![Message { id, parent, edge, turn: None }]);
    }
    let content = if record["message"].is_object() {
        &record["message"]["content"]
    } else {
        &record["content"]
    };
    if parent.is_none() {
        if let Some(before) = parent_id(&record["logicalParentUuid"]) {
            // A summary replaces the messages before it.
            (parent, edge) = (Some(before), EdgeType::Reference);
        } else if record["isSidechain"] == Value::Bool(true) {
            parent = prompts.0.get(&Prompts::key(session, &plain(content))).cloned();
            edge = EdgeType::Branch;
        }
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
        if let Some(prompt) = block["input"]["prompt"].as_str()
            && prompts.0.len() < PROMPTS_MAX
        {
            prompts.0.insert(Prompts::key(session, prompt), id.clone());
        }
    }
    let turn = ImportedTurn {
        role: role.to_owned(),
        content: if blocks.is_empty() { plain(content) } else { String::new() },
        created_at: timestamp(&record["timestamp"])?,
        tokens: None,
    };
    let mut messages = in_turns(&id, parent, turn, blocks);
    messages[0].edge = edge;
    Ok(messages)
}
