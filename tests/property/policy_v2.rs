//! SlicePolicy v2: the slicer selects what the text's own loop selects, and what the text says must hold does.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::explain::explanation::{TurnOutcome, explain, stats};
use kernel::explain::why::{Because, why};
use kernel::graph::edge::EdgeType;
use kernel::graph::turn::{Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::prompt::messages::messages;
use kernel::slicing::observer::{Cut, Observer, Via};
use kernel::slicing::score::Rank;
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::slicing::slicer::{FetchedGraph, Limits, SliceError, Slicer};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::cases;
use crate::generate::{Case, graphs, hubs, id, limits, policies};
use crate::naive_v2::{self, PolicyV2};
use crate::question_count::chain;

/// When the first of the generated turns was created.
const FIRST: i64 = 1_700_000_000;

fn optional<T: Clone + std::fmt::Debug + 'static>(
    values: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.3, values)
}

/// Pins and seeds; not all of them exist.
fn inputs() -> impl Strategy<Value = (Vec<TurnId>, Vec<(TurnId, f64)>)> {
    let ids = |most| prop::collection::btree_set((0..20usize).prop_map(id), 0..=most);
    let pins = (ids(3), any::<bool>()).prop_map(|(pins, turned)| {
        let mut pins: Vec<TurnId> = pins.into_iter().collect();
        if turned {
            pins.reverse();
        }
        pins
    });
    let strengths = prop::collection::vec(select(vec![1.0, 1.0, 0.9, 0.5, 0.1, 1e-6]), 6);
    let seeds =
        (ids(6), strengths).prop_map(|(ids, strengths)| ids.into_iter().zip(strengths).collect());
    (prop_oneof![Just(Vec::new()), pins], prop_oneof![Just(Vec::new()), seeds])
}

type Parts = ((Option<u32>, u32), (f64, f64), (f64, bool));

/// What bounds recall, and the cut.
fn parts() -> impl Strategy<Value = Parts> {
    let tokens = select(vec![1u32, 4, 10, 30, 100]);
    let share = || select(vec![0.0, 0.3, 0.5, 0.95, 1.0]);
    let cut = select(vec![0.0, 0.0, 0.1, 0.5, 0.9]);
    ((optional(tokens), select(vec![0u32, 1, 2, 8, 16])), (share(), share()), (cut, any::<bool>()))
}

pub fn policies_v2() -> impl Strategy<Value = PolicyV2> {
    let weight = || select(vec![1.0, 1.0, 1.0, 0.5, 0.3, 0.0, 1e-7]);
    let tokens = select(vec![1u32, 4, 10, 30, 100, 1000]);
    (
        policies(1..=24),
        (prop::option::weighted(0.6, tokens), optional(1..=40u32)),
        prop_oneof![2 => Just([1.0; 4]), 1 => prop::array::uniform4(weight())],
        (prop::bool::weighted(0.8), prop::bool::weighted(0.8), prop::bool::weighted(0.2)),
        (optional(0..=50i64), optional(0..=50i64), optional(FIRST - 1..=FIRST + 60)),
        any::<bool>(),
        inputs(),
        parts(),
    )
        .prop_map(
            |(
                common,
                (max_tokens, halving),
                weights,
                (parents, children, session),
                times,
                keep,
                (pins, seeds),
                (recall, (recall_decay, recall_share), (cut_share, cut_to_user)),
            )| {
                PolicyV2 {
                    max_tokens,
                    edge_weights: weights,
                    halving_seconds: halving,
                    include_parents: parents,
                    include_children: children,
                    same_session: session,
                    max_seconds_before: times.0,
                    max_seconds_after: times.1,
                    as_of: times.2,
                    keep_tool_results: keep,
                    pins,
                    seeds,
                    recall_tokens: recall.0,
                    recall_radius: recall.1,
                    recall_decay,
                    recall_share,
                    cut_share,
                    cut_to_user,
                    ..PolicyV2::of(common)
                }
            },
        )
}

