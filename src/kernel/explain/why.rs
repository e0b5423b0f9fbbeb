//! Why one turn is in a slice, or what change of the policy would bring it in.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::slicing::expansion::groups::MAX_TURNS;
use crate::slicing::observer::{Cut, Observer, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::Part;
use crate::slicing::slicer::{FetchedGraph, Limits, SliceError, Slicer};
use crate::slicing::store::GraphStore;

/// By how much a larger radius is tried.
pub const RADIUS_STEPS: u32 = 10;

/// Why a turn is in a slice or not. Every change of the policy that is named here was tried by itself and adds the turn
/// to the slice. The slice may still fail for a turn that is stored more than once.
#[derive(Clone, Debug, PartialEq)]
pub enum Because {
    /// It is the anchor.
    Anchor,
    /// It was selected.
    Selected(Discovery),
    /// The budget was used up before it was selected.
    Budget {
        /// The budget of the policy.
        max_nodes: usize,
        /// A budget that reaches it: the smallest, unless turns are selected in groups.
        needed: usize,
    },
    /// It is too far away.
    Radius {
        /// The radius of the policy.
        max_radius: u32,
        /// The smallest radius that reaches it.
        needed: u32,
    },
    /// It would be discovered as a sibling, and siblings are off.
    Siblings {
        /// The limit of siblings with which it is selected.
        limit: usize,
    },
    /// The tokens were spent before its turn came.
    Tokens {
        /// The bound of the policy.
        max_tokens: u64,
        /// A bound that reaches it.
        needed: u32,
    },
    /// It is in as a pin.
    Pin,
    /// It is left out, or comes too late, because of one key.
    Key {
        /// The key and a value with which it is in.
        change: &'static str,
    },
    /// It is connected with the anchor, and no single change adds it.
    NoOneChange {
        /// Whether the policy is of a version that has more keys than v1, which were tried too.
        has_more_keys: bool,
    },
    /// It is not connected with the anchor.
    NotConnected,
    /// No connection was found within the number of turns searched.
    NotFound {
        /// How many turns around each end were searched.
        within: u32,
    },
    /// It does not exist, or row security hides it.
    NoSuchTurn,
}

/// How a turn was discovered and selected.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    /// Its place in the selection order, the anchor being 0.
    pub order: usize,
    /// Its distance and priority.
    pub rank: Rank,
    /// How it is related to the turn that it was discovered from.
    pub via: Via,
    /// That turn.
    pub from: TurnId,
}

/// The answer to "why is this turn here, or not?".
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The reason.
    pub because: Because,
    /// The path from the anchor to the turn: with the policy, or with the change that was tried.
    pub path: Option<Vec<TurnId>>,
}

impl Why {
    /// Whether the turn is in the slice.
    #[must_use]
    pub fn included(&self) -> bool {
        matches!(self.because, Because::Anchor | Because::Selected(_))
    }
}

/// One sentence.
impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor => f.write_str("It is the anchor, which comes first in its own slice."),
            Self::Selected(Discovery { order, via: Via::Pin, .. }) => {
                write!(f, "It is pinned, and was selected at step {order}.")
            }
            Self::Selected(Discovery { order, rank, via: Via::Seed, .. }) => write!(
                f,
                "It was selected at step {order}, recalled as a seed of strength {} with rank {}.",
                rank.strength(),
                rank.priority()
            ),
            Self::Selected(Discovery { order, rank, via: Via::Recalled, from }) => write!(
                f,
                "It was selected at step {order}, recalled from {from} at {} {} from a seed with rank {}.",
                rank.distance,
                if rank.distance == 1 { "hop" } else { "hops" },
                rank.priority()
            ),
            Self::Selected(Discovery { order, rank, via, from }) => write!(
                f,
                "It was selected at step {order}, found as a {} of {from} at distance {} with \
                 priority {}.",
                via.name(),
                rank.distance,
                rank.priority()
            ),
            Self::Budget { max_nodes, needed } => write!(
                f,
                "The budget of {max_nodes} turns was spent first: with max_nodes {needed} it is in."
            ),
            Self::Radius { max_radius, needed } => write!(
                f,
                "It lies beyond max_radius {max_radius}: with max_radius {needed} it is in."
            ),
            Self::Siblings { limit } => write!(
                f,
                "It is found as a sibling, and siblings are off: with include_siblings true and \
                 max_siblings_per_node {limit} it is in."
            ),
            Self::Tokens { max_tokens, needed } => write!(
                f,
                "The budget of {max_tokens} tokens was spent first: with max_tokens {needed} it is in."
            ),
            Self::Pin => {
                f.write_str("The policy leaves it out: with one more pin, this turn, it is in.")
            }
            Self::Key { change } => write!(f, "The policy leaves it out: with {change} it is in."),
            Self::NoOneChange { has_more_keys } => write!(
                f,
                "It is connected with the anchor, but neither a larger max_nodes, nor a max_radius \
                 up to {RADIUS_STEPS} larger, nor siblings{} alone bring it in.",
                if *has_more_keys { ", nor the other changes that were tried," } else { "" }
            ),
            Self::NotConnected => f.write_str("It is not connected with the anchor."),
            Self::NotFound { within } => write!(
                f,
                "No connection with the anchor was found among the first {within} turns around \
                 either."
            ),
            Self::NoSuchTurn => f.write_str("There is no such turn, or row security hides it."),
        }
    }
}

