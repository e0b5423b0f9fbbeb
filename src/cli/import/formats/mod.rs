//! The formats: each reads a file and emits its messages, conversation by conversation.

pub(super) mod agents;
pub(super) mod chatgpt;
pub(super) mod claude;
pub(super) mod claude_code;
pub(super) mod codex;
pub(super) mod librechat;
pub(super) mod openwebui;

use std::io::Read;

use struson::reader::{ReaderError, ValueType};

use super::json::{JsonStream, LineColumn, explained};
use super::message::{Message, short_id};
use super::value::Value;
use crate::Failure;

/// Receives what a format reads.
pub(super) trait MessageSink {
    /// A message of the conversation that is being read.
    fn message(&mut self, message: Message) -> Result<(), Failure>;

    /// An edge between two messages, by their ids. It counts if the child has no parent of its own.
    fn edge(&mut self, parent: String, child: String) -> Result<(), Failure>;

    /// A record that cannot be read, and why.
    fn broken(&mut self, place: LineColumn, why: String) -> Result<(), Failure>;

    /// The conversation has ended; this is its id.
    fn end_of_conversation(&mut self, place: LineColumn, id: Option<String>)
    -> Result<(), Failure>;
}

/// Why a file was not read to its end.
pub(super) enum Stop {
    /// The rest cannot be read. What was emitted since the last end of a conversation is not whole.
    Unreadable(LineColumn, String),
    /// Nothing more can be done.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

impl From<ReaderError> for Stop {
    fn from(error: ReaderError) -> Self {
        let (why, place) = explained(error);
        Stop::Unreadable(place, why)
    }
}

/// Calls `read` with the reader at each conversation of a document: the document itself, or each element of its array.
fn each_conversation<R: Read>(
    source: R,
    sink: &mut dyn MessageSink,
    mut read: impl FnMut(&mut JsonStream<R>, &mut dyn MessageSink) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut json = JsonStream::new(source);
    match json.kind()? {
        ValueType::Object => read(&mut json, sink)?,
        ValueType::Array => {
            json.begin_array()?;
            while json.has_element()? {
                if json.kind()? == ValueType::Object {
                    read(&mut json, sink)?;
                } else {
                    sink.broken(json.place(), "a conversation is not an object".to_owned())?;
                    sink.end_of_conversation(json.place(), None)?;
                    json.skip()?;
                }
            }
        }
        _ => {
            let why = "neither a conversation nor an array of them".to_owned();
            return Err(Stop::Unreadable(json.place(), why));
        }
    }
    Ok(json.end()?)
}

/// Reads the messages in the array or the object that comes next; `understand` makes messages of each.
fn each_message<R: Read>(
    json: &mut JsonStream<R>,
    sink: &mut dyn MessageSink,
    mut understand: impl FnMut(Option<String>, &Value) -> Result<Vec<Message>, String>,
) -> Result<(), Stop> {
    let is_object = match json.kind()? {
        ValueType::Object => true,
        ValueType::Array => false,
        _ => {
            sink.broken(
                json.place(),
                "the messages are neither an array nor an object".to_owned(),
            )?;
            return Ok(json.skip()?);
        }
    };
    if is_object {
        json.begin_object()?;
    } else {
        json.begin_array()?;
    }
    loop {
        let key = if is_object {
            match json.next_key()? {
                Some(key) => Some(key),
                None => return Ok(()),
            }
        } else if json.has_element()? {
            None
        } else {
            return Ok(());
        };
        json.kind()?; // passes the white space, so that the place is that of the value
        let place = json.place();
        let value = json.value()?;
        let key = key.map(short_id).transpose();
        match value.and_then(|value| understand(key?, &value)) {
            Ok(messages) => messages.into_iter().try_for_each(|message| sink.message(message))?,
            Err(why) => sink.broken(place, why)?,
        }
    }
}

/// The next value if it is a text that is not empty; anything else is skipped.
fn text<R: Read>(json: &mut JsonStream<R>) -> Result<Option<String>, Stop> {
    if json.kind()? != ValueType::String {
        json.skip()?;
        return Ok(None);
    }
    Ok(match json.value()? {
        Ok(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    })
}
