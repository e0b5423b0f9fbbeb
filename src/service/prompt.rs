//! Prompts that were recorded: taking records, showing what became of their messages, and what providers take.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kernel::graph::edge::Edge;
use kernel::graph::turn::{Role, TurnId, unix_micros};
use kernel::json::{JsonLimits, JsonValue};
use kernel::policy::SlicePolicy;
use kernel::policy::needs::Needs;
use kernel::prompt::provider::{
    MAX_PAYLOAD_VALUES, PromptMessage, ProviderFormat, RenderOptions, render,
};
use kernel::prompt::record::{
    Hash, MessageNow, MessageState, Record, RecordedMessage, context_hash, text_hash,
};
use kernel::slicing::slicer::SliceError;
use kernel::slicing::store::GraphStore;
use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use super::slices::ReadSlice;
use super::verify::{GIVE_THE_RECORD, keys, not_admissible_record, verified};
use crate::pg::access::search::MAX_CONTENTS_BYTES;
use crate::pg::access::store::Message;
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;

/// The record of what a model is shown at an anchor. `context` is a SHA-256 in lower-case hex digits.
///
/// # Errors
/// 22023 for another context; else as [`ReadSlice::with_times`] and [`ReadSlice::record`].
pub fn record(
    anchor: TurnId,
    policy: &SlicePolicy,
    context: Option<&str>,
) -> Result<String, SqlError> {
    let context = context.map(|text| context_hash(text).ok_or_else(bad_context)).transpose()?;
    ReadSlice::with_times(anchor, policy)?.record(context)
}

fn bad_context() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        "context must be a SHA-256 in 64 lower-case hex digits",
    )
    .word(Word::InvalidContext)
    .hint("Give pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(TEXT, 'UTF8')), 'hex') of the request's \
           other parameters.")
}

/// A message of a record, and what became of it.
pub struct ShownMessage {
    /// As it was recorded.
    pub recorded: RecordedMessage,
    /// What became of it.
    pub state: MessageState,
    /// What is stored now; `None` where it is gone.
    pub now: Option<Message>,
    /// Whether the texts that were kept of it are those that were shown; `None` where none was given.
    pub matches: Option<bool>,
}

/// Texts that somebody has kept of the messages of a record, in their order.
pub struct KeptTexts<I> {
    /// How many there are.
    pub count: usize,
    /// The texts; `None` of a message without one.
    pub texts: I,
}

/// The messages of a record that verifies, in their order, with what is stored now.
///
/// # Errors
/// 22023 where the record does not verify, or other numbers of texts are given than it has messages; 54000 where what
/// is stored or given is too long; else as [`keys`] and any reading.
pub fn show<Content: AsRef<str>, Payload: AsRef<str>>(
    record: &str,
    contents: Option<KeptTexts<impl Iterator<Item = Option<Content>>>>,
    payloads: Option<KeptTexts<impl Iterator<Item = Option<Payload>>>>,
) -> Result<Vec<ShownMessage>, SqlError> {
    let (Record { messages, .. }, _) = verified_record(record)?;
    let mut left = MAX_CONTENTS_BYTES;
    let contents = contents.map(|kept| hashes("contents", kept, messages.len(), &mut left));
    let payloads = payloads.map(|kept| hashes("payloads", kept, messages.len(), &mut left));
    let (contents, payloads) = (contents.transpose()?, payloads.transpose()?);
    let mut stored = stored_messages(&messages)?;
    let shown = messages.into_iter().enumerate().map(|(place, recorded)| {
        let kept = [(&contents, recorded.content), (&payloads, recorded.payload)];
        let given =
            kept.into_iter().filter_map(|(texts, hash)| Some(texts.as_ref()?[place] == hash));
        let now = stored.remove(&recorded.turn_id);
        ShownMessage {
            state: recorded.state(now.as_ref().map(as_now), &check_interrupts),
            matches: given.reduce(|all, matches| all && matches),
            now: now.map(|(_, message)| message),
            recorded,
        }
    });
    Ok(shown.collect())
}

/// A record that verifies, as the JSON that a provider takes.
///
/// # Errors
/// 22023 where the record does not verify, for another format and for other options; 55000 where a message has another
/// text than was recorded or is gone; else as [`show`].
pub fn json(record: &str, format: &str, options: &str) -> Result<String, SqlError> {
    let format = ProviderFormat::from_name(format).ok_or_else(unknown_format)?;
    let options = JsonValue::read(options, OPTIONS_LIMITS, &check_interrupts)
        .map_err(|error| error.to_string())
        .and_then(RenderOptions::read)
        .map_err(bad_options)?;
    let (Record { messages, .. }, edges) = verified_record(record)?;
    let stored = stored_messages(&messages)?;
    let prompt = (1..).zip(&messages).map(|(n, recorded)| {
        let now = stored.get(&recorded.turn_id).map(as_now);
        let now = now.ok_or_else(|| changed(n, recorded, MessageState::Gone))?;
        if !recorded.has_texts_of(now, &check_interrupts) {
            return Err(changed(n, recorded, MessageState::Changed));
        }
        Ok(PromptMessage {
            part: recorded.part,
            role: recorded.role,
            created_at: recorded.created_at,
            content: now.content,
            payload: now.payload,
        })
    });
    let prompt: Vec<PromptMessage<'_>> = prompt.collect::<Result<_, _>>()?;
    let texts = prompt.iter().flat_map(|message| [message.content, message.payload]).flatten();
    // Texts are copied into blocks, and from there into JSON.
    memory::assure(4 * texts.map(str::len).sum::<usize>());
    let places: HashMap<TurnId, usize> =
        messages.iter().enumerate().map(|(place, message)| (message.turn_id, place)).collect();
    let place = |id| places.get(id).copied();
    let edges = edges.iter().filter_map(|edge| Some((place(&edge.parent)?, place(&edge.child)?)));
    let edges: Vec<(usize, usize)> = edges.collect();
    render(&prompt, &edges, format, options, &check_interrupts).ok_or_else(|| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("payloads of the messages have more than {MAX_PAYLOAD_VALUES} values together"),
        )
        .word(Word::SearchTooLarge)
        .hint("Use a smaller max_nodes or max_tokens.")
    })
}

