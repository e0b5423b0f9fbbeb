//! Fetches the graph around the anchors ahead of the expansion, in few batches.
//!
//! In a conversation without branches, turns are read level by level up to the radius. Where there are branches, only
//! what the best candidates need is read. What is fetched ahead changes no result: what is missing is fetched when it
//! is needed.

use std::ops::ControlFlow;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};

use crate::graph::edge::{EdgeType, EdgeTypes};
use crate::graph::turn::{Turn, TurnId};
use crate::slicing::admission::AdmittingStore;
use crate::slicing::fetched::{Child, ChildList, FetchedGraph, Links, Reach};
use crate::slicing::slice::SliceError;
use crate::slicing::store::{ChildEdge, GraphStore, Neighbour, ParentEdge, ScoredTurn};

/// Bounds on the memory of an expansion and on its batches. They do not change a result, but may make it an error.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most frontier candidates whose neighbours are fetched together.
    pub batch: usize,
    /// Most anchors whose surroundings are fetched together.
    pub anchors: usize,
    /// Most turns around an anchor or a candidate that are fetched with it.
    pub nearby: usize,
    /// A turn with more edges than this is crowded: its edges are fetched for itself alone.
    pub crowded: usize,
    /// A turn with more children than this is wide: its children are read again when it is expanded, and not all held.
    pub wide: usize,
    /// Most whole rows that are held for further slices.
    pub rows: usize,
    /// Most ids held for a slice.
    pub held: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            batch: 24,
            anchors: 1024,
            nearby: 128,
            crowded: 128,
            wide: 1024,
            rows: 40_000,
            held: 1_000_000,
        }
    }
}

pub(crate) struct Neighbourhood<'a, S> {
    pub(crate) store: AdmittingStore<'a, S>,
    limits: Limits,
    pub(crate) fetched: FetchedGraph,
}

impl<'a, S: GraphStore> Neighbourhood<'a, S> {
    pub(crate) fn new(store: AdmittingStore<'a, S>, limits: Limits, fetched: FetchedGraph) -> Self {
        Neighbourhood { store, limits, fetched }
    }

    /// Forgets what was fetched where it has grown large. Within a window, whose anchors would have to be read again,
    /// twice as much may be held.
    pub(crate) fn make_room(&mut self) {
        self.fetched.begin_slice();
        let Limits { held, rows, .. } = self.limits;
        let holds = |times| {
            self.fetched.held_before > times * (held / 10) || self.fetched.rows > times * rows
        };
        if self.fetched.window.is_over() && holds(1) {
            self.fetched.forget();
        } else if holds(2) {
            self.fetched.reset();
        }
    }

    /// The turn, or `None` where there is none.
    pub(crate) fn turn(&mut self, id: TurnId) -> Result<Option<ScoredTurn>, SliceError<S::Error>> {
        self.load_turns(vec![id], true)?;
        Ok(self.fetched.scored(id))
    }

    /// Looks these turns up.
    pub(crate) fn look_up(&mut self, ids: &[TurnId]) -> Result<(), SliceError<S::Error>> {
        self.load_turns(ids.to_vec(), false)
    }

    /// Fetches what expanding these turns needs. The nearest of them is `steps` below the radius. Where there are
    /// hardly any branches, up to `around` turns around them are fetched as well.
    pub(crate) fn load(
        &mut self,
        mut of: Vec<TurnId>,
        reach: Reach,
        steps: u32,
        around: usize,
    ) -> Result<(), SliceError<S::Error>> {
        let mut seen: HashSet<TurnId> = HashSet::default();
        of.retain(|id| seen.insert(*id));
        let read = self.read_around(&of, reach, steps, around, &mut seen)?;
        self.add(seen, read)?;
        // What is left are the crowded turns.
        self.load_parents(&of)?;
        let edges = of.iter().flat_map(|id| self.fetched.parents(*id));
        let parents: Vec<TurnId> = edges.map(|edge| edge.parent).collect();
        let mut children_of = if reach.children { of } else { Vec::new() };
        if reach.siblings > 0 {
            children_of.extend(&parents);
        }
        self.load_turns(parents, false)?;
        self.check_held(0)?;
        self.load_children(children_of, reach.siblings)
    }

