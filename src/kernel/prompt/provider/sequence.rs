//! The messages of a prompt as providers accept them: each call with its result behind it, the first message the
//! user's, none empty.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use chrono::DateTime;

use crate::graph::content::sha256_hex;
use crate::graph::turn::Role;
use crate::interrupts::Interrupts;
use crate::prompt::provider::other::Other;
use crate::prompt::provider::pairs::{Pairs, Place, pairs};
use crate::prompt::provider::payload::{Arguments, Block, Blocks, CallId, CallResult};
use crate::prompt::provider::{OpenCalls, PromptMessage, ProviderFormat, RenderOptions};
use crate::slicing::slice::Part;

/// What stands where the conversation does not begin with the user.
const BEGINNING: &str = "[The conversation began before this.]";
/// What stands in the place of a result.
const NO_RESULT: &str = "[No result of this call is recorded.]";
const EMPTY_RESULT: &str = "[The result is empty.]";
/// What stands before a result whose call the prompt does not have.
const LONE_RESULT: &str = "[Result of a call that is not shown]";
/// What stands before and behind recalled turns.
const RECALLED: &str = "[Earlier messages that may help, with day and speaker]";
const RECALLED_END: &str = "[End of earlier messages]";

/// The longest id and name that both OpenAI and Anthropic take.
const MAX_ID_BYTES: usize = 40;
const MAX_NAME_BYTES: usize = 64;

/// A part of a content.
#[derive(Clone, Debug)]
pub(super) enum Content<'a> {
    /// It is not empty.
    Text(Cow<'a, str>),
    /// It is of the form that is written.
    Other(Other<'a>),
    /// Of the assistant alone.
    Call(SentCall<'a>),
}

/// A call, under the id and the name that it has in the prompt.
#[derive(Clone, Debug)]
pub(super) struct SentCall<'a> {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Arguments<'a>,
}

/// The result of a call, under the id that the call has in the prompt.
pub(super) struct SentResult<'a> {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: Cow<'a, str>,
    pub(super) is_error: bool,
}

/// A message to be sent.
pub(super) enum Sent<'a> {
    System(Cow<'a, str>),
    User(Vec<Content<'a>>),
    /// Where there are calls, their results follow.
    Assistant(Vec<Content<'a>>),
    Results(Vec<SentResult<'a>>),
}

/// The messages of a record, with their blocks, in the order in which they are sent.
pub(super) fn sequence<'a>(
    entries: Vec<(&PromptMessage<'a>, Blocks<'a>)>,
    edges: &[(usize, usize)],
    format: ProviderFormat,
    options: RenderOptions,
    check_interrupts: &dyn Fn(),
) -> Vec<Sent<'a>> {
    let interrupts = Interrupts::new(check_interrupts);
    let Pairs { answers, answering, quoted, .. } = pairs(&entries, edges, check_interrupts);
    let mut sequence = Sequence {
        sent: Vec::new(),
        ids: HashSet::new(),
        repeated: HashMap::new(),
        joins: false,
        answers,
        format,
        options,
        check_interrupts,
    };
    let mut recalled = recalled_text(&entries, check_interrupts);
    for (place, (message, blocks)) in entries.into_iter().enumerate() {
        interrupts.item();
        if message.part == Part::Recalled {
            if let Some(recalled) = recalled.take() {
                sequence.sent.push(Sent::User(vec![Content::Text(recalled.into())]));
                sequence.joins = true;
            }
            continue;
        }
        let blocks = blocks.into_iter().enumerate().map(|(number, block)| {
            let at = (place, number);
            let block = match block {
                _ if answering.contains(&at) => None,
                Block::Result(result) if quoted.contains(&at) && result.is_blank => None,
                Block::Result(result) if quoted.contains(&at) => {
                    Some(Block::Text(returned(&result, check_interrupts).into()))
                }
                block => Some(block),
            };
            (number, block)
        });
        sequence.add(message.role, place, blocks);
    }
    let first = sequence.sent.iter().position(|sent| !matches!(sent, Sent::System(_)));
    let first = first.unwrap_or(sequence.sent.len());
    if !matches!(sequence.sent.get(first), Some(Sent::User(_))) {
        sequence.sent.insert(first, Sent::User(vec![Content::Text(BEGINNING.into())]));
    }
    sequence.sent
}

/// The recalled turns as one text, each with its day and its speaker.
fn recalled_text(
    entries: &[(&PromptMessage<'_>, Blocks<'_>)],
    check_interrupts: &dyn Fn(),
) -> Option<String> {
    let mut recalled = String::new();
    for (message, blocks) in entries {
        let content = message.content.filter(|text| !is_empty(text)).map(Cow::Borrowed);
        // Where all is the speaker's, the content says it.
        let is_own = |block: &Block<'_>| match block {
            Block::Text(_) => true,
            Block::Other(other) => other.is_known(),
            Block::Marked(..) | Block::Call(_) | Block::Result(_) => false,
        };
        let content = content.filter(|_| blocks.iter().all(is_own));
        let text = content.or_else(|| text_of(message.role, blocks, check_interrupts));
        let Some(text) = text.filter(|_| message.part == Part::Recalled) else { continue };
        if recalled.is_empty() {
            recalled.push_str(RECALLED);
        }
        let day = message.created_at.and_then(DateTime::from_timestamp_micros);
        let day = day.map_or_else(String::new, |time| format!("{}, ", time.date_naive()));
        recalled.push_str(&format!("\n\n[{day}{}] ", message.role.name()));
        recalled.push_str(&indented(&text, check_interrupts));
    }
    (!recalled.is_empty()).then(|| format!("{recalled}\n\n{RECALLED_END}"))
}

