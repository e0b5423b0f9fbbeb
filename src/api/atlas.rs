use kernel::evidence::slice_sets::Influence;
use kernel::json::canonical::json_text;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::{JsonbText, Policy, Text, to_sql_uuid, turn_ids};
use crate::pg::text::TextArg;
use crate::service::atlas::{AnchoredSlices, checked_centroids, checked_jaccard, snapshot};

#[pg_extern(stable, parallel_restricted, cost = 1000000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_snapshot() -> JsonbText {
    JsonbText(snapshot().or_raise())
}

#[pg_extern(stable, parallel_restricted, cost = 1000000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_overlap(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
    min_jaccard: default!(Option<f32>, "0"),
) -> TableIterator<
    'static,
    (name!(slice_a, Text), name!(slice_b, Text), name!(shared_turns, i32), name!(jaccard, f32)),
> {
    let policy = Policy::required(policy).or_raise();
    let (Some(anchors), Some(min_jaccard)) = (anchors, min_jaccard) else {
        return TableIterator::empty();
    };
    let min_jaccard = checked_jaccard(min_jaccard).or_raise();
    let slices = AnchoredSlices::at(turn_ids(&anchors).or_raise(), &policy).or_raise();
    TableIterator::new(
        slices
            .overlaps(min_jaccard)
            .map(|o| (Text(o.slice_a), Text(o.slice_b), o.shared_turns as i32, o.jaccard)),
    )
}

#[pg_extern(stable, parallel_restricted, cost = 1000000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_influence(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
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
    let slices = AnchoredSlices::at(turn_ids(&anchors).or_raise(), &policy).or_raise();
    TableIterator::new(slices.influences().map(|influence| {
        let Influence { turn_id, slice_count, slice_fraction, phase_distribution, is_bridge } =
            influence;
        let phases = JsonbText(json_text(&phase_distribution));
        (to_sql_uuid(turn_id), slice_count as i32, slice_fraction, phases, is_bridge)
    }))
}

#[pg_extern(stable, parallel_restricted, cost = 2000000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_atlas(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
    selection_policy: default!(Option<TextArg>, "'given'"),
    min_jaccard: default!(Option<f32>, "0"),
    centroids: default!(Option<i32>, "3"),
) -> Option<JsonbText> {
    let policy = Policy::required(policy).or_raise();
    let (anchors, selection_policy, min_jaccard) = (anchors?, selection_policy?, min_jaccard?);
    let min_jaccard = checked_jaccard(min_jaccard).or_raise();
    let centroids = checked_centroids(centroids?).or_raise();
    let slices = AnchoredSlices::at(turn_ids(&anchors).or_raise(), &policy).or_raise();
    Some(JsonbText(slices.manifest(&selection_policy, min_jaccard, centroids).or_raise()))
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_snapshot() IS 'fingerprint of which turns and edges the graph has';
ALTER FUNCTION graph_overlap(uuid[], slice_policy, real) ROWS 1000;
COMMENT ON FUNCTION graph_overlap(uuid[], slice_policy, real) IS
    'which of the slices at these anchors share turns';
ALTER FUNCTION graph_influence(uuid[], slice_policy) ROWS 1000;
COMMENT ON FUNCTION graph_influence(uuid[], slice_policy) IS
    'in how many of the slices at these anchors each turn is';
COMMENT ON FUNCTION graph_atlas(uuid[], slice_policy, text, real, integer) IS
    'fingerprints of the slices at these anchors and of how they relate';
",
    name = "atlas_comments",
    requires = [graph_snapshot, graph_overlap, graph_influence, graph_atlas]
);
