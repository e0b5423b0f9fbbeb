//! Slices that take long: they end at once when asked to, leave nothing behind, and a batch of
//! them holds one at a time.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::database::Database;
use crate::common::process::{
    backend_pid, cancelled_after, execute, private_memory, timed_out_after,
};
use crate::common::tell;
use postgres::error::SqlState;
use postgres::{Client, Error};

/// How soon a statement must end.
const AT_ONCE: Duration = Duration::from_secs(1);
const TRIES: u32 = 30;

/// A turn with 300 000 children, one of them, and the first turn of a chain of 20 000.
const BIG_GRAPH: &str = "
    INSERT INTO public.memory_turns (id, trajectory_phase, salience_score, created_at)
    SELECT md5('hub ' || i)::uuid,
           (ARRAY['synthesis', 'planning', 'debugging'])[1 + i % 3], (i % 997) / 997.0, now()
    FROM generate_series(0, 300000) AS i
    UNION ALL
    SELECT md5('chain ' || i)::uuid, 'planning', 0.5, now() FROM generate_series(0, 20000) AS i;
    INSERT INTO public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
    SELECT md5('hub 0')::uuid, md5('hub ' || i)::uuid, 'reply' FROM generate_series(1, 300000) AS i
    UNION ALL
    SELECT md5('chain ' || i - 1)::uuid, md5('chain ' || i)::uuid, 'reply'
    FROM generate_series(1, 20000) AS i";

const HUB: &str = "SELECT graph_slice(md5('hub 0')::uuid)";
const CHILD_OF_HUB: &str = "SELECT graph_slice(md5('hub 1')::uuid, 'broad')";
const CHAIN: &str = r#"SELECT graph_slice(md5('chain 0')::uuid,
    '{"max_nodes": 5000, "max_radius": 20000, "distance_decay": 1}')"#;
/// A large export, its proof and the public key.
const KEEP: &str = r#"CREATE TABLE kept AS SELECT slice, graph_proof(slice) AS proof, public_key,
        graph_messages_record(md5('hub 0')::uuid, '{"max_nodes": 10000}') AS record
    FROM graph_slice(md5('hub 0')::uuid, '{"max_nodes": 10000}') AS slice, graph_kernel.proof_keys"#;
const PROOF: &str = "SELECT graph_proof(slice) FROM kept";
const VERIFICATION: &str =
    "SELECT v.* FROM kept, graph_verify_proof(slice, proof, public_key) AS v";
const RECORD: &str = r#"SELECT graph_messages_record(md5('hub 0')::uuid, '{"max_nodes": 10000}')"#;
const SHOW: &str = "SELECT count(*) FROM kept, graph_messages_show(record)";
const RECORD_VERIFICATION: &str = "SELECT v.* FROM kept, graph_verify(record) AS v";
const RECORD_PROOF: &str = "SELECT graph_proof(record) FROM kept";
const BATCH: &str = "SELECT count(s.slice) FROM graph_slices(
    ARRAY(SELECT md5('chain ' || i)::uuid FROM generate_series(0, 20000) AS i)) AS s";
const NULLS: &str = "SELECT count(*) FROM graph_slices(array_fill(NULL::uuid, ARRAY[1000000]))";
/// Slices that share no turns.
const OVERLAPS: &str = r#"SELECT count(*) FROM graph_overlap(
    ARRAY(SELECT md5('hub ' || i)::uuid FROM generate_series(1, 40000) AS i), '{"max_radius": 0}')"#;
const EXPLANATION: &str = "SELECT count(*) FROM graph_slice_explain(md5('hub 1')::uuid)";
const WHY: &str = r#"SELECT * FROM graph_why(md5('chain 0')::uuid, md5('hub 1')::uuid,
    '{"max_radius": 20000}')"#;
const ATLAS: &str = "SELECT graph_atlas(
    ARRAY(SELECT md5('chain ' || i)::uuid FROM generate_series(0, 20000) AS i))";
const ORDINARY: &str = "SELECT graph_slice(md5('chain 100')::uuid)::text";
const SNAPSHOT: &str = "SELECT graph_snapshot()";
const CHECK: &str = "SELECT * FROM graph_check()";

/// The big graph, which stays until the server ends.
fn big_graph() -> &'static Database {
    static DATABASE: OnceLock<Database> = OnceLock::new();
    DATABASE.get_or_init(|| {
        let database = Database::with_loose_tables("cancel");
        let mut client = database.connect();
        client.batch_execute(BIG_GRAPH).unwrap();
        client.batch_execute("VACUUM ANALYZE").unwrap();
        client.batch_execute(KEEP).unwrap();
        database
    })
}

fn assert_code(error: &Error, code: &SqlState) {
    assert_eq!(error.code(), Some(code), "{error:?}");
}

