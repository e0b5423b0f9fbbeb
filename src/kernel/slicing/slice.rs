//! What the slicer returns.

use std::fmt;
use std::rc::Rc;

use crate::graph::edge::Edge;
use crate::graph::turn::{Turn, TurnId};
use crate::named_enum::named_enum;

named_enum! {
    /// What a turn is in a slice for (POLICY-V2.md, The parts); the declaration order is that of selection.
    Part {
        /// It is the anchor, or of its calls and results.
        Anchor = "anchor",
        /// It is a pin, or of the calls and results of one.
        Pinned = "pinned",
        /// The expansion from the anchor has selected it.
        Line = "line",
        /// It was recalled around a seed.
        Recalled = "recalled",
    }
}

/// A turn of a slice, and how it was selected.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedTurn {
    /// The turn. Slices that are taken together share it.
    pub turn: Rc<Turn>,
    /// Hops from the anchor, as counted when it was discovered; siblings inherit the distance.
    pub distance: u32,
    /// The priority it was selected by.
    pub priority: f32,
    /// What it is in the slice for.
    pub part: Part,
    /// The seed that it was recalled from; `None` in other parts.
    pub seed: Option<TurnId>,
    /// When it was created, in microseconds since 1970; 0 where none is stored or that was not read.
    pub micros: i64,
    /// What it takes of a token budget; 0 where that was not read.
    pub tokens: u32,
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
    /// The pins that exist and are not in the slice, because too few turns or tokens were left.
    pub pins_left_out: Vec<TurnId>,
}

/// Why there is no slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceError<E> {
    /// The anchor is not in the graph, or row security hides it.
    AnchorNotFound(TurnId),
    /// This turn is stored more than once; it is the first such turn that was selected. A turn that is not selected may
    /// be stored any number of times. Each of its rows is then a candidate; among siblings, it is the row with the
    /// highest salience.
    DuplicateTurn(TurnId),
    /// More neighbours than the given number would have to be held in memory.
    TooManyIds(usize),
    /// A turn existed at first and not later: the store did not keep to one snapshot.
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
                write!(f, "slice would hold more than {limit} neighbours of turns in memory")
            }
            Self::Inconsistent(id) => write!(f, "turn {id} disappeared while it was sliced"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for SliceError<E> {}