    /// The edges of these turns and, level by level, of those around them. Adds to `seen` the turns at the ends
    /// of the edges of those within the radius.
    fn read_around(
        &mut self,
        of: &[TurnId],
        reach: Reach,
        steps: u32,
        around: usize,
        seen: &mut HashSet<TurnId>,
    ) -> Result<EdgesRead, SliceError<S::Error>> {
        let fetched = of.iter().copied().filter(|id| self.fetched.has_parents(*id));
        let fetched = fetched.map(|id| (id, self.fetched.parents(id).to_vec())).collect();
        let Reach { children, siblings } = reach;
        let children_of = if children { of.to_vec() } else { Vec::new() };
        let mut level = self.read_edges(of.to_vec(), children_of, 0)?;
        level.append(&mut EdgesRead { parents: fetched, children: Vec::new() });
        let mut read = EdgesRead::default();
        for step in 1..=steps {
            let mut parents: Vec<TurnId> = level.parent_ends().collect();
            let mut child_ends: Vec<TurnId> = level.child_ends().collect();
            read.append(&mut level);
            parents.retain(|id| seen.insert(*id));
            child_ends.retain(|id| seen.insert(*id));
            if !read.is_unbranched() {
                // The children of parents are certain to be needed.
                if step == 1 && siblings > 0 {
                    parents.truncate(of.len() * self.limits.nearby);
                    level = self.read_edges(Vec::new(), parents, read.edge_count())?;
                }
                break;
            }
            let mut next = [parents.clone(), child_ends].concat();
            next.truncate((of.len() + around).saturating_sub(read.turn_count()));
            parents.truncate(next.len());
            if next.is_empty() {
                break;
            }
            // Turns at the radius are not expanded, but their children can be siblings of turns that are.
            let children_of = match (children && step < steps, siblings) {
                (true, _) => next.clone(),
                (false, 0) => Vec::new(),
                (false, _) => parents,
            };
            self.store.check_interrupts();
            level = self.read_edges(next, children_of, read.edge_count())?;
        }
        read.append(&mut level);
        Ok(read)
    }

    /// The edges into and out of those of these turns that are neither fetched nor crowded. `pending` is the number of
    /// edges that were read before and are not added yet.
    fn read_edges(
        &mut self,
        mut parents_of: Vec<TurnId>,
        mut children_of: Vec<TurnId>,
        pending: usize,
    ) -> Result<EdgesRead, SliceError<S::Error>> {
        let room = self.limits.held.saturating_sub(self.fetched.held() + pending);
        parents_of.retain(|id| !self.fetched.has_parents(*id));
        children_of.retain(|id| !self.fetched.has_children(*id));
        let Neighbourhood { store, limits, fetched } = self;
        let mut max_skipped = limits.crowded.saturating_mul(16);
        loop {
            parents_of.retain(|id| !fetched.is_crowded(*id));
            children_of.retain(|id| !fetched.is_crowded(*id));
            if parents_of.is_empty() && children_of.is_empty() {
                return Ok(EdgesRead::default());
            }
            let (mut parents, mut children) = (Lists::new(&parents_of), Lists::new(&children_of));
            let (mut count, mut skipped) = (0, 0);
            store
                .neighbours(&parents_of, &children_of, &mut |(turn, neighbour)| {
                    let fits = match neighbour {
                        Neighbour::Parent(edge) => parents.push(turn, edge, limits.crowded),
                        Neighbour::Child(edge) => children.push(turn, edge, limits.crowded),
                    };
                    if fits {
                        count += 1;
                    } else {
                        fetched.mark_crowded(turn);
                        skipped += 1;
                    }
                    continue_while(count <= room && skipped <= max_skipped)
                })
                .map_err(SliceError::Store)?;
            if count > room {
                return Err(SliceError::TooManyIds(limits.held));
            }
            // Where very many edges were skipped, the reading was stopped. It begins again without the crowded turns.
            if skipped <= max_skipped {
                let (mut parents, mut children) = (parents.lists, children.lists);
                parents.retain(|(turn, _)| !fetched.is_crowded(*turn));
                children.retain(|(turn, _)| !fetched.is_crowded(*turn));
                return Ok(EdgesRead { parents, children });
            }
            // More each time, as the other turns' edges are read again.
            max_skipped = max_skipped.saturating_mul(2);
        }
    }

