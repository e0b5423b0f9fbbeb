//! The slicer selects what the specification's own loop selects, however it reads the graph.

use graph_kernel_tests::memory_store::MemoryStore;
use kernel::graph::turn::TurnId;
use kernel::slicing::slice::SelectedTurn;
use kernel::slicing::slicer::{FetchedGraph, Limits, SliceError, Slicer, slice};
use proptest::prelude::*;

use crate::cases;
use crate::generate::{
    Case, PolicyParams, graphs, hubs, limits, policies, rivals, with_duplicates,
};
use crate::naive;

/// Checks that selection order, distances, priorities and edges are those of the naive slice, or that both fail with
/// the same duplicate.
fn check(
    case: Case,
    params: &PolicyParams,
    limits: Limits,
    seed: u64,
) -> Result<(), TestCaseError> {
    let expected = naive::slice(&case.graph, params, case.anchor);
    let mut store = MemoryStore::new(case.graph).shuffled(seed);
    let slice = Slicer::new(&mut store, &params.policy(), limits).slice(case.anchor);
    if let Some(duplicate) = expected.duplicate {
        prop_assert_eq!(slice, Err(SliceError::DuplicateTurn(duplicate)));
        return Ok(());
    }
    let slice = slice.map_err(|error| TestCaseError::fail(error.to_string()))?;

    let mut selected: Vec<&SelectedTurn> = slice.turns.iter().collect();
    selected.sort_by_key(|turn| turn.selection_order);
    // A priority of −0.0 is ranked and reported as 0.0.
    type Selected = (TurnId, u32, u32);
    let found: Vec<Selected> = selected
        .iter()
        .map(|turn| (turn.turn.id, turn.distance, turn.priority.to_bits()))
        .collect();
    let wanted: Vec<Selected> = expected
        .selected
        .iter()
        .map(|turn| (turn.id, turn.distance, (turn.priority + 0.0).to_bits()))
        .collect();
    prop_assert_eq!(found, wanted);
    prop_assert_eq!(slice.edges, expected.edges);
    Ok(())
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn any_graph_is_sliced_as_the_naive_loop_does(
        case in graphs(),
        params in policies(1..=64),
        seed: u64,
    ) {
        check(case, &params, Limits::default(), seed)?;
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn hubs_are_sliced_as_the_naive_loop_does_when_nearly_every_turn_is_wide(
        case in hubs(4..=40, 90),
        params in policies(2..=14),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn any_graph_is_sliced_as_the_naive_loop_does_when_nearly_every_turn_is_wide(
        case in graphs(),
        params in policies(1..=64),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn slices_taken_together_are_those_taken_alone(
        case in prop_oneof![graphs(), with_duplicates(graphs())],
        params in policies(1..=64),
        limits in limits(),
        held in prop_oneof![Just(1_000_000), 500..5000usize],
        seed: u64,
    ) {
        let policy = params.policy();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut anchors: Vec<TurnId> = case.graph.turns.iter().map(|turn| turn.id).collect();
        anchors.sort_unstable();
        anchors.dedup();
        anchors.extend(random.choose_multiple(anchors.clone(), 10));
        anchors.push(TurnId::from_u128(random.u128(..)));
        random.shuffle(&mut anchors);
        let mut store = MemoryStore::new(case.graph).shuffled(seed);
        let alone: Vec<_> = anchors.iter().map(|id| slice(&mut store, &policy, *id)).collect();
        let mut known = FetchedGraph::default();
        for (anchors, alone) in anchors.chunks(7).zip(alone.chunks(7)) {
            let limits = Limits { held, ..limits };
            let mut together = Slicer::reusing(known, &mut store, &policy, limits);
            for (at, (anchor, alone)) in anchors.iter().zip(alone).enumerate() {
                match together.slice_before(*anchor, &anchors[at + 1..]) {
                    Err(SliceError::TooManyIds(most)) => prop_assert_eq!(most, held),
                    slice => prop_assert_eq!(&slice, alone),
                }
            }
            known = together.into_fetched();
        }
    }
}

proptest! {
    #![proptest_config(cases(4000))]

    // What the second one may discover depends on what was dropped with the first one.
    #[test]
    fn rivals_for_the_same_children_are_sliced_as_the_naive_loop_does(
        (case, params) in rivals(12..=40, 100),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(500))]

    // Answers so long that children are dropped while they are read.
    #[test]
    fn rivals_for_hundreds_of_children_are_sliced_as_the_naive_loop_does(
        (case, params) in rivals(200..=350, 1000),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(5000))]

    #[test]
    fn a_duplicate_counts_where_it_is_selected_and_nowhere_else(
        case in with_duplicates(graphs()),
        params in policies(1..=14),
        limits in prop_oneof![Just(Limits::default()), limits()],
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }

    #[test]
    fn duplicates_among_the_children_of_wide_turns_count_where_they_are_selected(
        case in with_duplicates(hubs(4..=40, 90)),
        params in policies(2..=10),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn duplicates_among_the_children_of_rivals_count_where_they_are_selected(
        (case, params) in rivals(12..=40, 100).prop_flat_map(|(case, params)| {
            (with_duplicates(Just(case)), Just(params))
        }),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn duplicates_among_hundreds_of_children_count_where_they_are_selected(
        (case, params) in rivals(200..=350, 1000).prop_flat_map(|(case, params)| {
            (with_duplicates(Just(case)), Just(params))
        }),
        limits in limits(),
        seed: u64,
    ) {
        check(case, &params, limits, seed)?;
    }
}
