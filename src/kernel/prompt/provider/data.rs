//! What a tool returns, as a text.
//!
//! A key `type` or `role` of what a tool returns may be its own: what is read is a content of texts and files that have
//! nothing else. All else is data, and sent as JSON, which says itself who speaks in it.

use std::borrow::Cow;

use crate::json::JsonValue;
use crate::messages::message::{Entries, FILE_NAMES, as_object, as_text};
use crate::prompt::provider::calls::{ARGUMENTS, ERRORS, IDS, INNER, NAMES, RESULTS};
use crate::prompt::provider::fields::{Fields, is_filled};
use crate::prompt::provider::forms::{
    CALL_KEYS, CODE_KEYS, CODE_RESULT_KEYS, FILE_KEYS, Form, RESULT_KEYS, Reader, THOUGHT_KEYS,
    form_of, type_of,
};
use crate::prompt::provider::other::Other;
use crate::prompt::provider::payload::{MAX_TEXT_VALUES, read};

const TYPES: [&str; 3] = ["type", "part_kind", "block_type"];

/// What a text or a file may have beside it that says nothing of it.
const MARKS: [&str; 12] = [
    "cache_control",
    "extras",
    "uuid",
    "flags",
    "start_timestamp",
    "stop_timestamp",
    "providerOptions",
    "providerMetadata",
    "annotations",
    "logprobs",
    "thought",
    "_meta",
];

/// What says of which kind a file is, beside its MIME type.
const KINDS: [&str; 6] = ["format", "source_type", "detail", "kind", "extras", "citations"];

/// What the result of a server of the Model Context Protocol has beside its content.
const MCP_KEYS: [&str; 8] = [
    "content",
    "isError",
    "is_error",
    "structuredContent",
    "structured_content",
    "resultType",
    "_meta",
    "meta",
];

/// Keys that messages and blocks have in all forms, where false says nothing.
const FORM_KEYS: [&[&str]; 12] = [
    &RESULTS,
    &ERRORS,
    &IDS,
    &NAMES,
    &ARGUMENTS,
    &INNER,
    &CALL_KEYS,
    &RESULT_KEYS,
    &CODE_KEYS,
    &CODE_RESULT_KEYS,
    &THOUGHT_KEYS,
    &[
        "text",
        "refusal",
        "parts",
        "blocks",
        "is_error",
        "isError",
        "tool_calls",
        "invalid_tool_calls",
        "toolInvocations",
        "inlineData",
        "content_type",
        "audio",
        "thought",
        "attachments",
        "merged",
        "additional_kwargs",
        "role",
    ],
];

/// What stands for bytes.
const BYTES: &str = "[bytes]";
/// How deep providers put them into a file. What is nested deeper would be looked through once a level.
const FILE_LEVELS: u32 = 2;
/// Shorter ones are sent.
const MIN_BYTES: usize = 1024;

