//! Slices of SlicePolicy v2, computed from its text by an independent program.

use std::collections::BTreeMap;

use graph_kernel_tests::data::{
    Graph, read_graph, read_json_lines, read_micros, read_tokens, tokens_of,
};
use graph_kernel_tests::memory_store::MemoryStore;
use graph_kernel_tests::shared::shared_or_skip;
use graph_kernel_tests::vectors::{ExpectedSliceV2, RecordedSliceV2, RecordedValues, SmallGraphV2};
use kernel::export::document::Export;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{StoredTurn, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::prompt::messages::messages;
use kernel::slicing::observer::{Cut, Observer};
use kernel::slicing::score::Rank;
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::slicing::slicer::{Limits, SliceError, Slicer};
use serde::Deserialize;

use crate::data;
use crate::recorded_slices::{ids_sha256, selection_order_sha256};

/// Parent, child and type of an edge.
pub type EdgeRow = (TurnId, TurnId, Option<String>);

type Case = SmallGraphV2<Vec<Row>, Vec<EdgeRow>>;

#[derive(Deserialize)]
pub struct Row {
    pub id: TurnId,
    session_id: Option<String>,
    role: Option<String>,
    phase: Option<String>,
    salience: Option<f64>,
    pub created_at: Option<i64>,
    pub content_text: Option<String>,
    token_count: Option<i64>,
}

impl From<&Row> for Turn {
    fn from(row: &Row) -> Self {
        StoredTurn {
            id: row.id,
            session_id: row.session_id.as_deref(),
            role: row.role.as_deref(),
            phase: row.phase.as_deref(),
            salience: row.salience,
            created_at: row.created_at,
            ..StoredTurn::default()
        }
        .into()
    }
}

impl Row {
    fn tokens(&self) -> u32 {
        let of_text = || self.content_text.as_deref().map_or(0, tokens_of);
        let counted = self.token_count.filter(|count| *count >= 0);
        counted.map_or_else(of_text, |count| count.min(i64::from(i32::MAX)) as u32)
    }
}

pub fn store(turns: &[Row], edges: &[EdgeRow]) -> MemoryStore {
    let edge = |(parent, child, name): &EdgeRow| Edge {
        parent: *parent,
        child: *child,
        edge_type: EdgeType::from_stored(name.as_deref()),
    };
    let graph = Graph {
        turns: turns.iter().map(Turn::from).collect(),
        edges: edges.iter().map(edge).collect(),
    };
    let tokens = turns.iter().map(|row| (row.id, row.tokens())).collect();
    MemoryStore::new(graph).with_tokens(tokens)
}

/// Notes what a slice does not say of itself. It sees all, so that `limited` is exact for any policy.
#[derive(Default)]
struct Noted {
    cut: Vec<TurnId>,
    limited: bool,
}

impl Observer for Noted {
    const SEES_ALL: bool = true;

    fn cut(&mut self, turn: Rank, _because: Cut) {
        self.cut.push(turn.id);
    }

    fn line_ended(&mut self, limited: bool) {
        self.limited = limited;
    }
}

/// The slice at an anchor, which is the same with an observer that sees all.
fn slice(
    slicer: &mut Slicer<'_, MemoryStore>,
    observed: &mut Slicer<'_, MemoryStore>,
    anchor: TurnId,
) -> Option<(Slice, Noted)> {
    let mut noted = Noted::default();
    let seen = observed.slice_observed(anchor, &mut noted);
    let slice = slicer.slice(anchor);
    assert_eq!(slice, seen, "{anchor}");
    match slice {
        Ok(slice) => Some((slice, noted)),
        Err(SliceError::AnchorNotFound(_)) => None,
        Err(error) => panic!("{anchor}: {error}"),
    }
}

fn taken(case: &Case, limits: Limits) -> Option<ExpectedSliceV2> {
    let policy: SlicePolicy = case.policy.to_string().parse().unwrap();
    let store = || store(&case.turns, &case.edges);
    let (mut a, mut b) = (store(), store());
    let wide = Limits { wide: usize::MAX, ..limits };
    let (mut slicer, mut observed) =
        (Slicer::new(&mut a, &policy, limits), Slicer::new(&mut b, &policy, wide));
    let (slice, noted) = slice(&mut slicer, &mut observed, case.anchor)?;
    let export = Export::new(&slice, &policy, &|| {});
    let mut order: Vec<&SelectedTurn> = slice.turns.iter().collect();
    order.sort_by_key(|selected| selected.selection_order);
    let edge = |edge: &Edge| (edge.parent, edge.child, edge.edge_type.name().to_owned());
    Some(ExpectedSliceV2 {
        anchor_turn_id: export.anchor_turn_id,
        turn_ids: export.turns.iter().map(|turn| turn.id).collect(),
        edges: export.edges.iter().map(edge).collect(),
        distances: order.iter().map(|turn| (turn.turn.id, turn.distance)).collect(),
        priorities: order.iter().map(|turn| (turn.turn.id, turn.priority)).collect(),
        selection_order: order.iter().map(|turn| turn.turn.id).collect(),
        tokens: tokens(&slice),
        parts: order.iter().map(|turn| (turn.turn.id, turn.part.name().to_owned())).collect(),
        cut: noted.cut,
        limited: noted.limited,
        messages: messages(&slice, &policy, &|| {}).iter().map(|turn| turn.turn.id).collect(),
        policy_params_hash: export.policy_params_hash,
        slice_id: export.slice_id,
    })
}

fn tokens(slice: &Slice) -> u64 {
    slice.turns.iter().map(|selected| u64::from(selected.tokens)).sum()
}

#[test]
fn small_graphs_are_sliced_as_the_text_asks() {
    let cases: Vec<Case> = read_json_lines(&data("small-graphs-v2.jsonl.gz"));
    assert_eq!(cases.len(), 800);
    let limits = Limits::default();
    for limits in [
        limits,
        Limits { batch: 1, nearby: 1, crowded: 2, wide: 2, rows: 0, ..limits },
        Limits { batch: 3, wide: 4, ..limits },
    ] {
        for case in &cases {
            assert_eq!(taken(case, limits), case.expected, "case {} {limits:?}", case.case);
        }
    }
}

fn retake(
    slicer: &mut Slicer<'_, MemoryStore>,
    observed: &mut Slicer<'_, MemoryStore>,
    policy: &SlicePolicy,
    anchor: TurnId,
) -> Option<RecordedValues> {
    let (slice, noted) = slice(slicer, observed, anchor)?;
    let export = Export::new(&slice, policy, &|| {});
    let mut parts: BTreeMap<String, usize> =
        Part::ALL.iter().map(|part| (part.name().to_owned(), 0)).collect();
    for selected in &slice.turns {
        *parts.entry(selected.part.name().to_owned()).or_default() += 1;
    }
    let shown = messages(&slice, policy, &|| {});
    Some(RecordedValues {
        policy_params_hash: export.policy_params_hash,
        turns: export.turns.len(),
        edges: export.edges.len(),
        tokens: tokens(&slice),
        slice_id: export.slice_id,
        cut: noted.cut.len(),
        limited: noted.limited,
        selection_order_sha256: selection_order_sha256(&slice),
        parts,
        messages_sha256: ids_sha256(shown.iter().map(|selected| selected.turn.id)),
    })
}

#[test]
fn slices_of_shared_graphs_are_as_the_text_asks() {
    let test = "slices_of_shared_graphs_are_as_the_text_asks";
    let Some(shared) = shared_or_skip(test) else { return };
    let slices: Vec<RecordedSliceV2> = read_json_lines(&shared.join("vectors/slices-v2.jsonl.gz"));
    assert_eq!(slices.len(), 1045);
    for name in ["agent_sessions", "oasst1"] {
        let folder = shared.join("data").join(name);
        let store = || {
            let store = MemoryStore::new(read_graph(&folder)).with_tokens(read_tokens(&folder));
            store.with_micros(read_micros(&folder))
        };
        let (mut a, mut b) = (store(), store());
        for recorded in slices.iter().filter(|slice| slice.data == name) {
            let policy: SlicePolicy = recorded.policy.to_string().parse().unwrap();
            let wide = Limits { wide: usize::MAX, ..Limits::default() };
            let mut slicer = Slicer::new(&mut a, &policy, Limits::default());
            let mut observed = Slicer::new(&mut b, &policy, wide);
            let taken = retake(&mut slicer, &mut observed, &policy, recorded.anchor);
            let (name, anchor) = (&recorded.policy_name, recorded.anchor);
            assert_eq!(taken, recorded.expected, "{name} at {anchor}");
        }
    }
}
