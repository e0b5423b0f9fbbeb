//! Observers of an expansion: they are called while it runs.

use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::named_enum::named_enum;
use crate::slicing::score::Rank;

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
        /// It is a result of the call that the turn is part of, or the call of a result.
        Call = "call",
    }
}

/// Why a turn is not selected, though nodes are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedOver {
    /// It takes more tokens than are left.
    Tokens {
        /// How many were left.
        left: u64,
    },
    /// The calls and results it is part of are more turns than are left.
    GroupTurns {
        /// How many they are.
        turns: usize,
        /// How many were left.
        left: usize,
    },
    /// The calls and results it is part of take more tokens than are left.
    GroupTokens {
        /// How many they take.
        tokens: u64,
        /// How many were left.
        left: u64,
    },
}

/// Is called at each step of an expansion. The default does nothing and costs nothing.
pub trait Observer {
    /// Whether it is also called for what the selection does not need. That is what is not discovered, and what is
    /// discovered from the turn that was selected last.
    const SEES_ALL: bool = false;

    /// A turn was discovered for the first time. It was put into the frontier, unless the budget cannot reach it any
    /// more.
    fn discovered(&mut self, _turn: Rank, _via: Via, _from: TurnId) {}

    /// A discovered turn was the next candidate and is not selected, since it takes more than is left.
    fn passed_over(&mut self, _turn: Rank, _because: PassedOver) {}

    /// A turn was selected; `Break` ends the expansion.
    fn selected(&mut self, _turn: Rank) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An edge into the turn `of` comes from a turn that does not exist.
    fn missing_parent(&mut self, _parent: TurnId, _of: Rank) {}

    /// All children of a parent of the turn `of`, itself among them, as siblings of it. Those that the policy allows
    /// were discovered before.
    fn siblings(&mut self, _parent: TurnId, _of: Rank, _siblings: &mut dyn Iterator<Item = Rank>) {}
}

impl Observer for () {}
