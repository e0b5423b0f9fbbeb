//! Random graphs and policies, with few different values, so that ties and collisions are frequent.

use std::ops::RangeInclusive;

use graph_kernel_tests::data::Graph;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, StoredTurn, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::Limits;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Edges may end at ids beyond the turns of the graph; there are at most this many such ids.
const MISSING_TURNS: usize = 3;

/// A graph and one of its turns.
#[derive(Clone, Debug)]
pub struct Case {
    pub graph: Graph,
    pub anchor: TurnId,
}

/// A policy as it was written, before it is quantised.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyParams {
    pub max_nodes: u32,
    pub max_radius: u32,
    /// In the order of [`Phase::ALL`].
    pub phase_weights: [f64; 5],
    pub salience_weight: f64,
    pub distance_decay: f64,
    pub include_siblings: bool,
    pub max_siblings_per_node: u32,
}

impl PolicyParams {
    pub fn to_json(&self) -> String {
        let weights: Vec<String> = Phase::ALL
            .iter()
            .zip(self.phase_weights)
            .map(|(phase, weight)| format!("{:?}:{weight:?}", phase.name()))
            .collect();
        format!(
            r#"{{"max_nodes":{},"max_radius":{},"phase_weights":{{{}}},"salience_weight":{:?},"distance_decay":{:?},"include_siblings":{},"max_siblings_per_node":{}}}"#,
            self.max_nodes,
            self.max_radius,
            weights.join(","),
            self.salience_weight,
            self.distance_decay,
            self.include_siblings,
            self.max_siblings_per_node,
        )
    }

    pub fn policy(&self) -> SlicePolicy {
        self.to_json().parse().expect("generated policies are valid")
    }
}

/// The id of the turn with this number; ids have another order than numbers.
pub fn id(number: usize) -> TurnId {
    // An odd multiplier permutes the 16-bit numbers. Both ends of the id vary.
    let scrambled = (number as u16).wrapping_mul(0x9e37);
    TurnId::from_u128((u128::from(scrambled >> 12) << 124) | u128::from(scrambled & 0xfff))
}

/// The phases of the lowest three bits of a score; the rest selects the salience.
const PHASES: [&str; 8] = [
    "exploration",
    "planning",
    "planning",
    "planning",
    "synthesis",
    "synthesis",
    "debugging",
    "consolidation",
];
const SALIENCES: [f64; 6] = [0.5, 0.5, 0.0, 0.25, 0.3333333, 1.0];
const SYNTHESIS: u8 = 4;
const EXPLORATION_OF_FULL_SALIENCE: u8 = 5 << 3;

/// A turn of one of few possible scores; the other columns follow from its number.
pub fn turn(number: usize, score: u8) -> Turn {
    StoredTurn {
        id: id(number),
        session_id: Some(["", "s|2", "q\"uote"][number % 3]),
        role: Some(["user", "assistant", "tool"][number % 3]),
        phase: Some(PHASES[usize::from(score) % PHASES.len()]),
        salience: Some(SALIENCES[usize::from(score >> 3) % SALIENCES.len()]),
        trajectory_depth: Some(number as i64),
        trajectory_homogeneity: Some(0.1),
        trajectory_complexity: Some(2.5),
        created_at: Some(1_700_000_000 + number as i64),
        ..StoredTurn::default()
    }
    .into()
}

/// A random edge, in one number: drawing several would cost more than the slice that is tested.
#[derive(Clone, Copy, Debug)]
struct DrawnEdge(u32);

impl DrawnEdge {
    fn parent(self, of: usize) -> usize {
        (self.0 & 0x3fff) as usize % of
    }

    fn child(self, of: usize) -> usize {
        (self.0 >> 14 & 0x3fff) as usize % of
    }

    fn edge_type(self) -> EdgeType {
        EdgeType::ALL[(self.0 >> 28) as usize % EdgeType::ALL.len()]
    }

    fn between(self, parent: usize, child: usize) -> Edge {
        Edge { parent: id(parent), child: id(child), edge_type: self.edge_type() }
    }
}

fn drawn_edges(most: usize) -> impl Strategy<Value = Vec<DrawnEdge>> {
    prop::collection::vec(any::<u32>().prop_map(DrawnEdge), 0..=most)
}

fn case(scores: &[u8], edges: Vec<Edge>, anchor: usize) -> Case {
    let scores = scores.iter().enumerate();
    let turns: Vec<Turn> = scores.map(|(number, score)| turn(number, *score)).collect();
    let anchor = turns[anchor].id;
    Case { graph: Graph { turns, edges }, anchor }
}

/// Edges between any turns: cycles, self-loops, several types between a pair, repeated and
/// dangling edges.
fn tangles() -> impl Strategy<Value = Case> {
    let scores = prop::collection::vec(any::<u8>(), 1..=60);
    (scores, drawn_edges(120), any::<Index>()).prop_map(|(scores, drawn, anchor)| {
        let ends = scores.len() + MISSING_TURNS;
        let edge = |edge: DrawnEdge| edge.between(edge.parent(ends), edge.child(ends));
        let edges = drawn.into_iter().map(edge).collect();
        case(&scores, edges, anchor.index(scores.len()))
    })
}

