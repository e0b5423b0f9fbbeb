//! Who speaks in a payload: whatever it is made of, each word stands under the mark of the innermost speaker that is
//! named around it, and what a tool has answered in what is the tool's.

use std::fmt::Write;

use graph_kernel_tests::providers::check_prompt;
use kernel::graph::turn::Role;
use kernel::prompt::provider::{OpenCalls, PromptMessage, ProviderFormat, RenderOptions, render};
use kernel::slicing::slice::Part;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::{cases, line};

/// What names speakers, of which the first may stand in a key, and how a prompt has them.
const SPEAKERS: [(&str, &str); 23] = [
    ("user", "user"),
    ("assistant", "assistant"),
    ("system", "system"),
    ("tool", "tool"),
    ("human", "user"),
    ("ai", "assistant"),
    ("model", "assistant"),
    ("developer", "system"),
    ("function", "tool"),
    ("Bob", "Bob"),
    ("Eve", "Eve"),
    ("critic", "critic"),
    ("user-prompt", "user"),
    ("retry-prompt", "user"),
    ("request", "user"),
    ("response", "assistant"),
    ("HumanMessage", "user"),
    ("system-prompt", "system"),
    ("SystemMessage", "system"),
    ("output_text", "assistant"),
    ("refusal", "assistant"),
    // Of whom nothing says who it is, or what nobody can read.
    ("nobody", "nobody"),
    ("7", "somebody"),
];
const NAMES: usize = 12;
/// Of the type of a message of LangChain's.
const LANGCHAIN: [&str; 6] = ["human", "ai", "system", "tool", "developer", "function"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Speaker {
    /// As the payload has it.
    stored: &'static str,
    /// As the prompt has it.
    shown: &'static str,
}

impl Speaker {
    fn new(stored: &'static str) -> Self {
        let (_, shown) = SPEAKERS.into_iter().find(|(name, _)| *name == stored).unwrap();
        Speaker { stored, shown }
    }
}

/// Where something stands in a payload.
#[derive(Clone, Copy, Debug)]
struct At {
    by: Speaker,
    /// Whether it is in what a tool says.
    is_answer: bool,
    /// Whether it is in a block that nobody knows, or in data, of which a text may be all that is sent.
    is_unknown: bool,
    /// Whether it is an item of a list.
    is_listed: bool,
    depth: u32,
}

impl At {
    fn by(self, stored: &'static str) -> Self {
        let by = Speaker::new(stored);
        At { by, is_answer: self.is_answer || by.shown == "tool", ..self }
    }

    /// Of what has a type of the assistant's.
    fn by_assistant(self, kind: &'static str) -> Self {
        if self.is_answer { self } else { self.by(kind) }
    }

    /// In the result of a call, which is the tool's.
    fn in_result(self, kind: &'static str) -> Self {
        At { by: Speaker { stored: kind, shown: "tool" }, is_answer: true, ..self }
    }
}

#[derive(Clone, Debug)]
struct Word {
    text: String,
    at: At,
    /// Whether a prompt must have it.
    is_said: bool,
}

#[derive(Clone, Debug)]
struct Payload {
    role: Role,
    json: Value,
    words: Vec<Word>,
}

/// Makes a payload of choices, of which there are none left at some time.
struct Maker {
    choices: std::vec::IntoIter<u8>,
    words: Vec<Word>,
    ids: u32,
}

impl Maker {
    /// Of two calls with one id in a message only one is sent.
    fn id(&mut self) -> String {
        self.ids += 1;
        format!("i{}", self.ids)
    }

    fn pick(&mut self, of: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(choice) % of)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.pick(of.len())]
    }

    fn speaker(&mut self) -> &'static str {
        self.one(&SPEAKERS[..NAMES]).0
    }

    fn add(&mut self, at: At, is_said: bool) -> String {
        let text = format!("w{}x", self.words.len());
        self.words.push(Word { text: text.clone(), at, is_said: is_said && !at.is_unknown });
        text
    }

    fn word(&mut self, at: At) -> Value {
        self.add(at, true).into()
    }

    /// Under one of the keys that name a speaker, as a text or an object.
    fn name(&mut self, object: &mut Value, stored: &'static str) {
        let keys = ["sender", "author", "from", "role"];
        let named = [json!(stored), json!({ "name": stored }), json!({ "role": stored })];
        let key = self.one(&keys);
        let form = self.pick(named.len());
        object[key] = named[form].clone();
    }

    fn content(&mut self, at: At) -> Value {
        match self.pick(3) {
            0 => self.word(at),
            1 => self.list(at),
            _ => self.item(At { is_listed: false, ..at }),
        }
    }

    fn list(&mut self, at: At) -> Value {
        let at = At { is_listed: true, ..at };
        let length = 1 + self.pick(3);
        let item = |_| match self.pick(4) {
            0 => self.word(at),
            _ => self.item(at),
        };
        (0..length).map(item).collect()
    }

    fn objects(&mut self, at: At) -> Value {
        let at = At { is_listed: true, ..at };
        let length = 1 + self.pick(3);
        (0..length).map(|_| self.item(at)).collect()
    }

    /// A block, an item or a message.
    fn item(&mut self, at: At) -> Value {
        let Some(depth) = at.depth.checked_sub(1) else {
            return json!({ "type": "text", "text": self.word(at) });
        };
        let at = At { depth, ..at };
        match self.pick(15) {
            0 => json!({ "type": "text", "text": self.word(at) }),
            1 => json!({ "text": self.word(at) }),
            2 => {
                let stored = self.speaker();
                let mut block = json!({ "text": self.word(at.by(stored)) });
                match self.pick(3) {
                    0 => {}
                    1 => block["type"] = "text".into(),
                    _ => block["type"] = "input_text".into(),
                }
                self.name(&mut block, stored);
                block
            }
            3 => self.of_type(at),
            4 | 5 => self.message(at),
            6 => self.named_message(at),
            7 => self.call(at),
            8 | 9 => self.result(at),
            10 => self.file(at),
            11 => self.unknown(at),
            12 => {
                let mut block = json!({ "text": self.word(at.by("7")), "author": { "id": "7" } });
                if self.pick(2) > 0 {
                    block["type"] = "text".into();
                }
                block
            }
            13 => json!({ "type": "text", "text": { "value": self.word(at) } }),
            // A thought of the assistant's is sent where its provider takes it.
            _ => {
                json!({ "type": "thinking", "thinking": self.add(at, false), "signature": "c2ln" })
            }
        }
    }

    /// A block whose type says who speaks.
    fn of_type(&mut self, at: At) -> Value {
        match self.pick(6) {
            0 => {
                json!({ "type": "output_text", "text": self.content(at.by_assistant("output_text")) })
            }
            1 => json!({ "type": "refusal", "refusal": self.content(at.by_assistant("refusal")) }),
            2 => {
                json!({ "part_kind": "user-prompt", "content": self.content(at.by("user-prompt")) })
            }
            3 => {
                json!({ "type": "system-prompt", "content": self.content(at.by("system-prompt")) })
            }
            4 => {
                json!({ "part_kind": "retry-prompt", "content": self.content(at.by("retry-prompt")) })
            }
            _ => json!({ "part_kind": "text", "content": self.content(at) }),
        }
    }

    /// A message that says its role.
    fn message(&mut self, at: At) -> Value {
        let role = self.speaker();
        let at = at.by(role);
        match self.pick(16) {
            0 => json!({ "role": role, "content": self.content(at) }),
            1 => json!({ "role": role, "parts": self.list(at) }),
            2 => json!({ "role": role, "blocks": self.list(at) }),
            3 => json!({ "role": role, "text": self.word(at) }),
            4 => json!({ "role": role, "output": self.list(at) }),
            5 => json!({ "type": "message", "role": role, "content": self.list(at) }),
            6 => {
                json!({ "role": role, "content": self.word(at), "refusal": self.word(at.by_assistant("refusal")) })
            }
            7 => {
                json!({ "role": role, "content": self.word(at), "attachments": [{ "name": self.word(at) }] })
            }
            8 => {
                let arguments = json!({ "q": self.word(at) }).to_string();
                let id = self.id();
                json!({ "role": role, "content": self.content(at), "tool_calls": [
                    { "id": id, "type": "function",
                      "function": { "name": "f", "arguments": arguments } }] })
            }
            9 => json!({ "role": role, "type": "text", "text": self.word(at) }),
            10 => {
                let id = self.id();
                json!({ "role": role, "content": self.content(at), "toolInvocations": [
                    { "state": "result", "toolCallId": id, "toolName": "f", "args": {},
                      "result": self.answer(at.in_result("toolInvocations")) }] })
            }
            11 => json!({ "role": role, "content": self.word(at),
                          "error": self.answer(At { is_unknown: true, ..at.in_result("error") }) }),
            12 => json!({ "role": role, "content": self.word(at),
                          "merged": { "content": self.word(At { is_unknown: true, ..at }) } }),
            13 => {
                json!({ "role": role, "content": null, "audio": { "transcript": self.word(at) } })
            }
            14 => json!({ "role": role, "parts": self.list(at), "content": self.add(at, false) }),
            _ => json!({ "role": role, "content": self.content(at), "output": self.list(at) }),
        }
    }

    /// A message whose speaker stands elsewhere.
    fn named_message(&mut self, at: At) -> Value {
        let stored = self.speaker();
        let by = at.by(stored);
        match self.pick(6) {
            0 => {
                let kind = self.one(&LANGCHAIN);
                json!({ "type": kind, "data": { "content": self.content(at.by(kind)) } })
            }
            1 => {
                let mut data = json!({ "content": self.content(by) });
                self.name(&mut data, stored);
                json!({ "type": "chat", "data": data })
            }
            2 => {
                let class = self.one(&["HumanMessage", "SystemMessage"]);
                json!({ "lc": 1, "type": "constructor",
                        "id": ["langchain", "schema", "messages", class],
                        "kwargs": { "content": self.content(at.by(class)) } })
            }
            3 => match self.pick(2) {
                0 => json!({ "kind": "request", "parts": self.objects(at.by("request")) }),
                _ => json!({ "kind": "response", "parts": self.objects(at.by("response")) }),
            },
            4 => {
                // An event of Google ADK's.
                let role = self.one(&["model", "user"]);
                json!({ "author": stored, "content": { "role": role, "parts": self.objects(by) } })
            }
            _ => {
                let mut message = match self.pick(2) {
                    0 => json!({ "parts": self.objects(by) }),
                    _ => json!({ "type": "message", "content": self.content(by) }),
                };
                self.name(&mut message, stored);
                message
            }
        }
    }

    fn call(&mut self, at: At) -> Value {
        let input = json!({ "q": self.add(at, !at.is_answer) });
        let arguments = input.to_string();
        // Of a call that is a result only its own result may be sent.
        let is_unknown = at.is_unknown || at.is_answer && !at.is_listed;
        let answered = |kind| At { is_unknown, ..at.in_result(kind) };
        match self.pick(7) {
            0 => json!({ "type": "tool_use", "id": "c", "name": "f", "input": input }),
            1 => {
                json!({ "type": "function_call", "call_id": "d", "name": "f", "arguments": arguments })
            }
            2 => json!({ "functionCall": { "name": "g", "args": input } }),
            3 => {
                json!({ "type": "tool-f", "toolCallId": "e", "state": "output-available", "input": input,
                         "output": self.answer(answered("tool-f")) })
            }
            4 => {
                json!({ "type": "tool_call", "tool_call": { "id": "k", "name": "f", "args": arguments,
                         "output": self.answer(answered("tool_call")) } })
            }
            5 => json!({ "executableCode": { "language": "PYTHON", "code": arguments } }),
            _ => json!({ "type": "mcp_call", "id": "m", "name": "f", "arguments": arguments,
                         "output": self.answer(answered("mcp_call")) }),
        }
    }

    fn result(&mut self, at: At) -> Value {
        match self.pick(12) {
            0 => json!({ "type": "tool_result", "tool_use_id": "c",
                         "content": self.answer(at.in_result("tool_result")) }),
            1 => json!({ "type": "function_call_output", "call_id": "d",
                         "output": self.answer(at.in_result("function_call_output")) }),
            2 => json!({ "functionResponse": { "name": "g", "response": {
                         "result": self.answer(At { is_unknown: true, ..at.in_result("functionResponse") }) } } }),
            3 => {
                json!({ "toolResult": { "toolUseId": "c", "content": self.list(at.in_result("toolResult")) } })
            }
            4 => json!({ "content": self.objects(at.in_result("isError")), "isError": false }),
            5 => json!({ "part_kind": "tool-return", "tool_name": "f", "tool_call_id": "e",
                         "content": self.answer(at.in_result("tool-return")) }),
            6 => {
                json!({ "tool_call_id": "t", "content": self.answer(at.in_result("tool_call_id")) })
            }
            7 => json!({ "role": "tool", "tool_call_id": "t",
                         "content": self.answer(at.in_result("tool")) }),
            8 => {
                json!({ "codeExecutionResult": { "output": self.word(at.in_result("codeExecutionResult")) } })
            }
            9 => json!({ "type": "tool-error", "toolCallId": "e",
                         "error": self.answer(at.in_result("tool-error")) }),
            10 => {
                let is_unknown = at.is_unknown || at.is_answer;
                let at = at.in_result("tool_result");
                json!({ "type": "tool_result", "tool_use_id": "c", "content": self.answer(at),
                        "error": self.answer(At { is_unknown, ..at }) })
            }
            _ => json!({ "role": "user", "tool_call_id": "t",
                         "content": self.word(at.in_result("tool_call_id")) }),
        }
    }

    /// What a tool returns.
    fn answer(&mut self, at: At) -> Value {
        let Some(depth) = at.depth.checked_sub(1) else { return self.word(at) };
        let at = At { depth, ..at };
        let kind = self.pick(11);
        let at = At { is_unknown: at.is_unknown || kind > 4, ..at };
        match kind {
            0 => self.word(at),
            1 | 2 => self.list(at),
            3 | 4 => self.item(At { is_listed: false, ..at }),
            5 => json!({ "output": self.answer(at) }),
            6 => json!({ "result": self.answer(at) }),
            7 => json!({ "type": "content", "value": self.list(at) }),
            8 => json!({ "type": "json", "value": self.answer(at) }),
            9 => {
                let name = self.speaker();
                let mut data = json!({ "n": self.answer(at.by(name)) });
                self.name(&mut data, name);
                data
            }
            _ => json!({ "n": 5, "rows": [self.answer(at), { "text": self.word(at), "left": 1 }] }),
        }
    }

    fn file(&mut self, at: At) -> Value {
        match self.pick(4) {
            // Who has written it is not who sends it.
            0 => json!({ "type": "document", "title": self.word(at), "author": "Bob" }),
            1 => {
                json!({ "type": "file", "file": { "filename": self.word(at), "file_data": "aGk=" } })
            }
            2 => json!({ "type": "image_url", "image_url": { "url": self.add(at, false) } }),
            _ => {
                json!({ "inlineData": { "mimeType": "application/pdf", "displayName": self.word(at), "data": "" } })
            }
        }
    }

    fn unknown(&mut self, at: At) -> Value {
        let at = At { is_unknown: true, ..at };
        match self.pick(10) {
            0 => json!({ "type": "page", "text": self.word(at.by("nobody")) }),
            1 => json!({ "type": "web_fetch_result", "content": self.content(at) }),
            2 => json!({ "type": "search_result", "title": "x", "content": self.objects(at) }),
            3 => json!({ "type": "page", "output": self.content(at) }),
            4 => json!({ "type": "resource", "resource": { "text": self.word(at.by("nobody")) } }),
            5 => json!({ "surprise": { "n": self.content(at) } }),
            6 if at.is_listed => json!({ "url": "https://e", "text": self.word(at.by("nobody")) }),
            7 => {
                let stored = self.speaker();
                json!({ "author": stored, "content": { "parts": self.objects(at.by(stored)) } })
            }
            8 => {
                let stored = self.speaker();
                json!({ "sender": stored, "content": self.content(at.by(stored)) })
            }
            _ => {
                let stored = self.speaker();
                let mut block = json!({ "type": "page", "text": self.word(at.by(stored)) });
                self.name(&mut block, stored);
                block
            }
        }
    }

    /// A whole payload. Whoever its own object names, the recorded role decides, but of a tool.
    fn payload(&mut self, at: At) -> Value {
        match self.pick(4) {
            // A list is of a form that is known where an object in it is.
            0 | 1 => {
                let mut list = self.list(at);
                list.as_array_mut().unwrap().push(json!({ "type": "text", "text": self.word(at) }));
                list
            }
            2 => self.item_without_speaker(at),
            _ => {
                let role = self.speaker();
                let by = if Speaker::new(role).shown == "tool" { at.by(role) } else { at };
                match self.pick(3) {
                    0 => json!({ "role": role, "content": self.content(by) }),
                    1 => json!({ "role": role, "parts": self.list(by) }),
                    _ => json!({ "role": role, "content": self.word(by),
                                 "attachments": [{ "name": self.word(by) }] }),
                }
            }
        }
    }

    fn item_without_speaker(&mut self, at: At) -> Value {
        match self.pick(3) {
            0 => self.of_type(at),
            1 => self.call(at),
            _ => json!({ "parts": self.objects(at) }),
        }
    }
}

