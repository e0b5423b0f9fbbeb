//! The bound event table: chunks of it as it is read.

use std::ops::ControlFlow;

use kernel::chunking::chunk::Chunk;
use kernel::chunking::chunker::Chunker;
use kernel::chunking::event::{EventError, RecorderEvent, StoredEvent};
use kernel::chunking::policy::ChunkingPolicy;
use kernel::chunking::resume::{EventPlace, is_resume_point};
use kernel::chunking::span::{Span, SpanEnd, SpanError, SpanPiece};
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::error::{SqlError, with_policy_hint};
use crate::pg::private::binding::{RecorderBinding, mapping};
use crate::pg::query::{
    Argument, CallingQuery, Column, Cursor, Planning, Row, Statement, Template, query,
};
use crate::pg::session::{check_interrupts, row_security_applies_to};
use crate::pg::tables::bound_table::{
    BoundTable, ColumnRule, Kind, Named, TableRules, fill, optional, required,
};
use crate::pg::tables::relation;

const EVENT_COLUMNS: &[ColumnRule] = &[
    required("segment_id", &["segment_id"], Kind::Integer),
    required("ordinal", &["ordinal"], Kind::Integer),
    required("byte_offset", &["byte_offset"], Kind::Integer),
    required("event_id", &["event_id"], Kind::Text),
    required("pane_id", &["pane_id"], Kind::Integer),
    optional("session_id", &["session_id"], Kind::Text),
    required("occurred_at_ms", &["occurred_at_ms"], Kind::Integer),
    required("event_type", &["event_type"], Kind::Text),
    required("text", &["text"], Kind::Text),
    optional("is_gap", &["is_gap"], Kind::Boolean),
    optional("schema_version", &["schema_version"], Kind::Text),
];

const EVENTS: TableRules = TableRules {
    part: "events",
    word: "RECORDER_TABLE",
    columns: EVENT_COLUMNS,
    command: |mapping| {
        let mapping = mapping.map_or_else(String::new, |mapping| format!(", '{mapping}'"));
        format!("SELECT graph_kernel.bind_recorder_table('events'{mapping})")
    },
};

/// The columns of each statement sql/queries/recorder_*.sql.
const EVENT: &[Column] = &[
    Column::Integer,
    Column::Integer,
    Column::Integer,
    Column::Integer,
    Column::Integer,
    Column::Boolean,
    Column::Text,
    Column::Text,
    Column::Text,
    Column::Text,
    Column::Text,
];

const fn events(text: &'static str) -> Template {
    Template { text, columns: EVENT, planning: Planning::Once }
}

const BACK: Template = events(include_str!("../../../sql/queries/recorder_back.sql"));
const LOG: Template = events(include_str!("../../../sql/queries/recorder_log.sql"));
const PANES: Template = events(include_str!("../../../sql/queries/recorder_panes.sql"));
const RANGE: Template = events(include_str!("../../../sql/queries/recorder_range.sql"));

/// Segment and ordinal of an event.
pub type Position = (i64, i64);

/// The event table as it is named now.
pub struct RecorderTable {
    events: BoundTable,
    rls: bool,
}

impl RecorderTable {
    /// The bound table, or the default one while nothing is bound. It stays locked AccessShare to the
    /// transaction's end.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when the table is not what chunking needs.
    pub fn current() -> Result<Self, SqlError> {
        match RecorderBinding::current() {
            Some(RecorderBinding { events, columns }) => {
                Self::resolve(events, &mapping(columns.as_ref())?)
            }
            None => {
                let default = relation::lock_by_name(c"public", c"recorder_events");
                Self::resolve(default.ok_or_else(no_default_table)?, &Value::Null)
            }
        }
    }

    /// The table of this OID, with this column mapping.
    ///
    /// # Errors
    /// As [`RecorderTable::current`]; 22023 for a bad mapping.
    pub fn resolve(events: pg_sys::Oid, mapping: &Value) -> Result<Self, SqlError> {
        check_mapping(mapping)?;
        let events = BoundTable::resolve(events, &EVENTS, Some(mapping))?;
        let rls = row_security_applies_to(events.table.oid);
        Ok(RecorderTable { events, rls })
    }

