//! Events of the bound event table, one at a time.

use std::ops::ControlFlow;

use kernel::chunking::event::{EventError, RecorderEvent, StoredEvent};
use kernel::chunking::policy::ChunkingPolicy;
use kernel::chunking::resume::{EventPlace, is_resume_point};
use kernel::graph::turn::{bounded_name, may_be_hash_of_name};
use kernel::json::quoted;
use pgrx::PgSqlErrorCode;

use crate::pg::error::{Reads, SqlError, Word, with_hints};
use crate::pg::interrupts::check_interrupts;
use crate::pg::query::{
    Argument, CallingQuery, ColumnType, Cursor, Planning, Row, Template, query,
};
use crate::pg::tables::recorder::RecorderTable;

/// The columns of each statement sql/queries/recorder_*.sql.
const EVENT: &[ColumnType] = &[
    ColumnType::Integer,
    ColumnType::Integer,
    ColumnType::Integer,
    ColumnType::Integer,
    ColumnType::Integer,
    ColumnType::Boolean,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Text,
];

/// Those of type text, and their names.
const TEXTS: [(usize, &str); 5] =
    [(6, "event_id"), (7, "session_id"), (8, "event_type"), (9, "schema_version"), (10, "text")];

const fn events(text: &'static str) -> Template {
    Template { text, columns: EVENT, planning: Planning::Once }
}

const BACK: Template = events(include_str!("../../../sql/queries/recorder_back.sql"));
const LOG: Template = events(include_str!("../../../sql/queries/recorder_log.sql"));
const PANES: Template = events(include_str!("../../../sql/queries/recorder_panes.sql"));
const RANGE: Template = events(include_str!("../../../sql/queries/recorder_range.sql"));

const OF_SESSIONS: Template = Template::new(
    include_str!("../../../sql/queries/session_events.sql"),
    &[ColumnType::Text, ColumnType::Integer],
    Planning::EachTime,
);

const OF_LONG_SESSIONS: Template = Template::new(
    include_str!("../../../sql/queries/session_events_long.sql"),
    &[ColumnType::Text, ColumnType::Integer],
    Planning::EachTime,
);

/// Segment and ordinal of an event.
pub type LogPosition = (i64, i64);

/// Which events to read.
#[derive(Clone, Copy)]
pub enum Extent {
    /// All, in log order.
    Log,
    /// All, one pane after the other.
    Panes,
    /// Those from one position to another, both included, in log order.
    Range(LogPosition, LogPosition),
}

/// A position after every event.
pub const END_OF_LOG: LogPosition = (i64::MAX, i64::MAX);

/// Events, read one at a time.
pub struct EventCursor {
    cursor: Cursor,
    reads: Reads,
    last: Option<LogPosition>,
}

impl EventCursor {
    /// Begins to read events.
    pub fn open(table: &RecorderTable, extent: Extent, calling: CallingQuery) -> Self {
        let (template, arguments) = match extent {
            Extent::Log => (LOG, vec![]),
            Extent::Panes => (PANES, vec![]),
            Extent::Range(first, last) => {
                (RANGE, [first.0, first.1, last.0, last.1].map(Argument::Number).to_vec())
            }
        };
        let (statement, reads) = (table.statement(&template), table.reads());
        let cursor = with_hints(reads, || Cursor::open(&statement, &arguments, calling));
        EventCursor { cursor, reads, last: None }
    }

    /// Reads no more.
    pub fn end(self) {
        let EventCursor { cursor, reads, .. } = self;
        let cursor = std::panic::AssertUnwindSafe(cursor);
        with_hints(reads, move || {
            let cursor = cursor;
            cursor.0.end();
        });
    }

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
        with_hints(self.reads, move || {
            let cursor = cursor;
            cursor.0.next(sink)
        })?;
        self.last = position;
        found
    }
}

/// The last resume point at or before a position; `None` is the start of the log.
///
/// # Errors
/// 22000 for an event that is not valid.
pub fn resume_point(
    table: &RecorderTable,
    policy: &ChunkingPolicy,
    position: LogPosition,
) -> Result<Option<LogPosition>, SqlError> {
    let statement = table.statement(&BACK);
    let params = [Argument::Number(position.0), Argument::Number(position.1)];
    let mut later: Option<EventPlace> = None;
    let mut found = Ok(None);
    with_hints(table.reads(), || {
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

/// Hands each of these sessions that has events to `put`, and how many it has. A name of more than 4 KiB, or
/// that is not UTF-8, is known by its hash.
pub fn of_sessions(table: &RecorderTable, sessions: &[String], mut put: impl FnMut(&str, i64)) {
    let has_hash = sessions.iter().any(|session| may_be_hash_of_name(session));
    let templates = [Some(&OF_SESSIONS), has_hash.then_some(&OF_LONG_SESSIONS)];
    with_hints(table.reads(), || {
        for template in templates.into_iter().flatten() {
            query(&table.statement(template), &[Argument::Texts(sessions)], |row| {
                let count = row.i64(1).unwrap_or_default();
                row.text(0, |session| put(session.unwrap_or_default(), count));
                ControlFlow::Continue(())
            });
        }
    });
}

/// The columns of the statements sql/queries/recorder_*.sql.
fn with_event<T>(row: &Row, read: impl FnOnce(Result<RecorderEvent<'_>, EventError>) -> T) -> T {
    let not_text = TEXTS.iter().find(|(column, _)| !row.is_text(*column)).map(|(_, field)| *field);
    row.text(6, |event_id| {
        row.text(7, |session_id| {
            row.text(8, |event_type| {
                row.text(9, |schema_version| {
                    row.text(10, |text| {
                        let [event_id, session_id] = [event_id, session_id]
                            .map(|name| name.map(|name| bounded_name(name, &check_interrupts)));
                        read(RecorderEvent::try_from(StoredEvent {
                            segment_id: row.i64(0),
                            ordinal: row.i64(1),
                            byte_offset: row.i64(2),
                            pane_id: row.i64(3),
                            occurred_at_ms: row.i64(4),
                            is_gap: row.bool(5),
                            event_id: event_id.as_deref(),
                            session_id: session_id.as_deref(),
                            event_type,
                            schema_version,
                            text,
                            not_text,
                        }))
                    })
                })
            })
        })
    })
}

fn bad_row(error: &EventError) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_DATA_EXCEPTION, error.to_string())
        .word(Word::InvalidEvent)
        .hint("Correct the row of the bound event table.")
}

fn duplicate(event: &RecorderEvent<'_>) -> SqlError {
    let (segment, ordinal) = event.offset.position();
    let message = format!(
        "event {} is not the only one at segment {segment}, ordinal {ordinal}",
        quoted(event.event_id)
    );
    SqlError::new(PgSqlErrorCode::ERRCODE_CARDINALITY_VIOLATION, message)
        .word(Word::DuplicateEvent)
        .hint("Keep one row for each segment_id and ordinal, with a unique index.")
}
