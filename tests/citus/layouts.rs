//! The same bytes as of tables on one server.

use graph_kernel_tests::data::read_json_lines;
use graph_kernel_tests::vectors::RecordedSlice;
use kernel::graph::content::sha256_hex;
use kernel::graph::turn::TurnId;
use postgres::Client;

use crate::cluster::{Cluster, LAYOUTS, data, load};
use crate::common::export::{read_export, slice_text, without_claims};
use crate::common::small_graphs::{SmallCase, store, taken};
use crate::common::small_graphs_v2;

/// What is asked of each graph, of `$1`, an anchor, and `$2`, some anchors. Each statement has a column of text.
const CALLS: [&str; 37] = [
    "SELECT s.turn_id || ' ' || s.selection_order || ' ' || s.distance FROM graph_slice_turns($1) AS s",
    "SELECT s.turn_id || ' ' || s.selection_order || ' ' || s.priority FROM graph_slice_turns($1, 'broad') AS s",
    "SELECT s.turn_id || ' ' || s.selection_order || ' ' || s.priority FROM graph_slice_turns($1, 'chat') AS s",
    "SELECT s.turn_id || ' ' || s.selection_order FROM graph_slice_turns($1, 'lineage') AS s",
    "SELECT e::text FROM graph_slice_edges($1) AS e",
    "SELECT e::text FROM graph_slice_explain($1) AS e",
    "SELECT s::text FROM graph_slice_stats($1) AS s",
    "SELECT graph_slice_draw($1)",
    "SELECT m::text FROM graph_messages($1) AS m",
    "SELECT a.anchor || ' ' || a.turn_id FROM (SELECT $1 AS anchor, (graph_slice_turns($1, 'focused')).turn_id) AS a",
    "SELECT a::text FROM graph_atlas($2) AS a",
    "SELECT o::text FROM graph_overlap($2) AS o",
    "SELECT i::text FROM graph_influence($2) AS i",
    "SELECT a::text FROM graph_anchors_recent(20) AS a",
    "SELECT a.turn_id || ' ' || a.stored FROM graph_content_audit(20) AS a",
    "SELECT s::text FROM graph_snapshot() AS s",
    "SELECT c.check_name || ' ' || c.ok || ' ' || c.count FROM graph_check() AS c
     WHERE c.count IS NOT NULL AND (c.check_name <> 'differing_edges' OR NOT c.ok)",
    "SELECT r.turn_id || ' ' || r.similarity FROM graph_search_slice('{1, 2, 3}', $1) AS r",
    "SELECT r.turn_id || ' ' || r.similarity FROM graph_search('{1, 2, 3}'::real[], limit_count => 10) AS r",
    "SELECT w::text FROM graph_why($1, ($2)[3]) AS w",
    "SELECT s::text FROM graph_kernel.list_sessions() AS s",
    "SELECT s::text FROM graph_kernel.list_sessions(3, 1, 0) AS s",
    "SELECT s::text FROM graph_kernel.list_sessions(2, name_end => '1') AS s",
    "SELECT t::text FROM graph_kernel.list_turns(limit_count => 20, skip_count => 3) AS t",
    "SELECT t::text FROM graph_kernel.list_sessions(2) AS s, graph_kernel.list_turns(s.session_id) AS t",
    "SELECT t::text FROM graph_kernel.list_turns(has_text => 'E', limit_count => 20, skip_count => 3) AS t",
    "SELECT t::text FROM graph_kernel.list_turns(only_ends => true, limit_count => 20, skip_count => 3) AS t",
    "SELECT t::text FROM graph_kernel.list_turns(has_text => 'e', only_ends => true, skip_count => 1) AS t",
    "SELECT e::text FROM graph_kernel.list_edges($2) AS e",
    "SELECT b.anchor_turn_id || ' ' || split_part(b.slice::text, ',\"admissibility_token\"', 1)
     FROM graph_slices($2, 'focused') AS b",
    "SELECT concat_ws(' ', r.status, r.field) FROM graph_replay(graph_slice($1)) AS r",
    "SELECT (graph_messages_record($1) -> 'messages')::text",
    "SELECT concat_ws(' ', r.n, r.turn_id, r.part, r.distance, r.score, r.seed) FROM graph_recall('{1, 2, 3}') AS r",
    "SELECT concat_ws(' ', r.n, r.turn_id, r.part, r.tokens, r.score, r.seed)
     FROM graph_recall('{3, 1, 2}', anchor => $1, filter => '{\"roles\": [\"user\"]}') AS r",
    "SELECT a::text FROM graph_anchor(query_embedding => '{1, 2, 3}') AS a",
    "SELECT d::text FROM graph_slice_diff(graph_slice(($2)[1]), graph_slice(($2)[2])) AS d",
    "SELECT graph_export_draw(graph_slice($1))",
];

