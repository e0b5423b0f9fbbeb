//! What a search has found, and what was said around it (POLICY-V2.md, Recalled turns).

use std::ops::ControlFlow;

use foldhash::HashSet;

use crate::graph::edge::EdgeTypes;
use crate::graph::turn::TurnId;
use crate::policy::position::Position;
use crate::slicing::expansion::Expansion;
use crate::slicing::expansion::groups::Reading;
use crate::slicing::frontier::Frontier;
use crate::slicing::observer::Observer;
use crate::slicing::score::Rank;
use crate::slicing::slice::{Part, SliceError};
use crate::slicing::store::{GraphStore, ScoredTurn};

/// By how much more turns are read ahead together than in an expansion: seeds are many, and hardly one is in vain.
const AHEAD: usize = 4;

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// Selects the best turn that was found or reached, and walks on from it, until no turns are left or none is.
    pub(super) fn select_recalled(&mut self) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        let seeds: Vec<(TurnId, f32)> = self.policy.seeds().collect();
        if seeds.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        self.budget = self.left();
        if let Some(most) = self.policy.recall_tokens() {
            self.budget.tokens = Some(self.budget.tokens.map_or(most, |left| left.min(most)));
        }
        if self.budget.nodes == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let ids: Vec<TurnId> = seeds.iter().map(|(id, _)| *id).collect();
        self.around.look_up(&ids)?;
        let mut frontier = Frontier::by_turn();
        for (id, strength) in seeds {
            if let Some(rank) = self.recall_rank(id, 0, strength) {
                self.observer.reached(rank, None);
                self.reached_from.insert(id, id);
                frontier.insert(rank);
            }
        }
        let mut selected = self.selected_ids();
        let mut taken: HashSet<TurnId> = HashSet::default();
        while self.budget.nodes > 0 {
            let Some(best) = frontier.pop_first() else { break };
            self.around.store.check_interrupts();
            taken.insert(best.id);
            self.read_ahead(best.id, &frontier)?;
            if !selected.contains(&best.id) {
                let mut group = self.group_of(best.id, Reading::Links)?;
                group.retain(|id| !selected.contains(id));
                if let Some(because) = self.excess(best, &group[1..]) {
                    self.observer.not_recalled(best, because);
                    continue;
                }
                let ranks = self.recalled_together(best, &group[1..]);
                selected.extend(&group);
                if self.select(&ranks, Part::Recalled).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if best.distance < self.policy.recall_radius() && self.budget.nodes > 0 {
                self.walk(best, &taken, &mut frontier)?;
            }
            if self.around.fetched.held() + taken.len() > self.limits.held {
                return Err(SliceError::TooManyIds(self.limits.held));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Fetches what taking this turn and the next best ones needs.
    fn read_ahead(
        &mut self,
        best: TurnId,
        frontier: &Frontier,
    ) -> Result<(), SliceError<S::Error>> {
        if self.around.fetched.has_links(best) {
            return Ok(());
        }
        let next = frontier.iter().map(|rank| rank.id).take(AHEAD * self.limits.batch);
        let next = next.filter(|id| !self.around.fetched.has_links(*id));
        let batch: Vec<TurnId> = std::iter::once(best).chain(next).collect();
        if self.policy.keeps_tool_results() {
            self.load_groups(&batch)
        } else {
            self.around.load_links(batch)
        }
    }

    /// A turn with others of its group, which take its hops and its strength, in the order of their ranks.
    fn recalled_together(&mut self, best: Rank, others: &[TurnId]) -> Vec<Rank> {
        let of = |id: &TurnId| self.recall_rank(*id, best.distance, best.strength());
        let mut others: Vec<Rank> = others.iter().filter_map(of).collect();
        others.sort_unstable();
        others.iter().for_each(|rank| self.observer.recalled_with(*rank, best.id));
        let seed = self.reached_from[&best.id];
        let together = [vec![best], others].concat();
        self.recalled_from.extend(together.iter().map(|rank| (rank.id, seed)));
        together
    }

    /// Goes from a turn to its parents and its children, but not where these are too many.
    fn walk(
        &mut self,
        from: Rank,
        taken: &HashSet<TurnId>,
        frontier: &mut Frontier,
    ) -> Result<(), SliceError<S::Error>> {
        self.around.load_links([from.id])?;
        let seed = self.reached_from[&from.id];
        let links = self.around.fetched.links(from.id);
        let ends = links.into_iter().flat_map(|links| [&links.parents, &links.children]);
        let ends: Vec<(TurnId, EdgeTypes)> = ends.flatten().flatten().copied().collect();
        for (id, types) in ends.into_iter().filter(|(id, _)| !taken.contains(id)) {
            let strength =
                (from.strength() * self.policy.recall_decay()) * self.policy.weight(types);
            if strength == 0.0 {
                continue;
            }
            let Some(rank) = self.recall_rank(id, from.distance + 1, strength) else { continue };
            let known = frontier.get(id);
            let rises = known.is_none_or(|known| {
                let (new, old) = (rank.strength_bits(), known.strength_bits());
                new > old || (new == old && rank.distance < known.distance)
            });
            if rises {
                frontier.remove(id);
                frontier.insert(rank);
                self.reached_from.insert(id, seed);
                self.observer.reached(rank, Some(from.id));
            }
        }
        Ok(())
    }

    /// The rank of an existing turn at so many hops; the best of its rows where it is stored more than once.
    fn recall_rank(&self, id: TurnId, hops: u32, strength: f32) -> Option<Rank> {
        let first = self.around.fetched.scored(id)?;
        let own = self.policy.seed(id).unwrap_or(0.0);
        let position = Position { distance: hops, strength, anchor_time: self.anchor_time };
        let rank = |turn: &ScoredTurn| Rank::recalled(self.policy, turn, position, own);
        let further = self.around.fetched.further_scores(std::iter::once(id));
        further.iter().map(rank).chain([rank(&first)]).min()
    }
}
