//! Who speaks in what a payload is made of.

use crate::graph::turn::Role;
use crate::messages::message::{as_text, role_name};
use crate::prompt::provider::fields::Fields;
use crate::prompt::provider::forms::{
    Form, Reader, form_in, is_of_no_call, message_of, text_of, type_of,
};
use crate::prompt::provider::payload::{Block, Blocks, CallResult, Quoted};

/// The keys that name who speaks.
pub(super) const SPEAKERS: [&str; 4] = ["role", "author", "sender", "from"];

/// Whoever a key names in a way that is not known.
const SOMEBODY: &str = "somebody";

/// How much of a name stands in a mark.
const MAX_NAME_CHARS: usize = 64;
/// How much of a name tells speakers apart: it is compared with each block that they say.
const MAX_NAME_BYTES: usize = 1024;

/// Who says what is read: of all that are named around it the innermost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker<'a> {
    /// A role as the kernel calls it, or somebody's name.
    pub(super) name: &'a str,
    /// Whether it stands in what a tool says.
    pub(super) is_answer: bool,
}

/// A block with who says it.
#[derive(Clone, Debug)]
pub(super) struct Said<'a> {
    pub(super) by: Speaker<'a>,
    pub(super) block: Block<'a>,
}

impl<'a> Speaker<'a> {
    pub(super) fn of(role: Role) -> Self {
        Speaker { name: role.name(), is_answer: role == Role::Tool }
    }

    /// Who is named within what this one says, or itself.
    pub(super) fn or_named(self, name: Option<&'a str>) -> Self {
        let cut = |name: &'a str| &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
        let name = name.map_or(self.name, |name| role_name(cut(name)));
        Speaker { name, is_answer: self.is_answer || name == Role::Tool.name() }
    }

    /// Who says what has a type of the assistant's; what a tool answers is the tool's, whatever its type.
    pub(super) fn or_assistant(self) -> Self {
        self.or_named(Some(Role::Assistant.name()).filter(|_| !self.is_answer))
    }

    /// What stands in brackets before what this one says: a role, or words that begin no other mark, with the name.
    fn mark(self) -> String {
        if Role::from_name(self.name).is_some() {
            return self.name.to_owned();
        }
        let is_plain = |c: char| match c {
            // What changes the direction of the text behind it.
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => false,
            ' ' | '-' | '.' | '@' => true,
            _ if c.is_ascii() => c.is_ascii_alphanumeric(),
            _ => !c.is_control() && !c.is_whitespace(),
        };
        let plain = |c| if is_plain(c) { c } else { '_' };
        let name: String = self.name.trim().chars().take(MAX_NAME_CHARS).map(plain).collect();
        format!("said by {name}")
    }

    pub(super) fn says(self, block: Block<'a>) -> Said<'a> {
        Said { by: self, block }
    }

    pub(super) fn say(self, blocks: Blocks<'a>) -> Vec<Said<'a>> {
        blocks.into_iter().map(|block| self.says(block)).collect()
    }
}

impl Said<'_> {
    /// A text with whose it is.
    pub(super) fn text(&self) -> Option<(&str, &str)> {
        Some((self.by.name, text_of(&self.block)?))
    }
}

impl Reader<'_> {
    /// A block as it stands among what `own` says: with a mark where it is of another.
    pub(super) fn marked<'a>(&self, said: Said<'a>, own: Speaker<'_>) -> Block<'a> {
        self.interrupts.item();
        let Said { by, block } = said;
        if by.name == own.name {
            return block;
        }
        let mut quoted = None;
        let text = match block {
            Block::Text(text) => text,
            Block::Call(call) => {
                let text = call.described(self.check_interrupts).into();
                quoted = call.id.map(|id| Quoted { id, by: by.name });
                text
            }
            // What a provider would take as it is has no place for a mark.
            Block::Other(other) => other.described(self.check_interrupts).into(),
            Block::Result(result) => {
                return Block::Result(CallResult { by: result.by.or(Some(by.name)), ..result });
            }
            block @ Block::Marked(..) => return block,
        };
        match text.trim() {
            "" => Block::Text(text),
            _ => {
                let text = format!("[{}]\n  {}", by.mark(), self.indented(&text));
                Block::Marked(text, quoted)
            }
        }
    }

