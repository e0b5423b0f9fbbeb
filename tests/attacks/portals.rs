//! Between two rows of a set-returning function its caller closes, replaces and moves what it can name.

use postgres::Client;

use crate::setup::{LOG_CALLS, Outcome, Setup, assert_none, attempt};

/// Set-returning functions, asked for a row at a time.
const CALLS: [&str; 8] = [
    "SELECT recorder_chunks()",
    "SELECT recorder_chunks(per_pane => true)",
    "SELECT recorder_chunks_since(0, 3)",
    "SELECT recorder_event_chunks(0, 30)",
    "SELECT recorder_chunk_span(0, 3, 0, 0, 31, 10)",
    "SELECT chunk FROM recorder_chunk_events((
         SELECT jsonb_agg(jsonb_build_object('segment_id', 0, 'ordinal', n, 'byte_offset', n, 'event_id', 'e' || n,
             'pane_id', 1, 'occurred_at_ms', n * 600000, 'event_type', 'egress_output', 'text', 'words'))
         FROM generate_series(1, 20) AS n)) AS chunk",
    "SELECT (graph_slices(ARRAY[turn(1), turn(5), turn(9), turn(2)])).slice -> 'turns'",
    "SELECT graph_slice_explain(turn(5))",
];

/// Portals that the server names are numbered.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=20;

/// Eleven columns as the log's statement has them, but of other types.
const OTHER_COLUMNS: &str =
    "SELECT n::text, n::text, n::text, n::text, n::text, n::text, n::bigint, n::bigint,
    n::bigint, n::bigint, n::bigint FROM generate_series(1, 100) AS n";

/// Runs what may fail without ending the transaction.
fn within(client: &mut Client, statement: &str) -> Outcome {
    match attempt(client, &format!("SAVEPOINT s; {statement}")) {
        Outcome::Answer(rows) => {
            client.batch_execute("RELEASE s").unwrap();
            Outcome::Answer(rows)
        }
        other => {
            let back = attempt(client, "ROLLBACK TO s; RELEASE s");
            assert!(matches!(back, Outcome::Answer(_)), "{statement}: {other:?}, {back:?}");
            other
        }
    }
}

/// Does something after the first row of each call: the other rows come as they would have.
fn between_rows(name: &str, acts: &[&dyn Fn(&mut Client)]) {
    let mut setup = Setup::new(name);
    let mut faults = Vec::new();
    for call in CALLS {
        for (number, act) in acts.iter().enumerate() {
            let mut client = setup.admin();
            let rows = attempt(&mut client, call).answer(call).expect(call);
            let cursor = format!("BEGIN; DECLARE c CURSOR FOR {call}; FETCH 1 FROM c");
            client.batch_execute(&cursor).unwrap();
            act(&mut client);
            let outcome = attempt(&mut client, "FETCH ALL FROM c");
            if outcome != Outcome::Answer(rows[1..].to_vec()) {
                faults.push(format!("{call} ({number}): {outcome:.200?}"));
            }
        }
    }
    assert_none(&faults);
    setup.assert_sound();
}

