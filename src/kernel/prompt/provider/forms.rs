//! The forms in which applications store messages.
//!
//! What is read is what is certain: an object that is a message, or a block whose type or key is in the tables here.
//! Anything else in a list is a block of its own, [`Block::Other`], and takes nothing from its neighbours.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::graph::turn::Role;
use crate::interrupts::Interrupts;
use crate::json::{JsonValue, compact_text};
use crate::messages::message::{
    Entries, FILE_NAMES, Message, as_object, as_text, message, role_name, transcript,
};
use crate::messages::{MessageText, text_of_part};
use crate::prompt::provider::calls::{
    ARGUMENTS, ERRORS, IDS, NAMES, OPEN_WEBUI_INTERPRETER, PROGRAM, RESULTS,
};
use crate::prompt::provider::fields::{Fields, has_text, is_error, is_filled};
use crate::prompt::provider::other::Other;
use crate::prompt::provider::payload::{Arguments, Block, Blocks, Call, CallId, CallResult};
use crate::prompt::provider::sequence::indented;
use crate::prompt::provider::speakers::{
    SPEAKERS, Said, Speaker, by_type, named, role_or_name, speaker_of,
};

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
        // Anthropic's `compaction` has a summary of earlier messages, OpenAI's has no text.
        "text" | "input_text" | "output_text" | "refusal" | "user-prompt" | "system-prompt"
        | "compaction" => Form::Text,
        "thinking" | "redacted_thinking" => Form::Thought,
        "reasoning" | "redacted-reasoning" | "reasoning_content" | "reasoning_text"
        | "summary_text" | "think" | "step-start" | "source" | "source-url" | "source-document"
        | "item_reference" | "mcp_list_tools" | "compaction_trigger" => Form::Mark,
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
        | "speech"
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
        | "function" | "custom" | "tool-invocation" | "dynamic-tool" | PROGRAM => Form::Call,
        "tool-result"
        | "tool-error"
        | "tool-return"
        | "builtin-tool-return"
        | "retry-prompt"
        | "program_output" => Form::Result,
        OPEN_WEBUI_INTERPRETER => Form::Call,
        // Those of tools that a provider runs are named by them: `mcp_tool_result`.
        kind if ["tool_result", "_call_output", "_call_result"]
            .iter()
            .any(|end| kind.ends_with(end)) =>
        {
            Form::Result
        }
        kind if kind.ends_with("_call") => Form::Call,
        _ => return None,
    })
}

/// The keys of the texts of blocks, in all forms.
const TEXTS: [&str; 3] = ["text", "refusal", "content"];
/// Those of the results that are messages.
const RESULTS_OF_MESSAGES: [&str; 8] =
    ["content", "blocks", "parts", "output", "result", "response", "text", "outputs"];

/// The keys of blocks without a type that are calls and results.
pub(super) const CALL_KEYS: [&str; 5] =
    ["functionCall", "function_call", "toolUse", "toolCall", "tool_call"];
pub(super) const RESULT_KEYS: [&str; 5] =
    ["functionResponse", "function_response", "toolResult", "toolResponse", "tool_response"];
