//! Objects that are messages, and their roles.

use std::borrow::Cow;

use crate::json::JsonValue;

/// An object of JSON. Of a key that is given twice, the last value counts, as in a jsonb.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'v>(pub(crate) &'v [(Cow<'v, str>, JsonValue<'v>)]);

impl<'v> Entries<'v> {
    pub(crate) fn get(self, key: &str) -> Option<&'v JsonValue<'v>> {
        let Entries(entries) = self;
        entries.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value of the first of these keys that is there and not null.
    pub(crate) fn first(self, keys: &[&str]) -> Option<&'v JsonValue<'v>> {
        let mut values = keys.iter().filter_map(|key| self.get(key));
        values.find(|value| **value != JsonValue::Null)
    }

    pub(crate) fn text(self, key: &str) -> Option<&'v str> {
        as_text(self.get(key)?)
    }

    /// The first text of these keys that is not empty.
    pub(crate) fn first_text(self, keys: &[&str]) -> Option<&'v str> {
        keys.iter().filter_map(|key| self.text(key)).find(|text| !text.is_empty())
    }

    pub(crate) fn object(self, key: &str) -> Option<Entries<'v>> {
        as_object(self.get(key)?)
    }

    pub(crate) fn array(self, key: &str) -> Option<&'v [JsonValue<'v>]> {
        match self.get(key)? {
            JsonValue::Array(items) => Some(items),
            _ => None,
        }
    }
}

pub(crate) fn as_text<'v>(value: &'v JsonValue<'v>) -> Option<&'v str> {
    match value {
        JsonValue::String(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn as_object<'v>(value: &'v JsonValue<'v>) -> Option<Entries<'v>> {
    match value {
        JsonValue::Object(entries) => Some(Entries(entries)),
        _ => None,
    }
}

/// The object itself, or the block of a provider's that LangChain has put into it.
pub(crate) fn standard<'v>(object: Entries<'v>) -> Entries<'v> {
    match (object.text("type"), object.object("value")) {
        (Some("non_standard"), Some(value)) if object.text("role").is_none() => value,
        _ => object,
    }
}

/// What was said in an audio block, where it has that beside the sound.
pub(crate) fn transcript<'v>(block: Entries<'v>) -> Option<&'v str> {
    let inner = ["audio", "providerData"].into_iter().filter_map(|key| block.object(key));
    let texts = [block].into_iter().chain(inner).filter_map(|object| object.text("transcript"));
    texts.into_iter().find(|text| !text.trim().is_empty())
}

/// A message: what it says of its role, and the object that has its content.
pub(crate) struct Message<'v> {
    pub(crate) role: Option<&'v str>,
    pub(crate) body: Entries<'v>,
}

/// The keys of the names of files.
pub(crate) const FILE_NAMES: [&str; 6] =
    ["filename", "file_name", "name", "displayName", "display_name", "title"];

/// Keys of which a message that names its role has one.
const CONTENT_KEYS: [&str; 6] =
    ["content", "parts", "tool_calls", "function_call", "refusal", "audio"];

/// LangChain's names of the types of messages, but those that end in `MessageChunk`.
const LANGCHAIN_TYPES: [&str; 8] =
    ["human", "ai", "system", "developer", "tool", "function", "chat", "generic"];

/// The message that an object is. One that names its role has that, and the content beside it, whatever other keys it
/// has: an application that looks at these two has seen who says what.
pub(crate) fn message(object: Entries<'_>) -> Option<Message<'_>> {
    let (kind, role) = (object.text("type"), object.text("role"));
    if role.is_some() && CONTENT_KEYS.iter().any(|key| object.get(key).is_some()) {
        return Some(Message { role, body: object });
    }
    if object.get("lc").is_some()
        && let (Some(path), Some(body)) = (object.array("id"), object.object("kwargs"))
    {
        let class = path.last().and_then(as_text).and_then(langchain_class)?;
        return Some(Message { role: role.or(langchain_role(class, body)), body });
    }
    if let Some(kind) = kind.filter(|kind| is_langchain_type(kind)) {
        let body = object.object("data").unwrap_or(object);
        if body.get("content").is_some() {
            return Some(Message { role: role.or(langchain_role(kind, body)), body });
        }
    }
    let is_message = match (kind, role) {
        (_, Some(_)) => false,
        (Some(kind), None) => kind == "message" && object.get("content").is_some(),
        (None, None) => object
            .array("parts")
            .is_some_and(|parts| parts.iter().all(|part| as_object(part).is_some())),
    };
    is_message.then_some(Message { role, body: object })
}

fn is_langchain_type(kind: &str) -> bool {
    LANGCHAIN_TYPES.contains(&kind) || kind.ends_with("MessageChunk")
}

/// The type that the name of a class says: `Human` of `HumanMessage` and `HumanMessageChunk`.
fn langchain_class(name: &str) -> Option<&str> {
    name.strip_suffix("MessageChunk").or_else(|| name.strip_suffix("Message"))
}

fn langchain_role<'v>(kind: &'v str, body: Entries<'v>) -> Option<&'v str> {
    let kind = langchain_class(kind).unwrap_or(kind);
    let names_its_role = ["chat", "generic"].iter().any(|name| kind.eq_ignore_ascii_case(name));
    if names_its_role { body.text("role") } else { Some(kind) }
}

/// The role of an object: that of the message it is, or that of what makes or returns such an item.
pub(crate) fn role_of<'v>(object: Entries<'v>) -> Option<&'v str> {
    if let Some(Message { role, body }) = message(object) {
        let role = role.map(role_name);
        let items = body.first(&["parts", "content"]);
        return match role {
            None | Some("user") if items.is_some_and(are_results) => Some("tool"),
            role => role,
        };
    }
    if is_result(object) {
        return Some("tool");
    }
    let is_made = |kind: &str| kind == "reasoning" || kind.ends_with("_call") || kind == "tool_use";
    object.text("type").filter(|kind| is_made(kind)).map(|_| "assistant")
}

/// The kernel's name of a role; any other name is returned as it is.
#[must_use]
pub fn role_name(name: &str) -> &str {
    let known = [
        ("user", "user"),
        ("human", "user"),
        ("assistant", "assistant"),
        ("ai", "assistant"),
        ("model", "assistant"),
        ("system", "system"),
        ("developer", "system"),
        ("tool", "tool"),
        ("function", "tool"),
    ];
    let role = known.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    role.map_or(name, |(_, role)| role)
}

/// Whether a content is results of calls alone.
fn are_results(content: &JsonValue<'_>) -> bool {
    let JsonValue::Array(blocks) = content else { return false };
    let is_result = |block: &JsonValue<'_>| as_object(block).is_some_and(is_result);
    !blocks.is_empty() && blocks.iter().all(is_result)
}

/// Whether a block is a result of Gemini's interactions.
pub(super) fn is_of_interaction(kind: &str, block: Entries<'_>) -> bool {
    kind.ends_with("_result") && block.text("call_id").is_some() && block.get("result").is_some()
}

/// Whether a block or an item is the result of a call.
fn is_result(block: Entries<'_>) -> bool {
    match block.text("type") {
        Some(kind) => {
            const RESULTS: [&str; 3] = ["tool-result", "program_output", "tool_search_output"];
            kind.ends_with("tool_result")
                || kind.ends_with("_call_output")
                || kind.ends_with("_call_result")
                || is_of_interaction(kind, block)
                || RESULTS.contains(&kind)
        }
        None => ["functionResponse", "function_response", "toolResponse", "tool_response"]
            .iter()
            .any(|key| block.object(key).is_some()),
    }
}
