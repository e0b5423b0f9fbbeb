//! Observers of a selection: they are called while it runs.

use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::named_enum::named_enum;
use crate::slicing::score::Rank;
use crate::slicing::slice::Part;

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
        /// The policy pins it.
        Pin = "pin",
        /// A search has found it.
        Seed = "seed",
        /// It was recalled: it is a parent or a child of that turn.
        Recalled = "recalled",
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

/// Why a turn that was selected is cut off the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It is before the turn with which the line begins (`cut_share`).
    Beginning {
        /// The turn with which the line begins.
        at: TurnId,
    },
    /// It is a result, and no parent of it is in the slice (`keep_tool_results`).
    NoCall,
}

/// Is called at each step of a selection. The default does nothing and costs nothing.
pub trait Observer {
    /// Whether it is also called for what the selection does not need. That is what is not discovered, and what is
    /// discovered from the turn that was selected last.
    const SEES_ALL: bool = false;

    /// A turn was discovered for the first time: the anchor, a pin that is selected, by the expansion, or as one of the
    /// calls and results that are selected with another turn. It was put into the frontier, unless the budget cannot
    /// reach it any more.
    fn discovered(&mut self, _turn: Rank, _via: Via, _from: TurnId) {}

    /// The expansion discovered a pinned turn, which is in the slice already.
    fn discovered_pinned(&mut self, _turn: Rank, _via: Via, _from: TurnId) {}

    /// A discovered turn was the next candidate and is not selected, since it takes more than is left.
    fn passed_over(&mut self, _turn: Rank, _because: PassedOver) {}

    /// A turn was selected; `Break` ends the selection.
    fn selected(&mut self, _turn: Rank, _part: Part) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A pin exists and is not selected, since it takes more than is left.
    fn pin_left_out(&mut self, _pin: Rank, _because: PassedOver) {}

    /// The neighbours of a turn are about to be discovered.
    fn expanded(&mut self, _turn: Rank) {}

    /// An edge into the turn `of` comes from a turn that does not exist.
    fn missing_parent(&mut self, _parent: TurnId, _of: Rank) {}

    /// All children of a parent of the turn `of`, itself among them, as siblings of it. Those that the policy allows
    /// were discovered before.
    fn siblings(&mut self, _parent: TurnId, _of: Rank, _siblings: &mut dyn Iterator<Item = Rank>) {}

    /// The expansion has ended; `limited` is whether the limits of the policy have ended it.
    fn line_ended(&mut self, _limited: bool) {}

    /// A turn of the line is cut. These calls come in the order of the conversation.
    fn cut(&mut self, _turn: Rank, _because: Cut) {}

    /// A turn is a seed (`from` is `None`), or was reached from another turn in recall; also one that is in the slice,
    /// and again when it rises.
    fn reached(&mut self, _turn: Rank, _from: Option<TurnId>) {}

    /// A turn is about to be selected with another one, of whose calls and results it is, in recall.
    fn recalled_with(&mut self, _turn: Rank, _with: TurnId) {}

    /// A turn was the next in recall and is not selected, since it takes more than is left.
    fn not_recalled(&mut self, _turn: Rank, _because: PassedOver) {}
}

impl Observer for () {}
