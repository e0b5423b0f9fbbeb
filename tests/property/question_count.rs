//! The number of calls of the store that a slice makes, each of which is a statement, and of checks for interrupts.

use std::convert::Infallible;

use fastrand::Rng;
use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::explain::why::{Because, why};
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::facts::TurnFacts;
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::{FetchedGraph, Limits, Slicer, slice};
use kernel::slicing::store::{ChildEdge, GraphStore, Neighbour, ScoredTurn, Sink};

struct Counting {
    store: MemoryStore,
    questions: usize,
    checks: usize,
}

impl Counting {
    fn new(graph: Graph) -> Self {
        Counting { store: MemoryStore::new(graph), questions: 0, checks: 0 }
    }
}

macro_rules! count {
    ($($name:ident($($argument:ident: $type:ty),*) -> $row:ty;)*) => {
        impl GraphStore for Counting {
            type Error = Infallible;
            $(fn $name(&mut self, $($argument: $type,)* sink: Sink<'_, $row>) -> Result<(), Infallible> {
                self.questions += 1;
                self.store.$name($($argument,)* sink)
            })*

            fn check_interrupts(&mut self) {
                self.checks += 1;
            }
        }
    };
}

count! {
    scored(ids: &[TurnId]) -> ScoredTurn;
    neighbours(parents_of: &[TurnId], children_of: &[TurnId]) -> (TurnId, Neighbour);
    children(of: &[TurnId]) -> (usize, ScoredTurn, EdgeType);
    missing_children(of: &[TurnId]) -> (usize, ChildEdge);
    turns(ids: &[TurnId]) -> (Turn, TurnFacts);
}

/// A graph of this many turns; `parents` gives the parents of the turn at a place.
fn graph(turns: usize, mut parents: impl FnMut(usize, &mut Rng) -> Vec<usize>) -> Graph {
    let mut random = Rng::with_seed(11);
    let mut graph = Graph::default();
    for at in 0..turns {
        let id = TurnId::from_u128(random.u128(..));
        let phase = Phase::ALL[random.usize(..Phase::ALL.len())];
        graph.turns.push(Turn {
            id,
            session_id: String::new(),
            role: Role::User,
            phase,
            salience: random.f32(),
            trajectory_depth: 0,
            trajectory_sibling_order: 0,
            trajectory_homogeneity: 0.5,
            trajectory_temporal: 0.5,
            trajectory_complexity: 1.0,
            created_at: 0,
            content_hash: None,
        });
        for parent in parents(at, &mut random) {
            let parent = graph.turns[parent].id;
            graph.edges.push(Edge { parent, child: id, edge_type: EdgeType::Reply });
        }
    }
    graph
}

/// Turns in a row.
pub fn chain(turns: usize) -> Graph {
    graph(turns, |at, _| if at == 0 { vec![] } else { vec![at - 1] })
}

/// The most questions that a default slice asks at any of fifty anchors, and the largest slice.
fn most_questions(graph: Graph) -> (usize, usize) {
    let anchors: Vec<TurnId> =
        graph.turns.iter().step_by(graph.turns.len() / 50).map(|turn| turn.id).collect();
    let mut store = Counting::new(graph);
    let (mut questions, mut turns) = (0, 0);
    for anchor in anchors {
        store.questions = 0;
        let slice = slice(&mut store, &SlicePolicy::default(), anchor).unwrap();
        questions = questions.max(store.questions);
        turns = turns.max(slice.turns.len());
    }
    (questions, turns)
}

#[test]
fn a_chain_is_sliced_in_few_questions() {
    let (questions, turns) = most_questions(chain(2000));
    assert_eq!(turns, 21);
    assert!(questions <= 30, "{questions} questions");
}

#[test]
fn anchors_read_together_share_their_questions() {
    let chain = chain(2000);
    let anchors: Vec<TurnId> = chain.turns.iter().step_by(40).map(|turn| turn.id).collect();
    let mut store = Counting::new(chain);
    let policy = SlicePolicy::default();
    let mut slicer = Slicer::new(&mut store, &policy, Limits::default());
    for (at, anchor) in anchors.iter().enumerate() {
        slicer.slice_before(*anchor, &anchors[at + 1..]).unwrap();
    }
    assert!(store.questions <= 60, "{} questions", store.questions);
}

