//! What is fetched of the graph around the anchors, fetched ahead in few batches.
//!
//! In a conversation without branches turns are read level by level towards the radius. Where there are
//! branches, only what the best candidates need is. What was fetched decides no result: it is there when it is
//! asked for, or is fetched then.

use std::ops::ControlFlow;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};

use crate::graph::turn::{Turn, TurnId};
use crate::slicing::fetched::{ChildList, FetchedGraph};
use crate::slicing::slice::SliceError;
use crate::slicing::store::{GraphStore, Neighbour, ParentEdge, ScoredTurn};

/// Bounds on what an expansion holds and how it reads. They change no result.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most frontier candidates whose neighbours are fetched together.
    pub batch: usize,
    /// Most turns around an anchor or a candidate that are fetched with it.
    pub nearby: usize,
    /// A turn with more edges than this is crowded: they are not fetched with those of others.
    pub crowded: usize,
    /// A turn with more children than this is wide: its children are streamed, not held.
    pub wide: usize,
    /// Most rows of turns that are held, whether selected or not, for this slice and the next.
    pub rows: usize,
    /// Most ids held for a slice.
    pub held: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { batch: 24, nearby: 128, crowded: 128, wide: 1024, rows: 40_000, held: 1_000_000 }
    }
}

pub(crate) struct Neighbourhood<'a, S> {
    pub(crate) store: &'a mut S,
    limits: Limits,
    pub(crate) fetched: FetchedGraph,
}

impl<'a, S: GraphStore> Neighbourhood<'a, S> {
    pub(crate) fn new(store: &'a mut S, limits: Limits, fetched: FetchedGraph) -> Self {
        Neighbourhood { store, limits, fetched }
    }

    /// Forgets what is fetched when it is much: in the midst of a window, which would be read in vain, only when it
    /// is twice as much.
    pub(crate) fn make_room(&mut self) {
        self.fetched.begin_slice();
        let Limits { held, rows, .. } = self.limits;
        let holds =
            |times| self.fetched.kept > times * (held / 10) || self.fetched.rows > times * rows;
        if self.fetched.window.is_over() && holds(1) {
            self.fetched.forget();
        } else if holds(2) {
            self.fetched = FetchedGraph::default();
        }
    }

    /// The turn, or `None` where there is none.
    pub(crate) fn turn(&mut self, id: TurnId) -> Result<Option<ScoredTurn>, SliceError<S::Error>> {
        self.load_turns(vec![id], true)?;
        Ok(self.fetched.scored(id))
    }

    /// Loads these turns, the nearest of which has `steps` more to the radius, and, where there are
    /// hardly any branches, up to so many turns around them.
    pub(crate) fn load(
        &mut self,
        mut of: Vec<TurnId>,
        siblings: usize,
        steps: u32,
        around: usize,
    ) -> Result<(), SliceError<S::Error>> {
        let mut seen: HashSet<TurnId> = HashSet::default();
        of.retain(|id| seen.insert(*id));
        let read = self.read_around(&of, siblings, steps, around, &mut seen)?;
        self.keep(seen, read)?;
        // Crowded turns are left.
        self.load_parents(&of)?;
        let edges = of.iter().flat_map(|id| self.fetched.parents(*id));
        let parents: Vec<TurnId> = edges.map(|edge| edge.parent).collect();
        let children_of = if siblings > 0 { [of, parents.clone()].concat() } else { of };
        self.load_turns(parents, false)?;
        self.check_held(0)?;
        self.load_children(children_of, siblings)
    }

    /// The edges of these turns and, level by level, of those around them. Adds to `seen` the turns at the ends
    /// of the edges of those within the radius.
    fn read_around(
        &mut self,
        of: &[TurnId],
        siblings: usize,
        steps: u32,
        around: usize,
        seen: &mut HashSet<TurnId>,
    ) -> Result<EdgesRead, SliceError<S::Error>> {
        let fetched = of.iter().copied().filter(|id| self.fetched.has_parents(*id));
        let fetched = fetched.map(|id| (id, self.fetched.parents(id).to_vec())).collect();
        let mut level = self.read_edges(of.to_vec(), of.to_vec(), 0)?;
        level.append(&mut EdgesRead { parents: fetched, children: Vec::new() });
        let mut read = EdgesRead::default();
        for step in 1..=steps {
            let mut parents: Vec<TurnId> = level.parent_ends().collect();
            let mut children: Vec<TurnId> = level.child_ends().collect();
            read.append(&mut level);
            parents.retain(|id| seen.insert(*id));
            children.retain(|id| seen.insert(*id));
            if !read.is_unbranched() {
                // What is sure to be asked for are the children of parents.
                if step == 1 && siblings > 0 {
                    parents.truncate(of.len() * self.limits.nearby);
                    level = self.read_edges(Vec::new(), parents, read.ends())?;
                }
                break;
            }
            let mut next = [parents.clone(), children].concat();
            next.truncate((of.len() + around).saturating_sub(read.turns()));
            parents.truncate(next.len());
            if next.is_empty() {
                break;
            }
            // At the radius nothing is expanded, but what is there may have children that are siblings.
            let children_of = match (step < steps, siblings) {
                (true, _) => next.clone(),
                (false, 0) => Vec::new(),
                (false, _) => parents,
            };
            self.store.check_interrupts();
            level = self.read_edges(next, children_of, read.ends())?;
        }
        read.append(&mut level);
        Ok(read)
    }

