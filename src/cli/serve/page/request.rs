//! Reading what the page sends.

use axum::body::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::serve::errors::Refusal;
use crate::serve::keys::check_body;

/// A JSON object.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// The object in the body of a request.
    pub(super) fn of(body: &Bytes) -> Result<Self, Refusal> {
        check_body(body)?;
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            _ => Err(Refusal::invalid("the body is not a JSON object")),
        }
    }

    /// The object under this key.
    pub(super) fn object(&mut self, key: &str) -> Result<Self, Refusal> {
        match self.0.remove(key) {
            Some(Value::Object(fields)) => Ok(Fields(fields)),
            _ => Err(Refusal::invalid(format!("{key} is not an object"))),
        }
    }

    /// The text under this key; none where it is missing, null or empty.
    pub(super) fn optional_text(&mut self, key: &str) -> Result<Option<String>, Refusal> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            _ => Err(Refusal::invalid(format!("{key} is not a text"))),
        }
    }

    /// The text under this key, which may be empty.
    pub(super) fn text(&mut self, key: &str) -> Result<String, Refusal> {
        match self.0.remove(key) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(Refusal::invalid(format!("{key} is not a text"))),
        }
    }

    /// The turn id under this key.
    pub(super) fn id(&mut self, key: &str) -> Result<Uuid, Refusal> {
        let text = self.text(key)?;
        text.parse().map_err(|_| Refusal::invalid(format!("{key} is not a uuid")))
    }

    /// The turn ids under this key.
    pub(super) fn ids(&mut self, key: &str) -> Result<Vec<Uuid>, Refusal> {
        let invalid = || Refusal::invalid(format!("{key} is not an array of uuids"));
        let Some(Value::Array(list)) = self.0.remove(key) else { return Err(invalid()) };
        let id = |value: Value| value.as_str().and_then(|text| text.parse().ok());
        list.into_iter().map(|value| id(value).ok_or_else(invalid)).collect()
    }

    /// The policy under this key: an object, or the name of one.
    pub(super) fn policy(&mut self, key: &str) -> Result<Policy, Refusal> {
        match self.0.remove(key) {
            Some(Value::String(name)) => Ok(Policy { text: name, is_name: true }),
            Some(object @ Value::Object(_)) => {
                Ok(Policy { text: object.to_string(), is_name: false })
            }
            _ => Err(Refusal::invalid(format!("{key} is neither an object nor a name"))),
        }
    }
}

/// A policy as it was given.
pub(super) struct Policy {
    pub(super) text: String,
    is_name: bool,
}

impl Policy {
    /// The expression that makes it of this parameter, a text. A name may be that of a registered policy.
    pub(super) fn expression(&self, parameter: &str) -> String {
        match self.is_name {
            true => format!("{{schema}}.graph_policy({parameter}::text)"),
            false => format!("{parameter}::text::{{schema}}.slice_policy"),
        }
    }
}
