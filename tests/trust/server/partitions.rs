//! Partitions are part of the tables: written to, made late, stored otherwise.

use postgres::Client;

use crate::common::database::Database;
use crate::graph::{database, db_error, reason, refusal, slice, status, text};

/// The graph in a table of partitions by session, two levels deep.
fn partitioned(name: &str) -> (Database, Client) {
    let database = database(&format!("partitions_{name}"));
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE TABLE parts (LIKE memory_turns) PARTITION BY LIST (session_id);
             ALTER TABLE parts ADD PRIMARY KEY (id, session_id);
             CREATE TABLE parts_old PARTITION OF parts FOR VALUES IN ('trust');
             CREATE TABLE parts_more PARTITION OF parts FOR VALUES IN ('more', 'most')
                 PARTITION BY LIST (session_id);
             CREATE TABLE parts_leaf PARTITION OF parts_more FOR VALUES IN ('more');
             INSERT INTO parts SELECT * FROM memory_turns;
             SELECT graph_kernel.bind_tables('parts', 'memory_turn_edges')",
        )
        .unwrap();
    assert_eq!(status(&slice(&mut client)), "attested");
    (database, client)
}

#[test]
fn rows_written_into_a_partition_alone_are_not_attested() {
    let (_database, mut client) = partitioned("writes");
    for write in [
        "INSERT INTO parts_old (id, session_id) VALUES (turn(9), 'trust')",
        "INSERT INTO parts_leaf (id, session_id) VALUES (turn(9), 'more')",
        "INSERT INTO parts_more (id, session_id) VALUES (turn(9), 'more')",
        "INSERT INTO parts (id, session_id) VALUES (turn(9), 'more')",
        "UPDATE parts_old SET role = 'tool'",
        "TRUNCATE parts_leaf",
        "ALTER TABLE parts DETACH PARTITION parts_more",
        "ALTER TABLE parts_leaf RENAME TO leaf",
        "CREATE TABLE parts_most PARTITION OF parts_more FOR VALUES IN ('most')",
        "DROP TABLE parts_more",
    ] {
        let mut transaction = client.transaction().unwrap();
        transaction.batch_execute(write).unwrap();
        let export = slice(&mut transaction);
        transaction.rollback().unwrap();
        assert_eq!(status(&export), "uncommitted", "{write}");
        assert_eq!(reason(&mut client, &export), "unattested", "{write}");
    }
}

#[test]
fn rows_in_a_partition_younger_than_the_snapshot_are_not_attested() {
    let (database, mut client) = partitioned("younger");
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    database
        .connect()
        .batch_execute("CREATE TABLE parts_late PARTITION OF parts FOR VALUES IN ('late')")
        .unwrap();
    client
        .batch_execute("INSERT INTO parts_late (id, session_id) VALUES (turn(9), 'late')")
        .unwrap();
    let export = text(&mut client, "SELECT graph_slice(turn(9))::text");
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(status(&export), "uncommitted");
    assert_eq!(reason(&mut client, &export), "unattested");

    // Nor does the session remember the partitions of then.
    client
        .batch_execute("BEGIN; INSERT INTO parts_late (id, session_id) VALUES (turn(9), 'late')")
        .unwrap();
    let export = text(&mut client, "SELECT graph_slice(turn(9))::text");
    assert_eq!(status(&export), "uncommitted");
}

#[test]
fn a_partition_that_is_stored_otherwise_is_refused_however_young_it_is() {
    let (database, mut client) = partitioned("storage");
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    database
        .connect()
        .batch_execute("CREATE UNLOGGED TABLE parts_odd PARTITION OF parts FOR VALUES IN ('odd')")
        .unwrap();
    assert_eq!(refusal(&mut client, "SELECT graph_slice(turn(3))"), "42809");
    client.batch_execute("ROLLBACK").unwrap();
    let error = db_error(&mut client, "SELECT graph_slice(turn(3))");
    assert_eq!((error.code().code(), error.detail()), ("42809", Some("GRAPH_TABLES")));
}

#[test]
fn rows_that_reach_a_bound_partition_through_its_parent_are_not_attested() {
    let (_database, mut client) = partitioned("leaf");
    client
        .batch_execute(
            "ALTER TABLE parts_old ADD UNIQUE (id);
             SELECT graph_kernel.bind_tables('parts_old', 'memory_turn_edges')",
        )
        .unwrap();
    for write in [
        "INSERT INTO parts (id, session_id) VALUES (turn(9), 'trust')",
        "UPDATE parts SET role = 'tool'",
        "DELETE FROM parts WHERE id = turn(5)",
    ] {
        let mut transaction = client.transaction().unwrap();
        transaction.batch_execute(write).unwrap();
        assert_eq!(status(&slice(&mut transaction)), "uncommitted", "{write}");
    }
}
