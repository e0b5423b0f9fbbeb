//! Reading JSON of any size in bounded memory: values are taken one after the other, each within limits.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use struson::reader::{
    JsonReader, JsonStreamReader, ReaderError, ReaderSettings, SyntaxErrorKind, ValueType,
};

use super::value::{Map, Number, Value};

/// Line and column in a file, counted from 1; a column of 0 means the whole line.
pub(super) type LineColumn = (u64, u64);

/// The place of a record that is not known.
pub(super) const UNKNOWN: LineColumn = (0, 0);

/// The longest value that is read, in bytes of its strings and keys, and [`ELEMENT_BYTES`] for each value in it.
pub(super) const MAX_VALUE_BYTES: usize = 16 << 20;

/// What a value within a value counts, about what it takes in memory.
const ELEMENT_BYTES: usize = 64;

/// The deepest value that is read, in levels of arrays and objects.
const MAX_VALUE_DEPTH: usize = 64;

/// The deepest document, in levels of arrays and objects: exports nest answers in what they answer.
const MAX_DOCUMENT_DEPTH: u32 = 20_000;

/// The longest key of an object and the longest number, in bytes.
const MAX_KEY_BYTES: usize = 1 << 20;

/// What is kept of a file inside a `data:` URL: its media type.
const MAX_DATA_URL_BYTES: usize = 128;

/// A value, or why it cannot be taken. The reader is positioned after it in both cases.
pub(super) type Taken = Result<Value, String>;

/// The JSON value in a line.
pub(super) fn value_in(line: &[u8]) -> Taken {
    only_value(JsonStream::new(line))
}

/// The JSON value in a line, with the files in it.
pub(super) fn whole_value_in(line: &[u8]) -> Taken {
    only_value(JsonStream { keeps_files: true, ..JsonStream::new(line) })
}

fn only_value(mut json: JsonStream<&[u8]>) -> Taken {
    let value = json.value().and_then(|value| json.end().map(|()| value));
    value.unwrap_or_else(|error| Err(explained(error).0))
}

/// What is wrong with a document, and where.
pub(super) fn explained(error: ReaderError) -> (String, LineColumn) {
    let (why, location) = match error {
        ReaderError::SyntaxError(error) => {
            (format!("not JSON: {}", syntax_error(&error.kind)), error.location)
        }
        ReaderError::IoError { error, location } => (error.to_string(), location),
        ReaderError::MaxNestingDepthExceeded { max_nesting_depth, location } => {
            (format!("deeper than {max_nesting_depth} levels"), location)
        }
        ReaderError::UnsupportedNumberValue { location, .. } => {
            ("a number with too many digits".to_owned(), location)
        }
        ReaderError::UnexpectedValueType { location, expected, actual } => {
            (format!("expected {expected}, not {actual}"), location)
        }
        ReaderError::UnexpectedStructure { location, kind } => (kind.to_string(), location),
        error => return (error.to_string(), (0, 0)),
    };
    (why, location.line_pos.map_or((0, 0), |at| (at.line + 1, at.column + 1)))
}

fn syntax_error(kind: &SyntaxErrorKind) -> &'static str {
    use SyntaxErrorKind::*;
    match kind {
        CommentsNotEnabled | IncompleteComment | BlockCommentNotClosed => "a comment",
        InvalidLiteral | TrailingDataAfterLiteral => "a word that is not true, false or null",
        UnexpectedClosingBracket => "a closing bracket without an opening one",
        UnexpectedComma | TrailingCommaNotEnabled => "a comma too many",
        MissingComma => "a comma is missing",
        UnexpectedColon => "a colon too many",
        MissingColon => "a colon is missing",
        MalformedNumber | TrailingDataAfterNumber => "a malformed number",
        ExpectingMemberNameOrObjectEnd => "in an object, a key in quotes is missing",
        NotEscapedControlCharacter => "a control character in a string",
        UnknownEscapeSequence | MalformedEscapeSequence => "a malformed escape in a string",
        UnpairedSurrogatePairEscapeSequence => "half a surrogate pair in a string",
        IncompleteDocument => "it ends before it is complete",
        TrailingData => "more follows after the value",
        _ => "a character that no value begins with",
    }
}

/// A JSON document that is read from its beginning to its end.
pub(super) struct JsonStream<R: Read> {
    reader: JsonStreamReader<Metered<R>>,
    allowance: Rc<Cell<usize>>,
    /// Whether strings that are files are kept.
    keeps_files: bool,
}

impl<R: Read> JsonStream<R> {
    pub(super) fn new(source: R) -> Self {
        let allowance = Rc::new(Cell::new(usize::MAX));
        let settings = ReaderSettings {
            max_nesting_depth: Some(MAX_DOCUMENT_DEPTH),
            track_path: false,
            restrict_number_values: false,
            ..ReaderSettings::default()
        };
        let source = Metered { source, allowance: Rc::clone(&allowance) };
        JsonStream {
            reader: JsonStreamReader::new_custom(source, settings),
            allowance,
            keeps_files: false,
        }
    }