/// Says why `turn` is in the slice of `policy` at `anchor` or not; budgets up to `most_nodes` are
/// tried.
///
/// # Errors
/// As the slice of `policy` at `anchor`; see [`SliceError`].
pub fn why<S: GraphStore>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
    turn: TurnId,
    most_nodes: u32,
    limits: Limits,
) -> Result<Why, SliceError<S::Error>> {
    let mut asked = TargetObserver::new(turn, false);
    let mut slicer = Slicer::new(store, policy, limits);
    slicer.slice_observed(anchor, &mut asked)?;
    let fetched = slicer.into_fetched();
    if anchor == turn {
        return Ok(Why { because: Because::Anchor, path: Some(vec![anchor]) });
    }
    if let Some(discovery) = asked.discovery() {
        return Ok(Why { because: Because::Selected(discovery), path: asked.path() });
    }
    let mut expansions = Expansions { store, fetched, limits };
    match expansions.search(&policy.as_v1().with_max_nodes(1), turn, turn) {
        Err(SliceError::AnchorNotFound(_)) => {
            return Ok(Why { because: Because::NoSuchTurn, path: None });
        }
        other => other?,
    };
    if asked.is_cut
        && let Some(why) = expansions.relaxed(policy, anchor, turn, &["cut_share 0"])?
    {
        return Ok(why);
    }
    match expansions.one_change(policy, anchor, turn, most_nodes)? {
        Some(why) => Ok(why),
        None => expansions.connection(policy, anchor, turn, most_nodes),
    }
}

/// Expansions by several policies over one graph, each of which reuses what those before it fetched.
struct Expansions<'a, S> {
    store: &'a mut S,
    fetched: FetchedGraph,
    limits: Limits,
}

