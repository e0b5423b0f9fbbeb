//! A row security policy's function changes the tables in the middle of a call, as their owner.

use postgres::Client;

use crate::setup::{GRAPH_CALLS, LOG_CALLS, Outcome, POLICIES, Setup, assert_none, attempt};

/// At which of the policies' calls it acts.
const CALL_NUMBERS: [u32; 5] = [1, 2, 4, 9, 20];

/// Gives a column's name to another column.
fn take_place(table: &str, column: &str, other: &str) -> String {
    format!(
        "ALTER TABLE b2.{table} RENAME COLUMN {column} TO aside;
         ALTER TABLE b2.{table} RENAME COLUMN {other} TO {column}"
    )
}

/// Puts a column of another type in a column's place.
fn replace(table: &str, column: &str, definition: &str) -> String {
    format!(
        "ALTER TABLE b2.{table} RENAME COLUMN {column} TO aside;
         ALTER TABLE b2.{table} ADD COLUMN {column} {definition}"
    )
}

/// Whatever is done at each of these policy calls: the call answers as if nothing was done, or with an error.
fn change_during_calls(name: &str, calls: &[&str], actions: &[String]) {
    let mut setup = Setup::new(name);
    let mut owner = setup.owner();
    owner.batch_execute(POLICIES).unwrap();
    let mut faults = Vec::new();
    let answers: Vec<_> = calls
        .iter()
        .map(|call| match attempt(&mut setup.reader(), call) {
            Outcome::Answer(rows) => rows,
            other => panic!("{call}: {other:?}"),
        })
        .collect();
    for (call, rows) in calls.iter().zip(&answers) {
        for action in actions {
            let (mut admin, mut reader) = (setup.admin(), setup.reader());
            for call_number in CALL_NUMBERS {
                prepare(&mut admin, call_number, action);
                reader.batch_execute("BEGIN").unwrap();
                if let Some(fault) = attempt(&mut reader, call).fault(call, rows) {
                    faults.push(format!("{call}\n  with {action} at {call_number}: {fault}"));
                    break;
                }
                reader.batch_execute("ROLLBACK").unwrap();
                // Later calls of policies may lie behind the call's end.
                if call_number == CALL_NUMBERS[0] && policy_calls(&mut admin) == 0 {
                    faults.push(format!("{call}\n  with {action}: no policy was called"));
                }
            }
        }
    }
    assert_none(&faults);
    setup.assert_sound();
}

/// How often the policies' function was called since [`prepare`].
fn policy_calls(admin: &mut Client) -> i64 {
    let calls = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM planted.calls";
    admin.query_one(calls, &[]).unwrap().get(0)
}

/// Has an action done at this policy call of the next call.
fn prepare(admin: &mut Client, call_number: u32, action: &str) {
    let prepare = format!(
        "DELETE FROM planted.actions; INSERT INTO planted.actions VALUES ({call_number}, $action${action}$action$);
         SELECT setval('planted.calls', 1, false)"
    );
    admin.batch_execute(&prepare).unwrap();
}

#[test]
fn another_graph_or_none_is_chosen() {
    let actions = ["other", "none"].map(|graph| {
        format!("SELECT pg_catalog.set_config('graph_kernel.graph', '{graph}', false)")
    });
    change_during_calls("graph_chosen", &GRAPH_CALLS, &actions);
}

#[test]
fn a_bigint_in_the_place_of_a_turns_column() {
    let columns = ["id", "session_id", "role", "trajectory_phase", "content_text", "content_hash"];
    let actions = columns.map(|column| take_place("turns", column, "number"));
    change_during_calls("turns_bigint", &GRAPH_CALLS, &actions);
}

#[test]
fn other_types_in_the_place_of_a_turns_column() {
    let actions = [
        take_place("turns", "created_at", "words"),
        take_place("turns", "salience_score", "words"),
        take_place("turns", "embedding", "bytes"),
        take_place("turns", "embedding", "number"),
        take_place("turns", "content_text", "embedding"),
    ];
    change_during_calls("turns_others", &GRAPH_CALLS, &actions);
}

#[test]
fn other_types_in_the_place_of_an_edges_column() {
    let actions = [
        take_place("edges", "parent_turn_id", "number"),
        take_place("edges", "child_turn_id", "words"),
        take_place("edges", "edge_type", "number"),
    ];
    change_during_calls("edges", &GRAPH_CALLS, &actions);
}

#[test]
fn other_types_in_the_place_of_an_events_column() {
    let actions = [
        take_place("events", "event_id", "number"),
        take_place("events", "text", "number"),
        take_place("events", "session_id", "number"),
        take_place("events", "segment_id", "words"),
        take_place("events", "pane_id", "words"),
    ];
    change_during_calls("events", &LOG_CALLS, &actions);
}

