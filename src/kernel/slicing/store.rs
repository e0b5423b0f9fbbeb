//! What the slicer asks of a graph.

use std::ops::ControlFlow;

use crate::graph::edge::EdgeType;
use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::slicing::admission::SessionKey;

/// What a policy reads of turns and edges besides phase and salience. A store need not read what is not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Needs {
    /// Time, session and role of turns, and the types of edges.
    pub facts: bool,
    /// The tokens of turns.
    pub tokens: bool,
    /// The keys of sessions, which are computed.
    pub sessions: bool,
    /// The anchor's own facts before anything else is read: which turns exist depends on them.
    pub anchor: bool,
}

/// What a policy reads of a turn to score it and to decide whether it exists, with defaults applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnFacts {
    /// What the turn was for.
    pub phase: Phase,
    /// In [0, 1].
    pub salience: f32,
    /// Whether it has the role `tool`; false where that is not needed.
    pub is_tool: bool,
    /// What it takes of a token budget; 0 where that is not needed.
    pub tokens: u32,
    /// Unix seconds; 0 where that is not needed.
    pub created_at: i64,
    /// The default where that is not needed.
    pub session: SessionKey,
}

impl TurnFacts {
    /// What v1 reads, all else being what is not needed.
    #[must_use]
    pub fn scoring(phase: Phase, salience: f32) -> Self {
        TurnFacts {
            phase,
            salience,
            is_tool: false,
            tokens: 0,
            created_at: 0,
            session: SessionKey::default(),
        }
    }

    /// Of a whole row, what is needed.
    #[must_use]
    pub fn of(turn: &Turn, tokens: u32, needs: Needs) -> Self {
        let scoring = TurnFacts::scoring(turn.phase, turn.salience);
        if !needs.facts {
            return TurnFacts { tokens, ..scoring };
        }
        let session = needs.sessions.then(|| SessionKey::of(&turn.session_id));
        TurnFacts {
            is_tool: turn.role == Role::Tool,
            tokens,
            created_at: turn.created_at,
            session: session.unwrap_or_default(),
            ..scoring
        }
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

/// A set of types of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeTypes(u8);

impl EdgeTypes {
    /// Whether the type is in the set.
    #[must_use]
    pub fn contains(self, edge_type: EdgeType) -> bool {
        self.0 & 1 << edge_type as u8 != 0
    }

    /// The types in the set.
    pub fn iter(self) -> impl Iterator<Item = EdgeType> {
        EdgeType::ALL.iter().copied().filter(move |edge_type| self.contains(*edge_type))
    }

    /// The types in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        EdgeTypes(self.0 | other.0)
    }
}

impl From<EdgeType> for EdgeTypes {
    fn from(edge_type: EdgeType) -> Self {
        EdgeTypes(1 << edge_type as u8)
    }
}

impl FromIterator<EdgeType> for EdgeTypes {
    fn from_iter<I: IntoIterator<Item = EdgeType>>(types: I) -> Self {
        types.into_iter().fold(EdgeTypes::default(), |set, edge_type| set.union(edge_type.into()))
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
