//! Which turn a slice is taken at.

use postgres::Client;

use crate::common::database::Database;
use crate::sample::{refusal, text};

fn graph(name: &str) -> (Database, Client) {
    let database = Database::with_tables(&format!("anchors_{name}"));
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE FUNCTION turn(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
                 $$ SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
             ALTER TABLE memory_turns ADD COLUMN embedding real[];
             INSERT INTO memory_turns (id, session_id, created_at, embedding) VALUES
                 (turn(1), 'a', '2026-01-02', '{1,0}'),
                 (turn(2), 'a', '2026-01-03', '{0,1}'),
                 (turn(3), 'a', '2026-01-03', '{1,1}'),
                 (turn(4), 'b', '2026-01-04', NULL),
                 (turn(5), 'b', NULL, '{0,1}'),
                 (turn(6), 'c', NULL, NULL),
                 (turn(7), 'c', '-infinity', NULL)",
        )
        .unwrap();
    (database, client)
}

/// The number of the turn and the strategy, or `none`.
fn anchor(client: &mut Client, arguments: &str) -> String {
    text(
        client,
        &format!(
            "SELECT coalesce((SELECT right(anchor_turn_id::text, 1) || ' ' || strategy
                              FROM graph_anchor({arguments})), 'none')"
        ),
    )
}

#[test]
fn the_first_strategy_that_has_an_answer() {
    let (_database, mut client) = graph("strategies");
    for (arguments, expected) in [
        ("turn(1), 'b', '{1,0}'", "1 explicit"),
        ("NULL, 'a', '{1,0}'", "2 session"),
        ("NULL, 'c', '{1,0}'", "7 session"),
        ("NULL, 'nobody', '{1,0.1}'", "1 semantic"),
        ("query_embedding => '{0,1}'", "2 semantic"),
        ("session_id => 'nobody'", "4 temporal"),
        ("", "4 temporal"),
    ] {
        assert_eq!(anchor(&mut client, arguments), expected, "{arguments}");
    }
    for missing in ["turn(9)", "turn(9), 'a', '{1,0}'"] {
        let call = format!("SELECT graph_anchor({missing})");
        assert_eq!(refusal(&mut client, &call), ("02000".into(), "ANCHOR_NOT_FOUND".into()));
    }
    client.batch_execute("DELETE FROM memory_turns").unwrap();
    assert_eq!(anchor(&mut client, "NULL, 'a', '{1,0}'"), "none");
}

#[test]
fn recent_turns_by_time_then_by_id_and_those_without_a_time_last() {
    let (_database, mut client) = graph("recent");
    let mut recent = |arguments: &str| {
        text(
            &mut client,
            &format!(
                "SELECT coalesce(string_agg(right(anchor_turn_id::text, 1), ''), '')
                 FROM graph_anchors_recent({arguments})"
            ),
        )
    };
    assert_eq!(recent(""), "42317");
    assert_eq!(recent("1000"), "4231756");
    assert_eq!(recent("2, 'a'"), "23");
    assert_eq!(recent("5, 'b'"), "45");
    assert_eq!(recent("5, 'nobody'"), "");
    assert_eq!(recent("NULL"), "");
    for limit in [0, 1001] {
        let call = format!("SELECT graph_anchors_recent({limit})");
        assert_eq!(refusal(&mut client, &call), ("22023".into(), "INVALID_LIMIT".into()));
    }
}

#[test]
fn sessions_of_other_types() {
    let (_database, mut client) = graph("sessions");
    let session = "11111111-2222-4333-8444-55555555abcd";
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET session_id = CASE WHEN id = turn(1) THEN '{session}' END;
             ALTER TABLE memory_turns ALTER session_id TYPE uuid USING session_id::uuid"
        ))
        .unwrap();
    assert_eq!(anchor(&mut client, &format!("NULL, '{session}'")), "1 session");
    for other in [session.to_uppercase(), format!("{{{session}}}"), "x".to_owned(), String::new()] {
        assert_eq!(anchor(&mut client, &format!("NULL, '{other}'")), "4 temporal", "{other}");
    }
    client
        .batch_execute(
            "CREATE TYPE room AS ENUM ('hall', 'attic');
             ALTER TABLE memory_turns ALTER session_id TYPE room
                 USING CASE WHEN id = turn(3) THEN 'attic'::room END",
        )
        .unwrap();
    assert_eq!(anchor(&mut client, "NULL, 'attic'"), "3 session");
    assert_eq!(anchor(&mut client, "NULL, 'cellar'"), "4 temporal");
    client
        .batch_execute(
            "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                 '{\"turns\": {\"session_id\": null, \"created_at\": null}}')",
        )
        .unwrap();
    assert_eq!(anchor(&mut client, "NULL, 'attic'"), "1 temporal");
}

#[test]
fn hidden_turns_are_no_anchors() {
    let (_database, mut client) = graph("hidden");
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE retrieval_reader LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_reader;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY a ON memory_turns USING (session_id = 'a')",
        )
        .unwrap();
    client.batch_execute("SET ROLE retrieval_reader").unwrap();
    assert_eq!(anchor(&mut client, ""), "2 temporal");
    assert_eq!(anchor(&mut client, "NULL, 'b'"), "2 temporal");
    let hidden = refusal(&mut client, "SELECT graph_anchor(turn(4))");
    assert_eq!(hidden, refusal(&mut client, "SELECT graph_anchor(turn(9))"));
}
