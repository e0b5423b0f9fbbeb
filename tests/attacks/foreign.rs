//! Partitions that are not permanent plain tables: attached after the tables were bound, or while a call runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::process::backend_pid;
use crate::common::variable;
use crate::setup::{Outcome, Setup, attempt};

/// Graph tables with room for another partition, and one that is a file.
fn setup(name: &str) -> Option<Setup> {
    let setup = Setup::new(&format!("foreign_{name}"));
    let mut admin = setup.admin();
    if let Err(error) = admin.batch_execute("CREATE EXTENSION file_fdw") {
        crate::common::tell(&format!("SKIPPED: attacks: no file_fdw: {error}"));
        return None;
    }
    let scratch = variable("GRAPH_KERNEL_SCRATCH");
    let [turns, edges, events] =
        ["turns", "edges", "events"].map(|part| format!("{scratch}/{name}_{part}.csv"));
    let id = |n| format!("00000000-0000-4000-8000-{n:012}");
    write(&turns, &format!("{},other\n", id(900)));
    write(&edges, &format!("{},{},reply,other\n", id(5), id(900)));
    write(&events, "1,1,1,forged,1,1,egress_output,forged\n");
    admin
        .batch_execute(&format!(
            "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
             CREATE TABLE b2.many_turns (LIKE b2.turns) PARTITION BY LIST (session_id);
             ALTER TABLE b2.many_turns ADD UNIQUE (id, session_id);
             CREATE TABLE b2.many_turns_s PARTITION OF b2.many_turns FOR VALUES IN ('s');
             INSERT INTO b2.many_turns SELECT * FROM b2.turns;
             CREATE TABLE b2.many_edges (parent_turn_id uuid, child_turn_id uuid, edge_type text, part text)
                 PARTITION BY LIST (part);
             CREATE TABLE b2.many_edges_s PARTITION OF b2.many_edges FOR VALUES IN ('s');
             INSERT INTO b2.many_edges SELECT parent_turn_id, child_turn_id, edge_type, 's' FROM b2.edges;
             CREATE TABLE b2.many_events (segment_id bigint, ordinal bigint, byte_offset bigint, event_id text,
                 pane_id bigint, occurred_at_ms bigint, event_type text, text text, PRIMARY KEY (segment_id, ordinal))
                 PARTITION BY LIST (segment_id);
             CREATE TABLE b2.many_events_0 PARTITION OF b2.many_events FOR VALUES IN (0);
             INSERT INTO b2.many_events SELECT segment_id, ordinal, byte_offset, event_id, pane_id, occurred_at_ms,
                 event_type, text FROM b2.events;
             CREATE FOREIGN TABLE b2.file_turns (id uuid, session_id text) SERVER files
                 OPTIONS (filename '{turns}', format 'csv');
             CREATE FOREIGN TABLE b2.file_edges (parent_turn_id uuid, child_turn_id uuid, edge_type text, part text)
                 SERVER files OPTIONS (filename '{edges}', format 'csv');
             CREATE FOREIGN TABLE b2.file_events (segment_id bigint NOT NULL, ordinal bigint NOT NULL,
                 byte_offset bigint, event_id text, pane_id bigint, occurred_at_ms bigint, event_type text, text text)
                 SERVER files OPTIONS (filename '{events}', format 'csv');
             CREATE UNLOGGED TABLE b2.unlogged_edges (LIKE b2.many_edges);
             INSERT INTO b2.unlogged_edges SELECT * FROM b2.file_edges;
             SELECT graph_kernel.bind_tables('b2.many_turns', 'b2.many_edges')"
        ))
        .unwrap();
    // A unique index cannot be on a foreign partition: such a table is bound before.
    Some(setup)
}

fn write(file: &str, text: &str) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{file}: {error}"));
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
}

const ATTACH: [&str; 2] = [
    "ALTER TABLE b2.many_edges ATTACH PARTITION b2.file_edges FOR VALUES IN ('other')",
    "ALTER TABLE b2.many_edges ATTACH PARTITION b2.unlogged_edges FOR VALUES IN ('other')",
];

