//! Messages in the JSON of each provider.

use std::borrow::Cow;
use std::cell::Cell;

use crate::json::{JsonValue, compact_text};
use crate::prompt::provider::other::is_thought;
use crate::prompt::provider::payload::called;
use crate::prompt::provider::sequence::{Content, Sent, SentCall, SentResult, indented, joined};
use crate::prompt::provider::{MAX_PAYLOAD_VALUES, ProviderFormat};

pub(super) fn written(
    sent: Vec<Sent<'_>>,
    format: ProviderFormat,
    check_interrupts: &dyn Fn(),
) -> String {
    let form = Form { check_interrupts, values: Cell::new(MAX_PAYLOAD_VALUES) };
    let json = match format {
        ProviderFormat::OpenAi => object([("messages", form.chat_completions(sent))]),
        ProviderFormat::Responses => object([("input", form.responses(sent))]),
        ProviderFormat::Anthropic => form.anthropic(sent),
        ProviderFormat::Plain => object([("messages", form.plain(sent))]),
    };
    compact_text(&json, check_interrupts)
}

struct Form<'c> {
    check_interrupts: &'c dyn Fn(),
    /// How many more values the arguments that are stored as texts may have: they are held until all is written.
    values: Cell<usize>,
}

impl Form<'_> {
    fn chat_completions<'a>(&self, sent: Vec<Sent<'a>>) -> JsonValue<'a> {
        let mut messages = Vec::new();
        for message in sent {
            match message {
                Sent::System(text) => messages.push(message_of("system", string(text))),
                Sent::User(content) => {
                    messages.push(message_of("user", self.text_or_blocks(content, "text")));
                }
                Sent::Assistant(content) => messages.push(self.chat_assistant(content)),
                Sent::Results(results) => {
                    messages.extend(results.into_iter().map(|SentResult { id, text, .. }| {
                        object([
                            ("role", string("tool")),
                            ("tool_call_id", string(id)),
                            ("content", string(text)),
                        ])
                    }));
                }
            }
        }
        JsonValue::Array(messages)
    }

    fn responses<'a>(&self, sent: Vec<Sent<'a>>) -> JsonValue<'a> {
        let mut items = Vec::new();
        for message in sent {
            match message {
                Sent::System(text) => items.push(message_of("system", string(text))),
                Sent::User(content) => {
                    items.push(message_of("user", self.text_or_blocks(content, "input_text")));
                }
                // The results follow the calls.
                Sent::Assistant(content) => {
                    let is_call = |part: &Content<'_>| matches!(part, Content::Call(_));
                    let (calls, said): (Vec<_>, Vec<_>) = content.into_iter().partition(is_call);
                    let parts = said.into_iter().chain(calls);
                    items.extend(parts.map(|part| self.response_item(part)));
                }
                Sent::Results(results) => {
                    items.extend(results.into_iter().map(|SentResult { id, text, .. }| {
                        object([
                            ("type", string("function_call_output")),
                            ("call_id", string(id)),
                            ("output", string(text)),
                        ])
                    }));
                }
            }
        }
        JsonValue::Array(items)
    }

    fn chat_assistant<'a>(&self, content: Vec<Content<'a>>) -> JsonValue<'a> {
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        for part in content {
            match part {
                Content::Call(SentCall { id, name, arguments }) => {
                    let arguments = string(arguments.text(self.check_interrupts));
                    let function = object([("name", string(name)), ("arguments", arguments)]);
                    calls.push(object([
                        ("id", string(id)),
                        ("type", string("function")),
                        ("function", function),
                    ]));
                }
                part => texts.push(part),
            }
        }
        let mut entries = vec![("role", string("assistant"))];
        if !texts.is_empty() {
            entries.push(("content", string(joined(texts))));
        }
        if !calls.is_empty() {
            entries.push(("tool_calls", JsonValue::Array(calls)));
        }
        object(entries)
    }

    /// What the assistant says, or a call, as an item.
    fn response_item<'a>(&self, part: Content<'a>) -> JsonValue<'a> {
        match part {
            Content::Call(SentCall { id, name, arguments }) => object([
                ("type", string("function_call")),
                ("call_id", string(id)),
                ("name", string(name)),
                ("arguments", string(arguments.text(self.check_interrupts))),
            ]),
            part => message_of("assistant", string(joined(vec![part]))),
        }
    }

    /// The system's texts apart, the others alternating.
    fn anthropic<'a>(&self, sent: Vec<Sent<'a>>) -> JsonValue<'a> {
        let mut system: Vec<Cow<'a, str>> = Vec::new();
        let mut messages: Vec<(&'static str, Vec<JsonValue<'a>>)> = Vec::new();
        for message in sent {
            let (role, blocks) = match message {
                Sent::System(text) => {
                    system.push(text);
                    continue;
                }
                Sent::User(content) => ("user", self.blocks(content, "text")),
                Sent::Assistant(content) => ("assistant", self.blocks(content, "text")),
                Sent::Results(results) => ("user", results.into_iter().map(tool_result).collect()),
            };
            messages.push((role, blocks));
        }
        let mut messages = alternating(messages);
        for (_, blocks) in &mut messages {
            // A message must not end with a thought.
            while blocks.last().is_some_and(is_thought) {
                blocks.pop();
            }
        }
        messages.retain(|(_, blocks)| !blocks.is_empty());
        let mut messages = alternating(messages);
        // A prompt may end in what the model is to go on with, which must not end in white space.
        if let Some(("assistant", blocks)) = messages.last_mut()
            && let Some(JsonValue::Object(entries)) = blocks.last_mut()
            && let Some((_, JsonValue::String(text))) =
                entries.iter_mut().find(|(key, _)| key == "text")
        {
            *text = text.trim_end().to_owned().into();
        }
        let messages = messages.into_iter().map(|(role, blocks)| message_of(role, single(blocks)));
        let messages = JsonValue::Array(messages.collect());
        match system.is_empty() {
            true => object([("messages", messages)]),
            false => object([("system", string(system.join("\n\n"))), ("messages", messages)]),
        }
    }

    /// Texts of user and assistant alternating.
    fn plain<'a>(&self, sent: Vec<Sent<'a>>) -> JsonValue<'a> {
        let mut messages: Vec<(&'static str, String)> = Vec::new();
        for message in sent {
            let (role, text) = match message {
                Sent::System(text) => ("system", text.into_owned()),
                Sent::User(content) => ("user", joined(content)),
                Sent::Assistant(content) => {
                    let texts = content.into_iter().map(|part| match part {
                        Content::Call(call) => {
                            called(&call.name, call.arguments, self.check_interrupts)
                        }
                        part => joined(vec![part]),
                    });
                    ("assistant", texts.collect::<Vec<_>>().join("\n\n"))
                }
                Sent::Results(results) => {
                    let texts = results.into_iter().map(|result| {
                        let text = indented(&result.text, self.check_interrupts);
                        format!("[{} returned]\n  {text}", result.name)
                    });
                    ("user", texts.collect::<Vec<_>>().join("\n\n"))
                }
            };
            match messages.last_mut() {
                Some((last, before)) if *last == role => {
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                _ => messages.push((role, text)),
            }
        }
        let messages = messages.into_iter().map(|(role, text)| message_of(role, string(text)));
        JsonValue::Array(messages.collect())
    }

    /// A content as one text where it is texts alone, else as blocks.
    fn text_or_blocks<'a>(&self, content: Vec<Content<'a>>, text: &'static str) -> JsonValue<'a> {
        match content.iter().all(|part| matches!(part, Content::Text(_))) {
            true => string(joined(content)),
            false => JsonValue::Array(self.blocks(content, text)),
        }
    }

    /// A content as blocks, of which those of texts have this type.
    fn blocks<'a>(&self, content: Vec<Content<'a>>, text: &'static str) -> Vec<JsonValue<'a>> {
        let block = |part: Content<'a>| match part {
            Content::Text(content) => object([("type", string(text)), ("text", string(content))]),
            Content::Other(other) => other.sent(),
            Content::Call(call) => self.tool_use(call),
        };
        content.into_iter().map(block).collect()
    }

    /// A call, whose arguments must be an object.
    fn tool_use<'a>(&self, SentCall { id, name, arguments }: SentCall<'a>) -> JsonValue<'a> {
        let mut values = self.values.get();
        let input = arguments.object(&mut values, self.check_interrupts);
        self.values.set(values);
        object([
            ("type", string("tool_use")),
            ("id", string(id)),
            ("name", string(name)),
            ("input", input),
        ])
    }
}

