//! The owner of a schema renames it under a superuser's call and puts another in its place.
//!
//! A lock on a partition stops the call where it is about to read it: at first, when it looks at the tables, in a
//! session that has cached them, between its statements.

use std::thread;
use std::time::{Duration, Instant};

use postgres::Client;

use crate::common::process::backend_pid;
use crate::setup::{GRAPH_CALLS, LOG_CALLS, OWNER, Outcome, Setup, attempt};

const RENAME: &str = "ALTER SCHEMA b2 RENAME TO b3; CREATE SCHEMA b2;";

/// Views in the tables' place, which call the owner's function as whoever reads them.
const VIEWS: &str = "
    CREATE VIEW b2.turns AS SELECT * FROM b3.turns WHERE planted.f();
    CREATE VIEW b2.edges AS SELECT * FROM b3.edges WHERE planted.f();
    CREATE VIEW b2.events AS SELECT * FROM b3.events WHERE planted.f();";

/// Tables with other rows in their place.
const TABLES: &str = "
    CREATE TABLE b2.turns (LIKE b3.turns);
    CREATE TABLE b2.edges (LIKE b3.edges);
    CREATE TABLE b2.events (LIKE b3.events);
    INSERT INTO b2.turns (id, session_id, content_text, embedding)
    SELECT id, 'forged', 'forged', '{1,2}' FROM b3.turns;
    INSERT INTO b2.edges SELECT turn(5), turn(1), 'branch';";

/// Tables of other types.
const TYPES: &str = "
    CREATE TABLE b2.turns AS SELECT 8::bigint AS id, 8::bigint AS session_id, 8::bigint AS role,
        8::bigint AS trajectory_phase, 1 AS salience_score, 1 AS trajectory_depth,
        1 AS trajectory_sibling_order, 1 AS trajectory_homogeneity, 1 AS trajectory_temporal,
        1 AS trajectory_complexity, 1::bigint AS created_at, 8::bigint AS content_text,
        8::bigint AS content_hash, 8::bigint AS embedding;
    CREATE TABLE b2.edges AS SELECT 8::bigint AS parent_turn_id, 8::bigint AS child_turn_id,
        8::bigint AS edge_type;
    CREATE TABLE b2.events AS SELECT 0 AS segment_id, 1 AS ordinal, 1 AS byte_offset,
        8::bigint AS event_id, 1 AS pane_id, 8::bigint AS session_id, 1 AS occurred_at_ms,
        8::bigint AS event_type, 8::bigint AS text, false AS is_gap, 8::bigint AS schema_version;";

const UNDO: &str = "SET client_min_messages = warning;
    DROP SCHEMA b2 CASCADE; ALTER SCHEMA b3 RENAME TO b2";

/// Runs a call that is stopped at a partition, while something is done.
fn stopped_at(
    partition: &str,
    mut caller: Client,
    call: &str,
    owner: &mut Client,
    action: &str,
) -> Outcome {
    let pid = backend_pid(&mut caller);
    owner.batch_execute(&format!("BEGIN; LOCK TABLE b2.{partition}")).unwrap();
    let call = call.to_owned();
    let running = thread::spawn(move || attempt(&mut caller, &call));
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
    let give_up = Instant::now() + Duration::from_secs(5);
    while !running.is_finished() && !owner.query_one(waits, &[&pid]).unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < give_up, "the call neither waits nor ends");
        thread::sleep(Duration::from_millis(2));
    }
    // Committed with the lock's end.
    owner.batch_execute(&format!("{action}; COMMIT")).unwrap();
    running.join().unwrap()
}

/// Does it in all calls, at all places where they can be stopped.
fn rename_under_all_calls(name: &str, replacement: &str) {
    let mut setup = Setup::new(name);
    let mut owner = setup.owner();
    let mut faults = Vec::new();
    let graph_calls = GRAPH_CALLS.iter().map(|call| (*call, ["turns_1", "edges_1"].as_slice()));
    let log_calls = LOG_CALLS.iter().map(|call| (*call, ["events_1"].as_slice()));
    for (call, partitions) in graph_calls.chain(log_calls) {
        let rows = attempt(&mut setup.admin(), call).answer(call).expect(call);
        for partition in partitions {
            for warm in [false, true] {
                let mut caller = setup.admin();
                if warm {
                    attempt(&mut caller, call).answer(call);
                }
                let action = format!("{RENAME} {replacement}");
                let outcome = stopped_at(partition, caller, call, &mut owner, &action);
                let warmth = if warm { "known" } else { "new" };
                if setup.has_caught() {
                    faults.push(format!(
                        "{call}\n  at {partition}, tables {warmth}: runs the owner's function"
                    ));
                    owner.batch_execute("SELECT setval('planted.caught', 1, false)").unwrap();
                }
                if let Some(fault) = outcome.fault(call, &rows) {
                    faults.push(format!("{call}\n  at {partition}, tables {warmth}: {fault}"));
                }
                owner = setup.owner();
                owner.batch_execute(UNDO).unwrap();
            }
        }
    }
    crate::setup::assert_none(&faults);
    setup.assert_sound();
}