fn payloads() -> impl Strategy<Value = Payload> {
    let roles = vec![Role::Assistant, Role::User, Role::Tool, Role::System];
    (select(roles), prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(role, choices)| {
        let mut maker = Maker { choices: choices.into_iter(), words: Vec::new(), ids: 0 };
        let by = Speaker::new(role.name());
        let is_answer = role == Role::Tool;
        let json =
            maker.payload(At { by, is_answer, is_unknown: false, is_listed: true, depth: 5 });
        Payload { role, json, words: maker.words }
    })
}

/// Where a word stands in a prompt.
#[derive(Debug)]
struct Place<'p> {
    /// Whose words these are.
    by: &'p str,
    /// Whether a tool has answered it.
    is_answer: bool,
    /// Whether it is in a block that nobody knows.
    is_unknown: bool,
    /// What is quoted as data, with the word.
    json: Option<&'p str>,
}

/// The texts of a prompt with the role that they are sent as.
fn texts<'p>(sent: &'p Value, role: &'p str, found: &mut Vec<(&'p str, &'p str)>) {
    match sent {
        Value::String(text) => found.push((role, text)),
        Value::Array(items) => items.iter().for_each(|item| texts(item, role, found)),
        Value::Object(entries) => {
            let role = match (sent["role"].as_str(), sent["type"].as_str()) {
                (_, Some("tool_result" | "function_call_output")) => "tool",
                (_, Some("function_call")) => "assistant",
                (named, _) => named.unwrap_or(role),
            };
            for (key, value) in entries {
                texts(value, if key == "system" { "system" } else { role }, found);
            }
        }
        _ => {}
    }
}

