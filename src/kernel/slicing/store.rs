//! What the slicer asks of a graph.

use std::ops::ControlFlow;

use crate::graph::edge::EdgeType;
use crate::graph::turn::{Phase, Turn, TurnId};

/// What a policy reads of a turn to score it, defaults applied.
///
/// These are the facts that SlicePolicy v1 needs, and a store reads no other columns for them. A version that needs
/// more says which, the store is told, and what it answers is added here as an optional part.
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

/// One edge into a turn, seen from that turn. It dangles where the parent does not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParentEdge {
    /// The edge's other end.
    pub parent: TurnId,
    /// What the edge means.
    pub edge_type: EdgeType,
}

/// An edge, seen from the turn at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Neighbour {
    /// The edge comes from this turn.
    Parent(ParentEdge),
    /// The edge goes to this turn.
    Child(TurnId),
}

/// Receives one row of an answer; `Break` asks for no more rows.
pub type Sink<'a, T> = &'a mut dyn FnMut(T) -> ControlFlow<()>;

/// A graph read in batches, all on one snapshot.
///
/// Rows may come in any order. A turn stored twice is answered twice. The `usize` beside a row
/// says which of the given ids it belongs to.
pub trait GraphStore {
    /// What can go wrong below.
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

    /// The ends of edges out of each turn that do not exist.
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

    /// Called between batches and at least every 256 steps: a store that can be cancelled
    /// answers here.
    fn check_interrupts(&mut self) {}
}
