//! What applications store of a message, as texts, calls and results.

use std::borrow::Cow;

use crate::graph::turn::Role;
use crate::json::{JsonError, JsonLimits, JsonReader, JsonValue, compact_text, jsonb_text};
use crate::messages::MAX_MESSAGE_BYTES;
use crate::messages::message::{Entries, role_name};
use crate::prompt::provider::PromptMessage;
use crate::prompt::provider::fields::Fields;
use crate::prompt::provider::forms::{Beside, Reader, stored_text_of};
use crate::prompt::provider::other::Other;
use crate::prompt::provider::sequence::{indented, tool_name};

/// What a result names its call by. It is not empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CallId<'a> {
    Id(Cow<'a, str>),
    /// The name of what is called, in forms that have no ids.
    Name(Cow<'a, str>),
    /// The address of a call without an id that its result stands with: no other call has it.
    Stored(usize),
}

impl<'a> CallId<'a> {
    pub(super) fn id(id: Option<&'a str>) -> Option<Self> {
        id.filter(|id| !id.trim().is_empty()).map(|id| CallId::Id(id.into()))
    }

    pub(super) fn of_stored(call: Fields<'a>) -> Self {
        let Fields(Entries(entries)) = call;
        CallId::Stored(entries.as_ptr().addr())
    }

    pub(super) fn name(name: Option<&'a str>) -> Option<Self> {
        name.filter(|name| !name.trim().is_empty()).map(|name| CallId::Name(name.into()))
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    /// `None` where it has none: no result answers it.
    pub(super) id: Option<CallId<'a>>,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Arguments<'a>,
}

impl Call<'_> {
    /// It as a text.
    pub(super) fn described(&self, check_interrupts: &dyn Fn()) -> String {
        called(&self.name, self.arguments, check_interrupts)
    }
}

/// A call as a text.
pub(super) fn called(name: &str, arguments: Arguments<'_>, check_interrupts: &dyn Fn()) -> String {
    let arguments = arguments.text(check_interrupts);
    format!("[called {}({})]", tool_name(name), indented(&arguments, check_interrupts))
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
    pub(super) fn of(json: Option<&'a JsonValue<'a>>) -> Self {
        match json {
            None | Some(JsonValue::Null) => Arguments::Text("{}"),
            Some(JsonValue::String(text)) if text.trim().is_empty() => Arguments::Text("{}"),
            Some(JsonValue::String(text)) => Arguments::Text(text),
            Some(json) => Arguments::Json(json),
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Arguments::Text(text) if text == "{}")
    }

    /// JSON as a text.
    pub(super) fn text(self, check_interrupts: &dyn Fn()) -> Cow<'a, str> {
        match self {
            Arguments::Text(text) => text.into(),
            Arguments::Json(json) => compact_text(json, check_interrupts).into(),
        }
    }

    /// An object: other JSON, and as a text what no jsonb is, or has more than so many values, is its member
    /// `arguments`. The values of a text are counted off.
    pub(super) fn object(self, values: &mut usize, check_interrupts: &dyn Fn()) -> JsonValue<'a> {
        let json = match self {
            Arguments::Json(json) => json.clone(),
            Arguments::Text(text) => {
                let most = (*values).min(MAX_TEXT_VALUES);
                let mut left = most;
                let json = jsonb_text(text, MAX_ARGUMENTS_GROWTH, check_interrupts)
                    .and_then(|_| read(text, &mut left, check_interrupts).ok()?);
                if json.is_some() {
                    *values -= most - left;
                }
                json.unwrap_or(JsonValue::String(text.into()))
            }
        };
        match json {
            JsonValue::Object(_) => json,
            json => JsonValue::Object(vec![("arguments".into(), json)]),
        }
    }
}

