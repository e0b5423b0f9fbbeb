//! Published values through the server: what SQL answers is what an independent program computed
//! from the specification's text, and what the kernel exports, byte for byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::database::{Database, load_graph};
use crate::common::export::{read_export, slice_text, without_claims};
use crate::common::shape::{Ids, Shape};
use crate::common::small_graphs::{SmallCase, store, taken};
use graph_kernel_tests::data::{read_graph, read_json_lines};
use graph_kernel_tests::memory_store::MemoryStore;
use graph_kernel_tests::messages::{MessageCase, message_cases};
use graph_kernel_tests::shared::shared_or_skip;
use graph_kernel_tests::vectors::RecordedSlice;
use kernel::export::document::Export;
use kernel::graph::content::sha256_hex;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use postgres::Client;
use serde_json::Value;

/// A file that the golden tests have committed.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data").join(name)
}

/// A slice taken again by the server.
fn retaken(recorded: &RecordedSlice, client: &mut Client) -> RecordedSlice {
    let (anchor, policy) = (recorded.anchor, &recorded.policy);
    let export = read_export(&slice_text(client, anchor, &policy.to_string()));
    let ids = selection_order(client, anchor, policy, &export.slice_id);
    RecordedSlice {
        data: recorded.data.clone(),
        policy_name: recorded.policy_name.clone(),
        policy: policy.clone(),
        anchor: export.anchor_turn_id,
        policy_params_hash: export.policy_params_hash,
        turns: export.turns.len(),
        edges: export.edges.len(),
        slice_id: export.slice_id,
        selection_order_sha256: sha256_hex(ids.join("\n").as_bytes()),
    }
}

/// The turns of `graph_slice_turns` as they were selected, each row naming this slice.
fn selection_order(
    client: &mut Client,
    anchor: TurnId,
    policy: &Value,
    slice_id: &str,
) -> Vec<String> {
    let rows = client
        .query(
            "SELECT turn_id::text, selection_order, slice_id
             FROM graph_slice_turns($1, $2::text::slice_policy) ORDER BY selection_order",
            &[&anchor, &policy.to_string()],
        )
        .unwrap();
    let mut ids = Vec::new();
    for (position, row) in (0_i32..).zip(rows) {
        assert_eq!(row.get::<_, i32>("selection_order"), position, "{anchor}");
        assert_eq!(row.get::<_, &str>("slice_id"), slice_id, "{anchor}");
        ids.push(row.get("turn_id"));
    }
    ids
}

fn recorded_slices(name: &str, file: &Path, expected: usize) -> Vec<RecordedSlice> {
    let mut slices: Vec<RecordedSlice> = read_json_lines(file);
    slices.retain(|slice| slice.data == name);
    assert_eq!(slices.len(), expected, "recorded slices of {name}");
    slices
}

/// Takes the slices of one graph again, some of them in tables of other shapes too; `expected` is how many there are.
fn retake(name: &str, folder: &Path, slices: &Path, expected: usize) {
    let slices = recorded_slices(name, slices, expected);
    let database = Database::with_loose_tables(&format!("golden_{name}"));
    let mut client = database.connect();
    load_graph(&mut client, folder);
    for slice in &slices {
        assert_eq!(retaken(slice, &mut client), *slice);
    }
    // The same graph in an application's tables.
    for ids in [Ids::Uuid, Ids::Text] {
        let shape = Shape { ids, parents: true, expressions: ids == Ids::Text, partitions: false };
        shape.bind(&mut client);
        client.batch_execute("ANALYZE").unwrap();
        for slice in slices.iter().step_by(4) {
            assert_eq!(retaken(slice, &mut client), *slice, "{shape:?}");
        }
    }
}

fn retake_shared(test: &str, name: &str) {
    if let Some(shared) = shared_or_skip(test) {
        let slices = shared.join("vectors/slices.jsonl");
        retake(name, &shared.join("data").join(name), &slices, 270);
    }
}

#[test]
fn slices_of_the_hard_graph_are_the_recorded_ones() {
    retake("hard", &data("hard"), &data("hard/slices.jsonl.gz"), 420);
}

