//! Graphs and bounds that give no slice give an error that says so.

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::policy::SlicePolicy;
use kernel::slicer::{Limits, SliceError, Slicer, slice};
use kernel::turn::{Phase, Turn, TurnId};
use proptest::prelude::*;

use crate::cases;
use crate::generate::{Case, PolicyParams, graphs, limits, policies};
use crate::naive;
use crate::question_count::chain;

/// The graph with a turn stored once more, under another phase, at a random place.
fn with_twin(graph: &Graph, of: TurnId, seed: u64) -> Graph {
    let mut graph = graph.clone();
    let original = graph.turns.iter().find(|turn| turn.id == of).unwrap();
    let other_phase = match original.phase {
        Phase::Planning => Phase::Debugging,
        _ => Phase::Planning,
    };
    let twin = Turn { phase: other_phase, ..original.clone() };
    let place = fastrand::Rng::with_seed(seed).usize(..=graph.turns.len());
    graph.turns.insert(place, twin);
    graph
}

/// A parent of the anchor, other than itself.
fn parent(case: &Case) -> Option<TurnId> {
    let mut edges = case.graph.edges.iter().filter(|edge| edge.child == case.anchor);
    edges.find_map(|edge| other_turn(case, edge.parent))
}

/// A child of the anchor, other than itself.
fn child(case: &Case) -> Option<TurnId> {
    let mut edges = case.graph.edges.iter().filter(|edge| edge.parent == case.anchor);
    edges.find_map(|edge| other_turn(case, edge.child))
}

fn other_turn(Case { graph, anchor }: &Case, id: TurnId) -> Option<TurnId> {
    let exists = graph.turns.iter().any(|turn| turn.id == id);
    (exists && id != *anchor).then_some(id)
}

/// With the turn stored twice there is no slice.
fn check_twin(
    case: &Case,
    twin: Option<TurnId>,
    params: &PolicyParams,
    seed: u64,
) -> Result<(), TestCaseError> {
    let Some(twin) = twin else {
        return Ok(());
    };
    let mut store = MemoryStore::new(with_twin(&case.graph, twin, seed)).shuffled(seed);
    let found = slice(&mut store, &params.policy(), case.anchor);
    prop_assert_eq!(found, Err(SliceError::DuplicateTurn(twin)));
    Ok(())
}

#[test]
fn a_turn_stored_twice_beyond_the_radius_is_not_met() {
    let chain = chain(40);
    let twin = with_twin(&chain, chain.turns[31].id, 1);
    let sliced = slice(&mut MemoryStore::new(twin), &SlicePolicy::default(), chain.turns[20].id);
    assert_eq!(sliced.unwrap().turns.len(), 21);
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn an_anchor_stored_twice_is_a_duplicate(
        case in graphs(),
        params in policies(1..=64),
        seed: u64,
    ) {
        check_twin(&case, Some(case.anchor), &params, seed)?;
    }

    // Whether it would be selected or not.
    #[test]
    fn a_child_stored_twice_is_a_duplicate(
        case in graphs(),
        mut params in policies(2..=64),
        seed: u64,
    ) {
        params.max_radius = params.max_radius.max(1);
        check_twin(&case, child(&case), &params, seed)?;
    }

    // Whether it would be selected or not, as long as its rows rank differently.
    #[test]
    fn a_parent_stored_twice_is_a_duplicate(
        case in graphs(),
        mut params in policies(2..=64),
        seed: u64,
    ) {
        params.max_radius = params.max_radius.max(1);
        params.phase_weights = [0.1, 0.2, 0.3, 0.4, 0.5];
        params.distance_decay = params.distance_decay.max(0.1);
        check_twin(&case, parent(&case), &params, seed)?;
    }

    // However it ranks.
    #[test]
    fn a_selected_parent_stored_twice_is_a_duplicate(
        case in graphs(),
        mut params in policies(64..=80),
        seed: u64,
    ) {
        params.max_radius = params.max_radius.max(1);
        check_twin(&case, parent(&case), &params, seed)?;
    }

    #[test]
    fn a_turn_stored_twice_is_never_selected(
        case in graphs(),
        params in policies(1..=64),
        limits in limits(),
        twin: prop::sample::Index,
        seed: u64,
    ) {
        let twin = case.graph.turns[twin.index(case.graph.turns.len())].id;
        let mut store = MemoryStore::new(with_twin(&case.graph, twin, seed)).shuffled(seed);
        match Slicer::new(&mut store, &params.policy(), limits).slice(case.anchor) {
            Ok(slice) => prop_assert!(slice.turns.iter().all(|turn| turn.turn.id != twin)),
            Err(error) => prop_assert_eq!(error, SliceError::DuplicateTurn(twin)),
        }
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
        case in graphs(),
        params in policies(1..=64),
        limits in limits(),
        held in 0..150usize,
    ) {
        let selected = naive::slice(&case.graph, &params, case.anchor).selected.len();
        let policy = params.policy();
        let mut store = MemoryStore::new(case.graph);
        let unbound = slice(&mut store, &policy, case.anchor).unwrap();
        match Slicer::new(&mut store, &policy, Limits { held, ..limits }).slice(case.anchor) {
            Ok(slice) => {
                prop_assert!(selected <= held);
                prop_assert_eq!(slice, unbound);
            }
            Err(error) => prop_assert_eq!(error, SliceError::TooManyIds(held)),
        }
    }
}
