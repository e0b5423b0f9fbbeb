//! The line: v1's expansion from the anchor (SlicePolicy v1 §5.2), with what POLICY-V2.md changes in it.

use std::ops::ControlFlow;

use foldhash::HashMap;

use crate::graph::edge::EdgeTypes;
use crate::graph::turn::TurnId;
use crate::policy::position::Position;
use crate::slicing::expansion::Expansion;
use crate::slicing::expansion::groups::Reading;
use crate::slicing::fetched::{Child, Children, Reach, sibling_order};
use crate::slicing::frontier::{BestRanks, Budget};
use crate::slicing::observer::{Observer, PassedOver, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::{Part, SliceError};
use crate::slicing::store::{ChildEdge, GraphStore, Neighbour, ScoredTurn};

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// Expands the anchor and its group, then selects and expands the best candidate, until no turns are left or no
    /// candidate is.
    pub(super) fn select_line(
        &mut self,
        anchors: Vec<Rank>,
    ) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        let kept = self.policy.recall_tokens().unwrap_or(0);
        self.budget.tokens = self.budget.tokens.map(|left| left.saturating_sub(kept));
        for rank in anchors {
            self.expand(rank)?;
        }
        while self.budget.nodes > 0 {
            // The frontier has no turn beyond max_radius.
            let Some(candidate) = self.frontier.pop_first() else { break };
            let flow = if self.budget.is_pinned(&candidate) {
                self.expand(candidate)?;
                ControlFlow::Continue(())
            } else if self.policy.keeps_tool_results() {
                self.select_group(candidate)?
            } else {
                self.select_alone(candidate)?
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let radius = self.policy.max_radius();
        let is_at_radius = |selected: &super::Selected| {
            selected.part == Part::Line && selected.rank.distance == radius
        };
        self.is_limited |= !self.frontier.is_empty() || self.selected.iter().any(is_at_radius);
        self.observer.line_ended(self.is_limited);
        Ok(ControlFlow::Continue(()))
    }

    /// Selects a candidate, unless it takes too many tokens.
    fn select_alone(&mut self, candidate: Rank) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        if self.budget.fits(&candidate) {
            if self.select(&[candidate], Part::Line).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.expand(candidate)?;
            return Ok(ControlFlow::Continue(()));
        }
        let left = self.budget.tokens_left();
        self.pass_over(&[candidate], PassedOver::Tokens { left })?;
        Ok(ControlFlow::Continue(()))
    }

    /// Selects a candidate with its calls and results, or passes over all of them.
    fn select_group(&mut self, candidate: Rank) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        let Rank { id, distance, .. } = candidate;
        let group = self.group_of(id, Reading::Neighbours { distance })?;
        let excess = self.excess(candidate, &group[1..]);
        let mut ranks = vec![candidate];
        ranks.extend(self.take_together(candidate, &group[1..]));
        if let Some(because) = excess {
            self.pass_over(&ranks, because)?;
            return Ok(ControlFlow::Continue(()));
        }
        if self.select(&ranks, Part::Line).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        for rank in ranks {
            self.expand(rank)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes over turns that do not fit. Large ones are expanded all the same, so that one huge result does not end
    /// the conversation behind it.
    fn pass_over(
        &mut self,
        ranks: &[Rank],
        because: PassedOver,
    ) -> Result<(), SliceError<S::Error>> {
        self.is_limited = true;
        self.around.store.check_interrupts();
        ranks.iter().for_each(|rank| self.observer.passed_over(*rank, because));
        let tokens = ranks.iter().map(|rank| u64::from(rank.tokens)).sum();
        if ranks.len() <= self.budget.nodes && self.budget.is_large(tokens) {
            for rank in ranks {
                self.expand(*rank)?;
            }
        }
        Ok(())
    }

    /// The others of a group in the order of selection, taken out of the frontier.
    pub(super) fn take_together(&mut self, candidate: Rank, others: &[TurnId]) -> Vec<Rank> {
        let ranks = others.iter().filter_map(|id| self.take_other(candidate, *id));
        let mut ranks: Vec<Rank> = ranks.collect();
        ranks.sort_unstable();
        ranks
    }

    /// Takes another turn of a candidate's group out of the frontier. If it was not discovered yet, it takes the
    /// candidate's distance and strength. `None` if it was passed over before.
    fn take_other(&mut self, candidate: Rank, id: TurnId) -> Option<Rank> {
        if let Some(rank) = self.frontier.remove(id) {
            return Some(rank);
        }
        let turn = self.around.fetched.scored(id).filter(|_| self.visited.insert(id))?;
        let found = self.ranks([(turn, candidate.strength())], candidate.distance);
        let rank = *found.first()?;
        self.observer.discovered(rank, Via::Call, candidate.id);
        Some(rank)
    }

    fn expand(&mut self, candidate: Rank) -> Result<(), SliceError<S::Error>> {
        // Whether anything is found decides whether the slice is limited.
        let wanted = self.budget.nodes > 0 || O::SEES_ALL || self.policy.cut_share() > 0;
        if candidate.distance >= self.policy.max_radius() || !wanted {
            return Ok(());
        }
        self.observer.expanded(candidate);
        self.load_neighbours(candidate.id, candidate.distance)?;
        let distance = candidate.distance + 1;
        let mut found = std::mem::take(&mut self.found);
        if self.policy.include_parents() {
            self.add_ranks(&mut found, self.parents(candidate), distance);
            self.discover(&mut found, Via::Parent, candidate.id)?;
        }
        if self.policy.include_children() {
            match self.around.fetched.children(candidate.id) {
                Children::All(children) => {
                    let strength = |child: &Child| self.strength(candidate, child.types);
                    let children = children.iter().map(|child| (child.turn, strength(child)));
                    self.add_ranks(&mut found, children, distance);
                    self.discover(&mut found, Via::Child, candidate.id)?;
                }
                Children::Wide(_) => self.discover_wide(candidate, distance)?,
            }
        }
        let siblings = self.siblings(candidate.id);
        let position = self.position(candidate.distance, candidate.strength());
        found.extend(siblings.iter().map(|turn| Rank::of(self.policy, turn, position)));
        self.discover(&mut found, Via::Sibling, candidate.id)?;
        self.found = found;
        if O::SEES_ALL {
            self.report_not_discovered(candidate);
        }
        // Observers that see all are called for each turn that is not selected.
        if !O::SEES_ALL && self.frontier.drop_unreachable(&self.budget) {
            self.is_limited = true;
        }
        self.check_held(0)
    }

    /// The existing parents of a turn, with the strength that the best edge leaves.
    fn parents(&self, of: Rank) -> impl Iterator<Item = (ScoredTurn, f32)> {
        let fetched = &self.around.fetched;
        let edges = fetched.parents(of.id);
        let types = (!self.policy.weighs_alike()).then(|| {
            let mut types: HashMap<TurnId, EdgeTypes> = HashMap::default();
            for edge in edges {
                let of_parent = types.entry(edge.parent).or_default();
                *of_parent = of_parent.union(edge.edge_type.into());
            }
            types
        });
        let existing = edges.iter().filter_map(|edge| fetched.scored(edge.parent));
        existing.map(move |turn| {
            let types = types.as_ref().map(|types| types[&turn.id]);
            (turn, types.map_or(of.strength(), |types| self.strength(of, types)))
        })
    }

    /// The strength of a turn that edges of these types connect with this one.
    fn strength(&self, from: Rank, types: EdgeTypes) -> f32 {
        from.strength() * self.policy.weight(types)
    }

    /// Puts the turns that were not visited before into the frontier, each with its first rank in `found`, and empties
    /// `found`.
    fn discover(
        &mut self,
        found: &mut Vec<Rank>,
        via: Via,
        from: TurnId,
    ) -> Result<(), SliceError<S::Error>> {
        found.retain(|rank| !self.visited.contains(&rank.id));
        self.remove_dropped_children(found)?;
        for (place, rank) in found.drain(..).enumerate() {
            if place % 256 == 255 {
                self.around.store.check_interrupts();
            }
            if !self.visited.insert(rank.id) {
                continue;
            }
            if self.budget.is_pinned(&rank) {
                self.observer.discovered_pinned(rank, via, from);
            } else {
                self.observer.discovered(rank, via, from);
            }
            // What is left never grows: a turn that does not fit now is not kept, unless it can be expanded all the
            // same or an observer is called for every outcome.
            if O::SEES_ALL || self.budget.keeps(&rank) {
                self.frontier.insert(rank);
            } else {
                self.is_limited = true;
            }
        }
        Ok(())
    }

    /// Reports to the observer what expanding this turn did not discover.
    fn report_not_discovered(&mut self, expanded: Rank) {
        let position = self.position(expanded.distance, expanded.strength());
        for edge in self.around.fetched.parents(expanded.id) {
            if self.policy.include_parents() && self.around.fetched.scored(edge.parent).is_none() {
                self.observer.missing_parent(edge.parent, expanded);
            }
            if self.policy.sibling_limit() > 0 {
                let siblings = self.around.fetched.children(edge.parent).in_sibling_order();
                let policy = self.policy;
                let mut ranks =
                    siblings.iter().map(|child| Rank::of(policy, &child.turn, position));
                self.observer.siblings(edge.parent, expanded, &mut ranks);
            }
        }
    }

    /// Discovers the best children of a wide turn, and drops those that the budget cannot reach.
    fn discover_wide(&mut self, parent: Rank, distance: u32) -> Result<(), SliceError<S::Error>> {
        let mut budget = self.budget.clone();
        loop {
            let BestRanks { mut ranks, is_cut, is_bounded } =
                self.best_children(parent, distance, &budget)?;
            let found = ranks.len();
            self.remove_dropped_children(&mut ranks)?;
            // Each that was dropped here has so many better ones as this budget has nodes. Where too many of those had
            // been dropped with another wide parent, more are needed.
            let removed = found - ranks.len();
            if is_bounded && removed > budget.nodes - self.budget.nodes {
                budget.nodes = (2 * budget.nodes).max(1);
                self.check_held(2 * budget.nodes)?;
                continue;
            }
            self.discover(&mut ranks, Via::Child, parent.id)?;
            if is_cut {
                self.parents_with_dropped.insert(parent.id);
                self.is_limited = true;
            }
            return Ok(());
        }
    }

    /// The children that were not visited yet and that this budget may reach.
    fn best_children(
        &mut self,
        parent: Rank,
        distance: u32,
        budget: &Budget,
    ) -> Result<BestRanks, SliceError<S::Error>> {
        let types = self.types_of_children(parent.id)?;
        let held = self.around.fetched.held() + self.visited.len() + types.len();
        let Expansion { around, policy, visited, limits, anchor_time, .. } = self;
        let room = limits.held.saturating_sub(held);
        let (strength, anchor_time) = (parent.strength(), *anchor_time);
        let mut best = budget.best();
        let mut has_room = true;
        around
            .store
            .children(&[parent.id], &mut |(_, turn, edge_type)| {
                let types = types.get(&turn.id).copied().unwrap_or(edge_type.into());
                let strength = strength * policy.weight(types);
                let rank = Rank::of(policy, &turn, Position { distance, strength, anchor_time });
                if !visited.contains(&rank.id) {
                    best.push(rank);
                }
                has_room = best.len() <= room;
                if has_room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(SliceError::Store)?;
        if !has_room {
            return Err(SliceError::TooManyIds(limits.held));
        }
        Ok(best.finish())
    }

    /// The types of the edges from a wide turn to each of its children. Empty if the greatest strength always gives the
    /// best rank: then each edge can be ranked by itself. Otherwise all types of a child must be known, and its edges
    /// are not always read one after the other.
    fn types_of_children(
        &mut self,
        parent: TurnId,
    ) -> Result<HashMap<TurnId, EdgeTypes>, SliceError<S::Error>> {
        let mut types: HashMap<TurnId, EdgeTypes> = HashMap::default();
        if self.policy.stronger_is_better() {
            return Ok(types);
        }
        let room = self.limits.held.saturating_sub(self.around.fetched.held() + self.visited.len());
        self.around
            .store
            .neighbours(&[], &[parent], &mut |(_, neighbour)| {
                if let Neighbour::Child(ChildEdge { child, edge_type }) = neighbour {
                    let of_child = types.entry(child).or_default();
                    *of_child = of_child.union(edge_type.into());
                }
                if types.len() <= room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(SliceError::Store)?;
        if types.len() > room {
            return Err(SliceError::TooManyIds(self.limits.held));
        }
        Ok(types)
    }

    /// Removes the children of parents whose children were dropped: they count as visited.
    fn remove_dropped_children(
        &mut self,
        found: &mut Vec<Rank>,
    ) -> Result<(), SliceError<S::Error>> {
        if self.parents_with_dropped.is_empty() || found.is_empty() {
            return Ok(());
        }
        let ids: Vec<TurnId> = found.iter().map(|rank| rank.id).collect();
        self.around.load_parents(&ids)?;
        let fetched = &self.around.fetched;
        found.retain(|rank| {
            !fetched
                .parents(rank.id)
                .iter()
                .any(|edge| self.parents_with_dropped.contains(&edge.parent))
        });
        Ok(())
    }

    /// The turns that share a parent with this one, as many as the policy allows.
    fn siblings(&self, id: TurnId) -> Vec<ScoredTurn> {
        let limit = self.policy.sibling_limit();
        if limit == 0 {
            return Vec::new();
        }
        // The first siblings of all are among the first of each parent, which may include the turn itself.
        let best = limit.saturating_add(1);
        let fetched = &self.around.fetched;
        let mut siblings: Vec<ScoredTurn> = fetched
            .parents(id)
            .iter()
            .flat_map(|edge| fetched.children(edge.parent).in_sibling_order().iter().take(best))
            .map(|child| child.turn)
            .filter(|turn| turn.id != id)
            .collect();
        siblings.sort_unstable_by_key(sibling_order);
        siblings.dedup_by_key(|turn| turn.id);
        siblings.truncate(limit);
        siblings
    }

    /// Fetches what expanding a turn at this distance needs, and the same for the best of the frontier.
    pub(super) fn load_neighbours(
        &mut self,
        turn: TurnId,
        distance: u32,
    ) -> Result<(), SliceError<S::Error>> {
        let reach = Reach::of(self.policy);
        if self.around.fetched.is_loaded(turn, reach) {
            return Ok(());
        }
        let most = self.limits.batch.min(self.budget.nodes).max(1);
        let (radius, groups) = (self.policy.max_radius(), self.policy.keeps_tool_results());
        let needed = |rank: &&Rank| rank.distance < radius || groups;
        let next = self.frontier.iter().take(most - 1).filter(needed).map(|rank| rank.id);
        let batch: Vec<TurnId> = std::iter::once(turn)
            .chain(next.filter(|id| !self.around.fetched.is_loaded(*id, reach)))
            .collect();
        self.load(batch, self.policy.max_radius() - distance)
    }

    pub(super) fn load(
        &mut self,
        turns: Vec<TurnId>,
        steps: u32,
    ) -> Result<(), SliceError<S::Error>> {
        let around = self.limits.nearby.min(self.budget.nodes);
        self.around.load(turns, Reach::of(self.policy), steps, around)
    }
}
