//! What the slicer asks of a graph.

use std::ops::ControlFlow;

use crate::graph::edge::EdgeType;
use crate::graph::turn::{Phase, Turn, TurnId};

/// What a policy reads of a turn to score it, with defaults applied.
///
/// SlicePolicy v1 needs these two, and a store reads no other columns to score a turn. A version that needs more (time,
/// session, role, tokens) will have to tell the store which, and to have them here in an optional part, so that v1
/// reads and holds no more than now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnFacts {
    /// What the turn was for.
    pub phase: Phase,
    /// In [0, 1].
    pub salience: f32,
}

impl From<&Turn> for TurnFacts {
    fn from(turn: &Turn) -> Self {
        TurnFacts { phase: turn.phase, salience: turn.salience }
    }
}

/// A turn with what scores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredTurn {
    /// The turn.
    pub id: TurnId,
    /// What scores it.
    pub facts: TurnFacts,
}

impl From<&Turn> for ScoredTurn {
    fn from(turn: &Turn) -> Self {
        ScoredTurn { id: turn.id, facts: turn.into() }
    }
}

/// An edge into a turn. The parent may not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParentEdge {
    /// The other end of the edge.
    pub parent: TurnId,
    /// What the edge means.
    pub edge_type: EdgeType,
}

/// An edge of a turn. v1 reads the type of edges into a turn only, as the edges of a slice are taken from their
/// children.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Neighbour {
    /// The edge comes from this turn.
    Parent(ParentEdge),
    /// The edge goes to this turn.
    Child(TurnId),
}

/// Takes one row of an answer; `Break` ends the answer.
pub type Sink<'a, T> = &'a mut dyn FnMut(T) -> ControlFlow<()>;

/// A graph that is read in batches, all on one snapshot.
///
/// Rows may come in any order. A turn that is stored twice is answered twice. The `usize` beside a row is the place of
/// the id, among those given, that it belongs to.
pub trait GraphStore {
    /// Why the store cannot answer.
    type Error;

    /// The existing turns of these ids.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn scored(&mut self, ids: &[TurnId], sink: Sink<'_, ScoredTurn>) -> Result<(), Self::Error>;

    /// The edges into each turn of `parents_of` and out of each of `children_of`.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn neighbours(
        &mut self,
        parents_of: &[TurnId],
        children_of: &[TurnId],
        sink: Sink<'_, (TurnId, Neighbour)>,
    ) -> Result<(), Self::Error>;

    /// The existing children of each turn, once for each edge.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ScoredTurn)>,
    ) -> Result<(), Self::Error>;

    /// The children of each turn that edges name and that do not exist.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn missing_children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, TurnId)>,
    ) -> Result<(), Self::Error>;

    /// The whole rows of these turns.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn turns(&mut self, ids: &[TurnId], sink: Sink<'_, Turn>) -> Result<(), Self::Error>;

    /// Called between batches and at least every 256 steps. A store that can be cancelled checks for it here.
    fn check_interrupts(&mut self) {}
}
