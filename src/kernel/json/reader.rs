//! A reader of JSON from outside, which keeps duplicate keys, key order and the digits of numbers. It has limits, and
//! can be cancelled.

use std::borrow::Cow;
use std::fmt;

use super::number::Number;
use super::value::JsonValue;
use crate::interrupts::{CHECKED_BYTES, Interrupts};

/// The deepest nesting of arrays and objects.
pub const MAX_DEPTH: u32 = 128;

/// Limits of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// The longest text, in bytes.
    pub bytes: usize,
    /// The most values, counting arrays, objects and all that is in them.
    pub values: usize,
    /// The longest string or number, in bytes of the text.
    pub token_bytes: usize,
}

/// Why a text is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// It is not JSON: what is wrong, the line, and the bytes of the line up to there.
    Syntax(&'static str, usize, usize),
    /// It is nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// It has more bytes than [`JsonLimits::bytes`]: how many, and the limit.
    TooLong(usize, usize),
    /// It has more values than [`JsonLimits::values`].
    TooManyValues(usize),
    /// It has a string or number of more bytes than [`JsonLimits::token_bytes`].
    LongToken(usize),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(what, line, column) => {
                write!(f, "not valid JSON: {what} at line {line} column {column}")
            }
            Self::TooDeep => write!(f, "JSON nested more than {MAX_DEPTH} deep"),
            Self::TooLong(bytes, most) => write!(f, "JSON of {bytes} bytes, more than {most}"),
            Self::TooManyValues(most) => write!(f, "JSON of more than {most} values"),
            Self::LongToken(most) => {
                write!(f, "JSON with a string or number of more than {most} bytes")
            }
        }
    }
}

impl std::error::Error for JsonError {}

impl JsonError {
    /// Whether a limit was exceeded, so that the text may be JSON or not.
    #[must_use]
    pub fn is_limit(self) -> bool {
        matches!(self, Self::TooLong(..) | Self::TooManyValues(_) | Self::LongToken(_))
    }
}

/// Reads a text value by value, without holding values that are not needed.
pub struct JsonReader<'a, 'c> {
    text: &'a str,
    at: usize,
    depth: u32,
    values_left: usize,
    limits: JsonLimits,
    checked_at: usize,
    replaces_surrogates: bool,
    check_interrupts: &'c dyn Fn(),
}

impl<'a, 'c> JsonReader<'a, 'c> {
    /// A reader at the beginning of a text.
    ///
    /// # Errors
    /// [`JsonError::TooLong`]
    pub fn new(
        text: &'a str,
        limits: JsonLimits,
        check_interrupts: &'c dyn Fn(),
    ) -> Result<Self, JsonError> {
        if text.len() > limits.bytes {
            return Err(JsonError::TooLong(text.len(), limits.bytes));
        }
        let values_left = limits.values;
        Ok(JsonReader {
            text,
            at: 0,
            depth: 0,
            values_left,
            limits,
            checked_at: 0,
            replaces_surrogates: false,
            check_interrupts,
        })
    }

    /// The same reader, which takes a lone surrogate in an escape for U+FFFD.
    pub fn replacing_surrogates(self) -> Self {
        JsonReader { replaces_surrogates: true, ..self }
    }

    /// How many more values it reads.
    pub fn values_left(&self) -> usize {
        self.values_left
    }

    /// Whether the next value is an array.
    pub fn at_array(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    /// Whether the next value is an object.
    pub fn at_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// The next value.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn value(&mut self) -> Result<JsonValue<'a>, JsonError> {
        if self.at_array() {
            let mut items = Vec::new();
            self.array(|reader| {
                items.push(reader.value()?);
                Ok::<_, JsonError>(())
            })?;
            Ok(JsonValue::Array(items))
        } else if self.at_object() {
            let mut entries = Vec::new();
            self.object(|reader, key| {
                entries.push((key, reader.value()?));
                Ok::<_, JsonError>(())
            })?;
            Ok(JsonValue::Object(entries))
        } else {
            self.scalar()
        }
    }

