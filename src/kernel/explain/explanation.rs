//! The outcome of every turn that an expansion came across.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::policy::admission::Admission;
use crate::slicing::admission::AdmittingStore;
use crate::slicing::observer::{Cut, Observer, PassedOver, Via};
use crate::slicing::score::Rank;
use crate::slicing::slice::{Part, Slice};
use crate::slicing::slicer::{Limits, SliceError, Slicer};
use crate::slicing::store::{ChildEdge, GraphStore, ScoredTurn};

named_enum! {
    /// The outcome of a turn; the declaration order is the order of an explanation.
    TurnOutcome {
        /// It is in the slice.
        Selected = "selected",
        /// It was selected for the line, and cut off.
        Cut = "cut",
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
    /// What it is in the slice for; `None` of a turn that is not in it.
    pub part: Option<Part>,
    /// Why it was passed over or cut, or is not admitted.
    because: Option<LeftOut>,
}

/// Why a turn that was found is not selected, but for the number of turns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LeftOut {
    PassedOver(PassedOver),
    Cut(Cut),
    /// It was created so many seconds before the first that is admitted.
    Early(u64),
    /// It was created so many seconds after the last that is admitted.
    Late(u64),
    /// It was created so many seconds after `as_of`.
    AfterMoment(u64),
    OtherSession,
}

/// Every turn that a selection found, once each. The selected turns come first, in selection order; then those that
/// were cut; then the frontier, best first; then siblings beyond the limit; then missing turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The turns.
    pub turns: Vec<ExplainedTurn>,
    /// The place of each selected turn in `turns`, which is its selection order.
    steps: HashMap<TurnId, usize>,
    /// From where each turn was reached in recall; `None` of a seed.
    reached: HashMap<TurnId, Option<TurnId>>,
    max_nodes: usize,
    sibling_limit: usize,
}

impl Explanation {
    /// The turn that a turn was discovered from; `None` for the anchor, a pin and a seed.
    #[must_use]
    pub fn discovered_from(&self, turn: &ExplainedTurn) -> Option<TurnId> {
        (!matches!(turn.via, Via::Anchor | Via::Pin | Via::Seed)).then_some(turn.from)
    }

    /// Why the turn at this place has its outcome.
    #[must_use]
    pub fn reason(&self, place: usize) -> String {
        let turn = &self.turns[place];
        let found = self.found(turn);
        match turn.outcome {
            TurnOutcome::Selected if turn.via == Via::Anchor => "the anchor comes first".to_owned(),
            TurnOutcome::Selected => found,
            TurnOutcome::Frontier => {
                let is_frontier = |turn: &ExplainedTurn| turn.outcome == TurnOutcome::Frontier;
                let first = self.turns.iter().position(is_frontier).unwrap_or(place);
                let next = place - first + 1;
                format!("{found}, next in line {next} when max_nodes {} was spent", self.max_nodes)
            }
            TurnOutcome::OverBudget | TurnOutcome::NotAdmitted | TurnOutcome::Cut => {
                format!("{found}, {}", turn.cause())
            }
            TurnOutcome::SiblingLimit => format!(
                "{found}, not among its best {} (max_siblings_per_node)",
                self.sibling_limit
            ),
            TurnOutcome::Missing => format!("{found}, no such turn"),
        }
    }

    /// How a turn was found.
    fn found(&self, turn: &ExplainedTurn) -> String {
        let from = match self.steps.get(&turn.from) {
            Some(step) => format!("of step {step}"),
            // Of a turn that was passed over and expanded, or of one that was cut.
            None => "of a turn that is left out".to_owned(),
        };
        match turn.via {
            Via::Pin => "pinned".to_owned(),
            Via::Seed => format!("seed of strength {}", turn.rank.strength()),
            Via::Recalled => {
                let mut path = vec![turn.rank.id];
                while let Some(Some(from)) = self.reached.get(&path[path.len() - 1]) {
                    path.push(*from);
                }
                path.reverse();
                let seed = path[0];
                let path: Vec<String> = path.iter().map(TurnId::to_string).collect();
                format!("recalled from seed {seed}: {}", path.join(", "))
            }
            via => format!("{} {from}", via.name()),
        }
    }
}

impl ExplainedTurn {
    fn new(outcome: TurnOutcome, rank: Rank, via: Via, from: TurnId) -> Self {
        ExplainedTurn { outcome, rank, via, from, part: None, because: None }
    }

