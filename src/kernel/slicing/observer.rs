//! Observers of an expansion: they are called while it runs.

use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::named_enum::named_enum;
use crate::slicing::score::Rank;
use crate::slicing::store::ScoredTurn;

named_enum! {
    /// How a turn is related to the turn that it was discovered from.
    Via {
        /// It is the anchor, where the expansion begins.
        Anchor = "anchor",
        /// It is a parent of that turn.
        Parent = "parent",
        /// It is a child of that turn.
        Child = "child",
        /// It has a parent in common with that turn.
        Sibling = "sibling",
    }
}

/// Is called at each step of an expansion. The default does nothing and costs nothing.
pub trait Observer {
    /// Whether it is also called for what the selection does not need: turns that are not discovered, and what is
    /// discovered from the last turn selected.
    const SEES_ALL: bool = false;

    /// A turn was discovered for the first time. It was put into the frontier, unless the budget cannot reach it any
    /// more.
    fn discovered(&mut self, _turn: Rank, _via: Via, _from: TurnId) {}

    /// A turn was selected; `Break` ends the expansion.
    fn selected(&mut self, _turn: Rank) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An edge into the turn `of` comes from a turn that does not exist.
    fn missing_parent(&mut self, _parent: TurnId, _of: Rank) {}

    /// All children of a parent of `of`, itself among them. Those that the policy allows as siblings were discovered
    /// before.
    fn siblings(&mut self, _parent: TurnId, _siblings: &[ScoredTurn], _of: Rank) {}
}

impl Observer for () {}
