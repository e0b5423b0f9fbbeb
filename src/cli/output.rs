//! Writing lines, and making text from files safe to print.

/// Writes a line; an error becomes a message.
macro_rules! line {
    ($out:expr, $($part:tt)*) => {
        writeln!($out, $($part)*).map_err(|error| error.to_string())?
    };
}
pub(crate) use line;

/// The text with its control characters, and those that change the direction of text, escaped.
pub(crate) fn escaped(text: &str) -> String {
    let is_safe = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_safe(c) { safe.push(c) } else { safe.extend(c.escape_unicode()) }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_see_no_control_characters() {
        assert_eq!(escaped("a\u{1b}[31mb\n\u{202e}ü"), "a\\u{1b}[31mb\\u{a}\\u{202e}ü");
    }
}
