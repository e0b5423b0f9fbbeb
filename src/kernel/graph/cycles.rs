//! Whether a graph is the DAG it should be.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::graph::turn::TurnId;
use crate::interrupts::Interrupts;

/// The most edges that are checked. With [`MAX_TURNS`] it keeps the memory below 256 MiB.
pub const MAX_EDGES: usize = 5_000_000;
/// The most turns at the ends of these edges: what a hash map of 2^22 buckets holds.
pub const MAX_TURNS: usize = 3_670_016;

/// The edges of a whole graph, ids replaced by small numbers.
#[derive(Default)]
pub struct EdgeList {
    numbers: HashMap<TurnId, u32, RandomState>,
    edges: Vec<(u32, u32)>,
}

impl EdgeList {
    /// Adds an edge; false when there are too many.
    #[must_use]
    pub fn push(&mut self, parent: TurnId, child: TurnId) -> bool {
        if self.edges.len() == MAX_EDGES {
            return false;
        }
        let (Some(parent), Some(child)) = (self.number(parent), self.number(child)) else {
            return false;
        };
        self.edges.push((parent, child));
        true
    }

    fn number(&mut self, id: TurnId) -> Option<u32> {
        let next = self.numbers.len();
        if let Some(number) = self.numbers.get(&id) {
            return Some(*number);
        }
        if next == MAX_TURNS {
            return None;
        }
        self.numbers.insert(id, next as u32);
        Some(next as u32)
    }

    /// The turns that lie on a cycle or on a path between two cycles, by id. A self-loop is a cycle. Linear in the
    /// edges; `check_interrupts` is called often.
    #[must_use]
    pub fn turns_in_cycles(mut self, check_interrupts: &dyn Fn()) -> Vec<TurnId> {
        let interrupts = Interrupts::new(check_interrupts);
        self.edges.shrink_to_fit();
        let turns = self.numbers.len();
        let below = peel(&self.edges, turns, &interrupts, |&(parent, child)| (parent, child));
        let above = peel(&self.edges, turns, &interrupts, |&(parent, child)| (child, parent));
        drop(self.edges);
        let stays = |number: u32| below[number as usize] && above[number as usize];
        let found = self.numbers.into_iter().filter(|(_, number)| stays(*number));
        let mut found: Vec<TurnId> = found.map(|(id, _)| id).collect();
        found.sort_unstable();
        found
    }
}

/// Removes turns without incoming edges until none is left; true marks those that stay.
fn peel(
    edges: &[(u32, u32)],
    turns: usize,
    interrupts: &Interrupts<'_>,
    direction: impl Fn(&(u32, u32)) -> (u32, u32),
) -> Vec<bool> {
    let mut incoming = vec![0u32; turns];
    // A counting sort: the counts are summed up to the end of each turn's targets, and filling from the end leaves the
    // start.
    let mut starts = vec![0u32; turns + 1];
    for (from, to) in edges.iter().map(&direction) {
        interrupts.item();
        incoming[to as usize] += 1;
        starts[from as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        interrupts.item();
        sum += *start;
        *start = sum;
    }
    let mut targets = vec![0u32; edges.len()];
    for (from, to) in edges.iter().map(&direction) {
        interrupts.item();
        let start = &mut starts[from as usize];
        *start -= 1;
        targets[*start as usize] = to;
    }
    let mut stays = vec![true; turns];
    // Each turn enters the list once, so it never grows beyond this.
    let mut free = Vec::with_capacity(turns);
    for (turn, count) in incoming.iter().enumerate() {
        interrupts.item();
        if *count == 0 {
            free.push(turn as u32);
        }
    }
    while let Some(turn) = free.pop() {
        interrupts.item();
        let turn = turn as usize;
        stays[turn] = false;
        for &target in &targets[starts[turn] as usize..starts[turn + 1] as usize] {
            interrupts.item();
            incoming[target as usize] -= 1;
            if incoming[target as usize] == 0 {
                free.push(target);
            }
        }
    }
    stays
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u128, u128)]) -> EdgeList {
        let mut list = EdgeList::default();
        for &(parent, child) in edges {
            assert!(list.push(TurnId::from_u128(parent), TurnId::from_u128(child)));
        }
        list
    }

    fn found(edges: &[(u128, u128)]) -> Vec<u128> {
        graph(edges).turns_in_cycles(&|| {}).iter().map(TurnId::as_u128).collect()
    }

    #[test]
    fn a_dag_has_none() {
        assert_eq!(found(&[(1, 2), (1, 3), (2, 4), (3, 4)]), []);
        assert_eq!(found(&[]), []);
    }

    #[test]
    fn cycles_and_self_loops_are_found_without_their_tails() {
        assert_eq!(found(&[(1, 2), (2, 3), (3, 2), (3, 4)]), [2, 3]);
        assert_eq!(found(&[(1, 1), (1, 2)]), [1]);
    }
}
