//! The expansion of SlicePolicy v1 §5.2, line by line over lists: slow, obvious, and written
//! without anything of the kernel's slicer, scoring or quantising.

use graph_kernel_tests::data::Graph;
use kernel::edge::{Edge, EdgeType};
use kernel::turn::{Phase, Turn, TurnId};

use crate::generate::PolicyParams;

/// A selected turn.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub id: TurnId,
    pub distance: u32,
    pub priority: f32,
}

/// A slice: turns in selection order, edges in the order of exports. What was touched beside them:
/// found turns the budget did not reach, siblings beyond the limit, missing turns.
#[derive(Debug)]
pub struct NaiveSlice {
    pub selected: Vec<Candidate>,
    pub edges: Vec<Edge>,
    pub frontier: Vec<Candidate>,
    pub cut_siblings: Vec<TurnId>,
    pub missing: Vec<TurnId>,
}

/// The slice of an existing anchor in a graph without duplicate turns.
pub fn slice(graph: &Graph, policy: &PolicyParams, anchor: TurnId) -> NaiveSlice {
    let mut selected: Vec<Candidate> = Vec::new();
    let mut visited = vec![anchor];
    let anchor = turn(graph, anchor).expect("the anchor exists");
    let mut frontier = vec![candidate(policy, anchor, 0)];
    let mut cut_siblings: Vec<TurnId> = Vec::new();
    let mut missing: Vec<TurnId> = Vec::new();

    while !frontier.is_empty() && selected.len() < policy.max_nodes as usize {
        let current = frontier.remove(best(&frontier));
        if current.distance > policy.max_radius {
            continue;
        }
        selected.push(current);
        if current.distance + 1 > policy.max_radius {
            continue;
        }
        let mut visit = |ids: Vec<TurnId>, distance: u32| {
            for id in ids {
                if !visited.contains(&id) {
                    visited.push(id);
                    if let Some(turn) = turn(graph, id) {
                        frontier.push(candidate(policy, turn, distance));
                    }
                }
            }
        };
        visit(parents(graph, current.id), current.distance + 1);
        visit(children(graph, current.id), current.distance + 1);
        if policy.include_siblings {
            let mut siblings = siblings(graph, current.id);
            let limit = siblings.len().min(policy.max_siblings_per_node as usize);
            let cut = siblings.split_off(limit);
            visit(siblings, current.distance);
            cut_siblings.extend(cut);
        }
        let neighbours = [parents(graph, current.id), children(graph, current.id)].concat();
        missing.extend(neighbours.into_iter().filter(|id| turn(graph, *id).is_none()));
    }
    cut_siblings.retain(|id| !visited.contains(id));
    let edges = edges_between(graph, &selected);
    NaiveSlice { selected, edges, frontier, cut_siblings, missing }
}

fn turn(graph: &Graph, id: TurnId) -> Option<&Turn> {
    graph.turns.iter().find(|turn| turn.id == id)
}

fn parents(graph: &Graph, id: TurnId) -> Vec<TurnId> {
    let edges = graph.edges.iter().filter(|edge| edge.child == id);
    edges.map(|edge| edge.parent).collect()
}

fn children(graph: &Graph, id: TurnId) -> Vec<TurnId> {
    let edges = graph.edges.iter().filter(|edge| edge.parent == id);
    edges.map(|edge| edge.child).collect()
}

/// Existing turns that share a parent with this one, by salience, then id; visited ones count.
fn siblings(graph: &Graph, id: TurnId) -> Vec<TurnId> {
    let mut siblings: Vec<&Turn> = Vec::new();
    for parent in parents(graph, id) {
        for child in children(graph, parent) {
            let known = siblings.iter().any(|turn| turn.id == child);
            if let Some(turn) = turn(graph, child)
                && child != id
                && !known
            {
                siblings.push(turn);
            }
        }
    }
    siblings.sort_by(|a, b| {
        let by_salience = b.salience.partial_cmp(&a.salience).expect("no NaN");
        by_salience.then(a.id.cmp(&b.id))
    });
    siblings.iter().map(|turn| turn.id).collect()
}

/// Where the best candidate stands: priority, then distance, then id.
fn best(frontier: &[Candidate]) -> usize {
    let mut best = 0;
    for (index, other) in frontier.iter().enumerate() {
        if is_better(other, &frontier[best]) {
            best = index;
        }
    }
    best
}

fn is_better(a: &Candidate, b: &Candidate) -> bool {
    if a.priority != b.priority {
        return a.priority > b.priority;
    }
    if a.distance != b.distance {
        return a.distance < b.distance;
    }
    a.id.as_bytes() < b.id.as_bytes()
}

fn candidate(policy: &PolicyParams, turn: &Turn, distance: u32) -> Candidate {
    let phase = Phase::ALL.iter().position(|phase| *phase == turn.phase);
    let weight = quantised(policy.phase_weights[phase.expect("every phase is listed")]);
    let scored = turn.salience * quantised(policy.salience_weight);
    let sum = weight + scored;
    Candidate {
        id: turn.id,
        distance,
        priority: sum * power(quantised(policy.distance_decay), distance),
    }
}

/// A parameter as it is hashed: in millionths of its binary32 value, halves away from zero.
fn quantised(parameter: f64) -> f32 {
    let scaled = f64::from(parameter as f32) * 1_000_000.0;
    let (magnitude, sign) = (scaled.abs(), scaled.signum());
    let whole = magnitude.floor();
    let rounded = if magnitude - whole >= 0.5 { whole + 1.0 } else { whole };
    (sign * rounded / 1_000_000.0) as f32
}

/// Square and multiply, lowest bit of the exponent first.
fn power(base: f32, exponent: u32) -> f32 {
    let squares = std::iter::successors(Some(base), |square| Some(square * square));
    let mut product = 1.0;
    for (bit, square) in squares.take(32).enumerate() {
        if exponent >> bit & 1 == 1 {
            product *= square;
        }
    }
    product
}

/// Every edge with both ends selected, once, by (parent, child, type).
pub fn edges_between(graph: &Graph, selected: &[Candidate]) -> Vec<Edge> {
    let is_selected = |id: TurnId| selected.iter().any(|turn| turn.id == id);
    let mut edges: Vec<Edge> = Vec::new();
    for edge in &graph.edges {
        if is_selected(edge.parent) && is_selected(edge.child) && !edges.contains(edge) {
            edges.push(*edge);
        }
    }
    edges.sort_by_key(|edge| (*edge.parent.as_bytes(), *edge.child.as_bytes(), place(edge)));
    edges
}

fn place(edge: &Edge) -> u8 {
    match edge.edge_type {
        EdgeType::Reply => 0,
        EdgeType::Branch => 1,
        EdgeType::Reference => 2,
        EdgeType::Default => 3,
    }
}
