//! A backend that has called every function that reads a thousand times holds no more after a hundred thousand times.

use crate::Share;
use crate::calls::{FAILING, READING, Size};
use crate::common::database::Database;
use crate::common::export::EXPORT;
use crate::common::process::{backend_pid, private_memory};
use crate::common::shortage::Shortage;
use crate::common::tell;

const SIZE: Size = Size { turns: 1_000, events: 100, policy: "focused", anchors: 5 };

/// How much a backend's memory may grow, in KiB.
const GROWTH: i64 = 1024;

/// The calls of a statement that are made before memory is measured, and those that are made at most.
const FIRST: u32 = 1_000;
const MOST: u32 = 100_000;

/// So many calls are made by one statement, in turn with calls that are statements of their own.
const LOOP: u32 = 50;

/// Calls one statement again and again, as a client does and within PL/pgSQL.
struct Caller {
    alone: String,
    in_loop: String,
    fails: bool,
}

impl Caller {
    fn new(statement: &str, fails: bool) -> Self {
        let alone = SIZE.fill(statement);
        let call = format!("PERFORM * FROM ({alone}) AS s");
        let call = if fails {
            format!(
                "BEGIN {call}; RAISE assert_failure USING MESSAGE = 'no error'; EXCEPTION WHEN OTHERS THEN END"
            )
        } else {
            call
        };
        let in_loop = format!("DO $do$ BEGIN FOR i IN 1..{LOOP} LOOP {call}; END LOOP; END $do$");
        Caller { alone, in_loop, fails }
    }

    /// At most so many calls, fewer when the time is over; how many.
    fn call(&self, client: &mut postgres::Client, most: u32, share: Share) -> u32 {
        let mut calls = 0;
        while calls < most && (calls == 0 || !share.is_over()) {
            for _ in 0..LOOP / 10 {
                let result = client.batch_execute(&self.alone);
                assert_eq!(result.is_err(), self.fails, "{}: {result:?}", self.alone);
            }
            client
                .batch_execute(&self.in_loop)
                .unwrap_or_else(|error| panic!("{}: {error:?}", self.in_loop));
            calls += LOOP + LOOP / 10;
        }
        calls
    }
}

#[test]
fn calls_and_errors_leave_no_memory_behind() {
    let share = Share::begin(8);
    let database = Database::empty("soak_memory");
    let mut client = database.connect();
    SIZE.set_up(&mut client);
    SIZE.keep(&mut client);
    let mut client = database.connect();
    client.batch_execute("SET client_min_messages = error").unwrap();
    let pid = backend_pid(&mut client);
    let reading = READING.iter().map(|statement| Caller::new(statement, false));
    let failing = FAILING.iter().map(|statement| Caller::new(statement, true));
    let callers: Vec<Caller> = reading.chain(failing).collect();

    // Warming takes a third of the time where the machine is slow or the time is short.
    let first = share.part(3);
    let mut warmed = u32::MAX;
    for (caller, left) in callers.iter().zip((1..=callers.len() as u32).rev()) {
        warmed = warmed.min(caller.call(&mut client, FIRST, first.part(left)));
    }
    let before = private_memory(pid);
    let (mut calls, mut errors, mut growth) = (0, 0, Vec::new());
    let mut last = before;
    for (caller, left) in callers.iter().zip((1..=callers.len() as u32).rev()) {
        let made = caller.call(&mut client, MOST, share.part(left));
        *(if caller.fails { &mut errors } else { &mut calls }) += made;
        let now = private_memory(pid);
        if now > last {
            growth.push(format!("{} KiB in {made} of {}", now - last, caller.alone));
        }
        last = now;
    }
    let grown = private_memory(pid) - before;
    tell(&format!(
        "memory: {calls} calls of {} functions and {errors} errors: {before} KiB grew by {grown} KiB after the first \
        {warmed} each",
        READING.len()
    ));
    // Fewer first calls leave more to be remembered for the first time.
    let allowed = if share.is_long { GROWTH } else { 8 * GROWTH };
    assert!(grown <= allowed, "{grown} KiB more:\n{}", growth.join("\n"));
}

