//! The outcome of every turn that an expansion came across.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::slicing::observer::{Observer, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::Slice;
use crate::slicing::slicer::{Limits, SliceError, Slicer};
use crate::slicing::store::{GraphStore, ScoredTurn};

named_enum! {
    /// The outcome of a turn; the declaration order is the order of an explanation.
    TurnOutcome {
        /// It is in the slice.
        Selected = "selected",
        /// It was found, but the budget was used up before it was selected.
        Frontier = "frontier",
        /// It is a sibling beyond `max_siblings_per_node`, and was not discovered otherwise.
        SiblingLimit = "sibling_limit",
        /// An edge names it, and it does not exist.
        Missing = "missing",
    }
}

/// A turn that an expansion came across, and its final outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExplainedTurn {
    /// The outcome.
    pub outcome: TurnOutcome,
    /// Its rank. The priority of a missing turn has no meaning.
    pub rank: Rank,
    /// How it is related to the turn that it was discovered from.
    pub via: Via,
    /// The selection order of the turn that it was discovered from; 0 for the anchor itself.
    pub from: usize,
}

/// Every turn that an expansion came across, once each: the selected turns in selection order, then the frontier best
/// first, then siblings beyond the limit, then missing turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The turns.
    pub turns: Vec<ExplainedTurn>,
    selected: usize,
    max_nodes: usize,
    sibling_limit: usize,
}

impl Explanation {
    /// The turn that a turn was discovered from; `None` for the anchor.
    #[must_use]
    pub fn discovered_from(&self, turn: &ExplainedTurn) -> Option<TurnId> {
        (turn.via != Via::Anchor).then(|| self.turns[turn.from].rank.id)
    }

    /// Why the turn at this place has its outcome.
    #[must_use]
    pub fn reason(&self, place: usize) -> String {
        let ExplainedTurn { outcome, via, from, .. } = self.turns[place];
        match outcome {
            TurnOutcome::Selected if via == Via::Anchor => "the anchor comes first".to_owned(),
            TurnOutcome::Selected => format!("{} of step {from}", via.name()),
            TurnOutcome::Frontier => format!(
                "{} of step {from}, next in line {} when max_nodes {} was spent",
                via.name(),
                place - self.selected + 1,
                self.max_nodes
            ),
            TurnOutcome::SiblingLimit => format!(
                "sibling of step {from}, not among its best {} (max_siblings_per_node)",
                self.sibling_limit
            ),
            TurnOutcome::Missing => format!("{} of step {from}, no such turn", via.name()),
        }
    }
}

/// Explains the slice of `policy` at `anchor`. The slice is the same as ever, but every child of every expanded turn is
/// held, also those that the budget cannot reach. `check_interrupts` is called at least every 256 turns.
///
/// # Errors
/// See [`SliceError`]. All turns that the expansion comes across count towards `limits.held`.
pub fn explain<S: GraphStore>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
    limits: Limits,
    check_interrupts: &dyn Fn(),
) -> Result<Explanation, SliceError<S::Error>> {
    let mut observer = OutcomeObserver {
        policy,
        selected: Vec::new(),
        outcomes: HashMap::new(),
        noted_parents: HashSet::new(),
        steps: 0,
        check_interrupts,
    };
    Slicer::new(store, policy, whole(limits)).slice_observed(anchor, &mut observer)?;
    observer.find_missing_children(store, limits)?;
    let OutcomeObserver { selected, mut outcomes, .. } = observer;
    let mut explanation = Explanation {
        selected: selected.len(),
        max_nodes: policy.max_nodes(),
        sibling_limit: policy.sibling_limit(),
        turns: Vec::with_capacity(outcomes.len()),
    };
    for turn in selected {
        let found = outcomes.remove(&turn.id);
        explanation
            .turns
            .extend(found.map(|t| ExplainedTurn { outcome: TurnOutcome::Selected, ..t }));
    }
    let mut left_out: Vec<ExplainedTurn> = outcomes.into_values().collect();
    left_out.sort_unstable_by_key(|turn| (turn.outcome, turn.rank));
    explanation.turns.append(&mut left_out);
    Ok(explanation)
}

/// Limits under which no child is dropped before the observer sees it.
fn whole(limits: Limits) -> Limits {
    Limits { wide: usize::MAX, ..limits }
}

/// Notes the outcome of each turn.
struct OutcomeObserver<'a> {
    policy: &'a SlicePolicy,
    /// In selection order.
    selected: Vec<Rank>,
    /// Turns that were discovered have [`TurnOutcome::Frontier`] here, also when they were selected later.
    outcomes: HashMap<TurnId, ExplainedTurn>,
    /// The parents whose children were noted.
    noted_parents: HashSet<TurnId>,
    steps: usize,
    check_interrupts: &'a dyn Fn(),
}