#[test]
fn no_portal_of_ours_can_be_closed() {
    between_rows(
        "portals_closed",
        &[&|client| {
            for number in NUMBERS {
                let close = format!(r#"CLOSE "<unnamed portal {number}>""#);
                assert_eq!(within(client, &close), Outcome::Refused("34000".into()), "{close}");
            }
        }],
    );
}

#[test]
fn no_portal_of_ours_can_be_fetched_from_or_moved() {
    between_rows(
        "portals_moved",
        &[&|client| {
            for number in NUMBERS {
                for verb in ["MOVE 1 IN", "FETCH 1 FROM", "MOVE ABSOLUTE 0 IN"] {
                    let statement = format!(r#"{verb} "<unnamed portal {number}>""#);
                    assert_eq!(
                        within(client, &statement),
                        Outcome::Refused("34000".into()),
                        "{statement}"
                    );
                }
            }
        }],
    );
}

/// Puts a portal of other columns in the place of each that the server may have named.
fn replace(client: &mut Client, query: &str, moved: u32) {
    for number in NUMBERS {
        let name = format!(r#""<unnamed portal {number}>""#);
        within(client, &format!("CLOSE {name}"));
        within(client, &format!("DECLARE {name} SCROLL CURSOR FOR {query}"));
        within(client, &format!("MOVE {moved} IN {name}"));
    }
}

/// Replaces portals by others that stand at the first, the second … row, as ours may.
fn replace_at_all_positions(name: &str, query: &str) {
    let acts =
        [1, 2, 3, 4, 5, 6].map(|moved| move |client: &mut Client| replace(client, query, moved));
    between_rows(name, &acts.each_ref().map(|act| act as &dyn Fn(&mut Client)));
}

#[test]
fn a_portal_with_one_column_in_the_place_of_ours() {
    replace_at_all_positions("portals_one", "SELECT 1 FROM generate_series(1, 100)");
}

#[test]
fn a_portal_with_columns_of_other_types_in_the_place_of_ours() {
    replace_at_all_positions("portals_eleven", OTHER_COLUMNS);
}

/// What rows are read with belongs to the savepoint under which the first was asked for, the cursor does not.
#[test]
fn a_row_asked_for_under_a_savepoint_that_is_rolled_back() {
    let mut setup = Setup::new("portals_savepoint");
    let mut faults = Vec::new();
    for call in CALLS {
        for opened_before in [false, true] {
            for replaced in [false, true] {
                let mut client = setup.admin();
                let rows = attempt(&mut client, call).answer(call).expect(call);
                client.batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {call}")).unwrap();
                let first = if opened_before { "FETCH 1 FROM c;" } else { "" };
                client.batch_execute(&format!("{first} SAVEPOINT a; FETCH 1 FROM c")).unwrap();
                if replaced {
                    replace(&mut client, OTHER_COLUMNS, 3);
                }
                client.batch_execute("ROLLBACK TO a").unwrap();
                if replaced {
                    replace(&mut client, OTHER_COLUMNS, 3);
                }
                let left = rows.get(1 + usize::from(opened_before)..).unwrap_or_default();
                // An error is as good: the savepoint's rows are gone with it.
                let fault = attempt(&mut client, "FETCH ALL FROM c").fault(call, left);
                faults.extend(
                    fault.map(|fault| format!("{call} ({opened_before}, {replaced}): {fault}")),
                );
            }
        }
    }
    assert_none(&faults);
    setup.assert_sound();
}

#[test]
fn a_portal_closed_while_it_runs() {
    let mut setup = Setup::new("portals_active");
    setup
        .owner()
        .batch_execute(
            r#"CREATE FUNCTION planted.closes() RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$ BEGIN
                   FOR n IN 1..20 LOOP
                       BEGIN
                           EXECUTE format('CLOSE %I', '<unnamed portal ' || n || '>');
                       EXCEPTION WHEN invalid_cursor_name THEN NULL; END;
                   END LOOP;
                   RETURN true;
               END $$;
               CREATE POLICY closes ON b2.events USING (planted.closes());
               ALTER TABLE b2.events ENABLE ROW LEVEL SECURITY;
               CREATE POLICY closes ON b2.turns USING (planted.closes());
               ALTER TABLE b2.turns ENABLE ROW LEVEL SECURITY"#,
        )
        .unwrap();
    for call in LOG_CALLS.into_iter().chain(CALLS) {
        let rows = attempt(&mut setup.admin(), call).answer(call).expect(call);
        let mut reader = setup.reader();
        let cursor = format!("BEGIN; DECLARE c CURSOR FOR {call}; FETCH ALL FROM c");
        for statement in [call, &cursor] {
            let outcome = attempt(&mut reader, statement);
            // 24000: an active portal, were it ours.
            assert_ne!(outcome, Outcome::Refused("24000".into()), "{statement}");
            assert_eq!(outcome.fault(call, &rows), None, "{statement}");
        }
    }
    setup.assert_sound();
}

#[test]
fn leaving_rows_unread_closes_nothing_of_the_callers() {
    let mut setup = Setup::new("portals_dropped");
    let mut client = setup.admin();
    for call in CALLS {
        client
            .batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {call}; FETCH 1 FROM c"))
            .unwrap();
        replace(&mut client, "SELECT 1 FROM generate_series(1, 100)", 0);
        let held = "SELECT count(*) FROM pg_cursors WHERE name LIKE '<unnamed%'";
        let before = attempt(&mut client, held);
        // Its end is the end of what the function had open.
        client.batch_execute("CLOSE c").unwrap();
        assert_eq!(attempt(&mut client, held), before, "{call}");
        client.batch_execute("COMMIT").unwrap();
    }
    setup.assert_sound();
}

/// How a cursor is got rid of whose query has failed.
const ENDS: [&str; 4] = ["CLOSE c; COMMIT", "COMMIT", "ROLLBACK", ""];

#[test]
fn a_query_that_failed_leaves_nothing_to_be_ended() {
    let setup = Setup::new("portals_failed");
    let mut faults = Vec::new();
    for call in CALLS {
        let rows = attempt(&mut setup.admin(), call).answer(call).expect(call);
        // It fails at its third row, in what stands above the function, below a savepoint.
        let failing =
            format!("SELECT 10 / (3 - nextval('asked')), s.* FROM ({call} OFFSET 0) AS s");
        for end in ENDS {
            let mut client = setup.admin();
            client
                .batch_execute(&format!(
                    "CREATE TEMP SEQUENCE asked; BEGIN; DECLARE c CURSOR FOR {failing}; FETCH 1 FROM c"
                ))
                .unwrap();
            let failed = within(&mut client, "FETCH ALL FROM c");
            if rows.len() > 2 && failed != Outcome::Refused("22012".into()) {
                faults.push(format!("{call}: {failed:.200?}"));
            }
            if end.is_empty() {
                continue;
            }
            let ended = attempt(&mut client, end);
            let again = attempt(&mut client, call);
            if !matches!(ended, Outcome::Answer(_)) || again != Outcome::Answer(rows.clone()) {
                faults.push(format!("{call}, {end}: {ended:.200?}, {again:.200?}"));
            }
        }
        // The same by PL/pgSQL, again and again: what was freed is taken by the next.
        let block = format!(
            "CREATE TEMP SEQUENCE IF NOT EXISTS asked;
             DO $$ DECLARE c refcursor; r record; BEGIN
                 FOR i IN 1..20 LOOP
                     PERFORM setval('asked', 1, false);
                     OPEN c FOR {failing};
                     BEGIN
                         LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; END LOOP;
                     EXCEPTION WHEN division_by_zero THEN NULL;
                     END;
                     CLOSE c;
                 END LOOP;
             END $$"
        );
        let mut client = setup.admin();
        let looped = attempt(&mut client, &block);
        let again = attempt(&mut client, call);
        if !matches!(looped, Outcome::Answer(_)) || again != Outcome::Answer(rows) {
            faults.push(format!("{call} in PL/pgSQL: {looped:.200?}, {again:.200?}"));
        }
    }
    assert_none(&faults);
    let mut setup = setup;
    setup.assert_sound();
}