/// Graphs where a few turns are parents of most others, share many of their children and have edges between them; one
/// of them may be missing.
pub fn hubs(turns: RangeInclusive<usize>, most_edges: usize) -> impl Strategy<Value = Case> {
    let scores = prop::collection::vec(any::<u8>(), turns);
    let hubs = (1..=5usize, any::<bool>());
    let drawn = (drawn_edges(most_edges), drawn_edges(12));
    (scores, hubs, drawn, any::<Index>()).prop_map(
        |(scores, (hubs, one_is_missing), (drawn, drawn_beside), anchor)| {
            let turns = scores.len();
            // The turn after the last one does not exist.
            let mut parents: Vec<usize> = (0..hubs.min(turns)).collect();
            parents.extend(one_is_missing.then_some(turns));
            let ends = turns + MISSING_TURNS;
            let from_hub = drawn
                .iter()
                .map(|edge| edge.between(parents[edge.parent(parents.len())], edge.child(turns)));
            let beside =
                drawn_beside.iter().map(|edge| edge.between(edge.parent(ends), edge.child(ends)));
            let edges = from_hub.chain(beside).collect();
            case(&scores, edges, anchor.index(turns))
        },
    )
}

/// Two turns share most of their children, few of which the budget allows. The one that is
/// expanded first, for its phase, is farther from the anchor: it is the parent of the anchor and
/// of the other one.
pub fn rivals(
    turns: RangeInclusive<usize>,
    most_edges: usize,
) -> impl Strategy<Value = (Case, PolicyParams)> {
    const ANCHOR: usize = 0;
    const FAR: usize = 1;
    const NEAR: usize = 2;
    let scores = prop::collection::vec(any::<u8>(), turns);
    let drawn = drawn_edges(most_edges);
    (scores, drawn, policies(4..=8)).prop_map(|(mut scores, drawn, mut params)| {
        let turns = scores.len();
        scores[FAR] = SYNTHESIS;
        scores[NEAR] = EXPLORATION_OF_FULL_SALIENCE;
        let known = [ANCHOR, NEAR].map(|child| DrawnEdge(0).between(FAR, child));
        let drawn =
            drawn.iter().map(|edge| edge.between([FAR, NEAR][edge.parent(2)], edge.child(turns)));
        let edges = known.into_iter().chain(drawn).collect();
        params.phase_weights[Phase::Synthesis as usize] = 1.0;
        params.phase_weights[Phase::Exploration as usize] = 0.0;
        params.distance_decay = params.distance_decay.clamp(0.3, 0.9);
        params.max_radius = params.max_radius.max(2);
        params.include_siblings = true;
        params.max_siblings_per_node = params.max_siblings_per_node.max(1);
        (case(&scores, edges, ANCHOR), params)
    })
}

/// A random row to add, in one number.
#[derive(Clone, Copy, Debug)]
struct DrawnRow(u32);

impl DrawnRow {
    /// A further row of one of these turns, which come first in the graph, with the score of its own row or any other.
    fn of(self, turns: &[Turn]) -> Turn {
        let place = self.0 as usize >> 16;
        // The first turns have the most edges.
        let number = if self.0 & 3 == 0 { place % turns.len().min(5) } else { place % turns.len() };
        if self.0 & 4 == 0 {
            Turn { trajectory_depth: 7, ..turns[number].clone() }
        } else {
            turn(number, (self.0 >> 8) as u8)
        }
    }
}

/// These graphs, with some turns stored more than once, or one turn stored many times.
pub fn with_duplicates(cases: impl Strategy<Value = Case>) -> impl Strategy<Value = Case> {
    let drawn = prop::collection::vec(any::<u32>().prop_map(DrawnRow), 1..=4);
    (cases, drawn, any::<bool>()).prop_map(|(Case { mut graph, anchor }, mut drawn, of_one)| {
        if of_one {
            let first = drawn[0].0;
            drawn.iter_mut().for_each(|row| row.0 = first & !0xff00 | row.0 & 0xff00 | 4);
        }
        let rows: Vec<Turn> = drawn.iter().map(|row| row.of(&graph.turns)).collect();
        graph.turns.extend(rows);
        Case { graph, anchor }
    })
}

/// Any graph.
pub fn graphs() -> impl Strategy<Value = Case> {
    prop_oneof![2 => tangles(), 1 => hubs(2..=60, 120)]
}

fn weights() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => select(vec![0.0, 0.3, 0.5, 0.9, 1.0, -0.25, -1.0]),
        1 => -2.0..2.0f64,
        1 => select(vec![0.9000001, 0.8999999, 1e-7, -1e-7, 1e6, -1e6]),
    ]
}

fn fractions() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => select(vec![0.0, 0.3, 0.5, 0.9, 1.0, 1.0]),
        1 => 0.0..=1.0f64,
    ]
}

/// Policies with a budget in this range.
pub fn policies(max_nodes: RangeInclusive<u32>) -> impl Strategy<Value = PolicyParams> {
    (
        max_nodes,
        0..=5u32,
        prop::array::uniform5(weights()),
        fractions(),
        fractions(),
        prop::bool::weighted(0.75),
        0..=4u32,
    )
        .prop_map(
            |(
                max_nodes,
                max_radius,
                phase_weights,
                salience_weight,
                distance_decay,
                include_siblings,
                max_siblings_per_node,
            )| PolicyParams {
                max_nodes,
                max_radius,
                phase_weights,
                salience_weight,
                distance_decay,
                include_siblings,
                max_siblings_per_node,
            },
        )
}

/// Limits, which decide how the same graph is read.
pub fn limits() -> impl Strategy<Value = Limits> {
    let rows = prop_oneof![2 => Just(40_000), 1 => 0..=20usize];
    (1..=8usize, 1..=9usize, 0..=9usize, 1..=9usize, 1..=6usize, rows).prop_map(
        |(batch, anchors, nearby, crowded, wide, rows)| Limits {
            batch,
            anchors,
            nearby,
            crowded,
            wide,
            rows,
            ..Limits::default()
        },
    )
}