pub(super) const CODE_KEYS: [&str; 2] = ["executableCode", "executable_code"];
pub(super) const CODE_RESULT_KEYS: [&str; 2] = ["codeExecutionResult", "code_execution_result"];
pub(super) const THOUGHT_KEYS: [&str; 2] = ["reasoningContent", "reasoning_content"];
pub(super) const FILE_KEYS: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];
/// What the result of a server of the Model Context Protocol has beside its content.
const MCP_KEYS: [&str; 4] = ["isError", "is_error", "structuredContent", "structured_content"];
/// What a text without a type has beside it in the forms that are known.
const TEXT_KEYS: [&str; 15] = [
    "text",
    "thought",
    "thoughtSignature",
    "thought_signature",
    "signature",
    "annotations",
    "citations",
    "cache_control",
    "cachePoint",
    "id",
    "index",
    "metadata",
    "partMetadata",
    "providerMetadata",
    "providerOptions",
];
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
    pub(super) check_interrupts: &'c dyn Fn(),
    pub(super) interrupts: Interrupts<'c>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(role: Role, check_interrupts: &'c dyn Fn()) -> Self {
        let interrupts = Interrupts::new(check_interrupts);
        Reader { role, check_interrupts, interrupts }
    }

    /// The blocks of a payload; `None` where it is of no form that is known. Whoever it names as a whole, the recorded
    /// role decides, but where that is a tool.
    pub(super) fn payload<'a>(&self, json: &'a JsonValue<'a>) -> Option<Blocks<'a>> {
        let own = Speaker::of(self.role);
        let said = match json {
            JsonValue::Array(items) if has_known(items) => Some(self.list(items, own)),
            JsonValue::Object(_) => {
                let tool = Some(Role::Tool.name()).filter(|_| self.is_of_tool(json));
                self.spoken(own, tool, |by| match message_of(Fields::of(json)?, false) {
                    Some(message) => self.message(&message, by),
                    None => self.block(json, by),
                })
            }
            _ => None,
        };
        said.map(|said| said.into_iter().map(|said| self.marked(said, own)).collect())
    }

    /// Whether a payload as a whole is a tool's.
    pub(super) fn is_of_tool(&self, json: &JsonValue<'_>) -> bool {
        let name = Fields::of(json).and_then(|object| speaker_of(object, false));
        name.is_some_and(|name| role_name(name) == Role::Tool.name())
    }

    /// Whether a payload says itself that it is a tool's message; what names a call alone may be anybody's.
    pub(super) fn names_tool(&self, json: &JsonValue<'_>) -> bool {
        let message = Fields::of(json).and_then(|object| message_of(object, false));
        let role = message.and_then(|message| message.role.or(Fields(message.body).text("role")));
        role.is_some_and(|role| role_name(role) == Role::Tool.name())
    }

    /// What stands beside a message, with its name.
    pub(super) fn beside(&self, json: &JsonValue<'_>) -> Vec<Beside> {
        let Some(object) = Fields::of(json) else { return Vec::new() };
        match message_of(object, false) {
            Some(message) => self.beside_message(&message),
            None if type_of(object.0).is_some() => Vec::new(),
            None => self.beside_message(&Message { role: None, body: object.0 }),
        }
    }

    fn beside_message(&self, message: &Message<'_>) -> Vec<Beside> {
        let body = Fields(message.body);
        let mut known = HashSet::new();
        let files = ATTACHED.iter().filter_map(|key| body.get(key)).flat_map(|files| match files {
            JsonValue::Array(files) => files.as_slice(),
            file => std::slice::from_ref(file),
        });
        let files = files.filter(|file| {
            matches!(file, JsonValue::String(_) | JsonValue::Object(_)) && is_filled(file)
        });
        let files =
            files.map(|file| self.file(file)).filter(|file| known.insert(file.said.clone()));
        let added = ADDED.iter().filter(|key| **key != "error" || answers(message).is_none());
        let added = added.filter_map(|key| {
            let value = body.get(key).filter(|value| is_error(value))?;
            let text = Fields::of(value).and_then(|value| value.text("content"));
            let text = text.map_or_else(|| self.result_text(value), Cow::Borrowed);
            let said = format!("[Content of type {key}]\n  {}", self.indented(&text));
            (!text.trim().is_empty()).then(|| Beside {
                said,
                names: vec![text.trim().to_owned()],
                is_file: false,
                has_text: true,
            })
        });
        files.chain(added).collect()
    }

    /// A file that stands beside a message: its name, or an object with its name and perhaps its text.
    fn file(&self, file: &JsonValue<'_>) -> Beside {
        let object = Fields::of(file);
        let inner = object.and_then(|object| object.object("file"));
        let named =
            [object, inner].into_iter().flatten().find_map(|file| file.first_text(&FILE_NAMES));
        let name = as_text(file).or(named).unwrap_or_default();
        let list = compact_text(file, self.check_interrupts);
        let mark = self.said(&format!(
            "{{\"role\":\"user\",\"content\":null,\"experimental_attachments\":[{list}]}}"
        ));
        let mark = match mark.as_str() {
            "" | "[file]" if name.trim().is_empty() => "[file]".to_owned(),
            "" | "[file]" => format!("[file {}]", self.indented(name)),
            mark => self.indented(mark),
        };
        let text = object.and_then(|file| file.text("extracted_content"));
        let said = match text {
            Some(text) => format!("{mark}\n  {}", self.indented(text)),
            None => mark.clone(),
        };
        let names = [mark.trim_matches(['[', ']']), name.trim()].map(str::to_owned);
        Beside { said, names: names.to_vec(), is_file: true, has_text: text.is_some() }
    }

    /// A list of messages, blocks and items.
    pub(super) fn list<'a>(&self, items: &'a [JsonValue<'a>], by: Speaker<'a>) -> Vec<Said<'a>> {
        let other = |json| {
            let name = Fields::of(json).and_then(|object| role_or_name(object, false));
            self.spoken(by, name, |by| Some(vec![by.says(Block::Other(Other { json }))]))
        };
        let item = |json| self.item(json, true, by).or_else(|| other(json));
        items.iter().flat_map(item).flatten().collect()
    }

    /// An item of a list, or a content that is one; `None` where it is not known.
    fn item<'a>(
        &self,
        json: &'a JsonValue<'a>,
        is_in_list: bool,
        by: Speaker<'a>,
    ) -> Option<Vec<Said<'a>>> {
        self.interrupts.item();
        let object = match json {
            JsonValue::Null => return Some(Vec::new()),
            JsonValue::String(text) if !has_text(text) => return Some(Vec::new()),
            JsonValue::String(text) => {
                return Some(vec![by.says(Block::Text(Cow::Borrowed(text.as_ref())))]);
            }
            json => Fields::of(json)?,
        };
        let message = message_of(object, is_in_list);
        if message.is_none() && is_in_list && is_text_of_anybody(object, !by.is_answer) {
            return None;
        }
        self.spoken(by, speaker_of(object, is_in_list), |by| match message {
            Some(message) => {
                let mut said = self.message(&message, by)?;
                let texts: Vec<&str> =
                    said.iter().filter_map(|said| stored_text_of(&said.block)).collect();
                let beside = self.beside_blocks(self.beside_message(&message), &texts);
                said.extend(by.say(beside));
                Some(said)
            }
            None => self.block(json, by),
        })
    }

    /// What is read of what somebody says who may be named, innermost after `by`. What a tool says is results, in
    /// which others are marked.
    fn spoken<'a>(
        &self,
        by: Speaker<'a>,
        name: Option<&'a str>,
        read: impl FnOnce(Speaker<'a>) -> Option<Vec<Said<'a>>>,
    ) -> Option<Vec<Said<'a>>> {
        let by = by.or_named(name);
        let said = read(by)?;
        if name.is_none() || by.name != Role::Tool.name() {
            return Some(said);
        }
        let results = said.into_iter().map(|said| self.result_of_tool(self.marked(said, by)));
        Some(results.map(|result| by.says(result)).collect())
    }

    /// The blocks of a message; `None` where its content is of no form that is known.
    fn message<'a>(&self, message: &Message<'a>, by: Speaker<'a>) -> Option<Vec<Said<'a>>> {
        let body = Fields(message.body);
        let (mut said, unread) = match answers(message) {
            Some(call) => {
                (vec![by.says(self.result(&[body], &RESULTS_OF_MESSAGES, Some(call)))], None)
            }
            None => self.contents(body, by),
        };
        let is_in_content = !said.is_empty();
        let kwargs = body.object("additional_kwargs");
        let of_kwargs = |key| kwargs.and_then(|kwargs| kwargs.get(key));
        let calls = |key| self.calls(body.get(key).or_else(|| of_kwargs(key)));
        self.add_calls(&mut said, calls("toolInvocations"), by);
        self.add_calls(&mut said, calls("tool_calls"), by);
        self.add_calls(&mut said, calls("invalid_tool_calls"), by);
        let call = body.object("function_call").or_else(|| kwargs?.object("function_call"));
        if let Some(call) = call.map(|call| self.call(call))
            && let Some(Block::Call(first)) = call.first()
            && !self.has_call(&said, first, by)
        {
            self.add_calls(&mut said, call, by);
        }
        match unread {
            Some(_) if said.is_empty() => None,
            Some(json) if !is_in_content => {
                said.insert(0, by.says(Block::Other(Other { json })));
                Some(said)
            }
            _ => Some(said),
        }
    }

    /// What a message says, and of its contents the first that is of no form that is known. Of several contents the
    /// first that says something counts, with the text of the next where it has calls or files alone.
    fn contents<'a>(
        &self,
        body: Fields<'a>,
        by: Speaker<'a>,
    ) -> (Vec<Said<'a>>, Option<&'a JsonValue<'a>>) {
        let (mut said, mut unread): (Vec<Said<'a>>, _) = (Vec::new(), None);
        for content in CONTENTS.iter().filter_map(|key| body.get(key)) {
            let Some(mut read) = self.content(content, by) else {
                unread = unread.or(Some(content));
                continue;
            };
            let place = said.iter().position(|said| !is_thought(&said.block));
            let place = place.unwrap_or(said.len());
            if place < said.len() {
                let known = said.iter().filter_map(|said| result_text_of(&said.block));
                let known: HashSet<&str> = known.inspect(|text| self.looks_at(text)).collect();
                read.retain(|said| {
                    text_of(&said.block).is_some_and(|text| {
                        self.looks_at(text);
                        !known.contains(text)
                    })
                });
            }
            said.splice(place..place, read);
            let has = |is: fn(&Block<'_>) -> bool| said.iter().any(|said| is(&said.block));
            if has(|block| stored_text_of(block).is_some())
                || has(|block| matches!(block, Block::Result(_)))
                    && !has(|block| matches!(block, Block::Call(_)))
            {
                break;
            }
        }
        let is_in_content = !said.is_empty();
        let transcript = body.object("audio").and_then(|audio| audio.text("transcript"));
        // An output beside calls is likely that of a tool.
        let output = body.text("output").filter(|_| body.get("tool_calls").is_none());
        let others = body.text("text").or(output).or(transcript).filter(|_| !is_in_content);
        let refusal = body.text("refusal").map(|text| (by.or_assistant(), text));
        let texts = others.map(|text| (by, text)).into_iter().chain(refusal);
        let mut more = self.list(body.array("output").unwrap_or_default(), by);
        more.extend(texts.map(|(by, text)| by.says(Block::Text(text.into()))));
        if !more.is_empty() {
            let texts = said.iter().filter_map(Said::text);
            let texts: HashSet<_> = texts.inspect(|(_, text)| self.looks_at(text)).collect();
            more.retain(|said| said.text().is_none_or(|text| !texts.contains(&text)));
        }
        said.extend(more);
        (said, unread)
    }

    /// A content: a text, a list, or one block or message.
    fn content<'a>(&self, content: &'a JsonValue<'a>, by: Speaker<'a>) -> Option<Vec<Said<'a>>> {
        match content {
            JsonValue::Array(items) => Some(self.list(items, by)),
            content => self.item(content, false, by),
        }
    }

    /// A block or an item; `None` where it is not known.
    fn block<'a>(&self, json: &'a JsonValue<'a>, by: Speaker<'a>) -> Option<Vec<Said<'a>>> {
        let block = Fields::of(json).filter(|block| !is_of_chatgpt(*block))?;
        let Some(kind) = type_of(block.0) else { return Some(by.say(self.keyed(block)?)) };
        let by = by_type(block, by);
        let blocks = match form_in(kind, block)? {
            Form::Text => match block.first(&TEXTS) {
                None => Vec::new(),
                Some(text) => match as_object(text).and_then(|text| text.text("value")) {
                    Some(text) if !has_text(text) => Vec::new(),
                    Some(text) => vec![Block::Text(text.into())],
                    None => return self.content(text, by),
                },
            },
            Form::Call => Some(self.call(block)).filter(|call| !call.is_empty())?,
            Form::Result if is_of_no_call(block) => {
                let content = block.get("content")?;
                let is_data = matches!(content, JsonValue::Array(items) if !has_known(items));
                match self.content(content, by).filter(|_| !is_data) {
                    Some(said) => return Some(said),
                    None => vec![Block::Text(self.json(content).into())],
                }
            }
            Form::Result => {
                let id = block.id(&IDS).or_else(|| CallId::name(block.first_text(&NAMES)));
                vec![self.result(&[block], &RESULTS, id)]
            }
            Form::File | Form::Thought => {
                let other = Other { json };
                match transcript(block.0).filter(|_| other.format().is_none()) {
                    Some(said) => vec![Block::Text(said.into())],
                    None => vec![Block::Other(other)],
                }
            }
            Form::Mark => Vec::new(),
        };
        Some(by.say(blocks))
    }

    /// A block that is known by its keys, as those of Bedrock and Gemini.
    fn keyed<'a>(&self, block: Fields<'a>) -> Option<Blocks<'a>> {
        let mut blocks = Vec::new();
        if let Some(text) = block.text("text").filter(|_| !block.is_true(&["thought"])) {
            blocks.push(Block::Text(text.into()));
        }
        if is_of_mcp(block)
            && let Block::Result(result) = self.result(&[block], &RESULTS, block.id(&IDS))
        {
            blocks.push(Block::Result(CallResult { text: self.object_text(block), ..result }));
        }
        if let Some((key, file)) = FILE_KEYS.iter().find_map(|key| Some((key, block.object(key)?)))
        {
            let file = JsonValue::Object(file.0.0.to_vec());
            let file = compact_text(&file, self.check_interrupts);
            let name = self.said(&format!("[{{\"{key}\":{file}}}]"));
            blocks.push(Block::Text(self.indented(&name).into()));
        }
        if let Some(call) = block.first_object(&CALL_KEYS) {
            blocks.extend(self.call(call));
        }
        if let Some(result) = block.first_object(&RESULT_KEYS) {
            let id = result.id(&IDS).or_else(|| result.id(&["id"]));
            let id = id.or_else(|| CallId::name(result.text("name")));
            if id.is_some() || result.first(&RESULTS).or_else(|| result.first(&ERRORS)).is_some() {
                let mut block = self.result(&[result], &RESULTS, id);
                if let (Block::Result(sent), Some(files)) = (&mut block, result.get("parts")) {
                    let text = format!("{}\n{}", sent.text, self.result_text(files));
                    sent.text = text.trim().to_owned().into();
                    sent.is_blank = false;
                }
                blocks.push(block);
            }
        }
        let id = |code: Fields<'a>| code.id(&["id"]).or_else(|| CallId::name(Some(CODE_EXECUTION)));
        if let Some(call) = block.first_object(&CODE_KEYS) {
            let (id, name) = (id(call), CODE_EXECUTION.into());
            let arguments = Arguments::of(call.get("code"));
            blocks.push(Block::Call(Call { id, name, arguments }));
        }
        if let Some(result) = block.first_object(&CODE_RESULT_KEYS) {
            blocks.push(self.result(&[result], &RESULTS, id(result)));
        }
        let is_structured = |value: &JsonValue<'_>| {
            is_filled(value) && matches!(value, JsonValue::Array(_) | JsonValue::Object(_))
        };
        let is_text_alone = || {
            let Entries(entries) = block.0;
            block.0.text("text").is_some() && !entries.iter().any(|(_, value)| is_structured(value))
        };
        let is_known = !blocks.is_empty()
            || block.text("text").is_some()
            || block.first_object(&THOUGHT_KEYS).is_some()
            || is_text_alone();
        is_known.then_some(blocks)
    }

    /// Counts what is looked at again in each message around it.
    pub(super) fn looks_at(&self, text: &str) {
        self.interrupts.bytes(text.len());
    }

    /// The text of a message.
    pub(super) fn said(&self, json: &str) -> String {
        match text_of_part(json, self.check_interrupts) {
            MessageText::Text(text) => text,
            MessageText::Absent | MessageText::AsStored => String::new(),
        }
    }

    pub(super) fn json(&self, json: &JsonValue<'_>) -> String {
        compact_text(json, self.check_interrupts)
    }

    pub(super) fn indented(&self, text: &str) -> String {
        indented(text, self.check_interrupts)
    }
}