/// Few different counts, so that what fits and what does not alternates.
fn tokens(graph: &Graph, seed: u64) -> HashMap<TurnId, u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let counts = [0, 1, 1, 2, 3, 5, 8, 20, 300];
    graph.turns.iter().map(|turn| (turn.id, counts[random.usize(..counts.len())])).collect()
}

pub fn store(graph: &Graph, seed: u64) -> MemoryStore {
    MemoryStore::new(graph.clone()).with_tokens(tokens(graph, seed)).shuffled(seed)
}

fn take(
    graph: &Graph,
    policy: &SlicePolicy,
    anchor: TurnId,
    limits: Limits,
    seed: u64,
) -> Result<Option<Slice>, TestCaseError> {
    match Slicer::new(&mut store(graph, seed), policy, limits).slice(anchor) {
        Ok(slice) => Ok(Some(slice)),
        Err(SliceError::AnchorNotFound(_)) => Ok(None),
        Err(error) => Err(TestCaseError::fail(error.to_string())),
    }
}

type Selected = (TurnId, u32, u32);

fn in_order(slice: &Slice) -> Vec<Selected> {
    let mut selected: Vec<&SelectedTurn> = slice.turns.iter().collect();
    selected.sort_by_key(|turn| turn.selection_order);
    selected.iter().map(|t| (t.turn.id, t.distance, t.priority.to_bits())).collect()
}

/// Notes what a slice does not say of itself.
#[derive(Default)]
struct Noted {
    cut: Vec<TurnId>,
    limited: bool,
}

impl Observer for Noted {
    const SEES_ALL: bool = true;

    fn cut(&mut self, turn: Rank, _because: Cut) {
        self.cut.push(turn.id);
    }

    fn line_ended(&mut self, limited: bool) {
        self.limited = limited;
    }
}

fn check(case: &Case, policy: &PolicyV2, limits: Limits, seed: u64) -> Result<(), TestCaseError> {
    let expected = naive_v2::slice(&case.graph, &tokens(&case.graph, seed), policy, case.anchor);
    let slice_policy = policy.policy();
    let found = take(&case.graph, &slice_policy, case.anchor, limits, seed)?;
    let wanted: Option<Vec<Selected>> = expected.as_ref().map(|slice| {
        let selected = slice.selected.iter();
        selected.map(|turn| (turn.id, turn.distance, (turn.priority + 0.0).to_bits())).collect()
    });
    prop_assert_eq!(found.as_ref().map(in_order), wanted);
    let (Some(found), Some(expected)) = (found, expected) else { return Ok(()) };
    prop_assert_eq!(&found.edges, &expected.edges);
    let mut parts: Vec<(u32, Part)> =
        found.turns.iter().map(|turn| (turn.selection_order, turn.part)).collect();
    parts.sort_by_key(|(order, _)| *order);
    prop_assert!(parts.iter().map(|(_, part)| part).eq(&expected.parts), "{parts:?}");
    prop_assert_eq!(&found.pins_left_out, &expected.pins_left_out);
    let from = found.turns.iter().filter_map(|turn| Some((turn.turn.id, turn.seed?)));
    prop_assert_eq!(from.collect::<BTreeMap<_, _>>(), expected.recalled_from);
    let shown = messages(&found, &slice_policy, &|| {});
    prop_assert!(shown.iter().map(|turn| turn.turn.id).eq(expected.messages), "{shown:?}");
    let (mut noted, wide) = (Noted::default(), Limits { wide: usize::MAX, ..limits });
    let mut store = store(&case.graph, seed);
    let seen = Slicer::new(&mut store, &slice_policy, wide).slice_observed(case.anchor, &mut noted);
    prop_assert_eq!(seen, Ok(found));
    prop_assert_eq!((noted.cut, noted.limited), (expected.cut, expected.limited));
    Ok(())
}

/// The slice, if the anchor exists, and what it does not say of itself.
fn observed(case: &Case, policy: &PolicyV2, seed: u64) -> (Option<Slice>, Noted) {
    let mut noted = Noted::default();
    let (mut store, policy) = (store(&case.graph, seed), policy.policy());
    let limits = Limits { wide: usize::MAX, ..Limits::default() };
    let slice = Slicer::new(&mut store, &policy, limits).slice_observed(case.anchor, &mut noted);
    (slice.ok(), noted)
}

