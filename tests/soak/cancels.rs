//! Whatever takes longer than a moment ends at once when it is cancelled, at any moment, and leaves nothing behind.

use std::time::{Duration, Instant};

use postgres::Client;

use crate::Share;
use crate::calls::{ORDINARY, READING, Size};
use crate::common::database::Database;
use crate::common::process::{
    assert_cancelled, backend_pid, cancelled_after, execute, private_memory, timed_out_after,
};
use crate::common::tell;

const LARGE: Size = Size {
    turns: 20_000,
    events: 20_000,
    policy: r#"{"max_nodes": 1000, "max_radius": 1000, "distance_decay": 1}"#,
    anchors: 300,
};

/// What is done to functions that write.
const WRITING: [&str; 4] = [
    "CALL graph_kernel.backfill_content_hashes(500)",
    "INSERT INTO promoted SELECT slice, ARRAY[turn(50)] FROM kept, generate_series(1, 20)",
    "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')",
    "SELECT graph_policy_register(format('{\"max_nodes\": %s}', 1 + floor(random() * 10000))::slice_policy)",
];

/// What makes the writing functions do their work again, far from the turns that are sliced.
const RENEW: &str = "
    UPDATE memory_turns SET content_hash = NULL WHERE created_at > to_timestamp(1000010000);
    TRUNCATE promoted";

/// A statement that is faster cannot be met by a cancel.
const SHORTEST: Duration = Duration::from_millis(1);
/// How soon nearly all must end, on an idle machine.
const P99: Duration = Duration::from_millis(50);
/// How much more memory a backend may have afterwards, in KiB.
const GROWTH: i64 = 8 * 1024;

/// A statement and how long it takes.
struct Slow {
    statement: String,
    takes: Duration,
}

fn slow_statements(client: &mut Client) -> Vec<Slow> {
    let statements = READING.iter().chain(&WRITING).map(|statement| LARGE.fill(statement));
    let mut slow = Vec::new();
    for statement in statements {
        let takes = (0..3).map(|_| {
            if statement.starts_with("CALL") {
                client.batch_execute(RENEW).unwrap();
            }
            let start = Instant::now();
            client
                .batch_execute(&statement)
                .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
            start.elapsed()
        });
        let takes = takes.min().unwrap();
        if takes >= SHORTEST {
            slow.push(Slow { statement, takes });
        }
    }
    slow
}

/// What the backend answers, once more where a cancel of the statement before came too late for that one.
fn answer(client: &mut Client) -> String {
    let row = client.query_one(ORDINARY, &[]).or_else(|error| {
        assert_cancelled(&error);
        client.query_one(ORDINARY, &[])
    });
    row.unwrap().get(0)
}

#[test]
fn every_slow_statement_ends_at_once_and_leaves_nothing_behind() {
    let share = Share::begin(8);
    let database = Database::empty("soak_cancels");
    let mut client = database.connect();
    LARGE.set_up(&mut client);
    // All that changes what a slice of the first turns contains comes before the first slice.
    for statement in [
        "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')",
        "CALL graph_kernel.backfill_content_hashes()",
        "CREATE TABLE promoted (slice json, turns uuid[]);
         CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON promoted
             NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns', 'no_rls')",
        RENEW,
    ] {
        client.batch_execute(statement).unwrap();
    }
    LARGE.keep(&mut client);
    let mut client = database.connect();
    client.batch_execute("SET client_min_messages = error").unwrap();
    let pid = backend_pid(&mut client);
    let slow = slow_statements(&mut client);
    let ordinary = answer(&mut client);

    let (mut cancelled, mut timed_out) = (Vec::new(), Vec::new());
    let mut before = None;
    let mut rounds = 0;
    // One round of each way at least.
    while rounds < 2 || !share.is_over() {
        for (number, Slow { statement, takes }) in slow.iter().enumerate() {
            let moment = takes.mul_f64(fastrand::f64());
            // In turn by both ways: in the next round by the other.
            let (times, ended) = if (number + rounds) % 2 == 0 {
                (&mut cancelled, cancelled_after(&mut client, statement, moment))
            } else {
                (&mut timed_out, timed_out_after(&mut client, statement, moment))
            };
            times.extend(ended.map(|time| (time, statement)));
            assert!(answer(&mut client) == ordinary, "another answer after {statement}");
            if share.is_over() && rounds >= 2 {
                break;
            }
        }
        rounds += 1;
        execute(&mut client, RENEW);
        if rounds == 2 {
            before = Some(private_memory(pid));
        }
    }
    let grown = private_memory(pid) - before.expect("there were two rounds");
    assert_eq!(backend_pid(&mut client), pid);
    let mut worst = Duration::ZERO;
    for (how, times) in [("cancels", &mut cancelled), ("timeouts", &mut timed_out)] {
        times.sort();
        let Some((most, statement)) = times.last() else {
            panic!("no statement was met by {how}");
        };
        let [median, p99] = [50, 99].map(|part| times[times.len() * part / 100].0);
        worst = worst.max(p99);
        tell(&format!(
            "cancels: {} {how} of {} statements: median {median:.1?}, p99 {p99:.1?}, most {most:.1?} in {}",
            times.len(),
            slow.len(),
            &statement[..statement.len().min(60)]
        ));
    }
    tell(&format!("cancels: memory grew by {grown} KiB in {} rounds", rounds - 2));
    assert!(grown <= GROWTH, "{grown} KiB");
    if share.is_long {
        assert!(worst <= P99, "p99 is {worst:.1?}");
    }
}
