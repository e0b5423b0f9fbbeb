//! Values as text: as they were written, and as PostgreSQL writes them of a jsonb.

use std::borrow::Cow;
use std::ops::Range;

use super::number::Number;
use super::object::ParseError;
use super::reader::{JsonLimits, JsonReader};
use super::value::JsonValue;
use crate::interrupts::Interrupts;

/// The longest text of a jsonb that is read or made, in bytes: numbers with exponents are written out.
const MAX_JSONB_BYTES: usize = 256 << 20;

/// What a jsonb may be longer than a multiple of its JSON.
const MIN_GROWTH_BYTES: usize = 1 << 10;

/// Values are not held, so that their number has no limit.
const JSONB_LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_JSONB_BYTES, values: usize::MAX, token_bytes: MAX_JSONB_BYTES };

/// The most digits of a numeric before and behind its point.
const MAX_INTEGER_DIGITS: i64 = 131_072;
const MAX_FRACTION_DIGITS: i64 = 16_383;

/// A JSON text as the server writes it of a jsonb: keys by their length and then by their bytes, of a key that is
/// given twice the last value, numbers as numeric has them. A NUL character and half of a surrogate pair, which a jsonb
/// cannot hold, are U+FFFD. `None` for what is not JSON, for numbers that no numeric is, beyond the limits of the
/// reader, and where it is more than `max_growth` times as long as the JSON, and some.
#[must_use]
pub fn jsonb_text(json: &str, max_growth: usize, check_interrupts: &dyn Fn()) -> Option<String> {
    let reader = JsonReader::new(json, JSONB_LIMITS, check_interrupts).ok()?;
    let mut reader = reader.replacing_surrogates();
    let max_bytes = json.len().saturating_mul(max_growth).saturating_add(MIN_GROWTH_BYTES);
    let text = write_jsonb(&mut reader, max_bytes.min(MAX_JSONB_BYTES), check_interrupts).ok()?;
    reader.finish().ok()?;
    Some(text)
}

/// As [`jsonb_text`], of the next value of a reader that replaces surrogates. It is written while it is read: nothing
/// is held but the text, and of an object on the way the places of its entries.
///
/// # Errors
/// For what is not JSON, and what is no value of type jsonb.
pub(crate) fn read_jsonb(
    reader: &mut JsonReader<'_, '_>,
    check_interrupts: &dyn Fn(),
) -> Result<String, ParseError> {
    write_jsonb(reader, MAX_JSONB_BYTES, check_interrupts)
}

fn write_jsonb(
    reader: &mut JsonReader<'_, '_>,
    max_bytes: usize,
    check_interrupts: &dyn Fn(),
) -> Result<String, ParseError> {
    let interrupts = Interrupts::new(check_interrupts);
    let mut writer = JsonbWriter { text: String::new(), max_bytes, interrupts };
    writer.value(reader)?;
    Ok(writer.text)
}

/// A value without white space, with its keys and numbers as they were written, without NUL characters.
pub(crate) fn compact_text(value: &JsonValue<'_>, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut text = String::new();
    write_compact(value, &mut text, &interrupts);
    text
}

fn write_compact(value: &JsonValue<'_>, text: &mut String, interrupts: &Interrupts<'_>) {
    interrupts.item();
    let string = |string: &str, text: &mut String| {
        write_string(&string.replace('\0', ""), text, interrupts);
    };
    match value {
        JsonValue::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                write_compact(item, text, interrupts);
            }
            text.push(']');
        }
        JsonValue::Object(entries) => {
            text.push('{');
            for (place, (key, value)) in entries.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                string(key, text);
                text.push(':');
                write_compact(value, text, interrupts);
            }
            text.push('}');
        }
        JsonValue::String(value) => string(value, text),
        JsonValue::Number(number) => text.push_str(number.text()),
        JsonValue::Null => text.push_str("null"),
        JsonValue::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
    }
}

/// A string in quotes.
fn write_string(string: &str, text: &mut String, interrupts: &Interrupts<'_>) {
    text.push('"');
    for piece in interrupts.text_pieces(string) {
        let quoted = serde_json::to_string(piece).expect("a string can be written");
        text.push_str(&quoted[1..quoted.len() - 1]);
    }
    text.push('"');
}

struct JsonbWriter<'c> {
    text: String,
    max_bytes: usize,
    interrupts: Interrupts<'c>,
}

/// An entry of an object: its key among those of the object, and where its text is.
struct Entry {
    key: Range<u32>,
    text: Range<u32>,
}

