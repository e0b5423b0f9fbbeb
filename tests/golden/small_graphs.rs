//! 200 small graphs, sliced by the published crate and by an independent program that follows
//! the specification's tie-break.

use graph_kernel_tests::data::{Graph, read_json_lines};
use graph_kernel_tests::memory_store::MemoryStore;
use graph_kernel_tests::vectors::{ExpectedSlice, SmallGraph};
use kernel::drawing::export::mermaid;
use kernel::explain::diff::{Difference, export_differences};
use kernel::export::document::Export;
use kernel::export::document::canonical_text;
use kernel::export::parse::ParsedExport;
use kernel::export::published::Published;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{StoredTurn, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::slice;
use kernel::verification::verify::verify_export;
use serde::Deserialize;
use serde_json::{Value, json};

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

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

/// What the crate exported of a case, from the rows that it has selected: names capitalised, no attestation.
fn published_export(case: &Case) -> Value {
    let selected = &case.published;
    let has = |id: &TurnId| selected.turn_ids.contains(id);
    // In no order.
    let turns = case.turns.iter().rev().filter(|row| has(&row.id)).map(|row| {
        let turn = Turn::from(row);
        json!({
            "id": turn.id, "session_id": turn.session_id, "role": capitalised(turn.role.name()),
            "phase": capitalised(turn.phase.name()), "salience": turn.salience,
            "trajectory_depth": turn.trajectory_depth, "trajectory_sibling_order": 0,
            "trajectory_homogeneity": 0.5, "trajectory_temporal": 0.5, "trajectory_complexity": null,
            "created_at": turn.created_at, "content_hash": turn.content_hash,
        })
    });
    let edges = graph(case).edges.into_iter().filter(|edge| has(&edge.parent) && has(&edge.child));
    let edges = edges.map(|edge| {
        let name = capitalised(edge.edge_type.name());
        json!({"parent": edge.parent, "child": edge.child, "edge_type": name})
    });
    json!({
        "anchor_turn_id": case.anchor, "turns": turns.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>(),
        "policy_id": "slice_policy_v1", "policy_params_hash": selected.policy_params_hash,
        "schema_version": "1.0.0", "slice_id": selected.slice_id,
        "graph_snapshot_hash": selected.graph_snapshot_hash, "admissibility_token": "0".repeat(32),
    })
}

/// The answer of the service for the same slice, its turns being ids.
fn answer(case: &Case) -> Value {
    let selected = &case.published;
    let mut slice = published_export(case);
    let slice_keys = slice.as_object_mut().unwrap();
    slice_keys.retain(|key, _| key != "turns" && key != "edges");
    slice_keys.insert("turn_ids".to_owned(), json!(selected.turn_ids));
    slice_keys.insert("edge_count".to_owned(), json!(selected.edge_count));
    json!({"slice": slice, "policy_ref": {"policy_id": "slice_policy_v1", "params_hash": ""}})
}

fn from_export(text: &str) -> ParsedExport {
    match Published::parse(text, &|| {}).unwrap() {
        Published::Export(export) => export,
        Published::Body(_) => panic!("an export is read as an answer"),
    }
}

#[test]
fn published_exports_are_rebuilt_and_differ_by_ties_alone() {
    let ring = graph_kernel_tests::key_ring::TestRing::new(&[1; 32]);
    let mut tied = 0;
    for case in cases() {
        let name = format!("case {}", case.case);
        let published = from_export(&published_export(&case).to_string());
        let canonical = canonical_text(&published, &|| {});
        let read = ParsedExport::parse(&canonical, &|| {}).unwrap();
        assert_eq!(canonical_text(&read, &|| {}), canonical, "{name}");
        assert_eq!(verify_export(&canonical, &ring).reason(), "unattested", "{name}");
        assert!(mermaid(&published, &|| {}).contains(&published.slice_id), "{name}");

        // With the rows, the answer of the service is the same export: its slice_id computes.
        let Published::Body(body) = Published::parse(&answer(&case).to_string(), &|| {}).unwrap()
        else {
            panic!("{name}: an answer is read as an export")
        };
        let mut graph = graph(&case);
        graph.turns.retain(|turn| body.names(turn.id));
        assert_eq!(body.turn_ids().len(), graph.turns.len(), "{name}");
        let rebuilt = body.with(graph.turns, graph.edges, &|| {}).unwrap();
        assert_eq!(canonical_text(&rebuilt, &|| {}), canonical, "{name}");

        let policy: SlicePolicy = case.policy.to_string().parse().unwrap();
        let mut store = MemoryStore::new(self::graph(&case));
        let slice = slice(&mut store, &policy, case.anchor).unwrap();
        let now = Export::new(&slice, &policy, &|| {}).to_json();
        let now = ParsedExport::parse(&now, &|| {}).unwrap();
        let mut found = Vec::new();
        export_differences(&published, &now, &|| {}, &mut |difference| found.push(difference));
        // Where two turns have one priority, the crate takes the higher id: as many turns, others of them.
        let gone = found.iter().filter(|found| matches!(found, Difference::TurnGone(_))).count();
        let new = found.iter().filter(|found| matches!(found, Difference::TurnNew(_))).count();
        let changed = found.iter().any(|found| matches!(found, Difference::TurnField { .. }));
        assert!(!changed, "{name}: {found:?}");
        if case.tie_sensitive {
            assert!(gone > 0 && gone == new, "{name}: {found:?}");
            tied += 1;
        } else {
            assert!(found.is_empty() && published.slice_id == now.slice_id, "{name}: {found:?}");
        }
    }
    assert_eq!(tied, 40);
}

#[test]
fn the_locked_schema_becomes_an_export() {
    for case in cases() {
        let mut locked = published_export(&case);
        for key in ["graph_snapshot_hash", "admissibility_token"] {
            locked.as_object_mut().unwrap().remove(key);
        }
        for turn in locked["turns"].as_array_mut().unwrap() {
            turn.as_object_mut().unwrap().remove("content_hash");
        }
        let export = from_export(&locked.to_string());
        assert!(export.turns.iter().all(|turn| turn.content_hash.is_none()));
        assert_eq!(export.turns.len(), case.published.turn_ids.len());
        let canonical = canonical_text(&export, &|| {});
        let read = ParsedExport::parse(&canonical, &|| {}).unwrap();
        assert!(read.is_ordered() && read.admissibility_token.is_none());
        if case.turns.iter().all(|row| row.content_hash.is_none()) {
            assert_eq!(read.graph_snapshot_hash, Some(case.published.graph_snapshot_hash));
        }
    }
}

#[test]
fn other_documents_are_not_published_ones() {
    let case = &cases()[1];
    let (export, answer) = (published_export(case), answer(case));
    let refused = |document: &Value| match Published::parse(&document.to_string(), &|| {}) {
        Ok(_) => panic!("{document}"),
        Err(why) => why,
    };
    let with = |path: &str, value: Value| {
        let mut changed = export.clone();
        *changed.pointer_mut(path).unwrap() = value;
        changed
    };
    assert!(refused(&json!([])).contains("must be an object"));
    assert!(refused(&json!({"slices": [answer["slice"]]})).contains("give one of them"));
    assert!(refused(&json!({"slice": 1})).contains("no slice"));
    assert!(refused(&json!({"slice": export, "extra": 1})).contains("\"extra\""));
    assert!(refused(&json!({"slice_id": "0123456789abcdef"})).contains("export.turns is missing"));
    assert!(refused(&with("/turns/0/role", json!("Robot"))).contains("turn.role"));
    assert!(
        refused(&with("/anchor_turn_id", json!(TurnId::nil()))).contains("not among the turns")
    );
    let twice = json!([export["turns"][0], export["turns"][0]]);
    assert!(refused(&with("/turns", twice)).contains("ascending"));
    let mut attested = export.clone();
    attested["attestation"] = json!(null);
    from_export(&attested.to_string());

    let body = |answer: &Value| match Published::parse(&answer.to_string(), &|| {}).unwrap() {
        Published::Body(body) => body,
        Published::Export(_) => panic!("an answer is read as an export"),
    };
    let Graph { turns, edges } = graph(case);
    let of_slice = |body: &kernel::export::published::PublishedBody| -> Vec<Turn> {
        turns.iter().filter(|turn| body.names(turn.id)).cloned().collect()
    };
    let named = of_slice(&body(&answer));
    assert!(body(&answer).with(named.clone(), edges.clone(), &|| {}).is_ok());
    let missing = named[1..].to_vec();
    assert!(body(&answer).with(missing, edges, &|| {}).unwrap_err().contains("1 of its"));
    let why = body(&answer).with(named, Vec::new(), &|| {}).unwrap_err();
    assert_eq!(why.contains("other edges"), case.published.edge_count > 0, "{why}");
}
