//! JSON from outside, read without losing what a map would lose: duplicate keys, key order and
//! whether a number was written as an integer.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A JSON value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without fraction or exponent that fits 64 bits.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, keys as written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one JSON value; nesting beyond 128 levels is an error, never a deep recursion.
    ///
    /// # Errors
    /// The parser's own message, with line and column.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        Self::parse_within(text, usize::MAX, &|| {})
    }

    /// [`Json::parse`] of a text that may be hostile: more than `most` values are an error, and
    /// `tick` is called at least every 256 values.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub fn parse_within(
        text: &str,
        most: usize,
        tick: &dyn Fn(),
    ) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let reader = Reader { left: &Cell::new(most), tick };
        let json = reader.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(json)
    }

    /// The number, whether it was written as an integer or not.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Integer(n) => Some(*n as f64),
            Json::Float(n) => Some(*n),
            _ => None,
        }
    }
}

/// The value as JSON text, for messages.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(b) => write!(f, "{b}"),
            Json::Integer(n) => write!(f, "{n}"),
            Json::Float(n) => write!(f, "{n:?}"),
            Json::String(s) => f.write_str(&shown(s)),
            Json::Array(_) => f.write_str("an array"),
            Json::Object(_) => f.write_str("an object"),
        }
    }
}

/// A text in quotes for messages, cut where it gets long.
#[must_use]
pub fn shown(text: &str) -> String {
    const MOST: usize = 64;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Reads values while there are any left to read.
#[derive(Clone, Copy)]
struct Reader<'a> {
    left: &'a Cell<usize>,
    tick: &'a dyn Fn(),
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let left = self.left.get();
        if left == 0 {
            return Err(D::Error::custom("too many values"));
        }
        if left.is_multiple_of(256) {
            (self.tick)();
        }
        self.left.set(left - 1);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key()? {
            entries.push((key, map.next_value_seed(self)?));
        }
        Ok(Json::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_order_and_number_spelling_survive() {
        let Json::Object(entries) = Json::parse(r#"{"b":1,"a":1.0,"b":1e2}"#).unwrap() else {
            panic!("an object was written");
        };
        let expected =
            [("b", Json::Integer(1)), ("a", Json::Float(1.0)), ("b", Json::Float(100.0))];
        assert_eq!(entries, expected.map(|(k, v)| (k.to_owned(), v)));
    }

    #[test]
    fn values_are_counted() {
        assert!(Json::parse_within("[[],[],[]]", 4, &|| {}).is_ok());
        assert!(Json::parse_within("[[],[],[]]", 3, &|| {}).is_err());
    }

    #[test]
    fn deep_nesting_is_an_error() {
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
