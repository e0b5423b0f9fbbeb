//! The arguments of a call.

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};
use uuid::Uuid;

use super::quoting::MAX_TOKENS;
use crate::Failure;
use crate::output::shortened;

/// What a policy leaves of the tokens of a result for the lines that name each message.
const SHARE_OF_TEXTS: (u64, u64) = (3, 4);

/// The longest text that may be given, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// The arguments of one call, of which none is unknown to the tool.
pub(super) struct Given(JsonObject);

impl Given {
    pub(super) fn new(tool: &Tool, values: JsonObject) -> Result<Self, Failure> {
        let known = tool.input_schema["properties"].as_object().expect("each tool has properties");
        if let Some(name) = values.keys().find(|name| !known.contains_key(*name)) {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            return Err(format!(
                "{} has no argument {:?}; it has {}",
                tool.name,
                shortened(name, 100),
                names.join(", ")
            ));
        }
        let needed = tool.input_schema.get("required").and_then(Value::as_array);
        for name in needed.into_iter().flatten().filter_map(Value::as_str) {
            if values.get(name).is_none_or(Value::is_null) {
                return Err(format!("{} needs the argument {name}", tool.name));
            }
        }
        Ok(Given(values))
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text that is not empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let Some(text) = value.as_str() else { return Err(format!("{name} must be a string")) };
        if text.contains('\0') {
            return Err(format!("{name} holds a NUL character, which PostgreSQL cannot store"));
        }
        if text.trim().is_empty() || text.len() > MAX_TEXT_BYTES {
            return Err(format!("{name} must have 1 to {MAX_TEXT_BYTES} bytes, and not be blank"));
        }
        Ok(Some(text))
    }

    pub(super) fn turn(&self, name: &str) -> Result<Option<Uuid>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            format!(
                "{name} must be the id of a turn, a uuid: take one from sessions, recall or context"
            )
        })
    }

    fn number(&self, name: &str, least: u64, most: u64, default: u64) -> Result<u64, Failure> {
        match self.value(name) {
            None => Ok(default),
            Some(value) => value
                .as_u64()
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| format!("{name} must be a whole number from {least} to {most}")),
        }
    }

    pub(super) fn offset(&self) -> Result<i32, Failure> {
        let number = self.number("offset", 0, 1_000_000_000, 0)?;
        Ok(i32::try_from(number).expect("it is one of those"))
    }

    /// How many tokens the result may have.
    pub(super) fn max_tokens(&self) -> Result<u64, Failure> {
        self.number("max_tokens", 200, MAX_TOKENS, 4000)
    }

    /// A policy whose texts leave room in the result for what is said about them.
    pub(super) fn policy(&self, preset: &str) -> Result<String, Failure> {
        let mut policy = match self.value("policy") {
            None => json!({ "preset": preset }),
            Some(Value::String(name)) => json!({ "preset": name }),
            Some(policy @ Value::Object(_)) => policy.clone(),
            Some(_) => {
                return Err("policy must be the name of a preset, such as \"chat\", or an object"
                    .to_owned());
            }
        };
        let is_v2 = policy["version"] == "slice_policy_v2"
            || matches!(policy["preset"].as_str(), Some("lineage" | "chat" | "recall"));
        if is_v2 && policy.get("max_tokens").is_none_or(Value::is_null) {
            policy["max_tokens"] =
                (self.max_tokens()? * SHARE_OF_TEXTS.0 / SHARE_OF_TEXTS.1).into();
        }
        Ok(policy.to_string())
    }

    pub(super) fn embedding(&self) -> Result<Option<Vec<f32>>, Failure> {
        let Some(value) = self.value("embedding") else { return Ok(None) };
        let numbers = value.as_array().ok_or("embedding must be an array of numbers")?;
        let number = |value: &Value| value.as_f64().map(|number| number as f32);
        let numbers: Option<Vec<f32>> = numbers.iter().map(number).collect();
        numbers.map(Some).ok_or_else(|| "embedding must be an array of numbers".to_owned())
    }

    /// A JSON object as a text, such as the filter of a search.
    pub(super) fn object(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.value(name) {
            None => Ok(None),
            Some(value @ Value::Object(_)) => Ok(Some(value.to_string())),
            Some(_) => Err(format!("{name} must be an object")),
        }
    }

    /// One of some words.
    pub(super) fn one_of(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<&'static str, Failure> {
        let Some(text) = self.text(name)? else { return Ok(words[0]) };
        let word = words.iter().find(|word| **word == text);
        word.copied().ok_or_else(|| format!("{name} must be one of {}", words.join(", ")))
    }
}
