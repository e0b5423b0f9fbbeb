//! Objects of a payload, of which only what says something counts.

use crate::json::JsonValue;
use crate::messages::message::{Entries, as_object, as_text, standard};
use crate::prompt::provider::payload::CallId;

/// An object in which a key is there when its value is not null, false, blank or empty: applications write the keys
/// that a message does not have in all these ways.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) Entries<'a>);

impl<'a> Fields<'a> {
    /// Those of a value that is an object.
    pub(super) fn of(json: &'a JsonValue<'a>) -> Option<Self> {
        as_object(json).map(standard).map(Fields)
    }

    pub(super) fn get(self, key: &str) -> Option<&'a JsonValue<'a>> {
        self.0.get(key).filter(|value| is_filled(value))
    }

    /// The value of the first of these keys that is there.
    pub(super) fn first(self, keys: &[&str]) -> Option<&'a JsonValue<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        as_text(self.get(key)?)
    }

    /// The first text of these keys.
    pub(super) fn first_text(self, keys: &[&str]) -> Option<&'a str> {
        keys.iter().find_map(|key| self.text(key))
    }

    pub(super) fn object(self, key: &str) -> Option<Self> {
        Self::of(self.get(key)?)
    }

    /// The first object of these keys.
    pub(super) fn first_object(self, keys: &[&str]) -> Option<Self> {
        keys.iter().find_map(|key| self.object(key))
    }

    pub(super) fn array(self, key: &str) -> Option<&'a [JsonValue<'a>]> {
        match self.get(key)? {
            JsonValue::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The first id of these keys.
    pub(super) fn id(self, keys: &[&str]) -> Option<CallId<'a>> {
        keys.iter().find_map(|key| match self.get(key)? {
            JsonValue::String(id) => CallId::id(Some(id)),
            JsonValue::Number(id) => CallId::id(Some(id.text())),
            _ => None,
        })
    }

    /// Whether there is true under one of these keys.
    pub(super) fn is_true(self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.get(key) == Some(&JsonValue::Bool(true)))
    }
}

/// Longer texts are not looked through for what is not blank: each message around one would do so again.
const MAX_BLANK_BYTES: usize = 64 * 1024;

/// Whether a text is not blank, or long.
pub(super) fn has_text(text: &str) -> bool {
    text.len() > MAX_BLANK_BYTES || !text.trim().is_empty()
}

/// Whether a value is not null, false, blank or empty.
pub(super) fn is_filled(json: &JsonValue<'_>) -> bool {
    match json {
        JsonValue::Null | JsonValue::Bool(false) => false,
        JsonValue::String(text) => has_text(text),
        JsonValue::Array(items) => !items.is_empty(),
        JsonValue::Object(entries) => !entries.is_empty(),
        JsonValue::Bool(true) | JsonValue::Number(_) => true,
    }
}

/// Whether a value is a text, a list or an object that says what went wrong.
pub(super) fn is_error(json: &JsonValue<'_>) -> bool {
    match json {
        JsonValue::Array(items) => items.iter().any(is_filled),
        JsonValue::Object(entries) => entries.iter().any(|(_, value)| is_filled(value)),
        json => as_text(json).is_some() && is_filled(json),
    }
}
