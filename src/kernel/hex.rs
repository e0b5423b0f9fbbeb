//! Hex digits.

/// Lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Whether a text is this many lower-case hex digits.
#[must_use]
pub fn is_lower_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The most digits that are read: hashes and MACs have 64 at most. Reading them looks at no interrupts.
const MAX_DIGITS: usize = 128;

/// The bytes of lower-case hex digits; `None` for other texts, and for more than 128 digits.
#[must_use]
pub fn from_lower_hex(text: &str) -> Option<Vec<u8>> {
    let length = text.len();
    if length > MAX_DIGITS || !length.is_multiple_of(2) || !is_lower_hex(text, length) {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_DIGITS, from_lower_hex, hex};

    #[test]
    fn as_many_digits_are_read_as_a_hash_may_have() {
        let bytes = [0xab; MAX_DIGITS / 2];
        assert_eq!(from_lower_hex(&hex(&bytes)).as_deref(), Some(&bytes[..]));
        for text in ["a", "aB", "0g", &"a".repeat(MAX_DIGITS + 2)] {
            assert_eq!(from_lower_hex(text), None, "{text}");
        }
    }
}
