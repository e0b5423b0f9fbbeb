//! The outcome of every turn that an expansion came across.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::policy::admission::Admission;
use crate::slicing::admission::AdmittingStore;
use crate::slicing::observer::{Observer, PassedOver, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::Slice;
use crate::slicing::slicer::{Limits, SliceError, Slicer};
use crate::slicing::store::{ChildEdge, GraphStore, ScoredTurn};

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
    /// The turn that it was discovered from; for the anchor, itself.
    from: TurnId,
    /// Why it was passed over, or is not admitted.
    because: Option<LeftOut>,
}

/// Why a turn that was found is not selected, but for the number of turns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LeftOut {
    PassedOver(PassedOver),
    /// It was created so many seconds before the first that is admitted.
    Early(u64),
    /// It was created so many seconds after the last that is admitted.
    Late(u64),
    /// It was created so many seconds after `as_of`.
    AfterMoment(u64),
    OtherSession,
}

/// Every turn that an expansion found, once each. The selected turns come first, in selection order; then the frontier,
/// best first; then siblings beyond the limit; then missing turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The turns.
    pub turns: Vec<ExplainedTurn>,
    /// The place of each selected turn in `turns`, which is its selection order.
    steps: HashMap<TurnId, usize>,
    max_nodes: usize,
    sibling_limit: usize,
}

impl Explanation {
    /// The turn that a turn was discovered from; `None` for the anchor.
    #[must_use]
    pub fn discovered_from(&self, turn: &ExplainedTurn) -> Option<TurnId> {
        (turn.via != Via::Anchor).then_some(turn.from)
    }

    /// Why the turn at this place has its outcome.
    #[must_use]
    pub fn reason(&self, place: usize) -> String {
        let turn = &self.turns[place];
        let found = match self.steps.get(&turn.from) {
            Some(step) => format!("{} of step {step}", turn.via.name()),
            // Only the others of a group are found from a turn that is not selected itself.
            None => format!("{} of a turn that is left out", turn.via.name()),
        };
        match turn.outcome {
            TurnOutcome::Selected if turn.via == Via::Anchor => "the anchor comes first".to_owned(),
            TurnOutcome::Selected => found,
            TurnOutcome::Frontier => format!(
                "{found}, next in line {} when max_nodes {} was spent",
                place - self.steps.len() + 1,
                self.max_nodes
            ),
            TurnOutcome::OverBudget | TurnOutcome::NotAdmitted => {
                format!("{found}, {}", turn.cause())
            }
            TurnOutcome::SiblingLimit => format!(
                "{found}, not among its best {} (max_siblings_per_node)",
                self.sibling_limit
            ),
            TurnOutcome::Missing => format!("{found}, no such turn"),
        }
    }
}

impl ExplainedTurn {
    fn new(outcome: TurnOutcome, rank: Rank, via: Via, from: TurnId) -> Self {
        ExplainedTurn { outcome, rank, via, from, because: None }
    }

