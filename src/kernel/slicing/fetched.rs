//! The part of a graph that was fetched so far.

use std::cmp::Reverse;
use std::rc::Rc;

use foldhash::HashMap;

use crate::graph::edge::EdgeTypes;
use crate::graph::facts::TurnFacts;
use crate::graph::turn::{Phase, Turn, TurnId};
use crate::policy::SlicePolicy;
use crate::policy::admission::Admission;
use crate::policy::needs::Needs;
use crate::slicing::store::{ParentEdge, ScoredTurn};
use crate::slicing::window::Window;

/// The part of a graph that was fetched. It holds for one snapshot and one reader.
#[derive(Default)]
pub struct FetchedGraph {
    /// What the policies that it was fetched for need, and which turns and edges exist for them.
    fetched_for: (Needs, Admission),
    turns: HashMap<TurnId, FetchedTurn>,
    edges: HashMap<TurnId, FetchedEdges>,
    links: HashMap<TurnId, Links>,
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

/// Of the rows of a turn with each phase, one with the highest salience: by v1, the others never rank before it.
type Scores = [Option<TurnFacts>; Phase::ALL.len()];

/// What was fetched of a turn's edges.
#[derive(Default)]
struct FetchedEdges {
    /// Whether there are too many to fetch them with those of other turns.
    is_crowded: bool,
    parents: Option<Vec<ParentEdge>>,
    children: Option<Children>,
}

/// The turns at the other ends of a turn's edges, each once with the types of the edges, in each direction: itself
/// among them, and such as do not exist. `None` where there are too many to be walked to.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) parents: Option<Vec<(TurnId, EdgeTypes)>>,
    pub(crate) children: Option<Vec<(TurnId, EdgeTypes)>>,
}

impl FetchedGraph {
    /// The graph itself where it is complete enough for this policy; else an empty one.
    pub(crate) fn for_policy(mut self, policy: &SlicePolicy) -> Self {
        let fetched_for = (policy.needs(), policy.admission());
        // One more than the siblings: a turn is among its parent's children.
        let lacks = |children| children <= policy.sibling_limit();
        if self.fewest_of_wide.is_some_and(lacks) || self.fetched_for != fetched_for {
            self.fetched_for = fetched_for;
            self.forget();
        }
        self
    }

    /// Forgets everything about the graph.
    pub fn forget(&mut self) {
        let (window, fetched_for) = (self.window.ended(), self.fetched_for.clone());
        *self = FetchedGraph { window, fetched_for, ..FetchedGraph::default() };
    }

