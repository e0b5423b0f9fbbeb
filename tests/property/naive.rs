//! The expansion of SlicePolicy v1 §5.2, line by line over lists: slow and simple, and independent of the slicer,
//! scoring and quantising of the kernel.

use graph_kernel_tests::data::Graph;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Turn, TurnId};

use crate::generate::PolicyParams;

/// A selected turn.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub id: TurnId,
    pub distance: u32,
    pub priority: f32,
}

/// A slice: turns in selection order, edges in the order of exports. Also what was not selected: turns that the budget
/// did not reach, siblings beyond the limit, missing turns.
#[derive(Debug)]
pub struct NaiveSlice {
    pub selected: Vec<Candidate>,
    /// The first selected turn that is stored more than once, for which there is no slice.
    pub duplicate: Option<TurnId>,
    pub edges: Vec<Edge>,
    pub frontier: Vec<Candidate>,
    pub cut_siblings: Vec<TurnId>,
    pub missing: Vec<TurnId>,
}

/// The slice of an existing anchor. A turn that is stored more than once is a candidate with each of
/// its rows.
pub fn slice(graph: &Graph, policy: &PolicyParams, anchor: TurnId) -> NaiveSlice {
    let mut selected: Vec<Candidate> = Vec::new();
    let mut visited = vec![anchor];
    let mut frontier = vec![best_row(policy, &rows(graph, anchor), 0).expect("the anchor exists")];
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
        let mut visit = |ids: Vec<TurnId>, distance: u32, is_sibling: bool| {
            for id in ids {
                if !visited.contains(&id) {
                    visited.push(id);
                    let mut rows = rows(graph, id);
                    if is_sibling {
                        rows = vec![as_sibling(&rows)];
                    }
                    frontier.extend(best_row(policy, &rows, distance));
                }
            }
        };
        visit(parents(graph, current.id), current.distance + 1, false);
        visit(children(graph, current.id), current.distance + 1, false);
        if policy.include_siblings {
            let mut siblings = siblings(graph, current.id);
            let limit = siblings.len().min(policy.max_siblings_per_node as usize);
            let cut = siblings.split_off(limit);
            visit(siblings, current.distance, true);
            cut_siblings.extend(cut);
        }
        let neighbours = [parents(graph, current.id), children(graph, current.id)].concat();
        missing.extend(neighbours.into_iter().filter(|id| rows(graph, *id).is_empty()));
    }
    cut_siblings.retain(|id| !visited.contains(id));
    let mut ids = selected.iter().map(|turn| turn.id);
    let duplicate = ids.find(|id| rows(graph, *id).len() > 1);
    let edges = edges_between(graph, &selected);
    NaiveSlice { selected, duplicate, edges, frontier, cut_siblings, missing }
}

fn rows(graph: &Graph, id: TurnId) -> Vec<&Turn> {
    graph.turns.iter().filter(|turn| turn.id == id).collect()
}

/// The row of a turn that counts among siblings: the highest salience, and among these the first phase.
fn as_sibling<'a>(rows: &[&'a Turn]) -> &'a Turn {
    let mut best = rows[0];
    for row in rows {
        if row.salience > best.salience || row.salience == best.salience && row.phase < best.phase {
            best = row;
        }
    }
    best
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
            let rows = rows(graph, child);
            if !rows.is_empty() && child != id && !known {
                siblings.push(as_sibling(&rows));
            }
        }
    }
    siblings.sort_by(|a, b| {
        let by_salience = b.salience.partial_cmp(&a.salience).expect("no NaN");
        by_salience.then(a.id.cmp(&b.id))
    });
    siblings.iter().map(|turn| turn.id).collect()
}

/// The place of the best candidate: by priority, then distance, then id.
fn best(frontier: &[Candidate]) -> usize {
    let mut best = 0;
    for (index, other) in frontier.iter().enumerate() {
        if is_better(other, &frontier[best]) {
            best = index;
        }
    }
    best
}

pub fn is_better(a: &Candidate, b: &Candidate) -> bool {
    if a.priority != b.priority {
        return a.priority > b.priority;
    }
    if a.distance != b.distance {
        return a.distance < b.distance;
    }
    a.id.as_bytes() < b.id.as_bytes()
}

/// The best candidate among the rows of a turn.
fn best_row(policy: &PolicyParams, rows: &[&Turn], distance: u32) -> Option<Candidate> {
    let candidates: Vec<Candidate> =
        rows.iter().map(|row| candidate(policy, row, distance)).collect();
    (!candidates.is_empty()).then(|| candidates[best(&candidates)])
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
pub fn quantised(parameter: f64) -> f32 {
    let scaled = f64::from(parameter as f32) * 1_000_000.0;
    let (magnitude, sign) = (scaled.abs(), scaled.signum());
    let whole = magnitude.floor();
    let rounded = if magnitude - whole >= 0.5 { whole + 1.0 } else { whole };
    (sign * rounded / 1_000_000.0) as f32
}

/// Square and multiply, lowest bit of the exponent first.
pub fn power(base: f32, exponent: u32) -> f32 {
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
