//! Calls where a process may take little more memory, in each small amount: an error of the server's own within a call,
//! which there is no memory to copy, ends nothing but the call or its session.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::common::process::{backend_pid, limit_address_space};
use crate::common::tell;
use postgres::Client;
use postgres::error::SqlState;

const CALLS: [&str; 8] = [
    "SELECT length(graph_slice(id)::text)::text FROM anchor",
    "SELECT count(*)::text FROM anchor, graph_slice_turns(id)",
    "SELECT count(s.error)::text FROM graph_slices((SELECT array_fill(id, ARRAY[50]) FROM anchor)) AS s",
    "SELECT count(*)::text FROM anchor, graph_slice_explain(id)",
    "SELECT reason FROM exports, graph_verify(j)",
    "SELECT count(*)::text FROM events, recorder_chunk_events(j)",
    "SELECT length(graph_atlas(ARRAY[id])::text)::text FROM anchor",
    "SELECT count(*)::text FROM exports, graph_verify_explain(j)",
];

const PRELOADED: &str = "shared_preload_libraries = 'graph_kernel'";

/// A server with a graph of 400 turns.
fn started(configuration: &str) -> Cluster {
    let cluster = Cluster::start(configuration);
    cluster.client().batch_execute("CREATE DATABASE notes").unwrap();
    client(&cluster)
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             SELECT graph_kernel.create_tables();
             CREATE FUNCTION turn(n int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5('turn ' || n)::uuid;
             CREATE TABLE anchor AS SELECT turn(1) AS id;
             INSERT INTO memory_turns (id, content_text) SELECT turn(n), 'x' FROM generate_series(1, 400) AS n;
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id)
                 SELECT turn(greatest(1, n / 5)), turn(n) FROM generate_series(2, 400) AS n;
             CREATE TABLE events AS SELECT jsonb_agg(jsonb_build_object(
                 'segment_id', 0, 'ordinal', i, 'byte_offset', 0, 'event_id', 'e', 'pane_id', 1, 'occurred_at_ms', 0,
                 'event_type', 'egress_output', 'text', 'x')) AS j FROM generate_series(1, 2000) AS i;
             CREATE TABLE exports AS SELECT graph_slice(id) AS j FROM anchor;
             ANALYZE",
        )
        .unwrap();
    cluster
}

fn client(cluster: &Cluster) -> Client {
    let mut client = cluster.client_of("postgres", "notes");
    // The compiler of expressions is a library of its own, and large.
    client.batch_execute("SET jit = off").unwrap();
    client
}

/// What calls gave: answers by "ok", errors by severity, SQLSTATE and message.
type Given = BTreeMap<String, u32>;

/// Makes a call, whose answer is the expected one where it gives any. False where the session is over.
fn call(client: &mut Client, statement: &str, expected: &str, given: &mut Given) -> bool {
    let (word, goes_on) = match client.query_one(statement, &[]) {
        Ok(row) => {
            assert_eq!(row.get::<_, &str>(0), expected, "{statement}");
            ("ok".to_owned(), true)
        }
        Err(error) => {
            // A client that is still sending may miss why its session was ended.
            let (severity, code) = match error.as_db_error() {
                Some(server) => (server.severity(), server.code().code()),
                None if error.is_closed() => ("closed", "53200"),
                None => panic!("{error:?}: {statement}"),
            };
            // The second: the library could not be loaded.
            assert!(["53200", "58P01"].contains(&code), "{error:?}: {statement}");
            (format!("{severity} {code}"), severity == "ERROR")
        }
    };
    *given.entry(word).or_default() += 1;
    goes_on
}

/// Fills the memory that is left with settings: any role may.
fn fill(client: &mut Client, round: i32) {
    for n in 0..60 {
        let size = 4_194_304 >> (n / 5);
        let setting =
            format!("SELECT set_config('filling.a{round}_{n}', repeat('x', {size}), false)");
        if let Err(error) = client.batch_execute(&setting) {
            assert_eq!(error.code(), Some(&SqlState::OUT_OF_MEMORY), "{error:?}");
        }
    }
}

