//! Many slices side by side: which turns they share.
//!
//! Turns and slices are numbered. A slice is a list of turn numbers, and each turn has the list of
//! the slices that hold it; pairs of slices are never held.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::canonical::ArrayHasher;
use crate::export::Export;
use crate::turn::{Phase, TurnId};

/// The most turns that slices hold together, each counted in every slice it is in.
pub const MAX_MEMBERSHIPS: usize = 10_000_000;

/// Slices of one policy, by ascending slice_id.
pub struct SliceSets {
    slices: Vec<SliceSet>,
    /// Every turn of a slice, ascending.
    turns: Vec<TurnId>,
    /// The turn numbers of slice after slice.
    members: Vec<u32>,
    /// The slice numbers, ascending, of turn after turn.
    holders: Vec<u32>,
    /// Where each turn's holders end.
    holder_ends: Vec<usize>,
    /// The fingerprint of the registry of slices, by ascending anchor.
    pub registry_hash: String,
}

/// One slice among others.
struct SliceSet {
    slice_id: String,
    anchor_phase: Phase,
    /// Its part of `members`.
    start: usize,
    end: usize,
}

/// Two slices that share turns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overlap<'a> {
    /// The lower slice_id.
    pub slice_a: &'a str,
    /// The higher slice_id.
    pub slice_b: &'a str,
    /// Turns in both, 1 or more.
    pub shared_turns: u32,
    /// Turns in both by turns in either.
    pub jaccard: f32,
}

/// In how many slices a turn is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Influence {
    /// The turn.
    pub turn_id: TurnId,
    /// Slices that hold it, 1 or more.
    pub slice_count: u32,
    /// The same by the number of slices.
    pub slice_fraction: f32,
    /// The slices that hold it by the phase of their anchors.
    pub phase_distribution: PhaseCounts,
    /// Whether the anchors have more than one phase.
    pub is_bridge: bool,
}

/// A number for each phase, in the order of [`Phase::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts([u32; Phase::ALL.len()]);

impl Serialize for PhaseCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Phase::ALL.iter().zip(self.0))
    }
}

/// The slices hold more than [`MAX_MEMBERSHIPS`] turns together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTurns;

impl fmt::Display for TooManyTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slices would hold more than {MAX_MEMBERSHIPS} turns together")
    }
}

impl std::error::Error for TooManyTurns {}

/// Collects slices.
pub struct SliceSetsBuilder {
    /// Numbers in the order of appearance.
    numbers: BTreeMap<TurnId, u32>,
    slices: Vec<SliceSet>,
    members: Vec<u32>,
    most_members: usize,
    registry: ArrayHasher,
}

impl Default for SliceSetsBuilder {
    fn default() -> Self {
        SliceSetsBuilder {
            numbers: BTreeMap::new(),
            slices: Vec::new(),
            members: Vec::new(),
            most_members: MAX_MEMBERSHIPS,
            registry: ArrayHasher::default(),
        }
    }
}

