//! Which turns many slices have in common.
//!
//! Turns and slices are numbered. A slice is a list of turn numbers, and each turn has the list of the slices that
//! contain it. Pairs of slices are never held in memory.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use foldhash::fast::RandomState;
use serde::{Serialize, Serializer};

use crate::export::document::Export;
use crate::graph::turn::{Phase, TurnId};
use crate::interrupts::Interrupts;
use crate::json::canonical::ArrayHasher;

/// The most turns of all slices together, each counted in every slice it is in. With [`MAX_TURNS`] it keeps the memory
/// below 256 MiB.
pub const MAX_MEMBERSHIPS: usize = 10_000_000;
/// The most different turns of all slices together.
pub const MAX_TURNS: usize = 1_000_000;

/// Slices of one policy, by ascending slice_id.
pub struct SliceSets {
    slices: Vec<SliceSet>,
    /// Every turn of a slice, ascending.
    turns: Vec<TurnId>,
    /// The turn numbers of all slices, slice by slice.
    members: Vec<u32>,
    /// The slice numbers of all turns, turn by turn, ascending.
    holders: Vec<u32>,
    /// Where the slices of each turn end in `holders`.
    holder_ends: Vec<u32>,
    /// The fingerprint of the registry of slices, by ascending anchor.
    pub registry_hash: String,
}

/// One of the slices.
struct SliceSet {
    /// 16 hex digits.
    slice_id: [u8; 16],
    anchor_phase: Phase,
    /// Its part of `members`.
    start: u32,
    end: u32,
}

impl SliceSet {
    fn slice_id(&self) -> &str {
        std::str::from_utf8(&self.slice_id).unwrap_or_default()
    }

    fn members(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Two slices that share turns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SliceOverlap<'a> {
    /// The lower slice_id.
    pub slice_a: &'a str,
    /// The higher slice_id.
    pub slice_b: &'a str,
    /// Turns in both, 1 or more.
    pub shared_turns: u32,
    /// Turns in both divided by turns in either.
    pub jaccard: f32,
}

/// In how many slices a turn is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Influence {
    /// The turn.
    pub turn_id: TurnId,
    /// Slices that hold it, 1 or more.
    pub slice_count: u32,
    /// The same divided by the number of slices.
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

/// Why slices cannot be held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyTurns {
    /// They hold more than [`MAX_MEMBERSHIPS`] turns.
    Memberships,
    /// They hold more than [`MAX_TURNS`] different turns.
    Different,
}

impl fmt::Display for TooManyTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memberships => {
                write!(f, "slices would hold more than {MAX_MEMBERSHIPS} turns together")
            }
            Self::Different => {
                write!(f, "slices would hold more than {MAX_TURNS} different turns together")
            }
        }
    }
}

impl std::error::Error for TooManyTurns {}

/// Collects slices.
pub struct SliceSetsBuilder {
    /// Numbers in the order of appearance.
    numbers: HashMap<TurnId, u32, RandomState>,
    slices: Vec<SliceSet>,
    members: Vec<u32>,
    most_members: usize,
    most_turns: usize,
    registry: ArrayHasher,
}

impl Default for SliceSetsBuilder {
    fn default() -> Self {
        SliceSetsBuilder {
            numbers: HashMap::default(),
            slices: Vec::new(),
            members: Vec::new(),
            most_members: MAX_MEMBERSHIPS,
            most_turns: MAX_TURNS,
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
            return Err(TooManyTurns::Memberships);
        }
        for turn in &export.turns {
            // The limits keep numbers and places within 32 bits.
            let next = self.numbers.len() as u32;
            self.members.push(*self.numbers.entry(turn.id).or_insert(next));
            if self.numbers.len() > self.most_turns {
                return Err(TooManyTurns::Different);
            }
        }
        self.registry.push(&RegistryEntry {
            anchor_turn_id: export.anchor_turn_id,
            slice_id: &export.slice_id,
            turn_count: export.turns.len(),
            edge_count: export.edges.len(),
            policy_params_hash: &export.policy_params_hash,
        });
        let anchor = export.turns.iter().find(|turn| turn.id == export.anchor_turn_id);
        let mut slice_id = [b'0'; 16];
        slice_id.iter_mut().zip(export.slice_id.bytes()).for_each(|(to, from)| *to = from);
        self.slices.push(SliceSet {
            slice_id,
            anchor_phase: anchor.map_or(Phase::from_stored(None), |turn| turn.phase),
            start: start as u32,
            end: self.members.len() as u32,
        });
        Ok(())
    }

