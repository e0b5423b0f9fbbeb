//! A chunk: what is embedded, and where in the log it came from.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::POLICY_VERSION;
use super::event::{LogOffset, RecorderEvent};
use crate::graph::content::sha256_hex;
use crate::hex::hex;
use crate::interrupts::Interrupts;
use crate::named_enum::named_enum;

/// The most bytes of a chunk's text, overlap included, and the most bytes of the ids of its events together.
pub const MAX_CHUNK_BYTES: usize = 16 * 1024 * 1024;

/// A chunk by the policy would be longer than [`MAX_CHUNK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkTooLarge {
    /// Its first event.
    pub start: LogOffset,
}

impl fmt::Display for ChunkTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (segment, ordinal) = self.start.position();
        write!(
            f,
            "chunk from segment {segment}, ordinal {ordinal} is longer than {MAX_CHUNK_BYTES} bytes"
        )
    }
}

impl std::error::Error for ChunkTooLarge {}

named_enum! {
    /// Whose text a chunk holds.
    Direction {
        /// Text typed.
        Ingress = "ingress",
        /// Text printed.
        Egress = "egress",
        /// A short command and its output.
        MixedGlued = "mixed_glued",
    }
}

/// The beginning of a chunk's text that repeats the end of the chunk before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChunkOverlap {
    /// The id of the chunk before.
    pub from_chunk_id: String,
    /// Where the repeated text ends in the log.
    pub source_end_offset: LogOffset,
    /// How many characters are repeated; an LF follows them.
    pub chars: usize,
    /// What is repeated.
    pub text: String,
}

/// A finished chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// SHA-256 over version, pane, direction, ordinals and content hash. Equal pieces of one event share it.
    pub chunk_id: String,
    /// The pane of all its events.
    pub pane_id: i64,
    /// The session of all its events; `None` when they differ or have none.
    pub session_id: Option<String>,
    /// Whose text it is.
    pub direction: Direction,
    /// Its first event.
    pub start: LogOffset,
    /// The first character used of the first event's contribution.
    pub start_char: usize,
    /// Its last event.
    pub end: LogOffset,
    /// The end (exclusive) of the characters used of the last event's contribution.
    pub end_char: usize,
    /// Its events, in order.
    pub event_ids: Vec<String>,
    /// The first event's time, in milliseconds.
    pub occurred_at_start_ms: i64,
    /// The last event's time, in milliseconds.
    pub occurred_at_end_ms: i64,
    /// The length of the text in Unicode scalar values.
    pub text_chars: usize,
    /// SHA-256 of the text, overlap included.
    pub content_hash: String,
    /// What is embedded.
    pub text: String,
    /// What the text repeats of the chunk before.
    pub overlap: Option<ChunkOverlap>,
    /// Whether it is the last one of its log, or of its pane: later events may change it.
    pub is_open: bool,
}

/// A chunk without its hashes, as it grows.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub began_by: Beginning,
    pub pane_id: i64,
    pub session_id: Option<String>,
    pub direction: Direction,
    pub start: LogOffset,
    pub start_char: usize,
    pub end: LogOffset,
    pub end_char: usize,
    pub event_ids: Vec<String>,
    /// The bytes of the ids together.
    pub id_bytes: usize,
    pub start_ms: i64,
    pub end_ms: i64,
    /// The latest time of its events: `end_ms` may be earlier.
    pub latest_ms: i64,
    pub text: String,
    pub text_chars: usize,
    pub overlap: Option<DraftOverlap>,
}

/// Why a chunk began where it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A hard boundary other than a mere change of direction, or the start of the log.
    Hard,
    /// The direction changed, and nothing else.
    DirectionChange,
    /// A limit was reached.
    SoftSplit,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DraftOverlap {
    pub chars: usize,
    pub bytes: usize,
    pub source_end: LogOffset,
}

impl Draft {
    /// The text without overlap.
    pub fn body(&self) -> &str {
        &self.text[self.overlap.map_or(0, |overlap| overlap.bytes + 1)..]
    }

    /// The length of [`Draft::body`] in characters.
    pub fn body_chars(&self) -> usize {
        self.text_chars - self.overlap.map_or(0, |overlap| overlap.chars + 1)
    }

    /// The last characters of the text.
    pub fn tail(&self, chars: usize, check_interrupts: &dyn Fn()) -> &str {
        &self.text[Interrupts::new(check_interrupts).last_chars_start(&self.text, chars)..]
    }

    /// Whether it keeps its limits in bytes with so many more of text and ids.
    pub fn fits(&self, text: usize, ids: usize) -> bool {
        self.text.len() + text <= MAX_CHUNK_BYTES && self.id_bytes + ids <= MAX_CHUNK_BYTES
    }

    /// Adds an event with its contribution of this many characters.
    ///
    /// # Errors
    /// Where it is too large with it.
    pub fn append(
        &mut self,
        event: &RecorderEvent<'_>,
        contribution: &str,
        chars: usize,
    ) -> Result<(), ChunkTooLarge> {
        if !self.fits(1 + contribution.len(), event.event_id.len()) {
            return Err(ChunkTooLarge { start: self.start });
        }
        self.text.push('\n');
        self.text.push_str(contribution);
        self.text_chars += 1 + chars;
        self.join_session(event.session_id);
        self.end = event.offset;
        self.end_char = chars;
        self.end_ms = event.occurred_at_ms;
        self.latest_ms = self.latest_ms.max(event.occurred_at_ms);
        self.event_ids.push(event.event_id.to_owned());
        self.id_bytes += event.event_id.len();
        Ok(())
    }

    /// Keeps the session only while all events have the same.
    pub fn join_session(&mut self, other: Option<&str>) {
        if self.session_id.as_deref() != other {
            self.session_id = None;
        }
    }

    /// The chunk, after the one with this id.
    pub fn finish(
        self,
        previous_id: Option<&str>,
        is_open: bool,
        check_interrupts: &dyn Fn(),
    ) -> Chunk {
        let mut content = Sha256::new();
        let interrupts = Interrupts::new(check_interrupts);
        interrupts.pieces(self.text.as_bytes()).for_each(|piece| content.update(piece));
        let content_hash = hex(&content.finalize());
        let chunk_id = sha256_hex(
            format!(
                "{POLICY_VERSION}:{}:{}:{}:{}:{content_hash}",
                self.pane_id,
                self.direction.name(),
                self.start.ordinal,
                self.end.ordinal
            )
            .as_bytes(),
        );
        let overlap = self.overlap.map(|overlap| ChunkOverlap {
            from_chunk_id: previous_id.unwrap_or_default().to_owned(),
            source_end_offset: overlap.source_end,
            chars: overlap.chars,
            text: self.text[..overlap.bytes].to_owned(),
        });
        Chunk {
            chunk_id,
            pane_id: self.pane_id,
            session_id: self.session_id,
            direction: self.direction,
            start: self.start,
            start_char: self.start_char,
            end: self.end,
            end_char: self.end_char,
            event_ids: self.event_ids,
            occurred_at_start_ms: self.start_ms,
            occurred_at_end_ms: self.end_ms,
            text_chars: self.text_chars,
            content_hash,
            text: self.text,
            overlap,
            is_open,
        }
    }
}
