//! A backend that has called every function that reads a thousand times holds no more after a hundred thousand times.

use crate::Share;
use crate::calls::{FAILING, READING, Size};
use crate::common::database::Database;
use crate::common::process::{backend_pid, private_memory};
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
        "memory: {calls} calls of {} functions and {errors} errors: {before} KiB grew by {grown} KiB after the first {warmed} each",
        READING.len()
    ));
    // Fewer first calls leave more to be remembered for the first time.
    let allowed = if share.is_long { GROWTH } else { 8 * GROWTH };
    assert!(grown <= allowed, "{grown} KiB more:\n{}", growth.join("\n"));
}