    /// Line and column of what is read next, counted from 1.
    pub(super) fn place(&self) -> (u64, u64) {
        let position = self.reader.current_position(false).line_pos;
        position.map_or((0, 0), |at| (at.line + 1, at.column + 1))
    }

    pub(super) fn kind(&mut self) -> Result<ValueType, ReaderError> {
        self.reader.peek()
    }

    pub(super) fn begin_object(&mut self) -> Result<(), ReaderError> {
        self.reader.begin_object()
    }

    /// The next key of the open object. After the last key the closing brace is consumed.
    pub(super) fn next_key(&mut self) -> Result<Option<String>, ReaderError> {
        if !self.reader.has_next()? {
            self.reader.end_object()?;
            return Ok(None);
        }
        self.allowance.set(MAX_KEY_BYTES);
        let key = self.reader.next_name_owned();
        self.allowance.set(usize::MAX);
        key.map(Some)
    }

    pub(super) fn begin_array(&mut self) -> Result<(), ReaderError> {
        self.reader.begin_array()
    }

    /// Whether the open array has a next element. After the last element the closing bracket is consumed.
    pub(super) fn has_element(&mut self) -> Result<bool, ReaderError> {
        let has_next = self.reader.has_next()?;
        if !has_next {
            self.reader.end_array()?;
        }
        Ok(has_next)
    }

    /// Checks that nothing follows the document.
    pub(super) fn end(self) -> Result<(), ReaderError> {
        self.reader.consume_trailing_whitespace()
    }

    pub(super) fn skip(&mut self) -> Result<(), ReaderError> {
        self.reader.skip_value()
    }

    /// The next value as a whole. A value that is too long or too deep is skipped.
    pub(super) fn value(&mut self) -> Result<Taken, ReaderError> {
        let mut state = Building { left: MAX_VALUE_BYTES, refused: None };
        let value = self.build(0, &mut state)?;
        Ok(match state.refused {
            None => Ok(value),
            Some(why) => Err(why),
        })
    }

    fn build(&mut self, depth: usize, state: &mut Building) -> Result<Value, ReaderError> {
        if state.refused.is_some() {
            self.skip()?;
            return Ok(Value::Null);
        }
        if depth > MAX_VALUE_DEPTH {
            state.refused = Some(format!("a value is deeper than {MAX_VALUE_DEPTH} levels"));
            return self.build(depth, state);
        }
        Ok(match self.kind()? {
            ValueType::Object => {
                let mut object = Map::new();
                self.begin_object()?;
                while let Some(key) = self.next_key()? {
                    state.take(key.len() + ELEMENT_BYTES);
                    let value = self.build(depth + 1, state)?;
                    if state.refused.is_none() {
                        object.insert(key, value);
                    }
                }
                Value::Object(object)
            }
            ValueType::Array => {
                let mut array = Vec::new();
                self.begin_array()?;
                while self.has_element()? {
                    state.take(ELEMENT_BYTES);
                    let value = self.build(depth + 1, state)?;
                    if state.refused.is_none() {
                        array.push(value);
                    }
                }
                Value::Array(array)
            }
            ValueType::String => Value::String(self.string(state)?),
            ValueType::Number => {
                // The reader holds all its digits.
                self.allowance.set(MAX_KEY_BYTES);
                let number = self.reader.next_number_as_str();
                self.allowance.set(usize::MAX);
                let number = number?;
                state.take(number.len());
                let number = Number::new(number);
                if number.is_none() {
                    state.refused = Some("a number that jsonb cannot hold".to_owned());
                }
                number.map_or(Value::Null, Value::Number)
            }
            ValueType::Boolean => Value::Bool(self.reader.next_bool()?),
            ValueType::Null => {
                self.reader.next_null()?;
                Value::Null
            }
        })
    }

