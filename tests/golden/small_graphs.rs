//! 200 small graphs, sliced by the published crate and by an independent program that follows
//! the specification's tie-break.

use graph_kernel_tests::data::{Graph, read_json_lines};
use graph_kernel_tests::memory_store::MemoryStore;
use graph_kernel_tests::vectors::{ExpectedSlice, SmallGraph};
use kernel::export::document::Export;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{StoredTurn, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::slice;
use serde::Deserialize;

use crate::data;

type Case = SmallGraph<Vec<Row>, Vec<(TurnId, TurnId, String)>>;

#[derive(Deserialize)]
struct Row {
    id: TurnId,
    session_id: String,
    role: String,
    phase: String,
    salience: f64,
    depth: i64,
    created_at: i64,
    content_hash: Option<String>,
}

impl From<&Row> for Turn {
    fn from(row: &Row) -> Self {
        StoredTurn {
            id: row.id,
            session_id: Some(&row.session_id),
            role: Some(&row.role),
            phase: Some(&row.phase),
            salience: Some(row.salience),
            trajectory_depth: Some(row.depth),
            created_at: Some(row.created_at),
            content_hash: row.content_hash.as_deref(),
            ..StoredTurn::default()
        }
        .into()
    }
}

fn graph(case: &Case) -> Graph {
    let edge = |(parent, child, name): &(TurnId, TurnId, String)| Edge {
        parent: *parent,
        child: *child,
        edge_type: EdgeType::from_stored(Some(name)),
    };
    Graph {
        turns: case.turns.iter().map(Turn::from).collect(),
        edges: case.edges.iter().map(edge).collect(),
    }
}

fn taken(case: &Case) -> ExpectedSlice {
    let policy: SlicePolicy = case.policy.to_string().parse().unwrap();
    let slice = slice(&mut MemoryStore::new(graph(case)), &policy, case.anchor).unwrap();
    let export = Export::new(&slice, &policy, &|| {});
    ExpectedSlice {
        turn_ids: export.turns.iter().map(|turn| turn.id).collect(),
        edge_count: export.edges.len(),
        policy_params_hash: export.policy_params_hash,
        slice_id: export.slice_id,
        graph_snapshot_hash: export.graph_snapshot_hash,
    }
}

fn cases() -> Vec<Case> {
    let cases: Vec<Case> = read_json_lines(&data("small-graphs.jsonl.gz"));
    assert_eq!(cases.len(), 200);
    cases
}

#[test]
fn small_graphs_are_sliced_as_the_specification_asks() {
    for case in cases() {
        assert_eq!(taken(&case), case.spec_tiebreak, "case {}", case.case);
    }
}

#[test]
fn small_graphs_without_ties_are_sliced_as_the_published_crate_does() {
    let cases = cases();
    let without_ties: Vec<&Case> = cases.iter().filter(|case| !case.tie_sensitive).collect();
    assert_eq!(without_ties.len(), 160);
    for case in without_ties {
        assert_eq!(taken(case), case.published, "case {}", case.case);
    }
}