fn answers(
    client: &mut Client,
    anchor: TurnId,
    anchors: &[TurnId],
) -> Vec<Result<Vec<String>, String>> {
    let ask = |call: &&str| {
        let anchors: Vec<TurnId> = anchors.to_vec();
        let call = call.replace("$1", &format!("'{anchor}'::uuid")).replace(
            "$2",
            &format!(
                "'{{{}}}'::uuid[]",
                anchors.iter().map(TurnId::to_string).collect::<Vec<_>>().join(",")
            ),
        );
        let rows = client.query(&call, &[]).map_err(|error| {
            let error = error.as_db_error().expect("an error of the server").clone();
            format!("{} {}", error.code().code(), error.message())
        })?;
        Ok(rows.iter().map(|row| row.get::<_, Option<String>>(0).unwrap_or_default()).collect())
    };
    CALLS.iter().map(ask).collect()
}

#[test]
fn every_call_answers_as_on_one_server() {
    let cluster = Cluster::new("citus_calls");
    let mut client = cluster.database.connect();
    load(&mut client, &data("hard"), &LAYOUTS);
    let anchors: Vec<TurnId> = client
        .query("SELECT id FROM memory_turns ORDER BY md5(id::text) LIMIT 6", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let expected = answers(&mut client, anchors[0], &anchors);
    for (call, expected) in CALLS.iter().zip(&expected) {
        assert!(expected.is_ok(), "{call}: {expected:?}");
    }
    for layout in &LAYOUTS {
        let mut reading = cluster.reading(layout.name);
        let given = answers(&mut reading, anchors[0], &anchors);
        for ((call, expected), given) in CALLS.iter().zip(&expected).zip(given) {
            assert_eq!(given, *expected, "{}: {call}", layout.name);
        }
    }
}

#[test]
fn slices_are_the_recorded_ones() {
    let cluster = Cluster::new("citus_recorded");
    let mut client = cluster.database.connect();
    load(&mut client, &data("hard"), &LAYOUTS);
    let recorded: Vec<RecordedSlice> = read_json_lines(&data("hard/slices.jsonl.gz"));
    let recorded = recorded.iter().filter(|slice| slice.data == "hard");
    for layout in &LAYOUTS {
        let mut reading = cluster.reading(layout.name);
        // More by the layout of large graphs than by the others.
        let every = if layout.name == "by_id" { 10 } else { 40 };
        for slice in recorded.clone().step_by(every) {
            let policy = slice.policy.to_string();
            let text = slice_text(&mut reading, slice.anchor, &policy);
            assert_eq!(read_export(&text).slice_id, slice.slice_id, "{} {policy}", layout.name);
            let own = slice_text(&mut client, slice.anchor, &policy);
            assert_eq!(without_claims(&text), without_claims(&own));
            let order = "SELECT string_agg(turn_id::text, E'\\n' ORDER BY selection_order)
                         FROM graph_slice_turns($1, $2::text::slice_policy)";
            let order: String = reading.query_one(order, &[&slice.anchor, &policy]).unwrap().get(0);
            assert_eq!(sha256_hex(order.as_bytes()), slice.selection_order_sha256);
        }
    }
}

/// Each is there in one transaction alone: what is written elsewhere is given up, not committed.
#[test]
fn small_graphs_are_sliced_as_the_specification_asks() {
    let cases: Vec<SmallCase> = read_json_lines(&data("small-graphs.jsonl.gz"));
    assert_eq!(cases.len(), 200);
    let cluster = Cluster::new("citus_small");
    let mut client = cluster.database.connect();
    let layouts = &LAYOUTS[..3];
    layouts.iter().for_each(|layout| layout.copy(&mut client));
    for case in cases {
        for layout in layouts {
            let begin = format!("BEGIN; SET LOCAL graph_kernel.graph = '{}'", layout.name);
            client.batch_execute(&begin).unwrap();
            store(&case, &mut client);
            layout.fill(&mut client);
            client
                .batch_execute("DELETE FROM memory_turn_edges; DELETE FROM memory_turns")
                .unwrap();
            let taken = taken(&case, &mut client);
            assert_eq!(taken, case.spec_tiebreak, "case {} {}", case.case, layout.name);
            client.batch_execute("ROLLBACK").unwrap();
        }
    }
}

/// By SlicePolicy v2, each over one of the layouts in turn.
#[test]
fn small_graphs_are_sliced_as_the_text_of_version_2_asks() {
    let cases: Vec<small_graphs_v2::Case> = read_json_lines(&data("small-graphs-v2.jsonl.gz"));
    assert_eq!(cases.len(), 800);
    let cluster = Cluster::new("citus_small_v2");
    let mut client = cluster.database.connect();
    let layouts = &LAYOUTS[..3];
    layouts.iter().for_each(|layout| layout.copy(&mut client));
    for (case, layout) in cases.iter().zip(layouts.iter().cycle()) {
        let begin = format!("BEGIN; SET LOCAL graph_kernel.graph = '{}'", layout.name);
        client.batch_execute(&begin).unwrap();
        small_graphs_v2::store(case, &mut client);
        layout.fill(&mut client);
        client.batch_execute("DELETE FROM memory_turn_edges; DELETE FROM memory_turns").unwrap();
        small_graphs_v2::check(case, &mut client, layout.name);
        client.batch_execute("ROLLBACK").unwrap();
    }
}
