//! Blocks in what a tool returns, told from data that have a key `type` as well.

use crate::json::JsonValue;
use crate::messages::message::{Entries, FILE_NAMES};
use crate::prompt::provider::calls::{ARGUMENTS, ERRORS, IDS, INNER, NAMES, RESULTS};
use crate::prompt::provider::fields::{Fields, is_filled};
use crate::prompt::provider::forms::{
    Form, MCP_KEYS, TEXT_KEYS, form_in, is_call_or_result, type_of,
};
use crate::prompt::provider::speakers::SPEAKERS;

/// The keys of a file's bytes, or of where they are.
pub(super) const FILES: [&str; 22] = [
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
    "bytes",
    "inlineData",
    "fileData",
    "url",
    "uri",
    "blob",
];

/// What stands beside them.
const FILE_KEYS: [&str; 18] = [
    "id",
    "identifier",
    "mimeType",
    "mime_type",
    "mediaType",
    "media_type",
    "detail",
    "alt",
    "format",
    "source_type",
    "context",
    "citations",
    "index",
    "cache_control",
    "providerOptions",
    "providerMetadata",
    "annotations",
    "_meta",
];

/// What stands beside the text of a block that names its type.
const TYPED_TEXT_KEYS: [&str; 7] =
    ["content", "refusal", "timestamp", "state", "logprobs", "dynamic_ref", "_meta"];

const TYPES: [&str; 3] = ["type", "part_kind", "block_type"];

/// Other keys of the forms, which applications write with false where there is nothing.
const FORM_KEYS: [&str; 12] = [
    "refusal",
    "parts",
    "blocks",
    "tool_calls",
    "invalid_tool_calls",
    "toolInvocations",
    "content_type",
    "audio",
    "attachments",
    "merged",
    "additional_kwargs",
    "role",
];

/// What else messages have in the forms that are known.
const MESSAGE_KEYS: [&str; 24] = [
    "id",
    "text",
    "data",
    "function_call",
    "experimental_attachments",
    "files",
    "metadata",
    "annotations",
    "created_at",
    "createdAt",
    "timestamp",
    "usage",
    "usage_metadata",
    "response_metadata",
    "stop_reason",
    "finish_reason",
    "model",
    "model_name",
    "index",
    "state",
    "phase",
    "kind",
    "is_error",
    "isError",
];

/// Whether an entry of what a tool returns says something: false does, but under a key that messages and blocks have.
pub(super) fn says(key: &str, value: &JsonValue<'_>) -> bool {
    let keys = [&RESULTS[..], &ERRORS, &IDS, &NAMES, &ARGUMENTS, &INNER, &FORM_KEYS];
    is_filled(value)
        || *value == JsonValue::Bool(false) && !keys.iter().any(|keys| keys.contains(&key))
}

/// Whether an object in what a tool returns is a block: it has what its form needs, and of a text or a file nothing
/// else. What merely has the type of one is data.
pub(super) fn is_block_of_tool(block: Fields<'_>) -> bool {
    let Some(kind) = type_of(block.0) else { return false };
    match form_in(kind, block) {
        Some(Form::Text) => {
            block.0.first(&["text", "content", "refusal"]).is_some()
                && !has_others(block, &[&TEXT_KEYS, &TYPED_TEXT_KEYS, &SPEAKERS])
        }
        Some(Form::File) => {
            block.first(&FILES).is_some()
                && !has_others(block, &[&FILES, &FILE_KEYS, &FILE_NAMES, &SPEAKERS])
        }
        // Names of others that are types of calls, too.
        Some(Form::Call) if ["function", "custom"].contains(&kind) || kind.ends_with("_call") => {
            is_call_or_result(block) || block.first_object(&INNER).is_some()
        }
        Some(Form::Call | Form::Result) => true,
        Some(Form::Thought) => block.first(&["signature", "data"]).is_some(),
        Some(Form::Mark) | None => false,
    }
}

/// Whether an object has the type of a file, and its bytes or where they are.
pub(super) fn is_file(object: Fields<'_>) -> bool {
    type_of(object.0).and_then(|kind| form_in(kind, object)) == Some(Form::File)
        && object.first(&FILES).is_some()
}

/// Whether a message in what a tool returns has nothing that messages do not have: other keys would be lost.
pub(super) fn is_message_alone(message: Fields<'_>) -> bool {
    let keys = [&MESSAGE_KEYS[..], &FORM_KEYS, &SPEAKERS, &RESULTS, &ERRORS, &IDS, &NAMES];
    !has_others(message, &keys)
}

/// Whether the result of a server of the Model Context Protocol has nothing but what that has.
pub(super) fn is_mcp_alone(result: Fields<'_>) -> bool {
    !has_others(result, &[&MCP_KEYS, &["content", "_meta", "meta"]])
}

/// Whether an object has something under none of these keys.
fn has_others(object: Fields<'_>, keys: &[&[&str]]) -> bool {
    let Fields(Entries(entries)) = object;
    entries.iter().any(|(key, value)| {
        let key = key.as_ref();
        is_filled(value) && !TYPES.contains(&key) && !keys.iter().any(|keys| keys.contains(&key))
    })
}