    /// All slices that were added. `check_interrupts` is called often.
    #[must_use]
    pub fn finish(self, check_interrupts: &dyn Fn()) -> SliceSets {
        let interrupts = Interrupts::new(check_interrupts);
        let SliceSetsBuilder { numbers, mut slices, mut members, registry, .. } = self;
        slices.sort_unstable_by(|a, b| {
            interrupts.item();
            (a.slice_id, a.start).cmp(&(b.slice_id, b.start))
        });
        let mut by_appearance = vec![0; numbers.len()];
        let mut turns: Vec<(TurnId, u32)> = numbers.into_iter().collect();
        turns.sort_unstable_by(|a, b| {
            interrupts.item();
            a.cmp(b)
        });
        for (place, (_, number)) in turns.iter().enumerate() {
            interrupts.item();
            by_appearance[*number as usize] = place as u32;
        }
        // A counting sort: the counts are summed up to the start of each turn's slices, and filling moves the start to
        // the end.
        let mut holder_ends = vec![0; turns.len()];
        for turn in &mut members {
            interrupts.item();
            *turn = by_appearance[*turn as usize];
            holder_ends[*turn as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut holder_ends {
            interrupts.item();
            sum += std::mem::replace(end, sum);
        }
        let mut holders = vec![0; members.len()];
        for (number, slice) in slices.iter().enumerate() {
            for turn in &members[slice.members()] {
                interrupts.item();
                let end = &mut holder_ends[*turn as usize];
                holders[*end as usize] = number as u32;
                *end += 1;
            }
        }
        let turns = turns.into_iter().map(|(id, _)| id).collect();
        let registry_hash = registry.finish();
        SliceSets { slices, turns, members, holders, holder_ends, registry_hash }
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
        self.slices[slice].slice_id()
    }

    /// The phase of a slice's anchor.
    #[must_use]
    pub fn anchor_phase(&self, slice: usize) -> Phase {
        self.slices[slice].anchor_phase
    }

    /// The overlaps of a slice with those after it whose jaccard is at least this, each with the
    /// other slice's number, ascending. `check_interrupts` is called often.
    pub fn overlaps(
        &self,
        slice: usize,
        min_jaccard: f32,
        check_interrupts: &dyn Fn(),
    ) -> impl Iterator<Item = (usize, SliceOverlap<'_>)> {
        let interrupts = Interrupts::new(check_interrupts);
        // Each other slice is looked at, whether it shares turns or not: callers come here once for each slice.
        interrupts.check();
        let size = |slice: &SliceSet| (slice.end - slice.start) as usize;
        let a = &self.slices[slice];
        let mut shared = vec![0u32; self.len() - slice];
        for turn in &self.members[a.members()] {
            for holder in self.holders_of(*turn as usize).iter().rev() {
                interrupts.item();
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
            let (slice_a, slice_b) = (a.slice_id(), b.slice_id());
            let overlap = SliceOverlap { slice_a, slice_b, shared_turns: shared, jaccard };
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
        &self.holders[start as usize..self.holder_ends[turn] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::turn::{StoredTurn, Turn};
    use crate::policy::SlicePolicy;
    use crate::slicing::slice::{Part, SelectedTurn, Slice};

    #[test]
    fn slices_hold_no_more_turns_together_than_allowed() {
        let id = TurnId::from_u128(1);
        let turn = Turn::from(StoredTurn { id, ..StoredTurn::default() });
        let turns = vec![SelectedTurn {
            turn: turn.into(),
            distance: 0,
            priority: 1.0,
            part: Part::Anchor,
            seed: None,
            micros: 0,
            tokens: 0,
            selection_order: 0,
        }];
        let slice = Slice { anchor: id, turns, edges: Vec::new(), pins_left_out: Vec::new() };
        let policy = SlicePolicy::default();
        let export = Export::new(&slice, &policy, &|| {});
        let mut builder = SliceSetsBuilder { most_members: 2, ..SliceSetsBuilder::default() };
        // The same turn counts in each slice it is in.
        assert_eq!(builder.push(&export), Ok(()));
        assert_eq!(builder.push(&export), Ok(()));
        assert_eq!(builder.push(&export), Err(TooManyTurns::Memberships));
        assert_eq!(builder.finish(&|| {}).len(), 2);
        let mut builder = SliceSetsBuilder { most_turns: 0, ..SliceSetsBuilder::default() };
        assert_eq!(builder.push(&export), Err(TooManyTurns::Different));
    }
}