const OPTIONS_LIMITS: JsonLimits = JsonLimits { bytes: 4096, values: 64, token_bytes: 4096 };

fn unknown_format() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, "format is not known")
        .word(Word::InvalidFormat)
        .hint("Give 'openai', 'responses', 'anthropic' or 'plain'.")
}

fn bad_options(error: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error)
        .word(Word::InvalidOptions)
        .hint("Give {\"open_calls\": \"note\"}, {\"open_calls\": \"omit\"} or {}.")
}

fn changed(n: usize, recorded: &RecordedMessage, state: MessageState) -> SqlError {
    let what = match state {
        MessageState::Gone => "is gone",
        MessageState::Changed | MessageState::Unchanged => "has another text",
    };
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("message {n}, turn {}, {what} since the prompt was recorded", recorded.turn_id),
    )
    .word(Word::PromptChanged)
    .hint("Take the record again. graph_messages_show says what became of each message.")
}

fn as_now((role, message): &(Role, Message)) -> MessageNow<'_> {
    MessageNow {
        role: *role,
        created_at: message.created_at.map(unix_micros),
        content: message.content.as_deref(),
        payload: message.payload.as_deref(),
    }
}

/// A record that verifies.
///
/// # Errors
/// 22023 where it does not; else as [`keys`].
fn verified_record(record: &str) -> Result<(Record, Vec<Edge>), SqlError> {
    let mut verdict = verified(record, &keys()?);
    if verdict.valid().is_none() {
        return Err(not_admissible_record(&verdict));
    }
    let document = verdict.document.take();
    let record = document.and_then(|document| Some((document.record?, document.export.edges)));
    record.ok_or_else(|| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "this is the export of a slice, not the record of a prompt",
        )
        .word(Word::InvalidPrompt)
        .hint(GIVE_THE_RECORD)
    })
}

/// What is stored of the turns of these messages, with their roles, where there is something and it is not hidden.
fn stored_messages(
    messages: &[RecordedMessage],
) -> Result<HashMap<TurnId, (Role, Message)>, SqlError> {
    let ids: Vec<TurnId> = messages.iter().map(|message| message.turn_id).collect();
    let reader = GraphReader::current()?;
    reader.ask_settled(Needs::default(), |store| {
        let mut messages = store.messages(&ids)?;
        let (mut stored, mut twice) = (HashMap::with_capacity(ids.len()), None);
        store.turns(&ids, &mut |(turn, _)| {
            match stored.entry(turn.id) {
                Entry::Occupied(_) => twice = Some(turn.id),
                Entry::Vacant(place) => {
                    if let Some(message) = messages.remove(&turn.id) {
                        place.insert((turn.role, message));
                    }
                }
            }
            std::ops::ControlFlow::Continue(())
        })?;
        match twice {
            Some(id) => Err(SqlError::from(SliceError::<SqlError>::DuplicateTurn(id))),
            None => Ok(stored),
        }
    })
}

fn wrong_count(what: &str, given: usize, messages: usize) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("{given} {what} are given for {messages} messages"),
    )
    .word(Word::InvalidPrompt)
    .hint("Give one for each message, in their order, NULL for a message without.")
}

fn hashes(
    what: &str,
    kept: KeptTexts<impl Iterator<Item = Option<impl AsRef<str>>>>,
    messages: usize,
    left: &mut usize,
) -> Result<Vec<Option<Hash>>, SqlError> {
    if kept.count != messages {
        return Err(wrong_count(what, kept.count, messages));
    }
    let hash = |text: Option<_>| {
        check_interrupts();
        let Some(text) = text else { return Ok(None) };
        let text: &str = AsRef::as_ref(&text);
        *left = left.checked_sub(text.len()).ok_or_else(kept_too_long)?;
        Ok(Some(text_hash(text, &check_interrupts)))
    };
    kept.texts.map(hash).collect()
}

fn kept_too_long() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("contents and payloads given are longer than {MAX_CONTENTS_BYTES} bytes together"),
    )
    .word(Word::RequestTooLarge)
    .hint("Give the contents and the payloads in two calls.")
}
