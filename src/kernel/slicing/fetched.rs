//! The part of a graph that was fetched so far.

use std::cmp::Reverse;
use std::rc::Rc;

use foldhash::HashMap;

use crate::graph::turn::{Phase, Turn, TurnId};
use crate::slicing::store::{ParentEdge, ScoredTurn, TurnFacts};
use crate::slicing::window::Window;

/// The part of a graph that was fetched. It holds for one snapshot, one reader, and policies that admit the same turns
/// and edges.
#[derive(Default)]
pub struct FetchedGraph {
    turns: HashMap<TurnId, FetchedTurn>,
    edges: HashMap<TurnId, FetchedEdges>,
    /// Turns of which more than one row was read.
    duplicates: HashMap<TurnId, Scores>,
    /// The fewest children that are held of any wide turn.
    fewest_of_wide: Option<usize>,
    /// How many turns were looked up.
    looked_up: usize,
    /// How many edges are held, each counted at the turn it was read for.
    edge_count: usize,
    /// How many whole rows are held.
    pub(crate) rows: usize,
    /// How many ids were held when the slice began.
    pub(crate) held_before: usize,
    /// The anchors whose surroundings are read together.
    pub(crate) window: Window,
}

/// What was fetched of a turn itself.
#[derive(Default)]
struct FetchedTurn {
    is_looked_up: bool,
    /// What scores it, where it was looked up and exists.
    facts: Option<TurnFacts>,
    /// The whole row, where it was read.
    row: Option<Rc<Turn>>,
}

/// The highest salience that a turn has with each phase: its rows with a lower one never rank before it.
type Scores = [Option<f32>; Phase::ALL.len()];

/// What was fetched of a turn's edges.
#[derive(Default)]
struct FetchedEdges {
    /// Whether there are too many to fetch them with those of other turns.
    is_crowded: bool,
    parents: Option<Vec<ParentEdge>>,
    children: Option<Children>,
}

impl FetchedGraph {
    /// The graph itself where it is complete enough for a policy with this many siblings; else an empty one.
    pub(crate) fn for_siblings(mut self, siblings: usize) -> Self {
        // One more than the siblings: a turn is among its parent's children.
        if self.fewest_of_wide.is_some_and(|children| children <= siblings) {
            self.forget();
        }
        self
    }

    /// Forgets everything about the graph.
    pub fn forget(&mut self) {
        *self = FetchedGraph { window: self.window.ended(), ..FetchedGraph::default() };
    }

    /// Begins a slice. What was fetched stays, as slices of one conversation overlap.
    pub(crate) fn begin_slice(&mut self) {
        self.held_before = self.edge_count + self.looked_up;
    }

    /// How many ids were added for this slice.
    pub(crate) fn held(&self) -> usize {
        (self.edge_count + self.looked_up).saturating_sub(self.held_before)
    }

    /// Whether the turn is stored more than once. This is known of turns whose whole rows were read.
    pub(crate) fn is_duplicate(&self, id: TurnId) -> bool {
        self.duplicates.contains_key(&id)
    }

    /// Whether the turn has too many edges to fetch them with those of other turns.
    pub(crate) fn is_crowded(&self, id: TurnId) -> bool {
        self.edges.get(&id).is_some_and(|edges| edges.is_crowded)
    }

    /// Whether the edges into the turn are loaded.
    pub(crate) fn has_parents(&self, id: TurnId) -> bool {
        self.edges.get(&id).is_some_and(|edges| edges.parents.is_some())
    }

    /// Whether the turn's children are loaded.
    pub(crate) fn has_children(&self, id: TurnId) -> bool {
        self.edges.get(&id).is_some_and(|edges| edges.children.is_some())
    }

    /// Whether the turn can be expanded with this many siblings without a further fetch.
    pub(crate) fn is_loaded(&self, id: TurnId, siblings: usize) -> bool {
        let is_enough = |edge: &ParentEdge| {
            self.turns.get(&edge.parent).is_some_and(|turn| turn.is_looked_up)
                && (siblings == 0 || self.has_children(edge.parent))
        };
        self.edges.get(&id).is_some_and(|edges| {
            let parents = edges.parents.as_ref();
            edges.children.is_some() && parents.is_some_and(|edges| edges.iter().all(is_enough))
        })
    }

