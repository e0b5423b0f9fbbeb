//! Objects of documents from outside: every key once, and no other.

use std::borrow::Cow;
use std::fmt;

use uuid::Uuid;

use super::number::Number;
use super::reader::JsonError;
use super::value::{JsonValue, quoted};
use crate::hex::{from_lower_hex, is_lower_hex};

/// The most values of an object or of an item of a list: no document has so many.
pub(crate) const MAX_ENTRY_VALUES: usize = 64;

/// Why a text is not the document that it should be: what is wrong, and with which key.
pub type ParseError = String;

impl From<JsonError> for ParseError {
    fn from(error: JsonError) -> Self {
        error.to_string()
    }
}

/// An object with exactly the keys that are taken out of it, each once.
pub(crate) struct Object<'a> {
    /// What the object is, for messages.
    what: &'static str,
    /// Whether messages write `slice policy key "max_nodes"`, or `turn.salience`.
    is_policy: bool,
    /// The prefix of its keys in messages, where it is nested in the object of that name.
    path: String,
    entries: Vec<(Cow<'a, str>, JsonValue<'a>)>,
}

impl<'a> Object<'a> {
    pub(crate) fn new(what: &'static str, json: JsonValue<'a>) -> Result<Self, ParseError> {
        Object::empty(what).of(json)
    }

    /// The object of a policy.
    pub(crate) fn policy(what: &'static str, json: JsonValue<'a>) -> Result<Self, ParseError> {
        Object { is_policy: true, ..Object::empty(what) }.of(json)
    }

    pub(crate) fn empty(what: &'static str) -> Self {
        Object { what, is_policy: false, path: String::new(), entries: Vec::new() }
    }

    fn of(self, json: JsonValue<'a>) -> Result<Self, ParseError> {
        match json {
            JsonValue::Object(entries) => self.with(entries),
            json => Err(format!("{} must be an object, not {json}", self.what)),
        }
    }

    fn with(mut self, entries: Vec<(Cow<'a, str>, JsonValue<'a>)>) -> Result<Self, ParseError> {
        self.entries.reserve_exact(entries.len().min(MAX_ENTRY_VALUES));
        entries.into_iter().try_for_each(|(key, value)| self.add(key, value))?;
        Ok(self)
    }

    pub(crate) fn add(
        &mut self,
        key: Cow<'a, str>,
        value: JsonValue<'a>,
    ) -> Result<(), ParseError> {
        if self.has(&key) {
            return Err(format!("{} key {} is given twice", self.what, self.quoted(&key)));
        }
        // No object has so many keys; a text from outside may have millions.
        if self.entries.len() == MAX_ENTRY_VALUES {
            return Err(self.unknown(&key));
        }
        self.entries.push((key, value));
        Ok(())
    }

    /// A known key as messages name it.
    fn name(&self, key: &str) -> String {
        match self.is_policy {
            true => format!("{} key {}", self.what, self.quoted(key)),
            false => format!("{}.{}{key}", self.what, self.path),
        }
    }

    /// A key that may be any text.
    fn quoted(&self, key: &str) -> String {
        quoted(&format!("{}{key}", self.path))
    }

    fn unknown(&self, key: &str) -> ParseError {
        format!("{} has no key {}", self.what, self.quoted(key))
    }