/// The blocks of a message as one text; `None` where they have none.
fn text_of<'a>(
    role: Role,
    blocks: &[Block<'a>],
    check_interrupts: &dyn Fn(),
) -> Option<Cow<'a, str>> {
    let texts = blocks.iter().map(|block| match block.clone() {
        Block::Text(text) => text.into_owned(),
        Block::Marked(text, _) => text,
        Block::Call(call) => call.described(check_interrupts),
        Block::Result(result) if role == Role::Tool => result.text.into_owned(),
        Block::Result(result) => returned(&result, check_interrupts),
        Block::Other(other) => other.described(check_interrupts),
    });
    let texts: Vec<String> = texts.filter(|text| !is_empty(text)).collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

/// The result of a call that is sent as a text.
fn returned(result: &CallResult<'_>, check_interrupts: &dyn Fn()) -> String {
    format!("[returned]\n  {}", indented(&result.text, check_interrupts))
}

/// A text whose further lines are indented, so that none of them reads like a mark of ours.
pub(super) fn indented(text: &str, check_interrupts: &dyn Fn()) -> String {
    // What begins a new line, for a reader or a program.
    let is_line_end = |c| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let interrupts = Interrupts::new(check_interrupts);
    let mut indented = String::with_capacity(text.len());
    for (number, line) in text.trim().split(is_line_end).enumerate() {
        interrupts.item();
        indented.push_str(if number == 0 { "" } else { "\n  " });
        interrupts.append(&mut indented, line);
    }
    indented
}

fn is_empty(text: &str) -> bool {
    text.trim().is_empty()
}

struct Sequence<'a, 'c> {
    sent: Vec<Sent<'a>>,
    /// The ids of calls so far.
    ids: HashSet<String>,
    /// How often each id of the application was given so far, where it was.
    repeated: HashMap<String, u32>,
    /// Whether the last message is what was recalled: the user's next text joins it.
    joins: bool,
    answers: HashMap<Place, CallResult<'a>>,
    format: ProviderFormat,
    options: RenderOptions,
    check_interrupts: &'c dyn Fn(),
}

