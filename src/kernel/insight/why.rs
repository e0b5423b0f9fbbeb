//! Why one turn is in a slice, or what change of the policy would bring it in.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

use crate::graph::turn::TurnId;
use crate::policy::SlicePolicy;
use crate::slicing::observer::{Observer, Via};
use crate::slicing::score::Rank;
use crate::slicing::slicer::{Limits, SliceError, observe, slice_observed};
use crate::slicing::store::GraphStore;

/// How much farther than its radius a policy is tried.
pub const RADIUS_STEPS: u32 = 10;

/// Why a turn is in a slice or not. Every change named here was tried, alone, and brings it in, unless the slice then
/// fails for a turn that is stored more than once.
#[derive(Clone, Debug, PartialEq)]
pub enum Because {
    /// It is the anchor.
    Anchor,
    /// It was selected.
    Selected(Discovery),
    /// The budget was spent first.
    Budget {
        /// The budget of the policy.
        max_nodes: usize,
        /// The smallest budget that reaches it.
        needed: usize,
    },
    /// It is too far away.
    Radius {
        /// The radius of the policy.
        max_radius: u32,
        /// The smallest radius that reaches it.
        needed: u32,
    },
    /// It is found as a sibling, and siblings are off.
    Siblings {
        /// How many siblings were allowed for it to be found.
        limit: usize,
    },
    /// There is a way to it, and no one change brings it in.
    NoOneChange,
    /// No way leads to it.
    NotConnected,
    /// No way was found as far as was searched.
    NotFound {
        /// How many turns around each end were searched.
        within: u32,
    },
    /// It does not exist, or is hidden.
    NoSuchTurn,
}

/// How a turn was reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    /// Its place in the selection order, the anchor being 0.
    pub order: usize,
    /// Its distance and priority.
    pub rank: Rank,
    /// What it is to the turn it was found from.
    pub via: Via,
    /// That turn.
    pub from: TurnId,
}

/// The answer to "why is this turn here, or not?".
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The reason.
    pub because: Because,
    /// The way from the anchor to the turn: under the policy, or under the change that was tried.
    pub path: Option<Vec<TurnId>>,
}

impl Why {
    /// Whether the turn is in the slice.
    #[must_use]
    pub fn included(&self) -> bool {
        matches!(self.because, Because::Anchor | Because::Selected(_))
    }
}

/// One sentence for people.
impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor => f.write_str("It is the anchor, which comes first in its own slice."),
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
            Self::NoOneChange => write!(
                f,
                "It is connected with the anchor, but neither a larger max_nodes, nor a max_radius \
                 up to {RADIUS_STEPS} larger, nor siblings alone bring it in."
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
    let mut search_as_asked = TargetObserver::new(turn, false);
    slice_observed(store, policy, anchor, limits, &mut search_as_asked)?;
    let mut search = |policy: &SlicePolicy, from: TurnId, to: TurnId| {
        let mut search = TargetObserver::new(to, true);
        observe(store, policy, from, limits, &mut search)?;
        Ok::<_, SliceError<S::Error>>(search)
    };
    let answer = |because, path| Ok(Why { because, path });

    if anchor == turn {
        return answer(Because::Anchor, Some(vec![anchor]));
    }
    if let Some(hit) = search_as_asked.hit() {
        return answer(Because::Selected(hit), search_as_asked.path());
    }
    match search(&policy.with_max_nodes(1), turn, turn) {
        Err(SliceError::AnchorNotFound(_)) => return answer(Because::NoSuchTurn, None),
        other => other?,
    };

    // In the unbounded run its place says how large a budget must be.
    if let Some(hit) = search(&policy.with_max_nodes(most_nodes), anchor, turn)?.hit() {
        let needed = hit.order + 1;
        let tried = search(&policy.with_max_nodes(needed as u32), anchor, turn)?;
        if tried.hit().is_some() {
            let max_nodes = policy.max_nodes();
            return answer(Because::Budget { max_nodes, needed }, tried.path());
        }
    }
    let max_radius = policy.max_radius();
    for farther in 1..=RADIUS_STEPS {
        let wider = policy.with_max_radius(max_radius.saturating_add(farther));
        let tried = search(&wider, anchor, turn)?;
        if tried.hit().is_some() {
            let needed = wider.max_radius();
            return answer(Because::Radius { max_radius, needed }, tried.path());
        }
    }
    if policy.sibling_limit() == 0 {
        let with_siblings = policy.with_siblings();
        let tried = search(&with_siblings, anchor, turn)?;
        if tried.hit().is_some() {
            let limit = with_siblings.sibling_limit();
            return answer(Because::Siblings { limit }, tried.path());
        }
    }

    // Edges lead both ways, so either end can tell whether the other is within reach.
    let far = policy.with_siblings().with_max_nodes(most_nodes).with_max_radius(u32::MAX);
    let from_anchor = search(&far, anchor, turn)?;
    if from_anchor.hit().is_some() {
        return answer(Because::NoOneChange, from_anchor.path());
    }
    if from_anchor.selected < far.max_nodes() {
        return answer(Because::NotConnected, None);
    }
    let from_turn = search(&far, turn, anchor)?;
    if from_turn.hit().is_some() {
        let path = from_turn.path().map(|path| path.into_iter().rev().collect());
        return answer(Because::NoOneChange, path);
    }
    if from_turn.selected < far.max_nodes() {
        return answer(Because::NotConnected, None);
    }
    answer(Because::NotFound { within: most_nodes }, None)
}

/// Waits for one turn to be selected, and remembers the ways.
struct TargetObserver {
    target: TurnId,
    /// Whether the expansion ends there.
    is_end: bool,
    found: HashMap<TurnId, (TurnId, Via)>,
    selected: usize,
    /// Its order and its rank.
    hit: Option<(usize, Rank)>,
}

impl TargetObserver {
    fn new(target: TurnId, is_end: bool) -> Self {
        TargetObserver { target, is_end, found: HashMap::new(), selected: 0, hit: None }
    }

    fn hit(&self) -> Option<Discovery> {
        let (order, rank) = self.hit?;
        let (from, via) = self.found[&self.target];
        Some(Discovery { order, rank, via, from })
    }

    /// From where the expansion began to the target, if it was selected.
    fn path(&self) -> Option<Vec<TurnId>> {
        self.hit?;
        let mut path = vec![self.target];
        let mut turn = self.target;
        while let Some((from, _)) = self.found.get(&turn).filter(|(_, via)| *via != Via::Anchor) {
            turn = *from;
            path.push(turn);
        }
        path.reverse();
        Some(path)
    }
}

impl Observer for TargetObserver {
    fn discovered(&mut self, turn: Rank, via: Via, from: TurnId) {
        self.found.insert(turn.id, (from, via));
    }

    fn selected(&mut self, turn: Rank) -> ControlFlow<()> {
        let is_target = turn.id == self.target;
        if is_target {
            self.hit = Some((self.selected, turn));
        }
        self.selected += 1;
        if is_target && self.is_end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
