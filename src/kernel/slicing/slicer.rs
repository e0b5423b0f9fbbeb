//! Takes slices of one snapshot, one after the other.

use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::slicing::admission::AdmittingStore;
use crate::slicing::expansion::Expansion;
pub use crate::slicing::fetched::FetchedGraph;
use crate::slicing::fetched::Reach;
pub use crate::slicing::neighbourhood::Limits;
use crate::slicing::neighbourhood::Neighbourhood;
use crate::slicing::observer::Observer;
use crate::slicing::slice::Slice;
pub use crate::slicing::slice::SliceError;
use crate::slicing::store::GraphStore;

/// The slice of `policy` at `anchor`.
///
/// # Errors
/// See [`SliceError`].
pub fn slice<S: GraphStore>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
) -> Result<Slice, SliceError<S::Error>> {
    Slicer::new(store, policy, Limits::default()).slice(anchor)
}

/// Takes slices of one snapshot. What they share is read once.
pub struct Slicer<'a, S> {
    around: Neighbourhood<'a, S>,
    policy: &'a SlicePolicy,
    limits: Limits,
}

impl<'a, S: GraphStore> Slicer<'a, S> {
    /// A slicer over a store that always answers the same.
    pub fn new(store: &'a mut S, policy: &'a SlicePolicy, limits: Limits) -> Self {
        Slicer::reusing(FetchedGraph::default(), store, policy, limits)
    }

    /// A slicer that reuses what another fetched from a store that answers the same, with the same limits. The store
    /// answers what the policy needs.
    pub fn reusing(
        fetched: FetchedGraph,
        store: &'a mut S,
        policy: &'a SlicePolicy,
        limits: Limits,
    ) -> Self {
        let store = AdmittingStore::new(store, policy.admission());
        let fetched = fetched.for_policy(policy);
        Slicer { around: Neighbourhood::new(store, limits, fetched), policy, limits }
    }

    /// What it fetched.
    #[must_use]
    pub fn into_fetched(self) -> FetchedGraph {
        self.around.fetched
    }

    /// The slice at `anchor`.
    ///
    /// # Errors
    /// See [`SliceError`].
    pub fn slice(&mut self, anchor: TurnId) -> Result<Slice, SliceError<S::Error>> {
        self.slice_observed(anchor, &mut ())
    }

    /// The slice at `anchor`, before slices at the `next` anchors. The neighbours of at most [`Limits::anchors`] of
    /// them are read together. Rows that were read before may be dropped, so that memory is bounded.
    ///
    /// # Errors
    /// See [`SliceError`].
    pub fn slice_before(
        &mut self,
        anchor: TurnId,
        next: &[TurnId],
    ) -> Result<Slice, SliceError<S::Error>> {
        self.around.make_room();
        if self.around.fetched.window.is_over() {
            let anchors = std::iter::once(anchor).chain(next.iter().copied());
            let together =
                self.around.fetched.window.begin_next(1 + next.len(), self.limits.anchors);
            self.read_around(anchors.take(together));
        }
        let slice = self.slice(anchor);
        self.around.fetched.window.take(slice.as_ref().ok().map(|slice| slice.turns.len()));
        slice
    }

    fn read_around(&mut self, anchors: impl Iterator<Item = TurnId>) {
        if !self.policy.expands() || self.policy.needs().anchor {
            return;
        }
        let (reach, steps) = (Reach::of(self.policy), self.policy.max_radius());
        let unread = anchors.filter(|id| !self.around.fetched.is_loaded(*id, reach));
        let unread: Vec<TurnId> = unread.collect();
        let around = unread.len() * self.limits.nearby.min(self.policy.max_nodes());
        if self.around.load(unread, reach, steps, around).is_err() {
            // The slice that has the error will raise it.
            self.around.fetched.reset();
        }
    }

    /// [`Slicer::slice`] with an observer.
    ///
    /// # Errors
    /// See [`SliceError`].
    pub fn slice_observed<O: Observer>(
        &mut self,
        anchor: TurnId,
        observer: &mut O,
    ) -> Result<Slice, SliceError<S::Error>> {
        let slice = self.expansion(observer).slice(anchor);
        self.forget_where_incomplete(&slice);
        slice
    }

    /// The expansion alone, without edges and rows; its only result are the calls of the observer. A selected turn that
    /// is stored more than once is not noticed.
    ///
    /// # Errors
    /// See [`SliceError`].
    pub fn observe<O: Observer>(
        &mut self,
        anchor: TurnId,
        observer: &mut O,
    ) -> Result<(), SliceError<S::Error>> {
        self.around.make_room();
        let expanded = self.expansion(observer).run(anchor);
        self.forget_where_incomplete(&expanded);
        expanded
    }

    /// Forgets what was fetched after an error that may have ended a fetch before it was complete.
    fn forget_where_incomplete<T>(&mut self, result: &Result<T, SliceError<S::Error>>) {
        let is_complete = matches!(
            result,
            Ok(_) | Err(SliceError::AnchorNotFound(_) | SliceError::DuplicateTurn(_))
        );
        // At another anchor, other turns may exist.
        if !is_complete || self.policy.needs().anchor {
            self.around.fetched.reset();
        }
    }

    fn expansion<'b, O: Observer>(&'b mut self, observer: &'b mut O) -> Expansion<'b, 'a, S, O> {
        self.around.fetched.begin_slice();
        Expansion::new(&mut self.around, observer, self.policy, self.limits)
    }
}
