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

/// The keys of a file's bytes in the forms of providers, or of where these are.
const FILES: [&str; 19] = [
    "source",
    "image_url",
    "image_file",
    "audio_url",
    "video_url",
    "document_url",
    "file",
    "file_id",
    "file_url",
    "file_data",
    "input_audio",
    "image",
    "audio",
    "video",
    "data",
    "base64",
    "inlineData",
    "fileData",
    "url",
];

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
/// A longer text of nothing but the letters of base64 is taken for bytes.
const MAX_WORD_BYTES: usize = 1024;

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
            JsonValue::Object(_) => {
                self.block_text(result).unwrap_or_else(|| self.object_text(result))
            }
            _ => self.data(result).into(),
        }
    }

    fn object_text<'a>(&self, result: &'a JsonValue<'a>) -> Cow<'a, str> {
        let Some(object) = Fields::of(result) else { return "".into() };
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
            && !has_others(object, &[&MCP_KEYS])
            && items.iter().all(|item| self.block_text(item).is_some())
        {
            let text = self.result_text(content);
            let structured = object.first(&["structuredContent", "structured_content"]);
            let structured = structured.map(|value| self.data(value)).unwrap_or_default();
            return match (text.trim(), structured.as_str()) {
                (_, "") => text,
                ("", _) => structured.into(),
                (said, data) if said == data => text,
                _ => format!("{text}\n{structured}").into(),
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
            _ => self.data(result).into(),
        }
    }

    /// Data in which names stand for files, and bytes are left out.
    fn without_files<'a>(&self, json: &JsonValue<'a>) -> JsonValue<'a> {
        match json {
            JsonValue::Object(_) if is_file(json) => {
                JsonValue::String(Other { json }.described(self.check_interrupts).into())
            }
            JsonValue::Object(entries) => {
                let inner =
                    |(key, value): &(Cow<'a, str>, _)| (key.clone(), self.without_files(value));
                JsonValue::Object(entries.iter().map(inner).collect())
            }
            JsonValue::Array(items) => {
                JsonValue::Array(items.iter().map(|item| self.without_files(item)).collect())
            }
            JsonValue::String(text) if is_bytes(text) => JsonValue::String(BYTES.into()),
            json => json.clone(),
        }
    }

    /// What an object says that is a text or a file and nothing else.
    fn block_text<'a>(&self, json: &'a JsonValue<'a>) -> Option<Cow<'a, str>> {
        let object = Fields::of(json)?;
        let text = object.0.get("text").and_then(as_text);
        match type_of(object.0) {
            None | Some("text" | "input_text" | "output_text") => {
                text.filter(|_| !has_others(object, &[&["text"], &MARKS])).map(Cow::Borrowed)
            }
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
            && FILES.iter().any(|key| is_place_of_file(object, key))
            && !has_others(object, &[&FILES, &KINDS, &FILE_NAMES, &MARKS])
    })
}

/// Whether a file's bytes stand under this key, or where a provider has them. An address is data by itself.
fn is_place_of_file(object: Fields<'_>, key: &str) -> bool {
    match (key, object.get(key)) {
        (_, None) => false,
        ("url", Some(url)) => as_text(url).is_some_and(|url| url.starts_with("data:")),
        ("data" | "base64", Some(bytes)) => as_text(bytes).is_some(),
        ("source", Some(source)) => as_object(source).is_some(),
        _ => true,
    }
}

/// Whether a text is base64, perhaps in a `data:` URL and in lines.
fn is_bytes(text: &str) -> bool {
    let data = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map_or(text, |(_, data)| data),
        None => text,
    };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte);
    data.len() > MAX_WORD_BYTES && data.bytes().all(is_base64)
}