#[test]
fn views_in_the_place_of_the_tables() {
    rename_under_all_calls("schemas_views", VIEWS);
}

#[test]
fn other_tables_in_the_place_of_the_tables() {
    rename_under_all_calls("schemas_tables", TABLES);
}

#[test]
fn tables_of_other_types_in_the_place_of_the_tables() {
    rename_under_all_calls("schemas_types", TYPES);
}

#[test]
fn backfill_writes_no_other_table_and_runs_no_view() {
    for (name, replacement) in [("views", VIEWS), ("tables", TABLES)] {
        for batch in [1, 1000] {
            let mut setup = Setup::new(&format!("schemas_backfill_{name}"));
            let mut owner = setup.owner();
            let call = format!("CALL graph_kernel.backfill_content_hashes({batch})");
            let action = format!("{RENAME} {replacement}");
            stopped_at("turns_1", setup.admin(), &call, &mut owner, &action).answer(&call);
            assert!(!setup.has_caught(), "{name}");
            if name == "tables" {
                let written = "SELECT count(content_hash) FROM b2.turns";
                let written: i64 = owner.query_one(written, &[]).unwrap().get(0);
                assert_eq!(written, 0, "hashes of a table that is not bound");
            }
            setup.assert_sound();
        }
    }
}

/// Binding looks at the tables too, with the rights of the extension's owner.
#[test]
fn binding_binds_what_it_was_given() {
    let mut setup = Setup::new("schemas_bind");
    let mut owner = setup.owner();
    for (call, partition) in [
        ("SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges')", "turns_1"),
        ("SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges')", "edges_1"),
        ("SELECT graph_kernel.bind_recorder_table('b2.events')", "events_1"),
    ] {
        let action = format!("{RENAME} {VIEWS}");
        stopped_at(partition, setup.admin(), call, &mut owner, &action).answer(call);
        assert!(!setup.has_caught(), "{call}");
        let slice = "SELECT graph_slice(turn(5)) ->> 'slice_id'";
        attempt(&mut setup.admin(), slice).answer(slice).expect("the bound tables are there");
        owner.batch_execute(UNDO).unwrap();
    }
    setup.assert_sound();
}

/// The same without a lock: the owner goes back and forth while a superuser reads on.
#[test]
fn a_race_of_names() {
    let mut setup = Setup::new("schemas_race");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "INSERT INTO b2.turns (id, session_id, content_text, embedding)
             SELECT turn(n), 's', 'content', '{1,2}' FROM generate_series(11, 20000) AS n;
             INSERT INTO b2.edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(10, 19999) AS n",
        )
        .unwrap();
    let end = Instant::now() + Duration::from_secs(4);
    let renaming = thread::spawn(move || {
        let mut rounds = 0;
        while Instant::now() < end {
            owner.batch_execute(&format!("BEGIN; {RENAME} {VIEWS} COMMIT")).unwrap();
            thread::sleep(Duration::from_millis(rounds % 7));
            owner.batch_execute(&format!("BEGIN; {UNDO}; COMMIT")).unwrap();
            thread::sleep(Duration::from_millis(rounds % 5));
            rounds += 1;
        }
        rounds
    });
    let mut caller = setup.admin();
    let mut snapshots = std::collections::BTreeSet::new();
    while Instant::now() < end {
        for call in [
            "SELECT graph_snapshot()",
            "SELECT slice -> 'turns' FROM graph_slices(ARRAY[turn(5), turn(500)]) WHERE error IS NULL",
            "SELECT count(*) FROM graph_content_audit()",
            "SELECT turn_id FROM graph_search_slice('{1,2}', turn(5))",
            "SELECT * FROM graph_anchors_recent(3)",
        ] {
            let rows = attempt(&mut caller, call).answer(call);
            if call.contains("graph_snapshot") {
                snapshots.extend(rows);
            }
        }
    }
    assert!(renaming.join().unwrap() > 5, "some rounds were run");
    assert!(snapshots.len() <= 1, "the graph did not change: {snapshots:?}");
    assert!(!setup.has_caught(), "a superuser has run the owner's function");
    setup.assert_sound();
}