#[test]
fn a_new_column_with_a_constant_default_in_the_place_of_another() {
    let actions = [
        replace("turns", "session_id", "bigint DEFAULT 8"),
        replace("turns", "content_text", "bigint DEFAULT 8"),
        replace("edges", "child_turn_id", "bigint DEFAULT 8"),
        replace("edges", "parent_turn_id", "real DEFAULT 8"),
        "ALTER TABLE b2.edges DROP COLUMN edge_type, ADD COLUMN edge_type bigint DEFAULT 8"
            .to_owned(),
    ];
    change_during_calls("added", &GRAPH_CALLS, &actions);
}

/// A schema made like another, with rows of its own.
fn forged() -> String {
    "CREATE TABLE b2.turns (LIKE b3.turns); CREATE TABLE b2.edges (LIKE b3.edges);
     INSERT INTO b2.turns (id, session_id, role, content_text, embedding)
     SELECT id, 'forged', 'tool', 'forged', '{1,2}' FROM b3.turns;
     INSERT INTO b2.edges SELECT public.turn(5), public.turn(1), 'branch';
     CREATE TABLE b2.events (LIKE b3.events);
     INSERT INTO b2.events SELECT e.* FROM jsonb_populate_record(NULL::b2.events,
         '{\"segment_id\": 0, \"ordinal\": 31, \"event_id\": \"forged\", \"pane_id\": 1, \"text\": \"forged\",
           \"event_type\": \"egress_output\", \"byte_offset\": 0, \"occurred_at_ms\": 0}') AS e;
     GRANT USAGE ON SCHEMA b2 TO PUBLIC;
     GRANT SELECT ON b2.turns, b2.edges, b2.events TO PUBLIC"
        .to_owned()
}

#[test]
fn another_schema_under_the_name_of_the_tables() {
    let swap = format!("ALTER SCHEMA b2 RENAME TO b3; CREATE SCHEMA b2; {}", forged());
    let calls: Vec<&str> = GRAPH_CALLS.into_iter().chain(LOG_CALLS).collect();
    change_during_calls("schema", &calls, &[swap]);
}

#[test]
fn tables_that_swap_their_names() {
    let rename = |table| {
        format!(
            "ALTER TABLE b2.{table} RENAME TO {table}_aside;
             ALTER TABLE b2.{table}_forged RENAME TO {table}"
        )
    };
    let forged = forged();
    let forged = ["turns", "edges", "events"].iter().fold(forged, |forged, table| {
        forged.replace(&format!("b2.{table}"), &format!("b2.{table}_forged"))
    });
    let forged = forged.replace("b3.", "b2.");
    let calls: Vec<&str> = GRAPH_CALLS.into_iter().chain(LOG_CALLS).collect();
    let actions = ["turns", "edges", "events"].map(|table| format!("{forged}; {}", rename(table)));
    change_during_calls("tables", &calls, &actions);
}

#[test]
fn a_function_that_acts_when_a_statement_is_planned() {
    let mut setup = Setup::new("planning");
    // An index predicate's function is called by the planner, where its arguments are constants.
    let indexes = "
        CREATE FUNCTION planted.plain(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp AS
            $$ BEGIN PERFORM planted.act(); RETURN false; END $$;
        CREATE INDEX ON b2.turns (role) WHERE planted.plain(1);
        CREATE INDEX ON b2.edges (words) WHERE planted.plain(1);
        CREATE INDEX ON b2.events (words) WHERE planted.plain(1);";
    setup.owner().batch_execute(indexes).unwrap();
    let turns = ["id", "session_id", "trajectory_phase", "content_text"];
    let actions = turns
        .map(|column| take_place("turns", column, "number"))
        .into_iter()
        .chain([take_place("edges", "parent_turn_id", "number")])
        .chain(["event_id", "text"].map(|column| take_place("events", column, "number")));
    let mut faults = Vec::new();
    for action in actions {
        let is_log = action.contains("b2.events");
        let calls = if is_log { LOG_CALLS.as_slice() } else { GRAPH_CALLS.as_slice() };
        for call in calls {
            let mut admin = setup.admin();
            for call_number in [1, 2, 3, 5] {
                prepare(&mut admin, call_number, &action);
                // What the planner found is kept by a session: each begins anew.
                let mut reader = setup.reader();
                reader.batch_execute("BEGIN").unwrap();
                if let Outcome::Unsafe(error) = attempt(&mut reader, call) {
                    faults.push(format!("{call}\n  with {action} at {call_number}: {error}"));
                    break;
                }
            }
        }
    }
    assert_none(&faults);
    setup.assert_sound();
}