    /// Looks up the turns in `seen` and the children that were read, and adds the edges.
    fn add(&mut self, seen: HashSet<TurnId>, read: EdgesRead) -> Result<(), SliceError<S::Error>> {
        // A whole row costs little more than what scores it, unless only few of very many turns will be selected.
        let whole =
            read.edge_count() <= 3 * read.list_count() && self.fetched.rows < self.limits.rows;
        self.load_turns(seen.into_iter().chain(read.child_ends()).collect(), whole)?;
        self.fetched.reserve_edges(read.turn_count());
        for (turn, parents) in read.parents {
            self.fetched.add_parents(turn, parents);
        }
        for (turn, children) in read.children {
            let child = |edge: &ChildEdge, turn| Child { turn, types: edge.edge_type.into() };
            let existing = children
                .iter()
                .filter_map(|edge| self.fetched.scored(edge.child).map(|turn| child(edge, turn)));
            let mut existing: Vec<Child> = existing.collect();
            if self.fetched.has_duplicates() {
                for edge in &children {
                    let further = self.fetched.further_scores(std::iter::once(edge.child));
                    existing.extend(further.into_iter().map(|turn| child(edge, turn)));
                }
            }
            self.fetched.add_children(turn, ChildList::new(existing));
        }
        self.check_held(0)
    }

    /// Looks up turns: their whole rows, or only what scores them.
    fn load_turns(
        &mut self,
        mut ids: Vec<TurnId>,
        whole: bool,
    ) -> Result<(), SliceError<S::Error>> {
        let Neighbourhood { store, fetched, .. } = self;
        fetched.look_up(&mut ids);
        if ids.is_empty() {
            return Ok(());
        }
        let answered = if whole {
            store.turns(&ids, &mut |(turn, facts)| {
                fetched.add_row(turn, facts);
                ControlFlow::Continue(())
            })
        } else {
            store.scored(&ids, &mut |turn| {
                fetched.add_scored(turn);
                ControlFlow::Continue(())
            })
        };
        answered.map_err(SliceError::Store)
    }

    /// Fetches the edges into these turns.
    pub(crate) fn load_parents(&mut self, of: &[TurnId]) -> Result<(), SliceError<S::Error>> {
        let mut of: Vec<TurnId> =
            of.iter().copied().filter(|id| !self.fetched.has_parents(*id)).collect();
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let room = self.limits.held.saturating_sub(self.fetched.held());
        let mut parents = Lists::new(&of);
        let mut count = 0;
        self.store
            .neighbours(&of, &[], &mut |(turn, neighbour)| {
                if let Neighbour::Parent(edge) = neighbour {
                    parents.push(turn, edge, usize::MAX);
                    count += 1;
                }
                continue_while(count <= room)
            })
            .map_err(SliceError::Store)?;
        self.check_held(count)?;
        for (turn, parents) in parents.lists {
            self.fetched.add_parents(turn, parents);
        }
        Ok(())
    }

