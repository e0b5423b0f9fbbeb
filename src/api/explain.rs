use kernel::explain::explanation::{ExplainedTurn, TurnOutcome};
use kernel::slicing::slice::Part;
use pgrx::Uuid;
use pgrx::prelude::*;
use serde_json::Value;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::{JsonbText, Policy, Text, from_sql_uuid, to_sql_uuid};
use crate::service::explain::{explanation, reason_for, statistics};

#[pg_extern(stable, parallel_restricted, cost = 20000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_explain(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
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
        name!(reason, Text),
        name!(part, Option<&'static str>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::empty() };
    let explanation = explanation(from_sql_uuid(anchor), &policy).or_raise();
    TableIterator::new((0..explanation.turns.len()).map(move |step| {
        let turn = explanation.turns[step];
        let ExplainedTurn { outcome, rank, via, part, .. } = turn;
        let has_priority = !matches!(outcome, TurnOutcome::Missing | TurnOutcome::NotAdmitted);
        (
            step as i32,
            to_sql_uuid(rank.id),
            outcome.name(),
            rank.distance as i32,
            has_priority.then(|| rank.priority()),
            via.name(),
            explanation.discovered_from(&turn).map(to_sql_uuid),
            Text(explanation.reason(step)),
            part.map(Part::name),
        )
    }))
}

#[pg_extern(stable, parallel_restricted, cost = 100000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_why(
    anchor: Option<Uuid>,
    turn: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
) -> TableIterator<
    'static,
    (name!(included, bool), name!(explanation, Text), name!(path, Option<Vec<Uuid>>)),
> {
    let policy = Policy::required(policy).or_raise();
    let (Some(anchor), Some(turn)) = (anchor, turn) else { return TableIterator::empty() };
    let why = reason_for(from_sql_uuid(anchor), from_sql_uuid(turn), &policy).or_raise();
    let path = why.path.as_ref().map(|path| path.iter().copied().map(to_sql_uuid).collect());
    TableIterator::once((why.included(), Text(why.because.to_string()), path))
}

#[pg_extern(stable, parallel_restricted, cost = 20000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_stats(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
) -> TableIterator<
    'static,
    (
        name!(turns, i32),
        name!(edges, i32),
        name!(max_distance, i32),
        name!(budget_used, f32),
        name!(truncated, bool),
        name!(frontier_left, i64),
        name!(phases, JsonbText),
        name!(roles, JsonbText),
        name!(content_chars, Option<i64>),
        name!(tokens, Option<i64>),
        name!(token_budget_used, Option<f32>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::empty() };
    let (stats, chars) = statistics(from_sql_uuid(anchor), &policy).or_raise();
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
        stats.tokens.map(|tokens| tokens as i64),
        stats.token_budget_used,
    ))
}

fn counts(counts: impl Iterator<Item = (&'static str, usize)>) -> JsonbText {
    Value::Object(counts.map(|(name, count)| (name.to_owned(), count.into())).collect()).into()
}

extension_sql!(
    r"
ALTER FUNCTION graph_slice_explain(uuid, slice_policy) ROWS 512;
COMMENT ON FUNCTION graph_slice_explain(uuid, slice_policy) IS
    'every turn that slicing at an anchor turn read, with its outcome';
ALTER FUNCTION graph_why(uuid, uuid, slice_policy) ROWS 1;
COMMENT ON FUNCTION graph_why(uuid, uuid, slice_policy) IS
    'why a turn is in the slice at an anchor turn, or what change of the policy brings it in';
ALTER FUNCTION graph_slice_stats(uuid, slice_policy) ROWS 1;
COMMENT ON FUNCTION graph_slice_stats(uuid, slice_policy) IS
    'how the slice at an anchor turn fills its bounds, and what is in it';
",
    name = "explain_comments",
    requires = [graph_slice_explain, graph_why, graph_slice_stats]
);
