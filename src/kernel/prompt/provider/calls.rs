//! Calls and results, as applications store them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::graph::turn::Role;
use crate::json::{JsonValue, compact_text};
use crate::messages::message::{as_object, as_text};
use crate::prompt::provider::fields::{Fields, is_error, is_filled};
use crate::prompt::provider::forms::{Reader, type_of};
use crate::prompt::provider::other::Other;
use crate::prompt::provider::payload::{
    Arguments, Block, Blocks, Call, CallId, CallResult, MAX_TEXT_VALUES,
};
use crate::prompt::provider::speakers::{Said, Speaker};

/// What a call stands in that has a type of its own.
pub(super) const INNER: [&str; 4] = ["toolInvocation", "tool_call", "function", "custom"];
pub(super) const IDS: [&str; 6] =
    ["call_id", "callId", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id"];
pub(super) const NAMES: [&str; 3] = ["name", "toolName", "tool_name"];
pub(super) const ARGUMENTS: [&str; 11] = [
    "arguments",
    "input",
    "args",
    "parameters",
    "tool_kwargs",
    "action",
    "actions",
    "operation",
    "code",
    "queries",
    // Of the AI SDK, what is no JSON.
    "rawInput",
];
pub(super) const RESULTS: [&str; 6] =
    ["output", "result", "response", "content", "outputs", "results"];
/// Those of a result that stands with its call.
const RESULTS_OF_CALLS: [&str; 5] = ["output", "result", "response", "outputs", "results"];
pub(super) const ERRORS: [&str; 2] = ["errorText", "error"];
/// The tool of OpenAI's that runs code.
const CODE_INTERPRETER: &str = "code_interpreter";
/// What Open WebUI calls it.
pub(super) const OPEN_WEBUI_INTERPRETER: &str = "open_webui:code_interpreter";
/// OpenAI's call that runs code which calls tools.
pub(super) const PROGRAM: &str = "program";
/// States of a call that has ended: well, by an error, or as nobody allowed it.
const ENDED: [&str; 3] = ["output-available", "output-error", "output-denied"];
/// Outcomes of Gemini's code and of Pydantic AI's tools.
const FAILED: [&str; 4] = ["OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED", "failed", "denied"];

impl Reader<'_> {
    /// A call, and its result where it has one. Without one, its name stands for an id that it has not. What has no id,
    /// no name and no arguments is not a call.
    pub(super) fn call<'a>(&self, outer: Fields<'a>) -> Blocks<'a> {
        let middle = outer.first_object(&INNER).unwrap_or(outer);
        // What LibreChat stores of OpenAI's assistants.
        let interpreter = middle.object(CODE_INTERPRETER);
        let inner = middle.object("function").or(interpreter).unwrap_or(middle);
        let objects = [inner, middle, outer];
        let first = |keys: &[&str]| objects.iter().find_map(|object| object.first_text(keys));
        let id = |keys: &[&str]| objects.iter().find_map(|object| object.id(keys));
        // Those of any tool say no name.
        let of_type = type_of(outer.0)
            .and_then(|kind| {
                let named = kind.strip_prefix("tool-").or_else(|| kind.strip_suffix("_call"));
                named.or((kind == PROGRAM).then_some(kind))
            })
            .filter(|kind| {
                !["call", "invocation", "tool", "function", "custom_tool"].contains(kind)
            });
        let name = first(&NAMES).or_else(|| outer.first_text(&INNER)).or(of_type);
        let is_code = interpreter.is_some() || type_of(outer.0) == Some(OPEN_WEBUI_INTERPRETER);
        let name = name.or(Some(CODE_INTERPRETER).filter(|_| is_code));
        let arguments = inner.first(&ARGUMENTS).or_else(|| outer.first(&ARGUMENTS[..3]));
        let id = id(&IDS).or_else(|| id(&["id", "itemId"]));
        let is_call = id.is_some() || name.is_some() || arguments.is_some();
        let has_result = objects.iter().any(|object| {
            object.0.first(&RESULTS_OF_CALLS).is_some()
                || object.first(&ERRORS).is_some_and(is_error)
                // Of the AI SDK, which leaves a result out where the tool has returned nothing.
                || object.text("state").is_some_and(|state| ENDED.contains(&state))
                || denied(*object).is_some()
        });
        let mut result = has_result.then(|| self.result(&objects, &RESULTS_OF_CALLS, id.clone()));
        let id = id.or_else(|| match &result {
            // Any other of this name gives a blank one its text.
            Some(Block::Result(result)) if !result.is_blank => Some(CallId::of_stored(outer)),
            _ => CallId::name(name),
        });
        if let Some(Block::Result(result)) = &mut result {
            result.call.clone_from(&id);
        }
        let call = Block::Call(Call {
            id,
            name: name.unwrap_or_default().into(),
            arguments: Arguments::of(arguments),
        });
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
                Some(call) => self.call(call),
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
        // LangChain puts the error of a provider's tool into the extras.
        let extras = objects.iter().filter_map(|object| object.object("extras"));
        let errors = objects.iter().copied().chain(extras);
        let errors = errors.flat_map(|object| ERRORS.map(|key| object.get(key)));
        let error = errors.flatten().find(|error| is_error(error));
        let error = error.or_else(|| objects.iter().find_map(|object| denied(*object)));
        let failed = error.is_some() && output.is_none()
            || objects.iter().any(|object| object.is_true(&["is_error", "isError", "error"]))
            // Of the Model Context Protocol, whose answer is the output.
            || output.and_then(Fields::of).is_some_and(|output| {
                let answer = output.object("value").unwrap_or(output);
                answer.0.get("content").is_some() && answer.is_true(&["isError", "is_error"])
            })
            || is("status", &["error", "failed"])
            || is("state", &ENDED[1..])
            || is("outcome", &FAILED)
            || kind.is_some_and(|kind| {
                kind.starts_with("error")
                    || kind.ends_with("tool_result_error")
                    || kind == "execution-denied"
            });
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

    /// Adds calls to a message, which may have them already: in its content, or in the keys of another form.
    pub(super) fn add_calls<'a>(
        &self,
        said: &mut Vec<Said<'a>>,
        calls: Blocks<'a>,
        by: Speaker<'a>,
    ) {
        if calls.is_empty() {
            return;
        }
        let mut places: HashMap<CallId<'a>, VecDeque<usize>> = HashMap::new();
        let mut answered: HashSet<CallId<'a>> = HashSet::new();
        for (place, said) in said.iter().enumerate() {
            match &said.block {
                Block::Call(Call { id: Some(id @ CallId::Id(text)), .. })
                    if said.by.name == by.name =>
                {
                    self.looks_at(text);
                    places.entry(id.clone()).or_default().push_back(place);
                }
                Block::Result(CallResult { call: Some(id @ CallId::Id(text)), .. })
                    if [by.name, Role::Tool.name()].contains(&said.by.name) =>
                {
                    self.looks_at(text);
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
            let arguments = call.arguments.object(&mut { MAX_TEXT_VALUES }, self.check_interrupts);
            compact_text(&arguments, self.check_interrupts)
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

/// Why a call of the AI SDK was not allowed.
fn denied<'a>(call: Fields<'a>) -> Option<&'a JsonValue<'a>> {
    let approval = call.object("approval")?;
    let is_denied = approval.0.get("approved") == Some(&JsonValue::Bool(false));
    approval.get("reason").filter(|reason| is_denied && as_text(reason).is_some())
}