/// Interrupts a statement at moments all over its first 300 ms and checks how soon it ends.
fn assert_ends_at_once(
    how: &str,
    what: &str,
    statement: &str,
    interrupt: impl Fn(&mut Client, &str, Duration) -> Option<Duration>,
) {
    const LATEST: Duration = Duration::from_millis(300);
    let database = big_graph();
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    let ordinary = first_field(&mut client, ORDINARY);
    // The first run also plans and warms; of the others the fastest counts, as a run that takes less
    // time than the one that was measured is not interrupted. What else runs may make all of them slow.
    let mut latest = LATEST;
    for _ in 0..6 {
        let start = Instant::now();
        timed_out_after(&mut client, statement, LATEST);
        latest = latest.min(start.elapsed());
    }
    let mut times = Vec::new();
    for attempt in 1..=TRIES {
        match interrupt(&mut client, statement, latest * attempt / (TRIES + 5)) {
            Some(time) => times.push(time),
            None => latest = latest * 4 / 5,
        }
    }
    times.sort();
    assert!(times.len() >= 10, "{what}: {} runs interrupted", times.len());
    let median = times[times.len() / 2];
    let p99 = times[times.len() * 99 / 100];
    tell(&format!("{how} of {what}: median {median:.1?}, p99 {p99:.1?} of {} runs", times.len()));
    assert!(median <= AT_ONCE, "{how} of {what}: {times:.1?}");
    // The same backend goes on as before, once the last cancel has come.
    execute(&mut client, "SELECT pg_sleep(0.2)");
    assert_eq!(first_field(&mut client, ORDINARY), ordinary);
    assert_eq!(backend_pid(&mut client), pid);
}

fn first_field(client: &mut Client, statement: &str) -> String {
    client.query_one(statement, &[]).unwrap().get(0)
}

#[test]
fn a_cancel_ends_slices_at_once() {
    let cancel = cancelled_after;
    assert_ends_at_once("cancel", "the slice of a hub", HUB, cancel);
    assert_ends_at_once("cancel", "the slice of a hub's child", CHILD_OF_HUB, cancel);
    assert_ends_at_once("cancel", "the slice of a long chain", CHAIN, cancel);
    assert_ends_at_once("cancel", "a batch of slices", BATCH, cancel);
    assert_ends_at_once("cancel", "a batch without anchors", NULLS, cancel);
}

#[test]
fn a_cancel_ends_explanations_at_once() {
    let cancel = cancelled_after;
    assert_ends_at_once("cancel", "the explanation of a hub's child", EXPLANATION, cancel);
    assert_ends_at_once("cancel", "why a turn is not connected", WHY, cancel);
}

#[test]
fn a_cancel_ends_proofs_at_once() {
    assert_ends_at_once("cancel", "the proof of a large slice", PROOF, cancelled_after);
    assert_ends_at_once("cancel", "the check of a large proof", VERIFICATION, cancelled_after);
}

#[test]
fn a_cancel_ends_records_at_once() {
    let cancel = cancelled_after;
    assert_ends_at_once("cancel", "the record of a large prompt", RECORD, cancel);
    assert_ends_at_once("cancel", "showing a large record", SHOW, cancel);
    assert_ends_at_once("cancel", "the check of a large record", RECORD_VERIFICATION, cancel);
    assert_ends_at_once("cancel", "the proof of a large record", RECORD_PROOF, cancel);
}

#[test]
fn a_cancel_ends_the_check_at_once() {
    assert_ends_at_once("cancel", "graph_check", CHECK, cancelled_after);
}

#[test]
fn a_cancel_ends_what_reads_the_whole_graph_at_once() {
    assert_ends_at_once("cancel", "graph_snapshot", SNAPSHOT, cancelled_after);
    assert_ends_at_once("cancel", "graph_atlas", ATLAS, cancelled_after);
    assert_ends_at_once("cancel", "graph_overlap", OVERLAPS, cancelled_after);
}

#[test]
fn a_statement_timeout_ends_slices_at_once() {
    let timeout = timed_out_after;
    assert_ends_at_once("timeout", "the slice of a hub", HUB, timeout);
    assert_ends_at_once("timeout", "the slice of a hub's child", CHILD_OF_HUB, timeout);
    assert_ends_at_once("timeout", "the slice of a long chain", CHAIN, timeout);
    assert_ends_at_once("timeout", "a batch of slices", BATCH, timeout);
}

/// A backend's memory may vary, but not grow with what it reads, which is larger by far.
fn check_growth(what: &str, grown: i64) {
    tell(&format!("{what}: memory grew by {grown} KiB"));
    assert!(grown <= 8 * 1024, "{what}: {grown} KiB more");
}

/// Runs `repeat` again and again, and checks that the backend's memory stays.
fn assert_memory_stays(what: &str, repetitions: u32, mut repeat: impl FnMut(&mut Client, u32)) {
    let database = big_graph();
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    for repetition in 0..40 {
        repeat(&mut client, repetition);
    }
    let before = private_memory(pid);
    for repetition in 0..repetitions {
        repeat(&mut client, repetition);
    }
    check_growth(what, private_memory(pid) - before);
}

#[test]
fn interrupted_slices_leave_no_memory_behind() {
    for (what, statement) in [("hub", HUB), ("hub's child", CHILD_OF_HUB), ("chain", CHAIN)] {
        let what = format!("200 timeouts of the slice of a {what}");
        assert_memory_stays(&what, 200, |client, repetition| {
            let allowed = Duration::from_millis(u64::from(5 + repetition % 30));
            timed_out_after(client, statement, allowed);
        });
    }
}

