//! The published atlas of the five turns, part by part.

use std::sync::LazyLock;

use graph_kernel_tests::data::read_text;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::evidence::atlas::{AtlasInput, AtlasManifest};
use kernel::evidence::slice_sets::{SliceSets, SliceSetsBuilder};
use kernel::export::document::Export;
use kernel::graph::snapshot::{GraphSnapshot, SnapshotBuilder};
use kernel::graph::turn::TurnId;
use kernel::json::canonical::{json_hash, json_text};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::slice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data;
use crate::reference::five_turns;

#[derive(Deserialize)]
struct Published {
    policy: Value,
    anchor_set: AnchorSet,
    snapshot: Value,
    registry: Registry,
    overlap: Overlaps,
    influence: Influences,
    manifest: Value,
    ours: Ours,
}

#[derive(Deserialize)]
struct AnchorSet {
    anchors: Vec<TurnId>,
    selection_policy: String,
}

#[derive(Deserialize)]
struct Registry {
    entries: Vec<RegistryEntry>,
    registry_hash: String,
}

#[derive(Serialize, Deserialize)]
struct RegistryEntry {
    anchor_turn_id: TurnId,
    slice_id: String,
    turn_count: usize,
    edge_count: usize,
    policy_params_hash: String,
}

#[derive(Deserialize)]
struct Overlaps {
    edges: Vec<Value>,
}

#[derive(Deserialize)]
struct Influences {
    scores: Vec<Value>,
}

/// What the registry hashes here, with the params_hash that exports have.
#[derive(Deserialize)]
struct Ours {
    registry_hash: String,
    atlas_id: String,
}

static PUBLISHED: LazyLock<Published> =
    LazyLock::new(|| serde_json::from_str(&read_text(&data("atlas.json"))).unwrap());

impl Published {
    fn policy(&self) -> SlicePolicy {
        self.policy.to_string().parse().unwrap()
    }

    fn slices(&self) -> SliceSets {
        let policy = self.policy();
        let mut store = MemoryStore::new(five_turns());
        let mut sets = SliceSetsBuilder::default();
        for anchor in &self.anchor_set.anchors {
            let slice = slice(&mut store, &policy, *anchor).unwrap();
            sets.push(&Export::new(&slice, &policy, &|| {})).unwrap();
        }
        sets.finish(&|| {})
    }
}

fn snapshot() -> GraphSnapshot {
    let graph = five_turns();
    let mut builder = SnapshotBuilder::default();
    for turn in &graph.turns {
        builder.turn(turn.id, turn.created_at);
    }
    for edge in &graph.edges {
        builder.edge(edge.parent, edge.child);
    }
    builder.finish()
}

/// A value as JSON.
fn read_back(value: &impl Serialize) -> Value {
    serde_json::from_str(&json_text(value)).unwrap()
}

#[test]
fn the_snapshot_is_the_published_one() {
    assert_eq!(read_back(&snapshot()), PUBLISHED.snapshot);
}

#[test]
fn the_registry_differs_from_the_published_one_in_params_hash_alone() {
    let mut registry = serde_json::from_value::<Vec<RegistryEntry>>(
        serde_json::to_value(&PUBLISHED.registry.entries).unwrap(),
    )
    .unwrap();
    assert_eq!(json_hash(&registry), PUBLISHED.registry.registry_hash);
    for entry in &mut registry {
        entry.policy_params_hash = PUBLISHED.policy().params_hash();
    }
    assert_eq!(json_hash(&registry), PUBLISHED.ours.registry_hash);
    assert_eq!(PUBLISHED.slices().registry_hash, PUBLISHED.ours.registry_hash);
}

#[test]
fn overlaps_and_influences_are_the_published_ones() {
    let slices = PUBLISHED.slices();
    let overlaps: Vec<Value> = (0..slices.len())
        .flat_map(|a| slices.overlaps(a, 0.0, &|| {}).map(|(_, overlap)| read_back(&overlap)))
        .collect();
    assert_eq!(overlaps, PUBLISHED.overlap.edges);
    let turns = 0..slices.turn_count();
    let influences: Vec<Value> = turns.map(|turn| read_back(&slices.influence(turn))).collect();
    assert_eq!(influences, PUBLISHED.influence.scores);
}

#[test]
fn the_manifest_has_the_published_fingerprints() {
    let slices = PUBLISHED.slices();
    let manifest = AtlasManifest::new(
        &AtlasInput {
            snapshot: &snapshot(),
            anchors: &PUBLISHED.anchor_set.anchors,
            selection_policy: &PUBLISHED.anchor_set.selection_policy,
            slices: &slices,
            min_jaccard: 0.0,
            centroids: 3,
        },
        &|| {},
    );
    let mut expected = PUBLISHED.manifest.clone();
    expected["slice_registry_hash"] = PUBLISHED.ours.registry_hash.as_str().into();
    expected["atlas_id"] = PUBLISHED.ours.atlas_id.as_str().into();
    assert_eq!(read_back(&manifest), expected);
}
