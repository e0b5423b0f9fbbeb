//! What others see of a commit before they hear of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::cluster::Cluster;

/// COMMIT PREPARED shows its rows, deletes files, and sends its invalidations then.
#[test]
fn rows_of_a_commit_are_never_attested_with_the_binding_of_before() {
    const BIND: &str = r#"SELECT graph_kernel.bind_tables('turns', columns => '{"turns": {"parents": [
        {"parent": "parent", "edge_type": "reply"}], "session_id": "COLUMN", "role": null, "created_at": null}}')"#;
    const SLICE: &str = "SELECT r -> 'turns' -> 0 ->> 'session_id', r -> 'attestation' ->> 'status'
                         FROM graph_slice('00000000-0000-4000-8000-000000000001') AS r";
    let cluster = Cluster::start("max_prepared_transactions = 1\nmax_locks_per_transaction = 256");
    let mut owner = cluster.client();
    owner
        .batch_execute(&format!(
            "SET client_min_messages = warning;
             CREATE EXTENSION graph_kernel;
             CREATE TABLE turns (id uuid PRIMARY KEY, parent uuid, session_id text, other text, content_text text);
             CREATE INDEX ON turns (parent);
             INSERT INTO turns VALUES ('00000000-0000-4000-8000-000000000001', NULL, 'shown', 'hidden', 'text');
             {};
             CREATE SCHEMA trash;
             DO $$ BEGIN FOR n IN 1..2000 LOOP EXECUTE format('CREATE TABLE trash.t%s ()', n); END LOOP; END $$",
            BIND.replace("COLUMN", "session_id")
        ))
        .unwrap();
    let mut reader = cluster.client();
    reader.batch_execute("SET client_min_messages = warning").unwrap();
    let has_committed = AtomicBool::new(false);
    let slices: Vec<(String, String)> = thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut slices = Vec::new();
            while !has_committed.load(Ordering::Relaxed) {
                let row = reader.query_one(SLICE, &[]).unwrap();
                slices.push((row.get(0), row.get(1)));
            }
            slices
        });
        let prepared = owner.batch_execute(&format!(
            "BEGIN;
             DROP SCHEMA trash CASCADE;
             UPDATE turns SET session_id = other, other = session_id;
             {};
             PREPARE TRANSACTION 'change'",
            BIND.replace("COLUMN", "other")
        ));
        let committed = owner.batch_execute("COMMIT PREPARED 'change'");
        // First: the reader ends by it.
        has_committed.store(true, Ordering::Relaxed);
        prepared.and(committed).unwrap();
        reading.join().unwrap()
    });
    // In every committed state the session of the graph is this one.
    let odd = slices.iter().filter(|(session, status)| session != "shown" && status == "attested");
    assert_eq!(odd.count(), 0, "of {}", slices.len());
}