    /// What a tool says, shows or calls is a result, whatever call it is of.
    pub(super) fn result_of_tool<'a>(&self, block: Block<'a>) -> Block<'a> {
        let mut quoted = None;
        let text = match block {
            Block::Text(text) => text,
            Block::Marked(text, call) => {
                quoted = call;
                text.into()
            }
            Block::Call(call) => {
                let text = call.described(self.check_interrupts).into();
                quoted = call.id.map(|id| Quoted { id, by: Role::Tool.name() });
                text
            }
            Block::Other(other) if other.is_thought() => return block,
            Block::Other(other) if other.is_known() => {
                other.described(self.check_interrupts).into()
            }
            Block::Other(other) => self.result_text(other.json),
            Block::Result(_) => return block,
        };
        let is_blank = text.trim().is_empty();
        Block::Result(CallResult { call: None, by: None, quoted, text, is_error: false, is_blank })
    }
}

/// Whom a key names.
pub(super) fn named<'a>(object: Fields<'a>, key: &str) -> Option<&'a str> {
    let value = object.get(key)?;
    let inner = || Fields::of(value)?.first_text(&["role", "name"]);
    Some(as_text(value).or_else(inner).unwrap_or(SOMEBODY))
}

/// Who speaks in an object by its keys: its role, or what those of Claude's export, Google ADK and Pydantic AI name.
pub(super) fn role_or_name<'a>(object: Fields<'a>, by_name: bool) -> Option<&'a str> {
    let kind = object.array("parts").and_then(|_| match object.text("kind")? {
        "request" => Some(Role::User.name()),
        "response" => Some(Role::Assistant.name()),
        _ => None,
    });
    let others = || SPEAKERS[1..].iter().filter_map(|key| named(object, key));
    let is_role = |name: &&str| Role::from_name(role_name(name)).is_some();
    let role = named(object, SPEAKERS[0]).or_else(|| others().chain(kind).find(is_role));
    role.or_else(|| others().next().filter(|_| by_name))
}

/// Who speaks in an object, a message or a block; but for its type. The name of somebody counts where it cannot be the
/// author of a file or the sender of a call.
pub(super) fn speaker_of<'a>(object: Fields<'a>, is_in_list: bool) -> Option<&'a str> {
    if let Some(message) = message_of(object, is_in_list) {
        let body = Fields(message.body);
        let role = message.role.or_else(|| role_or_name(object, true));
        let role = role.or_else(|| role_or_name(body, true));
        // Of nobody, what names a call is a tool's.
        return role.or_else(|| body.id(&["tool_call_id"]).map(|_| Role::Tool.name()));
    }
    let form = type_of(object.0).map(|kind| form_in(kind, object));
    role_or_name(object, matches!(form, None | Some(Some(Form::Text))))
}

/// Who speaks in a block by its type, whoever stands around it.
fn name_by_type(block: Fields<'_>) -> Option<&'static str> {
    match type_of(block.0)? {
        "user-prompt" => Some(Role::User.name()),
        "system-prompt" => Some(Role::System.name()),
        "speech" => Role::from_name(role_name(block.text("speaker")?)).map(Role::name),
        _ => is_of_no_call(block).then_some(Role::User.name()),
    }
}

/// Who speaks in a block that somebody says.
pub(super) fn by_type<'a>(block: Fields<'_>, by: Speaker<'a>) -> Speaker<'a> {
    match type_of(block.0) {
        Some("output_text" | "refusal") => by.or_assistant(),
        _ => by.or_named(name_by_type(block)),
    }
}
