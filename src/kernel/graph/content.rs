//! The content hash: a turn's text, normalised, under SHA-256.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::hex::{hex, is_lower_hex};
use crate::interrupts::Interrupts;

/// The text with CRLF and CR turned into LF and Unicode white space trimmed at both ends. Checks for interrupts.
#[must_use]
pub fn normalize<'a>(text: &'a str, check_interrupts: &dyn Fn()) -> Cow<'a, str> {
    let interrupts = Interrupts::new(check_interrupts);
    let trimmed = text.trim_matches(|c: char| {
        interrupts.bytes(c.len_utf8());
        c.is_whitespace()
    });
    let mut lines = trimmed.split('\r');
    let first = lines.next().unwrap_or_default();
    if first.len() == trimmed.len() {
        return Cow::Borrowed(trimmed);
    }
    let mut normal = String::with_capacity(trimmed.len());
    normal.push_str(first);
    for line in lines {
        normal.push('\n');
        normal.push_str(line.strip_prefix('\n').unwrap_or(line));
        interrupts.bytes(line.len() + 1);
    }
    Cow::Owned(normal)
}

/// SHA-256 of the normalised text, as 64 lower-case hex digits. Checks for interrupts.
#[must_use]
pub fn content_hash(text: &str, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut hash = Sha256::new();
    for piece in interrupts.pieces(normalize(text, check_interrupts).as_bytes()) {
        hash.update(piece);
    }
    hex(&hash.finalize())
}

/// SHA-256 as 64 lower-case hex digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Whether the text has the form of a content hash.
#[must_use]
pub fn is_content_hash(text: &str) -> bool {
    is_lower_hex(text, 64)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn normal(text: &str) -> Cow<'_, str> {
        normalize(text, &|| {})
    }

    #[test]
    fn normalisation_touches_line_ends_and_outer_white_space_only() {
        assert_eq!(normal("  Hello World  \n"), "Hello World");
        assert_eq!(normal("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(normal("a\r\r\n\r\r\n\nb"), "a\n\n\n\n\nb");
        assert_eq!(normal("\r\r\n"), "");
        assert_eq!(normal("\u{3000}x\u{2003}\u{85}\u{b}"), "x");
        assert_eq!(normal("\u{feff}x"), "\u{feff}x");
        assert_eq!(normal("\u{1c}x"), "\u{1c}x");
    }

    #[test]
    fn interrupts_are_checked_meanwhile() {
        let size = 1_000_000;
        for text in
            [" ".repeat(size), "\r".repeat(size) + "x", "x".repeat(size), "x\r".repeat(size)]
        {
            let checks = Cell::new(0);
            let _ = content_hash(&text, &|| checks.set(checks.get() + 1));
            assert!(checks.get() >= 15, "{}", checks.get());
        }
    }

    #[test]
    fn hashes_have_their_form() {
        let hash = content_hash("x", &|| {});
        assert_eq!(hash, sha256_hex(b"x"));
        assert!(is_content_hash(&hash));
        assert!(!is_content_hash(&hash.to_uppercase()));
        assert!(!is_content_hash("00"));
    }
}