impl JsonbWriter<'_> {
    fn value(&mut self, reader: &mut JsonReader<'_, '_>) -> Result<(), ParseError> {
        self.interrupts.item();
        if reader.at_array() {
            self.array(reader)?;
        } else if reader.at_object() {
            self.object(reader)?;
        } else {
            match reader.value()? {
                JsonValue::String(string) => self.string(&without_nul(&string)),
                JsonValue::Number(number) => self.numeric(number)?,
                JsonValue::Bool(value) => self.text.push_str(if value { "true" } else { "false" }),
                _ => self.text.push_str("null"),
            }
        }
        match self.text.len() <= self.max_bytes {
            true => Ok(()),
            false => Err(format!("jsonb of more than {} bytes", self.max_bytes)),
        }
    }

    fn array(&mut self, reader: &mut JsonReader<'_, '_>) -> Result<(), ParseError> {
        self.text.push('[');
        let mut is_first = true;
        reader.array(|reader| {
            self.text.push_str(if std::mem::take(&mut is_first) { "" } else { ", " });
            self.value(reader)
        })?;
        self.text.push(']');
        Ok(())
    }

    fn object(&mut self, reader: &mut JsonReader<'_, '_>) -> Result<(), ParseError> {
        let start = self.text.len();
        self.text.push('{');
        let (mut keys, mut entries) = (String::new(), Vec::<Entry>::new());
        reader.object(|reader, key| {
            self.text.push_str(if entries.is_empty() { "" } else { ", " });
            let (key_start, text_start) = (keys.len(), self.text.len());
            let key = without_nul(&key);
            keys.push_str(&key);
            self.string(&key);
            self.text.push_str(": ");
            self.value(reader)?;
            // Neither is longer than the longest jsonb, or its value is refused.
            let range = |start: usize, end: usize| start as u32..end as u32;
            entries.push(Entry {
                key: range(key_start, keys.len()),
                text: range(text_start, self.text.len()),
            });
            Ok::<_, ParseError>(())
        })?;
        let key = |entry: &Entry| {
            self.interrupts.item();
            let key = &keys[entry.key.start as usize..entry.key.end as usize];
            (key.len(), key)
        };
        if !entries.is_sorted_by(|a, b| key(a) < key(b)) {
            // Of one key the last comes first, and stays.
            entries
                .sort_unstable_by(|a, b| key(a).cmp(&key(b)).then(b.text.start.cmp(&a.text.start)));
            entries.dedup_by(|later, kept| key(later) == key(kept));
            let written = self.text.split_off(start);
            self.text.push('{');
            for (place, Entry { text, .. }) in entries.iter().enumerate() {
                self.text.push_str(if place > 0 { ", " } else { "" });
                let text = &written[text.start as usize - start..text.end as usize - start];
                self.interrupts.bytes(text.len());
                self.text.push_str(text);
            }
        }
        self.text.push('}');
        Ok(())
    }

    fn string(&mut self, string: &str) {
        write_string(string, &mut self.text, &self.interrupts);
    }

    /// A number without an exponent, with as many digits behind the point as were written.
    fn numeric(&mut self, number: Number<'_>) -> Result<(), ParseError> {
        self.write_numeric(number).ok_or_else(|| "a number that no numeric is".to_owned())
    }

    fn write_numeric(&mut self, number: Number<'_>) -> Option<()> {
        let number = number.text();
        let (negative, number) =
            number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let most = i64::from(i32::MAX / 2);
        let exponent = exponent.parse().ok().filter(|e: &i64| (1 - most..most).contains(e))?;
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

/// A string as a jsonb can hold it.
fn without_nul(string: &str) -> Cow<'_, str> {
    if string.contains('\0') { string.replace('\0', "\u{fffd}").into() } else { string.into() }
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
            (
                r#"{"b":1,"a":2,"b":[{"d":0,"c":1}],"aa":3,"a":4,"":5}"#,
                r#"{"": 5, "a": 4, "b": [{"c": 1, "d": 0}], "aa": 3}"#,
            ),
            (
                r#"[{"x\u0000":1,"x\ufffd":2},{"é":1,"zz":2,"z":3}]"#,
                "[{\"x\u{fffd}\": 2}, {\"z\": 3, \"zz\": 2, \"é\": 1}]",
            ),
        ] {
            assert_eq!(jsonb_text(json, usize::MAX, &|| {}).as_deref(), Some(text), "{json}");
            assert_eq!(jsonb_text(text, usize::MAX, &|| {}).as_deref(), Some(text), "{json}");
        }
        let least = format!("1e{}", i64::MIN);
        for json in ["", "[1", "1e131072", "1e-16384", "1e99999999999999999999", &least] {
            assert_eq!(jsonb_text(json, usize::MAX, &|| {}), None, "{json}");
        }
        let longest = jsonb_text("1e131071", usize::MAX, &|| {}).unwrap();
        assert_eq!((longest.len(), &longest[..2]), (131_072, "10"));
        assert_eq!(jsonb_text("0e999999999", usize::MAX, &|| {}).as_deref(), Some("0"));
    }
}
