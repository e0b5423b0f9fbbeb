//! What the slicer returns.

use crate::edge::Edge;
use crate::turn::{Turn, TurnId};

/// A turn of a slice, with how it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedTurn {
    /// The turn.
    pub turn: Turn,
    /// Hops from the anchor as the expansion counted them; siblings inherit theirs.
    pub distance: u32,
    /// The priority it was selected by.
    pub priority: f32,
    /// Position in the selection order, the anchor being 0.
    pub selection_order: u32,
}

/// A context slice: turns in id order, edges in (parent, child, type) order (§6.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Where it was taken.
    pub anchor: TurnId,
    /// Its turns, ascending by id.
    pub turns: Vec<SelectedTurn>,
    /// Every edge with both ends among the turns, ascending, once each.
    pub edges: Vec<Edge>,
}