/// Citus is not here: a list that says that it reads the tables is enough for its statements and its status.
#[test]
fn statements_for_tables_that_citus_reads_select_what_is_recorded() {
    let slices = recorded_slices("hard", &data("hard/slices.jsonl.gz"), 420);
    let database = Database::with_loose_tables("golden_distributed");
    load_graph(&mut database.connect(), &data("hard"));
    database
        .connect()
        .batch_execute(
            "SET allow_system_table_mods = on;
             CREATE TABLE pg_catalog.pg_dist_partition AS
                 SELECT oid::regclass AS logicalrelid FROM pg_catalog.pg_class WHERE relname = 'memory_turns';
             UPDATE pg_catalog.pg_extension SET extname = 'citus' WHERE extname = 'plpgsql';
             ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_partition",
        )
        .unwrap();
    let mut client = database.connect();
    for slice in slices.iter().step_by(30) {
        let export = slice_text(&mut client, slice.anchor, &slice.policy.to_string());
        assert!(export.contains(r#""status":"distributed""#), "{export}");
        assert_eq!(retaken(slice, &mut client), *slice);
    }
}

#[test]
fn slices_of_agent_sessions_are_the_recorded_ones() {
    retake_shared("slices_of_agent_sessions_are_the_recorded_ones (server)", "agent_sessions");
}

#[test]
fn slices_of_oasst1_are_the_recorded_ones() {
    retake_shared("slices_of_oasst1_are_the_recorded_ones (server)", "oasst1");
}

#[test]
fn exports_of_the_hard_graph_are_the_kernels_bytes() {
    let mut anchors: BTreeMap<String, Vec<TurnId>> = BTreeMap::new();
    for slice in recorded_slices("hard", &data("hard/slices.jsonl.gz"), 420) {
        let of_policy = anchors.entry(slice.policy.to_string()).or_default();
        of_policy.push(slice.anchor);
    }
    let database = Database::with_loose_tables("golden_bytes");
    let mut client = database.connect();
    load_graph(&mut client, &data("hard"));
    let mut store = MemoryStore::new(read_graph(&data("hard")));
    for (policy, anchors) in anchors {
        let batch = batch_texts(&mut client, &anchors, &policy);
        assert_eq!(batch.len(), anchors.len());
        for (anchor, in_batch) in anchors.into_iter().zip(batch) {
            let single = slice_text(&mut client, anchor, &policy);
            let kernel = kernel_text(&mut store, anchor, &policy);
            assert_eq!(without_claims(&single), without_claims(&kernel));
            assert_eq!(in_batch, (anchor, single));
        }
    }
}

/// What `graph_slices` answers, in its order.
fn batch_texts(client: &mut Client, anchors: &[TurnId], policy: &str) -> Vec<(TurnId, String)> {
    let rows = client
        .query(
            "SELECT anchor_turn_id, slice::text FROM graph_slices($1, $2::text::slice_policy)",
            &[&anchors, &policy],
        )
        .unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn kernel_text(store: &mut MemoryStore, anchor: TurnId, policy: &str) -> String {
    let policy: SlicePolicy = policy.parse().unwrap();
    let slice = kernel::slicing::slicer::slice(store, &policy, anchor).unwrap();
    Export::new(&slice, &policy, &|| {}).to_json()
}

#[test]
fn small_graphs_are_sliced_as_the_specification_asks() {
    let cases: Vec<SmallCase> = read_json_lines(&data("small-graphs.jsonl.gz"));
    assert_eq!(cases.len(), 200);
    let database = Database::with_loose_tables("golden_small");
    let mut client = database.connect();
    for case in cases {
        client.batch_execute("TRUNCATE public.memory_turns, public.memory_turn_edges").unwrap();
        store(&case, &mut client);
        client.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
        assert_eq!(taken(&case, &mut client), case.spec_tiebreak, "case {}", case.case);
        // Making other tables takes most of the time.
        if !case.case.is_multiple_of(2) {
            continue;
        }
        let shape = Shape::numbered(case.case);
        shape.bind(&mut client);
        assert_eq!(taken(&case, &mut client), case.spec_tiebreak, "case {} {shape:?}", case.case);
    }
}

#[test]
fn each_form_of_messages_has_its_text_and_its_role() {
    let database = Database::with_tables("golden_messages");
    let mut client = database.connect();
    let cases = message_cases();
    assert!(cases.len() > 40, "{} cases", cases.len());
    for MessageCase { stored, text, role, .. } in &cases {
        let rows = client
            .query(
                "SELECT graph_message_text(m) AS text, graph_message_role(m) AS role
                   FROM (VALUES ($1::text), ($1::text::json::text), ($1::text::jsonb::text)) AS stored (m)",
                &[stored],
            )
            .unwrap();
        assert_eq!(rows.len(), 3);
        for row in rows {
            assert_eq!(row.get::<_, Option<String>>("text"), *text, "{stored}");
            assert_eq!(row.get::<_, Option<String>>("role"), *role, "{stored}");
        }
    }
}
