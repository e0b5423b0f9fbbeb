use kernel::insight::explain::{ExplainedTurn, TurnOutcome, explain, stats};
use kernel::insight::why::why;
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::{Limits, SliceError};
use pgrx::prelude::*;
use pgrx::{JsonB, Uuid};
use serde_json::Value;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::guc;
use crate::pg::read::store::PgStore;
use crate::pg::session::check_interrupts;
use crate::pg::sql::types::{Policy, from_sql_uuid, to_sql_uuid};
use crate::service::reader::GraphReader;

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_explain(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(step, i32),
        name!(turn_id, Uuid),
        name!(outcome, &'static str),
        name!(distance, i32),
        name!(priority, Option<f32>),
        name!(via, &'static str),
        name!(discovered_from, Option<Uuid>),
        name!(reason, String),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::empty() };
    let explanation = ask_graph(&policy, |store| {
        explain(store, &policy, from_sql_uuid(anchor), Limits::default(), &check_interrupts)
            .map_err(whole_error)
    })
    .or_raise();
    TableIterator::new((0..explanation.turns.len()).map(move |step| {
        let touched = explanation.turns[step];
        let ExplainedTurn { outcome, rank, via, .. } = touched;
        (
            step as i32,
            to_sql_uuid(rank.id),
            outcome.name(),
            rank.distance as i32,
            (outcome != TurnOutcome::Missing).then(|| rank.priority()),
            via.name(),
            explanation.discovered_from(&touched).map(to_sql_uuid),
            explanation.reason(step),
        )
    }))
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_why(
    anchor: Option<Uuid>,
    turn: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (name!(included, bool), name!(explanation, String), name!(path, Option<Vec<Uuid>>)),
> {
    let policy = Policy::required(policy).or_raise();
    let (Some(anchor), Some(turn)) = (anchor, turn) else { return TableIterator::empty() };
    let (anchor, turn) = (from_sql_uuid(anchor), from_sql_uuid(turn));
    let most_nodes = guc::max_nodes_limit();
    let why = ask_graph(&policy, |store| {
        Ok(why(store, &policy, anchor, turn, most_nodes, Limits::default())?)
    })
    .or_raise();
    let path = why.path.as_ref().map(|path| path.iter().copied().map(to_sql_uuid).collect());
    TableIterator::once((why.included(), why.because.to_string(), path))
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_stats(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(turns, i32),
        name!(edges, i32),
        name!(max_distance, i32),
        name!(budget_used, f32),
        name!(truncated, bool),
        name!(frontier_left, i64),
        name!(phases, JsonB),
        name!(roles, JsonB),
        name!(content_chars, Option<i64>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::empty() };
    let (stats, chars) = ask_graph(&policy, |store| {
        let anchor = from_sql_uuid(anchor);
        let stats = stats(store, &policy, anchor, Limits::default()).map_err(whole_error)?;
        let ids: Vec<_> = stats.slice.turns.iter().map(|selected| selected.turn.id).collect();
        let chars = store.content_chars(&ids)?;
        Ok((stats, chars))
    })
    .or_raise();
    TableIterator::once((
        stats.slice.turns.len() as i32,
        stats.slice.edges.len() as i32,
        stats.max_distance as i32,
        stats.budget_used,
        stats.truncated(),
        stats.frontier_left as i64,
        counts(stats.phases().into_iter().map(|(phase, count)| (phase.name(), count))),
        counts(stats.roles().into_iter().map(|(role, count)| (role.name(), count))),
        chars,
    ))
}

fn counts(counts: impl Iterator<Item = (&'static str, usize)>) -> JsonB {
    JsonB(Value::Object(counts.map(|(name, count)| (name.to_owned(), count.into())).collect()))
}

fn ask_graph<T>(
    policy: &SlicePolicy,
    ask: impl FnOnce(&mut PgStore<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    GraphReader::for_policy(policy)?.ask(ask)
}

/// Unlike a slice, an explanation holds every child of a turn with very many.
fn whole_error(error: SliceError<SqlError>) -> SqlError {
    match error {
        SliceError::TooManyIds(limit) => SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("explanation would hold more than {limit} turns in memory"),
        )
        .detail("SLICE_TOO_LARGE")
        .hint("graph_slice_turns does not hold every child of a turn with very many, and graph_why neither."),
        other => other.into(),
    }
}