#[test]
fn slices_and_errors_leave_no_memory_behind() {
    assert_memory_stays("200 slices", 200, |client, repetition| {
        let statement =
            format!("SELECT graph_slice(md5('chain ' || {repetition} * 50 + 500)::uuid)");
        client.batch_execute(&statement).unwrap();
    });
    assert_memory_stays("10000 missing anchors", 200, |client, _| {
        let batch = "SELECT count(*) FROM graph_slices(array_fill(gen_random_uuid(), ARRAY[50]))";
        client.batch_execute(batch).unwrap();
        let missing = client.batch_execute("SELECT graph_slice(gen_random_uuid())");
        assert_code(&missing.unwrap_err(), &SqlState::NO_DATA);
    });
}

/// A statement that names 20 000 slices of 200 KB each.
const LARGE_BATCH: &str = r#"SELECT graph_slices(
    ARRAY(SELECT md5('chain ' || i)::uuid FROM generate_series(0, 19999) AS i),
    '{"max_nodes": 500, "max_radius": 20000, "distance_decay": 1}')"#;

#[test]
fn a_batch_in_the_select_list_holds_one_slice_at_a_time() {
    let database = big_graph();
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    // Were the batch not streamed, its first slice would come much later.
    let few = format!("SET statement_timeout = '60s'; {LARGE_BATCH} LIMIT 3");
    client.batch_execute(&few).unwrap();
    let before = private_memory(pid);
    client.batch_execute(&format!("BEGIN; DECLARE slices CURSOR FOR {LARGE_BATCH}")).unwrap();
    for _ in 0..6 {
        client.batch_execute("MOVE 10 FROM slices").unwrap();
        check_growth("a batch in the select list", private_memory(pid) - before);
    }
}

#[test]
fn overlaps_are_streamed_and_no_pair_is_held() {
    // 1500 slices of 128 turns each along a chain: each overlaps with the 127 next ones, as with
    // those before.
    let statement = r#"SELECT graph_overlap(
        ARRAY(SELECT md5('chain ' || i)::uuid FROM generate_series(1000, 2499) AS i),
        '{"max_nodes": 128, "max_radius": 128, "distance_decay": 1}')"#;
    let database = big_graph();
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    client.batch_execute(&format!("BEGIN; DECLARE pairs CURSOR FOR {statement}")).unwrap();
    client.batch_execute("MOVE 1 FROM pairs").unwrap();
    let before = private_memory(pid);
    let moved = client.execute("MOVE ALL FROM pairs", &[]).unwrap();
    assert!(moved > 150_000, "{moved} pairs");
    check_growth(&format!("{moved} overlaps"), private_memory(pid) - before);
}

#[test]
fn a_batch_in_the_from_clause_spools_to_disk() {
    let statement = r#"SELECT count(s.slice) FROM graph_slices(
        ARRAY(SELECT md5('chain ' || i)::uuid FROM generate_series(1, 50) AS i),
        '{"max_nodes": 500, "max_radius": 20000, "distance_decay": 1}') AS s"#;
    let database = big_graph();
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    client.batch_execute("SET work_mem = '1MB'").unwrap();
    client.batch_execute(ORDINARY).unwrap();
    let before = private_memory(pid);
    let most = thread::scope(|scope| {
        let batch = scope.spawn(|| client.batch_execute(statement).unwrap());
        let mut most = before;
        while !batch.is_finished() {
            most = most.max(private_memory(pid));
            thread::sleep(Duration::from_millis(5));
        }
        most
    });
    check_growth("a batch in the from clause", most - before);
}

#[test]
fn ending_a_backend_in_a_slice_ends_no_other() {
    let database = big_graph();
    let mut witness = database.connect();
    let witness_pid = backend_pid(&mut witness);
    // A crash would end the witness and the checkpointer too.
    let checkpointer = "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
    let checkpointer_pid = first_field(&mut witness, checkpointer);
    for statement in [HUB, CHAIN, BATCH, HUB] {
        let mut client = database.connect();
        let pid = backend_pid(&mut client);
        // Again and again: one slice may take less time than passes until it is ended.
        let slicing =
            format!("DO $do$ BEGIN LOOP PERFORM * FROM ({statement}) AS s; END LOOP; END $do$");
        let slicing = thread::spawn(move || client.batch_execute(&slicing));
        thread::sleep(Duration::from_millis(50));
        witness.execute("SELECT pg_terminate_backend($1, 10000)", &[&pid]).unwrap();
        let error = slicing.join().unwrap().unwrap_err();
        // The client library does not always read what came before the end of the connection.
        if let Some(code) = error.code() {
            assert_eq!(code, &SqlState::ADMIN_SHUTDOWN, "{error:?}");
        }
        let alive = format!("SELECT count(*)::text FROM pg_stat_activity WHERE pid = {pid}");
        assert_eq!(first_field(&mut witness, &alive), "0", "{statement}");
    }
    assert_eq!(backend_pid(&mut witness), witness_pid);
    assert_eq!(first_field(&mut witness, checkpointer), checkpointer_pid);
}
