//! The order of a slice's turns in a prompt (PROMPT.md, Messages).

use std::collections::{BTreeMap, HashMap};

use crate::graph::conversation::{Utterance, conversation_order};
use crate::graph::edge::Edge;
use crate::graph::turn::{Role, TurnId};
use crate::policy::SlicePolicy;
use crate::slicing::slice::{Part, SelectedTurn, Slice};

/// The turns of a slice by this policy in the order in which a model is shown them. The times of the turns must have
/// been read. `check_interrupts` is called often.
#[must_use]
pub fn messages<'s>(
    slice: &'s Slice,
    policy: &SlicePolicy,
    check_interrupts: &dyn Fn(),
) -> Vec<&'s SelectedTurn> {
    let turns = slice.turns.iter().map(|selected| {
        let SelectedTurn { turn, micros, part, .. } = selected;
        (Utterance { id: turn.id, time: *micros, is_result: turn.role == Role::Tool }, *part)
    });
    let turns: Vec<(Utterance, Part)> = turns.collect();
    let by_id = |id: &TurnId| slice.turns.binary_search_by_key(id, |selected| selected.turn.id);
    let order = order(&turns, &slice.edges, policy, check_interrupts);
    order.iter().filter_map(|id| by_id(id).ok()).map(|place| &slice.turns[place]).collect()
}

/// The order in which a model is shown these turns of a slice, which are different: what stays the same first, what a
/// search has found before what is asked. Times are in microseconds, 0 where there is none.
pub(crate) fn order(
    turns: &[(Utterance, Part)],
    edges: &[Edge],
    policy: &SlicePolicy,
    check_interrupts: &dyn Fn(),
) -> Vec<TurnId> {
    let of = |parts: &[Part]| -> Vec<Utterance> {
        turns.iter().filter(|(_, part)| parts.contains(part)).map(|(turn, _)| *turn).collect()
    };
    let order = |turns: &[Utterance]| conversation_order(turns, edges, check_interrupts);
    let recalled = threads(&of(&[Part::Recalled]), edges, check_interrupts);
    if policy.anchor_is_last() {
        let before = order(&of(&[Part::Pinned, Part::Line]));
        [before, recalled, order(&of(&[Part::Anchor]))].concat()
    } else {
        let others = order(&of(&[Part::Pinned, Part::Line, Part::Anchor]));
        [recalled, others].concat()
    }
}

/// These turns, one connected component of the edges between them after the other, by their earliest turns; each in the
/// order of the conversation.
fn threads(turns: &[Utterance], edges: &[Edge], check_interrupts: &dyn Fn()) -> Vec<TurnId> {
    let mut turns = turns.to_vec();
    turns.sort_unstable_by_key(Utterance::key);
    let places: HashMap<TurnId, usize> =
        turns.iter().enumerate().map(|(place, turn)| (turn.id, place)).collect();
    // Of each turn one of its component that is not later, in the end the earliest.
    let mut earlier: Vec<usize> = (0..turns.len()).collect();
    let first = |earlier: &mut Vec<usize>, mut place: usize| {
        while earlier[place] != place {
            earlier[place] = earlier[earlier[place]];
            place = earlier[place];
        }
        place
    };
    for edge in edges {
        if let (Some(a), Some(b)) = (places.get(&edge.parent), places.get(&edge.child)) {
            let (a, b) = (first(&mut earlier, *a), first(&mut earlier, *b));
            earlier[a.max(b)] = a.min(b);
        }
    }
    // By the place of the earliest turn.
    let mut threads: BTreeMap<usize, (Vec<Utterance>, Vec<Edge>)> = BTreeMap::new();
    for (place, turn) in turns.iter().enumerate() {
        threads.entry(first(&mut earlier, place)).or_default().0.push(*turn);
    }
    for edge in edges {
        if let (Some(place), true) = (places.get(&edge.parent), places.contains_key(&edge.child)) {
            threads.entry(first(&mut earlier, *place)).or_default().1.push(*edge);
        }
    }
    let order = threads.values();
    order.flat_map(|(turns, edges)| conversation_order(turns, edges, check_interrupts)).collect()
}
