//! SlicePolicy v2, line by line from its text over lists: slow and simple, and independent of the kernel.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use graph_kernel_tests::data::Graph;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::observer::Via;

use crate::generate::PolicyParams;
use crate::naive::{Candidate, edges_between, is_better, power, quantised};

/// A policy as it was written, before it is quantised.
#[derive(Clone, Debug)]
pub struct PolicyV2 {
    pub common: PolicyParams,
    pub max_tokens: Option<u32>,
    /// In the order of [`EdgeType::ALL`].
    pub edge_weights: [f64; 4],
    pub halving_seconds: Option<u32>,
    pub include_parents: bool,
    pub include_children: bool,
    pub same_session: bool,
    pub max_seconds_before: Option<i64>,
    pub max_seconds_after: Option<i64>,
    pub as_of: Option<i64>,
    pub keep_tool_results: bool,
}

impl PolicyV2 {
    /// With every key that v1 does not have at its default.
    pub fn of(common: PolicyParams) -> Self {
        PolicyV2 {
            common,
            max_tokens: None,
            edge_weights: [1.0; 4],
            halving_seconds: None,
            include_parents: true,
            include_children: true,
            same_session: false,
            max_seconds_before: None,
            max_seconds_after: None,
            as_of: None,
            keep_tool_results: false,
        }
    }