const CALLS: [&str; 5] = [
    "SELECT s -> 'turns', s -> 'edges' FROM graph_slice(turn(5)) AS s",
    "SELECT slice -> 'edges' FROM graph_slices(ARRAY[turn(5), turn(6)]) WHERE error IS NULL",
    "SELECT graph_snapshot()",
    "SELECT * FROM graph_slice_edges(turn(5))",
    "SELECT graph_kernel.turns_in_cycles('default')",
];

#[test]
fn a_partition_attached_after_binding_is_refused() {
    let Some(mut setup) = setup("bound") else { return };
    for attach in ATTACH {
        let mut known = setup.admin();
        for call in CALLS {
            attempt(&mut known, call).answer(call).expect(call);
        }
        let mut admin = setup.admin();
        admin.batch_execute(attach).unwrap();
        for call in CALLS {
            for client in [&mut known, &mut setup.admin()] {
                assert_eq!(attempt(client, call), Outcome::Refused("42809".into()), "{call}");
            }
        }
        let detach = attach.replace("ATTACH", "DETACH").replace("FOR VALUES IN ('other')", "");
        admin.batch_execute(&detach).unwrap();
        attempt(&mut known, CALLS[0]).answer(CALLS[0]).expect("it is as before");
    }
    setup.assert_sound();
}

/// The call waits for a partition that somebody has locked, and meanwhile there is another.
#[test]
fn a_partition_attached_in_the_middle_of_a_call_is_not_read() {
    let Some(mut setup) = setup("middle") else { return };
    let mut faults = Vec::new();
    for attach in ATTACH {
        for call in CALLS {
            for warm in [false, true] {
                for partition in ["many_turns_s", "many_edges_s"] {
                    let mut caller = setup.admin();
                    let rows = attempt(&mut setup.admin(), call).answer(call).expect(call);
                    if warm {
                        attempt(&mut caller, call).answer(call);
                    }
                    let pid = backend_pid(&mut caller);
                    let mut locker = setup.admin();
                    locker
                        .batch_execute(&format!("BEGIN; LOCK TABLE ONLY b2.{partition}"))
                        .unwrap();
                    let running = thread::spawn(move || attempt(&mut caller, call));
                    let waits =
                        "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
                    let mut admin = setup.admin();
                    let give_up = Instant::now() + Duration::from_secs(5);
                    while !running.is_finished()
                        && !admin.query_one(waits, &[&pid]).unwrap().get::<_, bool>(0)
                    {
                        assert!(Instant::now() < give_up, "the call neither waits nor ends");
                        thread::sleep(Duration::from_millis(2));
                    }
                    admin.batch_execute(attach).unwrap();
                    locker.batch_execute("COMMIT").unwrap();
                    let fault = running.join().unwrap().fault(call, &rows);
                    faults.extend(
                        fault.map(|f| format!("{call}\n  {attach}, {partition}, warm {warm}: {f}")),
                    );
                    let detach =
                        attach.replace("ATTACH", "DETACH").replace("FOR VALUES IN ('other')", "");
                    admin.batch_execute(&detach).unwrap();
                }
            }
        }
    }
    crate::setup::assert_none(&faults);
    setup.assert_sound();
}

/// A log without its key on the parent, which a foreign partition could not have.
#[test]
fn a_foreign_partition_of_the_log_is_refused() {
    let Some(mut setup) = setup("log") else { return };
    let mut admin = setup.admin();
    admin.batch_execute("SELECT graph_kernel.bind_recorder_table('b2.many_events')").unwrap();
    let calls = ["SELECT recorder_chunks()", "SELECT recorder_chunks_since(0, 3)"];
    for call in calls {
        attempt(&mut admin, call).answer(call).expect(call);
    }
    admin
        .batch_execute(
            "ALTER TABLE b2.many_events DROP CONSTRAINT many_events_pkey;
             ALTER TABLE b2.many_events ATTACH PARTITION b2.file_events FOR VALUES IN (1)",
        )
        .unwrap();
    for call in calls {
        assert_eq!(attempt(&mut admin, call), Outcome::Refused("42809".into()), "{call}");
    }
    setup.assert_sound();
}
