//! Texts with random changes: reading them never panics, and what still verifies has the values of the genuine export.

use fastrand::Rng;
use kernel::export::parse::ParsedExport;
use kernel::json::{JsonError, JsonLimits, JsonValue};
use kernel::policy::SlicePolicy;
use serde_json::Value;

use crate::claim::{Claim, reason_of};

/// How many texts of each kind are changed in a normal run, and in `make test-long`.
const SOME: u64 = 20_000;
const MANY: u64 = 2_000_000;

/// Pieces that are likely to break a reader.
const PIECES: [&str; 40] = [
    "",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\u",
    "null",
    "true",
    "0",
    "-",
    "-0",
    "-0.0",
    "1e400",
    "1e-400",
    "1e39",
    "1E+38",
    "0.1",
    "1.0",
    "e",
    ".",
    "NaN",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "😀",
    "\u{301}",
    "\"id\":",
    "\"turns\":[]",
    "slice_policy_v1",
    "gk3.",
];

/// A text with a few changes: pieces inserted, parts removed, doubled or moved, characters replaced.
fn broken(text: &str, random: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..=chars.len());
        let end = (at + random.usize(1..16)).min(chars.len());
        match random.u8(..6) {
            0 => drop(chars.splice(at..at, PIECES[random.usize(..PIECES.len())].chars())),
            1 => drop(chars.splice(at..end, PIECES[random.usize(..PIECES.len())].chars())),
            2 => drop(chars.drain(at..end)),
            3 => {
                let part: Vec<char> = chars[at..end].to_vec();
                chars.splice(at..at, part);
            }
            4 => {
                let part: Vec<char> = chars.drain(at..end).collect();
                let to = random.usize(..=chars.len());
                chars.splice(to..to, part);
            }
            _ if at < chars.len() => chars[at] = random.char(..),
            _ => chars.truncate(random.usize(..=chars.len())),
        }
    }
    chars.into_iter().collect()
}

fn exports_hold(texts: u64, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let genuine = Claim::genuine().signed().text();
    let value = |text: &str| format!("{:?}", ParsedExport::parse(text, &|| ()));
    let expected = value(&genuine);
    let mut valid = 0;
    for _ in 0..texts {
        let text = broken(&genuine, &mut random);
        if reason_of(&text) == "ok" {
            valid += 1;
            assert_eq!(value(&text), expected, "{text}");
        }
    }
    // Some changes have no effect, such as white space between tokens or an escaped letter.
    assert!(valid < texts / 20, "{valid} of {texts}");
}

fn policies_hold(texts: u64, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let genuine = concat!(
        r#"{"version":"slice_policy_v1","max_nodes":256,"max_radius":10,"#,
        r#""phase_weights":{"synthesis":1.0,"planning":0.9},"salience_weight":0.3,"include_siblings":true}"#
    );
    for _ in 0..texts {
        let text = broken(genuine, &mut random);
        if let Ok(policy) = text.parse::<SlicePolicy>() {
            assert!((1..=10_000).contains(&policy.max_nodes()), "{text}");
            assert_eq!(policy.canonical_text().parse(), Ok(policy), "{text}");
        }
    }
}

/// What is read, as serde_json reads it.
fn value_of(json: JsonValue<'_>) -> Value {
    match json {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(on) => Value::Bool(on),
        JsonValue::Number(number) => serde_json::from_str(number.text()).unwrap(),
        JsonValue::String(text) => Value::String(text.into_owned()),
        JsonValue::Array(items) => items.into_iter().map(value_of).collect(),
        JsonValue::Object(entries) => {
            entries.into_iter().map(|(key, value)| (key.into_owned(), value_of(value))).collect()
        }
    }
}

fn has_number_beyond_binary64(json: &JsonValue<'_>) -> bool {
    match json {
        JsonValue::Number(number) => number.text().parse::<f64>().unwrap().is_infinite(),
        JsonValue::Array(items) => items.iter().any(has_number_beyond_binary64),
        JsonValue::Object(entries) => {
            entries.iter().any(|(_, value)| has_number_beyond_binary64(value))
        }
        _ => false,
    }
}

#[test]
fn texts_are_json_where_another_reader_says_so() {
    let limits = JsonLimits { bytes: usize::MAX, values: usize::MAX, token_bytes: usize::MAX };
    let mut random = Rng::with_seed(3);
    let genuine = r#"{"a":[1,-0.5e+3,true,null,"x\"\\\u00e9\ud83d\ude00é"],"b":{"c":{}, "d":[ ]}}"#;
    let mut valid = 0;
    for _ in 0..SOME {
        let text = broken(genuine, &mut random);
        let read = JsonValue::read(&text, limits, &|| ());
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => {
                valid += 1;
                assert_eq!(value_of(read.unwrap()), value, "{text}");
            }
            // The other reader takes no number beyond binary64.
            Err(_) => match read {
                Ok(json) => assert!(has_number_beyond_binary64(&json), "{text}"),
                Err(error) => assert!(matches!(error, JsonError::Syntax(..)), "{text}"),
            },
        }
    }
    assert!(valid > SOME / 100, "{valid}");
}

#[test]
fn broken_exports_neither_panic_nor_verify() {
    exports_hold(SOME, 1);
}

#[test]
fn broken_policies_do_not_panic() {
    policies_hold(SOME, 2);
}

#[test]
#[ignore = "long"]
fn millions_of_broken_exports_neither_panic_nor_verify() {
    exports_hold(MANY, fastrand::u64(..));
}

#[test]
#[ignore = "long"]
fn millions_of_broken_policies_do_not_panic() {
    policies_hold(MANY, fastrand::u64(..));
}