/// What stands beside a message.
pub(super) struct Beside {
    /// What names it in a prompt, with its text.
    said: String,
    /// The name of a file and what stands for it, or what else a text says that has it.
    names: Vec<String>,
    is_file: bool,
    has_text: bool,
}

/// Longer texts are not looked through: what stands beside them is said, whether they name it or not.
const MAX_SEARCHED_BYTES: usize = 1 << 20;

impl Reader<'_> {
    /// Those that no text names. In a message within a message, the outer one looks through its texts too.
    pub(super) fn unnamed(&self, beside: Vec<Beside>, texts: &[&str]) -> Vec<Beside> {
        let length: usize = texts.iter().map(|text| text.len()).sum();
        if beside.is_empty() || length > MAX_SEARCHED_BYTES {
            return beside;
        }
        self.interrupts.bytes(length);
        let files = beside.iter().filter(|beside| beside.is_file);
        let sought: HashSet<&str> =
            files.flat_map(|file| &file.names).map(String::as_str).collect();
        let marks = texts.iter().flat_map(|text| text.split('[').skip(1));
        let marks = marks.filter_map(|mark| Some(mark.split_once(']')?.0));
        let names = marks.flat_map(|mark| [Some(mark), mark.split_once(' ').map(|(_, name)| name)]);
        let named: HashSet<&str> =
            names.flatten().filter_map(|name| sought.get(name).copied()).collect();
        let is_named = |beside: &Beside| {
            beside.names.iter().filter(|name| !name.is_empty()).any(|name| match beside.is_file {
                true => named.contains(&**name),
                false => texts.iter().any(|text| text.contains(&**name)),
            })
        };
        let is_unnamed: Vec<bool> = beside.iter().map(|beside| !is_named(beside)).collect();
        beside.into_iter().zip(is_unnamed).filter_map(|(beside, is)| is.then_some(beside)).collect()
    }

    /// Those of a message with these texts, which may name them already.
    pub(super) fn beside_blocks<'a>(&self, beside: Vec<Beside>, texts: &[&str]) -> Blocks<'a> {
        let (with_text, beside): (Vec<_>, Vec<_>) =
            beside.into_iter().partition(|one| one.has_text);
        let beside = self.unnamed(beside, texts);
        beside.into_iter().chain(with_text).map(Beside::block).collect()
    }
}

