//! Keys of JSON objects. Of equal ones a program takes the first and another the last: what has them is refused.

use std::collections::HashSet;
use std::fmt::Formatter;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::errors::Refusal;

/// What is said of such JSON.
pub(crate) const KEY_TWICE: &str = "a key stands twice in an object of the body";

/// Whether this is JSON in which an object has a key twice, as far as it is JSON.
pub(crate) fn has_key_twice(json: &[u8]) -> bool {
    serde_json::from_slice::<Unique>(json).is_err_and(|error| error.is_data())
}

/// The refusal of a body that is so.
pub(super) fn key_twice() -> Refusal {
    Refusal::invalid(KEY_TWICE)
}

/// Refuses a body in which an object has a key twice.
pub(super) async fn with_keys_once(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await {
        Ok(body) if has_key_twice(&body) => key_twice().into_response(),
        Ok(body) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Err(rejection) => rejection.into_response(),
    }
}

/// Any JSON in which no object has a key twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Unique)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Unique;

    fn expecting(&self, formatter: &mut Formatter) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Unique, A::Error> {
        while elements.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Unique, A::Error> {
        let mut keys = HashSet::new();
        while let Some((key, Unique)) = fields.next_entry::<String, Unique>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(Unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth() {
        for (json, expected) in [
            (r#"{"a": 1, "b": {"a": 1}}"#, false),
            (r#"{"a": 1, "\u0061": 2}"#, true),
            (r#"[{}, [{"x": {"a": null, "b": true, "a": 1.5}}]]"#, true),
            (r#"{"a": 1"#, false),
            ("7", false),
        ] {
            assert_eq!(has_key_twice(json.as_bytes()), expected, "{json}");
        }
    }
}
