//! Chunks of recorded events, and the text of their spans.

use kernel::chunking::chunk::{Chunk, ChunkTooLarge};
use kernel::chunking::chunker::Chunker;
use kernel::chunking::event::{EventsError, events_of_json};
use kernel::chunking::policy::ChunkingPolicy;
use kernel::chunking::span::{Span, SpanEnd, SpanError, SpanPiece};
use pgrx::PgSqlErrorCode;

pub use crate::pg::access::events::LogPosition;
use crate::pg::access::events::{END_OF_LOG, EventCursor, Extent, resume_point};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::query::CallingQuery;
use crate::pg::tables::recorder::RecorderTable;

/// Which chunks to give.
#[derive(Clone, Copy, Default)]
pub struct ChunkFilter {
    /// Of this pane.
    pub pane_id: Option<i64>,
    /// That end here or later.
    pub from: Option<LogPosition>,
    /// That begin here or earlier.
    pub to: Option<LogPosition>,
}

impl ChunkFilter {
    fn lets_through(&self, chunk: &Chunk) -> bool {
        self.pane_id.is_none_or(|pane| pane == chunk.pane_id)
            && self.from.is_none_or(|from| chunk.end.position() >= from)
            && !self.is_behind(chunk)
    }

    fn is_behind(&self, chunk: &Chunk) -> bool {
        self.to.is_some_and(|to| chunk.start.position() > to)
    }
}

/// The chunks of the bound table, made as they are asked for.
pub struct ChunkCursor {
    /// `None` behind the last event.
    events: Option<EventCursor>,
    chunker: Chunker,
    filter: ChunkFilter,
    /// The pane being read, when each pane is chunked for itself.
    pane: Option<Option<i64>>,
    next_index: i32,
}

impl ChunkCursor {
    /// The chunks of the whole log that the filter lets through; each pane for itself where `per_pane`.
    ///
    /// # Errors
    /// As [`RecorderTable::current`].
    pub fn of_log(
        policy: ChunkingPolicy,
        per_pane: bool,
        filter: ChunkFilter,
        calling: CallingQuery,
    ) -> Result<Self, SqlError> {
        let extent = if per_pane { Extent::Panes } else { Extent::Log };
        Ok(Self::open(&RecorderTable::current()?, policy, extent, filter, calling))
    }

    /// The chunks from the last resume point at or before a position that the filter lets through.
    ///
    /// # Errors
    /// As [`RecorderTable::current`] and [`resume_point`].
    pub fn since(
        policy: ChunkingPolicy,
        position: LogPosition,
        filter: ChunkFilter,
        calling: CallingQuery,
    ) -> Result<Self, SqlError> {
        let table = RecorderTable::current()?;
        let start = resume_point(&table, &policy, position)?;
        let extent = start.map_or(Extent::Log, |start| Extent::Range(start, END_OF_LOG));
        Ok(Self::open(&table, policy, extent, filter, calling))
    }

    fn open(
        table: &RecorderTable,
        policy: ChunkingPolicy,
        extent: Extent,
        filter: ChunkFilter,
        calling: CallingQuery,
    ) -> Self {
        ChunkCursor {
            events: Some(EventCursor::open(table, extent, calling)),
            chunker: Chunker::new(policy, check_interrupts),
            filter,
            pane: matches!(extent, Extent::Panes).then_some(None),
            next_index: 0,
        }
    }

    /// The next chunk and its number among all that were made; `None` at the end.
    ///
    /// # Errors
    /// As [`EventCursor::next`]; 54000 where the chunk is too large.
    pub fn next(&mut self) -> Result<Option<(i32, Chunk)>, SqlError> {
        loop {
            check_interrupts();
            while let Some(chunk) = self.chunker.next_chunk().map_err(|error| too_large(&error))? {
                let index = self.next_index;
                self.next_index += 1;
                if self.filter.lets_through(&chunk) {
                    return Ok(Some((index, chunk)));
                }
                // In one log the chunks that follow begin later still.
                if self.pane.is_none() && self.filter.is_behind(&chunk) {
                    if let Some(events) = self.events.take() {
                        events.end();
                    }
                    return Ok(None);
                }
            }
            let Some(events) = &mut self.events else { return Ok(None) };
            let (chunker, pane) = (&mut self.chunker, &mut self.pane);
            let read = events.next(|event| {
                if let Some(pane) = pane
                    && pane.replace(event.pane_id).is_some_and(|before| before != event.pane_id)
                {
                    chunker.finish();
                }
                chunker.push(&event);
            })?;
            if read.is_none() {
                self.chunker.finish();
                self.events = None;
            }
        }
    }
}

