use std::rc::Rc;

use kernel::slicing::slice::SelectedTurn;
use pgrx::Uuid;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
// `pg_extern` finds the columns of a result by the name `TableIterator`.
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonText, JsonbText, Policy, Text, from_sql_uuid, to_sql_uuid};
use crate::pg::text::TextArg;
use crate::service::compare::{drawing_format, drawing_options};
use crate::service::export::export_text;
use crate::service::slices::ReadSlice;

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_slice(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
) -> Option<JsonText> {
    let policy = Policy::required(policy).or_raise();
    let taken = ReadSlice::at(from_sql_uuid(anchor?), &policy).or_raise();
    Some(JsonText(taken.export().and_then(|export| export_text(&export)).or_raise()))
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_turns(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
) -> TableIterator<
    'static,
    (
        name!(turn_id, Uuid),
        name!(distance, i32),
        name!(priority, f32),
        name!(selection_order, i32),
        name!(session_id, Text),
        name!(role, &'static str),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(content_hash, Option<Text>),
        name!(slice_id, Text),
        name!(admissibility_token, Option<Text>),
        name!(tokens, Option<i32>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    let taken = ReadSlice::at(from_sql_uuid(anchor), &policy).or_raise();
    let export = taken.sign().or_raise();
    let (slice_id, token) = (export.slice_id, export.admissibility_token);
    let (turns, bounded) = (taken.slice.turns, policy.counts_tokens());
    TableIterator::new(move |put| {
        for SelectedTurn { turn, distance, priority, selection_order, tokens, .. } in turns {
            let turn = Rc::unwrap_or_clone(turn);
            put((
                to_sql_uuid(turn.id),
                distance as i32,
                priority,
                selection_order as i32,
                Text(turn.session_id),
                turn.role.name(),
                turn.phase.name(),
                turn.salience,
                turn.trajectory_depth as i32,
                turn.trajectory_sibling_order as i32,
                turn.trajectory_homogeneity,
                turn.trajectory_temporal,
                turn.trajectory_complexity,
                turn.created_at,
                turn.content_hash.map(Text),
                Text(slice_id.clone()),
                token.clone().map(Text),
                bounded.then_some(tokens as i32),
            ));
        }
    })
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_slice_edges(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
) -> TableIterator<'static, (name!(parent, Uuid), name!(child, Uuid), name!(edge_type, &'static str))>
{
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    let taken = ReadSlice::at(from_sql_uuid(anchor), &policy).or_raise();
    taken.reader.check_settled().or_raise();
    let edges = taken.slice.edges;
    TableIterator::new(move |put| {
        for edge in edges {
            put((to_sql_uuid(edge.parent), to_sql_uuid(edge.child), edge.edge_type.name()));
        }
    })
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_messages(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'chat'::pg_catalog.text::@extschema@.slice_policy"),
) -> TableIterator<
    'static,
    (
        name!(n, i32),
        name!(turn_id, Uuid),
        name!(part, &'static str),
        name!(role, &'static str),
        name!(content, Option<Text>),
        name!(payload, Option<JsonbText>),
        name!(session_id, Text),
        name!(created_at, Option<TimestampWithTimeZone>),
        name!(tokens, i32),
        name!(cumulative_tokens, i64),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    TableIterator::new(move |put| {
        let taken = ReadSlice::with_times(from_sql_uuid(anchor), &policy).or_raise();
        let mut cumulative = 0;
        let messages = taken.messages().or_raise();
        taken.reader.check_settled().or_raise();
        for (n, (selected, message)) in (1..).zip(messages) {
            let SelectedTurn { turn, part, tokens, .. } = selected;
            cumulative += i64::from(*tokens);
            put((
                n,
                to_sql_uuid(turn.id),
                part.name(),
                turn.role.name(),
                message.content.map(Text),
                message.payload.map(JsonbText),
                Text(turn.session_id.clone()),
                message.created_at.and_then(|micros| micros.try_into().ok()),
                *tokens as i32,
                cumulative,
            ));
        }
    })
}

#[pg_extern(stable, parallel_restricted, cost = 20000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_slice_draw(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
    format: default!(Option<TextArg>, "'mermaid'"),
    options: default!(Option<JsonbText>, "'{}'"),
) -> Option<Text> {
    let policy = Policy::required(policy).or_raise();
    let format = drawing_format(&format?).or_raise();
    let options = drawing_options(&options?.0).or_raise();
    let taken = ReadSlice::at(from_sql_uuid(anchor?), &policy).or_raise();
    let picture = taken.picture(format, options).or_raise();
    taken.reader.check_settled().or_raise();
    Some(Text(picture))
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_slice(uuid, slice_policy) IS
    'the context slice at an anchor turn, as canonical JSON';
ALTER FUNCTION graph_slice_turns(uuid, slice_policy) ROWS 256 SUPPORT graph_kernel.slice_support;
COMMENT ON FUNCTION graph_slice_turns(uuid, slice_policy) IS
    'the turns of the slice at an anchor turn, ordered by turn_id';
ALTER FUNCTION graph_slice_edges(uuid, slice_policy) ROWS 256 SUPPORT graph_kernel.slice_support;
COMMENT ON FUNCTION graph_slice_edges(uuid, slice_policy) IS
    'the edges of the slice at an anchor turn, ordered by parent, child, type';
ALTER FUNCTION graph_messages(uuid, slice_policy) ROWS 256 SUPPORT graph_kernel.slice_support;
COMMENT ON FUNCTION graph_messages(uuid, slice_policy) IS
    'the turns of the slice at an anchor in the order in which a model is shown them, with contents and tokens';
COMMENT ON FUNCTION graph_slice_draw(uuid, slice_policy, text, jsonb) IS
    'a picture of the slice at an anchor, with the beginnings of its contents';
",
    name = "slice_comments",
    requires =
        [graph_slice, graph_slice_turns, graph_slice_edges, graph_messages, graph_slice_draw]
);