    /// Whether the key is given, and was not taken yet.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name == key)
    }

    pub(crate) fn take(&mut self, key: &str) -> Result<JsonValue<'a>, ParseError> {
        let place = self.entries.iter().position(|(name, _)| name == key);
        let place = place.ok_or_else(|| format!("{} is missing", self.name(key)))?;
        Ok(self.entries.swap_remove(place).1)
    }

    /// Refuses keys that were not taken.
    pub(crate) fn finish(self) -> Result<(), ParseError> {
        match self.entries.iter().map(|(key, _)| key).min() {
            Some(key) => Err(self.unknown(key)),
            None => Ok(()),
        }
    }

    fn wrong(&self, key: &str, wanted: impl fmt::Display, json: &JsonValue<'_>) -> ParseError {
        format!("{} must be {wanted}, not {json}", self.name(key))
    }

    pub(crate) fn read<T>(
        &mut self,
        key: &str,
        wanted: impl fmt::Display,
        read: impl FnOnce(&JsonValue<'a>) -> Option<T>,
    ) -> Result<T, ParseError> {
        let json = self.take(key)?;
        read(&json).ok_or_else(|| self.wrong(key, wanted, &json))
    }

    /// A nested object. Messages name its keys with this key as prefix.
    pub(crate) fn nested(
        &mut self,
        key: &str,
        wanted: impl fmt::Display,
    ) -> Result<Self, ParseError> {
        match self.take(key)? {
            JsonValue::Object(entries) => {
                let path = format!("{}{key}.", self.path);
                let Object { what, is_policy, .. } = *self;
                Object { what, is_policy, path, entries: Vec::new() }.with(entries)
            }
            json => Err(self.wrong(key, wanted, &json)),
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        item: impl FnMut(JsonValue<'a>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        match self.take(key)? {
            JsonValue::Array(items) => items.into_iter().map(item).collect(),
            json => Err(self.wrong(key, "an array", &json)),
        }
    }

    pub(crate) fn string(&mut self, key: &str) -> Result<String, ParseError> {
        self.read(key, "a string", |json| string(json).map(str::to_owned))
    }

    pub(crate) fn optional_string(&mut self, key: &str) -> Result<Option<String>, ParseError> {
        self.read(key, "a string or null", |json| match json {
            JsonValue::Null => Some(None),
            json => string(json).map(|text| Some(text.to_owned())),
        })
    }

    pub(crate) fn hex(&mut self, key: &str, length: usize) -> Result<String, ParseError> {
        self.read(key, format_args!("{length} lower-case hex digits"), |json| hex(json, length))
    }

    pub(crate) fn optional_hex(
        &mut self,
        key: &str,
        length: usize,
    ) -> Result<Option<String>, ParseError> {
        self.read(key, format_args!("{length} lower-case hex digits"), |json| match json {
            JsonValue::Null => Some(None),
            json => hex(json, length).map(Some),
        })
    }

    /// A SHA-256.
    pub(crate) fn hash(&mut self, key: &str) -> Result<[u8; 32], ParseError> {
        self.read(key, "64 lower-case hex digits", hash)
    }

    pub(crate) fn optional_hash(&mut self, key: &str) -> Result<Option<[u8; 32]>, ParseError> {
        self.read(key, "64 lower-case hex digits or null", |json| match json {
            JsonValue::Null => Some(None),
            json => hash(json).map(Some),
        })
    }

    pub(crate) fn id(&mut self, key: &str) -> Result<Uuid, ParseError> {
        self.read(key, "a lower-case UUID", |json| string(json).and_then(canonical_uuid))
    }

    pub(crate) fn boolean(&mut self, key: &str) -> Result<bool, ParseError> {
        self.read(key, "true or false", |json| match json {
            JsonValue::Bool(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn named<T>(
        &mut self,
        key: &str,
        from_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        self.read(key, "one of its names", |json| string(json).and_then(from_name))
    }

    pub(crate) fn integer(&mut self, key: &str) -> Result<i64, ParseError> {
        self.read(key, "an integer", |json| number(json).and_then(Number::integer))
    }

    pub(crate) fn optional_integer(&mut self, key: &str) -> Result<Option<i64>, ParseError> {
        self.read(key, "an integer or null", |json| match json {
            JsonValue::Null => Some(None),
            json => number(json)?.integer().map(Some),
        })
    }

    /// A list of strings, or null.
    pub(crate) fn optional_list<T>(
        &mut self,
        key: &str,
        item: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>, ParseError> {
        self.read(key, "an array of strings or null", |json| match json {
            JsonValue::Null => Some(None),
            JsonValue::Array(items) => {
                let items = items.iter().map(|json| string(json).and_then(&item));
                items.collect::<Option<_>>().map(Some)
            }
            _ => None,
        })
    }

    pub(crate) fn count(&mut self, key: &str) -> Result<u32, ParseError> {
        self.read(key, "a count", |json| u32::try_from(number(json)?.integer()?).ok())
    }

    pub(crate) fn binary32(&mut self, key: &str) -> Result<f32, ParseError> {
        self.read(key, "a binary32 number", |json| number(json).and_then(Number::binary32))
    }

    pub(crate) fn optional_binary32(&mut self, key: &str) -> Result<Option<f32>, ParseError> {
        self.read(key, "a binary32 number or null", |json| match json {
            JsonValue::Null => Some(None),
            json => number(json)?.binary32().map(Some),
        })
    }

    pub(crate) fn number(&mut self, key: &str) -> Result<f64, ParseError> {
        self.read(key, "a number", |json| number(json).and_then(Number::as_f64))
    }

    pub(crate) fn null(&mut self, key: &str) -> Result<(), ParseError> {
        self.read(key, "null", |json| (*json == JsonValue::Null).then_some(()))
    }
}

/// A string that PostgreSQL can hold: without NUL.
pub(crate) fn string<'j>(json: &'j JsonValue<'_>) -> Option<&'j str> {
    match json {
        JsonValue::String(text) if !text.contains('\0') => Some(text),
        _ => None,
    }
}

/// A UUID in the only spelling that exports have.
pub(crate) fn canonical_uuid(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}

/// A UUID in any spelling that PostgreSQL reads: upper-case digits, braces around it, a hyphen or none after each four
/// digits.
pub(crate) fn any_uuid(text: &str) -> Option<Uuid> {
    let inner = text.strip_prefix('{').map_or(Some(text), |rest| rest.strip_suffix('}'))?;
    let mut digits = String::with_capacity(32);
    let mut after_hyphen = true;
    for character in inner.chars() {
        match character {
            '-' if !after_hyphen && digits.len().is_multiple_of(4) => after_hyphen = true,
            c if c.is_ascii_hexdigit() => {
                digits.push(c);
                after_hyphen = false;
            }
            _ => return None,
        }
    }
    (digits.len() == 32 && !after_hyphen).then(|| Uuid::try_parse(&digits).ok())?
}

fn hex(json: &JsonValue<'_>, length: usize) -> Option<String> {
    string(json).filter(|text| is_lower_hex(text, length)).map(str::to_owned)
}

fn hash(json: &JsonValue<'_>) -> Option<[u8; 32]> {
    from_lower_hex(&hex(json, 64)?)?.try_into().ok()
}

fn number<'a>(json: &JsonValue<'a>) -> Option<Number<'a>> {
    match json {
        JsonValue::Number(number) => Some(*number),
        _ => None,
    }
}
