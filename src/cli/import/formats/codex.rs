//! Codex CLI: rollouts of sessions, a record on each line, each following the one before it. The items of the model's
//! conversation are those that the Responses API has. Records have no ids; their lines stand for them.

use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

use kernel::graph::edge::EdgeType;

use super::super::json::value_in;
use super::super::lines::{Line, each_line};
use super::super::message::{
    ImportedTurn, Message, call_id, in_turns, is_call, is_output, object, plain, short_id, text_of,
    timestamp,
};
use super::super::value::{Map, Value};
use super::{MessageSink, Stop};

/// How many calls wait for their results. Beyond them they are forgotten: their results follow what stands before them.
const MAX_OPEN_CALLS: usize = 10_000;

/// How many of the user's messages can be taken back.
const MAX_ASKED: usize = 100_000;

/// Where a session has come to.
#[derive(Default)]
struct Session {
    id: Option<String>,
    /// The message that the next one follows.
    tip: Option<String>,
    /// The line of the call whose result the tip is, or of the call that it is.
    tip_call: u64,
    /// Lines of calls by their ids.
    calls: HashMap<String, u64>,
    /// What was the tip before each message of the user.
    asked: VecDeque<Option<String>>,
}

/// Reads a file; `name` is that of the file, which has the session's id at its end, for those that do not say it.
pub(in super::super) fn read(
    source: impl BufRead,
    name: Option<&str>,
    sink: &mut dyn MessageSink,
) -> Result<(), Stop> {
    let mut session = Session::default();
    let mut last = 0;
    each_line(source, &mut |number, line| {
        last = number;
        let place = (number, 0);
        let found = match line {
            Line::TooLong(why) => Err(why),
            Line::Text(bytes) => value_in(bytes),
        };
        match found.and_then(|record| session.messages(number, &record)) {
            Ok(messages) => messages.into_iter().try_for_each(|message| sink.message(message))?,
            Err(why) => sink.broken(place, why)?,
        }
        Ok(())
    })?;
    let id = session.id.or_else(|| name.and_then(id_in_name).map(str::to_owned));
    Ok(sink.end_of_conversation((last, 0), id)?)
}

/// The id in `rollout-2026-01-02T03-04-05-ID.jsonl`.
fn id_in_name(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".jsonl").unwrap_or(name);
    const BEFORE_ID: usize = "rollout-2026-01-02T03-04-05-".len();
    Some(name.strip_prefix("rollout-").and(name.get(BEFORE_ID..)).unwrap_or(name))
        .filter(|id| !id.is_empty())
}

/// Whether a record is one of a rollout.
pub(in super::super) fn is_record(record: &Value) -> bool {
    let kind = record["type"].as_str().unwrap_or_default();
    record["payload"].is_object() && !kind.is_empty() || is_item(record)
}

/// Whether a value is an item of a conversation, as the first versions wrote them, without anything around it.
fn is_item(record: &Value) -> bool {
    let kind = record["type"].as_str().unwrap_or_default();
    matches!(kind, "message" | "reasoning") || is_call(record) || is_output(kind)
}

impl Session {
    /// The messages of a record; none of those that are about the session, or repeat what others say.
    fn messages(&mut self, number: u64, record: &Value) -> Result<Vec<Message>, String> {
        let payload = &record["payload"];
        match record["type"].as_str() {
            Some("session_meta") => {
                // A session that was made of another one has the other's record as well.
                if self.id.is_none() {
                    self.id =
                        payload["id"].as_str().map(str::to_owned).map(short_id).transpose()?;
                }
            }
            Some("response_item") => return self.item(number, payload, &record["timestamp"]),
            Some("compacted") => return self.compacted(number, payload, &record["timestamp"]),
            Some("event_msg") if payload["type"] == "thread_rolled_back" => {
                let turns = payload["num_turns"].as_i64().and_then(|turns| turns.try_into().ok());
                for _ in 0..turns.unwrap_or(1).min(self.asked.len()) {
                    self.tip = self.asked.pop_back().flatten();
                    self.tip_call = 0;
                }
            }
            _ if payload.is_object() => {}
            _ if is_item(record) => return self.item(number, record, &record["timestamp"]),
            // The first line of the first versions.
            None if record["id"].is_string() && record["timestamp"].is_string() => {
                if self.id.is_none() {
                    self.id = record["id"].as_str().map(str::to_owned).map(short_id).transpose()?;
                }
            }
            None if record["record_type"].is_string() => {}
            _ => return Err("not a record of a rollout, which has a type and a payload".to_owned()),
        }
        Ok(Vec::new())
    }

