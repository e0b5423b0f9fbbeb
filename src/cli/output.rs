//! Writing lines, and making text from files safe to print.

use std::io::Write;

use anstyle::Style;
use kernel::drawing::style::is_misleading;

use crate::Failure;

/// The longest message of an error, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// Writes a line, escaped: whatever a file or a server says may be in it. An error becomes a message.
macro_rules! line {
    ($out:expr, $($part:tt)*) => {
        $crate::output::write_line($out, &format!($($part)*))?
    };
}
pub(crate) use line;

pub(crate) fn write_line(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    writeln!(out, "{}", escaped(text)).map_err(|error| error.to_string())
}

/// Writes a line with a word in a colour.
pub(crate) fn write_verdict(
    out: &mut impl Write,
    before: &str,
    (style, word): (Style, &str),
    after: &str,
) -> Result<(), Failure> {
    let (before, word, after) = (escaped(before), escaped(word), escaped(after));
    writeln!(out, "{before}{style}{word}{style:#}{after}").map_err(|error| error.to_string())
}

/// The message of an error as it is printed: escaped, and of a long one the beginning.
pub(crate) fn message(text: &str) -> String {
    escaped(&shortened(text, MAX_MESSAGE_BYTES))
}

/// The text, or its beginning where it is longer than so many bytes.
pub(crate) fn shortened(text: &str, max_bytes: usize) -> String {
    let end = text.floor_char_boundary(max_bytes);
    if end == text.len() { text.to_owned() } else { format!("{}...", &text[..end]) }
}

/// Whether a terminal prints the character and does nothing else.
fn is_safe(c: char) -> bool {
    !c.is_control() && !is_misleading(c)
}

/// The text with its control characters but the tab, and those that change the direction of text, escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_safe(c) || c == '\t' { safe.push(c) } else { safe.extend(c.escape_unicode()) }
    }
    safe
}

/// JSON with the same characters escaped as JSON does it.
pub(crate) fn escaped_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_safe(c) {
            safe.push(c);
        } else {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        }
    }
    safe
}

/// Writes a line to the log, the error stream. No token, no password and no text of a turn goes there.
pub(crate) fn tell(text: &str) {
    _ = writeln!(anstream::stderr(), "{}", message(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_value() {
        let text = "{\"s\":\"a\u{9b}\u{7f}\u{202e}\u{61c}\u{feff}ü\t\"}".replace('\t', "");
        let escaped = escaped_json(&text);
        let hidden = ['\u{9b}', '\u{7f}', '\u{202e}', '\u{61c}', '\u{feff}'];
        assert!(!escaped.contains(hidden), "{escaped}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&escaped), value(&text));
    }

    #[test]
    fn terminals_see_no_control_characters() {
        assert_eq!(escaped("a\u{1b}[31mb\n\u{202e}ü"), "a\\u{1b}[31mb\\u{a}\\u{202e}ü");
    }
}