    fn cause(&self) -> String {
        match self.because {
            Some(LeftOut::PassedOver(PassedOver::Tokens { left })) => {
                format!("takes {} tokens, {left} were left", self.rank.tokens)
            }
            Some(LeftOut::PassedOver(PassedOver::GroupTurns { turns: 1, left })) => {
                format!("takes a turn, {left} were left")
            }
            Some(LeftOut::PassedOver(PassedOver::GroupTurns { turns, left })) => {
                format!("its call takes {turns} turns, {left} were left")
            }
            Some(LeftOut::PassedOver(PassedOver::GroupTokens { tokens, left })) => {
                format!("its call takes {tokens} tokens, {left} were left")
            }
            Some(LeftOut::Cut(Cut::Beginning { at })) => {
                format!("cut off, the line begins with {at} (cut_share)")
            }
            Some(LeftOut::Cut(Cut::NoCall)) => {
                "cut off, as its call is not in the slice".to_owned()
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
        cut: HashSet::new(),
        expanded: Vec::new(),
        expanded_places: HashMap::new(),
        outcomes: HashMap::new(),
        pins_left_out: Vec::new(),
        reached: HashMap::new(),
        recalled_with: HashSet::new(),
        not_recalled: HashMap::new(),
        noted_parents: HashSet::new(),
        calls: 0,
        check_interrupts,
    };
    let slice = Slicer::new(store, policy, whole(limits)).slice_observed(anchor, &mut observer)?;
    let anchor = slice.turns.iter().find(|selected| selected.turn.id == anchor);
    let facts = anchor.map(|a| policy.needs().facts_of(&a.turn, a.micros, a.tokens));
    let admission = facts.map_or_else(|| policy.admission(), |facts| policy.admission_at(&facts));
    if policy.include_children() {
        let mut store = AdmittingStore::new(store, admission.clone());
        observer.find_missing_children(&mut store, limits)?;
    }
    observer.find_not_admitted(store, &admission)?;
    Ok(observer.finish())
}

/// Limits under which no child is dropped before the observer sees it.
fn whole(limits: Limits) -> Limits {
    Limits { wide: usize::MAX, ..limits }
}

/// Notes the outcome of each turn.
struct OutcomeObserver<'a> {
    policy: &'a SlicePolicy,
    /// In selection order; without those that were cut, but for the ones in `cut`.
    selected: Vec<Rank>,
    cut: HashSet<TurnId>,
    /// In the order in which they were expanded.
    expanded: Vec<Rank>,
    /// The place of each in `expanded`.
    expanded_places: HashMap<TurnId, usize>,
    /// Turns that were discovered have [`TurnOutcome::Frontier`] here, also when they were selected later.
    outcomes: HashMap<TurnId, ExplainedTurn>,
    pins_left_out: Vec<ExplainedTurn>,
    /// From where each turn was reached in recall, and its rank there; `None` of a seed.
    reached: HashMap<TurnId, (Option<TurnId>, Rank)>,
    /// Turns that were recalled with others of their group.
    recalled_with: HashSet<TurnId>,
    not_recalled: HashMap<TurnId, PassedOver>,
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
        let expanded = self.expanded.clone();
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
        let place = |id| self.expanded_places.get(id).copied().unwrap_or(usize::MAX);
        if place(&of.id) < place(&known.from) {
            *known = found;
        }
    }

    /// What was found of a turn in recall.
    fn recalled(&self, id: TurnId) -> Option<ExplainedTurn> {
        let (from, rank) = self.reached.get(&id)?;
        let via = if from.is_some() { Via::Recalled } else { Via::Seed };
        Some(ExplainedTurn::new(TurnOutcome::Frontier, *rank, via, from.unwrap_or(id)))
    }

    /// Leaves of `selected` what was not cut. A turn that was cut may be recalled.
    fn drop_cut(&mut self) {
        if !self.cut.is_empty() {
            let cut = std::mem::take(&mut self.cut);
            self.selected.retain(|turn| !cut.contains(&turn.id));
        }
    }

