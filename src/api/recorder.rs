#![allow(clippy::type_complexity)] // the columns are the SQL signatures

use kernel::chunking::POLICY_VERSION;
use kernel::chunking::chunk::Chunk;
use kernel::chunking::span::SpanEnd;
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};

use crate::pg::error::{OrRaise, SqlError, Word};
use crate::pg::query::CallingQuery;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::types::{ChunkPolicy, JsonbText, Text, TextType, message_text};
use crate::pg::text::CStringArg;
use crate::service::chunks::{ChunkCursor, ChunkFilter, LogPosition, SpanCursor, chunks_of_json};
use crate::service::tables;

// All of these are declared in sql/recorder.sql: the rows are of a type made there.

#[pg_extern(sql = false)]
fn chunking_policy_in(text: CStringArg) -> ChunkPolicy {
    ChunkPolicy::from_text(&text)
}

/// The cast, as `slice_policy_of`.
#[pg_extern(sql = false)]
fn chunking_policy_of(json: JsonbText) -> ChunkPolicy {
    ChunkPolicy::from_text(&json.0)
}

#[pg_extern(sql = false)]
fn chunking_policy_recv(message: Internal) -> ChunkPolicy {
    ChunkPolicy::from_text(&message_text(message))
}

#[pg_extern(sql = false)]
fn chunking_policy_hash(policy: Option<ChunkPolicy>) -> Text {
    Text(ChunkPolicy::required(policy).or_raise().hash())
}

/// A row of the SQL type `recorder_chunk`, whose columns `pg_extern` needs in the signatures.
type ChunkRow = (
    i32,
    Text,
    &'static str,
    i64,
    Option<Text>,
    &'static str,
    i64,
    i64,
    i64,
    i32,
    i64,
    i64,
    i64,
    i32,
    Vec<Text>,
    i32,
    i64,
    i64,
    i32,
    Text,
    Option<JsonbText>,
    bool,
    Text,
);

