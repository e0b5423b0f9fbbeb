//! What is known of the graph around the anchors, fetched ahead in few batches.
//!
//! In a conversation without branches the turns are read level by level as far as the radius. Where there
//! are branches, only what the best candidates need is. What was fetched decides no result: it is there when
//! it is asked for, or is fetched then.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use foldhash::{HashMap, HashSet};

use crate::slice::SliceError;
use crate::store::{GraphStore, Neighbour, ParentEdge, ScoredTurn};
use crate::turn::{Turn, TurnId};

/// Bounds on what an expansion holds and how it reads. They change no result.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most frontier candidates whose neighbours are fetched together.
    pub batch: usize,
    /// Most turns around them that are fetched with them.
    pub nearby: usize,
    /// Neighbours of a turn with more edges than this are not fetched ahead.
    pub ends: usize,
    /// A turn with more children than this is wide: its children are streamed, not held.
    pub wide: usize,
    /// Most ids held for a slice.
    pub held: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { batch: 24, nearby: 64, ends: 128, wide: 1024, held: 1_000_000 }
    }
}

/// What is kept of a turn's children, once each, in sibling order.
pub(crate) enum Children {
    All(Vec<ScoredTurn>),
    /// Only the children that can be somebody's siblings.
    Wide(Vec<ScoredTurn>),
}

impl Children {
    pub(crate) fn in_sibling_order(&self) -> &[ScoredTurn] {
        let (Children::All(turns) | Children::Wide(turns)) = self;
        turns
    }
}

/// Siblings come by salience, highest first, then by id.
pub(crate) fn sibling_order(turn: &ScoredTurn) -> (Reverse<u32>, TurnId) {
    // Salience is in [0, 1], where the bits of a binary32 order as the numbers do.
    (Reverse(turn.salience.to_bits()), turn.id)
}

pub(crate) struct Neighbourhood<'a, S> {
    pub(crate) store: &'a mut S,
    limits: Limits,
    /// Turns that were looked up; `None` is not there.
    turns: HashMap<TurnId, Option<ScoredTurn>>,
    /// Whole rows, where they were read at once.
    rows: HashMap<TurnId, Turn>,
    parents: HashMap<TurnId, Vec<ParentEdge>>,
    children: HashMap<TurnId, Children>,
    /// Turns with more edges than are fetched ahead.
    crowded: HashSet<TurnId>,
    /// Entries in `parents` and `children`.
    edges: usize,
    /// Ids that slices before this one left here.
    kept: usize,
}

impl<'a, S: GraphStore> Neighbourhood<'a, S> {
    pub(crate) fn new(store: &'a mut S, limits: Limits) -> Self {
        Neighbourhood {
            store,
            limits,
            turns: HashMap::default(),
            rows: HashMap::default(),
            parents: HashMap::default(),
            children: HashMap::default(),
            crowded: HashSet::default(),
            edges: 0,
            kept: 0,
        }
    }

    /// Begins a slice. What is known stays: slices of one conversation overlap.
    pub(crate) fn begin_slice(&mut self) {
        self.kept = self.edges + self.turns.len();
        if self.kept > self.limits.held / 10 {
            self.forget();
        }
    }

    /// Forgets what is known: after an error, or where it is too much.
    pub(crate) fn forget(&mut self) {
        self.turns.clear();
        self.rows.clear();
        self.parents.clear();
        self.children.clear();
        self.crowded.clear();
        (self.edges, self.kept) = (0, 0);
    }

    /// How many ids are held for this slice.
    pub(crate) fn held(&self) -> usize {
        self.edges + self.turns.len() - self.kept
    }

    /// Whether everything is there to expand this turn with so many siblings.
    pub(crate) fn is_loaded(&self, id: TurnId, siblings: usize) -> bool {
        self.children.contains_key(&id)
            && self.parents.get(&id).is_some_and(|edges| {
                siblings == 0 || edges.iter().all(|edge| self.children.contains_key(&edge.parent))
            })
    }

    /// The edges into a loaded turn.
    pub(crate) fn parents(&self, of: TurnId) -> &[ParentEdge] {
        &self.parents[&of]
    }

