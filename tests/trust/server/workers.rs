//! Parallel workers: they have their leader's transaction, but not its locks.

use postgres::Client;

use crate::graph::{database, reason, status, text};

/// A function that lies about where it may run, and whatever may run in a worker running in one.
fn prepare(client: &mut Client) {
    let name = "SELECT name FROM pg_settings
                WHERE name IN ('force_parallel_mode', 'debug_parallel_query')";
    let name = text(client, name);
    client
        .batch_execute(&format!(
            "CREATE FUNCTION sliced(anchor uuid) RETURNS json LANGUAGE plpgsql STABLE PARALLEL SAFE
                 AS $$ BEGIN RETURN graph_slice(anchor); END $$;
             SET {name} = on"
        ))
        .unwrap();
}

#[test]
fn a_worker_does_not_attest_what_its_leader_wrote() {
    let database = database("worker");
    let mut client = database.connect();
    prepare(&mut client);
    let sliced = "SELECT sliced(turn(9))::text";
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute("INSERT INTO memory_turns (id) VALUES (turn(9))").unwrap();
    let plan = transaction.query(&format!("EXPLAIN {sliced}"), &[]).unwrap();
    assert!(plan[0].get::<_, &str>(0).starts_with("Gather"), "{plan:?}");
    let export = text(&mut transaction, sliced);
    transaction.rollback().unwrap();
    assert_eq!(status(&export), "uncommitted");
    assert_eq!(reason(&mut client, &export), "unattested");
}

#[test]
fn a_worker_attests_committed_state() {
    let database = database("worker_committed");
    let mut client = database.connect();
    prepare(&mut client);
    let export = text(&mut client, "SELECT sliced(turn(3))::text");
    assert_eq!(status(&export), "attested");
    assert_eq!(reason(&mut client, &export), "ok");
}

#[test]
fn a_worker_verifies_as_its_leader_does() {
    let database = database("worker_verify");
    let mut client = database.connect();
    let export = text(&mut client, "SELECT graph_slice(turn(3))::text");
    prepare(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    assert_eq!(
        reason(&mut client, &export.replacen("planning", "synthesis", 1)),
        "digest_mismatch"
    );
}