/// A graph with embeddings, and pgvector in the schema `kept` of the owner's, who may create schemas.
fn embedded(name: &str) -> Setup {
    let setup = Setup::new(name);
    setup
        .admin()
        .batch_execute(&format!(
            "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {OWNER}', current_database()); END $$;
             CREATE SCHEMA kept AUTHORIZATION {OWNER}; CREATE EXTENSION vector SCHEMA kept;
             GRANT USAGE ON SCHEMA kept TO PUBLIC;
             CREATE TABLE b2.embedded (id uuid PRIMARY KEY, parent uuid, embedding kept.vector(2));
             CREATE INDEX ON b2.embedded (parent, id);
             INSERT INTO b2.embedded VALUES (turn(1), NULL, '[1,2]'), (turn(2), turn(1), '[2,1]');
             SELECT graph_kernel.bind_tables('b2.embedded',
                 columns => '{{\"turns\": {{\"parents\": [{{\"parent\": \"parent\", \"edge_type\": \"reply\"}}]}}}}')"
        ))
        .unwrap();
    setup
}

/// The owner of the schema that pgvector stands in has a domain and an operator of his own in its place, again and
/// again.
#[test]
fn no_type_of_the_schemas_owner_stands_for_that_of_embeddings() {
    let mut setup = embedded("schemas_vector");
    let mut owner = setup.owner();
    let mut admin = setup.admin();
    owner
        .batch_execute(
            "CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO PUBLIC;
             CREATE FUNCTION other.evil(kept.vector) RETURNS boolean LANGUAGE plpgsql AS
                 $$ BEGIN RETURN planted.f(); END $$;
             CREATE DOMAIN other.vector AS kept.vector CHECK (other.evil(VALUE));
             CREATE OPERATOR other.<=> \
             (LEFTARG = kept.vector, RIGHTARG = kept.vector, FUNCTION = kept.cosine_distance)",
        )
        .unwrap();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_done = std::sync::Arc::clone(&done);
    let renaming = thread::spawn(move || {
        while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
            owner
                .batch_execute(
                    "BEGIN; ALTER SCHEMA kept RENAME TO aside; ALTER SCHEMA other RENAME TO kept; COMMIT;
                     BEGIN; ALTER SCHEMA kept RENAME TO other; ALTER SCHEMA aside RENAME TO kept; COMMIT",
                )
                .unwrap();
        }
    });
    let search = "SELECT turn_id FROM graph_search(ARRAY[1, 2]::real[])";
    let mut answers = 0;
    for _ in 0..500 {
        answers += usize::from(matches!(attempt(&mut admin, search), Outcome::Answer(_)));
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    renaming.join().unwrap();
    assert!(answers > 50, "{answers} answers");
    assert!(!setup.has_caught());
    setup.assert_sound();
}

/// Under an old snapshot the names are those of before, and the parser finds what has them now.
#[test]
fn nothing_is_planned_that_a_name_has_gone_to() {
    let mut setup = embedded("schemas_planned");
    let mut owner = setup.owner();
    let mut admin = setup.admin();
    owner
        .batch_execute(
            "CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO PUBLIC;
             CREATE TYPE other.vector AS (d text);
             CREATE FUNCTION other.evil(text) RETURNS other.vector LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN ROW('x')::other.vector; END $$;
             CREATE CAST (text AS other.vector) WITH FUNCTION other.evil(text);
             CREATE FUNCTION other.dist(kept.vector, other.vector) RETURNS float8
                 LANGUAGE sql IMMUTABLE AS 'SELECT 0.0';
             CREATE OPERATOR other.<=> (LEFTARG = kept.vector, RIGHTARG = other.vector, FUNCTION = other.dist)",
        )
        .unwrap();
    admin.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    owner
        .batch_execute("ALTER SCHEMA kept RENAME TO aside; ALTER SCHEMA other RENAME TO kept")
        .unwrap();
    let outcome = attempt(&mut admin, "SELECT turn_id FROM graph_search(ARRAY[1, 2]::real[])");
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert!(!setup.has_caught());
    setup.assert_sound();
}