    /// Fetches the turns at the other ends of these turns' edges, but in a direction in which they are more than
    /// [`MAX_LINKS`], and looks them up.
    pub(crate) fn load_links(
        &mut self,
        of: impl IntoIterator<Item = TurnId>,
    ) -> Result<(), SliceError<S::Error>> {
        let mut of: Vec<TurnId> =
            of.into_iter().filter(|id| !self.fetched.has_links(*id)).collect();
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let (mut parents_of, mut children_of) = (of.clone(), of.clone());
        let mut max_skipped = self.limits.crowded.saturating_mul(16);
        // Where very many edges were skipped, the reading was stopped. It begins again without those turns.
        let (parents, children) = loop {
            let (mut parents, mut children) = (Ends::new(&parents_of), Ends::new(&children_of));
            let mut skipped = 0;
            self.store.check_interrupts();
            self.store
                .neighbours(&parents_of, &children_of, &mut |(turn, neighbour)| {
                    let has_room = match neighbour {
                        Neighbour::Parent(ParentEdge { parent, edge_type }) => {
                            parents.push(turn, parent, edge_type)
                        }
                        Neighbour::Child(ChildEdge { child, edge_type }) => {
                            children.push(turn, child, edge_type)
                        }
                    };
                    skipped += usize::from(!has_room);
                    continue_while(skipped <= max_skipped)
                })
                .map_err(SliceError::Store)?;
            if skipped <= max_skipped {
                break (parents, children);
            }
            parents_of.retain(|id| !parents.has_too_many(*id));
            children_of.retain(|id| !children.has_too_many(*id));
            max_skipped = max_skipped.saturating_mul(2);
        };
        let (mut parents, mut children) = (parents.lists, children.lists);
        let mut ends: Vec<TurnId> = of.clone();
        for turn in of {
            let links = Links {
                parents: parents.remove(&turn).flatten(),
                children: children.remove(&turn).flatten(),
            };
            let lists = links.parents.iter().chain(&links.children);
            ends.extend(lists.flatten().map(|(end, _)| *end));
            self.fetched.add_links(turn, links);
        }
        self.check_held(0)?;
        self.load_turns(ends, false)?;
        self.check_held(0)
    }

    fn load_children(
        &mut self,
        mut of: Vec<TurnId>,
        siblings: usize,
    ) -> Result<(), SliceError<S::Error>> {
        of.retain(|id| !self.fetched.has_children(*id));
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let room = self.limits.held.saturating_sub(self.fetched.held());
        // One more than the siblings: a turn is among its parent's children.
        let siblings = siblings.saturating_add(1).max(self.limits.wide / 2);
        let mut lists: Vec<ChildList> = Vec::new();
        lists.resize_with(of.len(), ChildList::default);
        let mut count = 0;
        let wide = self.limits.wide.max(2);
        self.store
            .children(&of, &mut |(index, turn, edge_type)| {
                count += 1;
                let child = Child { turn, types: edge_type.into() };
                count -= lists[index].push(child, wide, siblings);
                continue_while(count <= room)
            })
            .map_err(SliceError::Store)?;
        self.check_held(count)?;
        for (turn, children) in of.into_iter().zip(lists) {
            self.fetched.add_children(turn, children);
        }
        Ok(())
    }

    /// The whole rows of these turns, in their order; the first that has several is an error.
    pub(crate) fn rows(&mut self, ids: &[TurnId]) -> Result<Vec<Rc<Turn>>, SliceError<S::Error>> {
        let Neighbourhood { store, fetched, .. } = self;
        let missing: Vec<TurnId> =
            ids.iter().copied().filter(|id| fetched.row(*id).is_none()).collect();
        if !missing.is_empty() {
            let mut keep = |(turn, facts)| {
                fetched.add_row(turn, facts);
                ControlFlow::Continue(())
            };
            store.turns(&missing, &mut keep).map_err(SliceError::Store)?;
        }
        if let Some(duplicate) = ids.iter().find(|id| fetched.is_duplicate(**id)) {
            return Err(SliceError::DuplicateTurn(*duplicate));
        }
        let row = |id: &TurnId| fetched.row(*id).cloned().ok_or(SliceError::Inconsistent(*id));
        ids.iter().map(row).collect()
    }

    fn check_held(&self, more: usize) -> Result<(), SliceError<S::Error>> {
        if self.fetched.held() + more > self.limits.held {
            return Err(SliceError::TooManyIds(self.limits.held));
        }
        Ok(())
    }
}

