//! Whether a graph is the DAG it should be.

use std::collections::HashMap;

use crate::turn::TurnId;

/// The edges of a whole graph, ids replaced by small numbers.
#[derive(Default)]
pub struct EdgeList {
    numbers: HashMap<TurnId, u32>,
    edges: Vec<(u32, u32)>,
}

impl EdgeList {
    /// Adds an edge; false when there is no memory for it.
    #[must_use]
    pub fn push(&mut self, parent: TurnId, child: TurnId) -> bool {
        if self.numbers.try_reserve(2).is_err() || self.edges.try_reserve(1).is_err() {
            return false;
        }
        let edge = (self.number(parent), self.number(child));
        self.edges.push(edge);
        true
    }

    /// How many edges there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    fn number(&mut self, id: TurnId) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(id).or_insert(next)
    }

    /// How many turns lie on a cycle or on a path between two cycles; a self-loop is a cycle.
    /// 0 means the graph is a DAG, `None` that there is no memory to find out. Linear in the edges;
    /// `tick` is called at least every 256 steps.
    #[must_use]
    pub fn turns_in_cycles(&self, tick: &mut dyn FnMut()) -> Option<usize> {
        let below = self.peel(tick, |&(parent, child)| (parent, child))?;
        let above = self.peel(tick, |&(parent, child)| (child, parent))?;
        Some(below.iter().zip(&above).filter(|(a, b)| **a && **b).count())
    }

    /// Removes turns without incoming edges until none is left; true marks those that stay.
    fn peel(
        &self,
        tick: &mut dyn FnMut(),
        direction: impl Fn(&(u32, u32)) -> (u32, u32),
    ) -> Option<Vec<bool>> {
        let turns = self.numbers.len();
        let mut step = 0u8;
        let mut tick = || {
            step = step.wrapping_add(1);
            if step == 0 {
                tick();
            }
        };
        let mut incoming = filled(0u32, turns)?;
        let mut starts = filled(0usize, turns + 1)?;
        for (from, to) in self.edges.iter().map(&direction) {
            tick();
            incoming[to as usize] += 1;
            starts[from as usize + 1] += 1;
        }
        for i in 0..turns {
            tick();
            starts[i + 1] += starts[i];
        }
        let mut targets = filled(0u32, self.edges.len())?;
        let mut next = filled(0usize, turns)?;
        next.copy_from_slice(&starts[..turns]);
        for (from, to) in self.edges.iter().map(&direction) {
            tick();
            targets[next[from as usize]] = to;
            next[from as usize] += 1;
        }
        let mut stays = filled(true, turns)?;
        // Each turn enters the list once, so it never grows past this.
        let mut free = filled(0usize, turns)?;
        free.clear();
        free.extend((0..turns).filter(|&turn| incoming[turn] == 0));
        while let Some(turn) = free.pop() {
            stays[turn] = false;
            for &target in &targets[starts[turn]..starts[turn + 1]] {
                tick();
                incoming[target as usize] -= 1;
                if incoming[target as usize] == 0 {
                    free.push(target as usize);
                }
            }
        }
        Some(stays)
    }
}

/// A vector, or `None` when there is no memory for it.
fn filled<T: Clone>(value: T, length: usize) -> Option<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length).ok()?;
    vector.resize(length, value);
    Some(vector)
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

    #[test]
    fn a_dag_has_none() {
        assert_eq!(graph(&[(1, 2), (1, 3), (2, 4), (3, 4)]).turns_in_cycles(&mut || {}), Some(0));
        assert_eq!(graph(&[]).turns_in_cycles(&mut || {}), Some(0));
    }

    #[test]
    fn cycles_and_self_loops_count_without_their_tails() {
        assert_eq!(graph(&[(1, 2), (2, 3), (3, 2), (3, 4)]).turns_in_cycles(&mut || {}), Some(2));
        assert_eq!(graph(&[(1, 1), (1, 2)]).turns_in_cycles(&mut || {}), Some(1));
    }
}
