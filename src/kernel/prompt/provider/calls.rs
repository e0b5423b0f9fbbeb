//! Calls and results, as applications store them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::graph::turn::Role;
use crate::json::{JsonValue, compact_text};
use crate::messages::message::{Entries, as_object, as_text};
use crate::prompt::provider::data::{FILES, is_block_of_tool, is_file, is_mcp_alone, says};
use crate::prompt::provider::fields::{Fields, is_error, is_filled};
use crate::prompt::provider::forms::{Reader, has_known, type_of};
use crate::prompt::provider::other::Other;
use crate::prompt::provider::payload::{Arguments, Block, Blocks, Call, CallId, CallResult};
use crate::prompt::provider::speakers::{Said, Speaker, is_spoken};

/// What a call stands in that has a type of its own.
pub(super) const INNER: [&str; 4] = ["toolInvocation", "tool_call", "function", "custom"];
pub(super) const IDS: [&str; 5] =
    ["call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id"];
pub(super) const NAMES: [&str; 3] = ["name", "toolName", "tool_name"];
pub(super) const ARGUMENTS: [&str; 9] = [
    "arguments",
    "input",
    "args",
    "parameters",
    "tool_kwargs",
    "action",
    "operation",
    "code",
    "queries",
];
pub(super) const RESULTS: [&str; 6] =
    ["output", "result", "response", "content", "outputs", "results"];
/// Those of a result that stands with its call.
const RESULTS_OF_CALLS: [&str; 5] = ["output", "result", "response", "outputs", "results"];
pub(super) const ERRORS: [&str; 2] = ["errorText", "error"];
/// The tool of OpenAI's that runs code.
const CODE_INTERPRETER: &str = "code_interpreter";
/// States of a call that has ended: well, by an error, or as nobody allowed it.
const ENDED: [&str; 3] = ["output-available", "output-error", "output-denied"];
/// What is longer is taken for the bytes of a file, not for where they are.
const MAX_ADDRESS_BYTES: usize = 2048;
/// How deep results may stand in results: each level copies and may indent what is in it.
const MAX_NESTED_RESULTS: u32 = 4;

