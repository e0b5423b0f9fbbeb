use pgrx::prelude::*;
use pgrx::{Uuid, pg_sys};

use super::anchor::elements;
use crate::pg::error::OrRaise;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::types::{StoredJsonb, Text, from_sql_uuid, to_sql_uuid};
use crate::service::provenance::{admissibility, admissible_turns, replay, store_trace};
use crate::service::tables::{self, check_traces};

#[pg_extern(stable, parallel_safe, cost = 1000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_is_admissible_result(provenance: Option<StoredJsonb>) -> bool {
    admissible_turns(&text(provenance)).or_raise().is_some()
}

#[pg_extern(stable, parallel_safe, cost = 1000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_can_promote(provenance: Option<StoredJsonb>, turn: Option<Uuid>) -> bool {
    let retrieved = admissible_turns(&text(provenance)).or_raise();
    retrieved.zip(turn).is_some_and(|(retrieved, turn)| retrieved.contains(&from_sql_uuid(turn)))
}

// Declared in sql/retrieval.sql, in the private schema.
#[pg_extern(sql = false)]
fn provenance_reason(provenance: Option<StoredJsonb>) -> &'static str {
    admissibility(&text(provenance)).or_raise()
}

#[pg_extern(sql = false)]
fn write_trace(provenance: Option<StoredJsonb>) -> Uuid {
    to_sql_uuid(store_trace(&text(provenance)).or_raise())
}

#[pg_extern(sql = false)]
fn check_trace_table(traces: Option<pg_sys::Oid>, binder: Option<pg_sys::Oid>) {
    if let Some((traces, binder)) = traces.zip(binder) {
        check_traces(traces, binder).or_raise();
    }
}

#[pg_extern(sql = false)]
fn bind_traces(call: FunctionCall) -> pgrx::Internal {
    tables::bind_traces(&call)
}

#[pg_extern(sql = false)]
fn create_trace_table(call: FunctionCall) -> pgrx::Internal {
    tables::create_trace_table(&call)
}

#[pg_extern(stable, parallel_restricted, cost = 20000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_replay_retrieval(
    provenance: Option<StoredJsonb>,
    query_embedding: Option<Array<f32>>,
) -> TableIterator<
    'static,
    (
        name!(matches, bool),
        name!(field, &'static str),
        name!(was, Option<Text>),
        name!(now, Option<Text>),
    ),
> {
    let Some(embedding) = query_embedding else { return TableIterator::empty() };
    let rows = replay(&text(provenance), || elements(&embedding)).or_raise();
    TableIterator::new(
        rows.into_iter().map(|row| (row.matches, row.field, row.was.map(Text), row.now.map(Text))),
    )
}

/// What is too long is not the JSON of a provenance, as the empty text is not.
fn text(provenance: Option<StoredJsonb>) -> String {
    provenance.and_then(StoredJsonb::text).unwrap_or_default()
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_is_admissible_result(jsonb) IS
    'whether what a search retrieved may be promoted';
COMMENT ON FUNCTION graph_can_promote(jsonb, uuid) IS
    'whether a search that may be promoted retrieved this turn';
ALTER FUNCTION graph_replay_retrieval(jsonb, real[]) ROWS 7;
COMMENT ON FUNCTION graph_replay_retrieval(jsonb, real[]) IS
    'makes a search again and says what differs';
",
    name = "provenance_comments",
    requires = [graph_is_admissible_result, graph_can_promote, graph_replay_retrieval]
);
