//! What applications store of a message, as texts, calls and results.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::graph::turn::Role;
use crate::interrupts::Interrupts;
use crate::json::{JsonError, JsonLimits, JsonReader, JsonValue, compact_text, jsonb_text};
use crate::messages::{MAX_MESSAGE_BYTES, MessageText, message_text};
use crate::prompt::provider::sequence::{indented, tool_name};
use crate::prompt::provider::{PromptMessage, ProviderFormat};

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Arguments<'a>,
}

impl Call<'_> {
    /// It as a text.
    pub(super) fn described(&self, check_interrupts: &dyn Fn()) -> String {
        let arguments = self.arguments.text(check_interrupts);
        format!("[called {}({})]", tool_name(&self.name), indented(&arguments, check_interrupts))
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arguments<'a> {
    /// JSON as a text, or what the model wrote instead.
    Text(&'a str),
    /// JSON as data.
    Json(&'a JsonValue<'a>),
}

impl<'a> Arguments<'a> {
    fn of(json: Option<&'a JsonValue<'a>>) -> Self {
        match json {
            None | Some(JsonValue::Null) => Arguments::Text("{}"),
            Some(JsonValue::String(text)) if text.trim().is_empty() => Arguments::Text("{}"),
            Some(JsonValue::String(text)) => Arguments::Text(text),
            Some(json) => Arguments::Json(json),
        }
    }

    /// JSON as a text.
    pub(super) fn text(self, check_interrupts: &dyn Fn()) -> Cow<'a, str> {
        match self {
            Arguments::Text(text) => text.into(),
            Arguments::Json(json) => compact_text(json, check_interrupts).into(),
        }
    }

    /// An object: other JSON, and as a text what no jsonb is, is its member `arguments`.
    pub(super) fn object(self, check_interrupts: &dyn Fn()) -> JsonValue<'a> {
        let json = match self {
            Arguments::Json(json) => json.clone(),
            Arguments::Text(text) => jsonb_text(text, MAX_ARGUMENTS_GROWTH, check_interrupts)
                .and_then(|_| read(text, &mut { MAX_ARGUMENT_VALUES }, check_interrupts).ok()?)
                .unwrap_or(JsonValue::String(text.into())),
        };
        match json {
            JsonValue::Object(_) => json,
            json => JsonValue::Object(vec![("arguments".into(), json)]),
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(super) struct CallResult<'a> {
    /// The id of the call; `None` where that is not known.
    pub(super) call: Option<Cow<'a, str>>,
    pub(super) text: Cow<'a, str>,
    pub(super) is_error: bool,
}

/// A block of one provider's form that is neither text nor call nor result: a picture, a thought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other<'a> {
    pub(super) json: &'a JsonValue<'a>,
}

#[derive(Clone, Debug)]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    Call(Call<'a>),
    Result(CallResult<'a>),
    Other(Other<'a>),
}

pub(super) type Blocks<'a> = Vec<Block<'a>>;

/// A text as JSON of at most so many values, which are counted off; `None` where it is not, or is nested too deep.
///
/// # Errors
/// [`JsonError::TooManyValues`]
pub(super) fn read<'a>(
    text: &'a str,
    values: &mut usize,
    check_interrupts: &dyn Fn(),
) -> Result<Option<JsonValue<'a>>, JsonError> {
    let limits = JsonLimits { bytes: usize::MAX, values: *values, token_bytes: MAX_MESSAGE_BYTES };
    let mut reader = JsonReader::new(text, limits, check_interrupts)?;
    let json = match reader.value() {
        Ok(json) => json,
        Err(error @ JsonError::TooManyValues(_)) => return Err(error),
        Err(_) => return Ok(None),
    };
    *values = reader.values_left();
    Ok(reader.finish().is_ok().then_some(json))
}

/// The most values of the arguments of a call that are read.
const MAX_ARGUMENT_VALUES: usize = 100_000;

/// How many times as long as their JSON the text of a jsonb of arguments may be: numbers with exponents are written
/// out.
const MAX_ARGUMENTS_GROWTH: usize = 4;

/// What stands for a payload that is not read.
const UNREAD: &str = "[The rest of this message cannot be read.]";