    /// All turns with their final outcomes.
    fn finish(mut self) -> Explanation {
        self.drop_cut();
        let reached: Vec<TurnId> = self.reached.keys().copied().collect();
        for id in reached {
            let Some(mut found) = self.recalled(id) else { continue };
            if let Some(because) = self.not_recalled.get(&id) {
                found.outcome = TurnOutcome::OverBudget;
                found.because = Some(LeftOut::PassedOver(*because));
            }
            let known = self.outcomes.entry(id).or_insert(found);
            if known.outcome == TurnOutcome::SiblingLimit {
                *known = found;
            }
        }
        let steps: HashMap<TurnId, usize> =
            self.selected.iter().enumerate().map(|(step, turn)| (turn.id, step)).collect();
        for pin in &self.pins_left_out {
            if !steps.contains_key(&pin.rank.id) {
                self.outcomes.insert(pin.rank.id, *pin);
            }
        }
        let mut turns = Vec::with_capacity(self.outcomes.len());
        for turn in &self.selected {
            let found = self.outcomes.remove(&turn.id);
            turns.extend(found.map(|t| ExplainedTurn { outcome: TurnOutcome::Selected, ..t }));
        }
        let mut left_out: Vec<ExplainedTurn> = self.outcomes.into_values().collect();
        left_out.sort_unstable_by_key(|turn| (turn.outcome, turn.rank));
        turns.append(&mut left_out);
        Explanation {
            turns,
            steps,
            reached: self.reached.into_iter().map(|(id, (from, _))| (id, from)).collect(),
            max_nodes: self.policy.max_nodes(),
            sibling_limit: self.policy.sibling_limit(),
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

    fn selected(&mut self, turn: Rank, part: Part) -> ControlFlow<()> {
        self.count_call();
        self.drop_cut();
        self.selected.push(turn);
        if part == Part::Recalled
            && !self.recalled_with.contains(&turn.id)
            && let Some(found) = self.recalled(turn.id)
        {
            self.outcomes.insert(turn.id, found);
        }
        if let Some(found) = self.outcomes.get_mut(&turn.id) {
            found.part = Some(part);
        }
        ControlFlow::Continue(())
    }

    fn pin_left_out(&mut self, pin: Rank, because: PassedOver) {
        let found = ExplainedTurn::new(TurnOutcome::OverBudget, pin, Via::Pin, pin.id);
        let because = Some(LeftOut::PassedOver(because));
        self.pins_left_out.push(ExplainedTurn { because, ..found });
    }

    fn expanded(&mut self, turn: Rank) {
        self.expanded_places.insert(turn.id, self.expanded.len());
        self.expanded.push(turn);
    }

    fn cut(&mut self, turn: Rank, because: Cut) {
        self.cut.insert(turn.id);
        if let Some(found) = self.outcomes.get_mut(&turn.id) {
            found.outcome = TurnOutcome::Cut;
            found.part = None;
            found.because = Some(LeftOut::Cut(because));
        }
    }

    fn reached(&mut self, turn: Rank, from: Option<TurnId>) {
        self.count_call();
        self.reached.insert(turn.id, (from, turn));
    }

    fn recalled_with(&mut self, turn: Rank, with: TurnId) {
        let found = ExplainedTurn::new(TurnOutcome::Frontier, turn, Via::Call, with);
        self.outcomes.insert(turn.id, found);
        self.recalled_with.insert(turn.id);
    }

    fn not_recalled(&mut self, turn: Rank, because: PassedOver) {
        self.not_recalled.insert(turn.id, because);
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
    /// The tokens of its turns; `None` where the policy does not count them.
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
    for selected in &slice.turns {
        counter.discovered.remove(&selected.turn.id);
    }
    let frontier_left = counter.discovered.len();
    let max_distance = slice.turns.iter().map(|turn| turn.distance).max().unwrap_or(0);
    let budget_used = slice.turns.len() as f32 / policy.max_nodes() as f32;
    let all = slice.turns.iter().map(|selected| u64::from(selected.tokens)).sum::<u64>();
    let tokens = policy.counts_tokens().then_some(all);
    let token_budget_used = policy.max_tokens().map(|most| (all as f64 / most as f64) as f32);
    Ok(Stats { slice, max_distance, budget_used, tokens, token_budget_used, frontier_left })
}

/// Notes the turns that are found.
#[derive(Default)]
struct Counter {
    discovered: HashSet<TurnId>,
}

impl Observer for Counter {
    const SEES_ALL: bool = true;

    fn discovered(&mut self, turn: Rank, _via: Via, _from: TurnId) {
        self.discovered.insert(turn.id);
    }

    fn pin_left_out(&mut self, pin: Rank, _because: PassedOver) {
        self.discovered.insert(pin.id);
    }

    fn reached(&mut self, turn: Rank, _from: Option<TurnId>) {
        self.discovered.insert(turn.id);
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
                reached: HashMap::new(),
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
            (
                TurnOutcome::Cut,
                Some(LeftOut::Cut(Cut::NoCall)),
                "cut off, as its call is not in the slice",
            ),
        ] {
            assert_eq!(reason(outcome, because), format!("child of step 1, {expected}"));
        }
    }
}