    pub fn policy(&self) -> SlicePolicy {
        fn text<T: ToString>(value: Option<T>) -> String {
            value.map_or("null".to_owned(), |value| value.to_string())
        }
        let common = self.common.to_json();
        let [reply, branch, reference, default] = self.edge_weights;
        let json = format!(
            r#"{{"version":"slice_policy_v2",{},"max_tokens":{},"edge_weights":{{"reply":{reply:?},"branch":{branch:?},"reference":{reference:?},"default":{default:?}}},"halving_seconds":{},"include_parents":{},"include_children":{},"same_session":{},"max_seconds_before":{},"max_seconds_after":{},"as_of":{},"keep_tool_results":{}}}"#,
            &common[1..common.len() - 1],
            text(self.max_tokens),
            text(self.halving_seconds),
            self.include_parents,
            self.include_children,
            self.same_session,
            text(self.max_seconds_before),
            text(self.max_seconds_after),
            text(self.as_of),
            self.keep_tool_results,
        );
        json.parse().unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn weight(&self, edge_type: EdgeType) -> f32 {
        let place = EdgeType::ALL.iter().position(|t| *t == edge_type).expect("all are listed");
        quantised(self.edge_weights[place])
    }
}

/// What exists for a policy at an anchor.
pub fn admitted(graph: &Graph, policy: &PolicyV2, anchor: &Turn) -> Graph {
    let mut admitted = graph.clone();
    admitted.turns.retain(|turn| {
        let at = turn.created_at;
        policy.as_of.is_none_or(|last| at <= last)
            && policy.max_seconds_before.is_none_or(|s| at >= anchor.created_at - s)
            && policy.max_seconds_after.is_none_or(|s| at <= anchor.created_at + s)
            && (!policy.same_session || turn.session_id == anchor.session_id)
    });
    admitted.edges.retain(|edge| policy.weight(edge.edge_type) != 0.0);
    admitted
}

/// A slice: turns in selection order, edges in the order of exports.
pub struct NaiveSlice {
    pub selected: Vec<Candidate>,
    pub edges: Vec<Edge>,
    /// What was found and takes too many tokens or turns, by itself or with its group.
    pub over_budget: BTreeSet<TurnId>,
    /// What was left when the turns were spent.
    pub left: BTreeSet<TurnId>,
    /// How every turn was found first, and from which.
    pub found: BTreeMap<TurnId, (Via, TurnId)>,
}

/// The slice of an existing anchor; `None` where it does not exist for the policy.
pub fn slice(
    graph: &Graph,
    tokens: &HashMap<TurnId, u32>,
    policy: &PolicyV2,
    anchor: TurnId,
) -> Option<NaiveSlice> {
    let anchor = row(graph, anchor).expect("the anchor is in the graph").clone();
    let graph = &admitted(graph, policy, &anchor);
    row(graph, anchor.id)?;
    let tokens = |id: TurnId| u64::from(tokens.get(&id).copied().unwrap_or(0));
    let candidate = |id: TurnId, distance, strength| {
        row(graph, id).map(|turn| (candidate(policy, turn, &anchor, distance, strength), strength))
    };
    let mut left = policy
        .max_tokens
        .map_or(u64::MAX, |most| u64::from(most).saturating_sub(tokens(anchor.id)));
    let nodes = policy.common.max_nodes as usize;
    let mut selected: Vec<Candidate> = Vec::new();
    let mut over_budget: BTreeSet<TurnId> = BTreeSet::new();
    let mut visited = BTreeMap::from([(anchor.id, (Via::Anchor, anchor.id))]);
    let mut split: Vec<TurnId> = Vec::new();
    let mut frontier: Vec<(Candidate, f32)> = candidate(anchor.id, 0, 1.0).into_iter().collect();
    while !frontier.is_empty() && selected.len() < nodes {
        let place = best(&frontier);
        let current = frontier.remove(place);
        let id = current.0.id;
        let mut group = vec![id];
        if policy.keep_tool_results && !split.contains(&id) {
            group = group_of(graph, id);
        }
        let others: u64 = group.iter().filter(|member| **member != id).map(|m| tokens(*m)).sum();
        let own = if selected.is_empty() { 0 } else { tokens(id) };
        let fits = group.len() <= nodes - selected.len() && own + others <= left;
        if !fits && selected.is_empty() {
            split = group;
            group = vec![id];
        } else if !fits {
            for member in &group {
                visited.entry(*member).or_insert((Via::Call, id));
            }
            over_budget.extend(&group);
            frontier.retain(|(other, _)| !group.contains(&other.id));
            continue;
        }
        let mut members: Vec<(Candidate, f32)> = Vec::new();
        for member in group.iter().filter(|member| **member != id) {
            let found = frontier.iter().position(|(other, _)| other.id == *member);
            members.push(match found {
                Some(place) => frontier.remove(place),
                None => candidate(*member, current.0.distance, current.1).expect("it exists"),
            });
            visited.entry(*member).or_insert((Via::Call, id));
        }
        members.sort_by(|(a, _), (b, _)| is_better(b, a).cmp(&is_better(a, b)));
        members.insert(0, current);
        for (member, _) in &members {
            let taken = if selected.is_empty() { 0 } else { tokens(member.id) };
            left -= taken;
            selected.push(*member);
        }
        for (member, strength) in members {
            if member.distance >= policy.common.max_radius {
                continue;
            }
            let mut found: Vec<(Via, TurnId, u32, f32)> = Vec::new();
            let farther = member.distance + 1;
            let weight = |from: TurnId, to: TurnId| {
                let edges = graph.edges.iter().filter(|e| e.parent == from && e.child == to);
                edges.map(|edge| policy.weight(edge.edge_type)).fold(0.0, f32::max)
            };
            if policy.include_parents {
                let edges = graph.edges.iter().filter(|edge| edge.child == member.id);
                found.extend(edges.map(|edge| {
                    (Via::Parent, edge.parent, farther, strength * weight(edge.parent, member.id))
                }));
            }
            if policy.include_children {
                let edges = graph.edges.iter().filter(|edge| edge.parent == member.id);
                found.extend(edges.map(|edge| {
                    (Via::Child, edge.child, farther, strength * weight(member.id, edge.child))
                }));
            }
            if policy.common.include_siblings {
                let siblings = siblings(graph, member.id);
                let most = policy.common.max_siblings_per_node as usize;
                let at = member.distance;
                found
                    .extend(siblings.iter().take(most).map(|id| (Via::Sibling, *id, at, strength)));
            }
            for (via, id, distance, strength) in found {
                if !visited.contains_key(&id)
                    && let Some(candidate) = candidate(id, distance, strength)
                {
                    visited.insert(id, (via, member.id));
                    frontier.push(candidate);
                }
            }
        }
    }
    let edges = edges_between(graph, &selected);
    let left = frontier.iter().map(|(candidate, _)| candidate.id).collect();
    Some(NaiveSlice { selected, edges, over_budget, left, found: visited })
}

fn row(graph: &Graph, id: TurnId) -> Option<&Turn> {
    graph.turns.iter().find(|turn| turn.id == id)
}

/// The group of a turn: its component along tool links, unless that is too large.
pub fn group_of(graph: &Graph, id: TurnId) -> Vec<TurnId> {
    let component = component(graph, id);
    if component.len() > 64 { vec![id] } else { component }
}

/// The connected component of a turn along tool links, the turn first.
pub fn component(graph: &Graph, id: TurnId) -> Vec<TurnId> {
    let is_link = |edge: &&Edge| {
        row(graph, edge.parent).is_some()
            && row(graph, edge.child).is_some_and(|child| child.role == Role::Tool)
    };
    let links: Vec<&Edge> = graph.edges.iter().filter(is_link).collect();
    let mut component = vec![id];
    let mut next = 0;
    while next < component.len() {
        let turn = component[next];
        for link in &links {
            for (end, other) in [(link.parent, link.child), (link.child, link.parent)] {
                if end == turn && !component.contains(&other) {
                    component.push(other);
                }
            }
        }
        next += 1;
    }
    component
}

/// Existing turns that share a parent with this one, by salience, then id.
fn siblings(graph: &Graph, id: TurnId) -> Vec<TurnId> {
    let mut siblings: Vec<&Turn> = Vec::new();
    for to_parent in graph.edges.iter().filter(|edge| edge.child == id) {
        for to_child in graph.edges.iter().filter(|edge| edge.parent == to_parent.parent) {
            let known = siblings.iter().any(|turn| turn.id == to_child.child);
            if to_child.child != id && !known {
                siblings.extend(row(graph, to_child.child));
            }
        }
    }
    siblings.sort_by(|a, b| {
        let by_salience = b.salience.partial_cmp(&a.salience).expect("no NaN");
        by_salience.then(a.id.cmp(&b.id))
    });
    siblings.iter().map(|turn| turn.id).collect()
}

fn best(frontier: &[(Candidate, f32)]) -> usize {
    let mut best = 0;
    for (index, (other, _)) in frontier.iter().enumerate() {
        if is_better(other, &frontier[best].0) {
            best = index;
        }
    }
    best
}

fn candidate(
    policy: &PolicyV2,
    turn: &Turn,
    anchor: &Turn,
    distance: u32,
    strength: f32,
) -> Candidate {
    let phase = Phase::ALL.iter().position(|phase| *phase == turn.phase);
    let weight = quantised(policy.common.phase_weights[phase.expect("every phase is listed")]);
    let scored = turn.salience * quantised(policy.common.salience_weight);
    let base = (weight + scored) * power(quantised(policy.common.distance_decay), distance);
    let halvings = policy.halving_seconds.map_or(0, |seconds| {
        (turn.created_at.abs_diff(anchor.created_at) / u64::from(seconds)).min(126) as i32
    });
    let priority = base * strength * 2f64.powi(-halvings) as f32;
    Candidate { id: turn.id, distance, priority }
}
