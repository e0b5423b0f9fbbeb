//! What a backend keeps of the private tables, while others change them.

use postgres::Client;

use crate::common::database::Database;
use crate::graph::{active_key, create_graph, install, kid, reason, rotate, slice, text};

fn two_sessions(name: &str) -> (Database, Client, Client) {
    let database = Database::empty(name);
    let mut one = database.connect();
    install(&mut one);
    let two = database.connect();
    (database, one, two)
}

/// The name of the graph in a slice's attestation.
fn graph(export: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(export).unwrap();
    value["attestation"]["graph"].as_str().unwrap().to_owned()
}

#[test]
fn a_rotation_elsewhere_is_heard_of_in_the_midst_of_a_transaction() {
    let (_database, mut one, mut two) = two_sessions("kept_rotation");
    one.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    let before = slice(&mut one);
    let new = text(&mut two, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    assert_eq!(kid(&slice(&mut one)), new);
    assert_eq!(reason(&mut one, &before), "revoked_key");
}

#[test]
fn a_rotation_that_is_rolled_back_is_forgotten() {
    let (_database, mut one, mut two) = two_sessions("kept_rollback");
    let first = active_key(&mut one);
    one.batch_execute("BEGIN; SAVEPOINT here").unwrap();
    let second = rotate(&mut one);
    assert_eq!(kid(&slice(&mut one)), second);
    assert_eq!(kid(&slice(&mut two)), first);
    one.batch_execute("ROLLBACK TO here").unwrap();
    assert_eq!(kid(&slice(&mut one)), first);
    let second = rotate(&mut one);
    assert_eq!(kid(&slice(&mut one)), second);
    one.batch_execute("ROLLBACK").unwrap();
    assert_eq!(kid(&slice(&mut one)), first);
}

#[test]
fn rows_that_a_subscription_writes_are_heard_of() {
    let (_database, mut one, mut two) = two_sessions("kept_replica");
    let before = slice(&mut one);
    let revoked = kid(&before);
    rotate(&mut one);
    assert_eq!(reason(&mut one, &before), "ok");
    two.batch_execute("SET session_replication_role = replica").unwrap();
    two.execute("INSERT INTO graph_kernel.revoked_keys VALUES ($1)", &[&revoked]).unwrap();
    assert_eq!(reason(&mut one, &before), "revoked_key");
    two.execute("DELETE FROM graph_kernel.revoked_keys", &[]).unwrap();
    assert_eq!(reason(&mut one, &before), "ok");
}

#[test]
fn a_row_of_a_statement_that_fails_is_forgotten() {
    let (_database, mut one, mut two) = two_sessions("kept_failure");
    let export = slice(&mut one);
    // The row is seen by the statement that writes it.
    let insert = "INSERT INTO graph_kernel.revoked_keys VALUES ($1)
                  RETURNING (SELECT reason FROM graph_verify($2::text::json)), length(kid) / $3::int";
    let key = kid(&export);
    let mut attempt = two.transaction().unwrap();
    let seen: String = attempt.query_one(insert, &[&key, &export, &1]).unwrap().get(0);
    assert_eq!(seen, "revoked_key");
    attempt.rollback().unwrap();
    two.execute(insert, &[&key, &export, &0]).unwrap_err();
    assert_eq!(reason(&mut two, &export), "ok");
}

#[test]
fn a_binding_made_elsewhere_is_heard_of() {
    let (_database, mut one, mut two) = two_sessions("kept_binding");
    assert_eq!(graph(&slice(&mut one)), "default");
    let bind = "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')::text";
    let name = text(&mut two, bind);
    assert_eq!(graph(&slice(&mut one)), name);
    // Heard of before it is committed by none but the transaction itself.
    two.batch_execute("BEGIN; SELECT graph_kernel.unbind_tables()").unwrap();
    assert_eq!(graph(&slice(&mut two)), "default");
    assert_eq!(graph(&slice(&mut one)), name);
    two.batch_execute("ROLLBACK").unwrap();
    assert_eq!(graph(&slice(&mut two)), name);
}

#[test]
fn a_table_that_is_emptied_twice_in_a_transaction_is_read_each_time() {
    let (_database, mut one, _two) = two_sessions("kept_truncate");
    let bind = "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')::text";
    one.batch_execute("BEGIN").unwrap();
    for _ in 0..2 {
        let name = text(&mut one, bind);
        assert_eq!(graph(&slice(&mut one)), name);
        // No trigger announces it, and the second time even the table's file stays the same.
        one.batch_execute("TRUNCATE graph_kernel.binding").unwrap();
        assert_eq!(graph(&slice(&mut one)), "default");
    }
}

#[test]
fn a_table_that_is_no_longer_bound_is_not_waited_for() {
    let (database, mut one, mut two) = two_sessions("kept_lock");
    slice(&mut one);
    one.batch_execute("BEGIN; SET LOCAL lock_timeout = '5s'").unwrap();
    two.batch_execute(
        "CREATE TABLE new_turns (LIKE memory_turns INCLUDING ALL);
         CREATE TABLE new_edges (LIKE memory_turn_edges INCLUDING ALL);
         INSERT INTO new_turns SELECT * FROM memory_turns;
         SELECT graph_kernel.bind_tables('new_turns', 'new_edges')",
    )
    .unwrap();
    let mut three = database.connect();
    three.batch_execute("BEGIN; LOCK TABLE memory_turns, memory_turn_edges").unwrap();
    assert_ne!(graph(&slice(&mut one)), "default");
}

#[test]
fn default_tables_that_are_made_anew_are_found() {
    let (_database, mut one, mut two) = two_sessions("kept_tables");
    let before = slice(&mut one);
    two.batch_execute(
        "BEGIN;
         ALTER TABLE public.memory_turns RENAME TO old_turns;
         ALTER TABLE public.memory_turn_edges RENAME TO old_edges;
         ALTER INDEX public.memory_turns_scores_idx RENAME TO old_scores_idx;
         ALTER INDEX public.memory_turn_edges_child_idx RENAME TO old_edges_child_idx",
    )
    .unwrap();
    create_graph(&mut two);
    two.batch_execute(
        "DELETE FROM public.memory_turn_edges; DROP TABLE old_edges, old_turns; COMMIT",
    )
    .unwrap();
    assert_ne!(slice(&mut one), before);
}
