//! The content hash: a turn's text, normalised, under SHA-256.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::export::canonical::{hex, is_lower_hex};

/// The text with CRLF and CR turned into LF and Unicode white space trimmed at both ends.
#[must_use]
pub fn normalize(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    if trimmed.contains('\r') {
        Cow::Owned(trimmed.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(trimmed)
    }
}

/// SHA-256 of the normalised text, as 64 lower-case hex digits.
#[must_use]
pub fn content_hash(text: &str) -> String {
    sha256_hex(normalize(text).as_bytes())
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
    use super::*;

    #[test]
    fn normalisation_touches_line_ends_and_outer_white_space_only() {
        assert_eq!(normalize("  Hello World  \n"), "Hello World");
        assert_eq!(normalize("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(normalize("\r\r\n"), "");
        assert_eq!(normalize("\u{3000}x\u{2003}\u{85}\u{b}"), "x");
        assert_eq!(normalize("\u{feff}x"), "\u{feff}x");
        assert_eq!(normalize("\u{1c}x"), "\u{1c}x");
    }

    #[test]
    fn hashes_have_their_form() {
        assert!(is_content_hash(&content_hash("x")));
        assert!(!is_content_hash(&content_hash("x").to_uppercase()));
        assert!(!is_content_hash("00"));
    }
}
