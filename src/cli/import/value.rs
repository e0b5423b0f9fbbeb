//! Values of JSON whose numbers are as they are written: jsonb holds more of them than binary64, which serde_json has.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::ops::Index;

/// The values of an object.
pub(super) type Map = BTreeMap<String, Value>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Map),
}

/// A number that jsonb can hold, as its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number(String);

/// How many digits a number of jsonb may have before the point and behind it, and its exponent before it is read.
const MAX_DIGITS: i64 = 131_072;
const MAX_DECIMALS: i64 = 16_383;
const MAX_EXPONENT: u64 = i32::MAX as u64 / 2 - 1;

impl Number {
    /// A number in JSON's grammar; none that jsonb cannot hold.
    pub(super) fn new(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().ok()?;
        let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches(['-', '0']);
        let first = decimals.find(|digit| digit != '0').map(|zeros| -(zeros as i64));
        // How many digits are before the point; none of zero.
        let digits = if whole.is_empty() { first } else { Some(whole.len() as i64) };
        let is_held = exponent.unsigned_abs() <= MAX_EXPONENT
            && decimals.len() as i64 - exponent <= MAX_DECIMALS
            && digits.is_none_or(|digits| digits + exponent <= MAX_DIGITS);
        is_held.then(|| Number(text.to_owned()))
    }

    /// About the number.
    pub(super) fn as_f64(&self) -> f64 {
        self.0.parse().expect("JSON's grammar of numbers is a part of Rust's")
    }
}

impl Value {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub(super) fn is_string(&self) -> bool {
        matches!(self, Value::String(_))
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Value::Object(_))
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_array(&self) -> Option<&Vec<Value>> {
        if let Value::Array(values) = self { Some(values) } else { None }
    }

    pub(super) fn as_object(&self) -> Option<&Map> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    pub(super) fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    /// The number, if it is written as an integer.
    pub(super) fn as_i64(&self) -> Option<i64> {
        if let Value::Number(Number(text)) = self { text.parse().ok() } else { None }
    }

    /// About the number.
    pub(super) fn as_f64(&self) -> Option<f64> {
        if let Value::Number(number) = self { Some(number.as_f64()) } else { None }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.as_object().and_then(|object| object.get(key))
    }
}

/// The value under a key, null where there is none.
impl Index<&str> for Value {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == Some(text)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == Some(text)
    }
}

impl PartialEq<bool> for Value {
    fn eq(&self, value: &bool) -> bool {
        matches!(self, Value::Bool(it) if it == value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

/// Compact JSON.
impl Display for Value {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(Number(text)) => f.write_str(text),
            Value::String(text) => write_string(f, text),
            Value::Array(values) => {
                f.write_str("[")?;
                for (n, value) in values.iter().enumerate() {
                    let comma = if n > 0 { "," } else { "" };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
            Value::Object(object) => {
                f.write_str("{")?;
                for (n, (key, value)) in object.iter().enumerate() {
                    f.write_str(if n > 0 { "," } else { "" })?;
                    write_string(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut Formatter, text: &str) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

/// A value of a test, written as serde_json's macro takes it.
#[cfg(test)]
macro_rules! json {
    ($($json:tt)+) => { $crate::import::value::Value::from(serde_json::json!($($json)+)) };
}
#[cfg(test)]
pub(super) use json;

#[cfg(test)]
impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => Value::Number(Number(number.to_string())),
            serde_json::Value::String(text) => Value::String(text),
            serde_json::Value::Array(values) => {
                Value::Array(values.into_iter().map(Value::from).collect())
            }
            serde_json::Value::Object(object) => {
                Value::Object(object.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_jsonb_holds() {
        let ones = |count: usize| "1".repeat(count);
        for held in [
            "0",
            "-0",
            "1.10",
            "1e131071",
            "-0.001e131074",
            "1e-16383",
            "0e1000",
            "0E+00000000001",
            "0e1073741822",
            &ones(131_072),
            &format!("0.{}", ones(16_383)),
            "1.5e-16382",
        ] {
            let value = Number::new(held).map(Value::Number);
            assert_eq!(value.map(|value| value.to_string()).as_deref(), Some(held));
        }
        for refused in [
            "1e131072",
            "0.001e131075",
            "1e-16384",
            "1.5e-16383",
            "0e-16384",
            "0e1073741823",
            "0e99999999999999999999",
            "1e-99999999999999999999",
            &ones(131_073),
            &format!("0.{}", ones(16_384)),
        ] {
            assert_eq!(Number::new(refused), None, "{refused}");
        }
    }

    #[test]
    fn values_are_written_as_serde_json_writes_them() {
        let text = r#"{"a":[1,-2.5,"ü\n\"\u0000\u001f/",null,true,false,{},[]],"b":{"":[[""]]}}"#;
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(Value::from(value.clone()).to_string(), value.to_string());
    }
}
