use kernel::retrieval::similarity::{EmbeddingError, MAX_DIMENSIONS};
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::sql::types::{from_sql_uuid, to_sql_uuid};
use crate::pg::text::TextArg;
use crate::service::anchor::{find_anchor, latest_turns};
use crate::service::search::checked_limit;

#[pg_extern(stable, parallel_restricted, cost = 1000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_anchor(
    turn_id: default!(Option<Uuid>, "NULL"),
    session_id: default!(Option<TextArg>, "NULL"),
    query_embedding: default!(Option<Array<f32>>, "NULL"),
) -> TableIterator<'static, (name!(anchor_turn_id, Uuid), name!(strategy, &'static str))> {
    let turn = turn_id.map(from_sql_uuid);
    // Read only where no argument before it is given.
    let embedding = || query_embedding.as_ref().map(elements).transpose();
    let found = find_anchor(turn, session_id.as_deref(), embedding).or_raise();
    TableIterator::new(found.map(|(id, strategy)| (to_sql_uuid(id), strategy.name())))
}

#[pg_extern(stable, parallel_restricted, cost = 1000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_anchors_recent(
    limit_count: default!(Option<i32>, 5),
    session_id: default!(Option<TextArg>, "NULL"),
) -> TableIterator<'static, (name!(anchor_turn_id, Uuid), name!(created_at, i64))> {
    let Some(limit) = limit_count else { return TableIterator::empty() };
    let turns = checked_limit(limit)
        .and_then(|limit| latest_turns(session_id.as_deref(), limit))
        .or_raise();
    TableIterator::new(turns.into_iter().map(|(id, created_at)| (to_sql_uuid(id), created_at)))
}

/// The elements of an array, if it is not too long for an embedding.
pub fn elements(array: &Array<f32>) -> Result<Vec<Option<f32>>, SqlError> {
    match array.len() {
        length if length > MAX_DIMENSIONS => Err(EmbeddingError::Dimensions(length).into()),
        _ => Ok(array.iter().collect()),
    }
}

extension_sql!(
    r"
ALTER FUNCTION graph_anchor(uuid, text, real[]) ROWS 1;
COMMENT ON FUNCTION graph_anchor(uuid, text, real[]) IS
    'the turn to take a slice at, and the strategy that found it';
ALTER FUNCTION graph_anchors_recent(integer, text) ROWS 5;
COMMENT ON FUNCTION graph_anchors_recent(integer, text) IS 'the latest turns, of a session or of all';
",
    name = "anchor_comments",
    requires = [graph_anchor, graph_anchors_recent]
);
