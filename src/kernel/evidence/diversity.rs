//! How varied the turns of a slice are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::graph::turn::{Phase, Role, Turn};

/// The least salience that counts as high.
pub const HIGH_SALIENCE: f32 = 0.7;

/// What kinds of turns a slice has, and how many of each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diversity {
    /// How many turns.
    pub turn_count: usize,
    /// How many different roles.
    pub unique_roles: usize,
    /// Turns of each role that occurs.
    pub role_distribution: BTreeMap<Role, usize>,
    /// How many different phases.
    pub unique_phases: usize,
    /// Turns of each phase that occurs.
    pub phase_distribution: BTreeMap<Phase, usize>,
    /// How many different sessions.
    pub unique_sessions: usize,
    /// The saliences.
    pub salience_stats: SalienceStats,
    /// Whether both a user and an assistant have a turn.
    pub has_exchange: bool,
}

/// Statistics of the saliences, computed in binary32 in the order of the turns; zeros without turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SalienceStats {
    /// The lowest.
    pub min: f32,
    /// The highest.
    pub max: f32,
    /// The arithmetic mean.
    pub mean: f32,
    /// The standard deviation of the population.
    pub std_dev: f32,
    /// How many are [`HIGH_SALIENCE`] or more.
    pub high_salience_count: usize,
}

impl Diversity {
    /// The diversity of these turns.
    #[must_use]
    pub fn of(turns: &[Turn]) -> Self {
        let role_distribution = count(turns, |turn| turn.role);
        let phase_distribution = count(turns, |turn| turn.phase);
        let sessions: BTreeSet<&str> = turns.iter().map(|turn| turn.session_id.as_str()).collect();
        let saliences: Vec<f32> = turns.iter().map(|turn| turn.salience).collect();
        Diversity {
            turn_count: turns.len(),
            unique_roles: role_distribution.len(),
            has_exchange: [Role::User, Role::Assistant]
                .iter()
                .all(|role| role_distribution.contains_key(role)),
            role_distribution,
            unique_phases: phase_distribution.len(),
            phase_distribution,
            unique_sessions: sessions.len(),
            salience_stats: SalienceStats::of(&saliences),
        }
    }
}

impl SalienceStats {
    fn of(saliences: &[f32]) -> Self {
        if saliences.is_empty() {
            return Self::default();
        }
        let mean_of = |values: &mut dyn Iterator<Item = f32>| {
            values.fold(0.0, |sum, value| sum + value) / saliences.len() as f32
        };
        let mean = mean_of(&mut saliences.iter().copied());
        let variance = mean_of(&mut saliences.iter().map(|s| (s - mean) * (s - mean)));
        SalienceStats {
            min: saliences.iter().copied().fold(f32::INFINITY, f32::min),
            max: saliences.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            mean,
            std_dev: variance.sqrt(),
            high_salience_count: saliences.iter().filter(|s| **s >= HIGH_SALIENCE).count(),
        }
    }
}

fn count<K: Ord>(turns: &[Turn], key: impl Fn(&Turn) -> K) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for turn in turns {
        *counts.entry(key(turn)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_turns_have_no_diversity() {
        let none = Diversity::of(&[]);
        assert_eq!((none.turn_count, none.unique_roles, none.has_exchange), (0, 0, false));
        assert_eq!(none.salience_stats, SalienceStats::default());
    }

    #[test]
    fn salience_is_high_from_its_bound_on() {
        let stats = SalienceStats::of(&[HIGH_SALIENCE.next_down(), HIGH_SALIENCE, 1.0]);
        assert_eq!(stats.high_salience_count, 2);
    }
}