/// Messages whose neighbours of one role are joined.
fn alternating<'a>(
    messages: Vec<(&'static str, Vec<JsonValue<'a>>)>,
) -> Vec<(&'static str, Vec<JsonValue<'a>>)> {
    let mut joined: Vec<(&'static str, Vec<JsonValue<'a>>)> = Vec::new();
    for (role, blocks) in messages {
        match joined.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => joined.push((role, blocks)),
        }
    }
    joined
}

fn tool_result(SentResult { id, text, is_error, .. }: SentResult<'_>) -> JsonValue<'_> {
    let mut entries = vec![
        ("type", string("tool_result")),
        ("tool_use_id", string(id)),
        ("content", string(text)),
    ];
    if is_error {
        entries.push(("is_error", JsonValue::Bool(true)));
    }
    object(entries)
}

/// A single text as a string, other contents as a list.
fn single(mut blocks: Vec<JsonValue<'_>>) -> JsonValue<'_> {
    if let [JsonValue::Object(entries)] = &mut blocks[..]
        && let [(kind, JsonValue::String(value)), (key, text @ JsonValue::String(_))] =
            &mut entries[..]
        && (&**kind, &**value, &**key) == ("type", "text", "text")
    {
        return std::mem::replace(text, JsonValue::Null);
    }
    JsonValue::Array(blocks)
}

fn message_of<'a>(role: &'static str, content: JsonValue<'a>) -> JsonValue<'a> {
    object([("role", string(role)), ("content", content)])
}

fn object<'a>(entries: impl IntoIterator<Item = (&'static str, JsonValue<'a>)>) -> JsonValue<'a> {
    JsonValue::Object(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

fn string<'a>(text: impl Into<Cow<'a, str>>) -> JsonValue<'a> {
    JsonValue::String(text.into())
}
