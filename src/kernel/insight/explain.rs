//! The outcome of every turn that an expansion came across.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::slicing::admission::{Admission, AdmittingStore};
use crate::slicing::observer::{Observer, PassedOver, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::Slice;
use crate::slicing::slicer::{Limits, SliceError, Slicer};
use crate::slicing::store::{ChildEdge, GraphStore, ScoredTurn, TurnFacts};

named_enum! {
    /// The outcome of a turn; the declaration order is the order of an explanation.
    TurnOutcome {
        /// It is in the slice.
        Selected = "selected",
        /// It was found, but the budget was used up before it was selected.
        Frontier = "frontier",
        /// It was found, and takes more tokens than were left; or its calls and results take more tokens or turns.
        OverBudget = "over_budget",
        /// It is a sibling beyond `max_siblings_per_node`, and was not discovered otherwise.
        SiblingLimit = "sibling_limit",
        /// An edge names it, and for this policy it does not exist: its time or its session is another.
        NotAdmitted = "not_admitted",
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
    /// Why it was passed over, or is not admitted.
    because: Option<Because>,
}

/// Why a turn that was found is not selected, but for the number of turns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Because {
    PassedOver(PassedOver),
    /// It was created so many seconds before the first that is admitted.
    Early(u64),
    /// It was created so many seconds after the last that is admitted.
    Late(u64),
    /// It was created so many seconds after `as_of`.
    AfterMoment(u64),
    OtherSession,
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
            TurnOutcome::OverBudget | TurnOutcome::NotAdmitted => {
                format!("{} of step {from}, {}", via.name(), self.turns[place].cause())
            }
            TurnOutcome::SiblingLimit => format!(
                "sibling of step {from}, not among its best {} (max_siblings_per_node)",
                self.sibling_limit
            ),
            TurnOutcome::Missing => format!("{} of step {from}, no such turn", via.name()),
        }
    }
}

impl ExplainedTurn {
    fn new(outcome: TurnOutcome, rank: Rank, via: Via, from: usize) -> Self {
        ExplainedTurn { outcome, rank, via, from, because: None }
    }

    fn cause(&self) -> String {
        match self.because {
            Some(Because::PassedOver(PassedOver::Tokens { left })) => {
                format!("takes {} tokens, {left} were left", self.rank.tokens)
            }
            Some(Because::PassedOver(PassedOver::GroupTurns { turns, left })) => {
                format!("its call takes {turns} turns, {left} were left")
            }
            Some(Because::PassedOver(PassedOver::GroupTokens { tokens, left })) => {
                format!("its call takes {tokens} tokens, {left} were left")
            }
            Some(Because::Early(seconds)) => {
                format!("created {seconds} s before the anchor's window")
            }
            Some(Because::Late(seconds)) => {
                format!("created {seconds} s after the anchor's window")
            }
            Some(Because::AfterMoment(seconds)) => format!("created {seconds} s after as_of"),
            Some(Because::OtherSession) => "of another session".to_owned(),
            None => String::new(),
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
    let slice = Slicer::new(store, policy, whole(limits)).slice_observed(anchor, &mut observer)?;
    let anchor = slice.turns.iter().find(|selected| selected.turn.id == anchor);
    let facts = anchor.map(|a| TurnFacts::of(&a.turn, a.tokens, policy.needs()));
    let admission = facts.map_or_else(|| policy.admission(), |facts| policy.admission_at(&facts));
    if policy.include_children() {
        let mut store = AdmittingStore::new(store, admission.clone());
        observer.find_missing_children(&mut store, limits)?;
    }
    observer.find_not_admitted(store, &admission)?;
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

    /// Notes which of the missing turns exist, but not for the policy.
    fn find_not_admitted<S: GraphStore>(
        &mut self,
        store: &mut S,
        admission: &Admission,
    ) -> Result<(), SliceError<S::Error>> {
        if *admission == Admission::default() {
            return Ok(());
        }
        let moment = self.policy.admission().latest;
        let missing = self.outcomes.values().filter(|t| t.outcome == TurnOutcome::Missing);
        let missing: Vec<TurnId> = missing.map(|turn| turn.rank.id).collect();
        let Some(outcomes) = (!missing.is_empty()).then_some(&mut self.outcomes) else {
            return Ok(());
        };
        store
            .scored(&missing, &mut |ScoredTurn { id, facts }| {
                let because = if facts.created_at < admission.earliest {
                    Because::Early(facts.created_at.abs_diff(admission.earliest))
                } else if facts.created_at > moment {
                    Because::AfterMoment(facts.created_at.abs_diff(moment))
                } else if facts.created_at > admission.latest {
                    Because::Late(facts.created_at.abs_diff(admission.latest))
                } else {
                    Because::OtherSession
                };
                if let Some(turn) = outcomes.get_mut(&id) {
                    turn.outcome = TurnOutcome::NotAdmitted;
                    turn.because = Some(because);
                }
                ControlFlow::Continue(())
            })
            .map_err(SliceError::Store)
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
            .missing_children(&expanded, &mut |(index, ChildEdge { child, .. })| {
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
        let found = ExplainedTurn::new(TurnOutcome::Missing, rank, via, from);
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
        let found = ExplainedTurn::new(TurnOutcome::Frontier, rank, via, self.step());
        self.outcomes.insert(rank.id, found);
    }

    fn passed_over(&mut self, rank: Rank, because: PassedOver) {
        if let Some(turn) = self.outcomes.get_mut(&rank.id) {
            turn.outcome = TurnOutcome::OverBudget;
            turn.because = Some(Because::PassedOver(because));
        }
    }

    fn selected(&mut self, turn: Rank) -> ControlFlow<()> {
        self.selected.push(turn);
        ControlFlow::Continue(())
    }

    fn missing_parent(&mut self, parent: TurnId, of: Rank) {
        self.missing(parent, Via::Parent, of, self.step());
    }

    fn siblings(&mut self, parent: TurnId, siblings: &mut dyn Iterator<Item = Rank>) {
        if !self.noted_parents.insert(parent) {
            return;
        }
        let from = self.step();
        for rank in siblings {
            self.count_step();
            let cut = ExplainedTurn::new(TurnOutcome::SiblingLimit, rank, Via::Sibling, from);
            self.outcomes.entry(rank.id).or_insert(cut);
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
    /// The tokens of its turns; `None` where the policy does not bound them.
    pub tokens: Option<u64>,
    /// Tokens divided by the bound; more than 1 where the anchor alone has more.
    pub token_budget_used: Option<f32>,
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
    let all = slice.turns.iter().map(|selected| u64::from(selected.tokens)).sum::<u64>();
    let tokens = policy.max_tokens().map(|_| all);
    let token_budget_used = policy.max_tokens().map(|most| (all as f64 / most as f64) as f32);
    Ok(Stats { slice, max_distance, budget_used, tokens, token_budget_used, frontier_left })
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