/// The blocks of a message: those of its payload where it is of a form that is known, else its content.
pub(super) fn blocks<'a>(
    message: &PromptMessage<'a>,
    payload: Option<&'a JsonValue<'a>>,
    check_interrupts: &dyn Fn(),
) -> Blocks<'a> {
    let interrupts = Interrupts::new(check_interrupts);
    let known = payload.and_then(|json| Reader { check_interrupts, interrupts }.message(json));
    let says = |block: &Block<'_>| match block {
        Block::Text(text) => !text.trim().is_empty(),
        Block::Other(other) => {
            !other.is_thought() && (other.is_known() || !other.text(check_interrupts).is_empty())
        }
        Block::Call(_) | Block::Result(_) => true,
    };
    // What imports keep of attachments beside the message stands in the content alone.
    let has_attachments = payload.is_some_and(has_attachments) && message.content.is_some();
    let is_text = |block: &Block<'_>| matches!(block, Block::Text(_));
    let is_whole = |blocks: &Blocks<'a>| {
        blocks.iter().any(says) && !(has_attachments && blocks.iter().all(is_text))
    };
    let blocks = known.filter(is_whole);
    let content = || {
        let text = Block::Text(Cow::Borrowed(message.content.unwrap_or_default()));
        let is_unread = message.payload.is_some() && payload.is_none_or(is_json_in_text);
        [text].into_iter().chain(is_unread.then(|| Block::Text(UNREAD.into()))).collect()
    };
    let blocks = blocks.unwrap_or_else(content).into_iter();
    let block = |block| match block {
        // What a tool has stored is a result, whatever call it is of.
        Block::Text(text) if message.role == Role::Tool => {
            Block::Result(CallResult { call: None, text, is_error: false })
        }
        Block::Other(other) if message.role == Role::Tool && !other.is_known() => {
            let text = other.text(check_interrupts).into();
            Block::Result(CallResult { call: None, text, is_error: false })
        }
        block => block,
    };
    blocks.map(block).collect()
}

/// Whether a payload is a string of JSON: so stands one that no jsonb can hold.
fn is_json_in_text(json: &JsonValue<'_>) -> bool {
    matches!(json, JsonValue::String(text) if text.trim_start().starts_with(['{', '[']))
}

/// Whether files stand beside the message, as in exports of Claude, LibreChat and Open WebUI.
fn has_attachments(json: &JsonValue<'_>) -> bool {
    let is_some =
        |key| matches!(get(json, key), Some(JsonValue::Array(items)) if !items.is_empty());
    is_some("attachments") || is_some("files")
}

struct Reader<'c> {
    check_interrupts: &'c dyn Fn(),
    interrupts: Interrupts<'c>,
}

