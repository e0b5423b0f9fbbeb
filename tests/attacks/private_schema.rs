//! A plain role that owns the extension drops it in the middle of a call and puts a schema of its own in the place
//! of the private one.

use crate::setup::{OWNER, Outcome, Setup, attempt};

/// The owner's extension, graph and log.
const SETUP: &str = "
    CREATE EXTENSION graph_kernel SCHEMA own;
    SET search_path = own;
    CREATE FUNCTION turn(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
        $$ SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
    SELECT graph_kernel.create_tables('own', jsonb_build_object('content_hash', false)),
           graph_kernel.create_recorder_table('own');
    INSERT INTO memory_turns (id, session_id) SELECT turn(n), 's' FROM generate_series(1, 5) AS n;
    INSERT INTO memory_turn_edges SELECT turn(n), turn(n + 1) FROM generate_series(1, 4) AS n;
    INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, occurred_at_ms, event_type,
                                 text)
    SELECT 0, n, n, 'e' || n, 1, n * 600000, 'egress_output', 'words' FROM generate_series(1, 5) AS n;
    SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges'),
           graph_kernel.bind_recorder_table('recorder_events');
    CREATE TABLE swaps (statement text);
    CREATE FUNCTION swap() RETURNS boolean LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
        swap text;
    BEGIN
        SET LOCAL client_min_messages = warning;
        FOR swap IN DELETE FROM own.swaps RETURNING statement LOOP EXECUTE swap; END LOOP;
        RETURN true;
    END $$;";

/// The extension's private tables as the library reads them.
const TABLES: [(&str, &str); 4] = [
    ("root_keys", "(epoch integer, root bytea, created_at timestamptz, database oid)"),
    ("revoked_keys", "(kid text, revoked_at timestamptz)"),
    (
        "binding",
        "(graph uuid, name text, is_current boolean, turns regclass, edges regclass, columns jsonb, resolved jsonb, \
        bound_by text, bound_at timestamptz, binder oid, database oid)",
    ),
    ("recorder_binding", "(single boolean, events regclass, columns jsonb)"),
];

/// Some of them in another shape, with a row.
const SHAPES: [&str; 12] = [
    "root_keys AS SELECT 1 AS epoch, 8::bigint AS root, now() AS created_at, 5::oid AS database",
    "root_keys AS SELECT 8::bigint AS epoch, 8::bigint AS root, 8::bigint AS created_at, 5::oid AS database",
    "root_keys AS SELECT 1 AS epoch",
    "root_keys AS SELECT 'x'::text AS epoch, '\\x00'::bytea AS root, now() AS created_at, 5::oid AS database",
    "root_keys AS SELECT 1 AS epoch, ROW(1, 2) AS root, now() AS created_at, 5::oid AS database",
    "revoked_keys AS SELECT 8::bigint AS kid",
    "binding AS SELECT 8::bigint AS graph, 'default' AS name, true AS is_current, 8::bigint AS turns,
         8::bigint AS edges, 8::bigint AS columns, 8::bigint AS resolved, 'x' AS bound_by, now() AS bound_at",
    "binding AS SELECT gen_random_uuid() AS graph, 'default'::text AS name, true AS is_current,
         'own.memory_turns'::regclass AS turns, 'own.memory_turn_edges'::regclass AS edges,
         NULL::jsonb AS columns, 8::bigint AS resolved, 'x'::text AS bound_by, now() AS bound_at",
    "binding AS SELECT 'default'::text AS name, true AS is_current",
    "binding AS SELECT gen_random_uuid() AS graph, 8::bigint AS name, 8::bigint AS is_current,
         'own.memory_turns'::regclass AS turns, 'own.memory_turn_edges'::regclass AS edges,
         NULL::jsonb AS columns, '{\"turns\": {\"id\": {\"expression\": \"*\"}}}'::jsonb AS resolved",
    "recorder_binding AS SELECT true AS single, 8::bigint AS events, 8::bigint AS columns",
    "recorder_binding AS SELECT true AS single, 'own.recorder_events'::regclass AS events, 8::bigint AS columns",
];

const SWAP: &str = "DROP EXTENSION graph_kernel CASCADE; CREATE SCHEMA graph_kernel;";

/// A private schema with tables of the right shape, but for one.
fn schema_with(odd: &str) -> String {
    let others = TABLES.iter().filter(|(name, _)| odd.split(' ').next() != Some(name));
    let others =
        others.map(|(name, columns)| format!("CREATE TABLE graph_kernel.{name} {columns};"));
    format!("{SWAP} {} CREATE TABLE graph_kernel.{odd}", others.collect::<String>())
}

/// Views of the right shape in the place of the tables.
fn schema_of_views() -> String {
    let views = TABLES.iter().map(|(name, columns)| {
        let table = format!("CREATE TABLE graph_kernel.{name}_ {columns};");
        format!("{table} CREATE VIEW graph_kernel.{name} AS SELECT * FROM graph_kernel.{name}_;")
    });
    format!("{SWAP} {}", views.collect::<String>())
}

/// Other kinds of relations, and none at all.
fn schema_of(kind: &str) -> String {
    let relations = TABLES.iter().map(|(name, columns)| match kind {
        "partitioned" => {
            let (first, _) = columns[1..].split_once(' ').unwrap();
            format!("CREATE TABLE graph_kernel.{name} {columns} PARTITION BY LIST ({first});")
        }
        "composite" => format!("CREATE TYPE graph_kernel.{name} AS {columns};"),
        "sequence" => format!("CREATE SEQUENCE graph_kernel.{name};"),
        "temporary" => {
            format!("CREATE TEMP TABLE {name} {columns};")
        }
        _ => String::new(),
    });
    format!("{SWAP} {}", relations.collect::<String>())
}

