//! The cut at the beginning of the line (POLICY-V2.md, The cut).

use std::cell::RefCell;

use foldhash::{HashMap, HashSet};
use xxhash_rust::xxh64::xxh64;

use crate::graph::conversation::{Utterance, conversation_order};
use crate::graph::turn::{Role, TurnId};
use crate::slicing::expansion::{Expansion, Selected};
use crate::slicing::observer::{Cut, Observer};
use crate::slicing::slice::{Part, SliceError};
use crate::slicing::store::GraphStore;

/// A share, in millionths, of all.
const ALL: u128 = 1_000_000;

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// Cuts off the beginning of the line, and results without a parent in the slice.
    pub(super) fn cut(&mut self) -> Result<(), SliceError<S::Error>> {
        let share = if self.is_limited { self.policy.cut_share() } else { 0 };
        let has_line = self.selected.iter().any(|selected| selected.part == Part::Line);
        if !has_line || (share == 0 && !self.policy.keeps_tool_results()) {
            return Ok(());
        }
        let line = self.line_in_order()?;
        let begins = if share > 0 { self.beginning(&line, share) } else { 0 };
        let at = line[begins].rank.id;
        let mut cut: HashMap<TurnId, Cut> = HashMap::default();
        cut.extend(line[..begins].iter().map(|turn| (turn.rank.id, Cut::Beginning { at })));
        if self.policy.keeps_tool_results() {
            self.cut_results(&line[begins..], &mut cut)?;
        }
        for turn in &line {
            if let Some(because) = cut.get(&turn.rank.id) {
                self.observer.cut(turn.rank, *because);
            }
        }
        self.selected.retain(|selected| !cut.contains_key(&selected.rank.id));
        Ok(())
    }

    /// The turns of the line in the order of the conversation, in which the pinned ones have their places too.
    fn line_in_order(&mut self) -> Result<Vec<Selected>, SliceError<S::Error>> {
        let told = |selected: &&Selected| matches!(selected.part, Part::Pinned | Part::Line);
        let told: Vec<Selected> = self.selected.iter().filter(told).copied().collect();
        let ids: Vec<TurnId> = told.iter().map(|selected| selected.rank.id).collect();
        // Nearly all of these rows are needed in the end.
        self.around.rows(&ids)?;
        let edges = self.edges_between(&ids)?;
        let utterance = |id: &TurnId| {
            let facts = self.around.fetched.scored(*id).map(|turn| turn.facts);
            let (time, is_result) = facts.map_or((0, false), |facts| (facts.micros, facts.is_tool));
            Utterance { id: *id, time, is_result }
        };
        let utterances: Vec<Utterance> = ids.iter().map(utterance).collect();
        let store = RefCell::new(&mut self.around.store);
        let check_interrupts = || store.borrow_mut().check_interrupts();
        let order = conversation_order(&utterances, &edges, &check_interrupts);
        let of_line = told.iter().filter(|selected| selected.part == Part::Line);
        let by_id: HashMap<TurnId, &Selected> =
            of_line.map(|selected| (selected.rank.id, selected)).collect();
        Ok(order.iter().filter_map(|id| by_id.get(id).copied().copied()).collect())
    }

    /// The place in the line with which it begins, where at most this share of its tokens, in millionths, may be cut.
    fn beginning(&self, line: &[Selected], share: u32) -> usize {
        let tokens = |turn: &Selected| u128::from(turn.rank.tokens);
        let all: u128 = line.iter().map(tokens).sum();
        let least = (ALL - u128::from(share)) * all;
        let mut last_of: HashMap<u32, usize> = HashMap::default();
        last_of.extend(line.iter().enumerate().map(|(place, turn)| (turn.group, place)));
        let mut in_reach: Vec<usize> = Vec::new();
        let (mut left, mut whole_from) = (all, 0);
        for (place, turn) in line.iter().enumerate() {
            // No group that has begun goes on from here.
            if place >= whole_from && left * ALL >= least {
                in_reach.push(place);
            }
            left -= tokens(turn);
            whole_from = whole_from.max(last_of[&turn.group] + 1);
        }
        let is_user = |place: &usize| {
            let row = self.around.fetched.row(line[*place].rank.id);
            row.is_some_and(|turn| turn.role == Role::User)
        };
        if self.policy.cuts_to_user() && in_reach.iter().any(is_user) {
            in_reach.retain(is_user);
        }
        let hash = |place: &usize| xxh64(line[*place].rank.id.as_bytes(), 0);
        in_reach.iter().copied().min_by_key(|place| (hash(place), *place)).unwrap_or(0)
    }

    /// Cuts each result of the line that has no parent in the slice but itself, until there is none.
    fn cut_results(
        &mut self,
        line: &[Selected],
        cut: &mut HashMap<TurnId, Cut>,
    ) -> Result<(), SliceError<S::Error>> {
        let is_result = |turn: &&Selected| {
            self.around.fetched.scored(turn.rank.id).is_some_and(|turn| turn.facts.is_tool)
        };
        let mut results: Vec<TurnId> =
            line.iter().filter(is_result).map(|turn| turn.rank.id).collect();
        self.around.load_parents(&results)?;
        let mut within: HashSet<TurnId> = self.selected_ids();
        within.retain(|id| !cut.contains_key(id));
        loop {
            let before = results.len();
            results.retain(|id| {
                let mut parents = self.around.fetched.parents(*id).iter().map(|edge| edge.parent);
                let has_parent = parents.any(|parent| parent != *id && within.contains(&parent));
                if !has_parent {
                    cut.insert(*id, Cut::NoCall);
                    within.remove(id);
                }
                has_parent
            });
            if results.len() == before {
                return Ok(());
            }
        }
    }
}
