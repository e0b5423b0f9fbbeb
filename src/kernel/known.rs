//! What was learnt of a graph so far.

use std::cmp::Reverse;
use std::rc::Rc;

use foldhash::HashMap;

use crate::store::{ParentEdge, ScoredTurn};
use crate::turn::{Phase, Turn, TurnId};
use crate::window::Window;

/// What is known of a graph: true of one snapshot, for one reader, and complete enough for one policy.
#[derive(Default)]
pub struct Known {
    turns: HashMap<TurnId, KnownTurn>,
    edges: HashMap<TurnId, KnownEdges>,
    /// How many turns were looked up.
    looked_up: usize,
    /// How many ends of edges are held.
    ends: usize,
    /// How many whole rows are held.
    pub(crate) rows: usize,
    /// Ids that were held when the slice began.
    pub(crate) kept: usize,
    /// Around which anchors it was read.
    pub(crate) window: Window,
}

/// What is known of a turn itself.
#[derive(Default)]
struct KnownTurn {
    is_looked_up: bool,
    /// Whether it is stored more than once.
    is_twin: bool,
    /// What scores it, where it was looked up and is there.
    scored: Option<(Phase, f32)>,
    /// The whole row, where it was read.
    row: Option<Rc<Turn>>,
}

/// What is known of a turn's edges.
#[derive(Default)]
struct KnownEdges {
    /// Whether they are not fetched with those of others.
    is_crowded: bool,
    parents: Option<Vec<ParentEdge>>,
    children: Option<Children>,
}

impl Known {
    /// Forgets everything about the graph.
    pub fn forget(&mut self) {
        *self = Known { window: self.window.ended(), ..Known::default() };
    }

    /// Begins a slice. What is known stays: slices of one conversation overlap.
    pub(crate) fn begin_slice(&mut self) {
        self.kept = self.ends + self.looked_up;
    }

    /// How many ids are held for this slice.
    pub(crate) fn held(&self) -> usize {
        (self.ends + self.looked_up).saturating_sub(self.kept)
    }

    /// Whether the turn is stored more than once, as far as that is known.
    pub(crate) fn is_twin(&self, id: TurnId) -> bool {
        self.turns.get(&id).is_some_and(|turn| turn.is_twin)
    }

    /// Whether the turn's edges are not fetched with those of others.
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

    /// Whether everything is there to expand this turn with so many siblings.
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

    /// A turn that was looked up, or `None` where there is none.
    pub(crate) fn scored(&self, id: TurnId) -> Option<ScoredTurn> {
        let turn = &self.turns[&id];
        debug_assert!(turn.is_looked_up, "{id} is looked up");
        turn.scored.map(|(phase, salience)| ScoredTurn { id, phase, salience })
    }

    /// The whole row of a turn, where it was read.
    pub(crate) fn row(&self, id: TurnId) -> Option<&Rc<Turn>> {
        self.turns.get(&id)?.row.as_ref()
    }

    /// The edges into a turn whose edges are loaded.
    pub(crate) fn parents(&self, of: TurnId) -> &[ParentEdge] {
        self.edges[&of].parents.as_deref().expect("they are loaded")
    }

    /// The children of a loaded turn.
    pub(crate) fn children(&self, of: TurnId) -> &Children {
        self.edges[&of].children.as_ref().expect("they are loaded")
    }

    /// Takes turns for looked up and leaves in `ids` those that were not before, once each.
    pub(crate) fn look_up(&mut self, ids: &mut Vec<TurnId>) {
        self.turns.reserve(ids.len());
        ids.retain(|id| {
            let turn = self.turns.entry(*id).or_default();
            !std::mem::replace(&mut turn.is_looked_up, true)
        });
        self.looked_up += ids.len();
    }

    /// Keeps what scores a turn that was looked up.
    pub(crate) fn keep_scored(&mut self, turn: ScoredTurn) {
        let known = self.turns.entry(turn.id).or_default();
        known.is_twin |= known.scored.replace((turn.phase, turn.salience)).is_some();
    }

    /// Keeps a whole row, which says what scores the turn as well.
    pub(crate) fn keep_row(&mut self, turn: Turn) {
        let known = self.turns.entry(turn.id).or_default();
        known.is_looked_up = true;
        known.scored = Some((turn.phase, turn.salience));
        let before = known.row.replace(Rc::new(turn));
        known.is_twin |= before.is_some();
        self.rows += usize::from(before.is_none());
    }

    pub(crate) fn keep_crowded(&mut self, id: TurnId) {
        self.edges.entry(id).or_default().is_crowded = true;
    }

    /// Makes room for the edges of so many turns more.
    pub(crate) fn reserve_edges(&mut self, turns: usize) {
        self.edges.reserve(turns);
    }

    pub(crate) fn keep_parents(&mut self, of: TurnId, parents: Vec<ParentEdge>) {
        self.ends += parents.len();
        let before = self.edges.entry(of).or_default().parents.replace(parents);
        self.ends -= before.map_or(0, |before| before.len());
    }

    pub(crate) fn keep_children(&mut self, of: TurnId, children: ChildList) {
        let children = children.finish(|twin| self.turns.entry(twin).or_default().is_twin = true);
        self.ends += children.in_sibling_order().len();
        let before = self.edges.entry(of).or_default().children.replace(children);
        self.ends -= before.map_or(0, |before| before.in_sibling_order().len());
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
    fn finish(mut self, twin: impl FnMut(TurnId)) -> Children {
        if self.turns.len() > 1 {
            self.sort();
            let mut ids: Vec<TurnId> = self.turns.iter().map(|turn| turn.id).collect();
            ids.sort_unstable();
            ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).for_each(twin);
        }
        if self.wide { Children::Wide(self.turns) } else { Children::All(self.turns) }
    }
}