    /// What SQL code needs to query the table.
    pub fn description(&self) -> Value {
        self.events.description("e")
    }

    /// The last resume point at or before a position; `None` is the start of the log.
    ///
    /// # Errors
    /// 22000 for an event that is not valid.
    pub fn resume_point(
        &self,
        policy: &ChunkingPolicy,
        position: Position,
    ) -> Result<Option<Position>, SqlError> {
        let statement = self.statement(&BACK);
        let params = [Argument::Number(position.0), Argument::Number(position.1)];
        let mut later: Option<EventPlace> = None;
        let mut found = Ok(None);
        with_policy_hint(self.rls, || {
            query(&statement, &params, |row| {
                let place = match with_event(&row, |event| event.map(|e| EventPlace::from(&e))) {
                    Ok(place) => place,
                    Err(error) => {
                        found = Err(bad_row(&error));
                        return ControlFlow::Break(());
                    }
                };
                match later.replace(place) {
                    Some(event) if is_resume_point(policy, &place, &event) => {
                        found = Ok(Some(event.position));
                        ControlFlow::Break(())
                    }
                    _ => ControlFlow::Continue(()),
                }
            });
        });
        found
    }

    /// Begins to read events.
    pub fn read(&self, extent: Extent, calling: CallingQuery) -> EventCursor {
        let (template, arguments) = match extent {
            Extent::Log => (LOG, vec![]),
            Extent::Panes => (PANES, vec![]),
            Extent::Range(first, last) => {
                (RANGE, [first.0, first.1, last.0, last.1].map(Argument::Number).to_vec())
            }
        };
        let statement = self.statement(&template);
        let cursor = with_policy_hint(self.rls, || Cursor::open(&statement, &arguments, calling));
        EventCursor { cursor, rls: self.rls, last: None }
    }

    fn statement(&self, template: &Template) -> Statement {
        fill(template, &[], &[Named { name: "events", alias: "e", table: &self.events }])
    }
}

/// Which events to read.
#[derive(Clone, Copy)]
pub enum Extent {
    /// All, in log order.
    Log,
    /// All, one pane after the other.
    Panes,
    /// Those from one position to another, both included, in log order.
    Range(Position, Position),
}

/// Behind every event.
pub const END_OF_LOG: Position = (i64::MAX, i64::MAX);

/// Events, read one at a time.
pub struct EventCursor {
    cursor: Cursor,
    rls: bool,
    last: Option<Position>,
}

impl EventCursor {
    /// What `read` makes of the next event; `None` at the end.
    ///
    /// # Errors
    /// 22000 for an event that is not valid, 21000 for one at the position of another.
    pub fn next<T>(
        &mut self,
        read: impl FnOnce(RecorderEvent<'_>) -> T,
    ) -> Result<Option<T>, SqlError> {
        let last = self.last;
        let (mut read, mut found) = (Some(read), Ok(None));
        let cursor = std::panic::AssertUnwindSafe(&mut self.cursor);
        let mut position = None;
        let sink = |row: Row| {
            let Some(read) = read.take() else { return };
            found = with_event(&row, |event| match event {
                Err(error) => Err(bad_row(&error)),
                Ok(event) if last == Some(event.offset.position()) => Err(duplicate(&event)),
                Ok(event) => {
                    position = Some(event.offset.position());
                    Ok(Some(read(event)))
                }
            });
        };
        with_policy_hint(self.rls, move || {
            let cursor = cursor;
            cursor.0.next(sink)
        })?;
        self.last = position;
        found
    }
}

/// Which chunks to give.
#[derive(Clone, Copy, Default)]
pub struct ChunkFilter {
    /// Of this pane.
    pub pane_id: Option<i64>,
    /// That end here or later.
    pub from: Option<Position>,
    /// That begin here or earlier.
    pub to: Option<Position>,
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
    /// The chunks of these events that the filter lets through.
    pub fn open(
        table: &RecorderTable,
        policy: ChunkingPolicy,
        extent: Extent,
        filter: ChunkFilter,
        calling: CallingQuery,
    ) -> Self {
        ChunkCursor {
            events: Some(table.read(extent, calling)),
            chunker: Chunker::new(policy, check_interrupts),
            filter,
            pane: matches!(extent, Extent::Panes).then_some(None),
            next_index: 0,
        }
    }

