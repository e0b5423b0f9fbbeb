//! Slices that are taken later than their statement began.

use crate::graph::{database, reason, refusal, slice, status, text, turns};

const ADD_A_TURN: &str = "
    INSERT INTO memory_turns (id) VALUES (turn(6));
    INSERT INTO memory_turn_edges VALUES (turn(3), turn(6))";

#[test]
fn a_cursor_opened_before_a_write_sees_neither_the_row_nor_a_token() {
    let database = database("cursor");
    let mut client = database.connect();
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute("DECLARE c CURSOR FOR SELECT graph_slice(turn(3))::text").unwrap();
    transaction.batch_execute(ADD_A_TURN).unwrap();
    let export = text(&mut transaction, "FETCH c");
    assert_eq!(turns(&export), [1, 2, 3, 4, 5]);
    assert_eq!(status(&export), "uncommitted");
}

#[test]
fn each_fetch_is_attested_by_what_was_written_before_it() {
    let database = database("cursor_rows");
    let mut client = database.connect();
    let mut transaction = client.transaction().unwrap();
    // In the select list the function is asked for a row at a time.
    transaction
        .batch_execute(
            "DECLARE c CURSOR FOR
             SELECT (graph_slices(ARRAY[turn(1), turn(2), turn(3)])).slice::text",
        )
        .unwrap();
    assert_eq!(status(&text(&mut transaction, "FETCH c")), "attested");
    transaction.batch_execute(ADD_A_TURN).unwrap();
    let export = text(&mut transaction, "FETCH c");
    assert_eq!(status(&export), "uncommitted");
    assert!(!turns(&export).contains(&6));
}

#[test]
fn a_cursor_that_is_kept_past_the_commit_has_no_token() {
    let database = database("cursor_hold");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "BEGIN; {ADD_A_TURN};
             DECLARE c CURSOR WITH HOLD FOR SELECT graph_slice(turn(3))::text; COMMIT"
        ))
        .unwrap();
    let export = text(&mut client, "FETCH c");
    assert_eq!(turns(&export), [1, 2, 3, 4, 5, 6]);
    assert_eq!(status(&export), "uncommitted");
    assert_eq!(reason(&mut client, &export), "unattested");
}

#[test]
fn a_cursor_of_a_rolled_back_savepoint_is_gone() {
    let database = database("cursor_savepoint");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "BEGIN; SAVEPOINT s; {ADD_A_TURN};
             DECLARE c CURSOR FOR SELECT graph_slice(turn(3))::text; ROLLBACK TO s"
        ))
        .unwrap();
    assert_eq!(refusal(&mut client, "FETCH c"), "34000");
}

#[test]
fn procedures_that_commit_are_attested_between_their_writes() {
    let database = database("procedure");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "CREATE TABLE taken (step text, export text);
             CREATE PROCEDURE work() LANGUAGE plpgsql AS $$ BEGIN
                 {ADD_A_TURN};
                 INSERT INTO taken SELECT 'before', graph_slice(turn(3))::text;
                 COMMIT;
                 INSERT INTO taken SELECT 'after', graph_slice(turn(3))::text;
             END $$"
        ))
        .unwrap();
    client.batch_execute("CALL work()").unwrap();
    let before = text(&mut client, "SELECT export FROM taken WHERE step = 'before'");
    let after = text(&mut client, "SELECT export FROM taken WHERE step = 'after'");
    assert_eq!(status(&before), "uncommitted");
    assert_eq!(status(&after), "attested");
    assert_eq!(after, slice(&mut client));
}
