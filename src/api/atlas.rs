use kernel::evidence::atlas::{AtlasInput, AtlasManifest};
use kernel::evidence::slice_sets::Influence;
use kernel::export::canonical::json_text;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::session::check_interrupts;
use crate::pg::sql::types::{JsonbText, Policy, to_sql_uuid, turn_ids};
use crate::service::atlas::AnchoredSlices;
use crate::service::reader::GraphReader;

#[pg_extern(stable, parallel_restricted)]
fn graph_snapshot() -> JsonbText {
    let snapshot = GraphReader::current().and_then(|reader| reader.snapshot()).or_raise();
    JsonbText(json_text(&snapshot))
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
    let slices = slices_at(&anchors, &policy).or_raise().slices;
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
    let slices = slices_at(&anchors, &policy).or_raise().slices;
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
    let taken = slices_at(&anchors, &policy).or_raise();
    let input = AtlasInput {
        snapshot: &taken.reader.snapshot().or_raise(),
        anchors: &taken.anchors,
        selection_policy,
        slices: &taken.slices,
        min_jaccard,
        centroids,
    };
    Some(JsonbText(json_text(&AtlasManifest::new(&input, &check_interrupts))))
}

fn slices_at(anchors: &Array<Uuid>, policy: &SlicePolicy) -> Result<AnchoredSlices, SqlError> {
    AnchoredSlices::at(anchor_ids(anchors)?, policy)
}

fn anchor_ids(anchors: &Array<Uuid>) -> Result<Vec<TurnId>, SqlError> {
    let ids: Option<Vec<TurnId>> = turn_ids(anchors)?.into_iter().collect();
    ids.ok_or_else(|| {
        let code = PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED;
        SqlError::new(code, "anchors must not be null").detail("INVALID_TURN_ID")
    })
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