impl Reader<'_> {
    /// The blocks of a message of chat completions, of the Messages API or of LangChain, of an item of the Responses
    /// API, or of a list of blocks or items.
    fn message<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        if let JsonValue::Array(items) = json {
            let blocks: Vec<Option<Blocks<'a>>> =
                items.iter().map(|item| self.item(item)).collect();
            return blocks.into_iter().collect::<Option<Vec<_>>>().map(|blocks| blocks.concat());
        }
        // LangChain's `{"type": "ai", "data": {…}}` and `{"lc": 1, "id": […], "kwargs": {…}}`.
        let is_typed = text(json, "type").is_some() && text(json, "role").is_none();
        let data = get(json, "data").filter(|_| is_typed);
        let data = data.or_else(|| get(json, "lc").and_then(|_| get(json, "kwargs")));
        let json = data.filter(|data| get(data, "content").is_some()).unwrap_or(json);
        if let Some(call) = text(json, "tool_call_id") {
            let content = get(json, "content");
            return Some(vec![Block::Result(CallResult {
                call: Some(call.into()),
                text: content.map_or(Cow::Borrowed(""), |content| self.text_of(content)),
                is_error: text(json, "status") == Some("error"),
            })]);
        }
        if let Some(JsonValue::Array(items)) = get(json, "output").filter(|_| !is_typed) {
            return Some(items.iter().filter_map(|item| self.item(item)).flatten().collect());
        }
        let parts = get(json, "parts").filter(|parts| matches!(parts, JsonValue::Array(_)));
        let content = parts.or_else(|| get(json, "content"));
        if text(json, "role").is_none() && content.is_none() {
            return self.item(json);
        }
        let mut blocks = match content {
            Some(JsonValue::String(text)) => vec![Block::Text(Cow::Borrowed(text.as_ref()))],
            Some(JsonValue::Array(items)) => {
                items.iter().flat_map(|item| self.blocks(item)).collect()
            }
            Some(block @ JsonValue::Object(_)) => self.blocks(block),
            None | Some(JsonValue::Null) => Vec::new(),
            Some(_) => return None,
        };
        // The results and calls of functions, before there were tools.
        if text(json, "role") == Some("function")
            && let (Some(name), Some(content)) = (text(json, "name"), get(json, "content"))
        {
            let text = self.text_of(content);
            return Some(vec![Block::Result(CallResult {
                call: Some(name.into()),
                text,
                is_error: false,
            })]);
        }
        if let Some(call) = get(json, "function_call").and_then(|call| self.call(call)) {
            blocks.push(Block::Call(Call { id: call.name.clone(), ..call }));
        }
        if let Some(JsonValue::Array(calls)) =
            get(json, "toolInvocations").filter(|_| parts.is_none())
        {
            blocks.extend(calls.iter().filter_map(|call| self.invocation(call)).flatten());
        }
        if let Some(refusal) = text(json, "refusal").filter(|refusal| !refusal.is_empty()) {
            blocks.push(Block::Text(refusal.into()));
        }
        if let Some(JsonValue::Array(calls)) = get(json, "tool_calls") {
            let calls: Vec<Call<'a>> = calls.iter().filter_map(|call| self.call(call)).collect();
            // LangChain repeats the calls of a content that is a list.
            let ids: HashSet<&str> = calls.iter().map(|call| &*call.id).collect();
            blocks.retain(|block| !matches!(block, Block::Call(call) if ids.contains(&*call.id)));
            blocks.extend(calls.into_iter().map(Block::Call));
        }
        Some(blocks)
    }

    /// A call of chat completions, or of LangChain.
    fn call<'a>(&self, json: &'a JsonValue<'a>) -> Option<Call<'a>> {
        let function = get(json, "function").or_else(|| get(json, "custom")).unwrap_or(json);
        let keys = ["arguments", "input", "args", "parameters"];
        let arguments = keys.iter().find_map(|key| get(function, key));
        Some(Call {
            id: text(json, "id").unwrap_or_default().into(),
            name: text(function, "name")?.into(),
            arguments: Arguments::of(arguments),
        })
    }

    /// An item of the Responses API; `None` where it is not one that is known.
    fn item<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        let call_id = || text(json, "call_id").or_else(|| text(json, "id")).unwrap_or_default();
        let block = match text(json, "type")? {
            "message" => return self.message_item(json),
            "function_call" | "custom_tool_call" => Block::Call(Call {
                id: call_id().into(),
                name: text(json, "name")?.into(),
                arguments: Arguments::of(get(json, "arguments").or_else(|| get(json, "input"))),
            }),
            "function_call_output" | "custom_tool_call_output" => Block::Result(CallResult {
                call: Some(call_id().into()),
                text: get(json, "output").map_or(Cow::Borrowed(""), |output| self.text_of(output)),
                is_error: false,
            }),
            "reasoning" => self.block(json),
            _ => {
                let is_unknown =
                    |block: &Block<'_>| matches!(block, Block::Other(other) if !other.is_known());
                return Some(self.blocks(json)).filter(|blocks| !blocks.iter().any(is_unknown));
            }
        };
        Some(vec![block])
    }

    fn message_item<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        match get(json, "content")? {
            JsonValue::String(text) => Some(vec![Block::Text(Cow::Borrowed(text.as_ref()))]),
            JsonValue::Array(items) => {
                Some(items.iter().flat_map(|item| self.blocks(item)).collect())
            }
            _ => None,
        }
    }

    /// What an element of a content is: one block, or a call with its result.
    fn blocks<'a>(&self, json: &'a JsonValue<'a>) -> Blocks<'a> {
        self.interrupts.item();
        let invocation = match text(json, "type") {
            Some("tool-call" | "tool-result" | "tool-error") => None,
            Some("tool-invocation") => {
                get(json, "toolInvocation").and_then(|call| self.invocation(call))
            }
            Some(kind) if kind == "dynamic-tool" || kind.starts_with("tool-") => {
                self.invocation(json)
            }
            Some("mcp_call") => self.mcp_call(json),
            _ => None,
        };
        invocation.unwrap_or_else(|| vec![self.block(json)])
    }

    /// A call of the AI SDK's with its result, where it has one.
    fn invocation<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        let id = text(json, "toolCallId")?;
        let of_kind = text(json, "type").and_then(|kind| kind.strip_prefix("tool-"));
        let call = Block::Call(Call {
            id: id.into(),
            name: text(json, "toolName").or(of_kind)?.into(),
            arguments: Arguments::of(get(json, "input").or_else(|| get(json, "args"))),
        });
        let output = get(json, "output").or_else(|| get(json, "result"));
        let error = get(json, "errorText").filter(|error| **error != JsonValue::Null);
        let result = error.or(output).map(|result| {
            Block::Result(CallResult {
                call: Some(id.into()),
                text: self.text_of(result),
                is_error: error.is_some(),
            })
        });
        Some([call].into_iter().chain(result).collect())
    }

    /// A call of the Responses API's that the provider has made, with its result.
    fn mcp_call<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        let id = text(json, "id").unwrap_or_default();
        let call = Block::Call(Call {
            id: id.into(),
            name: text(json, "name")?.into(),
            arguments: Arguments::of(get(json, "arguments")),
        });
        let is_there = |value: &&JsonValue<'_>| **value != JsonValue::Null;
        let error = get(json, "error").filter(is_there);
        let result = error.or_else(|| get(json, "output").filter(is_there)).map(|result| {
            Block::Result(CallResult {
                call: Some(id.into()),
                text: self.text_of(result),
                is_error: error.is_some(),
            })
        });
        Some([call].into_iter().chain(result).collect())
    }

    /// A call or a result under a key, as Bedrock and Gemini have them: without an id by its name.
    fn keyed<'a>(&self, json: &'a JsonValue<'a>) -> Option<Block<'a>> {
        let under = |keys: [&str; 2]| keys.iter().find_map(|key| get(json, key));
        let id = |of: &'a JsonValue<'a>| {
            ["toolUseId", "id", "name"].iter().find_map(|key| text(of, key)).unwrap_or_default()
        };
        if let Some(call) =
            under(["functionCall", "function_call"]).or_else(|| get(json, "toolUse"))
        {
            return Some(Block::Call(Call { id: id(call).into(), ..self.call(call)? }));
        }
        let result =
            under(["functionResponse", "function_response"]).or_else(|| get(json, "toolResult"))?;
        let content = get(result, "response").or_else(|| get(result, "content"));
        Some(Block::Result(CallResult {
            call: Some(id(result).into()),
            text: content.map_or(Cow::Borrowed(""), |content| self.text_of(content)),
            is_error: text(result, "status") == Some("error"),
        }))
    }

    /// A block of a content.
    fn block<'a>(&self, json: &'a JsonValue<'a>) -> Block<'a> {
        let id = |key| text(json, key).unwrap_or_default();
        match (text(json, "type"), json) {
            (_, JsonValue::String(text)) => Block::Text(Cow::Borrowed(text.as_ref())),
            (Some("tool_use" | "server_tool_use" | "mcp_tool_use"), _) => Block::Call(Call {
                id: id("id").into(),
                name: id("name").into(),
                arguments: Arguments::of(get(json, "input")),
            }),
            // Of the AI SDK.
            (Some("tool-call"), _) => Block::Call(Call {
                id: id("toolCallId").into(),
                name: id("toolName").into(),
                arguments: Arguments::of(get(json, "input").or_else(|| get(json, "args"))),
            }),
            (Some("tool-result"), _) => {
                let output = get(json, "output").or_else(|| get(json, "result"));
                let kind = output.and_then(|output| text(output, "type"));
                let value =
                    output.and_then(|output| get(output, "value")).filter(|_| kind.is_some());
                Block::Result(CallResult {
                    call: Some(id("toolCallId").into()),
                    text: value.or(output).map_or(Cow::Borrowed(""), |value| self.text_of(value)),
                    is_error: kind.is_some_and(|kind| kind.starts_with("error")),
                })
            }
            (Some("tool-error"), _) => Block::Result(CallResult {
                call: Some(id("toolCallId").into()),
                text: get(json, "error").map_or(Cow::Borrowed(""), |error| self.text_of(error)),
                is_error: true,
            }),
            // Those of tools that a provider runs are named by them: `mcp_tool_result`.
            (Some(kind), _) if kind == "tool_result" || kind.ends_with("_tool_result") => {
                Block::Result(CallResult {
                    call: text(json, "tool_use_id")
                        .or_else(|| text(json, "toolUseId"))
                        .map(Cow::from),
                    text: get(json, "content")
                        .map_or(Cow::Borrowed(""), |content| self.text_of(content)),
                    is_error: get(json, "is_error") == Some(&JsonValue::Bool(true)),
                })
            }
            (Some("text" | "input_text" | "output_text"), _) => Block::Text(id("text").into()),
            (Some("refusal"), _) => Block::Text(id("refusal").into()),
            (None, _) => match text(json, "text") {
                Some(text) if get(json, "thought") != Some(&JsonValue::Bool(true)) => {
                    Block::Text(text.into())
                }
                _ => self.keyed(json).unwrap_or(Block::Other(Other { json })),
            },
            _ => Block::Other(Other { json }),
        }
    }

    /// The text of a content.
    fn text_of<'a>(&self, content: &'a JsonValue<'a>) -> Cow<'a, str> {
        match content {
            JsonValue::Null => "".into(),
            JsonValue::String(text) => Cow::Borrowed(text.as_ref()),
            json => text_of_json(compact_text(json, self.check_interrupts), self.check_interrupts)
                .into(),
        }
    }
}

