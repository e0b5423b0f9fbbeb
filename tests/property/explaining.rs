//! An explanation agrees with the slice, and the changes of policy that `why` names have the effect that it says.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::explain::explanation::{Explanation, TurnOutcome, explain, stats};
use kernel::explain::why::{Because, RADIUS_STEPS, Why, why};
use kernel::graph::turn::TurnId;
use kernel::slicing::observer::Via;
use kernel::slicing::slice::Slice;
use kernel::slicing::slicer::{Limits, SliceError, slice};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::cases;
use crate::generate::{
    Case, PolicyParams, graphs, hubs, id, limits, policies, rivals, with_duplicates,
};
use crate::naive;

type Explained = Result<Explanation, SliceError<Infallible>>;

fn explained(case: &Case, params: &PolicyParams, limits: Limits, seed: u64) -> Explained {
    let mut store = MemoryStore::new(case.graph.clone()).shuffled(seed);
    explain(&mut store, &params.policy(), case.anchor, limits, &|| {})
}

fn sliced(case: &Case, params: &PolicyParams) -> Slice {
    slice(&mut MemoryStore::new(case.graph.clone()), &params.policy(), case.anchor).unwrap()
}

/// The place of a turn in the selection order, if it was selected.
fn place(case: &Case, params: &PolicyParams, turn: TurnId) -> Option<usize> {
    let selected = naive::slice(&case.graph, params, case.anchor).selected;
    selected.iter().position(|candidate| candidate.id == turn)
}

fn includes(case: &Case, params: &PolicyParams, turn: TurnId) -> bool {
    place(case, params, turn).is_some()
}

/// The turns with an outcome, as often as they are listed.
fn ids_of(explanation: &Explanation, outcome: TurnOutcome) -> Vec<TurnId> {
    let turns = explanation.turns.iter().filter(|explained| explained.outcome == outcome);
    turns.map(|explained| explained.rank.id).collect()
}

fn sorted(ids: impl IntoIterator<Item = TurnId>) -> Vec<TurnId> {
    ids.into_iter().collect::<BTreeSet<TurnId>>().into_iter().collect()
}

/// Checks that the turns with each outcome are those of the naive loop, or that both fail with the same duplicate.
fn check(
    case: &Case,
    params: &PolicyParams,
    limits: Limits,
    seed: u64,
) -> Result<(), TestCaseError> {
    let explanation = explained(case, params, limits, seed);
    let naive = naive::slice(&case.graph, params, case.anchor);
    if let Some(duplicate) = naive.duplicate {
        prop_assert_eq!(explanation, Err(SliceError::DuplicateTurn(duplicate)));
        return Ok(());
    }
    let explanation = explanation.unwrap();

    let of_naive = naive.selected.iter().map(|t| (t.id, t.distance, (t.priority + 0.0).to_bits()));
    let of_explanation =
        explanation.turns.iter().take_while(|t| t.outcome == TurnOutcome::Selected);
    let of_explanation =
        of_explanation.map(|t| (t.rank.id, t.rank.distance, t.rank.priority().to_bits()));
    prop_assert!(of_explanation.eq(of_naive));

    let mut left = naive.frontier;
    left.sort_by(|a, b| {
        let by_priority = b.priority.partial_cmp(&a.priority).unwrap();
        by_priority.then(a.distance.cmp(&b.distance)).then(a.id.cmp(&b.id))
    });
    let left: Vec<TurnId> = left.iter().map(|candidate| candidate.id).collect();
    prop_assert_eq!(ids_of(&explanation, TurnOutcome::Frontier), left);
    let mut cut = ids_of(&explanation, TurnOutcome::SiblingLimit);
    cut.sort_unstable();
    let cut_by_naive = if params.max_siblings_per_node == 0 { vec![] } else { naive.cut_siblings };
    prop_assert_eq!(cut, sorted(cut_by_naive));
    let mut missing = ids_of(&explanation, TurnOutcome::Missing);
    missing.sort_unstable();
    prop_assert_eq!(missing, sorted(naive.missing));

    let distinct: BTreeSet<TurnId> = explanation.turns.iter().map(|t| t.rank.id).collect();
    prop_assert_eq!(distinct.len(), explanation.turns.len());
    Ok(())
}

/// Whether the second turn is related to the first as `via` says.
fn is_related(graph: &Graph, from: TurnId, to: TurnId, via: Via) -> bool {
    let edge = |parent, child| graph.edges.iter().any(|e| e.parent == parent && e.child == child);
    match via {
        Via::Anchor | Via::Pin | Via::Seed => from == to,
        Via::Parent => edge(to, from),
        Via::Child => edge(from, to),
        Via::Call | Via::Recalled => edge(from, to) || edge(to, from),
        Via::Sibling => graph.edges.iter().any(|e| e.child == from && edge(e.parent, to)),
    }
}

