//! The expansion (SlicePolicy v1 §5), reading neighbours in batches.
//!
//! The neighbours of a turn do not depend on the state of the expansion, so [`crate::slicing::neighbourhood`] fetches
//! them ahead, in batches. Turns are selected one by one, in the order of §5.2.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use foldhash::HashSet;

use crate::graph::edge::Edge;
use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
pub use crate::slicing::fetched::FetchedGraph;
use crate::slicing::fetched::{Children, sibling_order};
pub use crate::slicing::neighbourhood::Limits;
use crate::slicing::neighbourhood::Neighbourhood;
use crate::slicing::observer::{Observer, Via};
use crate::slicing::score::Rank;
pub use crate::slicing::slice::SliceError;
use crate::slicing::slice::{SelectedTurn, Slice};
use crate::slicing::store::{GraphStore, ScoredTurn};
use crate::slicing::window::MOST_ANCHORS;

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

/// How many of the next anchors [`Slicer::slice_before`] uses.
pub const LOOKED_AHEAD: usize = MOST_ANCHORS - 1;

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

    /// A slicer that reuses what another fetched from a store that answers the same, with the same limits.
    ///
    /// The policy may be another where it admits the same turns and edges, as all of SlicePolicy v1 do.
    pub fn reusing(
        fetched: FetchedGraph,
        store: &'a mut S,
        policy: &'a SlicePolicy,
        limits: Limits,
    ) -> Self {
        let fetched = fetched.for_siblings(policy.sibling_limit());
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

    /// The slice at `anchor`, where slices at the `next` anchors follow: the surroundings of some of them are read
    /// together. What was fetched before may be forgotten, so that memory is bounded.
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
            let together = self.around.fetched.window.begin_next(1 + next.len());
            self.read_around(anchors.take(together));
        }
        let slice = self.slice(anchor);
        self.around.fetched.window.take(slice.as_ref().ok().map(|slice| slice.turns.len()));
        slice
    }

    fn read_around(&mut self, anchors: impl Iterator<Item = TurnId>) {
        if !expands(self.policy) {
            return;
        }
        let (siblings, steps) = (self.policy.sibling_limit(), self.policy.max_radius());
        let unread = anchors.filter(|id| !self.around.fetched.is_loaded(*id, siblings));
        let unread: Vec<TurnId> = unread.collect();
        let around = unread.len() * self.limits.nearby.min(self.policy.max_nodes());
        if self.around.load(unread, siblings, steps, around).is_err() {
            // The slice that has the error will raise it.
            self.around.fetched = FetchedGraph::default();
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
        if !is_complete {
            self.around.fetched = FetchedGraph::default();
        }
    }

    fn expansion<'b, O>(&'b mut self, observer: &'b mut O) -> Expansion<'b, 'a, S, O> {
        self.around.fetched.begin_slice();
        Expansion {
            around: &mut self.around,
            observer,
            policy: self.policy,
            limits: self.limits,
            selected: Vec::new(),
            visited: HashSet::default(),
            frontier: BTreeSet::new(),
            parents_with_dropped: HashSet::default(),
        }
    }
}

