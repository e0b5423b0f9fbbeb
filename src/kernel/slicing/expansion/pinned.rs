//! Pinned turns, each with its calls and results.

use std::ops::ControlFlow;
use std::rc::Rc;

use foldhash::HashSet;

use crate::graph::turn::TurnId;
use crate::slicing::expansion::Expansion;
use crate::slicing::expansion::groups::Reading;
use crate::slicing::observer::{Observer, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::{Part, SliceError};
use crate::slicing::store::GraphStore;

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// Selects the pins that exist and fit, in the order given.
    pub(super) fn select_pinned(&mut self) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        let pins = self.policy.pins();
        if pins.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        self.around.look_up(pins)?;
        if self.policy.keeps_tool_results() {
            self.load_groups(pins)?;
        }
        let mut selected = self.selected_ids();
        let mut pinned: HashSet<TurnId> = HashSet::default();
        for pin in pins {
            if selected.contains(pin) || self.around.fetched.scored(*pin).is_none() {
                continue;
            }
            let group = self.group_of(*pin, Reading::Links)?;
            let Some(rank) = self.pinned_rank(*pin) else { continue };
            if let Some(because) = self.excess(rank, &group[1..]) {
                self.observer.pin_left_out(rank, because);
                self.pins_left_out.push(*pin);
                continue;
            }
            let others = group[1..].iter().filter_map(|id| self.pinned_rank(*id));
            let mut others: Vec<Rank> = others.collect();
            others.sort_unstable();
            self.observer.discovered(rank, Via::Pin, *pin);
            others.iter().for_each(|other| self.observer.discovered(*other, Via::Call, *pin));
            selected.extend(&group);
            pinned.extend(&group);
            let ranks = [vec![rank], others].concat();
            if self.select(&ranks, Part::Pinned).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.budget.pinned = Rc::new(pinned);
        Ok(ControlFlow::Continue(()))
    }

    /// The rank of a pinned turn: at no distance and with full strength.
    fn pinned_rank(&self, id: TurnId) -> Option<Rank> {
        let turn = self.around.fetched.scored(id)?;
        self.ranks([(turn, 1.0)], 0).first().copied()
    }
}
