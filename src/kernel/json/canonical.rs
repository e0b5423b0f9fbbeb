//! Canonical bytes and their fingerprint.

use std::io::Write;

use serde::{Serialize, Serializer};
use xxhash_rust::xxh64::{Xxh64, xxh64};

use crate::interrupts::Interrupts;

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

/// How many bytes a string of these bytes has as JSON, without its quotation marks; the server's too.
#[must_use]
pub fn escaped_bytes(string: &[u8]) -> usize {
    let added = |byte: &u8| match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 1,
        0..32 => 5, // \u001f
        _ => 0,
    };
    string.len() + string.iter().map(added).sum::<usize>()
}

/// The fingerprint of a value's canonical JSON.
#[must_use]
pub fn json_hash<T: Serialize + ?Sized>(value: &T) -> String {
    xxh64_hex(&json_bytes(value))
}

/// [`json_hash`] of a value that may be large, without holding its JSON.
pub(crate) fn large_json_hash<T: Serialize>(value: &T, check_interrupts: &dyn Fn()) -> String {
    struct Hashed<'a>(Xxh64, Interrupts<'a>);
    impl Write for Hashed<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            self.1.bytes(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut hashed = Hashed(Xxh64::new(0), Interrupts::new(check_interrupts));
    serde_json::to_writer(&mut hashed, value).expect("canonical types always serialise");
    format!("{:016x}", hashed.0.digest())
}

/// A list whose serialisation checks for interrupts.
pub(crate) struct Checked<'a, T>(pub &'a [T], pub &'a dyn Fn());

impl<T: Serialize> Serialize for Checked<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let interrupts = Interrupts::new(self.1);
        serializer.collect_seq(self.0.iter().inspect(|_| interrupts.item()))
    }
}

/// [`json_hash`] of an array whose items come one by one, without holding the array.
pub struct ArrayHasher {
    hasher: Xxh64,
    len: usize,
}

impl Default for ArrayHasher {
    fn default() -> Self {
        ArrayHasher { hasher: Xxh64::new(0), len: 0 }
    }
}

impl ArrayHasher {
    /// Adds the next item.
    pub fn push<T: Serialize + ?Sized>(&mut self, item: &T) {
        self.hasher.update(if self.len == 0 { b"[" } else { b"," });
        self.hasher.update(&json_bytes(item));
        self.len += 1;
    }

    /// How many items there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The fingerprint of the whole array.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.hasher.update(if self.len == 0 { b"[]" } else { b"]" });
        format!("{:016x}", self.hasher.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_counted_as_they_are_written() {
        let text: String = (0..=0x80).filter_map(char::from_u32).chain("é€𝄞".chars()).collect();
        assert_eq!(escaped_bytes(text.as_bytes()) + 2, json_bytes(&text).len());
    }

    #[test]
    fn xxh64_matches_published_values() {
        assert_eq!(xxh64_hex(b""), "ef46db3751d8e999");
        assert_eq!(xxh64_hex(b"a"), "d24ec4f1a98c6e5b");
    }

    #[test]
    fn an_array_hashed_item_by_item_is_the_array_hashed_whole() {
        for whole in [&[][..], &["a"], &["a", "\"", "c"]] {
            let mut hasher = ArrayHasher::default();
            whole.iter().for_each(|item| hasher.push(item));
            assert_eq!((hasher.len(), hasher.finish()), (whole.len(), json_hash(whole)));
            assert_eq!(large_json_hash(&Checked(whole, &|| {}), &|| {}), json_hash(whole));
        }
    }

    #[test]
    fn floats_take_the_shortest_binary32_form() {
        let shown: Vec<String> = [0.0f32, 1.0, 0.1, 1e-7, 123_456.79, 1e15, 3.4e38, 0.333_333_34]
            .iter()
            .map(json_text)
            .collect();
        let expected = ["0.0", "1.0", "0.1", "1e-7", "123456.79", "1e+15", "3.4e+38", "0.33333334"];
        assert_eq!(shown, expected);
    }
}
