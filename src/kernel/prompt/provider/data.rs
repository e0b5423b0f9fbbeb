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
    CALL_KEYS, CODE_KEYS, CODE_RESULT_KEYS, Form, RESULT_KEYS, Reader, THOUGHT_KEYS, form_of,
    type_of,
};
use crate::prompt::provider::other::Other;

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

/// The keys under which a file stands in the forms of providers.
const FILES: [&str; 16] = [
    "source",
    "image_url",
    "image_file",
    "audio_url",
    "video_url",
    "document_url",
    "file",
    "file_data",
    "input_audio",
    "image",
    "audio",
    "video",
    "data",
    "base64",
    "inlineData",
    "url",
];

/// The keys of bytes.
const BYTES_KEYS: [&str; 7] =
    ["data", "base64", "bytes", "blob", "file_data", "b64_json", "encrypted_content"];

/// What says of which kind a file is.
const KINDS: [&str; 12] = [
    "mimeType",
    "mime_type",
    "mediaType",
    "media_type",
    "image_mimetype",
    "document_mimetype",
    "format",
    "source_type",
    "detail",
    "kind",
    "extras",
    "citations",
];

/// What the result of a server of the Model Context Protocol has beside its content.
const MCP_KEYS: [&str; 7] =
    ["content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta"];

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
            && items.iter().all(|item| self.block_text(item).is_some())
        {
            let text = self.result_text(content);
            let structured = object.first(&["structuredContent", "structured_content"]);
            // The text repeats it, as JSON, or as what stands in it by itself.
            let is_repeated = structured.and_then(as_object).is_some_and(|Entries(entries)| {
                text.trim().starts_with(['{', '['])
                    || matches!(entries, [(key, _)] if key == "result")
            });
            return match structured {
                Some(structured) if !is_repeated || text.trim().is_empty() => {
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

    /// Data in which names stand for files, and bytes are left out.
    fn without_files<'a>(&self, json: &JsonValue<'a>) -> JsonValue<'a> {
        match json {
            JsonValue::Object(_) if is_file(json) => {
                JsonValue::String(Other { json }.described(self.check_interrupts).into())
            }
            JsonValue::Object(entries) => {
                let inner = |(key, value): &(Cow<'a, str>, JsonValue<'a>)| {
                    let is_long = as_text(value).is_some_and(|text| text.len() > MIN_BYTES);
                    let value = match is_long && has_bytes(key, value, 0) {
                        true => JsonValue::String(BYTES.into()),
                        false => self.without_files(value),
                    };
                    (key.clone(), value)
                };
                JsonValue::Object(entries.iter().map(inner).collect())
            }
            JsonValue::Array(items) => {
                JsonValue::Array(items.iter().map(|item| self.without_files(item)).collect())
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
            None => alone(&[&["text"]]),
            Some("text" | "input_text" | "output_text") => alone(&[&["text"], &MARKS]),
            Some(_) if is_file(json) => {
                Some(Other { json }.described(self.check_interrupts).into())
            }
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
    Fields::of(json).is_some_and(|object| {
        type_of(object.0).and_then(form_of) == Some(Form::File)
            && FILES
                .iter()
                .any(|key| object.get(key).is_some_and(|file| has_bytes(key, file, FILE_LEVELS)))
            && !has_others(object, &[&FILES, &KINDS, &FILE_NAMES, &MARKS])
    })
}

/// Whether a value under a key is bytes, or has some so many levels deep: a text of base64 or a `data:` URL, or of a
/// document its text. An address is data by itself.
fn has_bytes(key: &str, value: &JsonValue<'_>, levels: u32) -> bool {
    match value {
        JsonValue::String(text) => {
            is_data_url(text) || BYTES_KEYS.contains(&key) && text.bytes().all(is_base64)
        }
        JsonValue::Object(entries) if levels > 0 => {
            let kind = Entries(entries).text("type");
            key == "source" && matches!(kind, Some("base64" | "text" | "content"))
                || entries.iter().any(|(key, value)| has_bytes(key, value, levels - 1))
        }
        _ => false,
    }
}

fn is_data_url(text: &str) -> bool {
    text.strip_prefix("data:").is_some_and(|url| url.contains(";base64,"))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte)
}