/// The turns that edges connect with this one, through missing turns as well or not.
fn component(graph: &Graph, of: TurnId, through_missing: bool) -> BTreeSet<TurnId> {
    let turns: BTreeSet<TurnId> = graph.turns.iter().map(|turn| turn.id).collect();
    let counts = |id: &TurnId| through_missing || turns.contains(id);
    let mut component = BTreeSet::from([of]);
    loop {
        let ends = graph.edges.iter().map(|edge| (edge.parent, edge.child));
        let known: Vec<TurnId> = ends
            .filter(|(a, b)| counts(a) && counts(b))
            .filter(|(a, b)| component.contains(a) != component.contains(b))
            .flat_map(|(a, b)| [a, b])
            .collect();
        if known.is_empty() {
            return component;
        }
        component.extend(known);
    }
}

/// Checks what `why` says, where budgets up to `most` are tried.
fn check_why(
    case: &Case,
    params: &PolicyParams,
    turn: TurnId,
    most: u32,
    limits: Limits,
) -> Result<(), TestCaseError> {
    let mut store = MemoryStore::new(case.graph.clone());
    let policy = params.policy();
    let found = why(&mut store, &policy, case.anchor, turn, most, limits);
    let otherwise = why(&mut store, &policy, case.anchor, turn, most, Limits::default());
    prop_assert_eq!(&found, &otherwise);
    let asked = naive::slice(&case.graph, params, case.anchor);
    if let Some(duplicate) = asked.duplicate {
        prop_assert_eq!(found, Err(SliceError::DuplicateTurn(duplicate)));
        return Ok(());
    }
    let Why { because, path } = found.unwrap();
    let exists = case.graph.turns.iter().any(|row| row.id == turn);
    let [connected, connectable] =
        [false, true].map(|missing| component(&case.graph, case.anchor, missing).contains(&turn));
    let in_slice = includes(case, params, turn);

    prop_assert_eq!(in_slice, matches!(because, Because::Anchor | Because::Selected(_)));
    prop_assert_eq!(!exists, because == Because::NoSuchTurn);
    let not_connected = because == Because::NotConnected;
    let not_found = matches!(because, Because::NotFound { .. });
    prop_assert!(!(not_connected && connected));
    prop_assert!(not_connected || not_found || connectable || !exists);
    prop_assert_eq!(path.is_some(), exists && !not_connected && !not_found);
    match because {
        Because::Anchor => prop_assert_eq!(turn, case.anchor),
        Because::Selected(hit) => {
            prop_assert_eq!(Some(hit.order), place(case, params, turn));
            prop_assert_eq!(hit.rank.distance, asked.selected[hit.order].distance);
            let path = path.as_ref().unwrap();
            prop_assert_eq!(hit.from, path[path.len() - 2]);
            prop_assert!(is_related(&case.graph, hit.from, turn, hit.via));
        }
        Because::Budget { max_nodes, needed } => {
            prop_assert_eq!(max_nodes, params.max_nodes as usize);
            prop_assert!(needed <= most as usize);
            let with = |max_nodes| PolicyParams { max_nodes, ..params.clone() };
            prop_assert!(includes(case, &with(needed as u32), turn));
            prop_assert!(!includes(case, &with(needed as u32 - 1), turn));
        }
        Because::Radius { max_radius, needed } => {
            prop_assert_eq!(max_radius, params.max_radius);
            let with = |max_radius| PolicyParams { max_radius, ..params.clone() };
            prop_assert!((1..=RADIUS_STEPS).contains(&(needed - max_radius)));
            prop_assert!(includes(case, &with(needed), turn));
            prop_assert!((max_radius..needed).all(|less| !includes(case, &with(less), turn)));
        }
        Because::Siblings { limit } => {
            let limit = limit as u32;
            let with = PolicyParams {
                include_siblings: true,
                max_siblings_per_node: limit,
                ..params.clone()
            };
            prop_assert!(!params.include_siblings || params.max_siblings_per_node == 0);
            prop_assert!(includes(case, &with, turn));
        }
        Because::Tokens { .. } | Because::Pin | Because::Key { .. } => {
            prop_assert!(false, "v1 has neither tokens nor such keys");
        }
        Because::NoOneChange { .. } | Because::NotConnected | Because::NoSuchTurn => {}
        // The whole of a graph is searched when the budget allows.
        Because::NotFound { within } => {
            prop_assert_eq!(within, most);
            prop_assert!((most as usize) < case.graph.turns.len());
        }
    }
    if let Some(path) = path {
        prop_assert_eq!((path[0], path[path.len() - 1]), (case.anchor, turn));
        let vias = [Via::Parent, Via::Child, Via::Sibling];
        let step =
            |pair: &[TurnId]| vias.iter().any(|v| is_related(&case.graph, pair[0], pair[1], *v));
        prop_assert!(path.windows(2).all(step));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn explanations_of_any_graph_are_the_slicers_run(
        case in prop_oneof![graphs(), with_duplicates(graphs())],
        params in policies(1..=64),
        limits in limits(),
        seed: u64,
    ) {
        check(&case, &params, limits, seed)?;
    }

    #[test]
    fn explanations_of_hubs_are_the_slicers_run(
        case in prop_oneof![hubs(4..=40, 90), with_duplicates(hubs(4..=40, 90))],
        params in policies(1..=14),
        limits in limits(),
        seed: u64,
    ) {
        check(&case, &params, limits, seed)?;
    }

    #[test]
    fn each_turn_is_told_with_the_one_that_led_to_it(case in graphs(), params in policies(1..=64)) {
        let explanation = explained(&case, &params, Limits::default(), 0).unwrap();
        let mut orders: BTreeMap<TurnId, usize> = BTreeMap::new();
        for (step, explained) in explanation.turns.iter().enumerate() {
            let from = explanation.discovered_from(explained);
            prop_assert_eq!(from.is_none(), explained.rank.id == case.anchor);
            if let Some(from) = from {
                prop_assert!(is_related(&case.graph, from, explained.rank.id, explained.via));
                // Turns are discovered from selected ones only.
                prop_assert!(orders.contains_key(&from));
                let of_step = format!("{} of step {}", explained.via.name(), orders[&from]);
                prop_assert!(
                    explained.outcome != TurnOutcome::Selected || explanation.reason(step) == of_step
                );
            }
            if explained.outcome == TurnOutcome::Selected {
                orders.insert(explained.rank.id, step);
            }
            prop_assert!(!explanation.reason(step).is_empty());
        }
    }

    #[test]
    fn statistics_are_honest_about_the_budget(case in graphs(), params in policies(1..=20)) {
        let mut store = MemoryStore::new(case.graph.clone());
        let stats = stats(&mut store, &params.policy(), case.anchor, Limits::default()).unwrap();
        let slice = sliced(&case, &params);
        let more = PolicyParams { max_nodes: params.max_nodes + 1, ..params.clone() };
        prop_assert_eq!(stats.truncated(), sliced(&case, &more).turns.len() > slice.turns.len());
        let naive = naive::slice(&case.graph, &params, case.anchor);
        prop_assert_eq!(stats.frontier_left, naive.frontier.len());
        let distances = slice.turns.iter().map(|turn| turn.distance);
        prop_assert_eq!(stats.max_distance, distances.max().unwrap());
        let turns = slice.turns.len();
        prop_assert_eq!(stats.phases().iter().map(|(_, count)| count).sum::<usize>(), turns);
        prop_assert_eq!(stats.roles().iter().map(|(_, count)| count).sum::<usize>(), turns);
        prop_assert_eq!(stats.slice, slice);
    }

    #[test]
    fn a_small_bound_on_held_ids_explains_the_same_or_fails(
        case in graphs(),
        params in policies(1..=64),
        held in 0..150usize,
    ) {
        let mut store = MemoryStore::new(case.graph.clone());
        let bounded = Limits { held, ..Limits::default() };
        match explain(&mut store, &params.policy(), case.anchor, bounded, &|| {}) {
            Err(SliceError::TooManyIds(most)) => prop_assert_eq!(most, held),
            found => prop_assert_eq!(found, explained(&case, &params, Limits::default(), 0)),
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn rivals_for_hundreds_of_children_are_explained(
        (case, params) in rivals(200..=350, 1000),
        limits in limits(),
        seed: u64,
    ) {
        check(&case, &params, limits, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn why_names_a_change_that_was_tried(
        case in prop_oneof![graphs(), with_duplicates(graphs())],
        params in policies(1..=20),
        turn: Index,
        limits in limits(),
    ) {
        // The id after the last turn does not exist.
        let turn = id(turn.index(case.graph.turns.len() + 1));
        check_why(&case, &params, turn, 10_000, limits)?;
    }

    #[test]
    fn why_keeps_to_the_budgets_a_server_allows(
        case in prop_oneof![graphs(), with_duplicates(graphs())],
        params in policies(1..=10),
        turn: Index,
        more in 0..=3u32,
        limits in limits(),
    ) {
        let turn = id(turn.index(case.graph.turns.len() + 1));
        check_why(&case, &params, turn, params.max_nodes + more, limits)?;
    }
}
