//! The expansion (SlicePolicy v1 §5), reading neighbours in batches.
//!
//! What a turn's neighbours are does not depend on the state of the expansion, so the neighbours
//! of the best frontier candidates are fetched together with those of the candidate at hand. The
//! order of selection is that of §5.2, turn by turn.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;

use crate::edge::Edge;
use crate::observer::{Observer, Via};
use crate::policy::SlicePolicy;
use crate::score::{Rank, priority};
use crate::slice::{SelectedTurn, Slice};
use crate::store::{GraphStore, ParentEdge, ScoredTurn};
use crate::turn::{Turn, TurnId};

/// Why there is no slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceError<E> {
    /// The anchor is not in the graph, or hidden.
    AnchorNotFound(TurnId),
    /// The graph holds this id more than once.
    DuplicateTurn(TurnId),
    /// More neighbours than the given number would have to be held in memory.
    TooManyIds(usize),
    /// A turn was there at first and not later: the store did not keep to one snapshot.
    Inconsistent(TurnId),
    /// The store failed.
    Store(E),
}

impl<E: fmt::Display> fmt::Display for SliceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnchorNotFound(id) => write!(f, "anchor turn {id} does not exist"),
            Self::DuplicateTurn(id) => write!(f, "turn {id} is stored more than once"),
            Self::TooManyIds(limit) => {
                write!(f, "slice would hold more than {limit} neighbouring turns in memory")
            }
            Self::Inconsistent(id) => write!(f, "turn {id} disappeared while it was sliced"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for SliceError<E> {}

/// Bounds on what an expansion holds and how it reads. They change no result.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most turns whose neighbours are fetched together.
    pub batch: usize,
    /// A turn with more children than this is wide: its children are streamed, not held.
    pub wide: usize,
    /// Most ids held at once.
    pub held: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { batch: 24, wide: 1024, held: 1_000_000 }
    }
}

/// The slice of `policy` at `anchor`.
///
/// # Errors
/// See [`SliceError`].
pub fn slice<S: GraphStore>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
) -> Result<Slice, SliceError<S::Error>> {
    slice_within(store, policy, anchor, Limits::default())
}

/// [`slice`] with other bounds.
///
/// # Errors
/// See [`SliceError`].
pub fn slice_within<S: GraphStore>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
    limits: Limits,
) -> Result<Slice, SliceError<S::Error>> {
    slice_observed(store, policy, anchor, limits, &mut ())
}

/// [`slice_within`] that tells an observer what happens.
///
/// # Errors
/// See [`SliceError`].
pub fn slice_observed<S: GraphStore, O: Observer>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
    limits: Limits,
    observer: &mut O,
) -> Result<Slice, SliceError<S::Error>> {
    let mut expansion = Expansion::new(store, policy, limits, observer);
    expansion.run(anchor)?;
    let edges = expansion.edges()?;
    let turns = expansion.turns()?;
    Ok(Slice { anchor, turns, edges })
}

/// The expansion alone, without edges and rows: what there is to know the observer is told.
///
/// # Errors
/// See [`SliceError`].
pub fn observe<S: GraphStore, O: Observer>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
    limits: Limits,
    observer: &mut O,
) -> Result<(), SliceError<S::Error>> {
    Expansion::new(store, policy, limits, observer).run(anchor)
}

struct Expansion<'a, S, O> {
    store: &'a mut S,
    observer: &'a mut O,
    policy: &'a SlicePolicy,
    limits: Limits,
    /// In selection order.
    selected: Vec<Rank>,
    visited: HashSet<TurnId>,
    /// Best candidate first.
    frontier: BTreeSet<Rank>,
    parents: HashMap<TurnId, Vec<ParentEdge>>,
    children: HashMap<TurnId, Children>,
    /// Expanded wide turns of which some children were cut off: those children count as visited.
    cut_parents: HashSet<TurnId>,
    /// Entries in `parents` and `children`.
    held: usize,
}

/// What is kept of a turn's children, once each, in sibling order.
enum Children {
    All(Vec<ScoredTurn>),
    /// Only the children that can be somebody's siblings.
    Wide(Vec<ScoredTurn>),
}

impl Children {
    fn in_sibling_order(&self) -> &[ScoredTurn] {
        let (Children::All(turns) | Children::Wide(turns)) = self;
        turns
    }
}