fn text_of_json(json: String, check_interrupts: &dyn Fn()) -> String {
    match message_text(&json, check_interrupts) {
        MessageText::AsStored => json,
        MessageText::Absent => String::new(),
        MessageText::Text(text) => text,
    }
}

impl Other<'_> {
    /// What stands for it in another form, its further lines indented, as names of files may be of several; "" for
    /// thoughts.
    pub(super) fn text(self, check_interrupts: &dyn Fn()) -> String {
        let list = format!("[{}]", compact_text(self.json, check_interrupts));
        match message_text(&list, check_interrupts) {
            MessageText::Text(text) => indented(&text, check_interrupts),
            MessageText::AsStored | MessageText::Absent => String::new(),
        }
    }

    /// Its type, as a name.
    pub(super) fn kind(self) -> String {
        tool_name(text(self.json, "type").unwrap_or("unknown"))
    }

    /// Whether it is a file or a thought, of which only what it is stands in a text. The text of others is from
    /// somebody who is not the speaker, such as a page that was fetched.
    pub(super) fn is_known(self) -> bool {
        const TYPES: [&str; 9] = [
            "image",
            "document",
            "image_url",
            "input_audio",
            "file",
            "input_image",
            "input_file",
            "thinking",
            "redacted_thinking",
        ];
        text(self.json, "type").is_some_and(|kind| TYPES.contains(&kind))
    }

    /// Whether it is a thought.
    pub(super) fn is_thought(self) -> bool {
        is_thought(self.json)
    }

    /// The form that takes it as it is; `None` where it has not what that needs. A thought needs its signature, a file
    /// its bytes, which imports leave out, or where they are.
    pub(super) fn format(self) -> Option<ProviderFormat> {
        let has = |object: Option<&JsonValue<'_>>, key| {
            object.and_then(|object| text(object, key)).is_some_and(has_bytes)
        };
        let own = Some(self.json);
        let inner = |key| get(self.json, key);
        match text(self.json, "type")? {
            "thinking" if has(own, "signature") => Some(ProviderFormat::Anthropic),
            "redacted_thinking" if has(own, "data") => Some(ProviderFormat::Anthropic),
            "image" | "document" => {
                let source = inner("source");
                let is_whole = match source.and_then(|source| text(source, "type"))? {
                    "base64" => has(source, "data") && has(source, "media_type"),
                    "text" => has(source, "data"),
                    "url" => has(source, "url"),
                    "file" => has(source, "file_id"),
                    _ => false,
                };
                is_whole.then_some(ProviderFormat::Anthropic)
            }
            "image_url" if has(inner("image_url"), "url") => Some(ProviderFormat::OpenAi),
            "input_audio" if has(inner("input_audio"), "data") => Some(ProviderFormat::OpenAi),
            "file" if has(inner("file"), "file_id") || has(inner("file"), "file_data") => {
                Some(ProviderFormat::OpenAi)
            }
            "input_image" if has(own, "image_url") || has(own, "file_id") => {
                Some(ProviderFormat::Responses)
            }
            "input_file"
                if ["file_id", "file_data", "file_url"].iter().any(|key| has(own, key)) =>
            {
                Some(ProviderFormat::Responses)
            }
            _ => None,
        }
    }
}