impl Reader<'_> {
    /// A call, and its result where it has one. By its name where that may stand for an id. What has no id, no name and
    /// no arguments is not a call.
    pub(super) fn call<'a>(&self, outer: Fields<'a>, by_name: bool) -> Blocks<'a> {
        let middle = outer.first_object(&INNER).unwrap_or(outer);
        // What LibreChat stores of OpenAI's assistants.
        let interpreter = middle.object(CODE_INTERPRETER);
        let inner = middle.object("function").or(interpreter).unwrap_or(middle);
        let objects = [inner, middle, outer];
        let first = |keys: &[&str]| objects.iter().find_map(|object| object.first_text(keys));
        let id = |keys: &[&str]| objects.iter().find_map(|object| object.id(keys));
        // Those of any tool say no name.
        let of_type = type_of(outer.0)
            .and_then(|kind| kind.strip_prefix("tool-").or_else(|| kind.strip_suffix("_call")))
            .filter(|kind| {
                !["call", "invocation", "tool", "function", "custom_tool"].contains(kind)
            });
        let name = first(&NAMES).or_else(|| outer.first_text(&INNER)).or(of_type);
        let name = name.or(interpreter.map(|_| CODE_INTERPRETER));
        let arguments = inner.first(&ARGUMENTS).or_else(|| outer.first(&ARGUMENTS[..3]));
        let id = id(&IDS).or_else(|| id(&["id"]));
        let is_call = id.is_some() || name.is_some() || arguments.is_some();
        let id = id.or_else(|| CallId::name(name.filter(|_| by_name)));
        let call = Block::Call(Call {
            id: id.clone(),
            name: name.unwrap_or_default().into(),
            arguments: Arguments::of(arguments),
        });
        let has_result = objects.iter().any(|object| {
            object.0.first(&RESULTS_OF_CALLS).is_some()
                || object.first(&ERRORS).is_some_and(is_error)
                // Of the AI SDK, which leaves a result out where the tool has returned nothing.
                || object.text("state").is_some_and(|state| ENDED.contains(&state))
                || denied(*object).is_some()
        });
        let result = has_result.then(|| self.result(&objects, &RESULTS_OF_CALLS, id));
        is_call.then_some(call).into_iter().chain(result).collect()
    }

    /// The calls of a list, or the one that stands in its place.
    pub(super) fn calls<'a>(&self, list: Option<&'a JsonValue<'a>>) -> Blocks<'a> {
        let items = match list {
            Some(JsonValue::Array(items)) => items.as_slice(),
            list => list.map(std::slice::from_ref).unwrap_or_default(),
        };
        let items = items.iter().filter(|item| is_filled(item));
        items
            .flat_map(|json| match Fields::of(json) {
                Some(call) => self.call(call, false),
                // A list that is stored as a text.
                None if as_text(json).is_some_and(|text| text.trim() == "[]") => Vec::new(),
                None => vec![Block::Other(Other { json })],
            })
            .collect()
    }

    /// The result of a call: the value of the first of these keys, and what went wrong. It is an error where it says
    /// so, or where it is nothing else.
    pub(super) fn result<'a>(
        &self,
        objects: &[Fields<'a>],
        keys: &[&str],
        call: Option<CallId<'a>>,
    ) -> Block<'a> {
        let find = |keys: &[&str]| objects.iter().find_map(|object| object.first(keys));
        let is = |key: &str, values: &[&str]| {
            objects.iter().filter_map(|object| object.text(key)).any(|text| values.contains(&text))
        };
        let output = find(keys);
        let kind = output.and_then(as_object).and_then(|output| output.text("type"));
        let errors = objects.iter().flat_map(|object| ERRORS.map(|key| object.get(key)));
        let error = errors.flatten().find(|error| is_error(error));
        let error = error.or_else(|| objects.iter().find_map(|object| denied(*object)));
        let failed = error.is_some() && output.is_none()
            || objects.iter().any(|object| object.is_true(&["is_error", "isError", "error"]))
            || is("status", &["error", "failed"])
            || is("state", &ENDED[1..])
            || kind.is_some_and(|kind| kind.starts_with("error") || kind == "execution-denied");
        let is_blank = output.is_none() && error.is_none() && !is("state", &ENDED);
        // A result may be `false`.
        let stored = || objects.iter().find_map(|object| object.0.first(keys));
        let output = output.or_else(|| stored().filter(|_| error.is_none()));
        let output = output.map_or(Cow::Borrowed(""), |output| self.result_text(output));
        let error = error.map_or(Cow::Borrowed(""), |error| self.result_text(error));
        let text = match (output.trim(), error.trim()) {
            (_, "") => output,
            ("", _) => error,
            (output_text, error_text) if output_text == error_text => output,
            _ => format!("{output}\n[error] {error}").into(),
        };
        Block::Result(CallResult { call, by: None, quoted: None, text, is_error: failed, is_blank })
    }

    /// The text of a result: that of its blocks, each of which is named where it has none, or its JSON.
    pub(super) fn result_text<'a>(&self, result: &'a JsonValue<'a>) -> Cow<'a, str> {
        let may_nest = self.results.get() < MAX_NESTED_RESULTS;
        match result {
            JsonValue::Null => "".into(),
            JsonValue::String(text) => Cow::Borrowed(text.as_ref()),
            JsonValue::Array(items) if may_nest && has_known(items, true) => {
                self.result_of_items(items)
            }
            json if may_nest && (is_spoken(json) || is_block(json)) => {
                let text = self.result_of_items(std::slice::from_ref(json));
                if text.trim().is_empty() { self.json_text(json).into() } else { text }
            }
            JsonValue::Object(entries) => {
                let object = Entries(entries);
                let inner = match (object.text("type"), object.get("value"), object.get("content"))
                {
                    // Of the AI SDK.
                    (
                        Some("text" | "json" | "error-text" | "error-json" | "content"),
                        Some(value),
                        _,
                    ) => Some(value),
                    (Some("execution-denied"), ..) => object.get("reason"),
                    // Of the Model Context Protocol.
                    (None, _, Some(content @ JsonValue::Array(items)))
                        if has_known(items, true) && is_mcp_alone(Fields(object)) =>
                    {
                        Some(content)
                    }
                    _ => None,
                };
                match inner.map(|inner| self.result_text(inner)) {
                    Some(text) if !text.trim().is_empty() || object.get("value").is_some() => text,
                    _ => self.json_text(result).into(),
                }
            }
            json => self.json_text(json).into(),
        }
    }

    /// The texts of items of a result, in which a tool speaks where nobody is named.
    fn result_of_items<'a>(&self, items: &'a [JsonValue<'a>]) -> Cow<'a, str> {
        let tool = Speaker::of(Role::Tool);
        self.results.set(self.results.get() + 1);
        let said = self.list(items, tool);
        self.results.set(self.results.get() - 1);
        let texts = said.into_iter().map(|Said { by, block }| {
            let block = match block {
                Block::Other(other) if !is_sent_thought(other) => {
                    Block::Text(self.json_text(other.json).into())
                }
                block => block,
            };
            match self.marked(by.says(block), tool) {
                Block::Text(text) | Block::Result(CallResult { text, .. }) => text,
                Block::Marked(text, _) => text.into(),
                Block::Call(call) => call.described(self.check_interrupts).into(),
                Block::Other(other) => other.described(self.check_interrupts).into(),
            }
        });
        let texts: Vec<Cow<'a, str>> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n").into()
    }

    /// What a result that is data says: its text where that is all of it, else its JSON.
    pub(super) fn json_text(&self, json: &JsonValue<'_>) -> String {
        if !is_filled(json) && *json != JsonValue::Bool(false) {
            return String::new();
        }
        // A text that an object has alone.
        let filled = as_object(json).map(|Entries(entries)| {
            entries.iter().filter(|(key, value)| says(key, value)).collect::<Vec<_>>()
        });
        match filled.as_deref() {
            Some([(key, JsonValue::String(text))])
                if key == "text" || RESULTS.contains(&key.as_ref()) =>
            {
                text.to_string()
            }
            _ => match with_names_of_files(json, false, self.check_interrupts) {
                JsonValue::String(text) => text.into_owned(),
                json => self.json(&json),
            },
        }
    }

    /// Adds calls to a message, which may have them already: in its content, or in the keys of another form.
    pub(super) fn add_calls<'a>(said: &mut Vec<Said<'a>>, calls: Blocks<'a>, by: Speaker<'a>) {
        if calls.is_empty() {
            return;
        }
        let mut places: HashMap<CallId<'a>, VecDeque<usize>> = HashMap::new();
        let mut answered: HashSet<CallId<'a>> = HashSet::new();
        for (place, said) in said.iter().enumerate() {
            match &said.block {
                Block::Call(Call { id: Some(id), .. }) if said.by.name == by.name => {
                    places.entry(id.clone()).or_default().push_back(place);
                }
                Block::Result(CallResult { call: Some(id), .. })
                    if [by.name, Role::Tool.name()].contains(&said.by.name) =>
                {
                    answered.insert(id.clone());
                }
                _ => {}
            }
        }
        for block in calls {
            let known = match &block {
                Block::Call(Call { id: Some(id), .. }) => {
                    places.get_mut(id).and_then(VecDeque::pop_front)
                }
                Block::Result(CallResult { call: Some(id), .. }) if answered.contains(id) => {
                    continue;
                }
                _ => None,
            };
            match (known.map(|place| &mut said[place].block), block) {
                (Some(Block::Call(known)), Block::Call(call)) => {
                    // What LangChain collects of a stream is whole there, and not in the content.
                    if !call.arguments.is_empty() {
                        known.arguments = call.arguments;
                    }
                    if known.name.is_empty() {
                        known.name = call.name;
                    }
                }
                (_, block) => said.push(by.says(block)),
            }
        }
    }

    /// Whether a message has a call of its speaker's of this name and with these arguments.
    pub(super) fn has_call(&self, said: &[Said<'_>], call: &Call<'_>, by: Speaker<'_>) -> bool {
        let json = |call: &Call<'_>| {
            compact_text(&call.arguments.object(self.check_interrupts), self.check_interrupts)
        };
        let sought = json(call);
        said.iter().any(|said| match &said.block {
            Block::Call(other) if said.by.name == by.name => {
                other.name == call.name && json(other) == sought
            }
            _ => false,
        })
    }
}

