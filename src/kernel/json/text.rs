//! Values as text: as they were written, and as PostgreSQL writes them of a jsonb.

use std::collections::HashMap;

use super::number::Number;
use super::reader::{JsonLimits, JsonReader};
use super::value::JsonValue;
use crate::interrupts::Interrupts;

/// The longest text of a jsonb that is read or made, in bytes: numbers with exponents are written out.
const MAX_JSONB_BYTES: usize = 256 << 20;

const JSONB_LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_JSONB_BYTES, values: 10_000_000, token_bytes: MAX_JSONB_BYTES };

/// The most digits of a numeric before and behind its point.
const MAX_INTEGER_DIGITS: i64 = 131_072;
const MAX_FRACTION_DIGITS: i64 = 16_383;

/// A JSON text as the server writes it of a jsonb: keys by their length and then by their bytes, of a key that is
/// given twice the last value, numbers as numeric has them. A NUL character and half of a surrogate pair, which a jsonb
/// cannot hold, are U+FFFD. `None` for what is not JSON, for numbers that no numeric is, and beyond the limits of the
/// reader.
#[must_use]
pub fn jsonb_text(json: &str, check_interrupts: &dyn Fn()) -> Option<String> {
    let reader = JsonReader::new(json, JSONB_LIMITS, check_interrupts).ok()?;
    let mut reader = reader.replacing_surrogates();
    let value = reader.value().ok()?;
    reader.finish().ok()?;
    jsonb_text_of(&value, check_interrupts)
}

/// As [`jsonb_text`], of a value that was read.
pub(crate) fn jsonb_text_of(value: &JsonValue<'_>, check_interrupts: &dyn Fn()) -> Option<String> {
    let interrupts = Interrupts::new(check_interrupts);
    let mut writer = Writer { text: String::new(), is_jsonb: true, interrupts };
    writer.value(value)?;
    Some(writer.text)
}

/// A value without white space, with its keys and numbers as they were written, without NUL characters.
pub(crate) fn compact_text(value: &JsonValue<'_>, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut writer = Writer { text: String::new(), is_jsonb: false, interrupts };
    writer.value(value).expect("numbers are copied");
    writer.text
}

struct Writer<'c> {
    text: String,
    is_jsonb: bool,
    interrupts: Interrupts<'c>,
}

impl Writer<'_> {
    fn value(&mut self, value: &JsonValue<'_>) -> Option<()> {
        self.interrupts.item();
        match value {
            JsonValue::Null => self.text.push_str("null"),
            JsonValue::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            JsonValue::Number(number) if self.is_jsonb => self.numeric(*number)?,
            JsonValue::Number(number) => self.text.push_str(number.text()),
            JsonValue::String(string) => self.string(string),
            JsonValue::Array(items) => {
                self.text.push('[');
                for (place, item) in items.iter().enumerate() {
                    self.separate(place);
                    self.value(item)?;
                }
                self.text.push(']');
            }
            JsonValue::Object(entries) => {
                let mut entries: Vec<(&str, &JsonValue<'_>)> =
                    entries.iter().map(|(key, value)| (key.as_ref(), value)).collect();
                if self.is_jsonb {
                    let last: HashMap<&str, &JsonValue<'_>> = entries.into_iter().collect();
                    entries = last.into_iter().collect();
                    entries.sort_unstable_by_key(|(key, _)| (key.len(), *key));
                }
                self.text.push('{');
                for (place, (key, value)) in entries.into_iter().enumerate() {
                    self.separate(place);
                    self.string(key);
                    self.text.push_str(if self.is_jsonb { ": " } else { ":" });
                    self.value(value)?;
                }
                self.text.push('}');
            }
        }
        (!self.is_jsonb || self.text.len() <= MAX_JSONB_BYTES).then_some(())
    }

    fn separate(&mut self, place: usize) {
        if place > 0 {
            self.text.push_str(if self.is_jsonb { ", " } else { "," });
        }
    }

    /// A string in quotes.
    fn string(&mut self, string: &str) {
        self.interrupts.bytes(string.len());
        let plain = string.replace('\0', if self.is_jsonb { "\u{fffd}" } else { "" });
        self.text.push_str(&serde_json::to_string(&plain).expect("a string can be written"));
    }

    /// A number without an exponent, with as many digits behind the point as were written.
    fn numeric(&mut self, number: Number<'_>) -> Option<()> {
        let number = number.text();
        let (negative, number) =
            number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.parse().ok().filter(|e: &i64| e.abs() < i64::from(i32::MAX / 2))?;
        let digits = [integer, fraction].concat();
        let leading = digits.bytes().take_while(|digit| *digit == b'0').count();
        let is_zero = leading == digits.len();
        let before = if is_zero { 1 } else { integer.len() as i64 + exponent };
        let behind = (fraction.len() as i64 - exponent).max(0);
        if behind > MAX_FRACTION_DIGITS || before - leading as i64 > MAX_INTEGER_DIGITS {
            return None;
        }
        if negative && !is_zero {
            self.text.push('-');
        }
        // The digit so many places before the point, or behind it: those have negative numbers.
        let digit = |place: i64| {
            let index = usize::try_from(before - 1 - place).ok();
            let known = index.and_then(|index| digits.as_bytes().get(index));
            known.map_or('0', |digit| char::from(*digit))
        };
        let highest = (before - leading as i64 - 1).max(0);
        self.text.extend((0..=highest).rev().map(digit));
        if behind > 0 {
            self.text.push('.');
            self.text.extend((1..=behind).map(|place| digit(-place)));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jsonb_is_written_as_the_server_writes_it() {
        for (json, text) in [
            (r#" {"bb":1,"a":[1,2.50],"c":{},"bb":[]} "#, r#"{"a": [1, 2.50], "c": {}, "bb": []}"#),
            ("[1e3,1E+2,-0,-0.0,0e5,0.00e1,12.50e1]", "[1000, 100, 0, 0.0, 0, 0.0, 125.0]"),
            ("[15e-1,1e-5,0.1e2,-12.34e-2,100e-2]", "[1.5, 0.00001, 10, -0.1234, 1.00]"),
            (r#""\u0041\u0000\u001f\/\ud83d\ude00\u007f\n""#, "\"A\u{fffd}\\u001f/😀\u{7f}\\n\""),
            ("null", "null"),
        ] {
            assert_eq!(jsonb_text(json, &|| {}).as_deref(), Some(text), "{json}");
            assert_eq!(jsonb_text(text, &|| {}).as_deref(), Some(text), "{json}");
        }
        for json in ["", "[1", "1e131072", "1e-16384", "1e99999999999999999999"] {
            assert_eq!(jsonb_text(json, &|| {}), None, "{json}");
        }
        let longest = jsonb_text("1e131071", &|| {}).unwrap();
        assert_eq!((longest.len(), &longest[..2]), (131_072, "10"));
        assert_eq!(jsonb_text("0e999999999", &|| {}).as_deref(), Some("0"));
    }
}