#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)] // the SQL signature
fn recorder_chunks(
    policy: Option<ChunkPolicy>,
    pane_id: Option<i64>,
    from_segment_id: Option<i64>,
    from_ordinal: Option<i64>,
    to_segment_id: Option<i64>,
    to_ordinal: Option<i64>,
    per_pane: Option<bool>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> TableIterator<
    'static,
    (
        i32,
        Text,
        &'static str,
        i64,
        Option<Text>,
        &'static str,
        i64,
        i64,
        i64,
        i32,
        i64,
        i64,
        i64,
        i32,
        Vec<Text>,
        i32,
        i64,
        i64,
        i32,
        Text,
        Option<JsonbText>,
        bool,
        Text,
    ),
> {
    let policy = ChunkPolicy::required(policy).or_raise();
    let Some(per_pane) = per_pane else { return TableIterator::empty() };
    let filter = ChunkFilter {
        pane_id,
        from: bound("from", from_segment_id, from_ordinal, i64::MIN).or_raise(),
        to: bound("to", to_segment_id, to_ordinal, i64::MAX).or_raise(),
    };
    let calling = CallingQuery::of(fcinfo).or_raise();
    streamed(ChunkCursor::of_log(policy, per_pane, filter, calling).or_raise())
}

#[pg_extern(sql = false)]
fn recorder_chunks_since(
    segment_id: Option<i64>,
    ordinal: Option<i64>,
    policy: Option<ChunkPolicy>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> TableIterator<
    'static,
    (
        i32,
        Text,
        &'static str,
        i64,
        Option<Text>,
        &'static str,
        i64,
        i64,
        i64,
        i32,
        i64,
        i64,
        i64,
        i32,
        Vec<Text>,
        i32,
        i64,
        i64,
        i32,
        Text,
        Option<JsonbText>,
        bool,
        Text,
    ),
> {
    let policy = ChunkPolicy::required(policy).or_raise();
    let Some(position) = segment_id.zip(ordinal) else { return TableIterator::empty() };
    let calling = CallingQuery::of(fcinfo).or_raise();
    streamed(ChunkCursor::since(policy, position, ChunkFilter::default(), calling).or_raise())
}

#[pg_extern(sql = false)]
fn recorder_event_chunks(
    segment_id: Option<i64>,
    ordinal: Option<i64>,
    policy: Option<ChunkPolicy>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> TableIterator<
    'static,
    (
        i32,
        Text,
        &'static str,
        i64,
        Option<Text>,
        &'static str,
        i64,
        i64,
        i64,
        i32,
        i64,
        i64,
        i64,
        i32,
        Vec<Text>,
        i32,
        i64,
        i64,
        i32,
        Text,
        Option<JsonbText>,
        bool,
        Text,
    ),
> {
    let policy = ChunkPolicy::required(policy).or_raise();
    let Some(position) = segment_id.zip(ordinal) else { return TableIterator::empty() };
    let filter = ChunkFilter { pane_id: None, from: Some(position), to: Some(position) };
    let calling = CallingQuery::of(fcinfo).or_raise();
    streamed(ChunkCursor::since(policy, position, filter, calling).or_raise())
}

#[pg_extern(sql = false)]
fn recorder_chunk_events(
    events: Option<JsonbText>,
    policy: Option<ChunkPolicy>,
) -> TableIterator<
    'static,
    (
        i32,
        Text,
        &'static str,
        i64,
        Option<Text>,
        &'static str,
        i64,
        i64,
        i64,
        i32,
        i64,
        i64,
        i64,
        i32,
        Vec<Text>,
        i32,
        i64,
        i64,
        i32,
        Text,
        Option<JsonbText>,
        bool,
        Text,
    ),
> {
    let policy = ChunkPolicy::required(policy).or_raise();
    let Some(events) = events else { return TableIterator::empty() };
    let chunks = chunks_of_json(events.0, policy).or_raise();
    TableIterator::new((0..).zip(chunks).map(|(index, chunk)| chunk_row(index, chunk.or_raise())))
}

#[pg_extern(sql = false)]
fn recorder_chunk_span(
    start_segment_id: i64,
    start_ordinal: i64,
    start_char: i32,
    end_segment_id: i64,
    end_ordinal: i64,
    end_char: i32,
    fcinfo: pg_sys::FunctionCallInfo,
) -> TableIterator<'static, (Text, i64, i64, i64, i64, i32, i32, Text)> {
    let start = SpanEnd { position: (start_segment_id, start_ordinal), char: start_char.into() };
    let end = SpanEnd { position: (end_segment_id, end_ordinal), char: end_char.into() };
    let calling = CallingQuery::of(fcinfo).or_raise();
    let mut span = SpanCursor::open(start, end, calling).or_raise();
    TableIterator::new(std::iter::from_fn(move || {
        let (event_id, pane, segment, ordinal, byte_offset, start, end, text) =
            span.next().or_raise()?;
        Some((Text(event_id), pane, segment, ordinal, byte_offset, start, end, Text(text)))
    }))
}

#[pg_extern(sql = false)]
fn describe_recorder_table(
    events: Option<pg_sys::Oid>,
    columns: Option<JsonbText>,
    binder: Option<pg_sys::Oid>,
) -> Option<JsonbText> {
    Some(tables::events_of(events?, columns.as_ref(), binder?).or_raise().into())
}

#[pg_extern(sql = false)]
fn bind_recorder_table(call: FunctionCall) -> pgrx::Internal {
    tables::bind_recorder_table(&call)
}

#[pg_extern(sql = false)]
fn create_recorder_table(call: FunctionCall) -> pgrx::Internal {
    tables::create_recorder_table(&call)
}

/// One end of a range of positions; without an ordinal the whole segment is in it.
fn bound(
    end: &str,
    segment_id: Option<i64>,
    ordinal: Option<i64>,
    outermost: i64,
) -> Result<Option<LogPosition>, SqlError> {
    match (segment_id, ordinal) {
        (Some(segment_id), ordinal) => Ok(Some((segment_id, ordinal.unwrap_or(outermost)))),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("{end}_ordinal is given without {end}_segment_id"),
        )
        .word(Word::InvalidRange)
        .hint("An ordinal counts within its segment.")),
    }
}

/// The chunks, read one at a time: a LIMIT over a call in a select list ends the reading.
fn streamed(mut chunks: ChunkCursor) -> TableIterator<'static, ChunkRow> {
    TableIterator::new(std::iter::from_fn(move || {
        chunks.next().or_raise().map(|(index, chunk)| chunk_row(index, chunk))
    }))
}

fn chunk_row(index: i32, chunk: Chunk) -> ChunkRow {
    let event_count = chunk.event_ids.len() as i32;
    (
        index,
        Text(chunk.chunk_id),
        POLICY_VERSION,
        chunk.pane_id,
        chunk.session_id.map(Text),
        chunk.direction.name(),
        chunk.start.segment_id,
        chunk.start.ordinal,
        chunk.start.byte_offset,
        chunk.start_char as i32,
        chunk.end.segment_id,
        chunk.end.ordinal,
        chunk.end.byte_offset,
        chunk.end_char as i32,
        chunk.event_ids.into_iter().map(Text).collect(),
        event_count,
        chunk.occurred_at_start_ms,
        chunk.occurred_at_end_ms,
        chunk.text_chars as i32,
        Text(chunk.content_hash),
        chunk.overlap.map(|overlap| {
            serde_json::to_value(overlap).expect("an overlap has string keys").into()
        }),
        chunk.is_open,
        Text(chunk.text),
    )
}