impl<'a> Sequence<'a, '_> {
    /// Adds the message of a turn, or several where it goes on after results: their blocks are `None`, as they stand
    /// with their calls.
    fn add(
        &mut self,
        role: Role,
        place: usize,
        blocks: impl Iterator<Item = (usize, Option<Block<'a>>)>,
    ) {
        let (mut content, mut results, mut is_answered) = (Vec::new(), Vec::new(), false);
        let interrupts = Interrupts::new(self.check_interrupts);
        for (number, block) in blocks {
            interrupts.item();
            let Some(block) = block else {
                is_answered = true;
                continue;
            };
            if is_answered && !results.is_empty() && !matches!(block, Block::Call(_)) {
                self.send(role, std::mem::take(&mut content), std::mem::take(&mut results));
                is_answered = false;
            }
            match block {
                Block::Text(text) if is_empty(&text) => {}
                Block::Text(text) => content.push(Content::Text(text)),
                Block::Marked(text, _) => content.push(Content::Text(text.into())),
                Block::Other(other) => content.extend(self.other(other, role)),
                // Some applications store a call with the place of its result.
                Block::Result(result)
                    if role == Role::Assistant && result.is_blank || is_empty(&result.text) => {}
                Block::Result(result) => content.push(self.lone(&result.text)),
                // What others than the assistant store is not to be taken for what it has called.
                Block::Call(call) if role != Role::Assistant => {
                    content.push(Content::Text(call.described(self.check_interrupts).into()));
                }
                Block::Call(call) => {
                    let answer = self.answers.remove(&(place, number));
                    if answer.is_none() && self.options.open_calls == OpenCalls::Omit {
                        continue;
                    }
                    let id = match &call.id {
                        Some(CallId::Id(id) | CallId::Name(id)) => self.new_id(id),
                        Some(CallId::Stored(_)) | None => self.new_id(""),
                    };
                    let name = tool_name(&call.name);
                    results.push(answered(id.clone(), name.clone(), answer));
                    content.push(Content::Call(SentCall { id, name, arguments: call.arguments }));
                }
            }
        }
        self.send(role, content, results);
    }

    fn send(&mut self, role: Role, content: Vec<Content<'a>>, results: Vec<SentResult<'a>>) {
        if content.is_empty() {
            return;
        }
        let joins = std::mem::take(&mut self.joins);
        match (role, self.sent.last_mut()) {
            (Role::Assistant, _) => {
                self.sent.push(Sent::Assistant(content));
                if !results.is_empty() {
                    self.sent.push(Sent::Results(results));
                }
            }
            (Role::System, _) => self.sent.push(Sent::System(joined(content).into())),
            (_, Some(Sent::User(recalled))) if joins => recalled.extend(content),
            _ => self.sent.push(Sent::User(content)),
        }
    }

    /// A result whose call is not there.
    fn lone(&self, text: &str) -> Content<'a> {
        let text = indented(text, self.check_interrupts);
        Content::Text(format!("{LONE_RESULT}\n  {text}").into())
    }

    /// A block of a provider's form as it is, where that form is written, else the text that stands for it.
    fn other(&self, other: Other<'a>, role: Role) -> Option<Content<'a>> {
        let speaker = if other.is_thought() { Role::Assistant } else { Role::User };
        if role == speaker && other.format() == Some(self.format) {
            return Some(Content::Other(other));
        }
        let text = other.described(self.check_interrupts);
        (!text.is_empty()).then(|| Content::Text(text.into()))
    }

    /// An id that both providers take and that no call before has.
    fn new_id(&mut self, id: &str) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let hashed = |text: &str| format!("call_{}", &sha256_hex(text.as_bytes())[..24]);
        let is_taken_by_all = (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(is_plain);
        let mut new = if is_taken_by_all { id.to_owned() } else { hashed(id) };
        while !self.ids.insert(new.clone()) {
            let number = self.repeated.entry(id.to_owned()).or_insert(1);
            *number += 1;
            new = hashed(&format!("{id}#{number}"));
        }
        new
    }
}

/// The texts of a content as one.
pub(super) fn joined(content: Vec<Content<'_>>) -> String {
    let texts = content.into_iter().filter_map(|part| match part {
        Content::Text(text) => Some(text),
        Content::Other(_) | Content::Call(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn answered(id: String, name: String, answer: Option<CallResult<'_>>) -> SentResult<'_> {
    let (text, is_error) = match answer {
        None => (NO_RESULT.into(), false),
        Some(result) if is_empty(&result.text) => (EMPTY_RESULT.into(), result.is_error),
        Some(result) => (result.text, result.is_error),
    };
    SentResult { id, name, text, is_error }
}

/// A name that both providers take: other characters than letters, digits, `_` and `-` are `_`.
pub(super) fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(plain).take(MAX_NAME_BYTES).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}
