//! Overlaps and influences of many slices, checked against sets that are compared pair by pair.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use graph_kernel_tests::memory_store::MemoryStore;
use kernel::evidence::atlas::{AtlasInput, AtlasManifest};
use kernel::evidence::slice_sets::{SliceOverlap, SliceSets, SliceSetsBuilder};
use kernel::export::document::Export;
use kernel::graph::snapshot::SnapshotBuilder;
use kernel::graph::turn::{Phase, TurnId};
use kernel::json::canonical::{json_hash, json_text};
use kernel::slicing::slice::Slice;
use kernel::slicing::slicer::slice;
use proptest::prelude::*;

use crate::cases;
use crate::generate::{graphs, policies};

const CENTROIDS: usize = 2;

struct Plain {
    slice_id: String,
    turns: BTreeSet<TurnId>,
    phase: Phase,
}

fn plain(slice: &Slice, export: &Export<'_>) -> Plain {
    let anchor = slice.turns.iter().find(|selected| selected.turn.id == slice.anchor).unwrap();
    Plain {
        slice_id: export.slice_id.clone(),
        turns: slice.turns.iter().map(|selected| selected.turn.id).collect(),
        phase: anchor.turn.phase,
    }
}

fn expected_overlaps(slices: &[Plain], min_jaccard: f32) -> Vec<(String, String, u32, f32)> {
    let mut overlaps = Vec::new();
    for (i, a) in slices.iter().enumerate() {
        for b in &slices[i + 1..] {
            let shared = a.turns.intersection(&b.turns).count();
            let jaccard = shared as f32 / a.turns.union(&b.turns).count() as f32;
            if shared > 0 && jaccard >= min_jaccard {
                let (a, b) = (a.slice_id.clone(), b.slice_id.clone());
                overlaps.push((a.clone().min(b.clone()), a.max(b), shared as u32, jaccard));
            }
        }
    }
    overlaps.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    overlaps
}

/// What the fingerprint of the topology is of: the mean overlap of slices of two phases, the slices of each phase that
/// overlap most, and how many turns are in slices of more than one phase.
fn expected_topology(slices: &[Plain], min_jaccard: f32, bridges: usize) -> String {
    let mut sums: BTreeMap<String, (f32, f32)> = BTreeMap::new();
    let mut degrees: BTreeMap<&str, usize> = BTreeMap::new();
    let phase = |id: &str| slices.iter().find(|slice| slice.slice_id == id).unwrap().phase.name();
    let overlaps = expected_overlaps(slices, min_jaccard);
    for (a, b, _, jaccard) in &overlaps {
        for id in [a, b] {
            *degrees.entry(id).or_default() += 1;
        }
        let mut phases = [phase(a), phase(b)];
        phases.sort_unstable();
        if phases[0] != phases[1] {
            let (sum, count) = sums.entry(phases.join("_")).or_default();
            *sum += jaccard;
            *count += 1.0;
        }
    }
    let means: BTreeMap<String, f32> =
        sums.into_iter().map(|(phases, (sum, count))| (phases, sum / count)).collect();
    let mut ids: Vec<&str> = degrees.keys().copied().collect();
    ids.sort_by_key(|id| (Reverse(degrees[id]), *id));
    let mut centroids: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for id in ids {
        let of_phase = centroids.entry(phase(id)).or_default();
        if of_phase.len() < CENTROIDS {
            of_phase.push(id);
        }
    }
    json_hash(&(means, centroids, bridges))
}

fn topology(sets: &SliceSets, min_jaccard: f32) -> String {
    let snapshot = SnapshotBuilder::default().finish();
    let input = AtlasInput {
        snapshot: &snapshot,
        anchors: &[],
        selection_policy: "",
        slices: sets,
        min_jaccard,
        centroids: CENTROIDS,
    };
    let manifest = json_text(&AtlasManifest::new(&input, &|| {}));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    manifest["phase_topology_hash"].as_str().unwrap().to_owned()
}

fn overlaps(sets: &SliceSets, min_jaccard: f32) -> Vec<(String, String, u32, f32)> {
    let row = |(_, o): (usize, SliceOverlap<'_>)| {
        (o.slice_a.to_owned(), o.slice_b.to_owned(), o.shared_turns, o.jaccard)
    };
    (0..sets.len())
        .flat_map(|a| sets.overlaps(a, min_jaccard, &|| {}).map(row).collect::<Vec<_>>())
        .collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn overlaps_and_influences_are_those_of_plain_sets(
        case in graphs(),
        params in policies(1..=64),
        min_jaccard in prop::sample::select(vec![0.0f32, 0.25, 0.5, 1.0]),
    ) {
        let policy = params.policy();
        let mut anchors: Vec<TurnId> = case.graph.turns.iter().map(|turn| turn.id).collect();
        anchors.sort_unstable();
        anchors.dedup();
        let mut store = MemoryStore::new(case.graph);
        let mut builder = SliceSetsBuilder::default();
        let mut slices = Vec::new();
        for anchor in anchors {
            let slice = slice(&mut store, &policy, anchor).unwrap();
            let export = Export::new(&slice, &policy, &|| {});
            builder.push(&export).unwrap();
            slices.push(plain(&slice, &export));
        }
        let sets = builder.finish(&|| {});
        prop_assert_eq!(overlaps(&sets, min_jaccard), expected_overlaps(&slices, min_jaccard));

        // Each looks at all slices, whether they share turns or not.
        let checks = Cell::new(0);
        for slice in 0..sets.len() {
            sets.overlaps(slice, min_jaccard, &|| checks.set(checks.get() + 1)).for_each(drop);
            prop_assert!(checks.get() > slice);
        }

        let bridges = (0..sets.turn_count()).filter(|turn| sets.influence(*turn).is_bridge).count();
        prop_assert_eq!(topology(&sets, min_jaccard), expected_topology(&slices, min_jaccard, bridges));

        let turns: BTreeSet<TurnId> = slices.iter().flat_map(|s| &s.turns).copied().collect();
        prop_assert_eq!(sets.turn_count(), turns.len());
        for (number, turn) in turns.into_iter().enumerate() {
            let holders: Vec<&Plain> = slices.iter().filter(|s| s.turns.contains(&turn)).collect();
            let phases: BTreeSet<Phase> = holders.iter().map(|slice| slice.phase).collect();
            let influence = sets.influence(number);
            prop_assert_eq!(influence.turn_id, turn);
            prop_assert_eq!(influence.slice_count as usize, holders.len());
            prop_assert_eq!(influence.slice_fraction, holders.len() as f32 / slices.len() as f32);
            prop_assert_eq!(influence.is_bridge, phases.len() > 1);
        }
    }
}
