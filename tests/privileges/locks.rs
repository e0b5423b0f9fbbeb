//! Who has no right to the bound tables locks none of them.

use std::time::{Duration, Instant};

use crate::attempts::CALLS;
use crate::roles::Setup;

/// Relations that a role with rights to nothing must neither lock nor wait for.
const TABLES: &str =
    "ARRAY['memory_turns', 'memory_turn_edges', 'recorder_events', 'retrieval_traces']::regclass[]";

#[test]
fn who_has_no_right_to_the_bound_tables_locks_none() {
    let setup = Setup::create("locks");
    let mut superuser = setup.superuser();
    superuser
        .batch_execute(
            "CREATE FUNCTION open.locked() RETURNS text LANGUAGE sql SECURITY DEFINER AS
                 $$ SELECT string_agg(relation::regclass::text, ', ') FROM pg_locks
                    WHERE pid = pg_backend_pid() AND relation = ANY (TABLES) $$"
                .replace("TABLES", TABLES)
                .as_str(),
        )
        .unwrap();
    let more = [
        "SELECT graph_slices('{}')",
        "SELECT count(s) FROM graph_slices(array_fill(NULL::uuid, ARRAY[3])) AS s",
        "SELECT * FROM graph_overlap('{}')",
        "SELECT * FROM graph_influence('{}')",
        "SELECT graph_atlas('{}')",
        "SELECT graph_anchors_recent(1, 'x')",
        "SELECT graph_kernel.write_trace('memory_turns'::regclass, '{}')",
        "SELECT * FROM recorder_chunk_span(0, 0, 0, 0, 0, 0)",
        "SELECT graph_kernel.count_found('default', 'nothing')",
        "SELECT graph_kernel.evaluate('default', 'nothing')",
        "SELECT graph_kernel.roles_advice('default')",
    ];
    // These wait as any statement on a table does, and keep nothing: they read a table that the caller names, or the
    // server prints an expression of an index of it.
    let waits = |call: &str| ["index_command", "raising_row"].iter().any(|f| call.contains(f));
    let calls = || CALLS.iter().filter_map(|(_, call)| *call).chain(more);
    // While another session holds the tables, nothing waits for them; then nothing is held.
    for is_held in [true, false] {
        let mut holder = superuser.transaction().unwrap();
        if is_held {
            holder
                .batch_execute(
                    "LOCK memory_turns, memory_turn_edges, recorder_events, retrieval_traces
                     IN ACCESS EXCLUSIVE MODE",
                )
                .unwrap();
        }
        let mut anon = setup.connect("anon");
        anon.batch_execute("SET lock_timeout = '200ms'; SET search_path = public, open").unwrap();
        let mut transaction = anon.transaction().unwrap();
        for call in calls().filter(|call| !(is_held && waits(call))) {
            let call = setup.named(call);
            let mut attempt = transaction.transaction().unwrap();
            let (begun, answer) = (Instant::now(), attempt.simple_query(&call));
            let code = answer.as_ref().err().and_then(postgres::Error::code).cloned();
            assert_ne!(code, Some(postgres::error::SqlState::LOCK_NOT_AVAILABLE), "{call}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{call}");
            if answer.is_ok() {
                let locked = attempt.query_one("SELECT open.locked()", &[]).unwrap();
                assert_eq!(locked.get::<_, Option<String>>(0), None, "{call}");
                attempt.commit().unwrap();
            }
        }
        drop(transaction);
        drop(holder);
    }
}

#[test]
fn a_right_to_some_columns_is_enough_and_is_asked_for_at_each_call() {
    let setup = Setup::create("column_rights");
    let mut superuser = setup.superuser();
    let grant = |statement: &str| setup.named(statement);
    let mut anon = setup.connect("anon");
    let recent = "SELECT count(*) FROM graph_anchors_recent()";
    let denied = |client: &mut postgres::Client, call: &str| {
        let error = client.batch_execute(call).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "42501", "{call}: {error:?}");
        error.message().to_owned()
    };
    assert_eq!(denied(&mut anon, recent), "permission denied for table memory_turns");

    superuser
        .batch_execute(&grant("GRANT SELECT (id, created_at, session_id) ON memory_turns TO anon"))
        .unwrap();
    assert_eq!(denied(&mut anon, recent), "permission denied for table memory_turn_edges");
    superuser
        .batch_execute(&grant("GRANT SELECT (child_turn_id) ON memory_turn_edges TO anon"))
        .unwrap();
    assert_eq!(anon.query_one(recent, &[]).unwrap().get::<_, i64>(0), 1);
    // A column that may not be read is refused when the statement is.
    let slice = "SELECT graph_slice('00000000-0000-4000-8000-000000000001')";
    assert!(denied(&mut anon, slice).starts_with("permission denied for table"));

    // With the graph in this session's cache.
    superuser
        .batch_execute(&grant("REVOKE ALL (id, created_at, session_id) ON memory_turns FROM anon"))
        .unwrap();
    assert_eq!(denied(&mut anon, recent), "permission denied for table memory_turns");

    // A function with its owner's rights reads with those.
    superuser
        .batch_execute(&grant(
            "CREATE FUNCTION open.recent() RETURNS bigint LANGUAGE sql SECURITY DEFINER
                 SET graph_kernel.graph = 'default' AS 'SELECT count(*) FROM public.graph_anchors_recent()';
             GRANT EXECUTE ON FUNCTION open.recent() TO anon",
        ))
        .unwrap();
    assert_eq!(anon.query_one("SELECT open.recent()", &[]).unwrap().get::<_, i64>(0), 1);
    assert_eq!(denied(&mut anon, recent), "permission denied for table memory_turns");
}

#[test]
fn default_tables_are_not_locked_either() {
    let setup = Setup::create("default_locks");
    let mut superuser = setup.superuser();
    superuser
        .batch_execute(
            "SELECT graph_kernel.unbind_tables(); SELECT graph_kernel.unbind_recorder_table()",
        )
        .unwrap();
    let mut holder = superuser.transaction().unwrap();
    holder
        .batch_execute(
            "LOCK memory_turns, memory_turn_edges, recorder_events IN ACCESS EXCLUSIVE MODE",
        )
        .unwrap();
    let mut anon = setup.connect("anon");
    anon.batch_execute("SET lock_timeout = '200ms'").unwrap();
    for call in [
        "SELECT graph_kernel.describe_graph('default')",
        "SELECT graph_slices('{}')",
        "SELECT * FROM recorder_chunks()",
    ] {
        let error = anon.batch_execute(call).unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{call}: {error:?}");
    }
    let row = anon.query_one("SELECT detail FROM graph_check()", &[]).unwrap();
    assert_eq!(row.get::<_, &str>(0), "permission denied for table memory_turns");
}
