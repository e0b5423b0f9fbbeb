//! What exists for a policy (POLICY-V2.md, What exists): a store that leaves out the rest.

use std::ops::ControlFlow;

use crate::graph::edge::EdgeType;
use crate::graph::facts::TurnFacts;
use crate::graph::turn::{Turn, TurnId};
use crate::policy::admission::Admission;
use crate::slicing::store::{ChildEdge, GraphStore, Neighbour, ScoredTurn, Sink};

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
