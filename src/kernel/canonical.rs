//! Canonical bytes and their fingerprint.

use serde::Serialize;
use xxhash_rust::xxh64::xxh64;

/// The version of the export's shape (SlicePolicy v1 §10.1); part of every fingerprint.
pub const SCHEMA_VERSION: &str = "1.0.0";

/// The 16 lower-case hex digits of xxHash64 (seed 0).
#[must_use]
pub fn xxh64_hex(bytes: &[u8]) -> String {
    format!("{:016x}", xxh64(bytes, 0))
}

/// Canonical JSON: compact, keys in the order the type declares them, floats in the shortest
/// form that reads back as the same binary32.
#[must_use]
pub fn json_bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    // The types given here have string keys and no fallible Serialize of their own.
    serde_json::to_vec(value).expect("canonical types always serialise")
}

/// [`json_bytes`] as text.
#[must_use]
pub fn json_text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("canonical types always serialise")
}

/// The fingerprint of a value's canonical JSON.
#[must_use]
pub fn json_hash<T: Serialize + ?Sized>(value: &T) -> String {
    xxh64_hex(&json_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xxh64_matches_published_values() {
        assert_eq!(xxh64_hex(b""), "ef46db3751d8e999");
        assert_eq!(xxh64_hex(b"a"), "d24ec4f1a98c6e5b");
    }

    #[test]
    fn floats_take_the_shortest_binary32_form() {
        let shown: Vec<String> = [
            0.0f32,
            1.0,
            0.1,
            1e-7,
            123_456.79,
            1e15,
            3.4e38,
            0.333_333_34,
        ]
        .iter()
        .map(json_text)
        .collect();
        let expected = [
            "0.0",
            "1.0",
            "0.1",
            "1e-7",
            "123456.79",
            "1e+15",
            "3.4e+38",
            "0.33333334",
        ];
        assert_eq!(shown, expected);
    }
}
