//! Each allocation of a call fails once: the call gives what it always gives, or an error; the backend stays, and gives
//! the same right after. Where an allocation fails for good, the session ends, and no other. Needs a build of the
//! extension with the feature `failing_allocations`.

use crate::alone;
use crate::common::database::Database;
use crate::common::process::backend_pid;
use crate::common::shortage::answer;
use crate::common::tell;
use postgres::Client;

/// Of the allocations of a backend's first call, one in so many fails.
const STEP: usize = 7;

/// Turns with branches, with calls and results of tools, and a log of events.
const SET_UP: &str = "
    CREATE FUNCTION turn(n int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5('turn ' || n)::uuid;
    SELECT graph_kernel.create_recorder_table();
    INSERT INTO memory_turns (id, session_id, role, trajectory_phase, salience_score, created_at, content_text)
    SELECT turn(n), 's' || n / 50, (ARRAY['user', 'assistant', 'tool'])[1 + n % 3],
           (ARRAY['synthesis', 'planning', 'debugging'])[1 + n % 3], (n % 97) / 97.0, to_timestamp(1000000000 + n), \
           'content'
      FROM generate_series(1, 200) AS n;
    INSERT INTO memory_turn_edges
    SELECT turn(greatest(1, n - 1 - n * 7 % 20)), turn(n), (ARRAY['reply', 'branch'])[1 + n % 2]
      FROM generate_series(2, 200) AS n;
    INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, occurred_at_ms, event_type, text)
    SELECT 0, i, i, 'e' || i, 1, i * 1000, 'egress_output', repeat('x', 20 + i % 100) FROM generate_series(0, 20) AS i";

/// What is signed is of a transaction that has changed nothing before.
const KEEP: &str = "
    CREATE TABLE kept AS SELECT graph_slice(turn(50), 'focused') AS slice,
        graph_messages_record(turn(50), 'focused') AS record";

const CALLS: [&str; 11] = [
    "SELECT graph_slice(turn(50), 'focused')::text",
    "SELECT graph_slice(turn(50), '{\"version\": \"slice_policy_v2\", \"max_nodes\": 40, \"max_tokens\": 2000,
         \"keep_tool_results\": true, \"same_session\": true}')::text",
    "SELECT string_agg(slice::text, ' ') FROM graph_slices(ARRAY[turn(50), turn(51), turn(-1)], 'focused')",
    "SELECT reason FROM kept, graph_verify(slice)",
    "SELECT string_agg(check_name || ok, ' ') FROM kept, graph_verify_explain(slice)",
    "SELECT graph_messages_record(turn(50), 'focused')::text",
    "SELECT string_agg(state || content, ' ') FROM kept, graph_messages_show(record)",
    "SELECT string_agg(chunk_id, ' ') FROM recorder_chunks('{\"max_chunk_chars\": 40}')",
    "SELECT graph_atlas(ARRAY[turn(50), turn(60)], 'focused')::text",
    "SELECT string_agg(turn_id || reason, ' ') FROM graph_slice_explain(turn(50), 'focused')",
    "SELECT graph_slice(turn(-1))::text",
];

#[test]
fn each_allocation_may_fail() {
    let _alone = alone();
    let database = Database::with_tables("allocations");
    database.connect().batch_execute(SET_UP).unwrap();
    database.connect().batch_execute(KEEP).unwrap();
    for call in CALLS {
        let mut client = database.connect();
        let expected = answer(&mut client, call);
        let is_known =
            expected.as_ref().err().is_none_or(|error| error == "02000 ANCHOR_NOT_FOUND");
        assert!(is_known, "{expected:?}: {call}");
        let mut counts = [0, 0];
        let mut fails = |client: &mut Client, n: usize| {
            let pid = backend_pid(client);
            client.batch_execute(&format!("SET graph_kernel.failing_allocation = {n}")).unwrap();
            let given = answer(client, call);
            // What is left of the count: nothing where the call made so many allocations.
            let left: String =
                client.query_one("SHOW graph_kernel.failing_allocation", &[]).unwrap().get(0);
            client.batch_execute("SET graph_kernel.failing_allocation = 0").unwrap();
            if given != expected {
                assert_eq!(given, Err("53200 OUT_OF_MEMORY".to_owned()), "{n} of {call}");
                counts[1] += 1;
            }
            assert_eq!(answer(client, call), expected, "after {n} of {call}");
            assert_eq!(backend_pid(client), pid, "{n} of {call}");
            counts[0] += 1;
            left == "0"
        };
        let later = (1..).find(|n| !fails(&mut client, *n));
        // The first call in a backend makes what it keeps for the next. A backend for each allocation takes long.
        let first = (1..).step_by(STEP).find(|n| {
            let mut client = database.connect();
            client.batch_execute("SELECT graph_kernel_version()").unwrap();
            !fails(&mut client, *n)
        });
        let [tried, errors] = counts;
        tell(&format!(
            "{tried} failing allocations of {} ({} in the first call), {errors} errors: {call}",
            later.unwrap_or_default(),
            first.unwrap_or_default(),
        ));
        assert!(errors > 0, "{call}");
    }
}

#[test]
fn where_even_the_reserve_does_not_help_one_session_ends() {
    let _alone = alone();
    let database = Database::with_tables("last_allocations");
    let mut witness = database.connect();
    witness.batch_execute(SET_UP).unwrap();
    witness.batch_execute(KEEP).unwrap();
    for call in CALLS {
        let expected = answer(&mut witness, call);
        let ended = (1..).step_by(STEP).take_while(|n| {
            let mut client = database.connect();
            client
                .batch_execute(&format!(
                    "SELECT graph_kernel_version(); SET graph_kernel.failing_allocation = -{n}"
                ))
                .unwrap();
            let given = client.query_one(call, &[]);
            // A client may miss the message where it was about to send.
            if let Some(error) = given.as_ref().err().and_then(|error| error.as_db_error())
                && error.severity() == "FATAL"
            {
                assert_eq!((error.code().code(), error.detail()), ("53200", Some("OUT_OF_MEMORY")));
            }
            client.batch_execute("SELECT").is_err()
        });
        let ended = ended.count();
        tell(&format!("{ended} sessions ended: {call}"));
        assert!(ended > 0, "{call}");
        // In the session that has seen them all: a server that restarts ends it.
        assert_eq!(answer(&mut witness, call), expected, "{call}");
    }
}