/// Siblings come by salience, highest first, then by id.
fn sibling_order(turn: &ScoredTurn) -> (Reverse<u32>, TurnId) {
    // Salience is in [0, 1], where the bits of a binary32 order as the numbers do.
    (Reverse(turn.salience.to_bits()), turn.id)
}

impl<'a, S: GraphStore, O: Observer> Expansion<'a, S, O> {
    fn new(store: &'a mut S, policy: &'a SlicePolicy, limits: Limits, observer: &'a mut O) -> Self {
        Expansion {
            store,
            observer,
            policy,
            limits,
            selected: Vec::new(),
            visited: HashSet::new(),
            frontier: BTreeSet::new(),
            parents: HashMap::new(),
            children: HashMap::new(),
            cut_parents: HashSet::new(),
            held: 0,
        }
    }

    /// The main loop of §5.2.
    fn run(&mut self, anchor: TurnId) -> Result<(), SliceError<S::Error>> {
        let anchor = self.find(anchor)?;
        self.discover(vec![self.rank(&anchor, 0)], Via::Anchor, anchor.id)?;
        while self.selected.len() < self.policy.max_nodes() {
            // Nothing farther than max_radius is ever put into the frontier.
            let Some(candidate) = self.frontier.pop_first() else {
                break;
            };
            self.selected.push(candidate);
            self.store.check_interrupts();
            if self.observer.selected(candidate).is_break() {
                break;
            }
            let wanted = self.budget_left() > 0 || O::LISTENS;
            if candidate.distance < self.policy.max_radius() && wanted {
                self.expand(candidate)?;
            }
        }
        Ok(())
    }

    fn find(&mut self, id: TurnId) -> Result<ScoredTurn, SliceError<S::Error>> {
        let mut found = Vec::new();
        self.store
            .scored(&[id], &mut |turn| {
                found.push(turn);
                ControlFlow::Continue(())
            })
            .map_err(SliceError::Store)?;
        match found[..] {
            [] => Err(SliceError::AnchorNotFound(id)),
            [turn] => Ok(turn),
            _ => Err(SliceError::DuplicateTurn(id)),
        }
    }

    fn expand(&mut self, candidate: Rank) -> Result<(), SliceError<S::Error>> {
        self.load_neighbours(candidate)?;
        let distance = candidate.distance + 1;

        let parents = &self.parents[&candidate.id];
        let parents = parents.iter().filter_map(|edge| edge.turn.as_ref());
        let parents = parents.map(|turn| self.rank(turn, distance)).collect();
        self.discover(parents, Via::Parent, candidate.id)?;

        match &self.children[&candidate.id] {
            Children::All(turns) => {
                let children = turns.iter().map(|turn| self.rank(turn, distance)).collect();
                self.discover(children, Via::Child, candidate.id)?;
            }
            Children::Wide(_) => self.discover_wide(candidate.id, distance)?,
        }

        let siblings = self.siblings(candidate.id);
        let siblings = siblings.iter().map(|turn| self.rank(turn, candidate.distance)).collect();
        self.discover(siblings, Via::Sibling, candidate.id)?;
        if O::LISTENS {
            self.tell_passed_over(candidate);
        }

        // What ranks behind the whole remaining budget can never be selected.
        while self.frontier.len() > self.budget_left() {
            self.frontier.pop_last();
        }
        self.check_held(0)
    }

    /// Puts turns that were not visited before into the frontier.
    fn discover(
        &mut self,
        mut found: Vec<Rank>,
        via: Via,
        from: TurnId,
    ) -> Result<(), SliceError<S::Error>> {
        found.retain(|rank| !self.visited.contains(&rank.id));
        self.drop_cut_children(&mut found)?;
        for rank in found {
            let new = self.visited.insert(rank.id);
            if !new && !self.frontier.contains(&rank) {
                // One id with two scores in one answer.
                return Err(SliceError::DuplicateTurn(rank.id));
            }
            if new {
                self.observer.discovered(rank, via, from);
            }
            self.frontier.insert(rank);
        }
        Ok(())
    }

    /// Tells the observer what expanding this turn did not discover.
    fn tell_passed_over(&mut self, expanded: Rank) {
        for edge in &self.parents[&expanded.id] {
            if edge.turn.is_none() {
                self.observer.missing_parent(edge.parent, expanded);
            }
            if self.policy.sibling_limit() > 0 {
                let siblings = self.children[&edge.parent].in_sibling_order();
                self.observer.siblings(edge.parent, siblings, expanded);
            }
        }
    }