/// The graph without the turns for which this is false.
fn only(graph: &Graph, mut keep: impl FnMut(&Turn) -> bool) -> Graph {
    let turns = graph.turns.iter().filter(|turn| keep(turn)).cloned().collect();
    Graph { turns, edges: graph.edges.clone() }
}

/// Checks that a policy gives at the anchor what another gives over another graph with the same tokens.
fn check_same(
    case: &Case,
    policy: &PolicyV2,
    without: &PolicyV2,
    graph: &Graph,
    seed: u64,
) -> Result<(), TestCaseError> {
    let counts = tokens(&case.graph, seed);
    let found = take(&case.graph, &policy.policy(), case.anchor, Limits::default(), seed)?;
    let mut other = MemoryStore::new(graph.clone()).with_tokens(counts);
    let same = Slicer::new(&mut other, &without.policy(), Limits::default()).slice(case.anchor);
    match (found, same) {
        (Some(found), Ok(same)) => {
            prop_assert_eq!(in_order(&found), in_order(&same));
            prop_assert_eq!(found.edges, same.edges);
        }
        (found, same) => prop_assert!(found.is_none() && same.is_err(), "{found:?} {same:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn any_graph_is_sliced_as_the_text_says(
        case in graphs(), policy in policies_v2(), seed: u64,
    ) {
        check(&case, &policy, Limits::default(), seed)?;
    }

    #[test]
    fn how_a_graph_is_read_changes_nothing(
        case in graphs(), policy in policies_v2(), limits in limits(), seed: u64,
    ) {
        check(&case, &policy, limits, seed)?;
    }

    /// 1 and 5: with the new keys at their defaults, all is as in v1, to the bit.
    #[test]
    fn the_defaults_are_v1(case in graphs(), params in policies(1..=64), seed: u64) {
        let v1 = take(&case.graph, &params.policy(), case.anchor, Limits::default(), seed)?;
        let v2 = PolicyV2::of(params).policy();
        let v2 = take(&case.graph, &v2, case.anchor, Limits::default(), seed)?;
        let (v1, v2) = (v1.expect("the anchor exists"), v2.expect("the anchor exists"));
        prop_assert_eq!(in_order(&v1), in_order(&v2));
        prop_assert_eq!(v1.edges, v2.edges);
    }

    /// 2: the tokens are bounded, but for those of the anchor's group; those of recalled turns as well.
    #[test]
    fn tokens_are_bounded(case in graphs(), policy in policies_v2(), most in 1..=60u32, seed: u64) {
        let policy = PolicyV2 { max_tokens: Some(most), ..policy };
        let slice = take(&case.graph, &policy.policy(), case.anchor, Limits::default(), seed)?;
        let Some(slice) = slice else { return Ok(()) };
        let counts = tokens(&case.graph, seed);
        let of = |parts: &[Part]| {
            let turns = slice.turns.iter().filter(|turn| parts.contains(&turn.part));
            turns.map(|turn| counts[&turn.turn.id]).sum::<u32>()
        };
        prop_assert!(slice.turns.iter().all(|turn| turn.tokens == counts[&turn.turn.id]));
        let of_anchor = of(&[Part::Anchor]);
        prop_assert!(of(Part::ALL) <= most.max(of_anchor));
        if let Some(most) = policy.recall_tokens {
            prop_assert!(of(&[Part::Recalled]) <= most);
        }
    }

    /// 3: no group is split, but by the cut of results without a parent, and the anchor's where it is too large; a
    /// result of the line has a parent in the slice.
    #[test]
    fn groups_are_whole(case in graphs(), policy in policies_v2(), seed: u64) {
        let policy = PolicyV2 { keep_tool_results: true, ..policy };
        let slice = take(&case.graph, &policy.policy(), case.anchor, Limits::default(), seed)?;
        let Some(slice) = slice else { return Ok(()) };
        let anchor = case.graph.turns.iter().find(|turn| turn.id == case.anchor).unwrap();
        let exists = naive_v2::admitted(&case.graph, &policy, anchor);
        let selected: HashSet<TurnId> = slice.turns.iter().map(|turn| turn.turn.id).collect();
        let of_anchor = naive_v2::component(&exists, case.anchor);
        let mut noted = Noted::default();
        let mut store = store(&case.graph, seed);
        let slice_policy = policy.policy();
        Slicer::new(&mut store, &slice_policy, Limits { wide: usize::MAX, ..Limits::default() })
            .slice_observed(case.anchor, &mut noted)
            .unwrap();
        for turn in selected.iter().filter(|turn| !of_anchor.contains(turn)) {
            let group = naive_v2::group_of(&exists, *turn);
            let is_whole = group.iter().all(|id| selected.contains(id) || noted.cut.contains(id));
            prop_assert!(is_whole, "{turn} of {group:?}");
        }
        let of_line = slice.turns.iter().filter(|turn| turn.part == Part::Line);
        for result in of_line.filter(|turn| turn.turn.role == Role::Tool) {
            let mut edges = exists.edges.iter().filter(|edge| edge.child == result.turn.id);
            prop_assert!(edges.any(|e| e.parent != e.child && selected.contains(&e.parent)));
        }
    }

    /// 6: each pin whose group fits is in. 9: with a radius of 0 nothing is of the line.
    #[test]
    fn pins_are_in_and_no_line_without_a_radius(case in graphs(), policy in policies_v2(), seed: u64) {
        let mut policy = policy;
        policy.common.max_radius = 0;
        let slice = take(&case.graph, &policy.policy(), case.anchor, Limits::default(), seed)?;
        let Some(slice) = slice else { return Ok(()) };
        prop_assert!(slice.turns.iter().all(|turn| turn.part != Part::Line));
        let selected: HashSet<TurnId> = slice.turns.iter().map(|turn| turn.turn.id).collect();
        let anchor = case.graph.turns.iter().find(|turn| turn.id == case.anchor).unwrap();
        let exists = naive_v2::admitted(&case.graph, &policy, anchor);
        let existing = policy.pins.iter().filter(|pin| exists.turns.iter().any(|t| t.id == **pin));
        for pin in existing {
            prop_assert!(selected.contains(pin) || slice.pins_left_out.contains(pin));
        }
    }

    /// 7: at most the share of the line is cut, but for results without a parent; nothing else is where the slice is
    /// not limited.
    #[test]
    fn no_more_than_the_share_is_cut(case in graphs(), policy in policies_v2(), seed: u64) {
        let counts = tokens(&case.graph, seed);
        let Some(slice) = naive_v2::slice(&case.graph, &counts, &policy, case.anchor) else {
            return Ok(());
        };
        let sum = |ids: &[TurnId]| ids.iter().map(|id| u64::from(counts[id])).sum::<u64>();
        let is_result = |id: &TurnId| {
            case.graph.turns.iter().any(|turn| turn.id == *id && turn.role == Role::Tool)
        };
        let (_, noted) = observed(&case, &policy, seed);
        let others: Vec<TurnId> = noted.cut.iter().copied().filter(|id| !is_result(id)).collect();
        prop_assert!(sum(&others) as f64 <= policy.cut_share * sum(&slice.line) as f64 + 1e-3);
        prop_assert!(noted.limited && policy.cut_share > 0.0 || others.is_empty());
    }

    /// 8: a seed that is recalled is recalled with more strength too; seeds change neither the line nor the cut.
    #[test]
    fn more_strength_never_loses(case in graphs(), policy in policies_v2(), place: Index, seed: u64) {
        let mut policy = policy;
        policy.common.phase_weights = policy.common.phase_weights.map(f64::abs);
        let (before, noted) = observed(&case, &policy, seed);
        let without = PolicyV2 { seeds: Vec::new(), ..policy.clone() };
        let (none, noted_without) = observed(&case, &without, seed);
        let line = |slice: &Option<Slice>| {
            let turns = slice.iter().flat_map(|slice| &slice.turns);
            turns.filter(|turn| turn.part == Part::Line).map(|turn| turn.turn.id).collect::<Vec<_>>()
        };
        prop_assert_eq!(line(&before), line(&none));
        prop_assert_eq!(noted.cut, noted_without.cut);
        let (Some(before), false) = (before, policy.seeds.is_empty()) else { return Ok(()) };
        let place = place.index(policy.seeds.len());
        let raised = policy.seeds[place].0;
        let was_in = before.turns.iter().any(|t| t.turn.id == raised && t.part == Part::Recalled);
        policy.seeds[place].1 = 1.0;
        let (after, _) = observed(&case, &policy, seed);
        let is_in = after.iter().flat_map(|s| &s.turns).any(|turn| turn.turn.id == raised);
        prop_assert!(is_in || !was_in, "{raised}");
    }

    /// 4: as_of is what would be without the later turns.
    #[test]
    fn as_of_leaves_out_later_turns(
        case in graphs(),
        policy in policies_v2(),
        last in FIRST - 1..=FIRST + 60,
        seed: u64,
    ) {
        let policy = PolicyV2 { as_of: Some(last), ..policy };
        let without = PolicyV2 { as_of: None, ..policy.clone() };
        let earlier = only(&case.graph, |turn| turn.created_at <= last);
        check_same(&case, &policy, &without, &earlier, seed)?;
    }

    /// 4: the same for sessions and windows.
    #[test]
    fn sessions_and_windows_leave_out_other_turns(
        case in graphs(), policy in policies_v2(), before in 0..=50i64, after in 0..=50i64, seed: u64,
    ) {
        let anchor = case.graph.turns.iter().find(|turn| turn.id == case.anchor).unwrap().clone();
        let policy = PolicyV2 {
            same_session: true, max_seconds_before: Some(before), max_seconds_after: Some(after), ..policy
        };
        let without = PolicyV2 {
            same_session: false, max_seconds_before: None, max_seconds_after: None, ..policy.clone()
        };
        let window = anchor.created_at - before..=anchor.created_at + after;
        let inside = only(&case.graph, |turn| {
            turn.session_id == anchor.session_id && window.contains(&turn.created_at)
        });
        check_same(&case, &policy, &without, &inside, seed)?;
    }

    /// 4: the same for a weight of 0 and the edges of that type.
    #[test]
    fn a_weight_of_zero_leaves_out_edges(case in graphs(), policy in policies_v2(), place in 0..4usize, seed: u64) {
        let (mut none, mut any) = (policy.clone(), policy);
        none.edge_weights[place] = 0.0;
        any.edge_weights[place] = 1.0;
        let mut graph = case.graph.clone();
        graph.edges.retain(|edge| edge.edge_type != EdgeType::ALL[place]);
        check_same(&case, &none, &any, &graph, seed)?;
    }

    /// Every turn that was found is explained as by the loop of the specification.
    #[test]
    fn every_outcome_is_explained(
        case in graphs(), policy in policies_v2(), limits in limits(), seed: u64,
    ) {
        let Some(expected) =
            naive_v2::slice(&case.graph, &tokens(&case.graph, seed), &policy, case.anchor)
        else {
            return Ok(());
        };
        let mut store = store(&case.graph, seed);
        let explanation =
            explain(&mut store, &policy.policy(), case.anchor, limits, &|| {}).unwrap();
        let with = |outcome| {
            let turns = explanation.turns.iter().filter(move |turn| turn.outcome == outcome);
            turns.map(|turn| turn.rank.id)
        };
        let selected = expected.selected.iter().map(|turn| turn.id);
        prop_assert!(with(TurnOutcome::Selected).eq(selected));
        prop_assert_eq!(with(TurnOutcome::Frontier).collect::<BTreeSet<TurnId>>(), expected.left);
        let parts: Vec<Part> = explanation.turns.iter().filter_map(|turn| turn.part).collect();
        prop_assert_eq!(parts, expected.parts);
        let is_in = |id: &TurnId| expected.selected.iter().any(|turn| turn.id == *id);
        let cut: BTreeSet<TurnId> = expected.cut.into_iter().filter(|id| !is_in(id)).collect();
        prop_assert_eq!(&with(TurnOutcome::Cut).collect::<BTreeSet<TurnId>>(), &cut);
        let over_budget: BTreeSet<TurnId> = with(TurnOutcome::OverBudget).collect();
        prop_assert_eq!(&over_budget, &expected.over_budget);
        for (place, turn) in explanation.turns.iter().enumerate() {
            if let Some((via, from)) = expected.found.get(&turn.rank.id) {
                prop_assert_eq!(turn.via, *via);
                let reason = explanation.reason(place);
                let has_from = !matches!(via, Via::Anchor | Via::Pin | Via::Seed);
                let from = has_from.then_some(*from);
                prop_assert_eq!(explanation.discovered_from(turn), from);
                if *via == Via::Recalled {
                    let of_seed = policy.seeds.iter().any(|(seed, _)| reason.contains(&format!("seed {seed}")));
                    prop_assert!(of_seed, "{reason}");
                    continue;
                }
                let step = expected.selected.iter().position(|t| Some(t.id) == from);
                let named = reason.contains(&format!("of step {}", step.unwrap_or(0)));
                prop_assert!(named || step.is_none(), "{reason}");
            }
        }
        let stats = stats(&mut store, &policy.policy(), case.anchor, limits).unwrap();
        let left = with(TurnOutcome::Frontier).count() + over_budget.len() + cut.len();
        prop_assert_eq!(stats.frontier_left, left);
    }
}

proptest! {
    // Each tries many policies.
    #![proptest_config(cases(100))]

    /// With the change that `why` names, the turn is in.
    #[test]
    fn why_names_a_change_that_adds_the_turn(
        case in graphs(), policy in policies_v2(), turn: Index, limits in limits(), seed: u64,
    ) {
        let turn = case.graph.turns[turn.index(case.graph.turns.len())].id;
        let all = tokens(&case.graph, seed);
        let includes = |policy: &PolicyV2| {
            naive_v2::slice(&case.graph, &all, policy, case.anchor)
                .is_some_and(|slice| slice.selected.iter().any(|found| found.id == turn))
        };
        let mut store = store(&case.graph, seed);
        let Ok(why) = why(&mut store, &policy.policy(), case.anchor, turn, 200, limits) else {
            return Ok(());
        };
        prop_assert_eq!(why.included(), includes(&policy));
        let mut changed = policy.clone();
        match why.because {
            Because::Budget { needed, .. } => changed.common.max_nodes = needed as u32,
            Because::Radius { needed, .. } => changed.common.max_radius = needed,
            Because::Tokens { needed, .. } => changed.max_tokens = Some(needed),
            Because::Pin => changed.pins.push(turn),
            Because::Key { change: "cut_share 0" } => changed.cut_share = 0.0,
            Because::Anchor | Because::Selected(_) => {}
            // No budget is too small alone.
            _ => changed.common.max_nodes = 200,
        }
        let is_named = changed.cut_share < policy.cut_share || !matches!(
            why.because,
            Because::Siblings { .. } | Because::Key { .. } | Because::NoOneChange { .. }
                | Because::NotConnected | Because::NotFound { .. } | Because::NoSuchTurn
        );
        prop_assert_eq!(includes(&changed), is_named, "{:?}", why.because);
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// What earlier slices fetched, at other anchors and by other policies, changes no slice.
    #[test]
    fn what_was_fetched_before_changes_nothing(
        case in graphs(), tried in prop::collection::vec(policies_v2(), 1..=4), limits in limits(), seed: u64,
    ) {
        let mut shared = store(&case.graph, seed);
        let mut fetched = FetchedGraph::default();
        for policy in &tried {
            let policy = policy.policy();
            for anchor in case.graph.turns.iter().map(|turn| turn.id).take(6) {
                let mut slicer = Slicer::reusing(fetched, &mut shared, &policy, limits);
                let together = slicer.slice(anchor).ok();
                fetched = slicer.into_fetched();
                let alone = take(&case.graph, &policy, anchor, limits, seed)?;
                prop_assert_eq!(together, alone);
            }
        }
    }

    /// Very many children, of which a budget of tokens reaches few, some of them far down.
    #[test]
    fn hubs_are_sliced_as_the_text_says(
        case in hubs(60..=300, 600), policy in policies_v2(), limits in limits(), seed: u64,
    ) {
        check(&case, &policy, limits, seed)?;
    }
}

/// Many better children that take more tokens than are left do not keep out those that fit.
#[test]
fn turns_that_fit_are_not_dropped_for_better_ones_that_do_not() {
    let anchor = crate::generate::turn(0, 0);
    let child = |number: usize| {
        let salience = if number <= 300 { 1.0 } else { 0.25 };
        Turn { salience, phase: anchor.phase, ..crate::generate::turn(number, 0) }
    };
    let turns: Vec<Turn> = std::iter::once(anchor.clone()).chain((1..=400).map(child)).collect();
    let edge = |child: &Turn| kernel::graph::edge::Edge {
        parent: anchor.id,
        child: child.id,
        edge_type: EdgeType::Reply,
    };
    let graph = Graph { edges: turns[1..].iter().map(edge).collect(), turns };
    let tokens = |(number, turn): (usize, &Turn)| {
        (turn.id, if (1..=300).contains(&number) { 600 } else { 1 })
    };
    let tokens: HashMap<TurnId, u32> = graph.turns.iter().enumerate().map(tokens).collect();
    let policy: SlicePolicy = r#"{"version":"slice_policy_v2","max_tokens":1000}"#.parse().unwrap();
    for wide in [usize::MAX, 1024, 128, 2] {
        let limits = Limits { wide, crowded: wide, ..Limits::default() };
        let mut store = MemoryStore::new(graph.clone()).with_tokens(tokens.clone()).shuffled(7);
        let slice = Slicer::new(&mut store, &policy, limits).slice(anchor.id).unwrap();
        assert_eq!(slice.turns.len(), 102, "wide {wide}");
    }
}

/// Two turns, one a minute before the other, in sessions of their own, with this many tokens each.
fn pair(tokens: u32) -> (MemoryStore, [TurnId; 2]) {
    let mut graph = chain(2);
    for (turn, session) in graph.turns.iter_mut().zip(["a", "b"]) {
        turn.session_id = session.to_owned();
    }
    graph.turns[0].created_at = FIRST;
    graph.turns[1].created_at = FIRST + 60;
    let ids = [graph.turns[0].id, graph.turns[1].id];
    (MemoryStore::new(graph).with_tokens(ids.map(|id| (id, tokens)).into()), ids)
}

#[test]
fn why_names_the_key_that_leaves_a_turn_out() {
    let (mut store, [parent, child]) = pair(1);
    for (key, change, [anchor, turn]) in [
        (r#""same_session":true"#, "same_session false", [parent, child]),
        (r#""include_parents":false"#, "include_parents true", [child, parent]),
        (r#""include_children":false"#, "include_children true", [parent, child]),
        (r#""edge_weights":{"reply":0}"#, "edge_weights of 1", [parent, child]),
        (r#""as_of":1700000010"#, "as_of null", [parent, child]),
        (r#""max_seconds_before":30"#, "max_seconds_before null", [child, parent]),
        (r#""max_seconds_after":30"#, "max_seconds_after null", [parent, child]),
    ] {
        let policy = format!(r#"{{"version":"slice_policy_v2",{key}}}"#).parse().unwrap();
        let found = why(&mut store, &policy, anchor, turn, 200, Limits::default()).unwrap();
        assert_eq!(found.because, Because::Key { change });
    }
}

#[test]
fn no_bound_of_tokens_reaches_beyond_the_largest() {
    let (mut store, [parent, child]) = pair(i32::MAX as u32);
    let policy = r#"{"version":"slice_policy_v2","max_tokens":100}"#.parse().unwrap();
    let found = why(&mut store, &policy, parent, child, 200, Limits::default()).unwrap();
    assert!(!found.included() && !matches!(found.because, Because::Tokens { .. }), "{found:?}");
}

/// What is read of each turn costs time.
#[test]
fn at_its_defaults_v2_reads_no_more_of_a_turn_than_v1() {
    let v2: SlicePolicy = r#"{"version":"slice_policy_v2"}"#.parse().unwrap();
    assert!(v2.needs() == SlicePolicy::default().needs());
}