impl Reader<'_> {
    /// The text of what a tool returns: that of its texts and files, or its JSON.
    pub(super) fn result_text<'a>(&self, result: &'a JsonValue<'a>) -> Cow<'a, str> {
        match result {
            JsonValue::Null => "".into(),
            JsonValue::String(text) => Cow::Borrowed(text.as_ref()),
            JsonValue::Array(items) if items.iter().any(|item| self.block_text(item).is_some()) => {
                let texts = items.iter().map(|item| match (item, self.block_text(item)) {
                    (JsonValue::String(text), _) => Cow::Borrowed(text.as_ref()),
                    (_, Some(text)) => text,
                    (item, None) => self.data(item).into(),
                });
                let texts: Vec<Cow<'a, str>> = texts.filter(|text| !text.is_empty()).collect();
                texts.join("\n").into()
            }
            JsonValue::Object(entries) => {
                let object = Fields(Entries(entries));
                self.block_text(result).unwrap_or_else(|| self.object_text(object))
            }
            _ => self.data(result).into(),
        }
    }

    /// That of an object which is not a text or a file.
    pub(super) fn object_text<'a>(&self, object: Fields<'a>) -> Cow<'a, str> {
        let value = object.0.get("value");
        match object.text("type") {
            // Of the AI SDK.
            Some("text" | "json" | "error-text" | "error-json" | "content")
                if value.is_some() && !has_others(object, &[&["value"], &MARKS]) =>
            {
                return value.map(|value| self.result_text(value)).unwrap_or_default();
            }
            Some("execution-denied")
                if object.text("reason").is_some()
                    && !has_others(object, &[&["reason"], &MARKS]) =>
            {
                return object.text("reason").unwrap_or_default().into();
            }
            _ => {}
        }
        if let Some(content @ JsonValue::Array(items)) = object.0.get("content")
            && type_of(object.0).is_none()
            && !has_others(object, &[&MCP_KEYS, &IDS])
            && object.text("resultType").is_none_or(|kind| kind == "complete")
            && items.iter().all(|item| self.block_text(item).is_some())
        {
            let text = self.result_text(content);
            return match object.first(&["structuredContent", "structured_content"]) {
                Some(structured) if !self.is_repeated(structured, items) => {
                    format!("{text}\n{}", self.data(structured)).trim().to_owned().into()
                }
                _ => text,
            };
        }
        // A text that an object has alone.
        let Entries(entries) = object.0;
        let mut filled = entries.iter().filter(|(key, value)| says(key, value));
        match (filled.next(), filled.next()) {
            (Some((key, JsonValue::String(text))), None)
                if key == "text" || RESULTS.contains(&key.as_ref()) =>
            {
                Cow::Borrowed(text.as_ref())
            }
            _ => self.data(&JsonValue::Object(entries.to_vec())).into(),
        }
    }

    /// Whether texts of a content say all that is structured beside it: as JSON, or as servers make them of a
    /// function's result, a list as a text for each item.
    fn is_repeated(&self, structured: &JsonValue<'_>, content: &[JsonValue<'_>]) -> bool {
        let texts = content.iter().filter_map(|item| as_object(item)?.text("text"));
        let texts: Vec<&str> = texts.collect();
        let says = |text: &str, value: &JsonValue<'_>, plain: Option<&str>| {
            (self.check_interrupts)();
            plain == Some(text.trim())
                || read(text, &mut { MAX_TEXT_VALUES }, self.check_interrupts)
                    .is_ok_and(|json| json.is_some_and(|json| json.is_same(value)))
        };
        let result = match structured {
            JsonValue::Object(entries) if entries.len() == 1 => Entries(entries).get("result"),
            _ => None,
        };
        let mut items = Vec::new();
        result.into_iter().for_each(|result| add_items(result, &mut items));
        let are_items = || {
            !items.is_empty()
                && items.len() == texts.len()
                && texts.iter().zip(&items).all(|(text, item)| says(text, item, trimmed(item)))
        };
        let is_one = |value: &JsonValue<'_>| {
            let plain = trimmed(value);
            texts.iter().any(|text| says(text, value, plain))
        };
        is_one(structured) || result.is_some_and(is_one) || are_items()
    }

    /// Data in which names stand for files, and bytes are left out.
    fn without_files<'a>(&self, json: &JsonValue<'a>) -> JsonValue<'a> {
        let without = |value: &JsonValue<'a>, is_of_file: bool| match value {
            JsonValue::String(text) if text.len() > MIN_BYTES && is_bytes(text, is_of_file) => {
                JsonValue::String(BYTES.into())
            }
            value => self.without_files(value),
        };
        match json {
            JsonValue::Object(_) if is_file(json) => {
                JsonValue::String(Other { json }.described(self.check_interrupts).into())
            }
            JsonValue::Object(entries) => {
                let is_of_file = is_of_file(Entries(entries));
                let entries = entries.iter();
                let entries = entries.map(|(key, value)| (key.clone(), without(value, is_of_file)));
                JsonValue::Object(entries.collect())
            }
            JsonValue::Array(items) => {
                JsonValue::Array(items.iter().map(|item| without(item, false)).collect())
            }
            json => json.clone(),
        }
    }

    /// What an object says that is a text or a file and nothing else.
    fn block_text<'a>(&self, json: &'a JsonValue<'a>) -> Option<Cow<'a, str>> {
        let object = Fields::of(json)?;
        let text = object.0.get("text").and_then(as_text);
        let alone =
            |keys: &[&[&str]]| text.filter(|_| !has_others(object, keys)).map(Cow::Borrowed);
        match type_of(object.0) {
            _ if is_file(json) => Some(Other { json }.described(self.check_interrupts).into()),
            None => alone(&[&["text"]]),
            Some("text" | "input_text" | "output_text") => alone(&[&["text"], &MARKS]),
            Some(_) => None,
        }
    }

    /// Data as JSON, without bytes; nothing where they are null, blank or empty.
    fn data(&self, json: &JsonValue<'_>) -> String {
        match is_filled(json) || *json == JsonValue::Bool(false) {
            true => self.json(&self.without_files(json)),
            false => String::new(),
        }
    }
}

fn trimmed<'a>(json: &'a JsonValue<'_>) -> Option<&'a str> {
    as_text(json).map(str::trim)
}

/// The items of a list, and of those in it, as servers of the Model Context Protocol send them: null is none.
fn add_items<'a>(json: &'a JsonValue<'a>, items: &mut Vec<&'a JsonValue<'a>>) {
    match json {
        JsonValue::Null => {}
        JsonValue::Array(list) => list.iter().for_each(|item| add_items(item, items)),
        item => items.push(item),
    }
}

/// Whether an entry of what a tool returns says something: false does, but where a form has it for nothing.
fn says(key: &str, value: &JsonValue<'_>) -> bool {
    let is_of_form = || FORM_KEYS.iter().any(|keys| keys.contains(&key));
    is_filled(value) || *value == JsonValue::Bool(false) && !is_of_form()
}

