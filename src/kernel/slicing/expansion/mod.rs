//! The selection of a slice (SlicePolicy v1 §5; POLICY-V2.md), part by part, reading neighbours in batches.
//!
//! [`anchor`], [`pinned`], [`line`](self::line), [`cut`] and [`recalled`] follow each other and share what is here:
//! what was selected, what is left, and the groups of calls with their results. The line is v1's expansion. The
//! neighbours of a turn do not depend on the state of the expansion, so [`crate::slicing::neighbourhood`] fetches them
//! ahead, in batches.

mod anchor;
mod cut;
pub(crate) mod groups;
mod line;
mod pinned;
mod recalled;

use std::ops::ControlFlow;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};

use crate::graph::edge::Edge;
use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::policy::position::Position;
use crate::slicing::expansion::groups::Groups;
use crate::slicing::frontier::{Budget, Frontier};
use crate::slicing::neighbourhood::{Limits, Neighbourhood};
use crate::slicing::observer::{Observer, PassedOver};
use crate::slicing::score::Rank;
use crate::slicing::slice::{Part, SelectedTurn, Slice, SliceError};
use crate::slicing::store::{GraphStore, ScoredTurn};

/// The selection of a slice at one anchor.
pub(crate) struct Expansion<'a, 's, S, O> {
    around: &'a mut Neighbourhood<'s, S>,
    observer: &'a mut O,
    policy: &'a SlicePolicy,
    limits: Limits,
    /// When the anchor was created.
    anchor_time: i64,
    /// What is left for the part that is being selected.
    budget: Budget,
    /// In selection order.
    selected: Vec<Selected>,
    /// How many groups were selected.
    group_count: u32,
    groups: Groups,
    /// Pins that exist and were not selected.
    pins_left_out: Vec<TurnId>,
    /// Turns that the line has found, and the anchor's group.
    visited: HashSet<TurnId>,
    frontier: Frontier,
    /// Expanded wide turns, some of whose children were dropped: those children count as visited.
    parents_with_dropped: HashSet<TurnId>,
    /// Whether the limits of the policy have ended the line.
    is_limited: bool,
    /// The seed that each turn of recall's frontier was reached from.
    reached_from: HashMap<TurnId, TurnId>,
    /// The seed of each turn that was recalled.
    recalled_from: HashMap<TurnId, TurnId>,
    /// What the turn that is being expanded has found; empty between. It is kept for its memory.
    found: Vec<Rank>,
}

/// A turn that was selected.
#[derive(Clone, Copy)]
struct Selected {
    rank: Rank,
    part: Part,
    /// The number of the group that it was selected with.
    group: u32,
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
            group_count: 0,
            groups: Groups::default(),
            pins_left_out: Vec::new(),
            visited: HashSet::default(),
            frontier: Frontier::of(policy),
            parents_with_dropped: HashSet::default(),
            is_limited: false,
            reached_from: HashMap::default(),
            recalled_from: HashMap::default(),
            found: Vec::new(),
        }
    }

    pub(crate) fn slice(&mut self, anchor: TurnId) -> Result<Slice, SliceError<S::Error>> {
        self.run(anchor)?;
        let edges = self.edges()?;
        let turns = self.turns()?;
        let pins_left_out = self.pins_left_out();
        Ok(Slice { anchor, turns, edges, pins_left_out })
    }

    /// Selects part by part, until the observer ends it.
    pub(crate) fn run(&mut self, anchor: TurnId) -> Result<(), SliceError<S::Error>> {
        let _ended = self.select_parts(anchor)?;
        Ok(())
    }

    fn select_parts(&mut self, anchor: TurnId) -> Result<ControlFlow<()>, SliceError<S::Error>> {
        let ControlFlow::Continue(anchors) = self.select_anchor(anchor)? else {
            return Ok(ControlFlow::Break(()));
        };
        if self.select_pinned()?.is_break() || self.select_line(anchors)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.cut()?;
        self.select_recalled()
    }

    /// What is left of the policy's turns and tokens.
    fn left(&self) -> Budget {
        let mut left = Budget::of(self.policy);
        left.pinned = Rc::clone(&self.budget.pinned);
        self.selected.iter().for_each(|selected| left.take(&selected.rank));
        left
    }

    /// The ids of what was selected so far.
    fn selected_ids(&self) -> HashSet<TurnId> {
        self.selected.iter().map(|selected| selected.rank.id).collect()
    }

    /// Why these turns, the candidate and `others`, do not fit; `None` if they do.
    fn excess(&self, candidate: Rank, others: &[TurnId]) -> Option<PassedOver> {
        let (turns, left) = (1 + others.len(), self.budget.nodes);
        if turns > left {
            return Some(PassedOver::GroupTurns { turns, left });
        }
        let (tokens, left) = (self.tokens_of(candidate, others), self.budget.tokens_left());
        match others {
            _ if tokens <= left => None,
            [] => Some(PassedOver::Tokens { left }),
            _ => Some(PassedOver::GroupTokens { tokens, left }),
        }
    }

    /// The tokens of a candidate and others together.
    fn tokens_of(&self, candidate: Rank, others: &[TurnId]) -> u64 {
        let of = |id: &TurnId| self.around.fetched.scored(*id).map_or(0, |turn| turn.facts.tokens);
        u64::from(candidate.tokens) + others.iter().map(|id| u64::from(of(id))).sum::<u64>()
    }

    /// Selects turns as one group.
    fn select(&mut self, ranks: &[Rank], part: Part) -> ControlFlow<()> {
        self.group_count += 1;
        for rank in ranks {
            self.selected.push(Selected { rank: *rank, part, group: self.group_count });
            self.budget.take(rank);
            self.around.store.check_interrupts();
            self.observer.selected(*rank, part)?;
        }
        ControlFlow::Continue(())
    }

    /// Every edge between selected turns.
    fn edges(&mut self) -> Result<Vec<Edge>, SliceError<S::Error>> {
        let ids: Vec<TurnId> = self.selected.iter().map(|selected| selected.rank.id).collect();
        self.edges_between(&ids)
    }

    /// Every edge between these turns.
    fn edges_between(&mut self, ids: &[TurnId]) -> Result<Vec<Edge>, SliceError<S::Error>> {
        self.around.load_parents(ids)?;
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
        let ids: Vec<TurnId> = self.selected.iter().map(|selected| selected.rank.id).collect();
        let rows = self.around.rows(&ids)?;
        let ranked = self.selected.iter().zip(rows).enumerate();
        let micros = |id| self.around.fetched.scored(id).map_or(0, |turn| turn.facts.micros);
        let mut turns: Vec<SelectedTurn> = ranked
            .map(|(order, (Selected { rank, part, .. }, turn))| SelectedTurn {
                micros: micros(rank.id),
                seed: self.recalled_from.get(&rank.id).copied(),
                turn,
                distance: rank.distance,
                priority: rank.priority(),
                part: *part,
                tokens: rank.tokens,
                selection_order: order as u32,
            })
            .collect();
        turns.sort_unstable_by_key(|selected| selected.turn.id);
        Ok(turns)
    }

    /// The pins that exist and are in no part of the slice.
    fn pins_left_out(&mut self) -> Vec<TurnId> {
        let mut left_out = std::mem::take(&mut self.pins_left_out);
        left_out.retain(|pin| self.selected.iter().all(|selected| selected.rank.id != *pin));
        left_out
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
