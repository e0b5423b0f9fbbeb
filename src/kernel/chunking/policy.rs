//! The parameters of chunking.

use std::str::FromStr;

use serde::Serialize;

use super::POLICY_VERSION;
use super::chunk::MAX_CHUNK_BYTES;
use crate::json::JsonValue;
use crate::json::canonical::{json_hash, json_text};
use crate::json::object::{Object, ParseError};
use crate::policy::{POLICY_LIMITS, PolicyError, check_length};

/// The largest number of milliseconds: that of an SQL integer.
const MAX_MS: i64 = i32::MAX as i64;

/// The largest number of characters: no chunk has more bytes.
const MAX_CHARS: i64 = MAX_CHUNK_BYTES as i64;

/// The largest number of events of a chunk.
const MAX_EVENTS: i64 = 65_536;

/// Valid parameters of `ft.recorder.chunking.v1`, in the contract's order.
///
/// Read them from text with [`FromStr`]; text is `default` or a JSON object in which missing keys take the
/// contract's values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ChunkingPolicy {
    max_chunk_chars: i64,
    max_chunk_events: i64,
    max_window_ms: i64,
    hard_gap_ms: i64,
    min_chunk_chars: i64,
    merge_window_ms: i64,
    overlap_chars: i64,
}

impl Default for ChunkingPolicy {
    fn default() -> Self {
        ChunkingPolicy {
            max_chunk_chars: 1800,
            max_chunk_events: 48,
            max_window_ms: 120_000,
            hard_gap_ms: 30_000,
            min_chunk_chars: 80,
            merge_window_ms: 8000,
            overlap_chars: 120,
        }
    }
}

impl ChunkingPolicy {
    /// The most characters of a chunk, overlap included; 1 to [`MAX_CHUNK_BYTES`].
    #[must_use]
    pub fn max_chunk_chars(&self) -> usize {
        self.max_chunk_chars as usize
    }

    /// The most events of a chunk; 1 to 65 536.
    #[must_use]
    pub fn max_chunk_events(&self) -> usize {
        self.max_chunk_events as usize
    }

    /// The most milliseconds from a chunk's first event to its latest.
    #[must_use]
    pub fn max_window_ms(&self) -> i64 {
        self.max_window_ms
    }

    /// A longer step from one event to the next is a hard boundary; in milliseconds.
    #[must_use]
    pub fn hard_gap_ms(&self) -> i64 {
        self.hard_gap_ms
    }

    /// A chunk of fewer characters may be glued to its neighbour; 0 turns glue off.
    #[must_use]
    pub fn min_chunk_chars(&self) -> usize {
        self.min_chunk_chars as usize
    }

    /// The most milliseconds between two chunks that are glued.
    #[must_use]
    pub fn merge_window_ms(&self) -> i64 {
        self.merge_window_ms
    }

    /// The most characters repeated after a soft split; 0 turns overlap off.
    #[must_use]
    pub fn overlap_chars(&self) -> usize {
        self.overlap_chars as usize
    }

    /// The canonical JSON text: every key, in the contract's order.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        json_text(self)
    }

    /// The fingerprint of the canonical text: 16 lower-case hex digits.
    #[must_use]
    pub fn hash(&self) -> String {
        json_hash(self)
    }

    fn from_object(json: JsonValue<'_>) -> Result<Self, ParseError> {
        let mut policy = Self::default();
        let mut object = Object::policy("chunking policy", json)?;
        if object.has("version") {
            let wanted = format_args!("{POLICY_VERSION:?}");
            object.read("version", wanted, |json| match json {
                JsonValue::String(version) => (version == POLICY_VERSION).then_some(()),
                _ => None,
            })?;
        }
        for (key, min, max, parameter) in [
            ("max_chunk_chars", 1, MAX_CHARS, &mut policy.max_chunk_chars),
            ("max_chunk_events", 1, MAX_EVENTS, &mut policy.max_chunk_events),
            ("max_window_ms", 0, MAX_MS, &mut policy.max_window_ms),
            ("hard_gap_ms", 0, MAX_MS, &mut policy.hard_gap_ms),
            ("min_chunk_chars", 0, MAX_CHARS, &mut policy.min_chunk_chars),
            ("merge_window_ms", 0, MAX_MS, &mut policy.merge_window_ms),
            ("overlap_chars", 0, MAX_CHARS, &mut policy.overlap_chars),
        ] {
            if object.has(key) {
                let wanted = format_args!("an integer between {min} and {max}");
                *parameter = object.read(key, wanted, |json| match json {
                    JsonValue::Number(number) => {
                        number.written_integer().filter(|n| (min..=max).contains(n))
                    }
                    _ => None,
                })?;
            }
        }
        object.finish()?;
        Ok(policy)
    }
}