/// Edges that were read and not added yet.
#[derive(Default)]
struct EdgesRead {
    parents: Vec<(TurnId, Vec<ParentEdge>)>,
    children: Vec<(TurnId, Vec<ChildEdge>)>,
}

impl EdgesRead {
    fn append(&mut self, other: &mut Self) {
        self.parents.append(&mut other.parents);
        self.children.append(&mut other.children);
    }

    fn parent_ends(&self) -> impl Iterator<Item = TurnId> {
        self.parents.iter().flat_map(|(_, edges)| edges).map(|edge| edge.parent)
    }

    fn child_ends(&self) -> impl Iterator<Item = TurnId> {
        self.children.iter().flat_map(|(_, edges)| edges).map(|edge| edge.child)
    }

    /// How many edges there are, each counted at the turn it was read for.
    fn edge_count(&self) -> usize {
        let parents: usize = self.parents.iter().map(|(_, edges)| edges.len()).sum();
        let children: usize = self.children.iter().map(|(_, children)| children.len()).sum();
        parents + children
    }

    /// How many lists they are in.
    fn list_count(&self) -> usize {
        self.parents.len() + self.children.len()
    }

    /// The least number of turns whose edges were read.
    fn turn_count(&self) -> usize {
        self.parents.len().max(self.children.len())
    }

    /// Whether the turns have hardly more than a parent and a child each.
    fn is_unbranched(&self) -> bool {
        4 * self.edge_count() <= 7 * self.list_count()
    }
}

/// In recall, a turn with more different parents, or children, is not walked from in that direction.
pub(crate) const MAX_LINKS: usize = 64;

/// The different turns at the other ends of each turn's edges; `None` of a turn where they are too many.
struct Ends {
    lists: HashMap<TurnId, Option<Vec<(TurnId, EdgeTypes)>>>,
}

impl Ends {
    fn new(of: &[TurnId]) -> Self {
        Ends { lists: of.iter().map(|id| (*id, Some(Vec::new()))).collect() }
    }

    /// Adds an edge of a turn; returns whether it had room. The turn itself is not counted.
    fn push(&mut self, of: TurnId, end: TurnId, edge_type: EdgeType) -> bool {
        let Some(list) = self.lists.get_mut(&of) else { return true };
        let Some(ends) = list else { return false };
        if let Some((_, types)) = ends.iter_mut().find(|(id, _)| *id == end) {
            *types = types.union(edge_type.into());
            return true;
        }
        let different = ends.iter().filter(|(id, _)| *id != of).count();
        if end != of && different == MAX_LINKS {
            *list = None;
            return false;
        }
        ends.push((end, edge_type.into()));
        true
    }

    fn has_too_many(&self, of: TurnId) -> bool {
        self.lists.get(&of).is_some_and(Option::is_none)
    }
}

/// A list for each turn.
struct Lists<T> {
    lists: Vec<(TurnId, Vec<T>)>,
    /// The place of each turn in `lists`; empty where there are few, as a search is quicker.
    places: HashMap<TurnId, usize>,
}

impl<T> Lists<T> {
    fn new(of: &[TurnId]) -> Self {
        let lists = of.iter().map(|id| (*id, Vec::new())).collect();
        let places = of.iter().enumerate().map(|(place, id)| (*id, place));
        Lists { lists, places: if of.len() > 8 { places.collect() } else { HashMap::default() } }
    }

    /// Adds to a turn's list, unless it has `most` items already; returns whether it had room.
    fn push(&mut self, of: TurnId, item: T, most: usize) -> bool {
        let place = if self.places.is_empty() {
            self.lists.iter().position(|(turn, _)| *turn == of)
        } else {
            self.places.get(&of).copied()
        };
        let Some(place) = place else { return true };
        let list = &mut self.lists[place].1;
        let fits = list.len() < most;
        if fits {
            list.push(item);
        }
        fits
    }
}

fn continue_while(condition: bool) -> ControlFlow<()> {
    if condition { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
