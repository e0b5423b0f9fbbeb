use std::rc::Rc;

use kernel::slicing::slice::SelectedTurn;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::rows::TableIterator;
use crate::pg::sql::types::{JsonText, Policy, from_sql_uuid, to_sql_uuid};
use crate::service::export::export_text;
use crate::service::slices::ReadSlice;

#[pg_extern(stable, parallel_restricted)]
fn graph_slice(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> Option<JsonText> {
    let policy = Policy::required(policy).or_raise();
    let taken = ReadSlice::at(from_sql_uuid(anchor?), &policy).or_raise();
    Some(JsonText(taken.export().and_then(|export| export_text(&export)).or_raise()))
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_turns(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(turn_id, Uuid),
        name!(distance, i32),
        name!(priority, f32),
        name!(selection_order, i32),
        name!(session_id, String),
        name!(role, &'static str),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(content_hash, Option<String>),
        name!(slice_id, String),
        name!(admissibility_token, Option<String>),
        name!(tokens, Option<i32>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    let taken = ReadSlice::at(from_sql_uuid(anchor), &policy).or_raise();
    let export = taken.sign().or_raise();
    let (slice_id, token) = (export.slice_id, export.admissibility_token);
    let (turns, bounded) = (taken.slice.turns, policy.max_tokens().is_some());
    TableIterator::new(move |put| {
        for SelectedTurn { turn, distance, priority, selection_order, tokens } in turns {
            let turn = Rc::unwrap_or_clone(turn);
            put((
                to_sql_uuid(turn.id),
                distance as i32,
                priority,
                selection_order as i32,
                turn.session_id,
                turn.role.name(),
                turn.phase.name(),
                turn.salience,
                turn.trajectory_depth as i32,
                turn.trajectory_sibling_order as i32,
                turn.trajectory_homogeneity,
                turn.trajectory_temporal,
                turn.trajectory_complexity,
                turn.created_at,
                turn.content_hash,
                slice_id.clone(),
                token.clone(),
                bounded.then_some(tokens as i32),
            ));
        }
    })
}

#[pg_extern(stable, parallel_restricted)]
fn graph_slice_edges(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<'static, (name!(parent, Uuid), name!(child, Uuid), name!(edge_type, &'static str))>
{
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    let taken = ReadSlice::at(from_sql_uuid(anchor), &policy).or_raise();
    let edges = taken.slice.edges;
    TableIterator::new(move |put| {
        for edge in edges {
            put((to_sql_uuid(edge.parent), to_sql_uuid(edge.child), edge.edge_type.name()));
        }
    })
}