    /// The edges into and out of these turns, of those that are neither fetched nor crowded, when so many ends
    /// are held besides.
    fn read_edges(
        &mut self,
        mut parents_of: Vec<TurnId>,
        mut children_of: Vec<TurnId>,
        besides: usize,
    ) -> Result<EdgesRead, SliceError<S::Error>> {
        let room = self.limits.held.saturating_sub(self.fetched.held() + besides);
        parents_of.retain(|id| !self.fetched.has_parents(*id));
        children_of.retain(|id| !self.fetched.has_children(*id));
        let Neighbourhood { store, limits, fetched } = self;
        loop {
            parents_of.retain(|id| !fetched.is_crowded(*id));
            children_of.retain(|id| !fetched.is_crowded(*id));
            if parents_of.is_empty() && children_of.is_empty() {
                return Ok(EdgesRead::default());
            }
            let (mut parents, mut children) = (Lists::new(&parents_of), Lists::new(&children_of));
            let (mut count, mut passed_over) = (0, 0);
            let most_passed_over = limits.crowded.saturating_mul(16);
            store
                .neighbours(&parents_of, &children_of, &mut |(turn, neighbour)| {
                    let fits = match neighbour {
                        Neighbour::Parent(edge) => parents.push(turn, edge, limits.crowded),
                        Neighbour::Child(child) => children.push(turn, child, limits.crowded),
                    };
                    if fits {
                        count += 1;
                    } else {
                        fetched.keep_crowded(turn);
                        passed_over += 1;
                    }
                    continue_while(count <= room && passed_over <= most_passed_over)
                })
                .map_err(SliceError::Store)?;
            if count > room {
                return Err(SliceError::TooManyIds(limits.held));
            }
            // To read a turn of very many edges to its end would take long.
            if passed_over <= most_passed_over {
                let (mut parents, mut children) = (parents.lists, children.lists);
                parents.retain(|(turn, _)| !fetched.is_crowded(*turn));
                children.retain(|(turn, _)| !fetched.is_crowded(*turn));
                return Ok(EdgesRead { parents, children });
            }
        }
    }

    /// Looks up what was seen and the children of what was read, and keeps the edges.
    fn keep(&mut self, seen: HashSet<TurnId>, read: EdgesRead) -> Result<(), SliceError<S::Error>> {
        // A row costs little more than the score alone, unless few of very many are going to be selected.
        let whole = read.ends() <= 3 * read.lists() && self.fetched.rows < self.limits.rows;
        self.load_turns(seen.into_iter().chain(read.child_ends()).collect(), whole)?;
        self.fetched.reserve_edges(read.turns());
        for (turn, parents) in read.parents {
            self.fetched.keep_parents(turn, parents);
        }
        for (turn, children) in read.children {
            let turns = children.iter().filter_map(|child| self.fetched.scored(*child));
            let mut turns: Vec<ScoredTurn> = turns.collect();
            turns.append(&mut self.fetched.further_scores(children.into_iter()));
            self.fetched.keep_children(turn, ChildList::new(turns));
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
            store.turns(&ids, &mut |turn| {
                fetched.keep_row(turn);
                ControlFlow::Continue(())
            })
        } else {
            store.scored(&ids, &mut |turn| {
                fetched.keep_scored(turn);
                ControlFlow::Continue(())
            })
        };
        answered.map_err(SliceError::Store)
    }

    /// Loads the edges into these turns.
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
            self.fetched.keep_parents(turn, parents);
        }
        Ok(())
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
        // One more than a turn's siblings: the turn itself stands in its parent's list.
        let siblings = siblings.saturating_add(1).max(self.limits.wide / 2);
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
        for (turn, children) in of.into_iter().zip(lists) {
            self.fetched.keep_children(turn, children);
        }
        Ok(())
    }

    /// The whole rows of these turns, in their order; the first that has several is an error.
    pub(crate) fn rows(&mut self, ids: &[TurnId]) -> Result<Vec<Rc<Turn>>, SliceError<S::Error>> {
        let Neighbourhood { store, fetched, .. } = self;
        let missing: Vec<TurnId> =
            ids.iter().copied().filter(|id| fetched.row(*id).is_none()).collect();
        if !missing.is_empty() {
            let mut keep = |turn| {
                fetched.keep_row(turn);
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

/// Edges as they were read.
#[derive(Default)]
struct EdgesRead {
    parents: Vec<(TurnId, Vec<ParentEdge>)>,
    children: Vec<(TurnId, Vec<TurnId>)>,
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
        self.children.iter().flat_map(|(_, children)| children).copied()
    }

    /// How many ends the edges have.
    fn ends(&self) -> usize {
        let parents: usize = self.parents.iter().map(|(_, edges)| edges.len()).sum();
        let children: usize = self.children.iter().map(|(_, children)| children.len()).sum();
        parents + children
    }

    /// In how many lists they are.
    fn lists(&self) -> usize {
        self.parents.len() + self.children.len()
    }

    /// Of how many turns edges were read, at least.
    fn turns(&self) -> usize {
        self.parents.len().max(self.children.len())
    }

    /// Whether the turns have hardly more than a parent and a child each.
    fn is_unbranched(&self) -> bool {
        4 * self.ends() <= 7 * self.lists()
    }
}

/// A list for each of some turns.
struct Lists<T> {
    lists: Vec<(TurnId, Vec<T>)>,
    /// Empty where looking through few lists is quicker.
    places: HashMap<TurnId, usize>,
}

impl<T> Lists<T> {
    fn new(of: &[TurnId]) -> Self {
        let lists = of.iter().map(|id| (*id, Vec::new())).collect();
        let places = of.iter().enumerate().map(|(place, id)| (*id, place));
        Lists { lists, places: if of.len() > 8 { places.collect() } else { HashMap::default() } }
    }

    /// Adds to a turn's list, unless it has `most` already.
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
