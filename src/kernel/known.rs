//! What was learnt of a graph so far.

use std::cmp::Reverse;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};

use crate::store::{ParentEdge, ScoredTurn};
use crate::turn::{Turn, TurnId};
use crate::window::Window;

/// What is known of a graph: true of one snapshot, for one reader, and complete enough for one policy.
#[derive(Default)]
pub struct Known {
    /// Turns that were looked up; `None` is not there.
    pub(crate) turns: HashMap<TurnId, Option<ScoredTurn>>,
    /// Turns that are stored more than once.
    pub(crate) twins: HashSet<TurnId>,
    /// Whole rows, where they were read at once.
    pub(crate) rows: HashMap<TurnId, Rc<Turn>>,
    pub(crate) parents: HashMap<TurnId, Vec<ParentEdge>>,
    pub(crate) children: HashMap<TurnId, Children>,
    /// Turns whose edges are not fetched with those of others.
    pub(crate) crowded: HashSet<TurnId>,
    /// Entries in `parents` and `children`.
    entries: usize,
    /// Ids that were held when the slice began.
    pub(crate) kept: usize,
    /// Around which anchors it was read.
    pub(crate) window: Window,
}

impl Known {
    /// Forgets everything about the graph.
    pub fn forget(&mut self) {
        *self = Known { window: self.window.ended(), ..Known::default() };
    }

    /// Begins a slice. What is known stays: slices of one conversation overlap.
    pub(crate) fn begin_slice(&mut self) {
        self.kept = self.entries + self.turns.len();
    }

    /// How many ids are held for this slice.
    pub(crate) fn held(&self) -> usize {
        (self.entries + self.turns.len()).saturating_sub(self.kept)
    }

    /// Whether the turn is stored more than once, as far as that is known.
    pub(crate) fn is_twin(&self, id: TurnId) -> bool {
        self.twins.contains(&id)
    }

    /// Whether everything is there to expand this turn with so many siblings.
    pub(crate) fn is_loaded(&self, id: TurnId, siblings: usize) -> bool {
        let has_parent = |edge: &ParentEdge| {
            self.turns.contains_key(&edge.parent)
                && (siblings == 0 || self.children.contains_key(&edge.parent))
        };
        self.children.contains_key(&id)
            && self.parents.get(&id).is_some_and(|edges| edges.iter().all(has_parent))
    }

    /// The edges into a turn whose edges are loaded.
    pub(crate) fn parents(&self, of: TurnId) -> &[ParentEdge] {
        &self.parents[&of]
    }

    /// The parent at an edge into a loaded turn, or `None` where it dangles.
    pub(crate) fn parent(&self, edge: &ParentEdge) -> Option<ScoredTurn> {
        self.turns[&edge.parent]
    }

    /// The children of a loaded turn.
    pub(crate) fn children(&self, of: TurnId) -> &Children {
        &self.children[&of]
    }

    pub(crate) fn keep_parents(&mut self, of: TurnId, parents: Vec<ParentEdge>) {
        self.entries += parents.len();
        let before = self.parents.insert(of, parents);
        self.entries -= before.map_or(0, |before| before.len());
    }

    pub(crate) fn keep_children(&mut self, of: TurnId, children: ChildList) {
        let children = children.finish(&mut self.twins);
        self.entries += children.in_sibling_order().len();
        let before = self.children.insert(of, children);
        self.entries -= before.map_or(0, |before| before.in_sibling_order().len());
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

/// A turn's children as they arrive.
#[derive(Default)]
pub(crate) struct ChildList {
    pub(crate) turns: Vec<ScoredTurn>,
    pub(crate) wide: bool,
}

impl ChildList {
    /// Adds a child; beyond `wide` children only the first `siblings` in sibling order are kept.
    /// Returns how many entries were dropped.
    pub(crate) fn push(&mut self, turn: ScoredTurn, wide: usize, siblings: usize) -> usize {
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

    /// The children; one that came with two scores is a twin.
    fn finish(mut self, twins: &mut HashSet<TurnId>) -> Children {
        if self.turns.len() > 1 {
            self.sort();
            let mut ids: Vec<TurnId> = self.turns.iter().map(|turn| turn.id).collect();
            ids.sort_unstable();
            twins.extend(ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        }
        if self.wide { Children::Wide(self.turns) } else { Children::All(self.turns) }
    }
}