/// The swap is made after the function's first call: the server looks it up again no more.
const CALLS: [&str; 8] = [
    "graph_slice(turn(3))",
    "graph_slices(ARRAY[turn(1), turn(2), turn(3)])",
    "graph_verify('{}'::json)",
    "graph_verify_token(repeat('a', 64), repeat('a', 32), turn(1), 'p', 'h', 'g', 'v')",
    "graph_snapshot()",
    "recorder_chunks()",
    "recorder_chunks_since(0, 3)",
    "graph_kernel.describe_graph('default')",
];

fn calls_before_and_after() -> Vec<String> {
    let twice = "FROM generate_series(1, 3) AS n";
    CALLS
        .iter()
        .map(|call| format!("SELECT CASE WHEN n = 2 THEN swap() END, {call} {twice}"))
        .collect()
}

/// Makes the swap within a call.
fn swap_in(name: &str, swaps: &[String], calls: &[String]) {
    let mut setup = Setup::empty(name);
    let mut admin = setup.admin();
    admin.batch_execute(&format!("CREATE SCHEMA own AUTHORIZATION {OWNER}")).unwrap();
    setup.owner().batch_execute(SETUP).unwrap();
    let mut faults = Vec::new();
    for call in calls {
        for swap in swaps {
            let mut owner = setup.owner();
            let begin = "SET search_path = own; SET client_min_messages = warning; BEGIN";
            owner.batch_execute(begin).unwrap();
            owner.execute("INSERT INTO swaps VALUES ($1)", &[swap]).unwrap();
            if let Outcome::Unsafe(fault) = attempt(&mut owner, call)
                // The server's own words for a function that was dropped.
                && !fault.contains("cache lookup failed for function")
            {
                faults.push(format!("{call}\n  after {swap}: {fault}"));
            }
        }
    }
    crate::setup::assert_none(&faults);
    setup.assert_sound();
}

#[test]
fn private_tables_of_other_types() {
    swap_in("private_types", &SHAPES.map(schema_with), &calls_before_and_after());
}

#[test]
fn views_and_others_in_the_place_of_private_tables() {
    let kinds = ["partitioned", "composite", "sequence", "temporary", "none"].map(schema_of);
    let mut swaps = vec![schema_of_views(), "DROP EXTENSION graph_kernel CASCADE".to_owned()];
    swaps.extend(kinds);
    swap_in("private_kinds", &swaps, &calls_before_and_after());
}

#[test]
fn a_policy_that_drops_the_extension() {
    let mut swaps = vec![schema_of_views(), "DROP EXTENSION graph_kernel CASCADE".to_owned()];
    swaps.extend(SHAPES.map(schema_with));
    // The policy's function makes the swap while the first row is read, in a session that has read the keys or not.
    let known = "SELECT graph_slice(turn(3));";
    let calls = [("turns", ""), ("turn_edges", ""), ("turns", known)].map(|(table, before)| {
        format!(
            "{before} CREATE POLICY swaps ON memory_{table} USING (own.swap());
             ALTER TABLE memory_{table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
             SELECT graph_slice(turn(3))"
        )
    });
    swap_in("private_policy", &swaps, &calls);
}

/// The owner does it in a session of its own, while a superuser's statement goes on.
#[test]
fn the_extension_of_another_session_is_dropped() {
    let mut faults = Vec::new();
    let known_key = "root_keys AS SELECT 1 AS epoch, decode(repeat('ab', 32), 'hex') AS root, now() AS created_at, \
        5::oid AS database";
    let bound = "binding AS SELECT true AS single, '00000000-0000-4000-8000-000000000000'::uuid AS graph,
         'own.memory_turns'::regclass AS turns, 'own.memory_turn_edges'::regclass AS edges, NULL::jsonb AS columns";
    let with_known_key = format!(
        "{} ; DROP TABLE graph_kernel.binding; CREATE TABLE graph_kernel.{bound}",
        schema_with(known_key)
    );
    for (number, swap) in
        [with_known_key, schema_with(SHAPES[0]), schema_with(SHAPES[6])].iter().enumerate()
    {
        let mut setup = Setup::empty(&format!("private_session_{number}"));
        setup.admin().batch_execute(&format!("CREATE SCHEMA own AUTHORIZATION {OWNER}")).unwrap();
        let mut owner = setup.owner();
        owner.batch_execute(SETUP).unwrap();
        owner.batch_execute("SELECT pg_advisory_lock(16)").unwrap();
        let mut caller = setup.admin();
        let pid = crate::common::process::backend_pid(&mut caller);
        let running = std::thread::spawn(move || {
            let call =
                "SET search_path = own; SELECT graph_slice(turn(3))::text, CASE WHEN n = 1 THEN
                pg_advisory_xact_lock_shared(16) END FROM generate_series(1, 2) AS n";
            attempt(&mut caller, call)
        });
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
        while !running.is_finished() && !owner.query_one(waits, &[&pid]).unwrap().get::<_, bool>(0)
        {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        // Whatever the drop waits for, the call does not wait for the drop.
        owner.batch_execute("SET lock_timeout = '2s'; SET client_min_messages = warning").unwrap();
        let swapped = attempt(&mut owner, swap);
        owner.batch_execute("SELECT pg_advisory_unlock(16)").unwrap();
        match running.join().unwrap() {
            Outcome::Answer(rows) if rows[0] == rows[1] => {}
            Outcome::Refused(_) => {}
            other => faults.push(format!("{swap} ({swapped:?}): {other:.600?}")),
        }
        if faults.is_empty() {
            setup.assert_sound();
        }
    }
    crate::setup::assert_none(&faults);
}
