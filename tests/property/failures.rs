//! Graphs and limits with which there is no slice, and their errors.

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::graph::turn::{Phase, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::{Limits, SliceError, Slicer, slice};
use proptest::prelude::*;

use crate::cases;
use crate::generate::{Case, graphs, limits, policies, with_duplicates};
use crate::naive;
use crate::question_count::chain;

/// The graph with a second copy of this row at a random place.
fn with_copy(graph: &Graph, of: TurnId, seed: u64) -> Graph {
    let mut graph = graph.clone();
    let copy = graph.turns.iter().find(|turn| turn.id == of).unwrap().clone();
    let place = fastrand::Rng::with_seed(seed).usize(..=graph.turns.len());
    graph.turns.insert(place, copy);
    graph
}

#[test]
fn very_many_rows_of_one_turn_take_little() {
    let mut chain = chain(3);
    let middle = chain.turns[1].clone();
    for row in 0..200_000u32 {
        let phase = Phase::ALL[row as usize % Phase::ALL.len()];
        chain.turns.push(Turn { phase, salience: row as f32 / 200_000.0, ..middle.clone() });
    }
    let (anchor, policy) = (chain.turns[0].id, SlicePolicy::default());
    let mut store = MemoryStore::new(chain);
    for limits in [(1024, 40_000), (1024, 0), (1, 0)].map(|(wide, rows)| Limits {
        wide,
        rows,
        held: 20,
        ..Limits::default()
    }) {
        let found = Slicer::new(&mut store, &policy, limits).slice(anchor);
        assert_eq!(found, Err(SliceError::DuplicateTurn(middle.id)));
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_copy_of_a_row_is_an_error_where_it_is_selected_and_nothing_elsewhere(
        case in graphs(),
        params in policies(1..=24),
        limits in limits(),
        duplicate: prop::sample::Index,
        seed: u64,
    ) {
        let policy = params.policy();
        let slice = slice(&mut MemoryStore::new(case.graph.clone()), &policy, case.anchor).unwrap();
        let duplicate = case.graph.turns[duplicate.index(case.graph.turns.len())].id;
        let mut store = MemoryStore::new(with_copy(&case.graph, duplicate, seed)).shuffled(seed);
        let found = Slicer::new(&mut store, &policy, limits).slice(case.anchor);
        let is_selected = slice.turns.iter().any(|turn| turn.turn.id == duplicate);
        let expected = if is_selected { Err(SliceError::DuplicateTurn(duplicate)) } else { Ok(slice) };
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn an_anchor_stored_twice_is_a_duplicate(
        case in graphs(),
        params in policies(1..=64),
        limits in limits(),
        seed: u64,
    ) {
        let mut store = MemoryStore::new(with_copy(&case.graph, case.anchor, seed)).shuffled(seed);
        let found = Slicer::new(&mut store, &params.policy(), limits).slice(case.anchor);
        prop_assert_eq!(found, Err(SliceError::DuplicateTurn(case.anchor)));
    }

    #[test]
    fn a_missing_anchor_is_not_found(case in graphs(), params in policies(1..=64)) {
        let Case { mut graph, anchor } = case;
        graph.turns.retain(|turn| turn.id != anchor);
        let found = slice(&mut MemoryStore::new(graph), &params.policy(), anchor);
        prop_assert_eq!(found, Err(SliceError::AnchorNotFound(anchor)));
    }

    #[test]
    fn a_small_bound_on_held_ids_gives_the_same_slice_or_an_error(
        case in prop_oneof![graphs(), with_duplicates(graphs())],
        params in policies(1..=64),
        limits in limits(),
        held in 0..150usize,
    ) {
        let selected = naive::slice(&case.graph, &params, case.anchor).selected.len();
        let policy = params.policy();
        let mut store = MemoryStore::new(case.graph);
        let unbound = slice(&mut store, &policy, case.anchor);
        match Slicer::new(&mut store, &policy, Limits { held, ..limits }).slice(case.anchor) {
            Err(error @ SliceError::TooManyIds(_)) => {
                prop_assert_eq!(error, SliceError::TooManyIds(held));
            }
            slice => {
                prop_assert!(selected <= held);
                prop_assert_eq!(slice, unbound);
            }
        }
    }
}