    fn cause(&self) -> String {
        match self.because {
            Some(LeftOut::PassedOver(PassedOver::Tokens { left })) => {
                format!("takes {} tokens, {left} were left", self.rank.tokens)
            }
            Some(LeftOut::PassedOver(PassedOver::GroupTurns { turns, left })) => {
                format!("its call takes {turns} turns, {left} were left")
            }
            Some(LeftOut::PassedOver(PassedOver::GroupTokens { tokens, left })) => {
                format!("its call takes {tokens} tokens, {left} were left")
            }
            Some(LeftOut::Early(seconds)) => {
                format!("created {seconds} s before the anchor's window")
            }
            Some(LeftOut::Late(seconds)) => {
                format!("created {seconds} s after the anchor's window")
            }
            Some(LeftOut::AfterMoment(seconds)) => format!("created {seconds} s after as_of"),
            Some(LeftOut::OtherSession) => "of another session".to_owned(),
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
        steps: HashMap::new(),
        outcomes: HashMap::new(),
        noted_parents: HashSet::new(),
        calls: 0,
        check_interrupts,
    };
    let slice = Slicer::new(store, policy, whole(limits)).slice_observed(anchor, &mut observer)?;
    let anchor = slice.turns.iter().find(|selected| selected.turn.id == anchor);
    let facts = anchor.map(|a| policy.needs().facts_of(&a.turn, a.tokens));
    let admission = facts.map_or_else(|| policy.admission(), |facts| policy.admission_at(&facts));
    if policy.include_children() {
        let mut store = AdmittingStore::new(store, admission.clone());
        observer.find_missing_children(&mut store, limits)?;
    }
    observer.find_not_admitted(store, &admission)?;
    let OutcomeObserver { selected, steps, mut outcomes, .. } = observer;
    let mut explanation = Explanation {
        steps,
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
    /// The selection order of each, in which they are expanded as well.
    steps: HashMap<TurnId, usize>,
    /// Turns that were discovered have [`TurnOutcome::Frontier`] here, also when they were selected later.
    outcomes: HashMap<TurnId, ExplainedTurn>,
    /// The parents whose children were noted.
    noted_parents: HashSet<TurnId>,
    calls: usize,
    check_interrupts: &'a dyn Fn(),
}

impl OutcomeObserver<'_> {
    fn count_call(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(256) {
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
                    LeftOut::Early(facts.created_at.abs_diff(admission.earliest))
                } else if facts.created_at > moment {
                    LeftOut::AfterMoment(facts.created_at.abs_diff(moment))
                } else if facts.created_at > admission.latest {
                    LeftOut::Late(facts.created_at.abs_diff(admission.latest))
                } else {
                    LeftOut::OtherSession
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
        let expanded: Vec<Rank> =
            self.selected.iter().copied().filter(|turn| turn.distance < radius).collect();
        let ids: Vec<TurnId> = expanded.iter().map(|turn| turn.id).collect();
        let mut room = true;
        store
            .missing_children(&ids, &mut |(index, ChildEdge { child, .. })| {
                self.count_call();
                self.missing(child, Via::Child, expanded[index]);
                room = self.outcomes.len() <= limits.held;
                if room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(SliceError::Store)?;
        if room { Ok(()) } else { Err(SliceError::TooManyIds(limits.held)) }
    }

    /// Notes a turn that does not exist, with the first turn that has an edge to it.
    fn missing(&mut self, id: TurnId, via: Via, of: Rank) {
        let rank = Rank::new(0.0, of.distance + 1, id);
        let found = ExplainedTurn::new(TurnOutcome::Missing, rank, via, of.id);
        let known = self.outcomes.entry(id).or_insert(found);
        if self.steps[&of.id] < self.steps[&known.from] {
            *known = found;
        }
    }
}

impl Observer for OutcomeObserver<'_> {
    const SEES_ALL: bool = true;

    fn discovered(&mut self, rank: Rank, via: Via, from: TurnId) {
        self.count_call();
        let found = ExplainedTurn::new(TurnOutcome::Frontier, rank, via, from);
        self.outcomes.insert(rank.id, found);
    }

    fn passed_over(&mut self, rank: Rank, because: PassedOver) {
        if let Some(turn) = self.outcomes.get_mut(&rank.id) {
            turn.outcome = TurnOutcome::OverBudget;
            turn.because = Some(LeftOut::PassedOver(because));
        }
    }

    fn selected(&mut self, turn: Rank) -> ControlFlow<()> {
        self.steps.insert(turn.id, self.selected.len());
        self.selected.push(turn);
        ControlFlow::Continue(())
    }

    fn missing_parent(&mut self, parent: TurnId, of: Rank) {
        self.missing(parent, Via::Parent, of);
    }

    fn siblings(&mut self, parent: TurnId, of: Rank, siblings: &mut dyn Iterator<Item = Rank>) {
        if !self.noted_parents.insert(parent) {
            return;
        }
        for rank in siblings {
            self.count_call();
            let cut = ExplainedTurn::new(TurnOutcome::SiblingLimit, rank, Via::Sibling, of.id);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_says_why() {
        let passed_over = LeftOut::PassedOver;
        let reason = |outcome, because| {
            let [anchor, from, id] = [1, 2, 3].map(TurnId::from_u128);
            let turn = |id, via| {
                ExplainedTurn::new(TurnOutcome::Selected, Rank::new(1.0, 2, id), via, anchor)
            };
            let mut left_out = ExplainedTurn { outcome, from, because, ..turn(id, Via::Child) };
            left_out.rank.tokens = 9;
            let explanation = Explanation {
                turns: vec![turn(anchor, Via::Anchor), turn(from, Via::Parent), left_out, left_out],
                steps: HashMap::from([(anchor, 0), (from, 1)]),
                max_nodes: 2,
                sibling_limit: 7,
            };
            assert_eq!(explanation.reason(0), "the anchor comes first");
            assert_eq!(explanation.reason(1), "parent of step 0");
            explanation.reason(3)
        };
        for (outcome, because, expected) in [
            (TurnOutcome::Frontier, None, "next in line 2 when max_nodes 2 was spent"),
            (TurnOutcome::SiblingLimit, None, "not among its best 7 (max_siblings_per_node)"),
            (TurnOutcome::Missing, None, "no such turn"),
            (
                TurnOutcome::OverBudget,
                Some(passed_over(PassedOver::Tokens { left: 4 })),
                "takes 9 tokens, 4 were left",
            ),
            (
                TurnOutcome::OverBudget,
                Some(passed_over(PassedOver::GroupTurns { turns: 3, left: 2 })),
                "its call takes 3 turns, 2 were left",
            ),
            (
                TurnOutcome::OverBudget,
                Some(passed_over(PassedOver::GroupTokens { tokens: 30, left: 20 })),
                "its call takes 30 tokens, 20 were left",
            ),
            (
                TurnOutcome::NotAdmitted,
                Some(LeftOut::Early(5)),
                "created 5 s before the anchor's window",
            ),
            (
                TurnOutcome::NotAdmitted,
                Some(LeftOut::Late(5)),
                "created 5 s after the anchor's window",
            ),
            (TurnOutcome::NotAdmitted, Some(LeftOut::AfterMoment(5)), "created 5 s after as_of"),
            (TurnOutcome::NotAdmitted, Some(LeftOut::OtherSession), "of another session"),
        ] {
            assert_eq!(reason(outcome, because), format!("child of step 1, {expected}"));
        }
    }
}
