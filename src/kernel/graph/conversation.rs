//! The order of a conversation.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::graph::edge::Edge;
use crate::graph::turn::TurnId;
use crate::interrupts::Interrupts;

/// A turn of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utterance {
    /// The turn.
    pub id: TurnId,
    /// When it was created, in any unit.
    pub time: i64,
    /// Whether it is the result of a call: its role is `tool`.
    pub is_result: bool,
}

impl Utterance {
    /// Its place among turns whose order nothing else decides.
    #[must_use]
    pub fn key(&self) -> (i64, TurnId) {
        (self.time, self.id)
    }
}

/// A turn's place among turns whose order nothing else decides: when it was created, then its id.
type Key = (i64, TurnId);

/// These turns, which are different, in the order of the conversation. The next is always the earliest of those whose
/// parents among them all come before. If there is none, as in a cycle, it is the earliest of those left. Results of a
/// call directly follow it. Edges to other turns count for nothing. `check_interrupts` is called often.
#[must_use]
pub fn conversation_order(
    turns: &[Utterance],
    edges: &[Edge],
    check_interrupts: &dyn Fn(),
) -> Vec<TurnId> {
    let interrupts = Interrupts::new(check_interrupts);
    let times: HashMap<TurnId, i64> = turns.iter().map(|turn| (turn.id, turn.time)).collect();
    let mut children: HashMap<TurnId, BTreeSet<Key>> = HashMap::new();
    let mut missing_parents: HashMap<TurnId, usize> = HashMap::new();
    for edge in edges.iter().filter(|edge| edge.parent != edge.child) {
        interrupts.item();
        let (true, Some(time)) = (times.contains_key(&edge.parent), times.get(&edge.child)) else {
            continue;
        };
        // Several edges between two turns count once.
        if children.entry(edge.parent).or_default().insert((*time, edge.child)) {
            *missing_parents.entry(edge.child).or_default() += 1;
        }
    }
    let results = turns.iter().filter(|turn| turn.is_result).map(|turn| turn.id);
    let results: HashSet<TurnId> = results.collect();
    let mut left: BTreeSet<Key> = turns.iter().map(Utterance::key).collect();
    let mut ready: BTreeSet<Key> =
        left.iter().copied().filter(|(_, id)| !missing_parents.contains_key(id)).collect();
    let mut order = Vec::with_capacity(turns.len());
    // Results that follow directly, the next one last.
    let mut following: Vec<Key> = Vec::new();
    while let Some(next) = following.pop().or(ready.first().copied()).or(left.first().copied()) {
        interrupts.item();
        ready.remove(&next);
        if !left.remove(&next) {
            continue;
        }
        order.push(next.1);
        let mut now_ready: Vec<Key> = Vec::new();
        for child in children.get(&next.1).into_iter().flatten() {
            if let Some(missing) = missing_parents.get_mut(&child.1) {
                *missing -= 1;
                if *missing == 0 && left.contains(child) {
                    now_ready.push(*child);
                }
            }
        }
        ready.extend(&now_ready);
        following.extend(now_ready.into_iter().rev().filter(|(_, id)| results.contains(id)));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::edge::EdgeType;

    /// The order of turns 1, 2, …, of which these are results, with these edges, each created at its own number.
    fn order(turns: u128, results: &[u128], edges: &[(u128, u128)]) -> Vec<u128> {
        let id = TurnId::from_u128;
        let turn = |number: u128| Utterance {
            id: id(number),
            time: number as i64,
            is_result: results.contains(&number),
        };
        let edge = |(parent, child): &(u128, u128)| Edge {
            parent: id(*parent),
            child: id(*child),
            edge_type: EdgeType::Reply,
        };
        let turns: Vec<Utterance> = (1..=turns).map(turn).collect();
        let edges: Vec<Edge> = edges.iter().map(edge).collect();
        let order = conversation_order(&turns, &edges, &|| {});
        order.into_iter().map(|id| id.as_u128()).collect()
    }

    #[test]
    fn edges_to_other_turns_count_for_nothing() {
        assert_eq!(order(3, &[], &[(9, 1), (3, 9), (9, 2), (3, 1)]), [2, 3, 1]);
    }

    #[test]
    fn turns_come_after_their_parents_and_else_by_time() {
        assert_eq!(order(4, &[], &[(4, 1)]), [2, 3, 4, 1]);
        assert_eq!(order(4, &[], &[(1, 2), (2, 3), (3, 4), (1, 2)]), [1, 2, 3, 4]);
    }

    #[test]
    fn a_cycle_is_entered_at_its_earliest_turn() {
        assert_eq!(order(4, &[], &[(2, 3), (3, 4), (4, 2), (1, 1)]), [1, 2, 3, 4]);
    }

    #[test]
    fn results_follow_their_call() {
        // 1 and 2 call; 3 and 5 are results of 1, 6 of 5; 4 of 2.
        let edges = [(1, 3), (1, 5), (5, 6), (2, 4)];
        assert_eq!(order(6, &[3, 4, 5, 6], &edges), [1, 3, 5, 6, 2, 4]);
        // A result of two calls follows the later one.
        assert_eq!(order(4, &[3], &[(1, 3), (2, 3), (1, 4)]), [1, 2, 3, 4]);
    }
}
