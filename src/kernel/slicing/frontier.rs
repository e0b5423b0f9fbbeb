//! The candidates of an expansion, and which of them the budget allows to drop.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};

use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::slicing::score::Rank;

/// A turn is large if its tokens, so many times, are more than a policy allows in all. It is expanded even if it is not
/// selected.
const LARGE: u64 = 4;

/// What is left of the turns and tokens that a policy allows.
#[derive(Clone)]
pub(crate) struct Budget {
    /// How many more turns may be selected.
    pub(crate) nodes: usize,
    /// How many tokens they may have together; `None` for no limit.
    pub(crate) tokens: Option<u64>,
    /// `max_tokens` of the policy.
    max_tokens: Option<u64>,
    /// Whether turns are selected in groups. Any turn may then be passed over.
    groups: bool,
    /// What was selected before the expansion and takes nothing.
    pub(crate) pinned: Rc<HashSet<TurnId>>,
}

impl Budget {
    pub(crate) fn of(policy: &SlicePolicy) -> Self {
        Budget {
            nodes: policy.max_nodes(),
            tokens: policy.max_tokens(),
            max_tokens: policy.max_tokens(),
            groups: policy.keeps_tool_results(),
            pinned: Rc::default(),
        }
    }

    /// How many tokens are left.
    pub(crate) fn tokens_left(&self) -> u64 {
        self.tokens.unwrap_or(u64::MAX)
    }

    /// Whether a turn takes no more tokens than are left.
    pub(crate) fn fits(&self, turn: &Rank) -> bool {
        u64::from(turn.tokens) <= self.tokens_left()
    }

    /// Whether turns of so many tokens are large.
    pub(crate) fn is_large(&self, tokens: u64) -> bool {
        self.max_tokens.is_some_and(|most| tokens.saturating_mul(LARGE) > most)
    }

    /// Whether a turn is pinned.
    pub(crate) fn is_pinned(&self, turn: &Rank) -> bool {
        !self.pinned.is_empty() && self.pinned.contains(&turn.id)
    }

    /// Whether a turn is not dropped, though it does not fit: it will be expanded, or others with it.
    fn always_keeps(&self, turn: &Rank) -> bool {
        self.groups || self.is_large(turn.tokens.into()) || self.is_pinned(turn)
    }

    /// Whether a turn that was found is kept.
    pub(crate) fn keeps(&self, turn: &Rank) -> bool {
        self.fits(turn) || self.always_keeps(turn)
    }

    /// Subtracts a selected turn.
    pub(crate) fn take(&mut self, turn: &Rank) {
        self.nodes -= 1;
        self.tokens = self.tokens.map(|left| left.saturating_sub(turn.tokens.into()));
    }

    /// A collection of candidates. It drops those that cannot be selected within this budget.
    pub(crate) fn best(&self) -> Best<'_> {
        Best {
            budget: self,
            ranks: Vec::new(),
            kept: Vec::new(),
            once_each_at: 0,
            bound: None,
            is_cut: false,
            is_bounded: false,
            prune_at: 0,
        }
    }

    /// Removes turns that can never be selected from ranks in the order of selection, of turns that need not be kept.
    /// Returns whether any of them had few enough tokens.
    ///
    /// `nodes` is the number of turns that may be selected. Without a limit on tokens, the first `nodes` turns are
    /// selected, and the others can be removed. With a limit on tokens, a turn can be removed if `nodes` better turns
    /// have no more tokens than it has. If all of these are selected, no node is left. If one of them does not fit,
    /// neither does the turn.
    fn drop_unreachable(&self, ranks: &mut Vec<Rank>) -> bool {
        ranks.retain(|rank| self.fits(rank));
        let fitting = ranks.len();
        if self.tokens.is_none() {
            ranks.truncate(self.nodes);
        } else {
            // The `nodes` smallest numbers of tokens of the better turns, ascending.
            let mut least: Vec<u32> = Vec::with_capacity(self.nodes.min(ranks.len()) + 1);
            ranks.retain(|rank| {
                let is_reachable =
                    least.len() < self.nodes || least.last().is_some_and(|l| *l > rank.tokens);
                if is_reachable {
                    let at = least.partition_point(|tokens| *tokens <= rank.tokens);
                    least.insert(at, rank.tokens);
                    least.truncate(self.nodes);
                }
                is_reachable
            });
        }
        ranks.len() < fitting
    }
}

/// Collects candidates that come in any order.
pub(crate) struct Best<'a> {
    budget: &'a Budget,
    ranks: Vec<Rank>,
    /// Those that are never dropped.
    kept: Vec<Rank>,
    /// From how many of them on each is left once.
    once_each_at: usize,
    /// Without a limit on tokens: the worst rank that can be selected.
    bound: Option<Rank>,
    /// Whether any was dropped.
    is_cut: bool,
    /// Whether any was dropped because of better ones.
    is_bounded: bool,
    prune_at: usize,
}

