//! What exists for a policy (POLICY-V2.md, What exists).

use crate::graph::edge::{EdgeType, EdgeTypes};
use crate::graph::facts::{SessionKey, TurnFacts};

/// The turns and edges that exist. The default is all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Turns created earlier do not exist. Unix seconds.
    pub earliest: i64,
    /// Turns created later do not exist. Unix seconds.
    pub latest: i64,
    /// Where given, turns of other sessions do not exist.
    pub session: Option<SessionKey>,
    /// Edges of other types do not exist.
    pub edge_types: EdgeTypes,
}

impl Default for Admission {
    fn default() -> Self {
        Admission {
            earliest: i64::MIN,
            latest: i64::MAX,
            session: None,
            edge_types: EdgeType::ALL.iter().copied().collect(),
        }
    }
}

impl Admission {
    /// Whether a turn of these facts exists.
    #[must_use]
    pub fn admits(&self, turn: &TurnFacts) -> bool {
        (self.earliest..=self.latest).contains(&turn.created_at)
            && self.session.is_none_or(|session| session == turn.session)
    }

    /// Whether every turn exists.
    pub(crate) fn admits_all_turns(&self) -> bool {
        let Admission { earliest, latest, session, .. } = self;
        (*earliest, *latest, *session) == (i64::MIN, i64::MAX, None)
    }

    /// Whether edges of this type exist.
    pub(crate) fn has_type(&self, edge_type: EdgeType) -> bool {
        self.edge_types.contains(edge_type)
    }
}
