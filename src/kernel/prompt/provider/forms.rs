//! The forms in which applications store messages.
//!
//! What is read is what is certain: an object that is a message, or a block whose type or key is in the tables here.
//! Anything else in a list is a block of its own, [`Block::Other`], and takes nothing from its neighbours.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::graph::turn::Role;
use crate::interrupts::Interrupts;
use crate::json::{JsonValue, compact_text};
use crate::messages::message::{Entries, Message, as_object, message, role_name};
use crate::messages::{MessageText, message_text};
use crate::prompt::provider::other::Other;
use crate::prompt::provider::payload::{Arguments, Block, Blocks, Call, CallId, CallResult};
use crate::prompt::provider::sequence::{indented, tool_name};

/// What a block is by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// With its result, where it has one.
    Call,
    Result,
    File,
    Thought,
    /// It says nothing: thoughts that no provider takes, sources of what is said, steps.
    Mark,
}

/// The type of a block.
pub(super) fn type_of<'a>(block: Entries<'a>) -> Option<&'a str> {
    block.first_text(&["type", "part_kind", "block_type"])
}

/// What blocks of a type are; `None` where that is not known.
pub(super) fn form_of(kind: &str) -> Option<Form> {
    Some(match kind {
        "text" | "input_text" | "output_text" | "refusal" | "user-prompt" | "system-prompt" => {
            Form::Text
        }
        "thinking" | "redacted_thinking" => Form::Thought,
        "reasoning" | "redacted-reasoning" | "reasoning_content" | "reasoning_text"
        | "summary_text" | "think" | "step-start" | "source" | "source-url" | "source-document"
        | "item_reference" | "mcp_list_tools" | "compaction" | "compaction_trigger" => Form::Mark,
        "image"
        | "image_url"
        | "image_file"
        | "image-url"
        | "input_image"
        | "output_image"
        | "image_generation_call"
        | "computer_screenshot"
        | "audio"
        | "audio_url"
        | "audio-url"
        | "input_audio"
        | "output_audio"
        | "video"
        | "video_url"
        | "video-url"
        | "input_video"
        | "document"
        | "document-url"
        | "file"
        | "input_file"
        | "binary"
        | "media"
        | "container_upload" => Form::File,
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "tool-call" | "builtin-tool-call"
        | "function" | "custom" | "tool-invocation" | "dynamic-tool" => Form::Call,
        "tool-result"
        | "tool-error"
        | "tool-return"
        | "builtin-tool-return"
        | "retry-prompt"
        | "program_output" => Form::Result,
        // Those of tools that a provider runs are named by them: `mcp_tool_result`.
        kind if kind.ends_with("tool_result") || kind.ends_with("_call_output") => Form::Result,
        kind if kind.ends_with("_call") => Form::Call,
        _ => return None,
    })
}

/// The keys of the texts of blocks, of calls and of results, in all forms.
const TEXTS: [&str; 3] = ["text", "refusal", "content"];
const INNER: [&str; 4] = ["toolInvocation", "tool_call", "function", "custom"];
const IDS: [&str; 5] = ["call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id"];
const NAMES: [&str; 3] = ["name", "toolName", "tool_name"];
const ARGUMENTS: [&str; 8] =
    ["arguments", "input", "args", "parameters", "tool_kwargs", "action", "code", "queries"];
const RESULTS: [&str; 5] = ["output", "result", "response", "content", "outputs"];
const ERRORS: [&str; 2] = ["errorText", "error"];

/// The keys of blocks without a type that are calls and results.
const CALL_KEYS: [&str; 5] = ["functionCall", "function_call", "toolUse", "toolCall", "tool_call"];
const RESULT_KEYS: [&str; 5] =
    ["functionResponse", "function_response", "toolResult", "toolResponse", "tool_response"];
const CODE_KEYS: [&str; 2] = ["executableCode", "executable_code"];
const CODE_RESULT_KEYS: [&str; 2] = ["codeExecutionResult", "code_execution_result"];
const THOUGHT_KEYS: [&str; 2] = ["reasoningContent", "reasoning_content"];
/// The tool that runs Gemini's code.
const CODE_EXECUTION: &str = "code_execution";