    /// The children of a loaded turn.
    pub(crate) fn children(&self, of: TurnId) -> &Children {
        &self.children[&of]
    }

    /// The turn, or `None` where there is none.
    pub(crate) fn turn(&mut self, id: TurnId) -> Result<Option<ScoredTurn>, SliceError<S::Error>> {
        self.load_turns(vec![id], true)?;
        Ok(self.turns[&id])
    }

    /// Loads these turns, which have `steps` more to the radius, and, where there are hardly any branches,
    /// so many turns around them.
    pub(crate) fn load(
        &mut self,
        of: Vec<TurnId>,
        siblings: usize,
        steps: u32,
        around: usize,
    ) -> Result<(), SliceError<S::Error>> {
        let mut read = self.read_edges(of.clone())?;
        let mut seen: HashSet<TurnId> = of.iter().copied().collect();
        let mut level_start = 0;
        for step in 0..steps.max(1) {
            let unbranched = is_unbranched(&read);
            if read.len() >= of.len() + around || !(unbranched || step == 0) {
                break;
            }
            let ends = read[level_start..].iter().flat_map(|(_, ends)| ends);
            // What is sure to be asked for are the children of parents.
            let wanted = ends.filter(|end| unbranched || siblings > 0 && end.is_parent());
            let level: Vec<TurnId> = wanted
                .map(Neighbour::id)
                .filter(|id| !self.children.contains_key(id) && seen.insert(*id))
                .collect();
            level_start = read.len();
            read.extend(self.read_edges(level)?);
            if level_start == read.len() {
                break;
            }
        }
        self.keep(&of, read)?;
        // What has more edges than are fetched ahead.
        self.load_parents(&of)?;
        let mut children_of = of;
        if siblings > 0 {
            let edges = children_of.iter().flat_map(|id| &self.parents[id]);
            let parents: Vec<TurnId> = edges.map(|edge| edge.parent).collect();
            children_of.extend(parents);
        }
        self.load_children(children_of, siblings)
    }

    /// The edges of these turns, but for those that have too many.
    fn read_edges(&mut self, mut of: Vec<TurnId>) -> Result<EdgesOf, SliceError<S::Error>> {
        loop {
            of.retain(|id| !self.crowded.contains(id));
            let places: HashMap<TurnId, usize> =
                of.iter().enumerate().map(|(place, id)| (*id, place)).collect();
            let mut read: EdgesOf = of.iter().map(|id| (*id, Vec::new())).collect();
            let mut crowded = None;
            if !of.is_empty() {
                self.store
                    .neighbours(&of, &mut |(turn, neighbour)| {
                        if let Some(place) = places.get(&turn) {
                            let ends = &mut read[*place].1;
                            ends.push(neighbour);
                            crowded = (ends.len() > self.limits.ends).then_some(turn);
                        }
                        continue_while(crowded.is_none())
                    })
                    .map_err(SliceError::Store)?;
            }
            // A turn of very many edges would take long to read whole.
            match crowded {
                None => return Ok(read),
                Some(turn) => self.crowded.insert(turn),
            };
        }
    }

    /// Looks up the turns at the ends of edges and keeps the edges of turns that are not wide.
    fn keep(&mut self, of: &[TurnId], read: EdgesOf) -> Result<(), SliceError<S::Error>> {
        let ends: Vec<TurnId> =
            read.iter().flat_map(|(_, ends)| ends).map(|end| end.id()).collect();
        // A row costs little more than the score alone, unless few of very many are going to be selected.
        let whole = ends.len() <= 6 * read.len();
        self.load_turns(of.iter().copied().chain(ends).collect(), whole)?;
        for (turn, ends) in read {
            if self.parents.contains_key(&turn) && self.children.contains_key(&turn) {
                continue;
            }
            let (mut parents, mut children) = (Vec::new(), Vec::new());
            for end in &ends {
                match *end {
                    Neighbour::Parent(parent, edge_type) => {
                        parents.push(ParentEdge { parent, edge_type, turn: self.turns[&parent] });
                    }
                    Neighbour::Child(child) => children.push(child),
                }
            }
            self.edges += ends.len();
            self.parents.insert(turn, parents);
            let turns = children.iter().filter_map(|child| self.turns[child]).collect();
            self.children.insert(turn, ChildList { turns, wide: false }.finish()?);
        }
        self.check_held(0)
    }

