//! The expansion (SlicePolicy v1 §5; POLICY-V2.md), reading neighbours in batches.
//!
//! The neighbours of a turn do not depend on the state of the expansion, so [`crate::slicing::neighbourhood`] fetches
//! them ahead, in batches. Turns are selected one by one, or with their calls and results, in the order of §5.2.

pub(crate) mod groups;

use std::ops::ControlFlow;

use foldhash::{HashMap, HashSet};

use crate::graph::edge::Edge;
use crate::graph::edge::EdgeTypes;
use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::policy::position::Position;
use crate::slicing::expansion::groups::Groups;
use crate::slicing::fetched::{Child, Children, Reach, sibling_order};
use crate::slicing::frontier::{BestRanks, Budget, Frontier};
use crate::slicing::neighbourhood::{Limits, Neighbourhood};
use crate::slicing::observer::{Observer, PassedOver, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::{SelectedTurn, Slice, SliceError};
use crate::slicing::store::{ChildEdge, GraphStore, Neighbour, ScoredTurn};

/// The expansion at one anchor.
pub(crate) struct Expansion<'a, 's, S, O> {
    pub(super) around: &'a mut Neighbourhood<'s, S>,
    observer: &'a mut O,
    pub(super) policy: &'a SlicePolicy,
    limits: Limits,
    /// When the anchor was created.
    anchor_time: i64,
    budget: Budget,
    /// In selection order.
    selected: Vec<Rank>,
    visited: HashSet<TurnId>,
    frontier: Frontier,
    /// Expanded wide turns, some of whose children were dropped: those children count as visited.
    parents_with_dropped: HashSet<TurnId>,
    pub(super) groups: Groups,
    /// What the turn that is being expanded has found; empty between. It is kept for its memory.
    found: Vec<Rank>,
}

impl<'a, 's, S: GraphStore, O: Observer> Expansion<'a, 's, S, O> {
    pub(crate) fn new(
        around: &'a mut Neighbourhood<'s, S>,
        observer: &'a mut O,
        policy: &'a SlicePolicy,
        limits: Limits,
    ) -> Self {
        Expansion {
            around,
            observer,
            policy,
            limits,
            anchor_time: 0,
            budget: Budget::of(policy),
            selected: Vec::new(),
            visited: HashSet::default(),
            frontier: Frontier::of(policy),
            parents_with_dropped: HashSet::default(),
            groups: Groups::default(),
            found: Vec::new(),
        }
    }

    pub(crate) fn slice(&mut self, anchor: TurnId) -> Result<Slice, SliceError<S::Error>> {
        self.run(anchor)?;
        let edges = self.edges()?;
        let turns = self.turns()?;
        Ok(Slice { anchor, turns, edges })
    }

    /// The main loop of §5.2.
    pub(crate) fn run(&mut self, anchor: TurnId) -> Result<(), SliceError<S::Error>> {
        let anchor = self.begin(anchor)?;
        let mut found = self.ranks([(anchor, 1.0)], 0);
        self.discover(&mut found, Via::Anchor, anchor.id)?;
        while self.budget.nodes > 0 {
            // The frontier has no turn beyond max_radius.
            let Some(candidate) = self.frontier.pop_first() else {
                break;
            };
            let flow = if self.policy.keeps_tool_results() {
                self.select_group(candidate)?
            } else {
                self.select_alone(candidate)?
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
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

    /// Selects a candidate, unless it takes too many tokens.
    fn select_alone(&mut self, candidate: Rank) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        if !self.selected.is_empty() && !self.budget.fits(&candidate) {
            let left = self.budget.tokens_left();
            self.observer.passed_over(candidate, PassedOver::Tokens { left });
            return Ok(ControlFlow::Continue(()));
        }
        if self.select(candidate).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.expand(candidate)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Selects a candidate with its calls and results, or passes over all of them.
    fn select_group(&mut self, candidate: Rank) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        let is_anchor = self.selected.is_empty();
        // Each of the others is passed over as the next candidate. Observers are called for all of them at once.
        if !is_anchor && !O::SEES_ALL && !self.budget.fits(&candidate) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut group = self.group_of(candidate)?;
        let of = |id: &TurnId| self.around.fetched.scored(*id).map_or(0, |turn| turn.facts.tokens);
        let others: u64 = group[1..].iter().map(|id| u64::from(of(id))).sum();
        let tokens = u64::from(candidate.tokens) + others;
        // The anchor's own tokens are taken off in any case.
        let left = self.budget.tokens_left();
        let left = if is_anchor { left.max(candidate.tokens.into()) } else { left };
        let too_large = if group.len() > self.budget.nodes {
            let turns = group.len();
            Some(PassedOver::GroupTurns { turns, left: self.budget.nodes })
        } else if tokens > left && group.len() == 1 {
            Some(PassedOver::Tokens { left })
        } else {
            (tokens > left).then_some(PassedOver::GroupTokens { tokens, left })
        };
        match too_large {
            Some(_) if is_anchor => {
                self.groups.split(&group);
                group.truncate(1);
            }
            Some(because) => {
                self.pass_over(candidate, &group[1..], because);
                return Ok(ControlFlow::Continue(()));
            }
            None => {}
        }
        let mut ranks = vec![candidate];
        ranks.extend(self.take_together(candidate, &group[1..]));
        for rank in &ranks {
            if self.select(*rank).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        for rank in ranks {
            self.expand(rank)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The others of a group in the order of selection, taken out of the frontier.
    fn take_together(&mut self, candidate: Rank, others: &[TurnId]) -> Vec<Rank> {
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

    fn pass_over(&mut self, candidate: Rank, others: &[TurnId], because: PassedOver) {
        self.observer.passed_over(candidate, because);
        for id in others {
            if let Some(rank) = self.take_other(candidate, *id) {
                self.observer.passed_over(rank, because);
            }
        }
    }

    fn select(&mut self, turn: Rank) -> ControlFlow<()> {
        self.selected.push(turn);
        self.budget.take(&turn);
        self.around.store.check_interrupts();
        self.observer.selected(turn)
    }

    fn expand(&mut self, candidate: Rank) -> Result<(), SliceError<S::Error>> {
        let wanted = self.budget.nodes > 0 || O::SEES_ALL;
        if candidate.distance >= self.policy.max_radius() || !wanted {
            return Ok(());
        }
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
        if !O::SEES_ALL {
            self.frontier.drop_unreachable(&self.budget);
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
            if self.visited.insert(rank.id) {
                self.observer.discovered(rank, via, from);
                // What is left never grows: a turn that does not fit now is not kept, unless an observer is called
                // for every outcome. The anchor is selected in any case.
                if O::SEES_ALL || self.selected.is_empty() || self.budget.fits(&rank) {
                    self.frontier.insert(rank);
                }
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
                budget.nodes *= 2;
                self.check_held(2 * budget.nodes)?;
                continue;
            }
            self.discover(&mut ranks, Via::Child, parent.id)?;
            if is_cut {
                self.parents_with_dropped.insert(parent.id);
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

    fn load(&mut self, turns: Vec<TurnId>, steps: u32) -> Result<(), SliceError<S::Error>> {
        let around = self.limits.nearby.min(self.budget.nodes);
        self.around.load(turns, Reach::of(self.policy), steps, around)
    }

    /// Every edge between selected turns.
    fn edges(&mut self) -> Result<Vec<Edge>, SliceError<S::Error>> {
        let ids: Vec<TurnId> = self.selected.iter().map(|rank| rank.id).collect();
        self.around.load_parents(&ids)?;
        let within: HashSet<TurnId> = ids.iter().copied().collect();
        let fetched = &self.around.fetched;
        let mut edges: Vec<Edge> = ids
            .iter()
            .flat_map(|child| fetched.parents(*child).iter().map(move |edge| (child, edge)))
            .filter(|(_, edge)| within.contains(&edge.parent))
            .map(|(child, edge)| Edge {
                parent: edge.parent,
                child: *child,
                edge_type: edge.edge_type,
            })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        Ok(edges)
    }

    /// The selected turns with their whole rows, ascending by id.
    fn turns(&mut self) -> Result<Vec<SelectedTurn>, SliceError<S::Error>> {
        let ids: Vec<TurnId> = self.selected.iter().map(|rank| rank.id).collect();
        let rows = self.around.rows(&ids)?;
        let ranked = self.selected.iter().zip(rows).enumerate();
        let mut turns: Vec<SelectedTurn> = ranked
            .map(|(order, (rank, turn))| SelectedTurn {
                turn,
                distance: rank.distance,
                priority: rank.priority(),
                tokens: rank.tokens,
                selection_order: order as u32,
            })
            .collect();
        turns.sort_unstable_by_key(|selected| selected.turn.id);
        Ok(turns)
    }

    /// The ranks of these turns of a strength. Those of a turn that is stored more than once come best first.
    fn ranks(
        &self,
        turns: impl IntoIterator<Item = (ScoredTurn, f32)>,
        distance: u32,
    ) -> Vec<Rank> {
        let mut ranks = Vec::new();
        self.add_ranks(&mut ranks, turns, distance);
        ranks
    }

    /// As [`Expansion::ranks`], into an empty list.
    fn add_ranks(
        &self,
        ranks: &mut Vec<Rank>,
        turns: impl IntoIterator<Item = (ScoredTurn, f32)>,
        distance: u32,
    ) {
        let rank = |turn: &ScoredTurn, strength| {
            Rank::of(self.policy, turn, self.position(distance, strength))
        };
        ranks.extend(turns.into_iter().map(|(turn, strength)| rank(&turn, strength)));
        if self.around.fetched.has_duplicates() {
            let found = ranks.clone();
            for first in found {
                let further = self.around.fetched.further_scores(std::iter::once(first.id));
                ranks.extend(further.iter().map(|turn| rank(turn, first.strength())));
            }
            ranks.sort_unstable();
        }
    }

    fn position(&self, distance: u32, strength: f32) -> Position {
        Position { distance, strength, anchor_time: self.anchor_time }
    }

    fn check_held(&self, more: usize) -> Result<(), SliceError<S::Error>> {
        if self.around.fetched.held() + self.visited.len() + more > self.limits.held {
            return Err(SliceError::TooManyIds(self.limits.held));
        }
        Ok(())
    }
}