impl OutcomeObserver<'_> {
    fn count_step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(256) {
            (self.check_interrupts)();
        }
    }

    /// Notes the children that do not exist, which a slice does not ask for.
    fn find_missing_children<S: GraphStore>(
        &mut self,
        store: &mut S,
        limits: Limits,
    ) -> Result<(), SliceError<S::Error>> {
        let radius = self.policy.max_radius();
        let steps = 0..self.selected.len();
        let steps: Vec<usize> = steps.filter(|s| self.selected[*s].distance < radius).collect();
        let expanded: Vec<TurnId> = steps.iter().map(|step| self.selected[*step].id).collect();
        let mut room = true;
        store
            .missing_children(&expanded, &mut |(index, child)| {
                self.count_step();
                let from = self.selected[steps[index]];
                self.missing(child, Via::Child, from, steps[index]);
                room = self.outcomes.len() <= limits.held;
                if room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(SliceError::Store)?;
        if room { Ok(()) } else { Err(SliceError::TooManyIds(limits.held)) }
    }

    /// Notes a turn that does not exist, with the first turn that has an edge to it.
    fn missing(&mut self, id: TurnId, via: Via, of: Rank, from: usize) {
        let rank = Rank::new(0.0, of.distance + 1, id);
        let found = ExplainedTurn { outcome: TurnOutcome::Missing, rank, via, from };
        let known = self.outcomes.entry(id).or_insert(found);
        if from < known.from {
            *known = found;
        }
    }

    /// The selection order of the turn that is being expanded.
    fn step(&self) -> usize {
        self.selected.len().saturating_sub(1)
    }
}

impl Observer for OutcomeObserver<'_> {
    const SEES_ALL: bool = true;

    fn discovered(&mut self, rank: Rank, via: Via, _from: TurnId) {
        self.count_step();
        let found = ExplainedTurn { outcome: TurnOutcome::Frontier, rank, via, from: self.step() };
        self.outcomes.insert(rank.id, found);
    }

    fn selected(&mut self, turn: Rank) -> ControlFlow<()> {
        self.selected.push(turn);
        ControlFlow::Continue(())
    }

    fn missing_parent(&mut self, parent: TurnId, of: Rank) {
        self.missing(parent, Via::Parent, of, self.step());
    }

    fn siblings(&mut self, parent: TurnId, siblings: &[ScoredTurn], of: Rank) {
        if !self.noted_parents.insert(parent) {
            return;
        }
        let from = self.step();
        for turn in siblings {
            self.count_step();
            let rank = Rank::of(self.policy, turn, of.distance);
            let cut =
                ExplainedTurn { outcome: TurnOutcome::SiblingLimit, rank, via: Via::Sibling, from };
            self.outcomes.entry(turn.id).or_insert(cut);
        }
    }
}

/// How a slice fills its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The slice.
    pub slice: Slice,
    /// The greatest distance of its turns.
    pub max_distance: u32,
    /// Turns divided by the budget, 0 … 1.
    pub budget_used: f32,
    /// Turns that were discovered and not selected.
    pub frontier_left: usize,
}

impl Stats {
    /// Whether a larger budget gives more turns: some were discovered and not selected.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.frontier_left > 0
    }

    /// How many turns have each phase.
    #[must_use]
    pub fn phases(&self) -> Vec<(Phase, usize)> {
        self.count(Phase::ALL, |turn| turn.phase)
    }

    /// How many turns have each role.
    #[must_use]
    pub fn roles(&self) -> Vec<(Role, usize)> {
        self.count(Role::ALL, |turn| turn.role)
    }

    fn count<T: Copy + PartialEq>(&self, all: &[T], of: impl Fn(&Turn) -> T) -> Vec<(T, usize)> {
        let count = |value| self.slice.turns.iter().filter(|t| of(&t.turn) == value).count();
        all.iter().map(|value| (*value, count(*value))).collect()
    }
}

/// The slice of `policy` at `anchor`, and how it fills its bounds.
///
/// # Errors
/// See [`SliceError`]. The turns discovered count towards `limits.held`.
pub fn stats<S: GraphStore>(
    store: &mut S,
    policy: &SlicePolicy,
    anchor: TurnId,
    limits: Limits,
) -> Result<Stats, SliceError<S::Error>> {
    let mut counter = Counter::default();
    let mut slicer = Slicer::new(store, policy, whole(limits));
    let slice = slicer.slice_observed(anchor, &mut counter)?;
    let frontier_left = counter.discovered - slice.turns.len();
    let max_distance = slice.turns.iter().map(|turn| turn.distance).max().unwrap_or(0);
    let budget_used = slice.turns.len() as f32 / policy.max_nodes() as f32;
    Ok(Stats { slice, max_distance, budget_used, frontier_left })
}

/// Counts the turns that are discovered.
#[derive(Default)]
struct Counter {
    discovered: usize,
}

impl Observer for Counter {
    const SEES_ALL: bool = true;

    fn discovered(&mut self, _turn: Rank, _via: Via, _from: TurnId) {
        self.discovered += 1;
    }
}
