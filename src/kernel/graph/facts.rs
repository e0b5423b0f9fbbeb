//! What a policy may read of a turn.

use sha2::{Digest, Sha256};

use crate::graph::turn::{Phase, session_id};

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
    /// When it was created, in microseconds since 1970 as [`crate::graph::turn::unix_micros`] gives them; 0 where none
    /// is stored or that is not needed.
    pub micros: i64,
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
            micros: 0,
            session: SessionKey::default(),
        }
    }
}

/// The hash of a session's name: two names with one hash cannot be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionKey(u128);

impl SessionKey {
    /// The key of a name, as it is stored or as it counts.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let digest = Sha256::digest(session_id(name).as_bytes());
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        SessionKey(u128::from_le_bytes(*first))
    }
}