    /// The next string. Of a file in a `data:` URL only the beginning is kept, with what follows the file.
    fn string(&mut self, state: &mut Building) -> Result<String, ReaderError> {
        let location = self.reader.current_position(false);
        let (mut bytes, keeps_files) = (Vec::new(), self.keeps_files);
        let mut text = self.reader.next_string_reader()?;
        let mut read_text = || {
            text.by_ref().take(MAX_DATA_URL_BYTES as u64).read_to_end(&mut bytes)?;
            if !keeps_files && is_within_data_url(&bytes) {
                skip_base64(&mut text, &mut bytes)?;
            }
            text.by_ref().take(state.left as u64).read_to_end(&mut bytes)?;
            io::copy(&mut text, &mut io::sink())
        };
        match read_text() {
            Err(error) => return Err(ReaderError::IoError { error, location }),
            Ok(0) => {}
            Ok(_) => state.refuse_length(),
        }
        state.take(bytes.len());
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Whether a text begins as a `data:` URL of a file does: `data:image/png;base64,`.
pub(super) fn is_data_url(text: &[u8]) -> bool {
    let head = text.strip_prefix(b"data:").and_then(|rest| rest.split(|byte| *byte == b',').next());
    head.is_some_and(|head| {
        head.ends_with(b";base64")
            && head.contains(&b'/')
            && head.iter().all(|byte| byte.is_ascii_graphic())
    })
}

/// Whether all of a text is the beginning of a `data:` URL of a file.
fn is_within_data_url(text: &[u8]) -> bool {
    is_data_url(text)
        && text.rsplit(|byte| *byte == b',').next().is_some_and(|data| data.iter().all(is_base64))
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte)
}

/// Reads over base64, and keeps what was read behind it.
fn skip_base64(text: &mut impl Read, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 8192];
    loop {
        let read = match text.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let piece = &piece[..read];
        match piece.iter().position(|byte| !is_base64(byte)) {
            Some(end) => {
                kept.extend_from_slice(&piece[end..]);
                return Ok(());
            }
            None if read == 0 => return Ok(()),
            None => {}
        }
    }
}

/// A value while it is read.
struct Building {
    left: usize,
    refused: Option<String>,
}

impl Building {
    fn take(&mut self, bytes: usize) {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => self.refuse_length(),
        }
    }

    fn refuse_length(&mut self) {
        self.refused = Some(format!("a value is longer than {MAX_VALUE_BYTES} bytes"));
    }
}

/// A source of which no more than `allowance` bytes can be read: what is kept of a key is not bounded otherwise.
struct Metered<R> {
    source: R,
    allowance: Rc<Cell<usize>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let left = self.allowance.get();
        if left != usize::MAX {
            let left = left.checked_sub(read).ok_or_else(|| {
                io::Error::other(format!("a key or a number is longer than {MAX_KEY_BYTES} bytes"))
            })?;
            self.allowance.set(left);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Taken {
        JsonStream::new(text.as_bytes()).value().unwrap()
    }

    #[test]
    fn values_are_those_of_serde_json() {
        let text = r#"{"a":[1,-2.5,1e3,"ü\n",null,true,{}],"b":{"a":[]}}"#;
        let expected: serde_json::Value = serde_json::from_str(text).unwrap();
        let value: serde_json::Value =
            serde_json::from_str(&value(text).unwrap().to_string()).unwrap();
        assert_eq!(value, expected);
    }

    #[test]
    fn what_follows_a_refused_value_is_read() {
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!(r#"["{long}",{deep},"next"]"#);
        let mut json = JsonStream::new(text.as_bytes());
        json.begin_array().unwrap();
        assert!(json.value().unwrap().unwrap_err().contains("longer"));
        assert!(json.value().unwrap().unwrap_err().contains("deeper"));
        assert_eq!(json.value().unwrap().unwrap(), "next");
        assert!(!json.has_element().unwrap());
    }

    #[test]
    fn long_keys_and_deep_documents_are_errors() {
        let long = format!(r#"{{"{}":1}}"#, "x".repeat(MAX_KEY_BYTES + 4096));
        assert!(JsonStream::new(long.as_bytes()).value().is_err());
        let digits = format!("[{}]", "1".repeat(MAX_KEY_BYTES + 4096));
        assert!(JsonStream::new(digits.as_bytes()).value().is_err());
        let deep = "[".repeat(MAX_DOCUMENT_DEPTH as usize + 1);
        assert!(JsonStream::new(deep.as_bytes()).value().is_err());
        assert!(JsonStream::new(deep.as_bytes()).skip().is_err());
    }

    #[test]
    fn what_stands_behind_a_file_in_a_string_is_kept() {
        for (data, behind) in [
            (4, " and then?"),
            (100_000, "\n\nWhat does it show, and why?"),
            (100_000, ")"),
            (40, ", and data:image/png;base64,AAAA"),
            (4, " is of name,AlexanderTheGreatOfMacedoniaAndOfManyOtherPlaces, is it?"),
        ] {
            let text = format!("data:image/png;base64,{}{behind}", "A".repeat(data));
            let kept = value_in(Value::from(text.as_str()).to_string().as_bytes()).unwrap();
            let kept = kept.as_str().unwrap();
            let head = &text[..text.len() - behind.len()];
            assert_eq!(kept, format!("{}{behind}", &head[..head.len().min(MAX_DATA_URL_BYTES)]));
        }
    }

    #[test]
    fn files_inside_strings_are_not_kept() {
        let text = format!(r#""data:image/png;base64,{}""#, "A".repeat(MAX_VALUE_BYTES));
        assert_eq!(value(&text).unwrap().as_str().unwrap().len(), MAX_DATA_URL_BYTES);
        let log = format!("data: {}/,;base64,", "A".repeat(2 * MAX_DATA_URL_BYTES));
        assert_eq!(value(&format!("\"{log}\"")).unwrap(), log.as_str());
    }
}
