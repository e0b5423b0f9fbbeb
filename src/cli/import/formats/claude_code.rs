//! Claude Code: transcripts of sessions, a record on each line. Messages are linked by `uuid` and `parentUuid`. The
//! messages of a subagent are a chain of their own, perhaps in another file; `agents` knows the calls that started
//! them.

use std::collections::HashMap;
use std::io::BufRead;

use kernel::graph::edge::EdgeType;

use super::super::json::value_in;
use super::super::lines::{Line, each_line};
use super::super::message::{
    CallTurns, ImportedTurn, Message, blocks_in, call_id, id_of, in_turns, is_call, no_calls,
    object, parent_id, plain, timestamp,
};
use super::super::value::{Map, Value};
use super::agents::{AgentFile, Agents};
use super::{MessageSink, Stop};

/// How many calls of a session wait for their results. Beyond them they are forgotten: their results follow what their
/// records say.
const MAX_OPEN_CALLS: usize = 20_000;

/// Reads transcripts one after the other. Those of one session follow each other, and are one conversation.
#[derive(Default)]
pub(in super::super) struct Transcripts {
    agents: Agents,
    session: Option<String>,
    /// The turns of the session's calls, by the ids of the calls.
    calls: HashMap<String, String>,
}

/// Whether a record is one of a transcript's messages.
pub(in super::super) fn is_message(record: &Value) -> bool {
    record["type"].is_string() && record["uuid"].is_string() && record["sessionId"].is_string()
}

impl Transcripts {
    /// Looks through a transcript before it is read, for the calls of subagents in it. Returns the session of its first
    /// message, None if it has none. Lines that cannot be read are left to [`Transcripts::read`].
    pub(in super::super) fn scan(
        &mut self,
        source: impl BufRead,
        file: &AgentFile,
    ) -> Result<Option<String>, Stop> {
        let mut session: Option<String> = None;
        each_line(source, &mut |_, line| {
            let Line::Text(bytes) = line else { return Ok(()) };
            let text = String::from_utf8_lossy(bytes);
            let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
            let is_of_agent = has(&["tool_use"]) && has(&["\"prompt\"", "\"Workflow\""])
                || has(&["toolUseResult"]) && has(&["agentId", "transcriptDir", "runId"]);
            if session.is_some() && !is_of_agent {
                return Ok(());
            }
            let Ok(record) = value_in(bytes) else { return Ok(()) };
            if !is_message(&record) {
                return Ok(());
            }
            let of = record["sessionId"].as_str().unwrap_or_default();
            if session.is_none() {
                self.agents.file(of, file);
                session = Some(of.to_owned());
            }
            if is_of_agent && let Ok(messages) = messages(&record, &no_calls) {
                self.agents.calls(of, &messages);
                self.agents.result(of, &record);
            }
            Ok(())
        })?;
        Ok(session)
    }

    /// Reads a transcript. A conversation ends where another session begins, or with [`Transcripts::end`].
    pub(in super::super) fn read(
        &mut self,
        source: impl BufRead,
        file: &AgentFile,
        sink: &mut dyn MessageSink,
    ) -> Result<(), Stop> {
        each_line(source, &mut |number, line| {
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
            if self.session.as_ref() != Some(&of) {
                self.end(sink)?;
                self.session = Some(of.clone());
            }
            let found = {
                let calls = &self.calls;
                let source = parent_id(&record["sourceToolAssistantUUID"]);
                messages(&record, &|call| {
                    calls.get(call).cloned().or_else(|| source.clone().ok().flatten())
                })
            };
            match found {
                Ok(mut messages) => {
                    let is_chain = record["isSidechain"] == true && record["parentUuid"].is_null();
                    if is_chain && record["logicalParentUuid"].is_null() {
                        self.join(&record, &of, file, &mut messages);
                    }
                    if !file.is_scanned {
                        self.agents.calls(&of, &messages);
                        self.agents.result(&of, &record);
                    }
                    self.keep_calls(&messages);
                    messages.into_iter().try_for_each(|message| sink.message(message))?;
                }
                Err(why) => sink.broken(place, why)?,
            }
            Ok(())
        })
    }

    /// Ends the session that is being read, if there is one.
    pub(in super::super) fn end(&mut self, sink: &mut dyn MessageSink) -> Result<(), Stop> {
        self.calls.clear();
        match self.session.take() {
            Some(session) => Ok(sink.end_of_conversation((0, 0), Some(session))?),
            None => Ok(()),
        }
    }

    /// Lets the first message of a subagent follow the call that started it. One whose call is not found follows what
    /// is not there, which is counted.
    fn join(&mut self, record: &Value, session: &str, file: &AgentFile, messages: &mut [Message]) {
        let Some(first) = messages.first_mut().filter(|first| first.turn.is_some()) else { return };
        let agent = record["agentId"].as_str().unwrap_or_default();
        let prompt = plain(&record["message"]["content"]);
        let call = self.agents.call_of(session, record, file, &prompt);
        first.parent = Some(call.unwrap_or_else(|| format!("the call of agent {agent}")));
        first.edge = EdgeType::Branch;
    }

    fn keep_calls(&mut self, messages: &[Message]) {
        for (call, turn) in calls_in(messages) {
            if self.calls.len() >= MAX_OPEN_CALLS {
                self.calls.clear();
            }
            self.calls.insert(call.to_owned(), turn.to_owned());
        }
    }
}

/// The ids of the calls in messages, each with the id of its turn.
fn calls_in(messages: &[Message]) -> impl Iterator<Item = (&str, &str)> {
    blocks_in(messages)
        .filter(|(block, _)| is_call(block))
        .filter_map(|(block, turn)| call_id(block).map(|call| (call, turn)))
}

fn messages(record: &Value, calls: CallTurns) -> Result<Vec<Message>, String> {
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
        "attachment"
            if queued["type"] == "queued_command"
                && matches!(queued["commandMode"].as_str(), None | Some("prompt")) =>
        {
            ("user", &queued["prompt"])
        }
        _ => return skipped(id, parent),
    };
    if role == "system" && content.is_null() {
        return skipped(id, parent);
    }
    // A summary replaces the messages before it.
    if parent.is_none()
        && let Some(before) = parent_id(&record["logicalParentUuid"])?
    {
        (parent, edge) = (Some(before), EdgeType::Reference);
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let text = if blocks.is_empty() { content.clone() } else { Value::Null };
    let turn = ImportedTurn {
        role: role.to_owned(),
        content: plain(&text),
        created_at: timestamp(&record["timestamp"])?,
        tokens: None,
        payload: if text.is_null() { Map::new() } else { object([("content", text)]) },
    };
    let mut messages = in_turns(&id, parent, turn, ("content", blocks), calls)?;
    messages[0].edge = edge;
    Ok(messages)
}
