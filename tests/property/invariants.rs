//! The invariants of SlicePolicy v1 §6.2 and §7, and the order of ties.

use std::collections::BTreeSet;

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::export::document::Export;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::{SelectedTurn, Slice};
use kernel::slicing::slicer::{Slicer, slice};
use proptest::prelude::*;

use crate::cases;
use crate::generate::{Case, PolicyParams, graphs, limits, policies, turn};

fn sliced(case: &Case, params: &PolicyParams) -> Slice {
    let mut store = MemoryStore::new(case.graph.clone());
    slice(&mut store, &params.policy(), case.anchor).unwrap()
}

fn in_selection_order(slice: &Slice) -> Vec<&SelectedTurn> {
    let mut turns: Vec<&SelectedTurn> = slice.turns.iter().collect();
    turns.sort_by_key(|turn| turn.selection_order);
    turns
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_anchor_is_in_and_came_first(case in graphs(), params in policies(1..=64)) {
        let slice = sliced(&case, &params);
        prop_assert_eq!(slice.anchor, case.anchor);
        let first = in_selection_order(&slice)[0];
        prop_assert_eq!(first.turn.id, case.anchor);
        prop_assert_eq!((first.distance, first.selection_order), (0, 0));
    }

    #[test]
    fn the_budget_is_kept(case in graphs(), params in policies(1..=8)) {
        prop_assert!(sliced(&case, &params).turns.len() <= params.max_nodes as usize);
    }

    #[test]
    fn no_turn_is_farther_than_the_radius(case in graphs(), params in policies(1..=64)) {
        let slice = sliced(&case, &params);
        prop_assert!(slice.turns.iter().all(|turn| turn.distance <= params.max_radius));
    }

    #[test]
    fn turns_are_rows_of_the_graph_ascending_by_id(case in graphs(), params in policies(1..=64)) {
        let slice = sliced(&case, &params);
        prop_assert!(slice.turns.windows(2).all(|pair| pair[0].turn.id < pair[1].turn.id));
        prop_assert!(slice.turns.iter().all(|turn| case.graph.turns.contains(&turn.turn)));
        let orders = in_selection_order(&slice);
        let orders: Vec<usize> = orders.iter().map(|turn| turn.selection_order as usize).collect();
        prop_assert_eq!(orders, (0..slice.turns.len()).collect::<Vec<_>>());
    }

    #[test]
    fn edges_are_all_between_selected_turns_once_and_sorted(
        case in graphs(),
        params in policies(1..=64),
    ) {
        let slice = sliced(&case, &params);
        let selected: BTreeSet<TurnId> = slice.turns.iter().map(|turn| turn.turn.id).collect();
        let inside = |edge: &&Edge| selected.contains(&edge.parent) && selected.contains(&edge.child);
        let expected: BTreeSet<(TurnId, TurnId, EdgeType)> = case
            .graph
            .edges
            .iter()
            .filter(inside)
            .map(|edge| (edge.parent, edge.child, edge.edge_type))
            .collect();
        let found = slice.edges.iter().map(|edge| (edge.parent, edge.child, edge.edge_type));
        prop_assert!(found.eq(expected));
    }

    #[test]
    fn no_byte_depends_on_storage_answer_or_reading_order(
        case in graphs(),
        params in policies(1..=64),
        limits in limits(),
        seed: u64,
    ) {
        let policy = params.policy();
        let text = Export::new(&sliced(&case, &params), &policy, &|| {}).to_json();
        let mut random = fastrand::Rng::with_seed(seed);
        let Graph { mut turns, mut edges } = case.graph;
        random.shuffle(&mut turns);
        random.shuffle(&mut edges);
        let mut store = MemoryStore::new(Graph { turns, edges }).shuffled(random.u64(..));
        let slice = Slicer::new(&mut store, &policy, limits).slice(case.anchor).unwrap();
        prop_assert_eq!(Export::new(&slice, &policy, &|| {}).to_json(), text);
    }

    #[test]
    fn equal_scores_are_selected_by_the_lower_id(
        hub: u128,
        children in prop::collection::btree_set(any::<u128>(), 1..40),
        max_nodes in 2..=20usize,
        score: u8,
    ) {
        let mut ids: Vec<TurnId> = children.iter().map(|id| TurnId::from_u128(*id)).collect();
        let hub = TurnId::from_u128(hub);
        ids.retain(|id| *id != hub);
        let turns = ids.iter().chain([&hub]).map(|id| {
            let mut turn = turn(0, score);
            turn.id = *id;
            turn
        });
        let edge = |child: &TurnId| Edge { parent: hub, child: *child, edge_type: EdgeType::Reply };
        let graph = Graph { turns: turns.collect(), edges: ids.iter().map(edge).collect() };
        let policy: SlicePolicy = format!(r#"{{"max_nodes":{max_nodes}}}"#).parse().unwrap();

        let slice = slice(&mut MemoryStore::new(graph), &policy, hub).unwrap();
        let found = in_selection_order(&slice).into_iter().map(|turn| turn.turn.id);
        ids.sort_by_key(|id| id.to_string());
        prop_assert!(found.eq([hub].into_iter().chain(ids).take(max_nodes)));
    }

    #[test]
    fn equal_scores_are_selected_by_the_lower_distance(
        mut case in graphs(),
        mut params in policies(1..=64),
        score: u8,
    ) {
        for (number, row) in case.graph.turns.iter_mut().enumerate() {
            *row = turn(number, score);
        }
        params.distance_decay = 1.0;
        let slice = sliced(&case, &params);
        prop_assert!(in_selection_order(&slice).is_sorted_by_key(|turn| turn.distance));
    }
}

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn a_hundred_runs_give_the_same_bytes(case in graphs(), params in policies(1..=64)) {
        let policy = params.policy();
        let text = Export::new(&sliced(&case, &params), &policy, &|| {}).to_json();
        for _ in 1..100 {
            prop_assert_eq!(&Export::new(&sliced(&case, &params), &policy, &|| {}).to_json(), &text);
        }
    }
}
