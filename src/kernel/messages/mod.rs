//! Messages in the JSON that applications store: their text and their role.
//!
//! docs/reference.md lists the forms. Indexes and content hashes depend on the results, so a form that is supported
//! never changes its result.

mod blocks;
pub(crate) mod message;

use crate::json::{JsonLimits, JsonReader, JsonValue};
use crate::messages::blocks::Texts;
pub use crate::messages::message::role_name;
use crate::messages::message::{Entries, role_of};

/// A longer message, in bytes, is not read as JSON.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A message that is beyond these limits, or is nested deeper than [`crate::json::MAX_DEPTH`], is not read as JSON.
const LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_MESSAGE_BYTES, values: 100_000, token_bytes: MAX_MESSAGE_BYTES };

/// The text of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageText {
    /// The stored text as it is: it is not JSON, or JSON of no form that is supported.
    AsStored,
    /// There is none: the message has calls or thoughts alone, or is empty.
    Absent,
    /// The text, which is not empty and has no NUL.
    Text(String),
}

/// The text of a stored message. Texts of several blocks are joined by line feeds. Never fails.
#[must_use]
pub fn message_text(stored: &str, check_interrupts: &dyn Fn()) -> MessageText {
    text_within(LIMITS, stored, check_interrupts)
}

/// As [`message_text`], of JSON of any size: a part of what has been read within other limits.
pub(crate) fn text_of_part(json: &str, check_interrupts: &dyn Fn()) -> MessageText {
    let limits = JsonLimits { bytes: usize::MAX, values: usize::MAX, token_bytes: usize::MAX };
    text_within(limits, json, check_interrupts)
}

fn text_within(limits: JsonLimits, stored: &str, check_interrupts: &dyn Fn()) -> MessageText {
    let Some(json) = read(limits, stored, check_interrupts) else { return MessageText::AsStored };
    let mut texts = Texts::new(check_interrupts);
    let is_known = match &json {
        JsonValue::Null => true,
        JsonValue::String(text) => {
            texts.push(text);
            true
        }
        JsonValue::Array(blocks) => texts.blocks(blocks) || blocks.is_empty(),
        JsonValue::Object(entries) => texts.object(Entries(entries)),
        JsonValue::Bool(_) | JsonValue::Number(_) => false,
    };
    match texts.joined() {
        _ if !is_known => MessageText::AsStored,
        text if text.is_empty() => MessageText::Absent,
        text => MessageText::Text(text),
    }
}

/// The role of a stored message: `user`, `assistant`, `system` or `tool` for the names that the supported forms have
/// for them. Any other name is returned as it is. `None` where the message says none. Never fails.
#[must_use]
pub fn message_role(stored: &str, check_interrupts: &dyn Fn()) -> Option<String> {
    let json = read(LIMITS, stored, check_interrupts)?;
    let JsonValue::Object(entries) = &json else { return None };
    let role = role_of(Entries(entries))?;
    Some(role.replace('\0', "")).filter(|role| !role.is_empty())
}

/// The JSON that a stored text is; `None` where it is not read as JSON, or is a number or a bare word but null.
fn read<'a>(
    limits: JsonLimits,
    stored: &'a str,
    check_interrupts: &dyn Fn(),
) -> Option<JsonValue<'a>> {
    let mut reader = JsonReader::new(stored, limits, check_interrupts).ok()?.replacing_surrogates();
    let json = reader.value().ok()?;
    reader.finish().ok()?;
    Some(json)
}

#[cfg(test)]
mod tests;
