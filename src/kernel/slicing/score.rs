//! The order of selection (SlicePolicy v1 §5.3).

use std::cmp::Reverse;

use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::policy::position::Position;
use crate::slicing::store::ScoredTurn;

/// A candidate's place in the selection order: the smallest is selected first. Higher priority,
/// then lower distance, then lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    priority_key: Reverse<u32>,
    /// Hops from the anchor, as counted when it was discovered.
    pub distance: u32,
    /// The candidate.
    pub id: TurnId,
    /// The bits of its strength.
    strength: u32,
    /// What it takes of a token budget.
    pub tokens: u32,
}

impl Rank {
    /// The rank that a policy gives a turn at this position.
    #[must_use]
    pub fn of(policy: &SlicePolicy, turn: &ScoredTurn, position: Position) -> Self {
        Rank {
            priority_key: Reverse(ordered_key(policy.priority(&turn.facts, position))),
            distance: position.distance,
            id: turn.id,
            strength: position.strength.to_bits(),
            tokens: turn.facts.tokens,
        }
    }

    /// The rank of a recalled turn of this strength at so many hops. `own` is the strength of its own hit.
    #[must_use]
    pub(crate) fn recalled(
        policy: &SlicePolicy,
        turn: &ScoredTurn,
        position: Position,
        own: f32,
    ) -> Self {
        let Position { distance, strength, anchor_time } = position;
        let rank = policy.recall_rank(&turn.facts, strength, own, anchor_time);
        Rank {
            priority_key: Reverse(ordered_key(rank)),
            distance,
            id: turn.id,
            strength: strength.to_bits(),
            tokens: turn.facts.tokens,
        }
    }

    /// The rank of a turn with this priority at this distance.
    #[must_use]
    pub fn new(priority: f32, distance: u32, id: TurnId) -> Self {
        let priority_key = Reverse(ordered_key(priority));
        Rank { priority_key, distance, id, strength: 1.0f32.to_bits(), tokens: 0 }
    }

    /// Its strength.
    #[must_use]
    pub fn strength(&self) -> f32 {
        f32::from_bits(self.strength)
    }

    /// The bits of its strength, which order as strengths do.
    #[must_use]
    pub(crate) fn strength_bits(&self) -> u32 {
        self.strength
    }

    /// The priority.
    #[must_use]
    pub fn priority(&self) -> f32 {
        from_ordered_key(self.priority_key.0)
    }
}

const SIGN: u32 = 1 << 31;

/// An integer that is ordered as the number is: no comparison of floats decides a selection.
fn ordered_key(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn from_ordered_key(key: u32) -> f32 {
    f32::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_numbers_and_read_back() {
        let numbers = [-1e6f32, -1.0, -1e-40, 0.0, 1e-40, 0.5, 1.0, 1.3e6];
        assert!(numbers.map(ordered_key).is_sorted());
        assert_eq!(numbers.map(|n| from_ordered_key(ordered_key(n))), numbers);
    }

    #[test]
    fn ranks_prefer_priority_then_nearness_then_the_lower_id() {
        let id = TurnId::from_u128;
        let mut ranks = [
            Rank::new(0.5, 1, id(1)),
            Rank::new(0.9, 2, id(9)),
            Rank::new(0.9, 1, id(7)),
            Rank::new(0.9, 1, id(3)),
        ];
        ranks.sort();
        assert_eq!(ranks.map(|r| r.id.as_u128()), [3, 7, 9, 1]);
    }
}