/// Whether a block that a tool returns is a thought, of which nothing is sent.
pub(super) fn is_sent_thought(other: Other<'_>) -> bool {
    other.is_thought() && Fields::of(other.json).is_some_and(is_block_of_tool)
}

/// Whether a result is a block, and not a value of the AI SDK's with a type.
fn is_block(json: &JsonValue<'_>) -> bool {
    let has_value = Fields::of(json).is_some_and(|object| object.get("value").is_some());
    !has_value && has_known(std::slice::from_ref(json), true)
}

/// Data in which each file is its name, with its text where it has that in place of bytes. Of what has more than a file
/// has, its bytes alone are left out.
fn with_names_of_files<'a>(
    json: &JsonValue<'a>,
    is_in_file: bool,
    check_interrupts: &dyn Fn(),
) -> JsonValue<'a> {
    let inner = |json, is_in_file| with_names_of_files(json, is_in_file, check_interrupts);
    match json {
        JsonValue::Object(entries) => {
            let is_file = Fields::of(json).is_some_and(is_file);
            if is_file && Fields::of(json).is_some_and(is_block_of_tool) {
                return JsonValue::String(Other { json }.described(check_interrupts).into());
            }
            let entries = entries.iter().map(|(key, value)| {
                let is_in_file = is_in_file || is_file && FILES.contains(&key.as_ref());
                (key.clone(), inner(value, is_in_file))
            });
            JsonValue::Object(entries.collect())
        }
        JsonValue::Array(items) => {
            JsonValue::Array(items.iter().map(|item| inner(item, is_in_file)).collect())
        }
        JsonValue::String(text) if is_in_file && text.len() > MAX_ADDRESS_BYTES => {
            JsonValue::String("[file]".into())
        }
        json => json.clone(),
    }
}

/// Why a call of the AI SDK was not allowed.
fn denied<'a>(call: Fields<'a>) -> Option<&'a JsonValue<'a>> {
    let approval = call.object("approval")?;
    let is_denied = approval.0.get("approved") == Some(&JsonValue::Bool(false));
    approval.get("reason").filter(|reason| is_denied && as_text(reason).is_some())
}