/// What has this key is a content of ChatGPT's, of which an import has made the text of the turn.
const CONTENT_TYPE: &str = "content_type";
/// The keys of the contents of messages: where several are there, the first says what the others do.
const CONTENTS: [&str; 3] = ["parts", "content", "blocks"];
/// What stands beside a message: files, and what Open WebUI has merged or reports.
const ATTACHED: [&str; 3] = ["attachments", "files", "experimental_attachments"];
const ADDED: [&str; 2] = ["merged", "error"];

/// Reads the payload of a turn.
pub(super) struct Reader<'c> {
    /// That of the turn, who speaks in it.
    role: Role,
    check_interrupts: &'c dyn Fn(),
    interrupts: Interrupts<'c>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(role: Role, check_interrupts: &'c dyn Fn()) -> Self {
        Reader { role, check_interrupts, interrupts: Interrupts::new(check_interrupts) }
    }

    /// The blocks of a payload; `None` where it is of no form that is known.
    pub(super) fn payload<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        match json {
            JsonValue::Array(items) if has_known(items) => Some(self.list(items)),
            JsonValue::Object(_) => match self.message_of(as_object(json)?) {
                Some(message) => self.message(message.body),
                None => self.block(json),
            },
            _ => None,
        }
    }

    /// What stands beside a message, with its name.
    pub(super) fn beside<'a>(&self, json: &'a JsonValue<'a>) -> Blocks<'a> {
        let Some(object) = as_object(json) else { return Vec::new() };
        let Message { body, .. } =
            self.message_of(object).unwrap_or(Message { role: None, body: object });
        let files = ATTACHED.iter().filter_map(|key| body.array(key)).flatten();
        let files = files.map(|file| {
            let list = compact_text(file, self.check_interrupts);
            let name = self.said(&format!(
                "{{\"role\":\"user\",\"content\":null,\"experimental_attachments\":[{list}]}}"
            ));
            let name = if name.is_empty() { "[file]".to_owned() } else { self.indented(&name) };
            let text = as_object(file).and_then(|file| file.text("extracted_content"));
            match text.filter(|text| !text.trim().is_empty()) {
                Some(text) => format!("{name}\n  {}", self.indented(text)),
                None => name,
            }
        });
        let added = ADDED.iter().filter_map(|key| {
            let text = self.result_text(body.get(key)?);
            let text = self.indented(&text);
            (!text.is_empty() && text != "false")
                .then(|| format!("[Content of type {key}]\n  {text}"))
        });
        files.chain(added).map(|text| Block::Text(text.into())).collect()
    }

    /// A list of messages, blocks and items.
    fn list<'a>(&self, items: &'a [JsonValue<'a>]) -> Blocks<'a> {
        let other = |json| vec![Block::Other(Other { json })];
        items.iter().flat_map(|item| self.item(item).unwrap_or_else(|| other(item))).collect()
    }

    /// An item of a list; `None` where it is not known.
    fn item<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        self.interrupts.item();
        match json {
            JsonValue::Null => Some(Vec::new()),
            JsonValue::String(text) => Some(vec![Block::Text(Cow::Borrowed(text.as_ref()))]),
            JsonValue::Object(_) => match self.message_of(as_object(json)?) {
                Some(message) => {
                    let blocks = self.message(message.body)?;
                    Some(blocks.into_iter().map(|block| self.spoken(message.role, block)).collect())
                }
                None => self.block(json),
            },
            _ => None,
        }
    }

    /// A block of a message within a turn, which may be of another than the turn's speaker.
    fn spoken<'a>(&self, role: Option<&str>, block: Block<'a>) -> Block<'a> {
        let Some(role) = role.map(role_name).filter(|role| *role != self.role.name()) else {
            return block;
        };
        let marked = |text: &str| {
            Block::Text(format!("[{}]\n  {}", tool_name(role), self.indented(text)).into())
        };
        match block {
            Block::Text(text) if text.trim().is_empty() => Block::Text(text),
            Block::Text(text) if role == Role::Tool.name() => {
                Block::Result(CallResult { call: None, text, is_error: false })
            }
            Block::Text(text) => marked(&text),
            Block::Call(call) if role != Role::Assistant.name() => {
                marked(&call.described(self.check_interrupts))
            }
            block => block,
        }
    }

    /// The message that an object is: what `graph_message_text` takes for one, and what adapters store around one.
    fn message_of<'a>(&self, object: Entries<'a>) -> Option<Message<'a>> {
        if object.get(CONTENT_TYPE).is_some() {
            return None;
        }
        if let Some(message) = message(object) {
            return Some(message);
        }
        let role = object.text("role");
        let is_of = |keys: &[&str]| keys.iter().any(|key| object.get(key).is_some());
        let is_message = match (role, type_of(object)) {
            (Some(_), _) => is_of(&["output", "blocks", "toolInvocations", "tool_call_id"]),
            (None, Some(_)) => false,
            (None, None) => {
                let lists = ["parts", "content", "output", "blocks", "tool_calls"];
                let mut lists = lists.iter().filter_map(|key| object.array(key));
                object.text("tool_call_id").is_some() || lists.any(has_known)
            }
        };
        if is_message {
            return Some(Message { role, body: object });
        }
        // An event of Google ADK's.
        let inner = object.object("content").filter(|_| role.is_none() && !is_of(&["type"]))?;
        inner.array("parts").filter(|_| inner.text("role").is_some())?;
        Some(Message { role: inner.text("role"), body: inner })
    }

    /// The blocks of a message; `None` where its content is of no form that is known.
    fn message<'a>(&self, body: Entries<'a>) -> Option<Blocks<'a>> {
        let kwargs = body.object("additional_kwargs");
        let of_kwargs = |key| kwargs.and_then(|kwargs| kwargs.get(key));
        let call = match body.text("role") {
            Some("function") => CallId::name(body.text("name")),
            _ => None,
        };
        let answers = body.get("tool_call_id").or_else(|| of_kwargs("tool_call_id"));
        if call.is_some() || matches!(answers, Some(JsonValue::String(_))) {
            let content = body.first(&["content", "blocks"]);
            return Some(vec![Block::Result(CallResult {
                call: call.or_else(|| {
                    CallId::id(body.text("tool_call_id").or_else(|| kwargs?.text("tool_call_id")))
                }),
                text: content.map_or(Cow::Borrowed(""), |content| self.result_text(content)),
                is_error: body.text("status") == Some("error"),
            })]);
        }
        let mut unread = None;
        let mut blocks = Vec::new();
        for content in CONTENTS.iter().filter_map(|key| body.get(key)) {
            match self.content(content) {
                Some(read) => blocks = read,
                None => unread = unread.or(Some(content)),
            }
            if !blocks.is_empty() {
                break;
            }
        }
        let is_in_content = !blocks.is_empty();
        if let Some(items) = body.array("output") {
            let texts: HashSet<String> = blocks.iter().filter_map(|block| text_of(block)).collect();
            let items = self.list(items).into_iter();
            blocks.extend(
                items.filter(|block| text_of(block).is_none_or(|text| !texts.contains(&text))),
            );
        }
        let transcript = body.object("audio").and_then(|audio| audio.text("transcript"));
        let said = body.text("refusal").or(transcript.filter(|_| !is_in_content));
        blocks.extend(said.filter(|text| !text.is_empty()).map(|text| Block::Text(text.into())));
        if let Some(call) = body.get("function_call").and_then(|call| as_object(call)) {
            blocks.extend(self.call(call, true));
        }
        let has_parts = body.array("parts").is_some();
        for call in body.array("toolInvocations").filter(|_| !has_parts).into_iter().flatten() {
            blocks.extend(as_object(call).into_iter().flat_map(|call| self.call(call, false)));
        }
        let calls = body.array("tool_calls").filter(|calls| !calls.is_empty());
        if let Some(calls) = calls.or_else(|| kwargs?.array("tool_calls")) {
            let calls: Blocks<'a> = calls
                .iter()
                .filter_map(as_object)
                .flat_map(|call| self.call(call, false))
                .collect();
            // LangChain and LlamaIndex repeat the calls of a content that is a list.
            let ids: HashSet<CallId<'a>> =
                calls.iter().filter_map(|block| call_id(block).cloned()).collect();
            blocks.retain(|block| call_id(block).is_none_or(|id| !ids.contains(id)));
            blocks.extend(calls);
        }
        match unread {
            Some(_) if blocks.is_empty() => None,
            Some(json) if !is_in_content => {
                blocks.insert(0, Block::Other(Other { json }));
                Some(blocks)
            }
            _ => Some(blocks),
        }
    }

    /// A content: a text, a list, or one block or message.
    fn content<'a>(&self, content: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        match content {
            JsonValue::Array(items) => Some(self.list(items)),
            content => self.item(content),
        }
    }

    /// A block or an item; `None` where it is not known.
    fn block<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        let block = as_object(json).filter(|block| block.get(CONTENT_TYPE).is_none())?;
        let Some(kind) = type_of(block) else { return self.keyed(block) };
        let form = form_in(kind, block)?;
        Some(match form {
            Form::Text => match block.first(&TEXTS) {
                None => Vec::new(),
                Some(JsonValue::Object(entries)) => {
                    vec![Block::Text(Entries(entries).text("value")?.into())]
                }
                Some(text) => self.content(text)?,
            },
            Form::Call => self.call(block, false),
            // What Pydantic AI says of an answer that is not of a call is the user's.
            Form::Result if kind == "retry-prompt" && block.text("tool_name").is_none() => {
                vec![Block::Text(self.result_text(block.get("content")?))]
            }
            Form::Result => vec![self.result(block, CallId::id(block.first_text(&IDS)))],
            Form::File | Form::Thought => vec![Block::Other(Other { json })],
            Form::Mark => Vec::new(),
        })
    }

    /// A block that is known by its key, as those of Bedrock and Gemini.
    fn keyed<'a>(&self, block: Entries<'a>) -> Option<Blocks<'a>> {
        let under = |keys: &[&str]| keys.iter().find_map(|key| block.object(key));
        let is_thought = block.get("thought") == Some(&JsonValue::Bool(true));
        if let Some(text) = block.text("text") {
            let text = Some(Block::Text(text.into())).filter(|_| !is_thought);
            return Some(text.into_iter().collect());
        }
        let code = |_| CallId::name(Some(CODE_EXECUTION));
        if let Some(call) = under(&CALL_KEYS) {
            Some(self.call(call, true))
        } else if let Some(result) = under(&RESULT_KEYS) {
            let id = CallId::id(result.first_text(&IDS).or_else(|| result.text("id")));
            Some(vec![self.result(result, id.or_else(|| CallId::name(result.text("name"))))])
        } else if let Some(call) = under(&CODE_KEYS) {
            Some(vec![Block::Call(Call {
                id: code(call),
                name: CODE_EXECUTION.into(),
                arguments: Arguments::of(call.get("code")),
            })])
        } else if let Some(result) = under(&CODE_RESULT_KEYS) {
            Some(vec![self.result(result, code(result))])
        } else {
            under(&THOUGHT_KEYS).map(|_| Vec::new())
        }
    }

    /// A call, and its result where it has one. By its name where that may stand for an id.
    fn call<'a>(&self, outer: Entries<'a>, by_name: bool) -> Blocks<'a> {
        let inner = INNER.iter().find_map(|key| outer.object(key)).unwrap_or(outer);
        let first = |keys: &[&str]| inner.first_text(keys).or_else(|| outer.first_text(keys));
        let of_type = type_of(outer)
            .and_then(|kind| kind.strip_prefix("tool-").or_else(|| kind.strip_suffix("_call")));
        let name = first(&NAMES).or(of_type).unwrap_or_default();
        let id = CallId::id(first(&IDS).or_else(|| first(&["id"])));
        let id = id.or_else(|| CallId::name(Some(name).filter(|_| by_name)));
        let call = Block::Call(Call {
            id: id.clone(),
            name: name.into(),
            arguments: Arguments::of(inner.first(&ARGUMENTS)),
        });
        let has_result = inner.first(&["output", "result", "outputs"]).is_some()
            || inner.first(&ERRORS).is_some_and(|error| !is_blank(error));
        let result = has_result.then(|| self.result(inner, id));
        [call].into_iter().chain(result).collect()
    }

    /// The result of a call.
    fn result<'a>(&self, result: Entries<'a>, call: Option<CallId<'a>>) -> Block<'a> {
        let error = result.first(&ERRORS).filter(|error| !is_blank(error));
        let output = result.first(&RESULTS);
        let kind = output.and_then(as_object).and_then(|output| output.text("type"));
        let is_true = |key: &&str| result.get(key) == Some(&JsonValue::Bool(true));
        let is_error = error.is_some()
            || ["is_error", "isError"].iter().any(is_true)
            || result.text("status") == Some("error")
            || kind.is_some_and(|kind| kind.starts_with("error"));
        let text = error.or(output).map_or(Cow::Borrowed(""), |text| self.result_text(text));
        Block::Result(CallResult { call, text, is_error })
    }

    /// The text of a result: that of its blocks, each of which is named where it has none, or its JSON.
    fn result_text<'a>(&self, result: &'a JsonValue<'a>) -> Cow<'a, str> {
        match result {
            JsonValue::Null => "".into(),
            JsonValue::String(text) => Cow::Borrowed(text.as_ref()),
            JsonValue::Array(items) if has_known(items) => {
                let texts = self.list(items).into_iter().map(|block| match block {
                    Block::Text(text) | Block::Result(CallResult { text, .. }) => text,
                    Block::Call(call) => call.described(self.check_interrupts).into(),
                    Block::Other(other) if other.is_typed() => {
                        other.described(self.check_interrupts).into()
                    }
                    Block::Other(other) => compact_text(other.json, self.check_interrupts).into(),
                });
                let texts: Vec<Cow<'a, str>> = texts.filter(|text| !text.is_empty()).collect();
                texts.join("\n").into()
            }
            JsonValue::Object(entries) => {
                let object = Entries(entries);
                let inner = match (object.text("type"), object.get("value"), object.get("content"))
                {
                    // Of the AI SDK.
                    (
                        Some("text" | "json" | "error-text" | "error-json" | "content"),
                        Some(value),
                        _,
                    ) => Some(value),
                    // Of the Model Context Protocol.
                    (None, _, Some(content @ JsonValue::Array(items)))
                        if has_known(items) && object.text("role").is_none() =>
                    {
                        Some(content)
                    }
                    _ => None,
                };
                match inner {
                    Some(inner) => self.result_text(inner),
                    None => self.json_text(result).into(),
                }
            }
            json => self.json_text(json).into(),
        }
    }

    /// What a result that is data says.
    fn json_text(&self, json: &JsonValue<'_>) -> String {
        let json = compact_text(json, self.check_interrupts);
        self.said(&format!("{{\"type\":\"tool-result\",\"output\":{json}}}"))
    }

    /// The text of a message.
    fn said(&self, json: &str) -> String {
        match message_text(json, self.check_interrupts) {
            MessageText::Text(text) => text,
            MessageText::Absent | MessageText::AsStored => String::new(),
        }
    }

    fn indented(&self, text: &str) -> String {
        indented(text, self.check_interrupts)
    }
}

