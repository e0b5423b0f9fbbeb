//! What a policy reads.

use crate::graph::facts::{SessionKey, TurnFacts};
use crate::graph::turn::{Role, Turn};

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

impl Needs {
    /// What is needed of a whole row; `micros` is when it was created, in microseconds since 1970.
    #[must_use]
    pub fn facts_of(self, turn: &Turn, micros: i64, tokens: u32) -> TurnFacts {
        let scoring = TurnFacts::scoring(turn.phase, turn.salience);
        if !self.facts {
            return TurnFacts { tokens, ..scoring };
        }
        let session = self.sessions.then(|| SessionKey::of(&turn.session_id));
        TurnFacts {
            is_tool: turn.role == Role::Tool,
            tokens,
            created_at: turn.created_at,
            micros,
            session: session.unwrap_or_default(),
            ..scoring
        }
    }
}