    /// Looks up turns: their whole rows, or only what scores them.
    fn load_turns(
        &mut self,
        mut ids: Vec<TurnId>,
        whole: bool,
    ) -> Result<(), SliceError<S::Error>> {
        ids.retain(|id| !self.turns.contains_key(id));
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let Neighbourhood { store, turns, rows, .. } = self;
        turns.extend(ids.iter().map(|id| (*id, None)));
        let mut twice = None;
        let mut add = |turn: ScoredTurn| {
            let known = turns.insert(turn.id, Some(turn)).flatten();
            twice = known.filter(|known| whole || *known != turn).map(|known| known.id);
            continue_while(twice.is_none())
        };
        let answered = if whole {
            store.turns(&ids, &mut |turn| {
                let scored = ScoredTurn { id: turn.id, phase: turn.phase, salience: turn.salience };
                rows.insert(turn.id, turn);
                add(scored)
            })
        } else {
            store.scored(&ids, &mut add)
        };
        answered.map_err(SliceError::Store)?;
        twice.map_or(Ok(()), |id| Err(SliceError::DuplicateTurn(id)))
    }

    /// Loads the edges into these turns.
    pub(crate) fn load_parents(&mut self, of: &[TurnId]) -> Result<(), SliceError<S::Error>> {
        let mut of: Vec<TurnId> =
            of.iter().copied().filter(|id| !self.parents.contains_key(id)).collect();
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let room = self.limits.held.saturating_sub(self.held());
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
        self.edges += count;
        self.parents.extend(of.into_iter().zip(lists));
        Ok(())
    }

    fn load_children(
        &mut self,
        mut of: Vec<TurnId>,
        siblings: usize,
    ) -> Result<(), SliceError<S::Error>> {
        of.retain(|id| !self.children.contains_key(id));
        of.sort_unstable();
        of.dedup();
        if of.is_empty() {
            return Ok(());
        }
        let room = self.limits.held.saturating_sub(self.held());
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
        for (id, list) in of.into_iter().zip(lists) {
            let children = list.finish()?;
            self.edges += children.in_sibling_order().len();
            self.children.insert(id, children);
        }
        Ok(())
    }

    /// The whole rows of these turns, in their order.
    pub(crate) fn rows(&mut self, ids: &[TurnId]) -> Result<Vec<Turn>, SliceError<S::Error>> {
        let missing: Vec<TurnId> =
            ids.iter().copied().filter(|id| !self.rows.contains_key(id)).collect();
        if !missing.is_empty() {
            let Neighbourhood { store, rows, .. } = self;
            let mut twice = None;
            store
                .turns(&missing, &mut |turn| {
                    twice = rows.insert(turn.id, turn).map(|turn| turn.id);
                    continue_while(twice.is_none())
                })
                .map_err(SliceError::Store)?;
            if let Some(id) = twice {
                return Err(SliceError::DuplicateTurn(id));
            }
        }
        let row = |id| self.rows.get(id).cloned().ok_or(SliceError::Inconsistent(*id));
        ids.iter().map(row).collect()
    }

    fn check_held(&self, more: usize) -> Result<(), SliceError<S::Error>> {
        if self.held() + more > self.limits.held {
            return Err(SliceError::TooManyIds(self.limits.held));
        }
        Ok(())
    }
}

/// Whether these turns have hardly more than a parent and a child each.
fn is_unbranched(read: &EdgesOf) -> bool {
    let ends: usize = read.iter().map(|(_, ends)| ends.len()).sum();
    ends <= 3 * read.len()
}

/// Turns with the other ends of their edges.
type EdgesOf = Vec<(TurnId, Vec<Neighbour>)>;

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

    /// The children, unless one came with two scores.
    fn finish<E>(mut self) -> Result<Children, SliceError<E>> {
        self.sort();
        let mut ids: Vec<TurnId> = self.turns.iter().map(|turn| turn.id).collect();
        ids.sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(SliceError::DuplicateTurn(pair[0])),
            None if self.wide => Ok(Children::Wide(self.turns)),
            None => Ok(Children::All(self.turns)),
        }
    }
}
