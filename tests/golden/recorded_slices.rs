//! Slices of three graphs by ten policies, computed from the specification's text by an
//! independent program.

use std::path::Path;

use graph_kernel_tests::data::{read_graph, read_json_lines};
use graph_kernel_tests::memory_store::MemoryStore;
use graph_kernel_tests::shared::shared_or_skip;
use graph_kernel_tests::vectors::RecordedSlice;
use kernel::explain::explanation::{TurnOutcome, explain};
use kernel::export::document::Export;
use kernel::graph::content::sha256_hex;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::{SelectedTurn, Slice};
use kernel::slicing::slicer::{Limits, Slicer, slice};

use crate::data;

/// A slice taken again.
fn retaken(recorded: &RecordedSlice, store: &mut MemoryStore, limits: Limits) -> RecordedSlice {
    let policy: SlicePolicy = recorded.policy.to_string().parse().unwrap();
    let slice = Slicer::new(store, &policy, limits).slice(recorded.anchor).unwrap();
    let export = Export::new(&slice, &policy, &|| {});
    RecordedSlice {
        data: recorded.data.clone(),
        policy_name: recorded.policy_name.clone(),
        policy: recorded.policy.clone(),
        anchor: export.anchor_turn_id,
        policy_params_hash: export.policy_params_hash,
        turns: export.turns.len(),
        edges: export.edges.len(),
        slice_id: export.slice_id,
        selection_order_sha256: selection_order_sha256(&slice),
    }
}

pub fn selection_order_sha256(slice: &Slice) -> String {
    let mut turns: Vec<&SelectedTurn> = slice.turns.iter().collect();
    turns.sort_by_key(|selected| selected.selection_order);
    ids_sha256(turns.iter().map(|selected| selected.turn.id))
}

pub fn ids_sha256(ids: impl Iterator<Item = TurnId>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    sha256_hex(ids.join("\n").as_bytes())
}

/// Takes the slices of one graph again; there are `expected` of them.
fn retake(name: &str, folder: &Path, slices: &Path, expected: usize, limits: Limits) {
    let mut slices: Vec<RecordedSlice> = read_json_lines(slices);
    slices.retain(|slice| slice.data == name);
    assert_eq!(slices.len(), expected, "recorded slices of {name}");
    let mut store = MemoryStore::new(read_graph(folder));
    for slice in slices {
        assert_eq!(retaken(&slice, &mut store, limits), slice);
    }
}

fn retake_shared(test: &str, name: &str) {
    let Some(shared) = shared_or_skip(test) else {
        return;
    };
    let folder = shared.join("data").join(name);
    let slices = shared.join("vectors/slices.jsonl");
    retake(name, &folder, &slices, 270, Limits::default());
}

/// Checks that an explanation lists the recorded turns as selected, with the distances and priorities of the slice.
fn explain_again(name: &str, folder: &Path, slices: &Path, expected: usize) {
    let mut slices: Vec<RecordedSlice> = read_json_lines(slices);
    slices.retain(|slice| slice.data == name);
    assert_eq!(slices.len(), expected, "recorded slices of {name}");
    let mut store = MemoryStore::new(read_graph(folder));
    for recorded in slices {
        let policy: SlicePolicy = recorded.policy.to_string().parse().unwrap();
        let anchor = recorded.anchor;
        let explanation = explain(&mut store, &policy, anchor, Limits::default(), &|| {}).unwrap();
        let selected = explanation.turns.iter().filter(|t| t.outcome == TurnOutcome::Selected);
        let ranks: Vec<_> = selected.map(|turn| turn.rank).collect();
        let order = ids_sha256(ranks.iter().map(|rank| rank.id));
        assert_eq!(order, recorded.selection_order_sha256, "{name} {anchor}");
        for turn in slice(&mut store, &policy, anchor).unwrap().turns {
            let rank = ranks[turn.selection_order as usize];
            assert_eq!((rank.id, rank.distance), (turn.turn.id, turn.distance));
            assert_eq!(rank.priority().to_bits(), turn.priority.to_bits());
        }
    }
}

#[test]
fn explanations_of_the_hard_graph_select_what_was_recorded() {
    explain_again("hard", &data("hard"), &data("hard/slices.jsonl.gz"), 420);
}

#[test]
fn explanations_of_shared_graphs_select_what_was_recorded() {
    let test = "explanations_of_shared_graphs_select_what_was_recorded";
    let Some(shared) = shared_or_skip(test) else {
        return;
    };
    for name in ["agent_sessions", "oasst1"] {
        let folder = shared.join("data").join(name);
        explain_again(name, &folder, &shared.join("vectors/slices.jsonl"), 270);
    }
}

#[test]
fn slices_of_the_hard_graph_are_the_recorded_ones() {
    let slices = data("hard/slices.jsonl.gz");
    retake("hard", &data("hard"), &slices, 420, Limits::default());
}

#[test]
fn slices_of_the_hard_graph_do_not_depend_on_how_it_is_read() {
    let slices = data("hard/slices.jsonl.gz");
    let limits = Limits { batch: 3, wide: 4, ..Limits::default() };
    retake("hard", &data("hard"), &slices, 420, limits);
}

#[test]
fn slices_of_agent_sessions_are_the_recorded_ones() {
    retake_shared("slices_of_agent_sessions_are_the_recorded_ones", "agent_sessions");
}

#[test]
fn slices_of_oasst1_are_the_recorded_ones() {
    retake_shared("slices_of_oasst1_are_the_recorded_ones", "oasst1");
}