/// Makes each call twice in sessions of their own with each of these numbers of KiB left. Where the session is to fill
/// its memory, three times: what a call has used up is then missing in the next.
fn sweep(cluster: &Cluster, is_filled: bool, left: impl Iterator<Item = i64> + Clone) {
    let mut watch = client(cluster);
    for statement in CALLS {
        let expected: String = client(cluster).query_one(statement, &[]).unwrap().get(0);
        let mut given = Given::new();
        for left in left.clone() {
            let mut client = client(cluster);
            let pid = backend_pid(&mut client);
            limit_address_space(pid, Some(left));
            for round in 0..if is_filled { 3 } else { 2 } {
                if is_filled {
                    fill(&mut client, round);
                }
                if !call(&mut client, statement, &expected, &mut given) {
                    break;
                }
            }
            // An error where the server has ended all sessions.
            watch.batch_execute("SELECT").unwrap_or_else(|error| {
                let log = String::from_utf8_lossy(&cluster.log()).into_owned();
                panic!("{error:?}: {statement} with {left} KiB\n{log}")
            });
        }
        tell(&format!("{statement}: {given:?}"));
    }
}

#[test]
fn a_first_call_with_little_memory_ends_no_other_session() {
    sweep(&started(""), false, (6000..14000).step_by(100));
}

#[test]
fn nor_does_one_of_a_preloaded_library() {
    sweep(&started(PRELOADED), false, (0..3200).step_by(40));
}

#[test]
fn nor_does_one_after_a_session_has_filled_its_memory() {
    sweep(&started(PRELOADED), true, (4000..12000).step_by(800));
}

/// A policy that raises errors of many megabytes.
const RAISING: &str = "
    CREATE ROLE plain LOGIN;
    GRANT SELECT ON memory_turns, memory_turn_edges, anchor TO plain;
    CREATE FUNCTION raising() RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE s text := repeat('x', 5000000);
        BEGIN RAISE '%', s USING DETAIL = s, HINT = s, COLUMN = s, CONSTRAINT = s, TABLE = s, SCHEMA = s; END $$;
    CREATE FUNCTION is_shown() RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT public.raising()';
    CREATE POLICY raising ON memory_turns USING (is_shown());
    ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY";

#[test]
fn nor_does_an_error_that_is_too_large_to_copy() {
    let cluster = started(PRELOADED);
    let mut watch = client(&cluster);
    watch.batch_execute(RAISING).unwrap();
    let mut given = Given::new();
    for mib in (60..140).step_by(4) {
        let mut plain = cluster.client_of("plain", "notes");
        let pid = backend_pid(&mut plain);
        limit_address_space(pid, Some(1024 * mib));
        let error = plain.query_one(CALLS[0], &[]).unwrap_err();
        let word = error.as_db_error().map_or("closed".to_owned(), |server| {
            format!("{} {}", server.severity(), server.code().code())
        });
        assert!(!word.contains("XX000"), "{error:?}");
        *given.entry(word).or_default() += 1;
        watch.batch_execute("SELECT").unwrap_or_else(|error| panic!("{error:?}: {mib} MiB"));
    }
    tell(&format!("errors of 35 MB: {given:?}"));
}

/// Errors of the library's own, which any role can raise, while a session takes the last memory bit by bit. The first
/// columns fill what the statement has of it.
#[test]
fn nor_does_an_error_that_there_is_no_memory_to_raise() {
    let cluster = started(PRELOADED);
    let mut watch = client(&cluster);
    let mut given = Given::new();
    for (filled, bytes) in [("200, 200", 500), ("200, 100", 250), ("200", 350), ("200, 60", 500)] {
        let mut client = client(&cluster);
        let lengths = format!("4000, 2000, 1000, {filled}").replace(", ", ")), length(repeat($1, ");
        client
            .batch_execute(&format!(
                "SET plan_cache_mode = force_generic_plan;
                 PREPARE raising (text) AS SELECT length(repeat($1, {lengths})), repeat($1, 10)::slice_policy;
                 PREPARE fill (text) AS SELECT set_config($1, repeat('f', {bytes}), false)"
            ))
            .unwrap();
        let mut raise = |client: &mut Client| {
            let error = client.batch_execute("EXECUTE raising('x')").unwrap_err();
            let word = error.as_db_error().map_or("closed".to_owned(), |server| {
                format!("{} {}", server.severity(), server.code().code())
            });
            let goes_on = word.starts_with("ERROR");
            *given.entry(word).or_default() += 1;
            goes_on
        };
        (0..3).for_each(|_| _ = raise(&mut client));
        let pid = backend_pid(&mut client);
        limit_address_space(pid, Some(0));
        for n in 0..300 {
            // An error where there is no memory for it either.
            client.batch_execute(&format!("EXECUTE fill('filling.a{n}')")).ok();
            if !raise(&mut client) {
                break;
            }
        }
        watch.batch_execute("SELECT").unwrap_or_else(|error| {
            panic!("{error:?}\n{}", String::from_utf8_lossy(&cluster.log()))
        });
    }
    tell(&format!("errors of policies: {given:?}"));
}