impl Beside {
    pub(super) fn block<'a>(self) -> Block<'a> {
        Block::Text(self.said.into())
    }
}

/// The message that an object is: what `graph_message_text` takes for one, and what adapters store around one. In a
/// list, a content alone may be anybody's.
pub(super) fn message_of<'a>(object: Fields<'a>, is_in_list: bool) -> Option<Message<'a>> {
    let (role, kind) = (object.text("role"), type_of(object.0));
    if is_of_chatgpt(object) || is_call_or_result(object) || is_of_mcp(object) {
        return None;
    }
    let found = message(object.0);
    let has = |keys: &[&str]| keys.iter().any(|key| object.0.get(key).is_some());
    let is_message = match (role, kind) {
        (None, None) => {
            let are_objects =
                |items: &[JsonValue<'_>]| items.iter().all(|item| as_object(item).is_some());
            let lists = ["parts", "content", "output", "blocks"];
            let mut lists = lists.iter().filter_map(|key| object.array(key));
            object.array("parts").is_some_and(are_objects)
                || object.get("tool_calls").is_some()
                || object.id(&["tool_call_id"]).is_some()
                || !is_in_list && (found.is_some() || lists.any(has_known))
        }
        (Some(_), _) => {
            found.is_some() || has(&["output", "blocks", "toolInvocations", "tool_call_id"])
        }
        (None, Some(_)) => found.is_some(),
    };
    if is_message {
        let Message { role, body } = found.unwrap_or(Message { role, body: object.0 });
        let role = role.filter(|role| has_text(role));
        return Some(Message { role, body });
    }
    // An event of Google ADK's, whose author may be an agent of the many that have the role of the model.
    let inner = object.object("content").filter(|_| role.is_none() && kind.is_none())?;
    inner.array("parts").filter(|_| inner.text("role").is_some())?;
    let role = named(object, "author").or(inner.text("role"));
    Some(Message { role, body: inner.0 })
}