fn too_large(error: &ChunkTooLarge) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, error.to_string())
        .word(Word::ChunkTooLarge)
        .hint("Use a policy with a smaller max_chunk_chars or max_chunk_events.")
}

/// The columns of `recorder_chunk_span`.
pub type SpanRow = (String, i64, i64, i64, i64, i32, i32, String);

/// The events of a span, read one at a time.
pub struct SpanCursor {
    /// `None` behind the last event.
    events: Option<EventCursor>,
    span: Span,
}

impl SpanCursor {
    /// The span between two ends in the bound table.
    ///
    /// # Errors
    /// As [`RecorderTable::current`].
    pub fn open(start: SpanEnd, end: SpanEnd, calling: CallingQuery) -> Result<Self, SqlError> {
        let extent = Extent::Range(start.position, end.position);
        let events = Some(EventCursor::open(&RecorderTable::current()?, extent, calling));
        Ok(SpanCursor { events, span: Span::new(start, end, check_interrupts) })
    }

    /// The next event's part; `None` at the end.
    ///
    /// # Errors
    /// As [`EventCursor::next`]; 22023 for a span that is none of this log.
    pub fn next(&mut self) -> Result<Option<SpanRow>, SqlError> {
        while let Some(events) = &mut self.events {
            check_interrupts();
            let span = &mut self.span;
            let piece = events.next(|event| {
                let offset = event.offset;
                let row = |piece: SpanPiece| {
                    (
                        event.event_id.to_owned(),
                        event.pane_id,
                        offset.segment_id,
                        offset.ordinal,
                        offset.byte_offset,
                        piece.start_char as i32,
                        piece.end_char as i32,
                        piece.text,
                    )
                };
                Ok(span.piece(&event)?.map(row))
            })?;
            match piece.transpose().map_err(|error| no_span(&error))? {
                Some(None) => {}
                Some(row) => return Ok(row),
                None => {
                    self.events = None;
                    self.span.finish().map_err(|error| no_span(&error))?;
                }
            }
        }
        Ok(None)
    }
}

fn no_span(error: &SpanError) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string())
        .word(Word::InvalidSpan)
        .hint("Take the span of a chunk of the bound event table as it is now.")
}

/// The chunks of a JSON array of events, as they are asked for; 54000 in place of one that is too large.
///
/// # Errors
/// 22023, 54000 where it is no such array.
pub fn chunks_of_json(
    text: String,
    policy: ChunkingPolicy,
) -> Result<impl Iterator<Item = Result<Chunk, SqlError>>, SqlError> {
    let mut events = events_of_json(&text, &check_interrupts).map_err(wrong_events)?.into_iter();
    drop(text);
    let mut chunker = Chunker::new(policy, check_interrupts);
    let mut ended = false;
    Ok(std::iter::from_fn(move || {
        loop {
            match chunker.next_chunk() {
                Ok(None) => {}
                chunk => return chunk.map_err(|error| too_large(&error)).transpose(),
            }
            match events.next() {
                Some(event) => chunker.push(&event.event()),
                None if ended => return None,
                None => {
                    chunker.finish();
                    ended = true;
                }
            }
        }
    }))
}

fn wrong_events(error: EventsError) -> SqlError {
    let code = match &error {
        EventsError::Json(error) if error.is_limit() => {
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED
        }
        _ => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
    };
    SqlError::new(code, error.to_string())
        .word(Word::InvalidEvent)
        .hint("Give a JSON array of events, each an object with the fields of a recorder event.")
}