    /// Discovers the best children of a wide turn and cuts off those that no budget can reach.
    fn discover_wide(&mut self, parent: TurnId, distance: u32) -> Result<(), SliceError<S::Error>> {
        let mut keep = self.budget_left();
        loop {
            let (best, cut) = self.best_children(parent, distance, keep)?;
            let mut reachable = best.clone();
            self.drop_cut_children(&mut reachable)?;
            if cut && reachable.len() < self.budget_left() {
                // Other wide parents hide some of the best: look further down.
                keep *= 2;
                self.check_held(2 * keep)?;
                continue;
            }
            self.discover(reachable, Via::Child, parent)?;
            if cut {
                self.cut_parents.insert(parent);
            }
            return Ok(());
        }
    }

    /// The best `keep` children not yet visited, best first, and whether there are more.
    fn best_children(
        &mut self,
        parent: TurnId,
        distance: u32,
        keep: usize,
    ) -> Result<(Vec<Rank>, bool), SliceError<S::Error>> {
        let Expansion { store, policy, visited, .. } = self;
        let mut best: Vec<Rank> = Vec::new();
        let mut worst_kept = None;
        let mut prune = |best: &mut Vec<Rank>| {
            best.sort_unstable();
            best.dedup();
            if best.len() > keep {
                best.truncate(keep);
                worst_kept = best.last().copied();
            }
            worst_kept
        };
        let mut bound = None;
        store
            .children(&[parent], &mut |(_, turn)| {
                let rank = rank(policy, &turn, distance);
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

    /// Takes out the children of cut parents: they count as visited.
    fn drop_cut_children(&mut self, found: &mut Vec<Rank>) -> Result<(), SliceError<S::Error>> {
        if self.cut_parents.is_empty() || found.is_empty() {
            return Ok(());
        }
        let ids: Vec<TurnId> = found.iter().map(|rank| rank.id).collect();
        self.load_parents(&ids)?;
        found.retain(|rank| {
            !self.parents[&rank.id].iter().any(|edge| self.cut_parents.contains(&edge.parent))
        });
        Ok(())
    }

    /// The turns that share a parent with this one, as many as the policy allows.
    fn siblings(&self, id: TurnId) -> Vec<ScoredTurn> {
        let limit = self.policy.sibling_limit();
        if limit == 0 {
            return Vec::new();
        }
        // The best of all are among the best of each parent, beside the turn itself.
        let best = limit.saturating_add(1);
        let mut siblings: Vec<ScoredTurn> = self.parents[&id]
            .iter()
            .flat_map(|edge| self.children[&edge.parent].in_sibling_order().iter().take(best))
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
        if self.is_loaded(candidate.id) {
            return Ok(());
        }
        let to_expand = self.limits.batch.min(self.budget_left()).max(1);
        let batch: Vec<TurnId> = std::iter::once(&candidate)
            .chain(self.frontier.iter().filter(|rank| rank.distance < self.policy.max_radius()))
            .map(|rank| rank.id)
            .filter(|id| !self.is_loaded(*id))
            .take(to_expand)
            .collect();
        self.load_parents(&batch)?;
        let mut children_of = batch.clone();
        if self.policy.sibling_limit() > 0 {
            let edges = batch.iter().flat_map(|id| &self.parents[id]);
            children_of.extend(edges.map(|edge| edge.parent));
        }
        self.load_children(children_of)
    }

    fn is_loaded(&self, id: TurnId) -> bool {
        self.children.contains_key(&id)
            && self.parents.get(&id).is_some_and(|edges| {
                self.policy.sibling_limit() == 0
                    || edges.iter().all(|edge| self.children.contains_key(&edge.parent))
            })
    }

    fn load_parents(&mut self, of: &[TurnId]) -> Result<(), SliceError<S::Error>> {
        let mut of: Vec<TurnId> =
            of.iter().copied().filter(|id| !self.parents.contains_key(id)).collect();
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let room = self.limits.held.saturating_sub(self.held);
        let mut lists = vec![Vec::new(); of.len()];
        let mut count = 0;
        self.store
            .parents(&of, &mut |(index, edge)| {
                lists[index].push(edge);
                count += 1;
                continue_while(count <= room)
            })
            .map_err(SliceError::Store)?;
        self.check_held(count)?;
        self.held += count;
        self.parents.extend(of.into_iter().zip(lists));
        Ok(())
    }

    fn load_children(&mut self, mut of: Vec<TurnId>) -> Result<(), SliceError<S::Error>> {
        of.retain(|id| !self.children.contains_key(id));
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let room = self.limits.held.saturating_sub(self.held);
        // One more than a turn's siblings: the turn itself stands in its parent's list.
        let siblings = self.policy.sibling_limit().saturating_add(1).max(self.limits.wide / 2);
        let mut lists: Vec<ChildList> = Vec::new();
        lists.resize_with(of.len(), ChildList::default);
        let mut count = 0;
        let wide = self.limits.wide.max(2);
        self.store
            .children(&of, &mut |(index, turn)| {
                count += 1;
                count -= lists[index].push(turn, wide, siblings);
                continue_while(count <= room)
            })
            .map_err(SliceError::Store)?;
        self.check_held(count)?;
        for (id, list) in of.into_iter().zip(lists) {
            let children = list.finish().map_err(SliceError::DuplicateTurn)?;
            self.held += children.in_sibling_order().len();
            self.children.insert(id, children);
        }
        Ok(())
    }

    /// Every edge between selected turns, seen from its child.
    fn edges(&mut self) -> Result<Vec<Edge>, SliceError<S::Error>> {
        let ids: Vec<TurnId> = self.selected.iter().map(|rank| rank.id).collect();
        self.load_parents(&ids)?;
        let within: HashSet<TurnId> = ids.iter().copied().collect();
        let mut edges: Vec<Edge> = ids
            .iter()
            .flat_map(|child| self.parents[child].iter().map(move |edge| (child, edge)))
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
        let mut rows: HashMap<TurnId, Turn> = HashMap::with_capacity(ids.len());
        let mut twice = None;
        self.store
            .turns(&ids, &mut |turn| {
                twice = rows.insert(turn.id, turn).map(|turn| turn.id);
                continue_while(twice.is_none())
            })
            .map_err(SliceError::Store)?;
        if let Some(id) = twice {
            return Err(SliceError::DuplicateTurn(id));
        }
        let mut turns = Vec::with_capacity(ids.len());
        for (order, rank) in self.selected.iter().enumerate() {
            turns.push(SelectedTurn {
                turn: rows.remove(&rank.id).ok_or(SliceError::Inconsistent(rank.id))?,
                distance: rank.distance,
                priority: rank.priority(),
                selection_order: order as u32,
            });
        }
        turns.sort_unstable_by_key(|selected| selected.turn.id);
        Ok(turns)
    }

    fn rank(&self, turn: &ScoredTurn, distance: u32) -> Rank {
        rank(self.policy, turn, distance)
    }

    fn budget_left(&self) -> usize {
        self.policy.max_nodes() - self.selected.len()
    }

    fn check_held(&self, more: usize) -> Result<(), SliceError<S::Error>> {
        if self.held + self.visited.len() + more > self.limits.held {
            return Err(SliceError::TooManyIds(self.limits.held));
        }
        Ok(())
    }
}

fn rank(policy: &SlicePolicy, turn: &ScoredTurn, distance: u32) -> Rank {
    Rank::new(priority(policy, turn.phase, turn.salience, distance), distance, turn.id)
}

fn continue_while(condition: bool) -> ControlFlow<()> {
    if condition { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// A turn's children as they arrive.
#[derive(Default)]
struct ChildList {
    turns: Vec<ScoredTurn>,
    wide: bool,
}

impl ChildList {
    /// Adds a child; beyond `wide` children only the first `siblings` in sibling order are kept.
    /// Returns how many entries were dropped.
    fn push(&mut self, turn: ScoredTurn, wide: usize, siblings: usize) -> usize {
        self.turns.push(turn);
        let held = self.turns.len();
        if held <= wide || held < 2 * siblings {
            return 0;
        }
        // Duplicates by edge type are no children of their own, so sort them out first.
        self.sort();
        if self.turns.len() > siblings {
            self.wide = true;
            self.turns.truncate(siblings);
        }
        held - self.turns.len()
    }

    fn sort(&mut self) {
        self.turns.sort_unstable_by_key(sibling_order);
        // Equal entries are one child reached by several edges; unequal ones are kept to be found.
        self.turns.dedup();
    }

    /// The children, or the id that came with two scores.
    fn finish(mut self) -> Result<Children, TurnId> {
        self.sort();
        let mut ids: Vec<TurnId> = self.turns.iter().map(|turn| turn.id).collect();
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(pair[0]),
            None if self.wide => Ok(Children::Wide(self.turns)),
            None => Ok(Children::All(self.turns)),
        }
    }
}
