//! Overlaps and influences of many slices, checked against sets that are compared pair by pair.

use std::cell::Cell;
use std::collections::BTreeSet;

use graph_kernel_tests::memory_store::MemoryStore;
use kernel::evidence::slice_sets::{SliceOverlap, SliceSets, SliceSetsBuilder};
use kernel::export::document::Export;
use kernel::graph::turn::{Phase, TurnId};
use kernel::slicing::slice::Slice;
use kernel::slicing::slicer::slice;
use proptest::prelude::*;

use crate::cases;
use crate::generate::{graphs, policies};

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
