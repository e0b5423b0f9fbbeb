//! What exists for a policy (POLICY-V2.md, What exists): a store that leaves out the rest.

use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use crate::graph::edge::EdgeType;
use crate::graph::turn::{Turn, TurnId, session_id};
use crate::slicing::store::{
    ChildEdge, EdgeTypes, GraphStore, Neighbour, ScoredTurn, Sink, TurnFacts,
};

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
    fn admits_all_turns(&self) -> bool {
        let Admission { earliest, latest, session, .. } = self;
        (*earliest, *latest, *session) == (i64::MIN, i64::MAX, None)
    }

    fn has_type(&self, edge_type: EdgeType) -> bool {
        self.edge_types.contains(edge_type)
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

/// A store without what is not admitted: as if those rows were missing.
pub(crate) struct AdmittingStore<'a, S> {
    store: &'a mut S,
    pub(crate) admission: Admission,
}

impl<'a, S> AdmittingStore<'a, S> {
    pub(crate) fn new(store: &'a mut S, admission: Admission) -> Self {
        AdmittingStore { store, admission }
    }
}

impl<S: GraphStore> GraphStore for AdmittingStore<'_, S> {
    type Error = S::Error;

    fn scored(&mut self, ids: &[TurnId], sink: Sink<'_, ScoredTurn>) -> Result<(), S::Error> {
        let AdmittingStore { store, admission } = self;
        store.scored(ids, &mut |turn| {
            if admission.admits(&turn.facts) { sink(turn) } else { ControlFlow::Continue(()) }
        })
    }

    fn neighbours(
        &mut self,
        parents_of: &[TurnId],
        children_of: &[TurnId],
        sink: Sink<'_, (TurnId, Neighbour)>,
    ) -> Result<(), S::Error> {
        let AdmittingStore { store, admission } = self;
        store.neighbours(parents_of, children_of, &mut |(turn, neighbour)| {
            if admission.has_type(neighbour.edge_type()) {
                sink((turn, neighbour))
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    fn children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ScoredTurn, EdgeType)>,
    ) -> Result<(), S::Error> {
        let AdmittingStore { store, admission } = self;
        store.children(of, &mut |(index, turn, edge_type)| {
            if admission.has_type(edge_type) && admission.admits(&turn.facts) {
                sink((index, turn, edge_type))
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    fn missing_children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ChildEdge)>,
    ) -> Result<(), S::Error> {
        let AdmittingStore { store, admission } = self;
        let mut wants_more = true;
        store.missing_children(of, &mut |(index, edge)| {
            let flow = if admission.has_type(edge.edge_type) {
                sink((index, edge))
            } else {
                ControlFlow::Continue(())
            };
            wants_more = flow.is_continue();
            flow
        })?;
        if admission.admits_all_turns() || !wants_more {
            return Ok(());
        }
        store.children(of, &mut |(index, turn, edge_type)| {
            if admission.has_type(edge_type) && !admission.admits(&turn.facts) {
                sink((index, ChildEdge { child: turn.id, edge_type }))
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    fn turns(&mut self, ids: &[TurnId], sink: Sink<'_, (Turn, TurnFacts)>) -> Result<(), S::Error> {
        let AdmittingStore { store, admission } = self;
        store.turns(ids, &mut |(turn, facts)| {
            if admission.admits(&facts) { sink((turn, facts)) } else { ControlFlow::Continue(()) }
        })
    }

    fn check_interrupts(&mut self) {
        self.store.check_interrupts();
    }
}