/// What a message is the result of: one of a tool's that names a call or itself, or one of a user's or of nobody that
/// has `tool_call_id`; but not where its content has results that name their calls.
fn answers<'a>(message: &Message<'a>) -> Option<CallId<'a>> {
    let body = Fields(message.body);
    let role = message.role.or_else(|| body.text("role"));
    let keys = match role.map(role_name) {
        Some("assistant" | "system") => return None,
        Some("tool") => &IDS[..],
        _ => &["tool_call_id"],
    };
    let is_named = |item: &JsonValue<'_>| {
        let item = Fields::of(item);
        item.is_some_and(|item| item.id(&IDS).is_some() && is_call_or_result(item))
    };
    let contents = CONTENTS.iter().filter_map(|key| body.array(key));
    if contents.flatten().any(is_named) {
        return None;
    }
    let is_tools = role.is_some_and(|role| role_name(role) == Role::Tool.name());
    let kwargs = body.object("additional_kwargs");
    let id = body.id(keys).or_else(|| kwargs?.id(keys));
    let name = || body.first_text(&NAMES).or_else(|| kwargs?.first_text(&NAMES));
    id.or_else(|| CallId::name(name().filter(|_| is_tools)))
}

/// Whether an object is a call or a result by its type, whatever else it has. Some applications write the type of its
/// parts into a message: that does not name a call.
fn is_call_or_result(object: Fields<'_>) -> bool {
    let Some(kind) = type_of(object.0) else { return false };
    match form_in(kind, object) {
        _ if kind == "function" => object.object("function").is_some(),
        Some(Form::Call) => {
            object.id(&IDS).is_some()
                || object.first(&NAMES).is_some() && object.first(&ARGUMENTS).is_some()
        }
        Some(Form::Result) => object.id(&IDS).is_some(),
        _ => false,
    }
}