    /// Forgets everything about the graph and about windows.
    pub(crate) fn reset(&mut self) {
        let fetched_for = self.fetched_for.clone();
        *self = FetchedGraph { fetched_for, ..FetchedGraph::default() };
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

    /// Whether the turn can be expanded this far without a further fetch.
    pub(crate) fn is_loaded(&self, id: TurnId, reach: Reach) -> bool {
        let Reach { children, siblings } = reach;
        let is_enough = |edge: &ParentEdge| {
            self.turns.get(&edge.parent).is_some_and(|turn| turn.is_looked_up)
                && (siblings == 0 || self.has_children(edge.parent))
        };
        self.edges.get(&id).is_some_and(|edges| {
            let parents = edges.parents.as_ref();
            (edges.children.is_some() || !children)
                && parents.is_some_and(|edges| edges.iter().all(is_enough))
        })
    }

    /// What scores a turn that was looked up; `None` where it does not exist.
    pub(crate) fn scored(&self, id: TurnId) -> Option<ScoredTurn> {
        let turn = &self.turns[&id];
        debug_assert!(turn.is_looked_up, "{id} is looked up");
        turn.facts.map(|facts| ScoredTurn { id, facts })
    }

    /// Whether any turn is known to be stored more than once.
    pub(crate) fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// The further rows of those of these turns that are stored more than once.
    pub(crate) fn further_scores(&self, of: impl Iterator<Item = TurnId>) -> Vec<ScoredTurn> {
        if self.duplicates.is_empty() {
            return Vec::new();
        }
        let further = |id| {
            let scores = self.duplicates.get(&id).into_iter().flatten();
            scores.flatten().map(move |facts| ScoredTurn { id, facts: *facts })
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

    /// Whether the links of the turn are loaded.
    pub(crate) fn has_links(&self, id: TurnId) -> bool {
        self.links.contains_key(&id)
    }

    /// The links of a turn, where they are loaded.
    pub(crate) fn links(&self, of: TurnId) -> Option<&Links> {
        self.links.get(&of)
    }

    /// Adds the links of a turn.
    pub(crate) fn add_links(&mut self, of: TurnId, links: Links) {
        let ends = |list: &Option<Vec<_>>| list.as_ref().map_or(0, Vec::len);
        self.edge_count += ends(&links.parents) + ends(&links.children);
        // All that there are.
        if let Some(parents) = links.parents.as_ref().filter(|_| !self.has_parents(of)) {
            let parents = parents.iter().flat_map(|(parent, types)| {
                types.iter().map(|edge_type| ParentEdge { parent: *parent, edge_type })
            });
            self.add_parents(of, parents.collect());
        }
        self.links.insert(of, links);
    }

    /// The children of a turn, where they were fetched.
    pub(crate) fn fetched_children(&self, of: TurnId) -> Option<&Children> {
        self.edges.get(&of)?.children.as_ref()
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

    /// Adds a whole row, and what scores the turn.
    pub(crate) fn add_row(&mut self, turn: Turn, facts: TurnFacts) {
        let scored = ScoredTurn { id: turn.id, facts };
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
        if best.is_none_or(|best| best.salience < turn.facts.salience) {
            *best = Some(turn.facts);
        }
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
        debug_assert!(before.is_none(), "they are fetched once");
    }
}

/// How far expanding a turn looks, besides its parents.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// Whether children are asked for.
    pub(crate) children: bool,
    /// How many siblings.
    pub(crate) siblings: usize,
}

impl Reach {
    /// How far a policy looks from a turn that is expanded.
    pub(crate) fn of(policy: &SlicePolicy) -> Self {
        Reach {
            children: policy.include_children() || policy.keeps_tool_results(),
            siblings: policy.sibling_limit(),
        }
    }
}

/// A child, and the types of the edges that lead to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Child {
    pub(crate) turn: ScoredTurn,
    pub(crate) types: EdgeTypes,
}

/// A turn's children, once each, in sibling order. A child that is stored more than once has the place of its first
/// row.
pub(crate) enum Children {
    All(Vec<Child>),
    /// Only the first of very many children: as many as siblings may be asked for.
    Wide(Vec<Child>),
}

impl Children {
    pub(crate) fn in_sibling_order(&self) -> &[Child] {
        let (Children::All(children) | Children::Wide(children)) = self;
        children
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
    children: Vec<Child>,
    /// Where children were dropped: how many of the first in sibling order are complete.
    wide: Option<usize>,
    /// Further rows of children that are stored more than once, unless children were dropped.
    duplicates: Vec<ScoredTurn>,
}

impl ChildList {
    /// All children that a turn has.
    pub(crate) fn new(children: Vec<Child>) -> Self {
        ChildList { children, ..ChildList::default() }
    }

    /// Adds a child; beyond `wide` children only the first `siblings` in sibling order are held.
    /// Returns how many entries were dropped.
    pub(crate) fn push(&mut self, child: Child, wide: usize, siblings: usize) -> usize {
        self.children.push(child);
        if self.children.len() <= wide || self.children.len() < 2 * siblings {
            return 0;
        }
        let held = self.children.len() + self.duplicates.len();
        // A child that several edges lead to, or that is stored more than once, counts once.
        self.sort();
        if self.children.len() > siblings {
            self.wide = Some(siblings);
            self.children.truncate(siblings);
        }
        if self.wide.is_some() {
            self.duplicates.clear();
        }
        // Of these only the best with each phase stay, so that they remain few.
        self.duplicates
            .sort_unstable_by_key(|turn| (turn.id, turn.facts.phase, sibling_order(turn)));
        self.duplicates.dedup_by_key(|turn| (turn.id, turn.facts.phase));
        held - self.children.len() - self.duplicates.len()
    }

    /// Leaves each child once, in sibling order.
    fn sort(&mut self) {
        let ChildList { children, duplicates, .. } = self;
        children.sort_unstable_by_key(|child| (child.turn.id, sibling_order(&child.turn)));
        children.dedup_by(|child, first| {
            let is_same = child.turn.id == first.turn.id;
            if is_same {
                // An equal entry is the same child by another edge.
                if child.turn != first.turn {
                    duplicates.push(child.turn);
                }
                first.types = first.types.union(child.types);
            }
            is_same
        });
        children.sort_unstable_by_key(|child| sibling_order(&child.turn));
    }

    /// The children; `duplicate` takes the further rows of those that are stored more than once.
    fn finish(mut self, duplicate: impl FnMut(ScoredTurn)) -> Children {
        if self.children.len() > 1 {
            self.sort();
        }
        if self.wide.is_some() {
            return Children::Wide(self.children);
        }
        self.duplicates.into_iter().for_each(duplicate);
        Children::All(self.children)
    }
}
