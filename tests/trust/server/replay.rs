//! A slice taken again.

use postgres::Client;

use crate::graph::{connect_as, database, slice, text};

/// Status, field, was, now of each row, NULL as `-`; ids as the turn's number.
fn replay(client: &mut Client, export: &str, policy: Option<&str>) -> Vec<String> {
    let statement = "
        SELECT replace(concat_ws(' ', r.status, coalesce(r.field, '-'), coalesce(r.was, '-'),
                                 coalesce(r.now, '-')), '00000000-0000-4000-8000-00000000000', '#')
        FROM graph_replay($1::text::json, $2::text::slice_policy) AS r";
    let rows = client.query(statement, &[&export, &policy]);
    let rows = rows.unwrap_or_else(|error| panic!("{export}: {error}"));
    rows.iter().map(|row| row.get(0)).collect()
}

/// What is replayed of a graph whose turns have no content.
const IDENTICAL: &str = "identical 5 turns without a content hash - -";

/// The rows but those of fingerprints.
fn without_fingerprints(mut rows: Vec<String>) -> Vec<String> {
    rows.retain(|row| !row.contains("slice_id") && !row.contains("graph_snapshot_hash"));
    rows
}

#[test]
fn an_unchanged_graph_replays_identically() {
    let database = database("replay_identical");
    let mut client = database.connect();
    let export = slice(&mut client);
    assert_eq!(replay(&mut client, &export, None), [IDENTICAL]);
    let rewritten = text(&mut client, "SELECT graph_slice(turn(3))::jsonb::text");
    assert_eq!(replay(&mut client, &rewritten, None), [IDENTICAL]);
    // Where only the key is another: replay is about the graph.
    client.batch_execute("SELECT graph_kernel.rotate_key(true)").unwrap();
    assert_eq!(replay(&mut client, &export, None), [IDENTICAL]);
}