    /// What scores a turn that was looked up; `None` where it does not exist.
    pub(crate) fn scored(&self, id: TurnId) -> Option<ScoredTurn> {
        let turn = &self.turns[&id];
        debug_assert!(turn.is_looked_up, "{id} is looked up");
        turn.facts.map(|facts| ScoredTurn { id, facts })
    }

    /// The further rows of those of these turns that are stored more than once.
    pub(crate) fn further_scores(&self, of: impl Iterator<Item = TurnId>) -> Vec<ScoredTurn> {
        if self.duplicates.is_empty() {
            return Vec::new();
        }
        let further = |id| {
            let scores = self.duplicates.get(&id).into_iter().flatten();
            let scores = Phase::ALL.iter().zip(scores);
            scores.filter_map(move |(phase, salience)| {
                let facts = TurnFacts { phase: *phase, salience: (*salience)? };
                Some(ScoredTurn { id, facts })
            })
        };
        of.flat_map(further).collect()
    }

    /// The whole row of a turn, where it was read.
    pub(crate) fn row(&self, id: TurnId) -> Option<&Rc<Turn>> {
        self.turns.get(&id)?.row.as_ref()
    }

    /// The edges into a turn. They must have been fetched.
    pub(crate) fn parents(&self, of: TurnId) -> &[ParentEdge] {
        self.edges[&of].parents.as_deref().expect("they were fetched")
    }

    /// The children of a turn. They must have been fetched.
    pub(crate) fn children(&self, of: TurnId) -> &Children {
        self.edges[&of].children.as_ref().expect("they were fetched")
    }

    /// Marks these turns as looked up, and leaves in `ids` those that were not before, once each.
    pub(crate) fn look_up(&mut self, ids: &mut Vec<TurnId>) {
        self.turns.reserve(ids.len());
        ids.retain(|id| {
            let turn = self.turns.entry(*id).or_default();
            !std::mem::replace(&mut turn.is_looked_up, true)
        });
        self.looked_up += ids.len();
    }

    /// Adds what scores a turn that was looked up.
    pub(crate) fn add_scored(&mut self, turn: ScoredTurn) {
        let facts = &mut self.turns.entry(turn.id).or_default().facts;
        match *facts {
            None => *facts = Some(turn.facts),
            Some(_) => self.add_duplicate(turn),
        }
    }

    /// Adds a whole row, which also says what scores the turn.
    pub(crate) fn add_row(&mut self, turn: Turn) {
        let scored = ScoredTurn::from(&turn);
        let fetched = self.turns.entry(turn.id).or_default();
        fetched.is_looked_up = true;
        fetched.facts.get_or_insert(scored.facts);
        // All rows of a turn come in one answer.
        if fetched.row.is_some() {
            self.add_duplicate(scored);
        } else {
            fetched.row = Some(Rc::new(turn));
            self.rows += 1;
        }
    }

    /// Adds what scores a further row of a turn.
    fn add_duplicate(&mut self, turn: ScoredTurn) {
        let scores = self.duplicates.entry(turn.id).or_default();
        let best = &mut scores[turn.facts.phase as usize];
        *best = Some(best.map_or(turn.facts.salience, |best| best.max(turn.facts.salience)));
    }

    pub(crate) fn mark_crowded(&mut self, id: TurnId) {
        self.edges.entry(id).or_default().is_crowded = true;
    }

    /// Reserves memory for the edges of this many more turns.
    pub(crate) fn reserve_edges(&mut self, turns: usize) {
        self.edges.reserve(turns);
    }

    pub(crate) fn add_parents(&mut self, of: TurnId, parents: Vec<ParentEdge>) {
        self.edge_count += parents.len();
        let before = self.edges.entry(of).or_default().parents.replace(parents);
        self.edge_count -= before.map_or(0, |before| before.len());
    }

