//! Which call a result is sent for: its own, or none, whatever else has its id.

use kernel::graph::turn::Role;
use kernel::prompt::provider::{OpenCalls, PromptMessage, ProviderFormat, RenderOptions, render};
use kernel::slicing::slice::Part;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases;

const NO_RESULT: &str = "[No result of this call is recorded.]";
const IDS: [&str; 2] = ["c", "d"];

/// A turn with whether the prompt has it.
#[derive(Clone, Debug)]
struct Turn {
    role: Role,
    json: Value,
    is_shown: bool,
}

/// A call of the assistant's by its name, with the places of its turn and of its result's, and the result's word.
#[derive(Clone, Debug)]
struct Called {
    name: String,
    place: usize,
    answered: Option<(usize, String)>,
}

#[derive(Clone, Debug, Default)]
struct Conversation {
    turns: Vec<Turn>,
    calls: Vec<Called>,
    /// How many calls and results there are so far.
    count: usize,
}

/// Makes a conversation of choices, of which there are none left at some time.
struct Maker {
    choices: std::vec::IntoIter<u8>,
    made: Conversation,
}

impl Maker {
    fn pick(&mut self, of: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(choice) % of)
    }

    fn word(&mut self, kind: &str) -> String {
        self.made.count += 1;
        format!("{kind}{}x", self.made.count)
    }

    fn add(&mut self, role: Role, json: Value) {
        let is_shown = self.pick(5) != 1;
        self.made.turns.push(Turn { role, json, is_shown });
    }

    /// What another than this role has called, and what was returned.
    fn quote(&mut self, items: &mut Vec<Value>, role: Role) {
        let (id, name, word) = (IDS[self.pick(2)], self.word("q"), self.word("r"));
        let speaker = ["Bob", "Eve"][self.pick(2)];
        // In turns of the assistant's nothing tells its own calls from quoted ones.
        let form = if role == Role::Assistant { 1 + self.pick(3) } else { self.pick(4) };
        let call = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": word });
        let (caller, teller) = match form {
            0 => (
                json!({ "role": "assistant", "content": [call] }),
                json!({ "role": "user", "content": [result] }),
            ),
            1 => (
                json!({ "role": speaker, "content": [call] }),
                json!({ "role": speaker, "content": [result] }),
            ),
            2 => (
                json!({ "author": speaker, "content": { "role": "model", "parts": [call] } }),
                json!({ "author": speaker, "content": { "role": "user", "parts": [result] } }),
            ),
            _ => (
                json!({ "role": "user", "content": [call] }),
                json!({ "role": "tool", "tool_call_id": id, "content": word }),
            ),
        };
        items.extend([caller, teller]);
    }

    /// The assistant's calls, whose results stand with them, follow, or are missing; quotes before, between and behind.
    fn step(&mut self) {
        let (place, mut items, mut open) = (self.made.turns.len(), Vec::new(), Vec::new());
        for id in &IDS[..1 + self.pick(2)] {
            if self.pick(3) == 1 {
                self.quote(&mut items, Role::Assistant);
            }
            let name = self.word("f");
            items.push(json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
            let call = self.made.calls.len();
            self.made.calls.push(Called { name, place, answered: None });
            match self.pick(5) {
                0..=2 => open.push((call, *id)),
                3 => {
                    if self.pick(2) == 1 {
                        self.quote(&mut items, Role::Assistant);
                    }
                    let word = self.word("r");
                    items
                        .push(json!({ "type": "tool_result", "tool_use_id": id, "content": word }));
                    self.made.calls[call].answered = Some((place, word));
                }
                _ => {}
            }
        }
        self.add(Role::Assistant, items.into());
        if self.pick(4) == 1 {
            self.add(Role::System, json!({ "role": "system", "content": "noted" }));
        }
        if self.pick(6) == 1 {
            let mut items = Vec::new();
            self.quote(&mut items, Role::User);
            self.add(Role::User, items.into());
        }
        let is_user = self.pick(2) == 1;
        let mut results = Vec::new();
        for (call, id) in open {
            let word = self.word("r");
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": word });
            if is_user && self.pick(3) == 1 {
                self.quote(&mut results, Role::User);
            }
            let place = self.made.turns.len();
            self.made.calls[call].answered = Some((place, word.clone()));
            match is_user {
                true => results.push(result),
                false => {
                    self.add(
                        Role::Tool,
                        json!({ "role": "tool", "tool_call_id": id, "content": word }),
                    );
                }
            }
        }
        if !results.is_empty() {
            self.add(Role::User, results.into());
        }
    }

    fn conversation(mut self) -> Conversation {
        for _ in 0..2 + self.pick(4) {
            match self.pick(4) {
                0 => self.add(Role::User, json!({ "role": "user", "content": "go on" })),
                1 => {
                    let mut items = vec![json!({ "type": "text", "text": "see" })];
                    self.quote(&mut items, Role::User);
                    self.add(Role::User, items.into());
                }
                _ => self.step(),
            }
        }
        self.made
    }
}

fn conversations() -> impl Strategy<Value = Conversation> {
    prop::collection::vec(any::<u8>(), 0..80).prop_map(|choices| {
        Maker { choices: choices.into_iter(), made: Conversation::default() }.conversation()
    })
}

impl Conversation {
    /// Whether all turns between these two are shown, and they themselves.
    fn is_whole(&self, from: usize, to: usize) -> bool {
        self.turns[from..=to].iter().all(|turn| turn.is_shown)
    }

    /// The first call that is sent with another's result, or without its own.
    fn check(&self) -> Result<(), String> {
        let shown: Vec<usize> =
            (0..self.turns.len()).filter(|place| self.turns[*place].is_shown).collect();
        let payloads: Vec<String> =
            shown.iter().map(|place| self.turns[*place].json.to_string()).collect();
        let messages: Vec<PromptMessage<'_>> = shown
            .iter()
            .zip(&payloads)
            .map(|(place, payload)| PromptMessage {
                part: Part::Line,
                role: self.turns[*place].role,
                created_at: None,
                content: None,
                payload: Some(payload),
            })
            .collect();
        let edges: Vec<(usize, usize)> = shown
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair[0] + 1 == pair[1])
            .map(|(place, _)| (place, place + 1))
            .collect();
        let options = RenderOptions { open_calls: OpenCalls::Note };
        let sent = render(&messages, &edges, ProviderFormat::OpenAi, options, &|| {}).unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let messages = sent["messages"].as_array().unwrap();
        let all = || messages.iter().flat_map(|message| message["tool_calls"].as_array());
        for call in &self.calls {
            let Some(sent_call) =
                all().flatten().find(|sent| sent["function"]["name"] == call.name)
            else {
                if self.turns[call.place].is_shown {
                    return Err(format!("{} is not sent: {sent}", call.name));
                }
                continue;
            };
            let told = messages.iter().find(|message| message["tool_call_id"] == sent_call["id"]);
            let told = told.and_then(|message| message["content"].as_str()).unwrap_or_default();
            let own = call.answered.as_ref().filter(|(place, _)| self.is_whole(call.place, *place));
            let own = own.map_or(NO_RESULT, |(_, word)| word);
            if told != own {
                return Err(format!("{} is told {told}, not {own}: {sent}", call.name));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn a_result_answers_its_own_call_or_none(made in conversations()) {
        let checked = made.check();
        prop_assert!(checked.is_ok(), "{:#?}\n{}", made.turns, checked.unwrap_err());
    }
}
