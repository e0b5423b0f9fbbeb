//! The anchor, with its calls and results.

use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::slicing::expansion::Expansion;
use crate::slicing::expansion::groups::Reading;
use crate::slicing::fetched::Reach;
use crate::slicing::observer::{Observer, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::{Part, SliceError};
use crate::slicing::store::{GraphStore, ScoredTurn};

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// Selects the anchor and its group, whatever tokens they take, and returns them in the order of selection. A group
    /// of more turns than the policy allows is no group.
    pub(super) fn select_anchor(
        &mut self,
        anchor: TurnId,
    ) -> Result<ControlFlow<(), Vec<Rank>>, SliceError<S::Error>> {
        let turn = self.begin(anchor)?;
        let rank = self.ranks([(turn, 1.0)], 0)[0];
        self.visited.insert(anchor);
        self.observer.discovered(rank, Via::Anchor, anchor);
        let mut ranks = vec![rank];
        if self.policy.keeps_tool_results() {
            let group = self.group_of(anchor, Reading::Neighbours { distance: 0 })?;
            if group.len() > self.budget.nodes {
                self.groups.split(&group);
            } else {
                ranks.extend(self.take_together(rank, &group[1..]));
            }
        }
        Ok(self.select(&ranks, Part::Anchor).map_continue(|()| ranks))
    }

    /// Looks the anchor up, and what else exists for it.
    fn begin(&mut self, anchor: TurnId) -> Result<ScoredTurn, SliceError<S::Error>> {
        let not_found = SliceError::AnchorNotFound(anchor);
        if self.policy.needs().anchor {
            self.around.fetched.forget();
            self.around.store.admission = self.policy.admission();
            let Some(turn) = self.around.turn(anchor)? else { return Err(not_found) };
            // Which of its rows would decide what else exists?
            if self.around.fetched.is_duplicate(anchor) {
                return Err(SliceError::DuplicateTurn(anchor));
            }
            self.around.fetched.forget();
            self.around.store.admission = self.policy.admission_at(&turn.facts);
        }
        if self.policy.expands() && !self.around.fetched.is_loaded(anchor, Reach::of(self.policy)) {
            self.load(vec![anchor], self.policy.max_radius())?;
        }
        let Some(turn) = self.around.turn(anchor)? else { return Err(not_found) };
        self.anchor_time = turn.facts.created_at;
        Ok(turn)
    }
}
