//! Rotating and revoking keys.

use std::thread;
use std::time::{Duration, Instant};

use postgres::Client;

use crate::common::database::Database;
use crate::graph::{active_key, install, keys, kid, reason, refusal, rotate, slice, text};

fn with_graph(name: &str) -> (Database, Client) {
    let database = Database::empty(name);
    let mut client = database.connect();
    install(&mut client);
    (database, client)
}

fn pair(code: &str, detail: &str) -> (String, String) {
    (code.to_owned(), detail.to_owned())
}

#[test]
fn rotation_signs_with_a_new_key_and_verifies_with_the_old() {
    let (_database, mut client) = with_graph("keys_rotate");
    let first = active_key(&mut client);
    let old = slice(&mut client);
    assert_eq!(kid(&old), first);

    let second = rotate(&mut client);
    assert_eq!(active_key(&mut client), second);
    assert_eq!(keys(&mut client, "verifying"), [first]);
    let new = slice(&mut client);
    assert_eq!(kid(&new), second);
    assert_eq!(reason(&mut client, &old), "ok");
    assert_eq!(reason(&mut client, &new), "ok");
}

#[test]
fn two_sessions_that_rotate_at_once_begin_two_keys() {
    let (database, mut one) = with_graph("keys_concurrent");
    let first = active_key(&mut one);
    let mut watcher = database.connect();
    let mut two = database.connect();

    let mut transaction = one.transaction().unwrap();
    let second: String =
        transaction.query_one("SELECT graph_kernel.rotate_key(true)", &[]).unwrap().get(0);
    let waiting = thread::spawn(move || text(&mut two, "SELECT graph_kernel.rotate_key(true)"));
    wait_for_a_waiting_lock(&mut watcher);
    assert_eq!(active_key(&mut watcher), first);
    transaction.commit().unwrap();
    let third = waiting.join().unwrap();

    // The second one has seen, and revoked, the key of the first one.
    assert_eq!(active_key(&mut watcher), third);
    assert_eq!(keys(&mut watcher, "revoked"), [first, second]);
}

fn wait_for_a_waiting_lock(client: &mut Client) {
    let waiting = "SELECT count(*)::text FROM pg_locks
                   WHERE relation = 'graph_kernel.root_keys'::regclass AND NOT granted";
    let start = Instant::now();
    while text(client, waiting) != "1" {
        assert!(start.elapsed() < Duration::from_secs(30), "no session waits");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_rotation_rolled_back_leaves_the_old_key_active() {
    let (_database, mut client) = with_graph("keys_rollback");
    let before = slice(&mut client);
    let first = active_key(&mut client);

    client.batch_execute("BEGIN").unwrap();
    let lost = rotate(&mut client);
    let taken_meanwhile = slice(&mut client);
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(active_key(&mut client), first);
    assert_eq!(reason(&mut client, &taken_meanwhile), "unattested");

    client.batch_execute("BEGIN; SAVEPOINT before").unwrap();
    client.batch_execute("SELECT graph_kernel.rotate_key(true); ROLLBACK TO before").unwrap();
    assert_eq!(active_key(&mut client), first);
    client.batch_execute("COMMIT").unwrap();
    assert_eq!(reason(&mut client, &before), "ok");

    let second = rotate(&mut client);
    assert_ne!(second, lost);
    assert_eq!(keys(&mut client, "verifying"), [first]);
}

#[test]
fn tokens_of_a_key_revoked_by_rotation_no_longer_verify() {
    let (_database, mut client) = with_graph("keys_revoke_old");
    let old = slice(&mut client);
    assert!(published_token_verifies(&mut client, &old));
    client.batch_execute("SELECT graph_kernel.rotate_key(revoke_old => true)").unwrap();
    assert_eq!(reason(&mut client, &old), "revoked_key");
    assert!(!published_token_verifies(&mut client, &old));
    let new = slice(&mut client);
    assert_eq!(reason(&mut client, &new), "ok");
    assert!(published_token_verifies(&mut client, &new));
}

fn published_token_verifies(client: &mut Client, export: &str) -> bool {
    let statement = "
        SELECT graph_verify_token(
            e ->> 'admissibility_token', e ->> 'slice_id', (e ->> 'anchor_turn_id')::uuid,
            e ->> 'policy_id', e ->> 'policy_params_hash', e ->> 'graph_snapshot_hash',
            e ->> 'schema_version')
        FROM (VALUES ($1::text::json)) AS v (e)";
    client.query_one(statement, &[&export]).unwrap().get(0)
}

#[test]
fn a_revocation_reaches_transactions_that_began_before_it() {
    let (database, mut client) = with_graph("keys_revoke_now");
    let old = slice(&mut client);
    let first = rotate_away(&mut client);
    let mut earlier = database.connect();
    earlier.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    assert_eq!(reason(&mut earlier, &old), "ok");
    client.batch_execute(&format!("SELECT graph_kernel.revoke_key('{first}')")).unwrap();
    assert_eq!(reason(&mut earlier, &old), "revoked_key");
    let new = slice(&mut client);
    assert_eq!(reason(&mut earlier, &new), "ok");
}

/// Rotates; the id of the key before.
fn rotate_away(client: &mut Client) -> String {
    let before = active_key(client);
    rotate(client);
    before
}

#[test]
fn the_active_key_cannot_be_revoked() {
    let (_database, mut client) = with_graph("keys_revoke_active");
    let first = active_key(&mut client);
    let statement = format!("SELECT graph_kernel.revoke_key('{first}')");
    assert_eq!(refusal(&mut client, &statement), pair("55000", "ACTIVE_KEY"));
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");

    rotate(&mut client);
    client.batch_execute(&statement).unwrap();
    client.batch_execute(&statement).unwrap(); // twice is once
    assert_eq!(keys(&mut client, "revoked"), [first]);
    assert_eq!(reason(&mut client, &export), "revoked_key");
}

#[test]
fn a_key_of_elsewhere_can_be_revoked_and_garbage_cannot() {
    let (_database, mut client) = with_graph("keys_revoke_unknown");
    let export = slice(&mut client);
    client.batch_execute("SELECT graph_kernel.revoke_key('7-0123456789abcdef')").unwrap();
    assert_eq!(reason(&mut client, &export), "ok");
    for garbage in ["''", "'1'", "'1-0123456789ABCDEF'", "'x''; --'", "repeat('1', 100)", "NULL"] {
        let statement = format!("SELECT graph_kernel.revoke_key({garbage})");
        assert_eq!(refusal(&mut client, &statement), pair("22023", "INVALID_KID"), "{garbage}");
    }
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM graph_kernel.revoked_keys"), "1");
}

#[test]
fn rotation_goes_on_although_every_key_is_revoked() {
    let (_database, mut client) = with_graph("keys_all_revoked");
    // The owner may insert here, to restore a dump; he can shoot himself in the foot.
    client
        .batch_execute("INSERT INTO graph_kernel.revoked_keys SELECT kid FROM graph_kernel.keys")
        .unwrap();
    let second = text(&mut client, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    assert_eq!(active_key(&mut client), second);
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
}

#[test]
fn a_transaction_that_only_reads_does_not_rotate() {
    let (_database, mut client) = with_graph("keys_read_only");
    let first = active_key(&mut client);
    client.batch_execute("SET default_transaction_read_only = on").unwrap();
    let refused = refusal(&mut client, "SELECT graph_kernel.rotate_key()");
    assert_eq!(refused, pair("25006", ""));
    assert_eq!(active_key(&mut client), first);
}
