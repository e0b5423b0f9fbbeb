//! Slices at many anchors of one snapshot, side by side.

use kernel::evidence::atlas::{AtlasInput, AtlasManifest};
use kernel::evidence::slice_sets::{Influence, SliceSets, SliceSetsBuilder};
use kernel::export::document::Export;
use kernel::graph::turn::TurnId;
use kernel::json::canonical::json_text;
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::Slicer;
use pgrx::PgSqlErrorCode;

use super::limits::limits;
use super::reader::GraphReader;
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;

/// The longest text that says how the anchors were chosen.
const MAX_SELECTION_POLICY_BYTES: usize = 64 * 1024;

/// The slices at some anchors, all of one snapshot.
pub struct AnchoredSlices {
    reader: GraphReader,
    /// Ascending, once each.
    anchors: Vec<TurnId>,
    /// In the order of the anchors.
    slices: SliceSets,
}

impl AnchoredSlices {
    /// Takes the slice at each of these anchors.
    ///
    /// # Errors
    /// 22004 when an anchor is null; 54000 when the slices have too many turns together; else as for a single slice.
    pub fn at(anchors: Vec<Option<TurnId>>, policy: &SlicePolicy) -> Result<Self, SqlError> {
        let anchors: Option<Vec<TurnId>> = anchors.into_iter().collect();
        let mut anchors = anchors.ok_or_else(|| {
            let code = PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED;
            SqlError::new(code, "anchors must not be null").word(Word::InvalidTurnId)
        })?;
        anchors.sort_unstable();
        anchors.dedup();
        let reader = GraphReader::for_policy(policy)?;
        let slices = reader.ask_settled(policy.needs(), |store| {
            let mut slicer = Slicer::new(store, policy, limits());
            let mut slices = SliceSetsBuilder::default();
            let mut next = &anchors[..];
            while let Some((anchor, others)) = next.split_first() {
                let slice = slicer.slice_before(*anchor, others)?;
                slices.push(&Export::new(&slice, policy, &check_interrupts))?;
                next = others;
            }
            Ok::<_, SqlError>(slices.finish(&check_interrupts))
        })?;
        Ok(AnchoredSlices { reader, anchors, slices })
    }

    /// The overlaps of each slice with those after it whose jaccard is at least this.
    pub fn overlaps(self, min_jaccard: f32) -> impl Iterator<Item = Overlap> {
        let slices = self.slices;
        (0..slices.len()).flat_map(move |slice| {
            let overlaps = slices.overlaps(slice, min_jaccard, &check_interrupts);
            let overlaps = overlaps.map(|(_, overlap)| {
                memory::check();
                Overlap {
                    slice_a: overlap.slice_a.to_owned(),
                    slice_b: overlap.slice_b.to_owned(),
                    shared_turns: overlap.shared_turns,
                    jaccard: overlap.jaccard,
                }
            });
            overlaps.collect::<Vec<_>>()
        })
    }

    /// How many slices each of their turns is in.
    pub fn influences(self) -> impl Iterator<Item = Influence> {
        let slices = self.slices;
        (0..slices.turn_count()).map(move |turn| slices.influence(turn))
    }

    /// The manifest of their atlas, as JSON.
    ///
    /// # Errors
    /// As any reading; 54000 where `selection_policy` is longer than [`MAX_SELECTION_POLICY_BYTES`].
    pub fn manifest(
        &self,
        selection_policy: &str,
        min_jaccard: f32,
        centroids: usize,
    ) -> Result<String, SqlError> {
        let bytes = selection_policy.len();
        if bytes > MAX_SELECTION_POLICY_BYTES {
            return Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "selection_policy of {bytes} bytes is longer than {MAX_SELECTION_POLICY_BYTES}"
                ),
            )
            .word(Word::InvalidSelectionPolicy)
            .hint("Give a name for how the anchors were chosen."));
        }
        let input = AtlasInput {
            snapshot: &self.reader.snapshot()?,
            anchors: &self.anchors,
            selection_policy,
            slices: &self.slices,
            min_jaccard,
            centroids,
        };
        Ok(json_text(&AtlasManifest::new(&input, &check_interrupts)))
    }
}

/// Two slices that have turns in common.
pub struct Overlap {
    /// The lower slice_id.
    pub slice_a: String,
    /// The higher slice_id.
    pub slice_b: String,
    /// Turns in both, 1 or more.
    pub shared_turns: u32,
    /// Turns in both divided by turns in either.
    pub jaccard: f32,
}

/// The snapshot of the whole graph, as JSON.
///
/// # Errors
/// As any reading.
pub fn snapshot() -> Result<String, SqlError> {
    Ok(json_text(&GraphReader::current()?.snapshot()?))
}

/// A least jaccard within its range.
///
/// # Errors
/// 22023.
pub fn checked_jaccard(min_jaccard: f32) -> Result<f32, SqlError> {
    if (0.0..=1.0).contains(&min_jaccard) {
        return Ok(min_jaccard);
    }
    let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
    let message = format!("min_jaccard must be between 0 and 1, not {min_jaccard}");
    Err(SqlError::new(code, message).word(Word::InvalidMinJaccard))
}

/// A number of centroids, which is not negative.
///
/// # Errors
/// 22023.
pub fn checked_centroids(centroids: i32) -> Result<usize, SqlError> {
    usize::try_from(centroids).map_err(|_| {
        let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        let message = format!("centroids must not be negative, not {centroids}");
        SqlError::new(code, message).word(Word::InvalidCentroids)
    })
}