    pub(crate) fn add_children(&mut self, of: TurnId, children: ChildList) {
        if let Some(siblings) = children.wide {
            let fewest = self.fewest_of_wide.unwrap_or(siblings);
            self.fewest_of_wide = Some(fewest.min(siblings));
        }
        let children = children.finish(|turn| self.add_duplicate(turn));
        self.edge_count += children.in_sibling_order().len();
        let before = self.edges.entry(of).or_default().children.replace(children);
        self.edge_count -= before.map_or(0, |before| before.in_sibling_order().len());
    }
}

/// A turn's children, once each, in sibling order. A child that is stored more than once has the place of its first
/// row.
pub(crate) enum Children {
    All(Vec<ScoredTurn>),
    /// Only the first of very many children: as many as siblings may be asked for.
    Wide(Vec<ScoredTurn>),
}

impl Children {
    pub(crate) fn in_sibling_order(&self) -> &[ScoredTurn] {
        let (Children::All(turns) | Children::Wide(turns)) = self;
        turns
    }
}

/// Siblings are ordered by salience, highest first, then by id. The phase decides between rows of one turn.
pub(crate) fn sibling_order(turn: &ScoredTurn) -> (Reverse<u32>, TurnId, Phase) {
    // Salience is in [0, 1], where the bits of a binary32 order as the numbers do.
    (Reverse(turn.facts.salience.to_bits()), turn.id, turn.facts.phase)
}

/// A turn's children while they are read.
#[derive(Default)]
pub(crate) struct ChildList {
    turns: Vec<ScoredTurn>,
    /// Where children were dropped: how many of the first in sibling order are complete.
    wide: Option<usize>,
    /// Further rows of children that are stored more than once, unless children were dropped.
    duplicates: Vec<ScoredTurn>,
}

impl ChildList {
    /// All children that a turn has.
    pub(crate) fn new(turns: Vec<ScoredTurn>) -> Self {
        ChildList { turns, ..ChildList::default() }
    }

    /// Adds a child; beyond `wide` children only the first `siblings` in sibling order are held.
    /// Returns how many entries were dropped.
    pub(crate) fn push(&mut self, turn: ScoredTurn, wide: usize, siblings: usize) -> usize {
        self.turns.push(turn);
        if self.turns.len() <= wide || self.turns.len() < 2 * siblings {
            return 0;
        }
        let held = self.turns.len() + self.duplicates.len();
        // A child that several edges lead to, or that is stored more than once, counts once.
        self.sort();
        if self.turns.len() > siblings {
            self.wide = Some(siblings);
            self.turns.truncate(siblings);
        }
        if self.wide.is_some() {
            self.duplicates.clear();
        }
        // Of these only the best with each phase stay, so that they remain few.
        self.duplicates
            .sort_unstable_by_key(|turn| (turn.id, turn.facts.phase, sibling_order(turn)));
        self.duplicates.dedup_by_key(|turn| (turn.id, turn.facts.phase));
        held - self.turns.len() - self.duplicates.len()
    }

    /// Leaves each child once, in sibling order.
    fn sort(&mut self) {
        let ChildList { turns, duplicates, .. } = self;
        turns.sort_unstable_by_key(|turn| (turn.id, sibling_order(turn)));
        turns.dedup_by(|turn, first| {
            // An equal entry is the same child by another edge.
            if turn.id == first.id && turn != first {
                duplicates.push(*turn);
            }
            turn.id == first.id
        });
        turns.sort_unstable_by_key(sibling_order);
    }

    /// The children; `duplicate` takes the further rows of those that are stored more than once.
    fn finish(mut self, duplicate: impl FnMut(ScoredTurn)) -> Children {
        if self.turns.len() > 1 {
            self.sort();
        }
        if self.wide.is_some() {
            return Children::Wide(self.turns);
        }
        self.duplicates.into_iter().for_each(duplicate);
        Children::All(self.turns)
    }
}