/// Whether an object is a text of which nothing says who speaks: it has no type, and keys that nobody knows. In data,
/// somebody's name is not enough.
fn is_text_of_anybody(object: Fields<'_>, by_name: bool) -> bool {
    let Entries(entries) = object.0;
    let keys = [
        &TEXT_KEYS[..],
        &CALL_KEYS,
        &RESULT_KEYS,
        &CODE_KEYS,
        &CODE_RESULT_KEYS,
        &THOUGHT_KEYS,
        &FILE_KEYS,
        &MCP_KEYS,
    ];
    let is_name = |key: &str, value| SPEAKERS.contains(&key) && as_text(value).is_some();
    let is_known =
        |key: &str, value| keys.iter().any(|keys| keys.contains(&key)) || is_name(key, value);
    type_of(object.0).is_none()
        && object.text("text").is_some()
        && role_or_name(object, by_name).is_none()
        && entries.iter().any(|(key, value)| is_filled(value) && !is_known(key, value))
}

/// Whether an object is a content of ChatGPT's.
fn is_of_chatgpt(object: Fields<'_>) -> bool {
    object.text(CONTENT_TYPE).is_some()
        && object.text("role").is_none()
        && type_of(object.0).is_none()
}

/// Whether an object is what a server of the Model Context Protocol has answered.
fn is_of_mcp(object: Fields<'_>) -> bool {
    let is_told =
        |key: &&str| matches!(object.0.get(key), Some(JsonValue::Bool(_) | JsonValue::Object(_)));
    type_of(object.0).is_none()
        && object.text("role").is_none()
        && object.0.array("content").is_some()
        && MCP_KEYS.iter().any(is_told)
}

