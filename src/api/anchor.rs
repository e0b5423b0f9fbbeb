use kernel::retrieval::ranking::{Filters, MAX_LIMIT, Ranking};
use kernel::retrieval::similarity::{EmbeddingError, MAX_DIMENSIONS};
use kernel::slicing::store::GraphStore;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, Uuid};
use std::ops::ControlFlow;

use crate::pg::error::{OrRaise, SqlError, with_policy_hint};
use crate::pg::read::search::{DatedTurn, Searcher};
use crate::pg::read::store::PgStore;
use crate::pg::session::Caller;
use crate::pg::sql::types::{from_sql_uuid, to_sql_uuid};
use crate::pg::tables::graph::Graph;

#[pg_extern(stable, parallel_restricted)]
fn graph_anchor(
    turn_id: default!(Option<Uuid>, "NULL"),
    session_id: default!(Option<&str>, "NULL"),
    query_embedding: default!(Option<Array<f32>>, "NULL"),
) -> TableIterator<'static, (name!(anchor_turn_id, Uuid), name!(strategy, &'static str))> {
    TableIterator::new(anchor(turn_id, session_id, query_embedding).or_raise())
}

#[pg_extern(stable, parallel_restricted)]
fn graph_anchors_recent(
    limit_count: default!(Option<i32>, 5),
    session_id: default!(Option<&str>, "NULL"),
) -> TableIterator<'static, (name!(anchor_turn_id, Uuid), name!(created_at, i64))> {
    let Some(limit) = limit_count else { return TableIterator::empty() };
    let turns = checked_limit(limit).and_then(|limit| latest(session_id, limit)).or_raise();
    TableIterator::new(turns.into_iter().map(|(id, created_at)| (to_sql_uuid(id), created_at)))
}

/// The first strategy that has an answer: the turn given, the session's latest turn, the turn
/// nearest to the query, the latest turn of all.
fn anchor(
    turn: Option<Uuid>,
    session: Option<&str>,
    embedding: Option<Array<f32>>,
) -> Result<Option<(Uuid, &'static str)>, SqlError> {
    if let Some(turn) = turn {
        return exists(turn).map(|()| Some((turn, "explicit")));
    }
    if let Some(session) = session
        && let Some((id, _)) = latest(Some(session), 1)?.first()
    {
        return Ok(Some((to_sql_uuid(*id), "session")));
    }
    if let Some(embedding) = embedding
        && let Some(found) = nearest(&elements(&embedding)?)?
    {
        return Ok(Some(found));
    }
    Ok(latest(None, 1)?.first().map(|(id, _)| (to_sql_uuid(*id), "temporal")))
}

fn exists(turn: Uuid) -> Result<(), SqlError> {
    let graph = Graph::current()?;
    let caller = Caller::current(&graph);
    let mut store = PgStore::new(&graph, &caller);
    let (id, mut found) = (from_sql_uuid(turn), false);
    with_policy_hint(caller.rls, || {
        store.scored(&[id], &mut |_| {
            found = true;
            ControlFlow::Break(())
        })
    })?;
    let missing = kernel::slicing::slicer::SliceError::AnchorNotFound(id);
    if found { Ok(()) } else { Err(missing.into()) }
}

fn latest(session: Option<&str>, limit: u32) -> Result<Vec<DatedTurn>, SqlError> {
    let graph = Graph::current()?;
    Searcher::new(&graph, &Caller::current(&graph)).latest(session, limit)
}

fn nearest(embedding: &[Option<f32>]) -> Result<Option<(Uuid, &'static str)>, SqlError> {
    let graph = Graph::current()?;
    let caller = Caller::current(&graph);
    let column = graph.embedding()?;
    let query = column.query(embedding)?;
    let ranking = Ranking::new(1, Filters::default());
    let hits = Searcher::new(&graph, &caller).nearest(&column, &query, 1, ranking)?;
    let strategy = if column.indexed.is_some() { "semantic_approximate" } else { "semantic" };
    Ok(hits.first().map(|hit| (to_sql_uuid(hit.id), strategy)))
}

/// The elements of an array, if it is not too long for an embedding.
pub fn elements(array: &Array<f32>) -> Result<Vec<Option<f32>>, SqlError> {
    match array.len() {
        length if length > MAX_DIMENSIONS => Err(EmbeddingError::Dimensions(length).into()),
        _ => Ok(array.iter().collect()),
    }
}

/// A limit within its range.
pub fn checked_limit(limit: i32) -> Result<u32, SqlError> {
    match u32::try_from(limit) {
        Ok(limit @ 1..=MAX_LIMIT) => Ok(limit),
        _ => Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("limit_count must be 1 to {MAX_LIMIT}, not {limit}"),
        )
        .detail("INVALID_LIMIT")),
    }
}
