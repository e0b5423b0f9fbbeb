//! What an expansion tells of itself while it runs.

use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::named_enum::named_enum;
use crate::slicing::score::Rank;
use crate::slicing::store::ScoredTurn;

named_enum! {
    /// What a turn is to the turn it was found from.
    Via {
        /// Nothing: the expansion begins at it.
        Anchor = "anchor",
        /// Its parent.
        Parent = "parent",
        /// Its child.
        Child = "child",
        /// A turn with a common parent.
        Sibling = "sibling",
    }
}

/// Is told what an expansion does, as it does it. The default listens to nothing and costs nothing.
pub trait Observer {
    /// Whether it wants to know also what no selection needs: the turns that are passed over, and
    /// what is found from the turn that spends the budget.
    const LISTENS: bool = false;

    /// A turn was found for the first time. It stands in the frontier, or has no place there, as
    /// the budget left cannot reach it.
    fn discovered(&mut self, _turn: Rank, _via: Via, _from: TurnId) {}

    /// A turn was selected; `Break` ends the expansion.
    fn selected(&mut self, _turn: Rank) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An edge into the turn `of` comes from a turn that does not exist.
    fn missing_parent(&mut self, _parent: TurnId, _of: Rank) {}

    /// All siblings that `of` has by this parent, itself among them; those the policy allows were
    /// told before as discovered.
    fn siblings(&mut self, _parent: TurnId, _siblings: &[ScoredTurn], _of: Rank) {}
}

impl Observer for () {}
