//! Values printed by the published crate, which `data/reference.json` lists.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use graph_kernel_tests::data::{Graph, read_text};
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::export::document::Export;
use kernel::graph::SCHEMA_VERSION;
use kernel::graph::content::{content_hash, normalize};
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::facts::TurnFacts;
use kernel::graph::turn::{Phase, Role, StoredTurn, Turn, TurnId};
use kernel::json::canonical::{json_text, xxh64_hex};
use kernel::policy::SlicePolicy;
use kernel::policy::position::Position;
use kernel::policy::registry::{PolicyRef, registry_fingerprint};
use kernel::slicing::slicer::slice;
use serde::Deserialize;

use crate::data;

#[derive(Deserialize)]
struct Reference {
    xxh64: BTreeMap<String, String>,
    schema_version: String,
    policy_version: String,
    policies: BTreeMap<String, Policy>,
    registry: BTreeMap<String, String>,
    service_slice: String,
    minimal_policy: MinimalPolicy,
    default_phase_weights: PhaseWeights,
    quantization: Vec<(f64, i64)>,
    enums: BTreeMap<String, Vec<String>>,
    binary32: Vec<(String, String)>,
    priorities: Vec<Priority>,
    five_turns: FiveTurns,
    slices: Vec<FiveTurnSlice>,
    single_turn: SingleTurn,
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct Policy {
    canonical: String,
    quantized: String,
    params_hash: String,
    canonical_hash: String,
}

#[derive(Deserialize)]
struct MinimalPolicy {
    params_hash: String,
}

#[derive(Deserialize)]
struct PhaseWeights {
    canonical: String,
    hash: String,
}

#[derive(Deserialize)]
struct Priority {
    turn: usize,
    distance: u32,
    priority: String,
    bits: String,
}

#[derive(Deserialize)]
struct FiveTurns {
    turns: Vec<Row>,
    edges: Vec<EdgeRow>,
}

#[derive(Deserialize)]
struct Row {
    id: TurnId,
    session_id: String,
    role: String,
    phase: String,
    salience: f64,
    trajectory_depth: i64,
    trajectory_sibling_order: i64,
    trajectory_homogeneity: f64,
    trajectory_temporal: f64,
    trajectory_complexity: f64,
    created_at: i64,
    content_hash: Option<String>,
}

#[derive(Deserialize)]
struct EdgeRow {
    parent: TurnId,
    child: TurnId,
    edge_type: String,
}

#[derive(Deserialize)]
struct FiveTurnSlice {
    name: String,
    policy: String,
    anchor: u128,
    content_hashes: bool,
    slice_id: String,
    graph_snapshot_hash: String,
    turns: Vec<u128>,
    edges: usize,
    export: Option<String>,
}

#[derive(Deserialize)]
struct SingleTurn {
    export: String,
}

#[derive(Deserialize)]
struct Content {
    text: String,
    normalized: String,
    sha256: String,
}

static REFERENCE: LazyLock<Reference> =
    LazyLock::new(|| serde_json::from_str(&read_text(&data("reference.json"))).unwrap());

impl From<&Row> for Turn {
    fn from(row: &Row) -> Self {
        StoredTurn {
            id: row.id,
            session_id: Some(&row.session_id),
            role: Some(&row.role),
            phase: Some(&row.phase),
            salience: Some(row.salience),
            trajectory_depth: Some(row.trajectory_depth),
            trajectory_sibling_order: Some(row.trajectory_sibling_order),
            trajectory_homogeneity: Some(row.trajectory_homogeneity),
            trajectory_temporal: Some(row.trajectory_temporal),
            trajectory_complexity: Some(row.trajectory_complexity),
            created_at: Some(row.created_at),
            content_hash: row.content_hash.as_deref(),
        }
        .into()
    }
}

impl FiveTurns {
    fn graph(&self, content_hashes: bool) -> Graph {
        let mut turns: Vec<Turn> = self.turns.iter().map(Turn::from).collect();
        if !content_hashes {
            turns.iter_mut().for_each(|turn| turn.content_hash = None);
        }
        let edge = |row: &EdgeRow| Edge {
            parent: row.parent,
            child: row.child,
            edge_type: EdgeType::from_stored(Some(&row.edge_type)),
        };
        Graph { turns, edges: self.edges.iter().map(edge).collect() }
    }
}

/// The five turns of the published values.
pub fn five_turns() -> Graph {
    REFERENCE.five_turns.graph(true)
}

/// The export of the crate up to the token, with its capitalised names in lower case.
fn without_token(export: &str) -> String {
    let (slice, _) = export.split_once(r#","admissibility_token""#).unwrap();
    let names = Role::ALL.iter().map(|role| ("role", role.name()));
    let names = names.chain(Phase::ALL.iter().map(|phase| ("phase", phase.name())));
    let names = names.chain(EdgeType::ALL.iter().map(|kind| ("edge_type", kind.name())));
    names.fold(slice.to_owned(), |text, (key, name)| {
        let capitalised = name[..1].to_uppercase() + &name[1..];
        let quoted = |name: &str| format!(r#""{key}":"{name}""#);
        text.replace(&quoted(&capitalised), &quoted(name))
    })
}

fn assert_exports_as(export: &Export<'_>, published: &str) {
    let json = export.to_json();
    assert_eq!(without_token(&json), without_token(published));
}

#[test]
fn xxh64_is_the_published_function() {
    assert_eq!(REFERENCE.xxh64.len(), 2);
    for (text, hash) in &REFERENCE.xxh64 {
        assert_eq!(xxh64_hex(text.as_bytes()), *hash, "{text:?}");
    }
}

#[test]
fn versions_are_the_published_ones() {
    assert_eq!(SCHEMA_VERSION, REFERENCE.schema_version);
    assert_eq!(SlicePolicy::default().id(), REFERENCE.policy_version);
}

#[test]
fn presets_have_the_published_texts_and_hashes() {
    assert_eq!(REFERENCE.policies.len(), SlicePolicy::COUNTED_PRESETS.len());
    for (name, expected) in &REFERENCE.policies {
        let policy = SlicePolicy::preset(name).unwrap();
        assert_eq!(policy.canonical_text(), expected.canonical);
        assert_eq!(policy.quantized_text(), expected.quantized);
        assert_eq!(policy.params_hash(), expected.params_hash);
        let hash = xxh64_hex(policy.canonical_text().as_bytes());
        assert_eq!(hash, expected.canonical_hash);
        assert_eq!(expected.canonical.parse(), Ok(policy));
    }
}

#[test]
fn registries_have_the_published_fingerprints() {
    assert_eq!(REFERENCE.registry.len(), 3);
    let fingerprint = |hashes: &[String]| {
        let policy_id = SlicePolicy::default().id();
        registry_fingerprint(hashes.iter().map(|params_hash| PolicyRef { policy_id, params_hash }))
    };
    for (held, expected) in &REFERENCE.registry {
        let presets = held.split('+').filter_map(SlicePolicy::preset);
        let mut hashes: Vec<String> = presets.map(|policy| policy.params_hash()).collect();
        assert_eq!(fingerprint(&hashes), *expected, "{held}");
        // In any order, however often.
        hashes.reverse();
        hashes.extend_from_within(..);
        assert_eq!(fingerprint(&hashes), *expected, "{held}");
    }
}

#[test]
fn the_minimal_policy_has_the_published_hash() {
    // `minimal(10, 3, nosib)`: no siblings in both keys, the rest default.
    let text =
        r#"{"max_nodes":10,"max_radius":3,"include_siblings":false,"max_siblings_per_node":0}"#;
    let minimal: SlicePolicy = text.parse().unwrap();
    assert_eq!(minimal.params_hash(), REFERENCE.minimal_policy.params_hash);
}

#[test]
fn default_phase_weights_have_the_published_text_and_hash() {
    let expected = &REFERENCE.default_phase_weights;
    let text = SlicePolicy::default().canonical_text();
    assert!(text.contains(&format!(r#""phase_weights":{},"#, expected.canonical)));
    assert_eq!(xxh64_hex(expected.canonical.as_bytes()), expected.hash);
}

#[test]
fn parameters_are_quantised_as_published() {
    for (value, quantised) in &REFERENCE.quantization {
        let text = format!(r#"{{"phase_weights":{{"synthesis":{value:?}}}}}"#);
        let policy: SlicePolicy = text.parse().unwrap();
        let expected = format!(r#""synthesis":{quantised},"#);
        assert!(policy.quantized_text().contains(&expected), "{value:?}");
    }
}

#[test]
fn names_are_the_published_ones_in_their_order() {
    let lower = |name: &str| -> Vec<String> {
        REFERENCE.enums[name].iter().map(|n| n.to_lowercase()).collect()
    };
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.name()).collect();
    let phases: Vec<&str> = Phase::ALL.iter().map(|phase| phase.name()).collect();
    let kinds: Vec<&str> = EdgeType::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(roles, lower("Role"));
    assert_eq!(phases, lower("Phase"));
    assert_eq!(kinds, lower("EdgeType"));
    let in_slice_ids = EdgeType::ALL.iter().map(|kind| kind.fingerprint_name());
    assert_eq!(in_slice_ids.collect::<Vec<_>>(), REFERENCE.enums["EdgeType"]);
    assert!(EdgeType::ALL.is_sorted());
}

#[test]
fn binary32_numbers_have_the_published_text() {
    for (number, text) in &REFERENCE.binary32 {
        let value: f32 = number.parse().unwrap();
        assert_eq!(json_text(&value), *text, "{number}");
    }
}

#[test]
fn priorities_have_the_published_bits() {
    let policy = SlicePolicy::default();
    let turns = REFERENCE.five_turns.graph(true).turns;
    assert_eq!(REFERENCE.priorities.len(), 20);
    for expected in &REFERENCE.priorities {
        let turn = &turns[expected.turn - 1];
        let facts = TurnFacts::scoring(turn.phase, turn.salience);
        let found = policy.priority(&facts, Position::at(expected.distance));
        assert_eq!(format!("{:#010x}", found.to_bits()), expected.bits);
        assert_eq!(found.to_string(), expected.priority);
    }
}

#[test]
fn five_turn_slices_are_the_published_ones() {
    assert_eq!(REFERENCE.slices.len(), 4);
    for expected in &REFERENCE.slices {
        let policy = SlicePolicy::preset(&expected.policy).unwrap();
        let graph = REFERENCE.five_turns.graph(expected.content_hashes);
        let anchor = TurnId::from_u128(expected.anchor);
        let slice = slice(&mut MemoryStore::new(graph), &policy, anchor).unwrap();
        let export = Export::new(&slice, &policy, &|| {});
        let ids: Vec<u128> = export.turns.iter().map(|turn| turn.id.as_u128()).collect();
        assert_eq!(ids, expected.turns, "{}", expected.name);
        assert_eq!(export.edges.len(), expected.edges, "{}", expected.name);
        assert_eq!(export.slice_id, expected.slice_id, "{}", expected.name);
        let snapshot = &export.graph_snapshot_hash;
        assert_eq!(*snapshot, expected.graph_snapshot_hash, "{}", expected.name);
        if let Some(published) = &expected.export {
            assert_exports_as(&export, published);
        }
    }
}

#[test]
fn a_turn_alone_is_sliced_as_published() {
    #[derive(Deserialize)]
    struct Turns {
        turns: Vec<Row>,
    }
    let published = &REFERENCE.single_turn.export;
    let Turns { turns } = serde_json::from_str(published).unwrap();
    let graph = Graph { turns: turns.iter().map(Turn::from).collect(), edges: Vec::new() };
    let policy = SlicePolicy::default();
    let slice = slice(&mut MemoryStore::new(graph), &policy, turns[0].id).unwrap();
    assert_exports_as(&Export::new(&slice, &policy, &|| {}), published);
}

#[test]
fn a_summary_is_the_published_services_slice_with_edges() {
    // Of the service's turns only the ids are known: 1 ─reply→ 2 ─reply→ 4.
    let id = TurnId::from_u128;
    let turn = |n| Turn::from(StoredTurn { id: id(n), ..StoredTurn::default() });
    let turns = [1, 2, 4].map(turn).to_vec();
    let reply =
        |(parent, child)| Edge { parent: id(parent), child: id(child), edge_type: EdgeType::Reply };
    let graph = Graph { turns, edges: [(1, 2), (2, 4)].map(reply).to_vec() };
    let policy: SlicePolicy = r#"{"max_nodes":3,"max_radius":2}"#.parse().unwrap();
    let slice = slice(&mut MemoryStore::new(graph), &policy, id(1)).unwrap();
    let summary = Export::new(&slice, &policy, &|| {}).summary_json();
    let edges = format!(r#""edges":{},"#, json_text(&slice.edges));
    assert!(summary.contains(&edges), "{summary}");
    let selection =
        |text: &str| text.split_once(r#","graph_snapshot_hash":"#).unwrap().0.to_owned();
    assert_eq!(selection(&summary.replace(&edges, "")), selection(&REFERENCE.service_slice));
}

#[test]
fn contents_have_the_published_hashes() {
    assert_eq!(REFERENCE.content.len(), 19);
    for expected in &REFERENCE.content {
        let text = &expected.text;
        assert_eq!(normalize(text, &|| {}), expected.normalized, "{text:?}");
        assert_eq!(content_hash(text, &|| {}), expected.sha256, "{text:?}");
    }
}