struct Expansion<'a, 's, S, O> {
    around: &'a mut Neighbourhood<'s, S>,
    observer: &'a mut O,
    policy: &'a SlicePolicy,
    limits: Limits,
    /// In selection order.
    selected: Vec<Rank>,
    visited: HashSet<TurnId>,
    /// Best candidate first.
    frontier: BTreeSet<Rank>,
    /// Expanded wide turns, some of whose children were dropped: those children count as visited.
    parents_with_dropped: HashSet<TurnId>,
}

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    fn slice(&mut self, anchor: TurnId) -> Result<Slice, SliceError<S::Error>> {
        self.run(anchor)?;
        let edges = self.edges()?;
        let turns = self.turns()?;
        Ok(Slice { anchor, turns, edges })
    }

    /// The main loop of §5.2.
    fn run(&mut self, anchor: TurnId) -> Result<(), SliceError<S::Error>> {
        let siblings = self.policy.sibling_limit();
        if expands(self.policy) && !self.around.fetched.is_loaded(anchor, siblings) {
            self.load(vec![anchor], self.policy.max_radius())?;
        }
        let anchor = self.around.turn(anchor)?.ok_or(SliceError::AnchorNotFound(anchor))?;
        self.discover(self.ranks([anchor], 0), Via::Anchor, anchor.id)?;
        while self.selected.len() < self.policy.max_nodes() {
            // The frontier has no turn beyond max_radius.
            let Some(candidate) = self.frontier.pop_first() else {
                break;
            };
            self.selected.push(candidate);
            self.around.store.check_interrupts();
            if self.observer.selected(candidate).is_break() {
                break;
            }
            let wanted = self.budget_left() > 0 || O::SEES_ALL;
            if candidate.distance < self.policy.max_radius() && wanted {
                self.expand(candidate)?;
            }
        }
        Ok(())
    }

    fn expand(&mut self, candidate: Rank) -> Result<(), SliceError<S::Error>> {
        self.load_neighbours(candidate)?;
        let distance = candidate.distance + 1;

        let fetched = &self.around.fetched;
        let parents = fetched.parents(candidate.id).iter();
        let parents = parents.filter_map(|edge| fetched.scored(edge.parent));
        self.discover(self.ranks(parents, distance), Via::Parent, candidate.id)?;

        match self.around.fetched.children(candidate.id) {
            Children::All(turns) => {
                let children = self.ranks(turns.iter().copied(), distance);
                self.discover(children, Via::Child, candidate.id)?;
            }
            Children::Wide(_) => self.discover_wide(candidate.id, distance)?,
        }

        let siblings = self.siblings(candidate.id);
        let siblings = siblings.iter().map(|turn| self.rank(turn, candidate.distance)).collect();
        self.discover(siblings, Via::Sibling, candidate.id)?;
        if O::SEES_ALL {
            self.report_not_discovered(candidate);
        }

        // Candidates beyond the number of nodes left can never be selected.
        while self.frontier.len() > self.budget_left() {
            self.frontier.pop_last();
        }
        self.check_held(0)
    }

    /// Puts the turns that were not visited before into the frontier, each with its first rank in `found`.
    fn discover(
        &mut self,
        mut found: Vec<Rank>,
        via: Via,
        from: TurnId,
    ) -> Result<(), SliceError<S::Error>> {
        found.retain(|rank| !self.visited.contains(&rank.id));
        self.remove_dropped_children(&mut found)?;
        for rank in found {
            if self.visited.insert(rank.id) {
                self.observer.discovered(rank, via, from);
                self.frontier.insert(rank);
            }
        }
        Ok(())
    }

    /// Reports to the observer what expanding this turn did not discover.
    fn report_not_discovered(&mut self, expanded: Rank) {
        for edge in self.around.fetched.parents(expanded.id) {
            if self.around.fetched.scored(edge.parent).is_none() {
                self.observer.missing_parent(edge.parent, expanded);
            }
            if self.policy.sibling_limit() > 0 {
                let siblings = self.around.fetched.children(edge.parent).in_sibling_order();
                self.observer.siblings(edge.parent, siblings, expanded);
            }
        }
    }

    /// Discovers the best children of a wide turn, and drops those that the budget cannot reach.
    fn discover_wide(&mut self, parent: TurnId, distance: u32) -> Result<(), SliceError<S::Error>> {
        let mut keep = self.budget_left();
        loop {
            let (best, cut) = self.best_children(parent, distance, keep)?;
            let mut reachable = best.clone();
            self.remove_dropped_children(&mut reachable)?;
            if cut && reachable.len() < self.budget_left() {
                // Some of the best had been dropped with another wide parent: more are needed.
                keep *= 2;
                self.check_held(2 * keep)?;
                continue;
            }
            self.discover(reachable, Via::Child, parent)?;
            if cut {
                self.parents_with_dropped.insert(parent);
            }
            return Ok(());
        }
    }

    /// The best `keep` children that were not visited yet, best first, and whether there are more.
    fn best_children(
        &mut self,
        parent: TurnId,
        distance: u32,
        keep: usize,
    ) -> Result<(Vec<Rank>, bool), SliceError<S::Error>> {
        let Expansion { around, policy, visited, .. } = self;
        let mut best: Vec<Rank> = Vec::new();
        let mut worst_kept = None;
        let mut prune = |best: &mut Vec<Rank>| {
            // Of several rows of one turn the best counts.
            best.sort_unstable_by_key(|rank| (rank.id, *rank));
            best.dedup_by_key(|rank| rank.id);
            best.sort_unstable();
            if best.len() > keep {
                best.truncate(keep);
                worst_kept = best.last().copied();
            }
            worst_kept
        };
        let mut bound = None;
        around
            .store
            .children(&[parent], &mut |(_, turn)| {
                let rank = Rank::of(policy, &turn, distance);
                if bound.is_none_or(|bound| rank < bound) && !visited.contains(&rank.id) {
                    best.push(rank);
                    if best.len() >= keep + keep.max(256) {
                        bound = prune(&mut best);
                    }
                }
                ControlFlow::Continue(())
            })
            .map_err(SliceError::Store)?;
        let cut = prune(&mut best).is_some();
        Ok((best, cut))
    }

    /// Removes the children of parents whose children were dropped: they count as visited.
    fn remove_dropped_children(
        &mut self,
        found: &mut Vec<Rank>,
    ) -> Result<(), SliceError<S::Error>> {
        if self.parents_with_dropped.is_empty() || found.is_empty() {
            return Ok(());
        }
        let ids: Vec<TurnId> = found.iter().map(|rank| rank.id).collect();
        self.around.load_parents(&ids)?;
        let fetched = &self.around.fetched;
        found.retain(|rank| {
            !fetched
                .parents(rank.id)
                .iter()
                .any(|edge| self.parents_with_dropped.contains(&edge.parent))
        });
        Ok(())
    }

    /// The turns that share a parent with this one, as many as the policy allows.
    fn siblings(&self, id: TurnId) -> Vec<ScoredTurn> {
        let limit = self.policy.sibling_limit();
        if limit == 0 {
            return Vec::new();
        }
        // The first siblings of all are among the first of each parent, which may include the turn itself.
        let best = limit.saturating_add(1);
        let fetched = &self.around.fetched;
        let mut siblings: Vec<ScoredTurn> = fetched
            .parents(id)
            .iter()
            .flat_map(|edge| fetched.children(edge.parent).in_sibling_order().iter().take(best))
            .filter(|turn| turn.id != id)
            .copied()
            .collect();
        siblings.sort_unstable_by_key(sibling_order);
        siblings.dedup_by_key(|turn| turn.id);
        siblings.truncate(limit);
        siblings
    }

    /// Fetches what expanding the candidate needs, and the same for the best of the frontier.
    fn load_neighbours(&mut self, candidate: Rank) -> Result<(), SliceError<S::Error>> {
        let siblings = self.policy.sibling_limit();
        if self.around.fetched.is_loaded(candidate.id, siblings) {
            return Ok(());
        }
        let most = self.limits.batch.min(self.budget_left()).max(1);
        let batch: Vec<TurnId> = std::iter::once(&candidate)
            .chain(self.frontier.iter().take(most - 1))
            .filter(|rank| rank.distance < self.policy.max_radius())
            .map(|rank| rank.id)
            .filter(|id| !self.around.fetched.is_loaded(*id, siblings))
            .collect();
        let steps = self.policy.max_radius() - candidate.distance;
        self.load(batch, steps)
    }

    fn load(&mut self, turns: Vec<TurnId>, steps: u32) -> Result<(), SliceError<S::Error>> {
        let around = self.limits.nearby.min(self.budget_left());
        self.around.load(turns, self.policy.sibling_limit(), steps, around)
    }

    /// Every edge between selected turns.
    fn edges(&mut self) -> Result<Vec<Edge>, SliceError<S::Error>> {
        let ids: Vec<TurnId> = self.selected.iter().map(|rank| rank.id).collect();
        self.around.load_parents(&ids)?;
        let within: HashSet<TurnId> = ids.iter().copied().collect();
        let fetched = &self.around.fetched;
        let mut edges: Vec<Edge> = ids
            .iter()
            .flat_map(|child| fetched.parents(*child).iter().map(move |edge| (child, edge)))
            .filter(|(_, edge)| within.contains(&edge.parent))
            .map(|(child, edge)| Edge {
                parent: edge.parent,
                child: *child,
                edge_type: edge.edge_type,
            })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        Ok(edges)
    }

    /// The selected turns with their whole rows, ascending by id.
    fn turns(&mut self) -> Result<Vec<SelectedTurn>, SliceError<S::Error>> {
        let ids: Vec<TurnId> = self.selected.iter().map(|rank| rank.id).collect();
        let rows = self.around.rows(&ids)?;
        let ranked = self.selected.iter().zip(rows).enumerate();
        let mut turns: Vec<SelectedTurn> = ranked
            .map(|(order, (rank, turn))| SelectedTurn {
                turn,
                distance: rank.distance,
                priority: rank.priority(),
                selection_order: order as u32,
            })
            .collect();
        turns.sort_unstable_by_key(|selected| selected.turn.id);
        Ok(turns)
    }

    /// The ranks of these turns. Those of a turn that is stored more than once come best first.
    fn ranks(&self, turns: impl IntoIterator<Item = ScoredTurn>, distance: u32) -> Vec<Rank> {
        let turns = turns.into_iter().map(|turn| self.rank(&turn, distance));
        let mut ranks: Vec<Rank> = turns.collect();
        let further = self.around.fetched.further_scores(ranks.iter().map(|rank| rank.id));
        if !further.is_empty() {
            ranks.extend(further.iter().map(|turn| self.rank(turn, distance)));
            ranks.sort_unstable();
        }
        ranks
    }

    fn rank(&self, turn: &ScoredTurn, distance: u32) -> Rank {
        Rank::of(self.policy, turn, distance)
    }

    fn budget_left(&self) -> usize {
        self.policy.max_nodes() - self.selected.len()
    }

    fn check_held(&self, more: usize) -> Result<(), SliceError<S::Error>> {
        if self.around.fetched.held() + self.visited.len() + more > self.limits.held {
            return Err(SliceError::TooManyIds(self.limits.held));
        }
        Ok(())
    }
}

/// Whether a slice can have more than its anchor.
fn expands(policy: &SlicePolicy) -> bool {
    policy.max_radius() > 0 && policy.max_nodes() > 1
}