impl<S: GraphStore> Expansions<'_, S> {
    /// Expands from one turn until another is selected.
    fn search(
        &mut self,
        policy: &SlicePolicy,
        from: TurnId,
        to: TurnId,
    ) -> Result<TargetObserver, SliceError<S::Error>> {
        // What is selected may be cut later.
        let may_be_cut = policy.cut_share() > 0 || policy.keeps_tool_results();
        let mut target = TargetObserver::new(to, !may_be_cut);
        let fetched = std::mem::take(&mut self.fetched);
        let mut slicer = Slicer::reusing(fetched, self.store, policy, self.limits);
        let expanded = slicer.observe(from, &mut target);
        self.fetched = slicer.into_fetched();
        expanded.map(|()| target)
    }

    /// The first single change of the policy that adds the turn, if there is one.
    fn one_change(
        &mut self,
        policy: &SlicePolicy,
        anchor: TurnId,
        turn: TurnId,
        most_nodes: u32,
    ) -> Result<Option<Why>, SliceError<S::Error>> {
        // The place of the turn with the largest budget is the budget that it needs. There are two exceptions: turns of
        // its group that follow it, and groups before it that do not fit a smaller budget.
        let largest = self.search(&policy.with_max_nodes(most_nodes), anchor, turn)?;
        if let Some(discovery) = largest.discovery() {
            let least = discovery.order + 1;
            for needed in [least, least + MAX_TURNS, most_nodes as usize] {
                let needed = needed.min(most_nodes as usize);
                let tried = self.search(&policy.with_max_nodes(needed as u32), anchor, turn)?;
                if tried.is_selected() {
                    let because = Because::Budget { max_nodes: policy.max_nodes(), needed };
                    return Ok(Some(Why { because, path: tried.path() }));
                }
            }
        }
        let max_radius = policy.max_radius();
        for farther in 1..=RADIUS_STEPS {
            let wider = policy.with_max_radius(max_radius.saturating_add(farther));
            let tried = self.search(&wider, anchor, turn)?;
            if tried.is_selected() {
                let because = Because::Radius { max_radius, needed: wider.max_radius() };
                return Ok(Some(Why { because, path: tried.path() }));
            }
        }
        if policy.sibling_limit() == 0 {
            let with_siblings = policy.with_siblings();
            let tried = self.search(&with_siblings, anchor, turn)?;
            if tried.is_selected() {
                let because = Because::Siblings { limit: with_siblings.sibling_limit() };
                return Ok(Some(Why { because, path: tried.path() }));
            }
        }
        if let Some(why) = self.more_tokens(policy, anchor, turn)? {
            return Ok(Some(why));
        }
        if let Some(why) = self.relaxed(policy, anchor, turn, &[])? {
            return Ok(Some(why));
        }
        if let Some(pinned) = policy.with_pin(turn) {
            let tried = self.search(&pinned, anchor, turn)?;
            if tried.is_selected() {
                return Ok(Some(Why { because: Because::Pin, path: tried.path() }));
            }
        }
        Ok(None)
    }

    /// Whether leaving out one of these keys adds the turn; any key where none is named.
    fn relaxed(
        &mut self,
        policy: &SlicePolicy,
        anchor: TurnId,
        turn: TurnId,
        changes: &[&str],
    ) -> Result<Option<Why>, SliceError<S::Error>> {
        let relaxations = policy.relaxations().into_iter();
        for (change, relaxed) in
            relaxations.filter(|(change, _)| changes.is_empty() || changes.contains(change))
        {
            let tried = self.search(&relaxed, anchor, turn)?;
            if tried.is_selected() {
                return Ok(Some(Why { because: Because::Key { change }, path: tried.path() }));
            }
        }
        Ok(None)
    }

    /// Whether a larger bound of tokens adds the turn.
    fn more_tokens(
        &mut self,
        policy: &SlicePolicy,
        anchor: TurnId,
        turn: TurnId,
    ) -> Result<Option<Why>, SliceError<S::Error>> {
        let Some((max_tokens, unbounded)) = policy.max_tokens().zip(policy.with_max_tokens(None))
        else {
            return Ok(None);
        };
        let largest = self.search(&unbounded, anchor, turn)?;
        // What was selected up to the turn takes so many.
        let needed = u32::try_from(largest.tokens_up_to).unwrap_or(u32::MAX).min(i32::MAX as u32);
        if !largest.is_selected() {
            return Ok(None);
        }
        // The turn's own group may take more.
        let bounds = std::iter::successors(Some(needed.max(1)), |needed| {
            (*needed < i32::MAX as u32).then(|| needed.saturating_mul(2).min(i32::MAX as u32))
        });
        for needed in bounds {
            let Some(wider) = policy.with_max_tokens(Some(needed)) else { break };
            let tried = self.search(&wider, anchor, turn)?;
            if tried.is_selected() {
                let because = Because::Tokens { max_tokens, needed };
                return Ok(Some(Why { because, path: tried.path() }));
            }
        }
        Ok(None)
    }

    /// Whether the two turns are connected at all.
    fn connection(
        &mut self,
        policy: &SlicePolicy,
        anchor: TurnId,
        turn: TurnId,
        most_nodes: u32,
    ) -> Result<Why, SliceError<S::Error>> {
        let has_more_keys = policy.max_tokens().is_some() || !policy.relaxations().is_empty();
        let far =
            policy.as_v1().with_siblings().with_max_nodes(most_nodes).with_max_radius(u32::MAX);
        // Edges are followed in both directions, so one of the two expansions that ends below its budget answers it.
        for (from, to) in [(anchor, turn), (turn, anchor)] {
            let search = self.search(&far, from, to)?;
            if let Some(mut path) = search.path() {
                if from == turn {
                    path.reverse();
                }
                let because = Because::NoOneChange { has_more_keys };
                return Ok(Why { because, path: Some(path) });
            }
            if search.selected < far.max_nodes() {
                return Ok(Why { because: Because::NotConnected, path: None });
            }
        }
        Ok(Why { because: Because::NotFound { within: most_nodes }, path: None })
    }
}