/// A text in which the speaker of each recalled turn has a line of its own.
fn with_lines_of_recalled(text: &str) -> String {
    let (mut lines, mut is_recalled) = (String::new(), false);
    for line in text.lines() {
        match line {
            "[Earlier messages that may help, with day and speaker]" => is_recalled = true,
            "[End of earlier messages]" => is_recalled = false,
            _ => match line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
                Some((role, text)) if is_recalled => {
                    writeln!(lines, "[{role}]\n  {text}").unwrap();
                    continue;
                }
                _ => {}
            },
        }
        writeln!(lines, "{line}").unwrap();
    }
    lines
}

fn place<'p>(role: &'p str, text: &'p str, word: &str) -> Option<Place<'p>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut at = lines.iter().position(|line| line.contains(word))?;
    let said = lines[at].trim();
    let data = said.strip_prefix("[error] ").unwrap_or(said);
    let json = serde_json::from_str::<Value>(data).is_ok().then_some(data);
    let (mut by, mut is_answer, mut is_unknown) = (None, false, false);
    while let Some(before) = lines[..at].iter().rposition(|line| depth(line) < depth(lines[at])) {
        at = before;
        let mark = lines[at].trim().trim_start_matches("[error] ");
        let mark = mark.strip_prefix('[').and_then(|mark| mark.strip_suffix(']'));
        let mark = mark.map(|mark| mark.strip_prefix("said by ").unwrap_or(mark));
        match mark {
            Some("Result of a call that is not shown") => {
                is_answer = true;
                by = by.or(Some("tool"));
            }
            Some(mark) if mark.ends_with("returned") => {
                is_answer = true;
                by = by.or(Some("tool"));
            }
            Some(mark) if mark.starts_with("Content of type ") => is_unknown = true,
            Some(mark) if !mark.contains([' ', '"']) => by = by.or(Some(mark)),
            _ => {}
        }
        is_answer |= mark == Some("tool");
    }
    is_answer |= role == "tool";
    Some(Place { by: by.unwrap_or(role), is_answer, is_unknown, json })
}