/// What a block of a type is. A part of the AI SDK's is `tool-NAME`; others that begin so are of no call.
fn form_in(kind: &str, block: Entries<'_>) -> Option<Form> {
    let is_part = kind.starts_with("tool-")
        && block.first_text(&["toolCallId"]).is_some()
        && block.first(&["state", "input", "output"]).is_some();
    form_of(kind).or(is_part.then_some(Form::Call))
}

/// Whether an item of a list is an object of a form that is known. It does not look into the items, so that lists in
/// lists are read once.
fn has_known(items: &[JsonValue<'_>]) -> bool {
    items.iter().filter_map(as_object).any(|item| {
        let is_block = || match type_of(item) {
            Some(kind) => form_in(kind, item).is_some(),
            None => {
                let keys = [&CALL_KEYS[..], &RESULT_KEYS, &CODE_KEYS, &CODE_RESULT_KEYS];
                item.text("text").is_some()
                    || keys.concat().iter().any(|key| item.object(key).is_some())
            }
        };
        item.get(CONTENT_TYPE).is_none() && (message(item).is_some() || is_block())
    })
}

fn is_blank(json: &JsonValue<'_>) -> bool {
    matches!(json, JsonValue::String(text) if text.trim().is_empty())
}

fn call_id<'b, 'a>(block: &'b Block<'a>) -> Option<&'b CallId<'a>> {
    match block {
        Block::Call(call) => call.id.as_ref(),
        _ => None,
    }
}

fn text_of(block: &Block<'_>) -> Option<String> {
    match block {
        Block::Text(text) => Some(text.trim().to_owned()),
        _ => None,
    }
}