impl<'a> Other<'a> {
    /// It as it is sent, without the mark for a provider's cache, of which a request takes a few.
    pub(super) fn sent(self) -> JsonValue<'a> {
        match self.json {
            JsonValue::Object(entries) => {
                let entries = entries.iter().filter(|(key, _)| key != "cache_control");
                JsonValue::Object(entries.cloned().collect())
            }
            json => json.clone(),
        }
    }
}

/// Whether a text is not empty, nor a data URL without data.
fn has_bytes(text: &str) -> bool {
    !(text.is_empty() || text.starts_with("data:") && text.ends_with(','))
}

/// Whether a block is a thought.
pub(super) fn is_thought(json: &JsonValue<'_>) -> bool {
    matches!(text(json, "type"), Some("thinking" | "redacted_thinking"))
}

/// The value of a key of an object; of a key that is given twice, the last.
fn get<'a>(json: &'a JsonValue<'a>, key: &str) -> Option<&'a JsonValue<'a>> {
    match json {
        JsonValue::Object(entries) => {
            entries.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
        }
        _ => None,
    }
}

fn text<'a>(json: &'a JsonValue<'a>, key: &str) -> Option<&'a str> {
    match get(json, key)? {
        JsonValue::String(text) => Some(text),
        _ => None,
    }
}