/// A call that is sent as a text.
#[derive(Clone, Debug)]
pub(super) struct Quoted<'a> {
    pub(super) id: CallId<'a>,
    /// Who has made it.
    pub(super) by: &'a str,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(super) struct CallResult<'a> {
    /// The call; `None` where that is not known.
    pub(super) call: Option<CallId<'a>>,
    /// Who says it, where that is another than the turn's speaker.
    pub(super) by: Option<&'a str>,
    /// The call that a tool has made, where it is that.
    pub(super) quoted: Option<Quoted<'a>>,
    pub(super) text: Cow<'a, str>,
    pub(super) is_error: bool,
    /// Whether it is null, false, blank or empty, as where a call has a place for its result.
    pub(super) is_blank: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    /// What another speaker says, with the mark of that one, and the call that it was.
    Marked(String, Option<Quoted<'a>>),
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

/// The most values of JSON in a text that are read.
pub(super) const MAX_TEXT_VALUES: usize = 100_000;

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
    let reader = Reader::new(message.role, check_interrupts);
    let mut read = payload.and_then(|json| reader.payload(json)).unwrap_or_default();
    let has_content = message.content.is_some_and(|text| !text.trim().is_empty());
    let says = |block: &Block<'_>| match block {
        Block::Text(text) => !text.trim().is_empty(),
        Block::Other(other) => {
            !other.is_thought()
                && (!has_content || other.is_known() || !other.text(check_interrupts).is_empty())
        }
        Block::Marked(..) | Block::Call(_) | Block::Result(_) => true,
    };
    if let Some(content) = message.content.filter(|_| has_content)
        && let Some(json) = payload
        && (message.role == Role::Tool
            || reader.names_tool(json)
            || !is_data(content, check_interrupts))
    {
        add_content(message.role, reader.names_tool(json), content, &mut read);
    }
    let beside = payload.map(|json| reader.beside(json)).unwrap_or_default();
    let is_read = read.iter().any(says);
    let is_of_tool = is_read && payload.is_some_and(|json| reader.is_of_tool(json));
    let blocks = if is_read {
        let texts: Vec<&str> = read.iter().filter_map(stored_text_of).collect();
        let beside = reader.beside_blocks(beside, &texts);
        read.extend(beside);
        read
    } else {
        let content = message.content.unwrap_or_default();
        let is_unread = message.payload.is_some() && payload.is_none_or(is_json_in_text);
        // Imports add what stands beside a message to its content.
        let beside = reader.unnamed(beside, &[content]).into_iter().map(Beside::block);
        let texts = [Some(content), is_unread.then_some(UNREAD)].into_iter().flatten();
        texts.map(|text| Block::Text(text.into())).chain(beside).collect()
    };
    match is_of_tool || message.role == Role::Tool {
        true => blocks.into_iter().map(|block| reader.result_of_tool(block)).collect(),
        false => blocks,
    }
}

/// Adds a turn's content to what its payload says, where that is all but the text: a result, or the assistant's calls.
fn add_content<'a>(role: Role, is_of_tool: bool, content: &'a str, read: &mut Blocks<'a>) {
    let is_tools = |by: Option<&str>| by.is_none_or(|by| role_name(by) == Role::Tool.name());
    let is_blank = |result: &CallResult<'_>| {
        result.text.trim().is_empty() && result.quoted.is_none() && is_tools(result.by)
    };
    let is_call = |block: &Block<'_>| matches!(block, Block::Call(_));
    let is_silent = |block: &Block<'_>| match block {
        Block::Text(text) => text.trim().is_empty(),
        Block::Call(_) => true,
        Block::Result(result) => is_blank(result),
        Block::Other(other) => other.is_thought(),
        Block::Marked(..) => false,
    };
    match (role, read.as_mut_slice()) {
        (_, [Block::Result(result)]) if is_blank(result) => match role {
            // They return nothing, but where the payload names the tool: it is what they say.
            Role::Assistant | Role::System if !is_of_tool => read.push(Block::Text(content.into())),
            _ => (result.text, result.is_blank) = (content.into(), false),
        },
        (Role::Assistant, blocks) if blocks.iter().all(is_silent) => {
            if let Some(place) = blocks.iter().position(is_call) {
                read.insert(place, Block::Text(content.into()));
            }
        }
        _ => {}
    }
}

/// Whether a content says in another form what its payload says: as JSON, or as models write calls.
fn is_data(content: &str, check_interrupts: &dyn Fn()) -> bool {
    let content = content.trim_start();
    let is_json = || {
        matches!(read(content, &mut { MAX_TEXT_VALUES }, check_interrupts), Err(_) | Ok(Some(_)))
    };
    content.starts_with(['{', '[']) && is_json()
        || ["<tool_call", "<function"].iter().any(|tag| content.starts_with(tag))
}

/// Whether a payload is a string of JSON: so stands one that no jsonb can hold.
fn is_json_in_text(json: &JsonValue<'_>) -> bool {
    matches!(json, JsonValue::String(text) if text.trim_start().starts_with(['{', '[']))
}