    /// [`JsonReader::value`] with a limit on the number of values in it.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn value_within(&mut self, values: usize) -> Result<JsonValue<'a>, JsonError> {
        let left = self.values_left;
        self.values_left = left.min(values);
        let before = self.values_left;
        let value = self.value().map_err(|error| match error {
            JsonError::TooManyValues(_) if before < left => JsonError::TooManyValues(values),
            error => error,
        });
        self.values_left = left - (before - self.values_left);
        value
    }

    /// Skips the next value.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn skip(&mut self) -> Result<(), JsonError> {
        if self.at_array() {
            self.array(Self::skip)
        } else if self.at_object() {
            self.object(|reader, _| reader.skip())
        } else {
            self.scalar().map(|_| ())
        }
    }

    /// The next value, an array, item by item: `item` reads each.
    ///
    /// # Errors
    /// See [`JsonError`]; those of `item`.
    pub fn array<E: From<JsonError>>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[')?;
        let mut more = self.peek() != Some(b']');
        while more {
            item(self)?;
            more = self.has_more(b']', "expected `,` or `]`", "EOF while parsing a list")?;
        }
        self.close();
        Ok(())
    }

    /// The next value, an object, entry by entry: `entry` reads the value of each key.
    ///
    /// # Errors
    /// See [`JsonError`]; those of `entry`.
    pub fn object<E: From<JsonError>>(
        &mut self,
        mut entry: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        const EOF: &str = "EOF while parsing an object";
        self.open(b'{')?;
        let mut more = self.peek() != Some(b'}');
        while more {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("key must be a string", EOF).into());
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected("expected `:`", EOF).into());
            }
            self.at += 1;
            entry(self, key)?;
            more = self.has_more(b'}', "expected `,` or `}`", EOF)?;
        }
        self.close();
        Ok(())
    }

    /// Whether a comma and another item follow, or the bracket that closes the list.
    fn has_more(
        &mut self,
        close: u8,
        expected: &'static str,
        at_end: &'static str,
    ) -> Result<bool, JsonError> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                if self.peek() == Some(close) {
                    return Err(self.syntax("trailing comma"));
                }
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            _ => Err(self.unexpected(expected, at_end)),
        }
    }

    /// Ends the text: nothing but white space is left.
    ///
    /// # Errors
    /// [`JsonError::Syntax`]
    pub fn finish(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.syntax("trailing characters")),
        }
    }

    fn open(&mut self, bracket: u8) -> Result<(), JsonError> {
        self.count()?;
        match self.peek() {
            Some(byte) if byte == bracket => {}
            _ => return Err(self.unexpected("expected value", "EOF while parsing a value")),
        }
        if self.depth == MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    fn count(&mut self) -> Result<(), JsonError> {
        self.values_left =
            self.values_left.checked_sub(1).ok_or(JsonError::TooManyValues(self.limits.values))?;
        Ok(())
    }

    fn scalar(&mut self) -> Result<JsonValue<'a>, JsonError> {
        self.count()?;
        match self.peek() {
            Some(b'"') => self.string().map(JsonValue::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(JsonValue::Number),
            Some(b'n') => self.name("null", JsonValue::Null),
            Some(b't') => self.name("true", JsonValue::Bool(true)),
            Some(b'f') => self.name("false", JsonValue::Bool(false)),
            _ => Err(self.unexpected("expected value", "EOF while parsing a value")),
        }
    }

    fn name(&mut self, name: &str, value: JsonValue<'a>) -> Result<JsonValue<'a>, JsonError> {
        for byte in name.bytes() {
            match self.byte() {
                Some(found) if found == byte => self.at += 1,
                _ => return Err(self.unexpected("expected ident", "EOF while parsing a value")),
            }
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Number<'a>, JsonError> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => {
                self.at += 1;
                if matches!(self.byte(), Some(b'0'..=b'9')) {
                    return Err(self.syntax("invalid number"));
                }
            }
            _ => self.digits(start)?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits(start)?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits(start)?;
        }
        Ok(Number(&self.text[start..self.at]))
    }

    /// One or more digits of the number that begins at `start`.
    fn digits(&mut self, start: usize) -> Result<(), JsonError> {
        let first = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
            self.progress();
            if self.at - start > self.limits.token_bytes {
                return Err(JsonError::LongToken(self.limits.token_bytes));
            }
        }
        if self.at == first {
            return Err(self.unexpected("invalid number", "EOF while parsing a value"));
        }
        Ok(())
    }

    /// The string that begins here.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let start = self.at;
        let mut piece = start;
        let mut unescaped: Option<String> = None;
        loop {
            self.skip_plain(start)?;
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let text = unescaped.get_or_insert_default();
                    text.push_str(&self.text[piece..self.at]);
                    self.at += 1;
                    text.push(self.escaped()?);
                    piece = self.at;
                }
                _ => {
                    let what = "control character (\\u0000-\\u001F) found while parsing a string";
                    return Err(self.unexpected(what, "EOF while parsing a string"));
                }
            }
        }
        let last = &self.text[piece..self.at];
        self.at += 1;
        Ok(match unescaped {
            None => Cow::Borrowed(last),
            Some(mut text) => {
                text.push_str(last);
                Cow::Owned(text)
            }
        })
    }

    /// Skips to the next byte of a string that is special.
    fn skip_plain(&mut self, start: usize) -> Result<(), JsonError> {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..=0x1f);
        loop {
            let end = self.text.len().min(self.at + CHECKED_BYTES);
            let piece = &self.text.as_bytes()[self.at..end];
            let found = piece.iter().position(is_special);
            self.at += found.unwrap_or(piece.len());
            if self.at - start > self.limits.token_bytes {
                return Err(JsonError::LongToken(self.limits.token_bytes));
            }
            self.progress();
            if found.is_some() || self.at == self.text.len() {
                return Ok(());
            }
        }
    }

    /// The character of an escape, read after its `\`.
    fn escaped(&mut self) -> Result<char, JsonError> {
        let escape = self.byte();
        let character = match escape {
            Some(b'"' | b'\\' | b'/') => char::from(escape.unwrap_or_default()),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.escaped_unit();
            }
            _ => return Err(self.unexpected("invalid escape", "EOF while parsing a string")),
        };
        self.at += 1;
        Ok(character)
    }

    /// The character of four hex digits, and of the second half of a surrogate pair.
    fn escaped_unit(&mut self) -> Result<char, JsonError> {
        let mut units = [self.unit()?, 0];
        let is_pair = (0xd800..0xdc00).contains(&units[0]);
        let after_first = self.at;
        if is_pair && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            units[1] = self.unit()?;
        }
        let used = &units[..if is_pair { 2 } else { 1 }];
        match char::decode_utf16(used.iter().copied()).next() {
            Some(Ok(character)) => Ok(character),
            _ if self.replaces_surrogates => {
                // The escape after it is one of its own.
                self.at = after_first;
                Ok(char::REPLACEMENT_CHARACTER)
            }
            _ => Err(self.syntax("lone surrogate in hex escape")),
        }
    }

    fn unit(&mut self) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = match self.byte() {
                Some(byte) => char::from(byte).to_digit(16),
                None => return Err(self.syntax("EOF while parsing a string")),
            };
            unit = unit * 16 + digit.ok_or_else(|| self.syntax("invalid escape"))? as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.progress();
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
            self.progress();
        }
        self.byte()
    }

    fn progress(&mut self) {
        if self.at - self.checked_at >= CHECKED_BYTES {
            self.checked_at = self.at;
            (self.check_interrupts)();
        }
    }

    /// A syntax error at the byte here, or at the end of the text.
    fn unexpected(&self, what: &'static str, at_end: &'static str) -> JsonError {
        self.syntax(if self.byte().is_some() { what } else { at_end })
    }

    /// A syntax error at the byte here.
    fn syntax(&self, what: &'static str) -> JsonError {
        let read = &self.text.as_bytes()[..self.text.len().min(self.at + 1)];
        let interrupts = Interrupts::new(self.check_interrupts);
        let (mut lines, mut line_start, mut piece_start) = (0, 0, 0);
        for piece in interrupts.pieces(read) {
            lines += piece.iter().filter(|byte| **byte == b'\n').count();
            if let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') {
                line_start = piece_start + last + 1;
            }
            piece_start += piece.len();
        }
        JsonError::Syntax(what, lines + 1, read.len() - line_start)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits { bytes: 1 << 20, values: 1 << 20, token_bytes: 1 << 20 };

    fn read(text: &str) -> Result<JsonValue<'_>, JsonError> {
        JsonValue::read(text, LIMITS, &|| {})
    }

    #[test]
    fn duplicates_order_and_number_spelling_survive() {
        let JsonValue::Object(entries) = read(r#"{"b":1,"a":1.0,"b":1e2}"#).unwrap() else {
            panic!("an object was written");
        };
        let expected = [("b", "1"), ("a", "1.0"), ("b", "1e2")];
        let expected =
            expected.map(|(key, number)| (key.into(), JsonValue::Number(Number(number))));
        assert_eq!(entries, expected);
    }

    #[test]
    fn each_limit_is_kept() {
        let within = |text, limits| JsonValue::read(text, limits, &|| {}).err();
        let text = r#"["12345",12345,[]]"#;
        let exact = JsonLimits { bytes: text.len(), values: 4, token_bytes: 5 };
        assert_eq!(within(text, exact), None);
        let error = within(text, JsonLimits { bytes: 17, ..exact });
        assert_eq!(error, Some(JsonError::TooLong(18, 17)));
        assert_eq!(
            within(text, JsonLimits { values: 3, ..exact }),
            Some(JsonError::TooManyValues(3))
        );
        for text in [r#""12345""#, "12345", "1.234", "123e5", r#""\u0061""#, r#"{"12345":1}"#] {
            let error = within(text, JsonLimits { token_bytes: 4, ..exact });
            assert_eq!(error, Some(JsonError::LongToken(4)), "{text}");
            assert!(error.is_some_and(JsonError::is_limit));
        }
        assert!(!within("[", exact).is_some_and(JsonError::is_limit));
    }

    #[test]
    fn interrupts_are_checked_by_bytes_within_and_between_values() {
        let long = 10 * CHECKED_BYTES;
        for text in [
            " ".repeat(long) + "1",
            "1".repeat(long),
            format!("[{}1]", "1,".repeat(long / 2)),
            format!(r#""{}""#, "a".repeat(long)),
            format!(r#""{}""#, r"\n".repeat(long / 2)),
        ] {
            let checks = Cell::new(0);
            JsonValue::read(&text, LIMITS, &|| checks.set(checks.get() + 1)).unwrap();
            assert!((9..=11).contains(&checks.get()), "{} checks: {}", checks.get(), &text[..9]);
        }
    }

    #[test]
    fn errors_of_syntax_say_where() {
        for (text, line, column) in [("{", 1, 1), ("[1,\n 2 3]", 2, 4), ("\n\n[nul", 3, 4)] {
            let Err(JsonError::Syntax(_, at_line, at_column)) = read(text) else {
                panic!("{text:?} is not JSON");
            };
            assert_eq!((at_line, at_column), (line, column), "{text:?}");
        }
    }

    #[test]
    fn a_value_within_a_text_has_a_limit_of_its_own() {
        let mut reader = JsonReader::new("[[1,2],[1,2,3],4]", LIMITS, &|| {}).unwrap();
        let mut sizes = Vec::new();
        let read = reader.array(|reader| {
            sizes.push(reader.value_within(3).is_ok());
            if sizes.last() == Some(&false) { Err(JsonError::TooDeep) } else { Ok(()) }
        });
        assert_eq!((read, sizes), (Err(JsonError::TooDeep), vec![true, false]));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = MAX_DEPTH as usize;
        assert!(read(&("[".repeat(deep) + &"]".repeat(deep))).is_ok());
        for open in ["[", r#"{"a":"#, r#"[{"a":"#] {
            assert_eq!(read(&open.repeat(100_000)), Err(JsonError::TooDeep), "{open}");
        }
        let mut reader = JsonReader::new("[[[[", JsonLimits { ..LIMITS }, &|| {}).unwrap();
        reader.depth = MAX_DEPTH - 1;
        assert_eq!(reader.skip(), Err(JsonError::TooDeep));
    }

    #[test]
    fn strings_are_unescaped() {
        let text = r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000z""#;
        assert_eq!(read(text), Ok(JsonValue::String("a\"\\/\u{8}\u{c}\n\r\té😀\0z".into())));
        for text in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0061""#, r#""\ud800\n""#] {
            assert!(matches!(read(text), Err(JsonError::Syntax(..))), "{text}");
        }
    }

    #[test]
    fn numbers_are_integers_by_value() {
        fn integer(text: &str) -> Option<i64> {
            Number(text).integer()
        }
        for text in ["17", "17.0", "17.000", "1.7e1", "1.7E+1", "170e-1", "0.17e2", "0.0017e4"] {
            assert_eq!(integer(text), Some(17), "{text}");
            assert_eq!(integer(&format!("-{text}")), Some(-17), "{text}");
        }
        for text in ["0", "-0", "0.0", "0e999999999999999999999", "-0.00e-5"] {
            assert_eq!(integer(text), Some(0), "{text}");
        }
        for text in [
            "17.00000000000000000000001",
            "17.5",
            "1e-1",
            "9223372036854775808",
            "9223372036854775807.1",
            "1e19",
            "1e99999999999999999999999",
            "1e9223372036854775807",
            "1e-9223372036854775808",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer("9223372036854775807.00"), Some(i64::MAX));
        assert_eq!(integer("-922337203685477580800e-2"), Some(i64::MIN));
        assert_eq!(Number("17.0").written_integer(), None);
    }

    #[test]
    fn every_binary32_reads_back_from_both_spellings() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f32::from_bits(bits);
            if number.is_finite() {
                let wide = f64::from(number);
                for text in [
                    serde_json::to_string(&number).unwrap(),
                    serde_json::to_string(&wide).unwrap(),
                    format!("{number:e}"),
                    format!("{wide:E}"),
                    format!("{wide}"),
                ] {
                    let read = Number(&text).binary32();
                    assert_eq!(read.map(f32::to_bits), Some(bits), "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_near_a_binary32_is_none() {
        for text in [
            "0.100000001",
            "0.10000000000000001",
            "0.100000000000000000000001",
            "0.1000000014901161",
            "0.100000001490116119384765625",
            "17.00000000000000000000001",
            "16777217",
            "1e-400",
            "-1e-46",
            "1e39",
            "340282350000000000000000000000000000001",
        ] {
            assert_eq!(Number(text).binary32(), None, "{text}");
        }
    }
}