    fn item(&mut self, number: u64, item: &Value, at: &Value) -> Result<Vec<Message>, String> {
        let kind = item["type"].as_str().ok_or("an item has no \"type\"")?;
        // The state of the files, and the settings of the session.
        if kind == "ghost_snapshot" {
            return Ok(Vec::new());
        }
        // Only messages have a role: other items are what the model does, and results.
        let role = match kind {
            "message" => text_of(item, "role")?,
            _ => "assistant".to_owned(),
        };
        let id = number.to_string();
        let is_result = is_output(kind);
        let turn = ImportedTurn {
            role: role.clone(),
            content: String::new(),
            created_at: timestamp(at)?,
            tokens: None,
            payload: Map::new(),
        };
        let calls = &self.calls;
        let of_call = |call: &str| calls.get(call).map(u64::to_string);
        let blocks = std::slice::from_ref(item);
        let messages = in_turns(&id, self.tip.clone(), turn, ("output", blocks), &of_call)?;
        if is_result {
            // Results may come in another order than their calls; what follows is behind that of the last call.
            let call = call_id(item).and_then(|call| self.calls.remove(call)).unwrap_or(number);
            if call >= self.tip_call {
                (self.tip, self.tip_call) = (Some(id), call);
            }
            return Ok(messages);
        }
        if is_call(item)
            && let Some(call) = call_id(item)
        {
            if self.calls.len() >= MAX_OPEN_CALLS {
                self.calls.clear();
            }
            self.calls.insert(short_id(call.to_owned())?, number);
        }
        if role == "user" && !is_context(&plain(&item["content"])) {
            if self.asked.len() >= MAX_ASKED {
                self.asked.pop_front();
            }
            self.asked.push_back(self.tip.clone());
        }
        (self.tip, self.tip_call) = (Some(id), number);
        Ok(messages)
    }

    /// The summary that stands for the messages before it.
    fn compacted(
        &mut self,
        number: u64,
        payload: &Value,
        at: &Value,
    ) -> Result<Vec<Message>, String> {
        let history = payload["replacement_history"].as_array();
        let mut content = plain(&payload["message"]);
        if content.is_empty() {
            content = history
                .and_then(|items| items.last())
                .map_or(String::new(), |item| plain(&item["content"]));
        }
        let turn = ImportedTurn {
            role: "system".to_owned(),
            content,
            created_at: timestamp(at)?,
            tokens: None,
            payload: object([("role", "system".into()), ("compacted", payload.clone())]),
        };
        let id = number.to_string();
        let parent = self.tip.replace(id.clone());
        self.tip_call = number;
        Ok(vec![Message { id, parent, edge: EdgeType::Reference, turn: Some(turn) }])
    }
}

/// Whether a message of the user was written by the program, which is not taken back with what was asked.
fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    [
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<permissions",
        "<INSTRUCTIONS>",
    ]
    .iter()
    .any(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_named_by_its_file_where_no_record_names_it() {
        let id = "01234567-89ab-7000-8000-000000000001";
        assert_eq!(id_in_name(&format!("rollout-2026-01-02T03-04-05-{id}.jsonl")), Some(id));
        assert_eq!(id_in_name("mine.jsonl"), Some("mine"));
        assert_eq!(id_in_name("rollout-x.jsonl"), Some("rollout-x"));
        assert_eq!(id_in_name(".jsonl"), None);
    }
}
