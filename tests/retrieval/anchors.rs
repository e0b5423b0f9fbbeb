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

/// The word of the error for what cannot decide.
fn no_anchor(client: &mut Client, arguments: &str) -> String {
    let (code, word) = refusal(client, &format!("SELECT graph_anchor({arguments})"));
    assert_eq!(code, "02000", "{arguments}");
    word
}

#[test]
fn the_hint_for_a_session_that_is_not_there_lists_those_that_are() {
    let (_database, mut client) = graph("sessions");
    let error = client.execute("SELECT graph_anchor(session_id => 'nobody')", &[]).unwrap_err();
    let hint = error.as_db_error().unwrap().hint().unwrap().to_owned();
    let query = hint.strip_prefix("The latest sessions: ").unwrap().trim_end_matches(';');
    let mut listed: Vec<String> =
        client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    listed.sort();
    assert_eq!(listed, ["a", "b", "c"]);
}

#[test]
fn the_first_argument_given_decides() {
    let (_database, mut client) = graph("strategies");
    for (arguments, expected) in [
        ("turn(1), 'b', '{1,0}'", "1 explicit"),
        ("NULL, 'a', '{1,0}'", "2 session"),
        ("NULL, 'c', '{1,0}'", "7 session"),
        ("query_embedding => '{0,1}'", "2 semantic"),
        ("NULL, NULL, '{1,0.1}'", "1 semantic"),
        ("NULL, NULL, NULL", "4 temporal"),
        ("", "4 temporal"),
    ] {
        assert_eq!(anchor(&mut client, arguments), expected, "{arguments}");
    }
    for (missing, word) in [
        ("turn(9)", "ANCHOR_NOT_FOUND"),
        ("turn(9), 'a', '{1,0}'", "ANCHOR_NOT_FOUND"),
        ("session_id => 'nobody'", "SESSION_NOT_FOUND"),
        ("NULL, 'nobody', '{1,0.1}'", "SESSION_NOT_FOUND"),
        ("session_id => ''", "SESSION_NOT_FOUND"),
    ] {
        assert_eq!(no_anchor(&mut client, missing), word, "{missing}");
    }
    client.batch_execute("UPDATE memory_turns SET embedding = NULL").unwrap();
    assert_eq!(no_anchor(&mut client, "query_embedding => '{1,0}'"), "EMBEDDING_NOT_FOUND");
    assert_eq!(anchor(&mut client, ""), "4 temporal");
    client.batch_execute("DELETE FROM memory_turns").unwrap();
    assert_eq!(anchor(&mut client, ""), "none");
    assert_eq!(no_anchor(&mut client, "NULL, 'a', '{1,0}'"), "SESSION_NOT_FOUND");
}

/// A name over 4 KiB and the hash that stands for it in slices are the same session.
#[test]
fn long_names_of_sessions() {
    let (_database, mut client) = graph("long");
    client
        .batch_execute(
            r"UPDATE memory_turns SET session_id = repeat('x', 4096) WHERE id = turn(1);
              UPDATE memory_turns SET session_id = repeat('\é', 2000) WHERE id = turn(2);
              UPDATE memory_turns SET session_id = 'A' || repeat('y', 100000) WHERE id = turn(3);
              UPDATE memory_turns SET session_id = 'sha256:' || repeat('0', 64) WHERE id = turn(4)",
        )
        .unwrap();
    for n in 1..=4 {
        let given = format!("NULL, (SELECT session_id FROM memory_turns WHERE id = turn({n}))");
        assert_eq!(anchor(&mut client, &given), format!("{n} session"));
        let shown = format!(
            "NULL, (SELECT session_id FROM graph_slice_turns(turn({n})) WHERE turn_id = turn({n}))"
        );
        assert_eq!(anchor(&mut client, &shown), format!("{n} session"));
        let recent = format!(
            "SELECT string_agg(right(anchor_turn_id::text, 1), '') FROM graph_anchors_recent(9,
                 (SELECT session_id FROM memory_turns WHERE id = turn({n})))"
        );
        assert_eq!(text(&mut client, &recent), n.to_string());
    }
    assert_eq!(no_anchor(&mut client, "NULL, repeat('x', 5000)"), "SESSION_NOT_FOUND");
    // What a backslash in a literal means is a setting's matter.
    client.batch_execute("SET standard_conforming_strings = off").unwrap();
    for n in 2..=4 {
        let shown = format!(
            "NULL, (SELECT session_id FROM graph_slice_turns(turn({n})) WHERE turn_id = turn({n}))"
        );
        assert_eq!(anchor(&mut client, &shown), format!("{n} session"));
    }
}

/// The condition on hashes of long names would read the whole table.
#[test]
fn sessions_that_look_like_hashes_are_found_by_the_index() {
    let (_database, mut client) = graph("hashes");
    client
        .batch_execute(
            "INSERT INTO memory_turns (id, session_id, created_at)
             SELECT gen_random_uuid(), 'sha256:' || encode(sha256(n::text::bytea), 'hex'), '2026-01-01'
             FROM generate_series(1, 5000) AS n;
             ANALYZE memory_turns; SET track_counts = on",
        )
        .unwrap();
    let scans = "SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()";
    let read = "SELECT coalesce(sum(seq_scan), 0)::text FROM pg_stat_user_tables WHERE relname = 'memory_turns'";
    client.batch_execute(scans).unwrap();
    let before = text(&mut client, read);
    let session = "SELECT count(*)::text FROM graph_anchors_recent(1,
        'sha256:' || encode(sha256('7'::bytea), 'hex'))";
    assert_eq!(text(&mut client, session), "1");
    client.batch_execute(scans).unwrap();
    client.batch_execute(scans).unwrap();
    assert_eq!(text(&mut client, read), before);
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
        let given = format!("NULL, '{other}'");
        assert_eq!(no_anchor(&mut client, &given), "SESSION_NOT_FOUND", "{other}");
    }
    client
        .batch_execute(
            "CREATE TYPE room AS ENUM ('hall', 'attic');
             ALTER TABLE memory_turns ALTER session_id TYPE room
                 USING CASE WHEN id = turn(3) THEN 'attic'::room END",
        )
        .unwrap();
    assert_eq!(anchor(&mut client, "NULL, 'attic'"), "3 session");
    assert_eq!(no_anchor(&mut client, "NULL, 'cellar'"), "SESSION_NOT_FOUND");
    client
        .batch_execute(
            "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                 '{\"turns\": {\"session_id\": null, \"created_at\": null}}')",
        )
        .unwrap();
    assert_eq!(no_anchor(&mut client, "NULL, 'attic'"), "SESSION_NOT_FOUND");
    assert_eq!(anchor(&mut client, ""), "1 temporal");
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
    for session in ["b", "nobody"] {
        assert_eq!(no_anchor(&mut client, &format!("NULL, '{session}'")), "SESSION_NOT_FOUND");
    }
    let hidden = refusal(&mut client, "SELECT graph_anchor(turn(4))");
    assert_eq!(hidden, refusal(&mut client, "SELECT graph_anchor(turn(9))"));
}
