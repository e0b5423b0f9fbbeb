//! What other sessions have not committed is in no slice.

use crate::graph::{database, reason, slice, status, turns};

const ADD_A_TURN: &str = "
    INSERT INTO memory_turns (id) VALUES (turn(6));
    INSERT INTO memory_turn_edges VALUES (turn(3), turn(6))";

#[test]
fn uncommitted_rows_of_another_session_are_in_no_slice() {
    let database = database("other_session");
    let (mut writer, mut reader) = (database.connect(), database.connect());
    let before = slice(&mut reader);
    let mut transaction = writer.transaction().unwrap();
    transaction.batch_execute(ADD_A_TURN).unwrap();
    assert_eq!(slice(&mut reader), before);
    transaction.rollback().unwrap();
    assert_eq!(slice(&mut reader), before);
    assert_eq!(reason(&mut reader, &before), "ok");
}

#[test]
fn prepared_rows_are_in_no_slice_until_they_are_committed() {
    let database = database("prepared");
    let mut client = database.connect();
    client
        .batch_execute(&format!("BEGIN; {ADD_A_TURN}; PREPARE TRANSACTION 'trust prepared'"))
        .unwrap();
    // The same session, which no longer holds the locks.
    let export = slice(&mut client);
    assert_eq!((status(&export).as_str(), turns(&export).len()), ("attested", 5));
    client.batch_execute("COMMIT PREPARED 'trust prepared'").unwrap();
    let export = slice(&mut client);
    assert_eq!((status(&export).as_str(), turns(&export).len()), ("attested", 6));
}

#[test]
fn an_old_snapshot_is_attested_as_what_it_was() {
    let database = database("old_snapshot");
    let (mut writer, mut reader) = (database.connect(), database.connect());
    let before = slice(&mut reader);
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    writer.batch_execute(ADD_A_TURN).unwrap();
    assert_eq!(slice(&mut reader), before);
    reader.batch_execute("COMMIT").unwrap();
    assert_eq!(turns(&slice(&mut reader)).len(), 6);
}

#[test]
fn an_exported_snapshot_does_not_carry_what_its_session_wrote() {
    let database = database("exported_snapshot");
    let (mut writer, mut reader) = (database.connect(), database.connect());
    let mut transaction = writer.transaction().unwrap();
    transaction.batch_execute(ADD_A_TURN).unwrap();
    let snapshot = crate::graph::text(&mut transaction, "SELECT pg_export_snapshot()");
    reader
        .batch_execute(&format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{snapshot}'"
        ))
        .unwrap();
    let export = slice(&mut reader);
    assert_eq!((status(&export).as_str(), turns(&export).len()), ("attested", 5));
}