/// Whether an object has something under none of these keys.
fn has_others(object: Fields<'_>, keys: &[&[&str]]) -> bool {
    let Fields(Entries(entries)) = object;
    entries.iter().any(|(key, value)| {
        let key = key.as_ref();
        says(key, value) && !TYPES.contains(&key) && !keys.iter().any(|keys| keys.contains(&key))
    })
}

/// Whether an object is a file as a provider has it, and nothing else.
fn is_file(json: &JsonValue<'_>) -> bool {
    Fields::of(json).is_some_and(|object| match type_of(object.0) {
        Some(kind) => form_of(kind) == Some(Form::File) && holds_bytes(object, FILE_LEVELS),
        None => FILE_KEYS.iter().any(|key| {
            object.object(key).is_some_and(|file| holds_bytes(file, FILE_LEVELS))
                && !has_others(object, &[&[key]])
        }),
    })
}

/// Whether an object has the bytes of a file, perhaps so many levels deep, and nothing else but what names it or says
/// of which kind it is. An address is data by itself.
fn holds_bytes(object: Fields<'_>, levels: u32) -> bool {
    let Fields(Entries(entries)) = object;
    let is_beside = |key: &str| {
        let keys = [&TYPES[..], &KINDS, &FILE_NAMES, &MARKS];
        keys.iter().any(|keys| keys.contains(&key)) || is_mime_key(key)
    };
    let mut others = entries
        .iter()
        .filter(|(key, value)| says(key, value) && !is_beside(key))
        .map(|(key, value)| match value {
            JsonValue::String(text) => {
                is_data_url(text) || text.len() > MIN_BYTES && is_bytes(text, true)
            }
            JsonValue::Object(entries) if levels > 0 => {
                let inner = Fields(Entries(entries));
                key == "source" && is_source(inner) || holds_bytes(inner, levels - 1)
            }
            _ => false,
        })
        .peekable();
    others.peek().is_some() && others.all(|is_bytes| is_bytes)
}

/// Whether an object is the source of a file of Anthropic's: bytes, which imports leave out, or the text of a document.
fn is_source(source: Fields<'_>) -> bool {
    let is_text = |block: &JsonValue<'_>| {
        Fields::of(block).is_some_and(|block| {
            block.text("type") == Some("text") && !has_others(block, &[&["text"], &MARKS])
        })
    };
    let (key, is_whole) = match (source.text("type"), source.get("data"), source.get("content")) {
        (Some("base64"), data, _) => {
            ("data", data.is_none_or(|data| as_text(data).is_some_and(is_base64)))
        }
        (Some("text"), Some(JsonValue::String(_)), _) => ("data", true),
        (Some("content"), _, Some(JsonValue::String(_))) => ("content", true),
        (Some("content"), _, Some(JsonValue::Array(blocks))) => {
            ("content", blocks.iter().all(is_text))
        }
        _ => return false,
    };
    is_whole && !has_others(source, &[&[key], &["media_type"]])
}

/// Whether the texts of an object may be the bytes of a file: it has the type of one, or a MIME type that is not that
/// of a text.
fn is_of_file(object: Entries<'_>) -> bool {
    let Entries(entries) = object;
    let is_mime = |text: &str| text.contains('/') && !text.starts_with("text/");
    type_of(object).and_then(form_of) == Some(Form::File)
        || entries
            .iter()
            .any(|(key, value)| is_mime_key(key) && as_text(value).is_some_and(is_mime))
}

fn is_mime_key(key: &str) -> bool {
    let key = key.replace(['_', '-'], "").to_ascii_lowercase();
    ["mimetype", "mediatype", "contenttype"].iter().any(|end| key.ends_with(end))
}

/// Whether a long text is bytes by what it is: base64, perhaps as a `data:` URL. Where nothing else says that it is of
/// a file, it has letters of both cases and digits, as other texts without spaces rarely have.
fn is_bytes(text: &str, is_of_file: bool) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let is_mixed =
        || has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
    is_data_url(text)
        || is_base64(text) && (is_of_file || is_mixed())
        || is_base64_in_lines(text) && is_mixed()
}

/// `data:image/png;base64,` and base64 to the end.
fn is_data_url(text: &str) -> bool {
    let parts = text.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
    parts.is_some_and(|(head, data)| {
        head.contains('/')
            && head.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
            && is_base64(data)
    })
}

/// Whether a text is base64 in one line.
fn is_base64(text: &str) -> bool {
    let text = text.trim_ascii_end().trim_end_matches('=');
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte))
}

/// Whether a text is base64 in lines of one width, as MIME, PEM and GitHub have them.
fn is_base64_in_lines(text: &str) -> bool {
    text.trim_ascii_end().rsplit_once('\n').is_some_and(|(lines, last)| {
        let width = lines.lines().next().map_or(0, str::len);
        [60, 64, 76].contains(&width)
            && lines.lines().all(|line| line.len() == width && is_base64(line))
            && last.len() <= width
            && is_base64(last)
    })
}
