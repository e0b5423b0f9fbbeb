use std::rc::Rc;

use kernel::evidence::atlas::{AtlasInput, AtlasManifest};
use kernel::evidence::slice_sets::{Influence, SliceSets, SliceSetsBuilder};
use kernel::export::canonical::json_text;
use kernel::export::document::Export;
use kernel::graph::snapshot::GraphSnapshot;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::{Limits, Slicer};
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError, with_policy_hint};
use crate::pg::guc;
use crate::pg::read::store::PgStore;
use crate::pg::session::{Caller, check_interrupts};
use crate::pg::sql::types::{JsonbText, Policy, to_sql_uuid, turn_ids};
use crate::pg::tables::graph::Graph;

#[pg_extern(stable, parallel_restricted)]
fn graph_snapshot() -> JsonbText {
    let graph = Graph::current().or_raise();
    let caller = Caller::current(&graph);
    JsonbText(json_text(&snapshot(&graph, &caller).or_raise()))
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_overlap(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'"),
    min_jaccard: default!(Option<f32>, "0"),
) -> TableIterator<
    'static,
    (name!(slice_a, String), name!(slice_b, String), name!(shared_turns, i32), name!(jaccard, f32)),
> {
    let policy = Policy::required(policy).or_raise();
    let (Some(anchors), Some(min_jaccard)) = (anchors, min_jaccard) else {
        return TableIterator::empty();
    };
    check_jaccard(min_jaccard).or_raise();
    let slices = Batch::take(&anchors, &policy).or_raise().slices;
    TableIterator::new((0..slices.len()).flat_map(move |a| {
        let overlaps = slices.overlaps(a, min_jaccard, &check_interrupts).map(|(_, overlap)| {
            let (a, b) = (overlap.slice_a.to_owned(), overlap.slice_b.to_owned());
            (a, b, overlap.shared_turns as i32, overlap.jaccard)
        });
        overlaps.collect::<Vec<_>>()
    }))
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_influence(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(turn_id, Uuid),
        name!(slice_count, i32),
        name!(slice_fraction, f32),
        name!(phases, JsonbText),
        name!(is_bridge, bool),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchors) = anchors else { return TableIterator::empty() };
    let slices = Batch::take(&anchors, &policy).or_raise().slices;
    TableIterator::new((0..slices.turn_count()).map(move |turn| {
        let Influence { turn_id, slice_count, slice_fraction, phase_distribution, is_bridge } =
            slices.influence(turn);
        let phases = JsonbText(json_text(&phase_distribution));
        (to_sql_uuid(turn_id), slice_count as i32, slice_fraction, phases, is_bridge)
    }))
}

#[pg_extern(stable, parallel_restricted)]
fn graph_atlas(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'"),
    selection_policy: default!(Option<&str>, "'given'"),
    min_jaccard: default!(Option<f32>, "0"),
    centroids: default!(Option<i32>, "3"),
) -> Option<JsonbText> {
    let policy = Policy::required(policy).or_raise();
    let (anchors, selection_policy, min_jaccard) = (anchors?, selection_policy?, min_jaccard?);
    check_jaccard(min_jaccard).or_raise();
    let centroids = checked_centroids(centroids?).or_raise();
    let batch = Batch::take(&anchors, &policy).or_raise();
    let input = AtlasInput {
        snapshot: &snapshot(&batch.graph, &batch.caller).or_raise(),
        anchors: &batch.anchors,
        selection_policy,
        slices: &batch.slices,
        min_jaccard,
        centroids,
    };
    Some(JsonbText(json_text(&AtlasManifest::new(&input, &check_interrupts))))
}

/// The slices at many anchors, all of one snapshot.
struct Batch {
    graph: Rc<Graph>,
    caller: Caller,
    /// Ascending, once each.
    anchors: Vec<TurnId>,
    slices: SliceSets,
}

impl Batch {
    fn take(anchors: &Array<Uuid>, policy: &SlicePolicy) -> Result<Self, SqlError> {
        guc::check_budget(policy)?;
        let anchors = anchor_set(anchors)?;
        let graph = Graph::current()?;
        let caller = Caller::current(&graph);
        let slices = with_policy_hint(caller.rls, || {
            let mut store = PgStore::new(&graph, &caller);
            let mut slicer = Slicer::new(&mut store, policy, Limits::default());
            let mut slices = SliceSetsBuilder::default();
            let mut next = &anchors[..];
            while let Some((anchor, others)) = next.split_first() {
                let slice = slicer.slice_before(*anchor, others)?;
                slices.push(&Export::new(&slice, policy, &check_interrupts))?;
                next = others;
            }
            Ok::<_, SqlError>(slices.finish(&check_interrupts)?)
        })?;
        Ok(Batch { graph, caller, anchors, slices })
    }
}

fn snapshot(graph: &Graph, caller: &Caller) -> Result<GraphSnapshot, SqlError> {
    with_policy_hint(caller.rls, || PgStore::new(graph, caller).snapshot())
}

fn anchor_set(anchors: &Array<Uuid>) -> Result<Vec<TurnId>, SqlError> {
    let ids: Option<Vec<TurnId>> = turn_ids(anchors)?.into_iter().collect();
    let mut ids = ids.ok_or_else(|| {
        let code = PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED;
        SqlError::new(code, "anchors must not be null").detail("INVALID_TURN_ID")
    })?;
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn check_jaccard(min_jaccard: f32) -> Result<(), SqlError> {
    if (0.0..=1.0).contains(&min_jaccard) {
        return Ok(());
    }
    let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
    let message = format!("min_jaccard must be between 0 and 1, not {min_jaccard}");
    Err(SqlError::new(code, message).detail("INVALID_MIN_JACCARD"))
}

fn checked_centroids(centroids: i32) -> Result<usize, SqlError> {
    usize::try_from(centroids).map_err(|_| {
        let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        let message = format!("centroids must not be negative, not {centroids}");
        SqlError::new(code, message).detail("INVALID_CENTROIDS")
    })
}