impl Best<'_> {
    pub(crate) fn push(&mut self, rank: Rank) {
        if self.budget.always_keeps(&rank) {
            self.kept.push(rank);
            if self.kept.len() >= self.once_each_at.max(1024) {
                once_each(&mut self.kept);
                self.once_each_at = 2 * self.kept.len();
            }
            return;
        }
        if !self.budget.fits(&rank) {
            self.is_cut = true;
            return;
        }
        if self.bound.is_some_and(|bound| rank >= bound) {
            return;
        }
        self.ranks.push(rank);
        if self.ranks.len() >= self.prune_at.max(self.budget.nodes + self.budget.nodes.max(256)) {
            self.prune();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ranks.len() + self.kept.len()
    }

    fn prune(&mut self) {
        once_each(&mut self.ranks);
        self.is_bounded |= self.budget.drop_unreachable(&mut self.ranks);
        self.is_cut |= self.is_bounded;
        if self.budget.tokens.is_none() && self.is_bounded {
            self.bound = self.ranks.last().copied();
        }
        self.prune_at = 2 * self.ranks.len();
    }

    /// Those that can be selected, best first.
    pub(crate) fn finish(mut self) -> BestRanks {
        self.prune();
        let Best { mut ranks, mut kept, is_cut, is_bounded, .. } = self;
        if !kept.is_empty() {
            once_each(&mut kept);
            ranks.append(&mut kept);
            ranks.sort_unstable();
        }
        BestRanks { ranks, is_cut, is_bounded }
    }
}

/// Leaves each turn once, best first. Of the ranks of one turn, the one of greatest strength counts; of equal ones, the
/// best.
fn once_each(ranks: &mut Vec<Rank>) {
    ranks.sort_unstable_by_key(|rank| (rank.id, Reverse(rank.strength_bits()), *rank));
    ranks.dedup_by_key(|rank| rank.id);
    ranks.sort_unstable();
}

/// The best of many candidates.
pub(crate) struct BestRanks {
    /// Best first, each turn once.
    pub(crate) ranks: Vec<Rank>,
    /// Whether any was dropped.
    pub(crate) is_cut: bool,
    /// Whether any was dropped because of better ones.
    pub(crate) is_bounded: bool,
}

/// The candidates, best first.
pub(crate) struct Frontier {
    ranks: BTreeSet<Rank>,
    /// The same by turn; only if turns are taken out of order.
    by_turn: Option<HashMap<TurnId, Rank>>,
    /// How many there may be before those that cannot be selected are dropped.
    prune_at: usize,
}

impl Frontier {
    pub(crate) fn of(policy: &SlicePolicy) -> Self {
        let by_turn = policy.keeps_tool_results().then(HashMap::default);
        Frontier { ranks: BTreeSet::new(), by_turn, prune_at: 0 }
    }

    /// One of which turns can be taken out of order.
    pub(crate) fn by_turn() -> Self {
        Frontier { ranks: BTreeSet::new(), by_turn: Some(HashMap::default()), prune_at: 0 }
    }

    /// The rank of a candidate, where turns can be taken out of order.
    pub(crate) fn get(&self, id: TurnId) -> Option<Rank> {
        self.by_turn.as_ref()?.get(&id).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    pub(crate) fn insert(&mut self, rank: Rank) {
        self.ranks.insert(rank);
        if let Some(by_turn) = &mut self.by_turn {
            by_turn.insert(rank.id, rank);
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<Rank> {
        let first = self.ranks.pop_first()?;
        if let Some(by_turn) = &mut self.by_turn {
            by_turn.remove(&first.id);
        }
        Some(first)
    }

    /// Removes a turn, if it is a candidate and turns are selected in groups.
    pub(crate) fn remove(&mut self, id: TurnId) -> Option<Rank> {
        let rank = self.by_turn.as_mut()?.remove(&id)?;
        self.ranks.remove(&rank).then_some(rank)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rank> {
        self.ranks.iter()
    }

    /// Drops those that can never be selected; returns whether there were any.
    pub(crate) fn drop_unreachable(&mut self, budget: &Budget) -> bool {
        if budget.groups {
            return false;
        }
        if budget.tokens.is_none() && budget.pinned.is_empty() {
            let before = self.ranks.len();
            while self.ranks.len() > budget.nodes {
                self.ranks.pop_last();
            }
            return self.ranks.len() < before;
        }
        if self.ranks.len() <= self.prune_at.max(2 * budget.nodes) {
            return false;
        }
        let before = self.ranks.len();
        let (kept, mut ranks): (Vec<Rank>, Vec<Rank>) =
            std::mem::take(&mut self.ranks).into_iter().partition(|rank| budget.always_keeps(rank));
        budget.drop_unreachable(&mut ranks);
        self.ranks = ranks.into_iter().chain(kept).collect();
        self.prune_at = 2 * self.ranks.len();
        self.ranks.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_more_turns_are_held_than_can_be_selected() {
        for policy in [
            r#"{"max_nodes":8}"#,
            r#"{"version":"slice_policy_v2","max_nodes":8,"max_tokens":100}"#,
        ] {
            let policy: SlicePolicy = policy.parse().unwrap();
            let budget = Budget::of(&policy);
            let mut frontier = Frontier::of(&policy);
            for n in 0..1000u16 {
                frontier.insert(Rank::new(n.into(), 1, TurnId::from_u128(n.into())));
                frontier.drop_unreachable(&budget);
                assert!(frontier.iter().count() <= 16);
            }
            assert_eq!(frontier.pop_first().map(|rank| rank.id), Some(TurnId::from_u128(999)));
        }
    }
}
