use kernel::export::Export;
use kernel::policy::SlicePolicy;
use kernel::slice::{SelectedTurn, Slice};
use kernel::slicer;
use kernel::turn::TurnId;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::graph::Graph;
use crate::pg::guc;
use crate::pg::store::PgStore;
use crate::pg::text_type::{JsonText, Policy};

/// The largest export returned, in bytes.
const EXPORT_MAX_BYTES: usize = 64 * 1024 * 1024;

#[pg_extern(stable, parallel_restricted)]
fn graph_slice(anchor: Uuid, policy: default!(Policy, "'default'")) -> JsonText {
    let slice = take_slice(anchor, &policy.0).or_raise();
    JsonText(export_text(&slice, &policy.0).or_raise())
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_turns(
    anchor: Uuid,
    policy: default!(Policy, "'default'"),
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
    ),
> {
    let slice = take_slice(anchor, &policy.0).or_raise();
    let export = Export::new(&slice, &policy.0);
    let (slice_id, token) = (export.slice_id, export.admissibility_token);
    TableIterator::new(slice.turns.into_iter().map(move |selected| {
        let SelectedTurn {
            turn,
            distance,
            priority,
            selection_order,
        } = selected;
        (
            Uuid::from_bytes(*turn.id.as_bytes()),
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
        )
    }))
}

#[pg_extern(stable, parallel_restricted)]
fn graph_slice_edges(
    anchor: Uuid,
    policy: default!(Policy, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(parent, Uuid),
        name!(child, Uuid),
        name!(edge_type, &'static str),
    ),
> {
    let slice = take_slice(anchor, &policy.0).or_raise();
    TableIterator::new(slice.edges.into_iter().map(|edge| {
        let id = |id: TurnId| Uuid::from_bytes(*id.as_bytes());
        (id(edge.parent), id(edge.child), edge.edge_type.name())
    }))
}

/// A slice of the bound graph on the caller's snapshot.
pub fn take_slice(anchor: Uuid, policy: &SlicePolicy) -> Result<Slice, SqlError> {
    guc::check_budget(policy)?;
    let mut store = PgStore::new(Graph::current()?);
    let anchor = TurnId::from_bytes(*anchor.as_bytes());
    slicer::slice(&mut store, policy, anchor).map_err(SqlError::from)
}

/// The slice's canonical JSON.
pub fn export_text(slice: &Slice, policy: &SlicePolicy) -> Result<String, SqlError> {
    let text = Export::new(slice, policy).to_json();
    if text.len() > EXPORT_MAX_BYTES {
        return Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!(
                "slice export of {} bytes is larger than {EXPORT_MAX_BYTES}",
                text.len()
            ),
        )
        .detail("SLICE_TOO_LARGE")
        .hint("Use a policy with fewer max_nodes."));
    }
    Ok(text)
}
