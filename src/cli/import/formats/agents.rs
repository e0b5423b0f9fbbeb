//! The calls of Claude Code's subagents. What tells which call started one has changed with the versions. It is the id
//! of the call, in the agent's records or in the file beside them. Or it is the id of the agent in the call's result,
//! the folder of a workflow, or only the prompt.

use std::collections::{HashMap, HashSet};

use kernel::graph::content::sha256_hex;

use super::super::message::{Message, blocks_in, call_id};
use super::super::value::Value;

/// How many ids and prompts are kept. Chains of subagents beyond them are counted as turns whose parent is missing.
const MAX_KEPT: usize = 200_000;

/// The keys of a record under which the call that started its agent stands.
const CALL_KEYS: [&str; 6] = [
    "sourceToolUseID",
    "sourceToolUseId",
    "parent_tool_use_id",
    "parentToolUseID",
    "parentToolUseId",
    "toolUseId",
];

/// What the place of a file says of the agent whose transcript it is.
#[derive(Default)]
pub(in super::super) struct AgentFile {
    /// Of `agent-ID.jsonl`.
    pub(in super::super) agent: Option<String>,
    /// The call in `agent-ID.meta.json`.
    pub(in super::super) call: Option<String>,
    /// The name of the folder, which is that of a workflow's run.
    pub(in super::super) folder: Option<String>,
    /// Whether the calls in it were looked for before.
    pub(in super::super) is_scanned: bool,
}

/// A call, by the fingerprint of its session and id.
type Call = u64;

/// The calls with one prompt, in the order of the files.
#[derive(Default)]
struct Prompted {
    calls: Vec<Call>,
    /// Those before are taken.
    next: usize,
    /// What takes further chains, where it was looked for.
    last: Option<Call>,
}

/// The calls that start subagents.
#[derive(Default)]
pub(super) struct Agents {
    /// The turns of the calls.
    turns: HashMap<Call, String>,
    /// The calls of agents and of workflows, by session and id.
    calls: HashMap<u64, Call>,
    prompts: HashMap<u64, Prompted>,
    /// Calls of which the agent is known: a prompt that they share is another's.
    claimed: HashSet<Call>,
    kept: usize,
}

fn key(session: &str, kind: &str, value: &str) -> u64 {
    let digest = sha256_hex(format!("{kind}\n{session}\n{value}").as_bytes());
    u64::from_str_radix(&digest[..16], 16).expect("a digest is hex digits")
}

impl Agents {
    fn has_room(&mut self) -> bool {
        self.kept += 1;
        self.kept <= MAX_KEPT
    }

    /// Notes what the place of an agent's file says.
    pub(super) fn file(&mut self, session: &str, file: &AgentFile) {
        if let Some(call) = &file.call {
            self.claim(session, file.agent.as_deref(), call);
        }
    }

    fn claim(&mut self, session: &str, agent: Option<&str>, call: &str) {
        if !self.has_room() {
            return;
        }
        let call = key(session, "call", call);
        self.claimed.insert(call);
        if let Some(agent) = agent {
            self.calls.insert(key(session, "agent", agent), call);
        }
    }

    /// Notes the calls in messages that may start an agent: those with a prompt, or of a workflow.
    pub(super) fn calls(&mut self, session: &str, messages: &[Message]) {
        for (block, turn) in blocks_in(messages) {
            let prompt = block["input"]["prompt"].as_str();
            let starts_agent = prompt.is_some() || block["name"] == "Workflow";
            let Some(id) = call_id(block).filter(|_| block["type"] == "tool_use" && starts_agent)
            else {
                continue;
            };
            let call = key(session, "call", id);
            if self.turns.contains_key(&call) || !self.has_room() {
                continue;
            }
            self.turns.insert(call, turn.to_owned());
            if let Some(prompt) = prompt {
                let prompted = self.prompts.entry(key(session, "prompt", prompt)).or_default();
                prompted.calls.push(call);
                prompted.last = None;
            }
        }
    }

    /// Notes whose result a record is.
    pub(super) fn result(&mut self, session: &str, record: &Value) {
        let result = &record["toolUseResult"];
        let folder = result["transcriptDir"].as_str().and_then(|path| path.rsplit('/').next());
        let runs = [folder, result["runId"].as_str()];
        let agent = result["agentId"].as_str();
        if agent.is_none() && runs.iter().all(Option::is_none) {
            return;
        }
        let blocks = record["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
        let of = blocks.iter().find(|block| block["type"] == "tool_result").and_then(call_id);
        // Without the call's id, the message of the call stands for it.
        let turn = [&record["sourceToolAssistantUUID"], &record["parentUuid"]];
        let turn = turn.into_iter().find_map(Value::as_str);
        let id = match (of, turn) {
            (Some(call), _) => call.to_owned(),
            (None, Some(turn)) => format!("in {turn}"),
            (None, None) => return,
        };
        if let Some(agent) = agent {
            self.claim(session, Some(agent), &id);
        }
        for run in runs.into_iter().flatten() {
            if self.has_room() {
                let run = key(session, "folder", run);
                self.calls.insert(run, key(session, "call", &id));
            }
        }
        if let Some(turn) = turn
            && self.has_room()
        {
            self.turns.entry(key(session, "call", &id)).or_insert_with(|| turn.to_owned());
        }
    }

    /// The turn of the call that started the agent whose first record this is.
    pub(super) fn call_of(
        &mut self,
        session: &str,
        record: &Value,
        file: &AgentFile,
        prompt: &str,
    ) -> Option<String> {
        let by_id = |id: &str| self.turns.get(&key(session, "call", id)).cloned();
        let by = |kind: &str, id: &str| {
            self.calls.get(&key(session, kind, id)).and_then(|call| self.turns.get(call)).cloned()
        };
        let agent = record["agentId"].as_str().or(file.agent.as_deref());
        let named = CALL_KEYS.iter().filter_map(|key| record[*key].as_str());
        let named = named.chain(file.call.as_deref()).find_map(by_id);
        let found = named
            .or_else(|| agent.and_then(|agent| by("agent", agent)))
            .or_else(|| file.folder.as_deref().and_then(|folder| by("folder", folder)))
            .or_else(|| record["sourceToolAssistantUUID"].as_str().map(str::to_owned));
        if found.is_some() {
            return found;
        }
        let prompted = self.prompts.get_mut(&key(session, "prompt", prompt))?;
        let is_free = |call: &Call| !self.claimed.contains(call);
        let free = (prompted.next..prompted.calls.len()).find(|n| is_free(&prompted.calls[*n]));
        let chosen = match free {
            Some(n) => {
                prompted.next = n + 1;
                prompted.calls[n]
            }
            // More chains than calls: they are of the last one.
            None => {
                prompted.next = prompted.calls.len();
                let found = prompted.last.or_else(|| {
                    let free = prompted.calls.iter().rev().find(|call| is_free(call));
                    free.or(prompted.calls.last()).copied()
                });
                prompted.last = found;
                found?
            }
        };
        self.turns.get(&chosen).cloned()
    }
}
