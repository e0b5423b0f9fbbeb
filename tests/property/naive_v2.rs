//! SlicePolicy v2, line by line from its text over lists: slow and simple, and independent of the kernel.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use graph_kernel_tests::data::Graph;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::json::canonical::xxh64_hex;
use kernel::policy::SlicePolicy;
use kernel::slicing::observer::Via;
use kernel::slicing::slice::Part;

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
    pub pins: Vec<TurnId>,
    pub seeds: Vec<(TurnId, f64)>,
    pub recall_tokens: Option<u32>,
    pub recall_radius: u32,
    pub recall_decay: f64,
    pub recall_share: f64,
    pub cut_share: f64,
    pub cut_to_user: bool,
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
            pins: Vec::new(),
            seeds: Vec::new(),
            recall_tokens: None,
            recall_radius: 8,
            recall_decay: 0.95,
            recall_share: 0.3,
            cut_share: 0.0,
            cut_to_user: false,
        }
    }

    pub fn policy(&self) -> SlicePolicy {
        fn text<T: ToString>(value: Option<T>) -> String {
            value.map_or("null".to_owned(), |value| value.to_string())
        }
        let common = self.common.to_json();
        let [reply, branch, reference, default] = self.edge_weights;
        let pins: Vec<String> =
            self.pins.iter().map(|id| format!("{:?}", id.to_string())).collect();
        let seed = |(id, strength): &(TurnId, f64)| format!("{:?}:{strength:?}", id.to_string());
        let seeds: Vec<String> = self.seeds.iter().map(seed).collect();
        let json = format!(
            r#"{{"version":"slice_policy_v2",{},"max_tokens":{},"edge_weights":{{"reply":{reply:?},"branch":{branch:?},"reference":{reference:?},"default":{default:?}}},"halving_seconds":{},"include_parents":{},"include_children":{},"same_session":{},"max_seconds_before":{},"max_seconds_after":{},"as_of":{},"keep_tool_results":{},"pins":{},"seeds":{},"recall_tokens":{},"recall_radius":{},"recall_decay":{:?},"recall_share":{:?},"cut_share":{:?},"cut_to_user":{}}}"#,
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
            if pins.is_empty() { "null".to_owned() } else { format!("[{}]", pins.join(",")) },
            if seeds.is_empty() { "null".to_owned() } else { format!("{{{}}}", seeds.join(",")) },
            text(self.recall_tokens),
            self.recall_radius,
            self.recall_decay,
            self.recall_share,
            self.cut_share,
            self.cut_to_user,
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
    /// The part of each, in the same order.
    pub parts: Vec<Part>,
    pub edges: Vec<Edge>,
    /// What was found and takes too many tokens or turns, by itself or with its group.
    pub over_budget: BTreeSet<TurnId>,
    /// What was found and left when the turns were spent.
    pub left: BTreeSet<TurnId>,
    /// How every turn was found: selected turns as they were selected, others first.
    pub found: BTreeMap<TurnId, (Via, TurnId)>,
    pub pins_left_out: Vec<TurnId>,
    /// The seed of each turn that was recalled.
    pub recalled_from: BTreeMap<TurnId, TurnId>,
    /// In the order of the line.
    pub cut: Vec<TurnId>,
    pub limited: bool,
    /// What is in the line before the cut.
    pub line: Vec<TurnId>,
    /// In the order of messages.
    pub messages: Vec<TurnId>,
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
    let sum = |ids: &[TurnId]| ids.iter().map(|id| tokens(*id)).sum::<u64>();
    let candidate = |id: TurnId, distance, strength| {
        row(graph, id).map(|turn| (candidate(policy, turn, &anchor, distance, strength), strength))
    };
    let nodes = policy.common.max_nodes as usize;
    let most = policy.max_tokens.map_or(u64::MAX, u64::from);
    // The anchor's component is no group where it has more turns than the policy allows.
    let split = match component(graph, anchor.id) {
        component if component.len() <= 64 && component.len() > nodes => component,
        _ => Vec::new(),
    };
    let group = |id: TurnId| match policy.keep_tool_results && !split.contains(&id) {
        true => group_of(graph, id),
        false => vec![id],
    };
    let with_others = |id: TurnId, distance: u32, strength: f32| {
        let others = group(id).into_iter().filter(|other| *other != id);
        let others = others.filter_map(|other| candidate(other, distance, strength));
        let mut others: Vec<Candidate> = others.map(|(other, _)| other).collect();
        others.sort_by(|a, b| is_better(b, a).cmp(&is_better(a, b)));
        let first = candidate(id, distance, strength).expect("it exists").0;
        [vec![first], others].concat()
    };
    let mut found: BTreeMap<TurnId, (Via, TurnId)> = BTreeMap::new();
    let mut over_budget: BTreeSet<TurnId> = BTreeSet::new();

    // The anchor.
    let anchors = with_others(anchor.id, 0, 1.0);
    let mut selected: Vec<(Candidate, Part)> =
        anchors.iter().map(|turn| (*turn, Part::Anchor)).collect();
    for turn in &anchors {
        let via = if turn.id == anchor.id { Via::Anchor } else { Via::Call };
        found.insert(turn.id, (via, anchor.id));
    }
    let mut left_tokens = most.saturating_sub(sum(&ids(&anchors)));

    // Pinned turns.
    let mut pins_left_out = Vec::new();
    for pin in &policy.pins {
        let is_selected = selected.iter().any(|(turn, _)| turn.id == *pin);
        if row(graph, *pin).is_none() || is_selected {
            continue;
        }
        let turns = with_others(*pin, 0, 1.0);
        let taken = sum(&ids(&turns));
        if turns.len() > nodes - selected.len() || taken > left_tokens {
            pins_left_out.push(*pin);
            continue;
        }
        left_tokens -= if most == u64::MAX { 0 } else { taken };
        for turn in turns {
            let via = if turn.id == *pin { Via::Pin } else { Via::Call };
            found.insert(turn.id, (via, *pin));
            selected.push((turn, Part::Pinned));
        }
    }
    let pinned: Vec<TurnId> = of_part(&selected, Part::Pinned);

    // The line.
    let mut line_tokens = left_tokens.saturating_sub(u64::from(policy.recall_tokens.unwrap_or(0)));
    if most == u64::MAX {
        line_tokens = u64::MAX;
    }
    let mut passed_over = false;
    let mut visited: Vec<TurnId> = ids(&anchors);
    let mut frontier: Vec<(Candidate, f32)> = Vec::new();
    let mut to_expand: Vec<(Candidate, f32)> = anchors.iter().map(|turn| (*turn, 1.0)).collect();
    loop {
        for (member, strength) in std::mem::take(&mut to_expand) {
            if member.distance >= policy.common.max_radius {
                continue;
            }
            let mut neighbours: Vec<(Via, TurnId, u32, f32)> = Vec::new();
            let farther = member.distance + 1;
            let weight = |from, to| weight_between(graph, policy, from, to);
            if policy.include_parents {
                let edges = graph.edges.iter().filter(|edge| edge.child == member.id);
                neighbours.extend(edges.map(|edge| {
                    (Via::Parent, edge.parent, farther, strength * weight(edge.parent, member.id))
                }));
            }
            if policy.include_children {
                let edges = graph.edges.iter().filter(|edge| edge.parent == member.id);
                neighbours.extend(edges.map(|edge| {
                    (Via::Child, edge.child, farther, strength * weight(member.id, edge.child))
                }));
            }
            if policy.common.include_siblings {
                let siblings = siblings(graph, member.id);
                let most = policy.common.max_siblings_per_node as usize;
                let at = member.distance;
                let siblings = siblings.iter().take(most);
                neighbours.extend(siblings.map(|id| (Via::Sibling, *id, at, strength)));
            }
            for (via, id, distance, strength) in neighbours {
                if !visited.contains(&id)
                    && let Some(candidate) = candidate(id, distance, strength)
                {
                    visited.push(id);
                    found.entry(id).or_insert((via, member.id));
                    frontier.push(candidate);
                }
            }
        }
        if selected.len() == nodes || frontier.is_empty() {
            break;
        }
        let (current, strength) = frontier.remove(best(&frontier));
        if pinned.contains(&current.id) {
            to_expand.push((current, strength));
            continue;
        }
        let members = group(current.id);
        let mut others: Vec<(Candidate, f32)> = Vec::new();
        for member in members.iter().filter(|member| **member != current.id) {
            let place = frontier.iter().position(|(other, _)| other.id == *member);
            if let Some(place) = place {
                others.push(frontier.remove(place));
            } else if !visited.contains(member) {
                visited.push(*member);
                found.entry(*member).or_insert((Via::Call, current.id));
                others.push(candidate(*member, current.distance, strength).expect("it exists"));
            }
        }
        others.sort_by(|(a, _), (b, _)| is_better(b, a).cmp(&is_better(a, b)));
        let together = [vec![(current, strength)], others].concat();
        let taken = sum(&members);
        let has_room = members.len() <= nodes - selected.len();
        if has_room && taken <= line_tokens {
            line_tokens -= if most == u64::MAX { 0 } else { taken };
            selected.extend(together.iter().map(|(turn, _)| (*turn, Part::Line)));
            to_expand = together;
        } else {
            passed_over = true;
            over_budget.extend(&members);
            if has_room && policy.max_tokens.is_some_and(|most| taken * 4 > u64::from(most)) {
                to_expand = together;
            }
        }
    }
    let at_radius = |(turn, part): &(Candidate, Part)| {
        *part == Part::Line && turn.distance == policy.common.max_radius
    };
    let limited = passed_over || !frontier.is_empty() || selected.iter().any(at_radius);
    let mut left: BTreeSet<TurnId> = frontier.iter().map(|(turn, _)| turn.id).collect();
    left.retain(|id| !pinned.contains(id));

    // The cut.
    let line_ids = of_part(&selected, Part::Line);
    let line: Vec<TurnId> = conversation(graph, &[pinned, line_ids.clone()].concat())
        .into_iter()
        .filter(|id| line_ids.contains(id))
        .collect();
    let q = millionths(policy.cut_share);
    let mut begins = 0;
    if limited && q > 0 && !line.is_empty() {
        let of_all = u128::from(sum(&line));
        let mut counting: Vec<usize> = (0..line.len())
            .filter(|place| {
                let (before, from) = line.split_at(*place);
                !before.iter().any(|id| group(*id).iter().any(|other| from.contains(other)))
            })
            .filter(|place| {
                u128::from(sum(&line[*place..])) * 1_000_000 >= (1_000_000 - q as u128) * of_all
            })
            .collect();
        let is_user = |place: &usize| row(graph, line[*place]).unwrap().role == Role::User;
        if policy.cut_to_user && counting.iter().any(is_user) {
            counting.retain(is_user);
        }
        let hash = |place: &usize| xxh64_hex(line[*place].as_bytes());
        begins = counting.into_iter().min_by_key(hash).expect("the first is always allowed");
    }
    let mut cut: BTreeSet<TurnId> = line[..begins].iter().copied().collect();
    let is_result = |id: &TurnId| row(graph, *id).unwrap().role == Role::Tool;
    let mut may_have_more = policy.keep_tool_results;
    while may_have_more {
        let within = |id: &TurnId| !cut.contains(id) && selected.iter().any(|(t, _)| t.id == *id);
        let has_parent = |id: &TurnId| {
            let edges = graph.edges.iter().filter(|edge| edge.child == *id && edge.parent != *id);
            edges.map(|edge| edge.parent).any(|parent| within(&parent))
        };
        let next = line.iter().find(|id| is_result(id) && within(id) && !has_parent(id));
        let next = next.copied();
        may_have_more = next.is_some();
        cut.extend(next);
    }
    selected.retain(|(turn, _)| !cut.contains(&turn.id));
    let cut: Vec<TurnId> = line.iter().copied().filter(|id| cut.contains(id)).collect();

    // Recalled turns.
    let taken = sum(&selected.iter().map(|(turn, _)| turn.id).collect::<Vec<_>>());
    let mut recall_tokens = most.saturating_sub(taken);
    recall_tokens = recall_tokens.min(policy.recall_tokens.map_or(u64::MAX, u64::from));
    let own = |id: TurnId| {
        policy.seeds.iter().find(|(seed, _)| *seed == id).map_or(0.0, |(_, s)| quantised(*s))
    };
    let rank = |id: TurnId, hops, strength| {
        recall_rank(policy, row(graph, id).unwrap(), &anchor, hops, strength, own(id))
    };
    // Each with its strength and from where it was reached.
    let mut reached: Vec<(Candidate, f32, TurnId)> = Vec::new();
    // The seed at the beginning of the way to each.
    let mut seed_of: BTreeMap<TurnId, TurnId> = BTreeMap::new();
    let mut recalled_from: BTreeMap<TurnId, TurnId> = BTreeMap::new();
    if selected.len() < nodes {
        for (seed, strength) in &policy.seeds {
            if row(graph, *seed).is_some() {
                let strength = quantised(*strength);
                reached.push((rank(*seed, 0, strength), strength, *seed));
                seed_of.insert(*seed, *seed);
            }
        }
    }
    let mut done: Vec<TurnId> = Vec::new();
    let mut not_recalled: BTreeMap<TurnId, (Via, TurnId)> = BTreeMap::new();
    let via = |id: TurnId, from: TurnId| if id == from { Via::Seed } else { Via::Recalled };
    while selected.len() < nodes && !reached.is_empty() {
        let mut place = 0;
        for other in 1..reached.len() {
            if is_better(&reached[other].0, &reached[place].0) {
                place = other;
            }
        }
        let (current, strength, from) = reached.remove(place);
        done.push(current.id);
        let is_in = |selected: &[(Candidate, Part)], id: TurnId| {
            selected.iter().any(|(turn, _)| turn.id == id)
        };
        if !is_in(&selected, current.id) {
            let missing: Vec<TurnId> =
                group(current.id).into_iter().filter(|id| !is_in(&selected, *id)).collect();
            if missing.len() > nodes - selected.len() || sum(&missing) > recall_tokens {
                not_recalled.insert(current.id, (via(current.id, from), from));
                continue;
            }
            recall_tokens -= if recall_tokens == u64::MAX { 0 } else { sum(&missing) };
            found.insert(current.id, (via(current.id, from), from));
            let others = missing.into_iter().filter(|id| *id != current.id);
            let mut others: Vec<Candidate> =
                others.map(|id| rank(id, current.distance, strength)).collect();
            others.sort_by(|a, b| is_better(b, a).cmp(&is_better(a, b)));
            selected.push((current, Part::Recalled));
            recalled_from.insert(current.id, seed_of[&current.id]);
            for other in others {
                recalled_from.insert(other.id, seed_of[&current.id]);
                found.insert(other.id, (Via::Call, current.id));
                selected.push((other, Part::Recalled));
            }
        }
        if current.distance == policy.recall_radius || selected.len() == nodes {
            continue;
        }
        for to_parents in [true, false] {
            let ends: BTreeSet<TurnId> = graph
                .edges
                .iter()
                .filter(|edge| (if to_parents { edge.child } else { edge.parent }) == current.id)
                .map(|edge| if to_parents { edge.parent } else { edge.child })
                .filter(|end| *end != current.id)
                .collect();
            if ends.len() > 64 {
                continue;
            }
            for end in ends {
                let (parent, child) =
                    if to_parents { (end, current.id) } else { (current.id, end) };
                let strength = (strength * quantised(policy.recall_decay))
                    * weight_between(graph, policy, parent, child);
                if strength == 0.0 || done.contains(&end) || row(graph, end).is_none() {
                    continue;
                }
                let hops = current.distance + 1;
                let known = reached.iter().position(|(turn, ..)| turn.id == end);
                if let Some(place) = known {
                    let (turn, held, _) = reached[place];
                    if held < strength || held == strength && turn.distance > hops {
                        reached.remove(place);
                    } else {
                        continue;
                    }
                }
                reached.push((rank(end, hops, strength), strength, current.id));
                seed_of.insert(end, seed_of[&current.id]);
            }
        }
    }

    let messages = messages(graph, policy, &selected);
    let (selected, parts): (Vec<Candidate>, Vec<Part>) = selected.into_iter().unzip();
    let is_in = |id: &TurnId| selected.iter().any(|turn| turn.id == *id);
    for (id, how) in not_recalled {
        if let Entry::Vacant(place) = found.entry(id) {
            place.insert(how);
            over_budget.insert(id);
        }
    }
    for (turn, _, from) in &reached {
        if let Entry::Vacant(place) = found.entry(turn.id) {
            place.insert((via(turn.id, *from), *from));
            left.insert(turn.id);
        }
    }
    pins_left_out.retain(|pin| !is_in(pin));
    for pin in &pins_left_out {
        found.insert(*pin, (Via::Pin, *pin));
        over_budget.insert(*pin);
        left.remove(pin);
    }
    over_budget.retain(|id| !is_in(id));
    left.retain(|id| !is_in(id));
    let edges = edges_between(graph, &selected);
    Some(NaiveSlice {
        selected,
        parts,
        edges,
        over_budget,
        left,
        found,
        pins_left_out,
        recalled_from,
        cut,
        limited,
        line,
        messages,
    })
}

fn ids(turns: &[Candidate]) -> Vec<TurnId> {
    turns.iter().map(|turn| turn.id).collect()
}

fn of_part(selected: &[(Candidate, Part)], part: Part) -> Vec<TurnId> {
    selected.iter().filter(|(_, of)| *of == part).map(|(turn, _)| turn.id).collect()
}

fn millionths(value: f64) -> i64 {
    (f64::from(value as f32) * 1e6).round() as i64
}

/// The greatest weight of the edges from one turn to another.
fn weight_between(graph: &Graph, policy: &PolicyV2, from: TurnId, to: TurnId) -> f32 {
    let edges = graph.edges.iter().filter(|edge| edge.parent == from && edge.child == to);
    edges.map(|edge| policy.weight(edge.edge_type)).fold(0.0, f32::max)
}

/// The order of the conversation of these turns, by the definition.
fn conversation(graph: &Graph, of: &[TurnId]) -> Vec<TurnId> {
    let key = |id: &TurnId| (row(graph, *id).expect("it exists").created_at, *id);
    let parents = |id: TurnId| {
        let edges = graph.edges.iter().filter(move |edge| edge.child == id && edge.parent != id);
        edges.map(|edge| edge.parent).filter(|parent| of.contains(parent)).collect::<Vec<_>>()
    };
    let mut order: Vec<TurnId> = Vec::new();
    // What must come next, the next one last.
    let mut next: Vec<TurnId> = Vec::new();
    let is_ready = |order: &[TurnId], id: TurnId| parents(id).iter().all(|p| order.contains(p));
    while order.len() < of.len() {
        let left: Vec<TurnId> = of.iter().copied().filter(|id| !order.contains(id)).collect();
        let ready = left.iter().copied().filter(|id| is_ready(&order, *id));
        let chosen = next.pop().or_else(|| ready.min_by_key(key));
        let chosen =
            chosen.or_else(|| left.iter().copied().min_by_key(key)).expect("some are left");
        let was_ready: Vec<TurnId> =
            left.iter().copied().filter(|id| is_ready(&order, *id)).collect();
        order.push(chosen);
        let mut results: Vec<TurnId> = left
            .into_iter()
            .filter(|id| *id != chosen && !was_ready.contains(id) && is_ready(&order, *id))
            .filter(|id| row(graph, *id).unwrap().role == Role::Tool)
            .collect();
        results.sort_by_key(|id| std::cmp::Reverse(key(id)));
        next.extend(results);
    }
    order
}

/// The order of messages, by the definition.
fn messages(graph: &Graph, policy: &PolicyV2, selected: &[(Candidate, Part)]) -> Vec<TurnId> {
    let of = |parts: &[Part]| {
        let turns = selected.iter().filter(|(_, part)| parts.contains(part));
        turns.map(|(turn, _)| turn.id).collect::<Vec<TurnId>>()
    };
    let mut recalled = of(&[Part::Recalled]);
    recalled.sort_by_key(|id| (row(graph, *id).unwrap().created_at, *id));
    let mut threads: Vec<Vec<TurnId>> = Vec::new();
    for id in &recalled {
        if threads.concat().contains(id) {
            continue;
        }
        let mut thread = vec![*id];
        while let Some(next) = recalled.iter().find(|other| {
            let touches = |edge: &Edge| {
                thread.contains(&edge.parent) && edge.child == **other
                    || thread.contains(&edge.child) && edge.parent == **other
            };
            !thread.contains(other) && graph.edges.iter().any(touches)
        }) {
            thread.push(*next);
        }
        threads.push(thread);
    }
    let recalled: Vec<TurnId> =
        threads.iter().flat_map(|thread| conversation(graph, thread)).collect();
    let order = |parts: &[Part]| conversation(graph, &of(parts));
    if policy.include_children || policy.common.include_siblings {
        [recalled, order(&[Part::Pinned, Part::Line, Part::Anchor])].concat()
    } else {
        [order(&[Part::Pinned, Part::Line]), recalled, order(&[Part::Anchor])].concat()
    }
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
    let priority = base * strength * halved(policy, turn, anchor);
    Candidate { id: turn.id, distance, priority }
}

fn halved(policy: &PolicyV2, turn: &Turn, anchor: &Turn) -> f32 {
    let halvings = policy.halving_seconds.map_or(0, |seconds| {
        (turn.created_at.abs_diff(anchor.created_at) / u64::from(seconds)).min(126) as i32
    });
    2f64.powi(-halvings) as f32
}

/// A recalled turn, whose rank stands in place of a priority.
fn recall_rank(
    policy: &PolicyV2,
    turn: &Turn,
    anchor: &Turn,
    hops: u32,
    strength: f32,
    own: f32,
) -> Candidate {
    let phase = Phase::ALL.iter().position(|phase| *phase == turn.phase);
    let weight = quantised(policy.common.phase_weights[phase.expect("every phase is listed")]);
    let base = weight + turn.salience * quantised(policy.common.salience_weight);
    let rest = ((1_000_000 - millionths(policy.recall_share)) as f64 / 1e6) as f32;
    let shared = (rest * strength) + (quantised(policy.recall_share) * own);
    let priority = (base * shared) * halved(policy, turn, anchor);
    Candidate { id: turn.id, distance: hops, priority }
}
