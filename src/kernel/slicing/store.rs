//! What the slicer asks of a graph.

use std::ops::ControlFlow;

use crate::graph::edge::EdgeType;
use crate::graph::facts::TurnFacts;
use crate::graph::turn::{Turn, TurnId};

/// A turn with what scores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredTurn {
    /// The turn.
    pub id: TurnId,
    /// What scores it.
    pub facts: TurnFacts,
}

/// An edge into a turn. The parent may not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParentEdge {
    /// The other end of the edge.
    pub parent: TurnId,
    /// What the edge means.
    pub edge_type: EdgeType,
}

/// An edge out of a turn. The child may not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildEdge {
    /// The other end of the edge.
    pub child: TurnId,
    /// What the edge means; the default type where facts are not needed.
    pub edge_type: EdgeType,
}

/// An edge of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Neighbour {
    /// The edge comes from this turn.
    Parent(ParentEdge),
    /// The edge goes to this turn.
    Child(ChildEdge),
}

impl Neighbour {
    /// What the edge means.
    #[must_use]
    pub fn edge_type(&self) -> EdgeType {
        match self {
            Neighbour::Parent(ParentEdge { edge_type, .. })
            | Neighbour::Child(ChildEdge { edge_type, .. }) => *edge_type,
        }
    }
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

    /// The existing children of each turn, once for each edge, with the type of the edge.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ScoredTurn, EdgeType)>,
    ) -> Result<(), Self::Error>;

    /// The children of each turn that edges name and that do not exist.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn missing_children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ChildEdge)>,
    ) -> Result<(), Self::Error>;

    /// The whole rows of these turns.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn turns(
        &mut self,
        ids: &[TurnId],
        sink: Sink<'_, (Turn, TurnFacts)>,
    ) -> Result<(), Self::Error>;

    /// Called between batches and at least every 256 steps. A store that can be cancelled checks for it here.
    fn check_interrupts(&mut self) {}
}
