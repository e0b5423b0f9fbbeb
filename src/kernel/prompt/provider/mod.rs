//! A recorded prompt in the form that a provider takes.
//!
//! `payload` says what a message is made of; `forms`, `calls`, `data` and `fields` read it as applications store it,
//! `speakers` decides who says it.
//! `pairs` brings calls and results together, `sequence` the messages into an order that providers accept, `form`
//! writes them.

mod calls;
mod data;
mod fields;
mod form;
mod forms;
mod other;
mod pairs;
mod payload;
mod sequence;
mod speakers;

use crate::graph::turn::Role;
use crate::json::JsonValue;
use crate::json::object::{Object, ParseError};
use crate::named_enum::named_enum;
use crate::prompt::provider::form::written;
use crate::prompt::provider::payload::Blocks;
use crate::prompt::provider::sequence::sequence;
use crate::slicing::slice::Part;

named_enum! {
    /// Whose form it is.
    ProviderFormat {
        /// OpenAI's chat completions, which others take as well.
        OpenAi = "openai",
        /// OpenAI's Responses API.
        Responses = "responses",
        /// Anthropic's Messages API.
        Anthropic = "anthropic",
        /// Texts of user, assistant and system alone.
        Plain = "plain",
    }
}

named_enum! {
    /// What becomes of a call without a result.
    OpenCalls {
        /// A note stands in the place of the result.
        Note = "note",
        /// The call is left out.
        Omit = "omit",
    }
}

/// How a prompt is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// What becomes of a call without a result.
    pub open_calls: OpenCalls,
}

impl RenderOptions {
    /// The options in a JSON object; what it does not name has its default.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn read(json: JsonValue<'_>) -> Result<Self, ParseError> {
        let mut object = Object::new("options", json)?;
        let open_calls = match object.has("open_calls") {
            true => object.read("open_calls", "\"note\" or \"omit\"", |json| match json {
                JsonValue::String(name) => OpenCalls::from_name(name),
                _ => None,
            })?,
            false => OpenCalls::Note,
        };
        object.finish()?;
        Ok(RenderOptions { open_calls })
    }
}

/// A message of a record, with its texts.
#[derive(Clone, Copy, Debug)]
pub struct PromptMessage<'a> {
    /// What it is in the slice for.
    pub part: Part,
    /// Who wrote it.
    pub role: Role,
    /// When it was created, in microseconds since 1970.
    pub created_at: Option<i64>,
    /// Its content.
    pub content: Option<&'a str>,
    /// Its payload, as JSON.
    pub payload: Option<&'a str>,
}

/// The most values of all payloads together: they are held while a prompt is made.
pub const MAX_PAYLOAD_VALUES: usize = 500_000;

/// The messages, in the order of their record, as the JSON that a provider takes; `None` where the payloads have more
/// than [`MAX_PAYLOAD_VALUES`]. The edges are those of the slice between them, by the places of parent and child.
#[must_use]
pub fn render(
    messages: &[PromptMessage<'_>],
    edges: &[(usize, usize)],
    format: ProviderFormat,
    options: RenderOptions,
    check_interrupts: &dyn Fn(),
) -> Option<String> {
    let mut values = MAX_PAYLOAD_VALUES;
    let mut payloads: Vec<Option<JsonValue<'_>>> = Vec::with_capacity(messages.len());
    for message in messages {
        let read = |text| payload::read(text, &mut values, check_interrupts);
        payloads.push(message.payload.map(read).transpose().ok()?.flatten());
    }
    let entries: Vec<(&PromptMessage<'_>, Blocks<'_>)> = messages
        .iter()
        .zip(&payloads)
        .map(|(message, json)| (message, payload::blocks(message, json.as_ref(), check_interrupts)))
        .collect();
    let sent = sequence(entries, edges, format, options, check_interrupts);
    Some(written(sent, format, check_interrupts))
}