#[test]
fn every_kind_of_drift_is_told() {
    let cases: [(&str, &[&str]); 17] = [
        (
            "INSERT INTO memory_turns (id) VALUES (turn(6));
             INSERT INTO memory_turn_edges VALUES (turn(3), turn(6), 'branch')",
            &["drifted turns - #6", "drifted edges - #3 -> #6 branch"],
        ),
        (
            "DELETE FROM memory_turn_edges WHERE child_turn_id = turn(5);
             DELETE FROM memory_turns WHERE id = turn(5)",
            &["drifted turns #5 -", "drifted edges #4 -> #5 reply -"],
        ),
        (
            "UPDATE memory_turn_edges SET edge_type = 'branch' WHERE child_turn_id = turn(5)",
            &["drifted edges #4 -> #5 reply -", "drifted edges - #4 -> #5 branch"],
        ),
        (
            "INSERT INTO memory_turn_edges VALUES (turn(1), turn(5), 'reference')",
            &["drifted edges - #1 -> #5 reference"],
        ),
        (
            "UPDATE memory_turns SET session_id = 's' WHERE id = turn(1)",
            &["drifted turns.#1.session_id trust s"],
        ),
        (
            "UPDATE memory_turns SET role = 'tool' WHERE id = turn(1)",
            &["drifted turns.#1.role user tool"],
        ),
        (
            "UPDATE memory_turns SET trajectory_phase = 'debugging' WHERE id = turn(1)",
            &["drifted turns.#1.phase planning debugging"],
        ),
        (
            "UPDATE memory_turns SET salience_score = 0.75 WHERE id = turn(1)",
            &["drifted turns.#1.salience 0.1 0.75"],
        ),
        (
            "UPDATE memory_turns SET trajectory_depth = 7 WHERE id = turn(1)",
            &["drifted turns.#1.trajectory_depth 0 7"],
        ),
        (
            "UPDATE memory_turns SET trajectory_sibling_order = 7 WHERE id = turn(1)",
            &["drifted turns.#1.trajectory_sibling_order 0 7"],
        ),
        (
            "UPDATE memory_turns SET trajectory_homogeneity = 0.25 WHERE id = turn(1)",
            &["drifted turns.#1.trajectory_homogeneity 0.5 0.25"],
        ),
        (
            "UPDATE memory_turns SET trajectory_temporal = 0 WHERE id = turn(1)",
            &["drifted turns.#1.trajectory_temporal 0.5 0.0"],
        ),
        (
            "UPDATE memory_turns SET trajectory_complexity = 2 WHERE id = turn(1)",
            &["drifted turns.#1.trajectory_complexity 1.0 2.0"],
        ),
        (
            "UPDATE memory_turns SET created_at = '2026-01-02' WHERE id = turn(1)",
            &["drifted turns.#1.created_at 1767225600 1767312000"],
        ),
        (
            "UPDATE memory_turns SET content_hash = repeat('a', 64) WHERE id = turn(1)",
            &[
                "drifted turns.#1.content_hash null aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            ],
        ),
        // What no slice shows is not a drift.
        (
            "ALTER TABLE memory_turns DISABLE TRIGGER USER;
             UPDATE memory_turns SET content_text = 'edited'",
            &[IDENTICAL],
        ),
        ("INSERT INTO memory_turns (id) VALUES (turn(9))", &[IDENTICAL]),
    ];
    let database = database("replay_drift");
    let mut client = database.connect();
    let export = slice(&mut client);
    for (change, expected) in cases {
        client.batch_execute(&format!("BEGIN; {change}")).unwrap();
        let rows = replay(&mut client, &export, None);
        client.batch_execute("ROLLBACK").unwrap();
        assert_eq!(without_fingerprints(rows), expected, "{change}");
    }
}

#[test]
fn drifted_fingerprints_are_told() {
    let database = database("replay_fingerprints");
    let mut client = database.connect();
    let export = slice(&mut client);
    client.batch_execute("DELETE FROM memory_turn_edges WHERE child_turn_id = turn(5)").unwrap();
    let now = slice(&mut client);
    let value = |export: &str, key: &str| -> String {
        let export: serde_json::Value = serde_json::from_str(export).unwrap();
        export[key].as_str().unwrap().to_owned()
    };
    let rows = replay(&mut client, &export, None);
    for key in ["slice_id", "graph_snapshot_hash"] {
        let row = format!("drifted {key} {} {}", value(&export, key), value(&now, key));
        assert!(rows.contains(&row), "{rows:?}");
    }
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let database = database("replay_not");
    let mut client = database.connect();
    let export = slice(&mut client);
    let start = |rows: Vec<String>| rows[0].split(' ').take(2).collect::<Vec<_>>().join(" ");
    let without_attestation = {
        let at = export.find(r#""attestation":"#).unwrap();
        format!(r#"{}"attestation":null}}"#, &export[..at])
    };
    for (export, expected) in [
        ("{}".to_owned(), "unreplayable malformed"),
        (
            export.replace("slice_policy_v1\",\"policy_params", "v2\",\"policy_params"),
            "unreplayable unknown_version",
        ),
        (
            export.replace(r#""schema_version":"1.0.0""#, r#""schema_version":"9""#),
            "unreplayable unknown_version",
        ),
        (export.replace(r#""v":3"#, r#""v":4"#), "unreplayable unknown_version"),
        (export.replace(r#""graph":"default""#, r#""graph":"x""#), "unreplayable other_graph"),
        (without_attestation.clone(), "unreplayable no_policy"),
        (
            export.replace(r#""max_nodes":256"#, r#""max_nodes":255"#),
            "unreplayable params_hash_mismatch",
        ),
    ] {
        let rows = replay(&mut client, &export, None);
        assert_eq!(rows.len(), 1);
        assert_eq!(start(rows), expected);
    }
    let mut null = client.query("SELECT status, field FROM graph_replay(NULL)", &[]).unwrap();
    let row = null.remove(0);
    assert_eq!((row.get(0), row.get(1)), ("unreplayable", "malformed"));

    // The policy can be given where the export has none; another one is recognised.
    assert_eq!(replay(&mut client, &without_attestation, Some("default")), [IDENTICAL]);
    let rows = replay(&mut client, &without_attestation, Some("broad"));
    assert_eq!(start(rows), "unreplayable params_hash_mismatch");

    client.batch_execute("SET graph_kernel.max_nodes_limit = 100").unwrap();
    assert_eq!(start(replay(&mut client, &export, None)), "unreplayable BUDGET_ABOVE_LIMIT");
    client.batch_execute("RESET graph_kernel.max_nodes_limit").unwrap();
    client.batch_execute("TRUNCATE memory_turns, memory_turn_edges").unwrap();
    assert_eq!(start(replay(&mut client, &export, None)), "unreplayable ANCHOR_NOT_FOUND");
    client.batch_execute("DROP TABLE memory_turns, memory_turn_edges").unwrap();
    assert_eq!(start(replay(&mut client, &export, None)), "unreplayable GRAPH_TABLES");
}

#[test]
fn replay_shows_nothing_that_the_role_may_not_read() {
    let database = database("replay_rights");
    let mut admin = database.connect();
    let export = slice(&mut admin);
    admin
        .batch_execute(
            "CREATE POLICY few ON memory_turns USING (id <= turn(3));
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY",
        )
        .unwrap();
    let mut reader = connect_as(&database, "trust_reader");
    let rows = without_fingerprints(replay(&mut reader, &export, None));
    assert!(rows.iter().any(|row| row == "drifted turns #4 -"), "{rows:?}");
    assert!(rows.iter().all(|row| row.ends_with('-')), "{rows:?}");
}