/// Waits for one turn to be selected, and notes from where each turn was discovered.
struct TargetObserver {
    target: TurnId,
    /// Whether the selection ends when the target is selected.
    ends_at_target: bool,
    discovered_from: HashMap<TurnId, (TurnId, Via)>,
    /// From where the expansion discovered pinned turns.
    pinned_from: HashMap<TurnId, TurnId>,
    /// From where turns were reached in recall; `None` of seeds.
    reached_from: HashMap<TurnId, Option<TurnId>>,
    /// The turns that were recalled with another one, of whose calls and results they are.
    recalled_with: HashMap<TurnId, TurnId>,
    /// How many turns were selected, without those that were cut.
    selected: usize,
    /// The turns of the line that were cut.
    cut: HashSet<TurnId>,
    /// Whether the target was cut.
    is_cut: bool,
    /// The turns that were selected, also those that were cut.
    order: Vec<TurnId>,
    /// The tokens of what was selected.
    tokens: u64,
    /// The same when the target was selected.
    tokens_up_to: u64,
    /// The target's rank and part, if it was selected and not cut.
    found: Option<(Rank, Part)>,
}

impl TargetObserver {
    fn new(target: TurnId, ends_at_target: bool) -> Self {
        TargetObserver {
            target,
            ends_at_target,
            discovered_from: HashMap::new(),
            pinned_from: HashMap::new(),
            reached_from: HashMap::new(),
            recalled_with: HashMap::new(),
            selected: 0,
            cut: HashSet::new(),
            is_cut: false,
            order: Vec::new(),
            tokens: 0,
            tokens_up_to: 0,
            found: None,
        }
    }

    fn is_selected(&self) -> bool {
        self.found.is_some()
    }

    fn discovery(&self) -> Option<Discovery> {
        let (rank, part) = self.found?;
        let place = self.order.iter().rposition(|id| *id == self.target)?;
        let cut = match part {
            // All was cut before, also what was recalled again.
            Part::Recalled => self.cut.len(),
            _ => self.order[..place].iter().filter(|id| self.cut.contains(*id)).count(),
        };
        let order = place - cut;
        let (from, via) = match (part, self.recalled_with.get(&self.target)) {
            (Part::Recalled, Some(with)) => (*with, Via::Call),
            (Part::Recalled, None) => match self.reached_from.get(&self.target)? {
                Some(from) => (*from, Via::Recalled),
                None => (self.target, Via::Seed),
            },
            _ => self.discovered_from.get(&self.target).copied()?,
        };
        Some(Discovery { order, rank, via, from })
    }

    /// The path from the start to the target, if it was selected: from the anchor, from a seed, or of a pin itself.
    fn path(&self) -> Option<Vec<TurnId>> {
        let (_, part) = self.found?;
        let mut path = vec![self.target];
        let mut turn = self.target;
        loop {
            let before = if part == Part::Recalled {
                let with = self.recalled_with.get(&turn).filter(|_| turn == self.target);
                with.copied().or_else(|| self.reached_from.get(&turn).copied().flatten())
            } else {
                // Where the expansion has found a pinned turn, not the pin that it was selected with: that may have
                // been found from it.
                let selected_from = || match self.discovered_from.get(&turn)? {
                    (_, Via::Anchor | Via::Pin) => None,
                    (from, _) => Some(*from),
                };
                self.pinned_from.get(&turn).copied().or_else(selected_from)
            };
            let Some(from) = before else { break };
            turn = from;
            path.push(turn);
        }
        path.reverse();
        Some(path)
    }
}

impl Observer for TargetObserver {
    fn discovered(&mut self, turn: Rank, via: Via, from: TurnId) {
        self.discovered_from.insert(turn.id, (from, via));
    }

    fn discovered_pinned(&mut self, turn: Rank, _via: Via, from: TurnId) {
        self.pinned_from.insert(turn.id, from);
    }

    fn selected(&mut self, turn: Rank, part: Part) -> ControlFlow<()> {
        let is_target = turn.id == self.target;
        self.selected += 1;
        self.tokens += u64::from(turn.tokens);
        if is_target {
            self.found = Some((turn, part));
            self.tokens_up_to = self.tokens;
        }
        self.order.push(turn.id);
        if is_target && self.ends_at_target {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn cut(&mut self, turn: Rank, _because: Cut) {
        self.selected -= 1;
        self.cut.insert(turn.id);
        if turn.id == self.target {
            self.is_cut = true;
            self.found = None;
        }
    }

    fn reached(&mut self, turn: Rank, from: Option<TurnId>) {
        self.reached_from.insert(turn.id, from);
    }

    fn recalled_with(&mut self, turn: Rank, with: TurnId) {
        self.recalled_with.insert(turn.id, with);
    }
}
