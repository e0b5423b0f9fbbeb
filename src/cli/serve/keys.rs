//! JSON of clients before it is parsed: its keys, and how much memory its values would take.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Formatter;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use super::errors::Refusal;

/// How much memory the values of a body may take, in bytes, as they are counted here.
const MAX_TREE_BYTES: usize = 16 << 20;

/// What a value takes at most beside the bytes of its text, and what an object takes beside.
const VALUE_BYTES: usize = 64;
const OBJECT_BYTES: usize = 576;

/// Why JSON is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unfit {
    /// Of equal keys a program takes the first and another the last.
    KeyTwice,
    TooManyValues,
    /// It is no JSON, or has numbers or levels that not every program takes.
    NotRead,
}

impl Unfit {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Unfit::KeyTwice => "a key stands twice in an object",
            Unfit::TooManyValues => "there are too many values",
            Unfit::NotRead => "a number is out of range, or there are more than 127 levels",
        }
    }
}

/// Refuses a body that is not fit to be parsed. One that is no JSON is left to the parser, which says why.
pub(crate) fn check_body(json: &[u8]) -> Result<(), Unfit> {
    check(json, MAX_TREE_BYTES).or_else(|unfit| match unfit {
        Unfit::NotRead => Ok(()),
        Unfit::KeyTwice | Unfit::TooManyValues => Err(unfit),
    })
}

/// Refuses a document that other programs read otherwise, or not at all.
pub(crate) fn check_document(json: &[u8]) -> Result<(), Unfit> {
    check(json, usize::MAX)
}

fn check(json: &[u8], most: usize) -> Result<(), Unfit> {
    let (left, unfit) = (Cell::new(most), Cell::new(Unfit::NotRead));
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let walked = Walk { left: &left, unfit: &unfit }.deserialize(&mut deserializer);
    walked.and_then(|()| deserializer.end()).map_err(|_| unfit.get())
}

impl From<Unfit> for Refusal {
    fn from(unfit: Unfit) -> Self {
        Refusal::invalid(format!("the body is refused: {}", unfit.text()))
    }
}

/// Refuses a body that [`check_body`] refuses.
pub(super) async fn with_checked_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await {
        Ok(body) => match check_body(&body) {
            Ok(()) => next.run(Request::from_parts(parts, Body::from(body))).await,
            Err(unfit) => Refusal::from(unfit).into_response(),
        },
        Err(rejection) => rejection.into_response(),
    }
}

/// Walks through JSON, and builds nothing.
#[derive(Clone, Copy)]
struct Walk<'a> {
    /// How many bytes the values may take yet.
    left: &'a Cell<usize>,
    /// Why it has ended.
    unfit: &'a Cell<Unfit>,
}

impl Walk<'_> {
    fn refuse<E: Error>(self, unfit: Unfit) -> E {
        self.unfit.set(unfit);
        E::custom(unfit.text())
    }

    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.ok_or_else(|| self.refuse(Unfit::TooManyValues))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.take(VALUE_BYTES)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.take(VALUE_BYTES)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.take(VALUE_BYTES)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.take(VALUE_BYTES)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.take(VALUE_BYTES)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.take(VALUE_BYTES)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.take(VALUE_BYTES)?;
        while elements.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.take(OBJECT_BYTES)?;
        let mut keys = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(self.refuse(Unfit::KeyTwice));
            }
            fields.next_value_seed(self)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth() {
        for (json, expected) in [
            (r#"{"a": 1, "b": {"a": 1}}"#, Ok(())),
            (r#"{"a": 1, "\u0061": 2}"#, Err(Unfit::KeyTwice)),
            (r#"[{}, [{"x": {"a": null, "b": true, "a": 1.5}}]]"#, Err(Unfit::KeyTwice)),
            (r#"{"a": 1"#, Err(Unfit::NotRead)),
            // What follows such a number is not looked at.
            (r#"{"x": 1e999, "a": 1, "a": 2}"#, Err(Unfit::NotRead)),
            ("7", Ok(())),
            ("7 8", Err(Unfit::NotRead)),
        ] {
            assert_eq!(check_document(json.as_bytes()), expected, "{json}");
            let body = expected.or_else(|unfit| match unfit {
                Unfit::NotRead => Ok(()),
                _ => Err(unfit),
            });
            assert_eq!(check_body(json.as_bytes()), body, "{json}");
        }
        let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
        assert_eq!(check_document(deep.as_bytes()), Err(Unfit::NotRead));
    }

    #[test]
    fn values_are_counted_before_they_are_made() {
        let list = |value: &str, count: usize| format!("[{}0]", format!("{value},").repeat(count));
        for (value, most) in [("0", 262_142), (r#"{"":0}"#, 26_214), ("[]", 262_142)] {
            assert_eq!(check_body(list(value, most).as_bytes()), Ok(()), "{value}");
            let more = list(value, most + 1);
            assert_eq!(check_body(more.as_bytes()), Err(Unfit::TooManyValues), "{value}");
            assert_eq!(check_document(more.as_bytes()), Ok(()), "{value}");
        }
    }
}