    /// The next chunk and its number among all that were made; `None` at the end.
    ///
    /// # Errors
    /// As [`EventCursor::next`].
    pub fn next(&mut self) -> Result<Option<(i32, Chunk)>, SqlError> {
        loop {
            check_interrupts();
            while let Some(chunk) = self.chunker.next_chunk() {
                let index = self.next_index;
                self.next_index += 1;
                if self.filter.lets_through(&chunk) {
                    return Ok(Some((index, chunk)));
                }
                // In one log the chunks that follow begin later still.
                if self.pane.is_none() && self.filter.is_behind(&chunk) {
                    self.events = None;
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

/// The columns of `recorder_chunk_span`.
pub type SpanRow = (String, i64, i64, i64, i64, i32, i32, String);

/// The events of a span, read one at a time.
pub struct SpanCursor {
    /// `None` behind the last event.
    events: Option<EventCursor>,
    span: Span,
}

impl SpanCursor {
    /// The span between two ends.
    pub fn open(
        table: &RecorderTable,
        start: SpanEnd,
        end: SpanEnd,
        calling: CallingQuery,
    ) -> Self {
        let extent = Extent::Range(start.position, end.position);
        let events = Some(table.read(extent, calling));
        SpanCursor { events, span: Span::new(start, end, check_interrupts) }
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
        .detail("INVALID_SPAN")
        .hint("Take the span of a chunk of the bound event table as it is now.")
}

/// The columns of the statements sql/queries/recorder_*.sql.
fn with_event<T>(row: &Row, read: impl FnOnce(Result<RecorderEvent<'_>, EventError>) -> T) -> T {
    row.text(6, |event_id| {
        row.text(7, |session_id| {
            row.text(8, |event_type| {
                row.text(9, |schema_version| {
                    row.text(10, |text| {
                        read(RecorderEvent::try_from(StoredEvent {
                            segment_id: row.i64(0),
                            ordinal: row.i64(1),
                            byte_offset: row.i64(2),
                            pane_id: row.i64(3),
                            occurred_at_ms: row.i64(4),
                            is_gap: row.bool(5),
                            event_id,
                            session_id,
                            event_type,
                            schema_version,
                            text,
                        }))
                    })
                })
            })
        })
    })
}

fn bad_row(error: &EventError) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_DATA_EXCEPTION, error.to_string())
        .detail("INVALID_EVENT")
        .hint("Correct the row of the bound event table.")
}

fn duplicate(event: &RecorderEvent<'_>) -> SqlError {
    let (segment, ordinal) = event.offset.position();
    let message = format!(
        "event {:?} is not the only one at segment {segment}, ordinal {ordinal}",
        event.event_id
    );
    SqlError::new(PgSqlErrorCode::ERRCODE_CARDINALITY_VIOLATION, message)
        .detail("DUPLICATE_EVENT")
        .hint("Keep one row for each segment_id and ordinal, with a unique index.")
}

fn no_default_table() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        "relation \"public.recorder_events\" does not exist",
    )
    .detail("RECORDER_TABLE")
    .hint(
        "Run SELECT graph_kernel.create_recorder_tables(), or bind a table of your own with \
         SELECT graph_kernel.bind_recorder_table('events').",
    )
}

fn check_mapping(mapping: &Value) -> Result<(), SqlError> {
    let wrong = |message: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .detail("INVALID_BINDING")
            .hint("Give columns as '{\"ordinal\": \"my_column\"}'.")
    };
    let columns = match mapping {
        Value::Null => return Ok(()),
        Value::Object(columns) => columns,
        _ => return Err(wrong("column mapping must be a JSON object".to_owned())),
    };
    match columns.keys().find(|key| EVENT_COLUMNS.iter().all(|rule| rule.key != **key)) {
        Some(key) => Err(wrong(format!("column mapping has no key \"{key}\""))),
        None => Ok(()),
    }
}