/// The number of questions for the slice at a first anchor, when it is taken again after a thousand others.
fn questions_of_a_slice_retaken(limits: Limits) -> usize {
    let chain = chain(2000);
    let anchors: Vec<TurnId> = chain.turns.iter().step_by(2).map(|turn| turn.id).collect();
    let mut store = Counting::new(chain);
    let policy = SlicePolicy::default();
    let mut known = FetchedGraph::default();
    for group in anchors.chunks(100).chain([&anchors[..1]]) {
        store.questions = 0;
        let mut slicer = Slicer::reusing(known, &mut store, &policy, limits);
        for (at, anchor) in group.iter().enumerate() {
            slicer.slice_before(*anchor, &group[at + 1..]).unwrap();
        }
        known = slicer.into_fetched();
    }
    store.questions
}

#[test]
fn slices_of_a_batch_are_remembered_until_they_are_many() {
    let limits = Limits::default();
    assert_eq!(questions_of_a_slice_retaken(limits), 0);
    assert!(questions_of_a_slice_retaken(Limits { rows: 1000, ..limits }) > 0);
    assert!(questions_of_a_slice_retaken(Limits { held: 20_000, ..limits }) > 0);
}

#[test]
fn interrupts_are_checked_among_very_many_children() {
    let star = graph(3001, |at, _| if at == 0 { vec![] } else { vec![0] });
    let anchor = star.turns[0].id;
    let mut store = Counting::new(star);
    let policy = r#"{"max_nodes":2}"#.parse().unwrap();
    let limits = Limits { wide: 4000, ..Limits::default() };
    let slice = Slicer::new(&mut store, &policy, limits).slice(anchor).unwrap();
    assert_eq!(slice.turns.len(), 2);
    assert!((3000 / 256..30).contains(&store.checks), "{} checks", store.checks);
}

#[test]
fn hubs_around_an_anchor_take_few_questions() {
    // Forty turns with fifty children each, and one child of all of them.
    let hubs = graph(2041, |at, _| match at {
        0..40 => vec![],
        2040 => (0..40).collect(),
        _ => vec![at % 40],
    });
    let anchor = hubs.turns[2040].id;
    let mut store = Counting::new(hubs);
    let policy = SlicePolicy::default();
    let limits = Limits { crowded: 20, ..Limits::default() };
    let slice = Slicer::new(&mut store, &policy, limits).slice(anchor).unwrap();
    assert_eq!(slice.turns.len(), 256);
    assert!(store.questions <= 60, "{} questions", store.questions);
}

#[test]
fn hubs_whose_children_were_stored_one_after_the_other_are_not_left_out_one_by_one() {
    // Forty turns with a thousand children each, and one child of all of them.
    let hubs = graph(40_041, |at, _| match at {
        0..40 => vec![],
        40_040 => (0..40).collect(),
        _ => vec![(at - 40) / 1000],
    });
    let anchor = hubs.turns[40_040].id;
    let mut store = Counting::new(hubs);
    let limits = Limits { crowded: 40, ..Limits::default() };
    Slicer::new(&mut store, &SlicePolicy::default(), limits).slice(anchor).unwrap();
    assert!(store.questions <= 45, "{} questions", store.questions);
}

#[test]
fn a_dense_graph_is_sliced_in_few_questions() {
    let dense = graph(5000, |at, random| match at {
        0 => vec![],
        _ => vec![at.saturating_sub(random.usize(1..=3)), at.saturating_sub(random.usize(1..=30))],
    });
    let (questions, turns) = most_questions(dense);
    assert_eq!(turns, 256);
    assert!(questions <= turns, "{questions} questions");
}

#[test]
fn why_reads_what_its_expansions_share_once() {
    let chain = chain(2000);
    let [anchor, turn] = [1000, 1015].map(|place: usize| chain.turns[place].id);
    let mut store = Counting::new(chain);
    let policy = SlicePolicy::default();
    slice(&mut store, &policy, anchor).unwrap();
    let of_a_slice = std::mem::take(&mut store.questions);
    // The slice, and eight expansions around the same turns.
    let found = why(&mut store, &policy, anchor, turn, 512, Limits::default()).unwrap();
    assert_eq!(found.because, Because::Radius { max_radius: 10, needed: 15 });
    let questions = store.questions;
    assert!(questions <= 4 * of_a_slice, "{questions} questions, {of_a_slice} for a slice");
}

#[test]
fn nothing_is_asked_around_the_last_turn_of_a_budget() {
    let chain = chain(20);
    let anchor = chain.turns[10].id;
    let mut store = Counting::new(chain);
    let policy = r#"{"max_nodes":1}"#.parse().unwrap();
    slice(&mut store, &policy, anchor).unwrap();
    // Its row, and its edges for the export.
    assert_eq!(store.questions, 2);
}