/// What is wrong with how a word is sent.
fn wrong(word: &Word, place: &Place<'_>) -> Option<&'static str> {
    let Word { at, .. } = word;
    let names = |json: &str| {
        [at.by.stored, at.by.shown].iter().any(|name| json.contains(&format!("\"{name}\"")))
    };
    if place.is_unknown || place.json.is_some_and(|json| at.by.shown == "nobody" || names(json)) {
        return None;
    }
    match (at.is_answer, place.is_answer) {
        (true, false) => Some("it is no tool's"),
        (false, true) => Some("it is a tool's"),
        _ if place.by == at.by.shown => None,
        // A tool may say what it likes.
        (true, true) if at.by.shown == "nobody" && place.by == "tool" => None,
        _ => Some("it is another's"),
    }
}

/// The first word that is sent as another's, or is not sent.
fn first_wrong(payload: &Payload) -> Result<(), String> {
    let stored = payload.json.to_string();
    for (part, content) in
        [(Part::Anchor, None), (Part::Recalled, None), (Part::Recalled, Some("COLUMN"))]
    {
        let turn = |part, role, content, payload| PromptMessage {
            part,
            role,
            created_at: None,
            content,
            payload,
        };
        let turns = [
            turn(part, payload.role, content, Some(&*stored)),
            turn(Part::Anchor, Role::User, Some("And?"), None),
        ];
        for format in ProviderFormat::ALL {
            let options = RenderOptions { open_calls: OpenCalls::Note };
            let sent = render(&turns, &line(&turns), *format, options, &|| {}).unwrap();
            let sent: Value = serde_json::from_str(&sent).unwrap();
            let of = format!("{:?} {part:?} {format:?}", payload.role);
            check_prompt(format.name(), &sent).map_err(|error| format!("{of}: {error}: {sent}"))?;
            let mut found = Vec::new();
            texts(&sent, "", &mut found);
            let found: Vec<(&str, String)> = found
                .into_iter()
                .map(|(role, text)| (role, with_lines_of_recalled(text)))
                .collect();
            let is_column = found.iter().any(|(_, text)| text.contains("COLUMN"));
            for word in &payload.words {
                let mut places = found
                    .iter()
                    .filter_map(|(role, text)| place(role, text, &word.text))
                    .peekable();
                if places.peek().is_none() && word.is_said && !is_column {
                    return Err(format!("{of}: {word:?} is not sent: {sent}"));
                }
                for place in places {
                    if let Some(wrong) = wrong(word, &place) {
                        return Err(format!("{of}: {wrong}: {word:?} at {place:?}\n{sent}"));
                    }
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn each_word_stands_under_the_mark_of_its_innermost_speaker(payload in payloads()) {
        let checked = first_wrong(&payload);
        prop_assert!(checked.is_ok(), "{}\n{}", payload.json, checked.unwrap_err());
    }
}
