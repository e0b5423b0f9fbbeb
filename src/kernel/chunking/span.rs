//! From a chunk back to the log: the characters of each event that a span covers.

use std::fmt;

use super::event::{EventKind, RecorderEvent};
use crate::interrupts::Interrupts;

/// One end of a span: an event's position, and a character of its contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanEnd {
    /// Segment and ordinal.
    pub position: (i64, i64),
    /// Counts from 0.
    pub char: i64,
}

/// A part of an event's contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanPiece {
    /// Its first character.
    pub start_char: usize,
    /// Its end (exclusive).
    pub end_char: usize,
    /// The characters.
    pub text: String,
}

/// Why a span does not fit the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanError {
    /// An end names a position where there is no text.
    NoText((i64, i64)),
    /// An end names characters that its event does not have.
    NoCharacters {
        /// The event's position.
        position: (i64, i64),
        /// The first character asked for.
        start: i64,
        /// The end (exclusive).
        end: i64,
        /// How many the event has.
        chars: i64,
    },
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpanError::NoText((segment, ordinal)) => {
                write!(f, "no event at segment {segment}, ordinal {ordinal} contributes text")
            }
            SpanError::NoCharacters { position: (segment, ordinal), start, end, chars } => write!(
                f,
                "event at segment {segment}, ordinal {ordinal} has {chars} characters, not {start} to {end}"
            ),
        }
    }
}

impl std::error::Error for SpanError {}

/// A span of the log, half-open in characters. Give it the events between its ends in log order: joined
/// by LF, its pieces are the text of the chunk without overlap.
#[derive(Clone, Debug)]
pub struct Span {
    start: SpanEnd,
    end: SpanEnd,
    pane_id: Option<i64>,
    ended: bool,
    check_interrupts: fn(),
}

impl Span {
    /// The span between two ends. `check_interrupts` is called within long events.
    #[must_use]
    pub fn new(start: SpanEnd, end: SpanEnd, check_interrupts: fn()) -> Self {
        Span { start, end, pane_id: None, ended: false, check_interrupts }
    }

    /// What the span holds of an event: nothing of boundaries and of other panes than its first event's.
    ///
    /// # Errors
    /// When an end is not in the log.
    pub fn piece(&mut self, event: &RecorderEvent<'_>) -> Result<Option<SpanPiece>, SpanError> {
        let position = event.offset.position();
        if self.pane_id.is_none() && position != self.start.position {
            return Err(SpanError::NoText(self.start.position));
        }
        let pane_id = *self.pane_id.get_or_insert(event.pane_id);
        if event.kind == EventKind::Boundary || event.pane_id != pane_id {
            let is_end = [self.start.position, self.end.position].contains(&position);
            return if is_end { Err(SpanError::NoText(position)) } else { Ok(None) };
        }
        let interrupts = Interrupts::new(&self.check_interrupts);
        let contribution = event.contribution(&self.check_interrupts);
        let chars = interrupts.chars(&contribution) as i64;
        let start = if position == self.start.position { self.start.char } else { 0 };
        self.ended = position == self.end.position;
        let end = if self.ended { self.end.char } else { chars };
        if start < 0 || end < start || chars < end {
            return Err(SpanError::NoCharacters { position, start, end, chars });
        }
        let (start_char, end_char) = (start as usize, end as usize);
        let text = if (start, end) == (0, chars) {
            contribution
        } else {
            let from = interrupts.char_start(&contribution, start_char);
            let rest = &contribution[from..];
            rest[..interrupts.char_start(rest, end_char - start_char)].to_owned()
        };
        Ok(Some(SpanPiece { start_char, end_char, text }))
    }

    /// Says whether the events given reached the span's end.
    ///
    /// # Errors
    /// When they did not.
    pub fn finish(&self) -> Result<(), SpanError> {
        match (self.pane_id, self.ended) {
            (None, _) => Err(SpanError::NoText(self.start.position)),
            (_, false) => Err(SpanError::NoText(self.end.position)),
            (_, true) => Ok(()),
        }
    }
}
