//! Priority and selection order (SlicePolicy v1 §4, §5.3).

use std::cmp::Reverse;

use crate::graph::turn::{Phase, TurnId};
use crate::policy::SlicePolicy;

/// `(phase_weight + salience × salience_weight) × decay^distance`, each operation in binary32 in
/// that order, so that a priority is the same bits on every machine.
#[must_use]
pub fn priority(policy: &SlicePolicy, phase: Phase, salience: f32, distance: u32) -> f32 {
    let base = policy.phase_weight(phase) + salience * policy.salience_weight();
    // Adding +0.0 turns −0.0 into 0.0: the two compare equal and must rank equal.
    base * power(policy.distance_decay(), distance) + 0.0
}

/// `base^exponent` by square and multiply, in the order of compiler-rt's `__powisf2`.
fn power(mut base: f32, mut exponent: u32) -> f32 {
    let mut result = 1.0f32;
    loop {
        if exponent & 1 == 1 {
            result *= base;
        }
        exponent /= 2;
        if exponent == 0 {
            return result;
        }
        base *= base;
    }
}

/// A candidate's place in the selection order: the smallest is selected first. Higher priority,
/// then lower distance, then lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    priority_key: Reverse<u32>,
    /// Hops from the anchor as the expansion counted them.
    pub distance: u32,
    /// The candidate.
    pub id: TurnId,
}

impl Rank {
    /// The rank of a turn with this priority at this distance.
    #[must_use]
    pub fn new(priority: f32, distance: u32, id: TurnId) -> Self {
        Rank { priority_key: Reverse(ordered_key(priority)), distance, id }
    }

    /// The priority the rank was made from.
    #[must_use]
    pub fn priority(&self) -> f32 {
        from_ordered_key(self.priority_key.0)
    }
}

const SIGN: u32 = 1 << 31;

/// An integer that orders as the number does: no float comparison decides a selection.
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
    fn powers_are_the_published_bits() {
        let bits: Vec<u32> = (0..=10).map(|n| power(0.9, n).to_bits()).collect();
        assert_eq!(
            bits,
            [
                0x3f80_0000,
                0x3f66_6666,
                0x3f4f_5c28,
                0x3f3a_9fbd,
                0x3f27_f62a,
                0x3f17_2a59,
                0x3f08_0c83,
                0x3ef4_e351,
                0x3edc_662f,
                0x3ec6_5bf7,
                0x3eb2_85f7
            ]
        );
        assert_eq!(power(0.0, 0), 1.0);
        assert_eq!(power(0.0, 7), 0.0);
        assert_eq!(power(0.5, u32::MAX), 0.0);
    }

    #[test]
    fn priorities_are_the_published_bits() {
        let default = SlicePolicy::default();
        let bits =
            |phase, salience, distance| priority(&default, phase, salience, distance).to_bits();
        assert_eq!(bits(Phase::Exploration, 0.3, 0), 0x3ec7_ae15);
        assert_eq!(bits(Phase::Planning, 0.8, 1), 0x3f83_53f7);
        assert_eq!(bits(Phase::Synthesis, 0.9, 2), 0x3f83_ac70);
        assert_eq!(bits(Phase::Debugging, 0.1, 3), 0x3ec5_d248);
        assert_eq!(bits(Phase::Consolidation, 0.5, 3), 0x3f0b_f7ce);
    }

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