/// What a block of a type is. A part of the AI SDK's is `tool-NAME`; others that begin so are of no call. The name may
/// end as types of results do, but for those that are types themselves.
pub(super) fn form_in(kind: &str, block: Fields<'_>) -> Option<Form> {
    let has = |keys: &[&str]| block.0.first(keys).is_some();
    let is_tools = kind.starts_with("tool-") && block.id(&["toolCallId"]).is_some();
    let by_keys = || {
        if is_tools && has(&["input", "output"]) {
            return Some(Form::Call);
        }
        // Of Gemini's interactions.
        (kind.ends_with("_result") && block.id(&IDS).is_some()).then_some(Form::Result)
    };
    let is_type = ["tool-result", "tool-error", "tool-return"].contains(&kind);
    match is_tools && has(&["state"]) && !is_type {
        true => Some(Form::Call),
        false => form_of(kind).or_else(by_keys),
    }
}

/// Whether an item of a list is an object of a form that is known. It does not look into the items, so that lists in
/// lists are read once.
pub(super) fn has_known(items: &[JsonValue<'_>]) -> bool {
    items.iter().filter_map(Fields::of).any(|item| {
        let is_block = || match type_of(item.0) {
            Some(kind) => form_in(kind, item).is_some(),
            None => {
                let keys = [&CALL_KEYS[..], &RESULT_KEYS, &CODE_KEYS, &CODE_RESULT_KEYS];
                item.0.text("text").is_some() && !is_text_of_anybody(item, true)
                    || keys.iter().any(|keys| item.first_object(keys).is_some())
            }
        };
        !is_of_chatgpt(item) && (is_of_mcp(item) || message_of(item, true).is_some() || is_block())
    })
}

/// Whether an object is what Pydantic AI says to an answer that is not of a call: that is the user's.
pub(super) fn is_of_no_call(object: Fields<'_>) -> bool {
    type_of(object.0) == Some("retry-prompt") && object.text("tool_name").is_none()
}

fn is_thought(block: &Block<'_>) -> bool {
    matches!(block, Block::Other(other) if other.is_thought())
}

fn result_text_of<'b>(block: &'b Block<'_>) -> Option<&'b str> {
    match block {
        Block::Result(result) => Some(result.text.trim()),
        _ => None,
    }
}

pub(super) fn text_of<'b>(block: &'b Block<'_>) -> Option<&'b str> {
    stored_text_of(block).map(str::trim)
}

/// The same with the blanks around it, which may be long.
pub(super) fn stored_text_of<'b>(block: &'b Block<'_>) -> Option<&'b str> {
    match block {
        Block::Text(text) => Some(text),
        Block::Marked(text, _) => Some(text),
        _ => None,
    }
}