impl SliceSetsBuilder {
    /// Adds a slice; slices come by ascending anchor, one for each.
    ///
    /// # Errors
    /// When all of them hold too many turns.
    pub fn push(&mut self, export: &Export<'_>) -> Result<(), TooManyTurns> {
        #[derive(Serialize)]
        struct RegistryEntry<'a> {
            anchor_turn_id: TurnId,
            slice_id: &'a str,
            turn_count: usize,
            edge_count: usize,
            policy_params_hash: &'a str,
        }
        let start = self.members.len();
        if start + export.turns.len() > self.most_members {
            return Err(TooManyTurns);
        }
        self.registry.push(&RegistryEntry {
            anchor_turn_id: export.anchor_turn_id,
            slice_id: &export.slice_id,
            turn_count: export.turns.len(),
            edge_count: export.edges.len(),
            policy_params_hash: &export.policy_params_hash,
        });
        for turn in &export.turns {
            // MAX_MEMBERSHIPS keeps the numbers within 32 bits.
            let next = self.numbers.len() as u32;
            self.members.push(*self.numbers.entry(turn.id).or_insert(next));
        }
        let anchor = export.turns.iter().find(|turn| turn.id == export.anchor_turn_id);
        self.slices.push(SliceSet {
            slice_id: export.slice_id.clone(),
            anchor_phase: anchor.map_or(Phase::from_stored(None), |turn| turn.phase),
            start,
            end: self.members.len(),
        });
        Ok(())
    }

    /// All slices that were added. `tick` is called often.
    #[must_use]
    pub fn finish(self, tick: &dyn Fn()) -> SliceSets {
        let SliceSetsBuilder { numbers, mut slices, mut members, registry, .. } = self;
        slices.sort_by(|a, b| a.slice_id.cmp(&b.slice_id));
        let mut turns = Vec::with_capacity(numbers.len());
        let mut by_appearance = vec![0; numbers.len()];
        for (id, number) in numbers {
            tick();
            by_appearance[number as usize] = turns.len() as u32;
            turns.push(id);
        }
        // Counted, summed up to where each turn's holders begin, then filled slice by slice: what
        // was a beginning has moved to the end.
        let mut holder_ends = vec![0; turns.len()];
        for turn in &mut members {
            tick();
            *turn = by_appearance[*turn as usize];
            holder_ends[*turn as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut holder_ends {
            sum += std::mem::replace(end, sum);
        }
        let mut holders = vec![0; members.len()];
        for (number, slice) in slices.iter().enumerate() {
            tick();
            for turn in &members[slice.start..slice.end] {
                let end = &mut holder_ends[*turn as usize];
                holders[*end] = number as u32;
                *end += 1;
            }
        }
        SliceSets { slices, turns, members, holders, holder_ends, registry_hash: registry.finish() }
    }
}

impl SliceSets {
    /// How many slices there are; their numbers are below it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slices.len()
    }

    /// Whether there is no slice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The slice_id of a slice.
    #[must_use]
    pub fn slice_id(&self, slice: usize) -> &str {
        &self.slices[slice].slice_id
    }

    /// The phase of a slice's anchor.
    #[must_use]
    pub fn anchor_phase(&self, slice: usize) -> Phase {
        self.slices[slice].anchor_phase
    }

    /// The overlaps of a slice with those after it whose jaccard is at least this, each with the
    /// other slice's number, ascending. `tick` is called for each turn of the slice.
    pub fn overlaps(
        &self,
        slice: usize,
        min_jaccard: f32,
        tick: &dyn Fn(),
    ) -> impl Iterator<Item = (usize, Overlap<'_>)> {
        let size = |slice: &SliceSet| slice.end - slice.start;
        let a = &self.slices[slice];
        let mut shared = vec![0u32; self.len() - slice];
        for turn in &self.members[a.start..a.end] {
            tick();
            for holder in self.holders_of(*turn as usize).iter().rev() {
                match (*holder as usize).checked_sub(slice) {
                    Some(0) | None => break,
                    Some(after) => shared[after] += 1,
                }
            }
        }
        let pairs = self.slices[slice..].iter().zip(shared).enumerate();
        pairs.filter(|(_, (_, shared))| *shared > 0).filter_map(move |(after, (b, shared))| {
            let either = size(a) + size(b) - shared as usize;
            let jaccard = shared as f32 / either as f32;
            let (slice_a, slice_b) = (a.slice_id.as_str(), b.slice_id.as_str());
            let overlap = Overlap { slice_a, slice_b, shared_turns: shared, jaccard };
            (jaccard >= min_jaccard).then_some((slice + after, overlap))
        })
    }

    /// How many turns are in any slice; their numbers are below it.
    #[must_use]
    pub fn turn_count(&self) -> usize {
        self.turns.len()
    }

    /// The influence of a turn; turns are numbered by ascending id.
    #[must_use]
    pub fn influence(&self, turn: usize) -> Influence {
        let holders = self.holders_of(turn);
        let mut phases = PhaseCounts::default();
        for holder in holders {
            phases.0[self.anchor_phase(*holder as usize) as usize] += 1;
        }
        Influence {
            turn_id: self.turns[turn],
            slice_count: holders.len() as u32,
            slice_fraction: holders.len() as f32 / self.len() as f32,
            phase_distribution: phases,
            is_bridge: phases.0.iter().filter(|count| **count > 0).count() > 1,
        }
    }

    /// The slices that hold a turn, ascending.
    fn holders_of(&self, turn: usize) -> &[u32] {
        let start = if turn == 0 { 0 } else { self.holder_ends[turn - 1] };
        &self.holders[start..self.holder_ends[turn]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::SlicePolicy;
    use crate::slice::{SelectedTurn, Slice};
    use crate::turn::{StoredTurn, Turn};

    #[test]
    fn slices_hold_no_more_turns_together_than_allowed() {
        let id = TurnId::from_u128(1);
        let turn = Turn::from(StoredTurn {
            id,
            session_id: None,
            role: None,
            phase: None,
            salience: None,
            trajectory_depth: None,
            trajectory_sibling_order: None,
            trajectory_homogeneity: None,
            trajectory_temporal: None,
            trajectory_complexity: None,
            created_at: None,
            content_hash: None,
        });
        let turns = vec![SelectedTurn {
            turn: turn.into(),
            distance: 0,
            priority: 1.0,
            selection_order: 0,
        }];
        let slice = Slice { anchor: id, turns, edges: Vec::new() };
        let export = Export::new(&slice, &SlicePolicy::default());
        let mut builder = SliceSetsBuilder { most_members: 2, ..SliceSetsBuilder::default() };
        // The same turn counts in each slice it is in.
        assert_eq!(builder.push(&export), Ok(()));
        assert_eq!(builder.push(&export), Ok(()));
        assert_eq!(builder.push(&export), Err(TooManyTurns));
        assert_eq!(builder.finish(&|| {}).len(), 2);
    }
}