/// An aggregate is a function in the server's own language, and any role makes one. Under its name a statement over
/// the tables is still one.
#[test]
fn no_aggregate_in_the_place_of_a_function_is_called() {
    let mut setup = Setup::empty("schemas_aggregate");
    let mut admin = setup.admin();
    admin
        .batch_execute(
            "CREATE FUNCTION turn(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
                 $$ SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
             CREATE SCHEMA exts AUTHORIZATION attack_owner;
             CREATE EXTENSION graph_kernel SCHEMA exts;
             GRANT USAGE ON SCHEMA exts TO PUBLIC;
             CREATE SCHEMA b2 AUTHORIZATION attack_owner;
             CREATE SCHEMA planted AUTHORIZATION attack_owner",
        )
        .unwrap();
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE SEQUENCE planted.caught;
             CREATE FUNCTION planted.f() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
                 IF current_user <> 'attack_owner' THEN PERFORM pg_catalog.nextval('planted.caught'); END IF;
                 RETURN true;
             END $$;
             CREATE TABLE b2.turns (id uuid PRIMARY KEY) PARTITION BY HASH (id);
             CREATE TABLE b2.turns_1 PARTITION OF b2.turns FOR VALUES WITH (MODULUS 1, REMAINDER 0);
             INSERT INTO b2.turns SELECT exts.graph_turn_id(n::text) FROM generate_series(1, 5) AS n;
             CREATE TABLE b2.edges (a text, b text);
             INSERT INTO b2.edges SELECT n::text, (n + 1)::text FROM generate_series(1, 4) AS n;
             CREATE SCHEMA fake; GRANT USAGE ON SCHEMA fake TO PUBLIC;
             CREATE FUNCTION fake.s(uuid, text) RETURNS uuid LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM planted.f(); RETURN NULL; END $$;
             CREATE AGGREGATE fake.graph_turn_id(text) (SFUNC = fake.s, STYPE = uuid)",
        )
        .unwrap();
    admin
        .batch_execute(
            r#"SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges', '{"edges": {
                   "parent": {"expression": "graph_turn_id(a)"},
                   "child": {"expression": "graph_turn_id(b)"}, "edge_type": null}}')"#,
        )
        .unwrap();
    let rename = "ALTER SCHEMA exts RENAME TO exts_before; ALTER SCHEMA fake RENAME TO exts";
    // The tables are known to the session, so that it stops at the first statement, before it prepares the second.
    let mut caller = setup.admin();
    caller.batch_execute("SELECT exts.graph_slice(exts.graph_turn_id('1'::text))").unwrap();
    let outcome = stopped_at("turns_1", caller, "SELECT exts.graph_snapshot()", &mut owner, rename);
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert!(!setup.has_caught());
    setup.assert_sound();
}

/// The owner of the extension's schema exchanges it while another makes tables: no trigger function of his gets there.
#[test]
fn made_tables_have_the_extensions_trigger_function() {
    let setup = Setup::empty("schemas_made");
    let mut caller = setup.admin();
    caller
        .batch_execute(&format!(
            "CREATE SCHEMA ext AUTHORIZATION {OWNER}; CREATE EXTENSION graph_kernel SCHEMA ext"
        ))
        .unwrap();
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE SCHEMA fake;
             CREATE FUNCTION fake.graph_content_hash_trigger() RETURNS trigger LANGUAGE plpgsql AS
                 'BEGIN RETURN NEW; END';
             CREATE PROCEDURE fake.swap() LANGUAGE plpgsql AS $$ BEGIN LOOP
                 ALTER SCHEMA ext RENAME TO own; ALTER SCHEMA fake RENAME TO ext; COMMIT;
                 ALTER SCHEMA ext RENAME TO fake; ALTER SCHEMA own RENAME TO ext; COMMIT;
             END LOOP; END $$",
        )
        .unwrap();
    let canceller = owner.cancel_token();
    let swapping = thread::spawn(move || attempt(&mut owner, "CALL fake.swap()"));
    for n in 0..200 {
        let make = format!("CREATE SCHEMA made{n}; SELECT graph_kernel.create_tables('made{n}')");
        attempt(&mut caller, &make);
    }
    while !swapping.is_finished() {
        canceller.cancel_query(postgres::NoTls).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    let found = "SELECT count(*) FILTER (WHERE p.prolang <> 13) || ' of ' || (count(*) > 0)
        FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid WHERE t.tgname = 'content_hash'";
    assert_eq!(crate::setup::text(&mut caller, found), "0 of true");
}
