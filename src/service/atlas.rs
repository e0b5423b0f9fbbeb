//! Slices at many anchors of one snapshot, side by side.

use kernel::evidence::slice_sets::{SliceSets, SliceSetsBuilder};
use kernel::export::document::Export;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::{Limits, Slicer};

use super::reader::GraphReader;
use crate::pg::error::SqlError;
use crate::pg::session::check_interrupts;

/// The slices at some anchors, all of one snapshot.
pub struct AnchoredSlices {
    /// What read them.
    pub reader: GraphReader,
    /// Ascending, once each.
    pub anchors: Vec<TurnId>,
    /// The slices, in the order of the anchors.
    pub slices: SliceSets,
}

impl AnchoredSlices {
    /// Takes the slice at each of these anchors.
    ///
    /// # Errors
    /// 54000 when the slices have too many turns together; else as for a single slice.
    pub fn at(mut anchors: Vec<TurnId>, policy: &SlicePolicy) -> Result<Self, SqlError> {
        anchors.sort_unstable();
        anchors.dedup();
        let reader = GraphReader::for_policy(policy)?;
        let slices = reader.ask(policy.needs(), |store| {
            let mut slicer = Slicer::new(store, policy, Limits::default());
            let mut slices = SliceSetsBuilder::default();
            let mut next = &anchors[..];
            while let Some((anchor, others)) = next.split_first() {
                let slice = slicer.slice_before(*anchor, others)?;
                slices.push(&Export::new(&slice, policy, &check_interrupts))?;
                next = others;
            }
            Ok::<_, SqlError>(slices.finish(&check_interrupts)?)
        })?;
        Ok(AnchoredSlices { reader, anchors, slices })
    }
}
