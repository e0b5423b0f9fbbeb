//! The texts of contents, blocks and results.

use crate::interrupts::Interrupts;
use crate::json::{JsonValue, compact_text};
use crate::messages::message::{
    Entries, FILE_NAMES, Message, as_object, as_text, is_of_interaction, message, standard,
    transcript,
};

/// Collects texts. Its methods return whether what they were given is of a form that is supported.
pub(super) struct Texts<'c> {
    joined: String,
    check_interrupts: &'c dyn Fn(),
    interrupts: Interrupts<'c>,
}

impl<'c> Texts<'c> {
    pub(super) fn new(check_interrupts: &'c dyn Fn()) -> Self {
        let interrupts = Interrupts::new(check_interrupts);
        Texts { joined: String::new(), check_interrupts, interrupts }
    }

    pub(super) fn joined(self) -> String {
        self.joined
    }

    /// Adds a text as a line of its own, without NUL characters.
    pub(super) fn push(&mut self, text: &str) {
        self.interrupts.bytes(text.len());
        let start = self.joined.len();
        if start > 0 {
            self.joined.push('\n');
        }
        let before = self.joined.len();
        self.joined.extend(text.split('\0'));
        if self.joined.len() == before {
            self.joined.truncate(start);
        }
    }

    /// The blocks of an array: whether at least one of them is of a form that is supported.
    pub(super) fn blocks(&mut self, blocks: &[JsonValue<'_>]) -> bool {
        let mut is_known = false;
        for block in blocks {
            self.interrupts.item();
            match block {
                JsonValue::String(text) => self.push(text),
                JsonValue::Object(entries) => is_known |= self.object(Entries(entries)),
                _ => {}
            }
        }
        is_known
    }

    /// A content: a text, a block or an array of them.
    fn content(&mut self, content: &JsonValue<'_>) -> bool {
        match content {
            JsonValue::String(text) => {
                self.push(text);
                true
            }
            JsonValue::Array(blocks) => self.blocks(blocks),
            JsonValue::Object(entries) => self.object(Entries(entries)),
            _ => false,
        }
    }

    /// A message or a block.
    pub(super) fn object(&mut self, object: Entries<'_>) -> bool {
        let object = standard(object);
        if let Some(message) = message(object) {
            self.message(&message);
            return true;
        }
        match object.text("type") {
            Some(kind) => self.block(kind, object),
            None => self.part(object),
        }
    }

    fn message(&mut self, message: &Message<'_>) {
        let body = message.body;
        let before = self.joined.len();
        if let Some(parts) = body.array("parts") {
            self.blocks(parts);
        }
        // Where both are there, they say the same.
        if self.joined.len() == before
            && let Some(content) = body.get("content")
        {
            self.content(content);
        }
        if self.joined.len() == before {
            let transcript = body.object("audio").and_then(|audio| audio.text("transcript"));
            body.text("refusal").or(transcript).into_iter().for_each(|text| self.push(text));
        }
        let attached = body.array("experimental_attachments").unwrap_or_default();
        attached.iter().filter_map(as_object).for_each(|file| self.file(file, file));
    }

    /// A block, or an item, that says its type.
    fn block(&mut self, kind: &str, block: Entries<'_>) -> bool {
        match kind {
            "text" | "input_text" | "output_text" | "text-plain" => {
                let text = block.get("text").and_then(|text| match text {
                    JsonValue::Object(entries) => Entries(entries).text("value"),
                    text => as_text(text),
                });
                match text {
                    Some(text) => self.push(text),
                    None if kind == "text-plain" => self.file(block, block),
                    None => {}
                }
            }
            "refusal" => self.string(block, "refusal"),
            // The summary that Anthropic puts in the place of earlier messages.
            "compaction" => self.string(block, "content"),
            "image"
            | "image_url"
            | "input_image"
            | "output_image"
            | "image_file"
            | "computer_screenshot"
            | "image_generation_call"
            | "image-data"
            | "image-url"
            | "image-file-id" => self.push("[image]"),
            "audio" | "input_audio" | "output_audio" | "audio_url" => {
                self.push(transcript(block).unwrap_or("[audio]"));
            }
            "video" | "input_video" | "video_url" => self.push("[video]"),
            "file"
            | "input_file"
            | "document"
            | "container_upload"
            | "media"
            | "file-data"
            | "file-url"
            | "file-id"
            | "code_execution_output"
            | "bash_code_execution_output" => {
                let inner = ["file", "source"].iter().find_map(|key| block.object(key));
                self.file(block, inner.unwrap_or(block));
            }
            "search_result" | "web_fetch_result" => {
                if let Some(content) = block.get("content") {
                    self.content(content);
                }
            }
            "web_search_result" => self.string(block, "title"),
            "tool-result" => self.result_at(block, &["output", "result", "content"]),
            "tool-error" => self.result_at(block, &["error"]),
            "tool-invocation" => {
                let call = block.object("toolInvocation").unwrap_or(block);
                self.result_at(call, &["result"]);
            }
            "mcp_call" => self.result_at(block, &["output", "error"]),
            "program_output" => self.result_at(block, &["result"]),
            "advisor_result" => self.string(block, "text"),
            kind if kind.ends_with("tool_result") => {
                self.result_at(block, &["content", "output", "result"]);
            }
            kind if kind.ends_with("_call_output") || kind.ends_with("_call_result") => {
                self.result_at(block, &["output"]);
            }
            kind if kind.ends_with("tool_result_error") => self.string(block, "error_code"),
            kind if kind.ends_with("execution_result") && !is_of_interaction(kind, block) => {
                self.string(block, "stdout");
                self.string(block, "stderr");
                self.blocks(block.array("content").unwrap_or_default());
            }
            kind if kind.ends_with("execution_view_result") => self.string(block, "content"),
            kind if is_of_interaction(kind, block) => self.result_at(block, &["result"]),
            kind if has_no_text(kind) => {}
            // The parts of calls: `tool-NAME`.
            kind if kind.starts_with("tool-") || kind == "dynamic-tool" => {
                self.result_at(block, &["output", "errorText"]);
            }
            _ => {
                self.string(block, "text");
                return false;
            }
        }
        true
    }

    /// A part that does not say its type.
    fn part(&mut self, part: Entries<'_>) -> bool {
        if let Some(text) = part.text("text") {
            if part.get("thought") != Some(&JsonValue::Bool(true)) {
                self.push(text);
            }
            return true;
        }
        let object = |keys: [&str; 2]| keys.iter().find_map(|key| part.object(key));
        if let Some(file) =
            object(["inlineData", "inline_data"]).or_else(|| object(["fileData", "file_data"]))
        {
            self.file(file, file);
        } else if let Some(response) = object(["functionResponse", "function_response"])
            .or_else(|| object(["toolResponse", "tool_response"]))
        {
            self.result_at(response, &["response"]);
            self.blocks(response.array("parts").unwrap_or_default());
        } else if let Some(result) = object(["codeExecutionResult", "code_execution_result"]) {
            self.string(result, "output");
        } else if part.text("stdout").is_some() {
            self.string(part, "stdout");
            self.string(part, "stderr");
        } else if let Some(items) = part.array("output")
            && part.text("object") == Some("response")
        {
            self.blocks(items);
        } else {
            let calls = [
                "functionCall",
                "function_call",
                "toolCall",
                "tool_call",
                "executableCode",
                "executable_code",
            ];
            return calls.iter().any(|key| part.object(key).is_some());
        }
        true
    }

    fn string(&mut self, object: Entries<'_>, key: &str) {
        object.text(key).into_iter().for_each(|text| self.push(text));
    }

    fn result_at(&mut self, object: Entries<'_>, keys: &[&str]) {
        object.first(keys).into_iter().for_each(|result| self.result(result));
    }

    /// The result of a call: its text, or its JSON where it is data.
    fn result(&mut self, result: &JsonValue<'_>) {
        match result {
            JsonValue::Null => {}
            JsonValue::String(text) => self.push(text),
            JsonValue::Array(blocks) => {
                let before = self.joined.len();
                if !self.blocks(blocks) && !blocks.is_empty() {
                    self.joined.truncate(before);
                    self.json(result);
                }
            }
            JsonValue::Object(entries) => self.result_object(result, Entries(entries)),
            _ => self.json(result),
        }
    }

    fn result_object(&mut self, result: &JsonValue<'_>, object: Entries<'_>) {
        let before = self.joined.len();
        match (object.text("type"), object.get("value")) {
            (Some("text" | "error-text"), Some(JsonValue::String(text))) => return self.push(text),
            (Some("json" | "error-json"), Some(value)) => {
                return match value {
                    JsonValue::String(text) => self.push(text),
                    value => self.json(value),
                };
            }
            (Some("content"), Some(JsonValue::Array(blocks))) => {
                self.blocks(blocks);
                return;
            }
            (Some("execution-denied"), _) => return self.string(object, "reason"),
            _ => {}
        }
        // A result of the Model Context Protocol.
        if object.text("type").is_none()
            && object.text("role").is_none()
            && let Some(blocks) = object.array("content")
            && self.blocks(blocks)
        {
            return;
        }
        self.joined.truncate(before);
        if self.object(object) {
            return;
        }
        self.joined.truncate(before);
        match object {
            Entries([(key, inner)]) if ["result", "output", "error"].contains(&key.as_ref()) => {
                self.result(inner);
            }
            _ => self.json(result),
        }
    }

    /// A file: `outer` has its name or its type, or `inner` has.
    fn file(&mut self, outer: Entries<'_>, inner: Entries<'_>) {
        const TYPES: [&str; 5] =
            ["mediaType", "mimeType", "mime_type", "media_type", "contentType"];
        let media = outer.first_text(&TYPES).or_else(|| inner.first_text(&TYPES));
        let kind = media.and_then(|media| media.split('/').next());
        match kind.filter(|kind| ["image", "audio", "video"].contains(kind)) {
            Some(kind) => self.push(&format!("[{kind}]")),
            None => match outer.first_text(&FILE_NAMES).or_else(|| inner.first_text(&FILE_NAMES)) {
                Some(name) => self.push(&format!("[file {name}]")),
                None => self.push("[file]"),
            },
        }
    }

    /// A value as JSON, without white space.
    fn json(&mut self, value: &JsonValue<'_>) {
        let text = compact_text(value, self.check_interrupts);
        self.push(&text);
    }
}

/// Thoughts, calls, sources and marks, which are not what a message says.
fn has_no_text(kind: &str) -> bool {
    const KINDS: [&str; 30] = [
        "thinking",
        "redacted_thinking",
        "reasoning",
        "reasoning_content",
        "reasoning_text",
        "summary_text",
        "redacted-reasoning",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "tool-call",
        "tool_call_chunk",
        "tool-approval-request",
        "tool-approval-response",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "step-start",
        "source",
        "source-url",
        "source-document",
        "item_reference",
        "tool_reference",
        "tool_search_tool_search_result",
        "tool_search_output",
        "advisor_redacted_result",
        "program",
        "compaction_trigger",
        "configuration_update",
        "additional_tools",
    ];
    KINDS.contains(&kind) || kind.ends_with("_call") || kind.starts_with("data-")
}
