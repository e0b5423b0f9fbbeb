//! JSON values as they were written, and as messages show them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::number::Number;
use super::reader::{JsonError, JsonLimits, JsonReader};

/// A JSON value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number, as its text.
    Number(Number<'a>),
    /// A string.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<JsonValue<'a>>),
    /// An object, keys as written.
    Object(Vec<(Cow<'a, str>, JsonValue<'a>)>),
}

impl<'a> JsonValue<'a> {
    /// Reads one JSON value.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn read(
        text: &'a str,
        limits: JsonLimits,
        check_interrupts: &dyn Fn(),
    ) -> Result<Self, JsonError> {
        let mut reader = JsonReader::new(text, limits, check_interrupts)?;
        let json = reader.value()?;
        reader.finish()?;
        Ok(json)
    }

    /// Whether two values are the same, whatever the order of keys and however numbers are written. Objects of
    /// different lengths are not, also where one has a key twice: what is long is not looked through for each short
    /// one.
    pub(crate) fn is_same(&self, other: &JsonValue<'_>) -> bool {
        match (self, other) {
            (JsonValue::Number(one), JsonValue::Number(other)) => one.is_same(*other),
            (JsonValue::Array(items), JsonValue::Array(others)) => {
                let mut pairs = items.iter().zip(others);
                items.len() == others.len() && pairs.all(|(item, other)| item.is_same(other))
            }
            (JsonValue::Object(entries), JsonValue::Object(others))
                if entries.len() == others.len() =>
            {
                let (entries, others) = (by_key(entries), by_key(others));
                entries.len() == others.len()
                    && entries.iter().all(|(key, value)| {
                        others.get(key).is_some_and(|other| value.is_same(other))
                    })
            }
            (JsonValue::Object(_), JsonValue::Object(_)) => false,
            (one, other) => one == other,
        }
    }
}

fn by_key<'v>(entries: &'v [(Cow<'_, str>, JsonValue<'_>)]) -> HashMap<&'v str, &'v JsonValue<'v>> {
    entries.iter().map(|(key, value)| (key.as_ref(), value)).collect()
}

/// The value as JSON text, for messages.
impl fmt::Display for JsonValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonValue::Null => f.write_str("null"),
            JsonValue::Bool(b) => write!(f, "{b}"),
            JsonValue::Number(number) => f.write_str(&cut(number.0)),
            JsonValue::String(s) => f.write_str(&quoted(s)),
            JsonValue::Array(_) => f.write_str("an array"),
            JsonValue::Object(_) => f.write_str("an object"),
        }
    }
}

/// The most characters of a text that messages show.
const QUOTED_CHARS: usize = 64;

/// A text in quotes for messages, shortened where it is long.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.get(..QUOTED_CHARS) {
        Some(start) if text.len() > QUOTED_CHARS => Cow::Owned(format!("{start}...")),
        _ => Cow::Borrowed(text),
    }
}