/// Inputs, and a graph with a hub: `{edges}` and `{anchors}` are how many there are.
const HOSTILE: [&str; 6] = [
    "CREATE FUNCTION turn(n int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5('turn ' || n)::uuid",
    "SELECT graph_kernel.create_recorder_table()",
    "INSERT INTO memory_turns (id, salience_score, created_at)
     SELECT turn(n), (n % 97) / 97.0, to_timestamp(1000000000 + n) FROM generate_series(1, {edges} + 1) AS n",
    "INSERT INTO memory_turn_edges SELECT turn(1), turn(n), 'reply' FROM generate_series(2, {edges} + 1) AS n",
    "INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, occurred_at_ms, event_type, text)
     SELECT 0, i, i, 'e' || i, 1, i * 1000, 'egress_output', repeat('x', {edges} / 40) FROM generate_series(1, 4) AS i",
    "CREATE TABLE ids AS SELECT array_agg(turn(n)) AS j FROM generate_series(1, {anchors}) AS n",
];

const HOSTILE_CALLS: [&str; 12] = [
    "SELECT length(graph_slice(turn(1), '{\"max_nodes\": 10000}')::text)::text",
    "SELECT length(graph_slice(turn(2), '{\"version\": \"slice_policy_v2\", \"max_nodes\": 10000, \
    \"max_tokens\": 90000000,
         \"edge_weights\": {\"reply\": 0.5}}')::text)::text",
    "SELECT length(graph_slice(turn(2), '{\"version\": \"slice_policy_v2\", \
    \"keep_tool_results\": true}')::text)::text",
    "SELECT count(*)::text FROM graph_slice_explain(turn(1))",
    "SELECT graph_snapshot() ->> 'snapshot_id'",
    "SELECT detail FROM graph_check() WHERE check_name = 'cycles'",
    "SELECT count(slice)::text FROM ids, graph_slices(j, '{\"max_radius\": 0}')",
    "SELECT md5(graph_atlas(j[:10000], '{\"max_radius\": 0}')::text) FROM ids",
    "SELECT sum(slice_count)::text FROM ids, graph_influence(j, '{\"max_radius\": 0}')",
    "SELECT count(*)::text FROM recorder_chunks('{\"max_chunk_chars\": 1}')",
    "SELECT reason FROM given, graph_verify(j)",
    "SELECT length(graph_export_draw(j, 'dot'))::text FROM given",
];

#[test]
fn hostile_sizes_are_errors_at_most() {
    let share = Share::begin(8);
    // Making ten million takes minutes.
    let (edges, anchors, turns) = match share.left().as_secs() {
        1200.. => (10_000_000, 1_000_000, 14_000),
        120.. => (1_000_000, 1_000_000, 14_000),
        _ => (50_000, 20_000, 2_000),
    };
    let database = Database::with_loose_tables("soak_shortage");
    let mut client = database.connect();
    for statement in HOSTILE {
        let statement = statement.replace("{edges}", &edges.to_string());
        client.batch_execute(&statement.replace("{anchors}", &anchors.to_string())).unwrap();
    }
    client.batch_execute(&EXPORT.replace("{}", &turns.to_string())).unwrap();
    client.batch_execute("VACUUM ANALYZE").unwrap();
    let mut shortage = Shortage::default();
    for (call, left) in HOSTILE_CALLS.iter().zip((1..=HOSTILE_CALLS.len() as u32).rev()) {
        let part = share.part(left);
        // For as long as there is time.
        for (n, mib) in [64, 16, 128, 4, 256, 32, 8, 96, 192, 48].into_iter().enumerate() {
            if n == 0 || !part.is_over() {
                shortage.call(&database, call, &[mib]);
            }
        }
    }
    tell(&format!("little memory: {edges} edges, {anchors} anchors: {shortage:?}"));
    assert!(shortage.answers > 0 && shortage.errors > 0, "{shortage:?}");
}