impl FromStr for ChunkingPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        check_length("chunking", text)?;
        let text = text.trim_ascii();
        if text == "default" {
            return Ok(Self::default());
        }
        match JsonValue::read(text, POLICY_LIMITS, &|| {}) {
            Ok(json @ JsonValue::Object(_)) => {
                Self::from_object(json).map_err(PolicyError::Parameter)
            }
            Ok(JsonValue::String(name)) if name == "default" => Ok(Self::default()),
            Ok(other) => Err(PolicyError::Parameter(format!(
                "chunking policy must be a JSON object or \"default\", not {other}"
            ))),
            Err(error) => Err(PolicyError::of_json("chunking", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ChunkingPolicy, String> {
        text.parse().map_err(|error: PolicyError| error.to_string())
    }

    #[test]
    fn the_canonical_text_has_the_contracts_values_and_reads_back() {
        let default = ChunkingPolicy::default();
        assert_eq!(
            default.canonical_text(),
            r#"{"max_chunk_chars":1800,"max_chunk_events":48,"max_window_ms":120000,"hard_gap_ms":30000,"min_chunk_chars":80,"merge_window_ms":8000,"overlap_chars":120}"#
        );
        assert_eq!(
            default.hash(),
            crate::json::canonical::xxh64_hex(default.canonical_text().as_bytes())
        );
        let policy = parse(r#"{"overlap_chars":0}"#).unwrap();
        assert_eq!(parse(&policy.canonical_text()).unwrap(), policy);
        assert_eq!(parse("{}").unwrap(), default);
        assert_eq!(parse(" default ").unwrap(), default);
    }

    #[test]
    fn bad_policies_name_their_key() {
        let cases = [
            (
                r#"{"max_chunk_chars":0}"#,
                r#"chunking policy key "max_chunk_chars" must be an integer between 1 and 16777216, not 0"#,
            ),
            (
                r#"{"max_chunk_chars":16777217}"#,
                r#"chunking policy key "max_chunk_chars" must be an integer between 1 and 16777216, not 16777217"#,
            ),
            (
                r#"{"max_chunk_events":65537}"#,
                r#"chunking policy key "max_chunk_events" must be an integer between 1 and 65536, not 65537"#,
            ),
            (
                r#"{"overlap_chars":1.0}"#,
                r#"chunking policy key "overlap_chars" must be an integer between 0 and 16777216, not 1.0"#,
            ),
            (
                r#"{"hard_gap_ms":-1}"#,
                r#"chunking policy key "hard_gap_ms" must be an integer between 0 and 2147483647, not -1"#,
            ),
            (r#"{"chars":1}"#, r#"chunking policy has no key "chars""#),
            (
                r#"{"overlap_chars":1,"overlap_chars":1}"#,
                r#"chunking policy key "overlap_chars" is given twice"#,
            ),
            (
                r#"{"version":"v2"}"#,
                r#"chunking policy key "version" must be "ft.recorder.chunking.v1", not "v2""#,
            ),
            ("[]", r#"chunking policy must be a JSON object or "default", not an array"#),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err(), message);
        }
        assert!(parse("broad").unwrap_err().starts_with("chunking policy is not valid JSON"));
    }
}
