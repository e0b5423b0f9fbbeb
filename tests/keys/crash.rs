//! Keys outlive restarts and crashes.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use postgres::Client;

use crate::cluster::{Cluster, send_signal};
use crate::common::process::backend_pid;
use crate::graph::{SLICE, active_key, install, keys, kid, reason, reasons, rotate, slice, text};

#[test]
fn exports_verify_after_a_restart() {
    let mut cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let mut exports = vec![slice(&mut client)];
    let second = rotate(&mut client);
    exports.push(slice(&mut client));
    drop(client);

    cluster.stop();
    cluster.launch();
    let mut client = cluster.client();
    assert_eq!(reasons(&mut client, &exports), ["ok"; 2]);
    assert_eq!(active_key(&mut client), second);
    assert_eq!(slice(&mut client), exports[1]);
}

#[test]
fn changes_of_keys_are_on_disk_when_they_are_committed() {
    let cluster = Cluster::start("synchronous_commit = off\nwal_writer_delay = 10s");
    let mut client = cluster.client();
    install(&mut client);
    let is_flushed = "SELECT (pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn())::text";
    client.batch_execute("CREATE TABLE other (number int); CHECKPOINT").unwrap();
    client.batch_execute("INSERT INTO other VALUES (1)").unwrap();
    assert_eq!(text(&mut client, is_flushed), "false");
    let first = active_key(&mut client);
    rotate(&mut client);
    assert_eq!(text(&mut client, is_flushed), "true");
    client.batch_execute("INSERT INTO other VALUES (2)").unwrap();
    client.batch_execute(&format!("SELECT graph_kernel.revoke_key('{first}')")).unwrap();
    assert_eq!(text(&mut client, is_flushed), "true");
}

/// Kills a backend and waits until the server has noticed, and with it ended every other session.
fn kill_backend(cluster: &Cluster, backend: i32) {
    let mut witness = cluster.client();
    send_signal("KILL", backend.try_into().unwrap());
    while witness.batch_execute("SELECT 1").is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_backend_killed_while_it_rotates_leaves_one_active_key() {
    let cluster = Cluster::start("");
    install(&mut cluster.client());
    for _ in 0..3 {
        let mut client = cluster.client();
        let first = active_key(&mut client);
        let export = slice(&mut client);
        client.batch_execute("BEGIN").unwrap();
        let lost = rotate(&mut client);
        kill_backend(&cluster, backend_pid(&mut client));
        assert!(client.batch_execute("COMMIT").is_err());

        let mut client = cluster.client();
        assert_eq!(active_key(&mut client), first);
        assert!(!keys(&mut client, "verifying").contains(&lost));
        assert_eq!(reason(&mut client, &export), "ok");
        let next = rotate(&mut client);
        assert_eq!(active_key(&mut client), next);
        assert_eq!(reason(&mut client, &export), "ok");
    }
}

/// Rotates and slices until the connection is gone; all that was committed. Sends its process id once
/// it has begun.
fn rotate_until_it_breaks(mut client: Client, begun: &mpsc::Sender<i32>) -> Vec<String> {
    let backend = backend_pid(&mut client);
    let mut exports = Vec::new();
    while client.batch_execute("SELECT graph_kernel.rotate_key()").is_ok() {
        match client.query_one(SLICE, &[]) {
            Ok(row) => exports.push(row.get(0)),
            Err(_) => break,
        }
        begun.send(backend).unwrap();
    }
    exports
}

/// Streams rotations while `kill` does its work on the cluster; what had been issued still holds.
fn survives(cluster: &mut Cluster, kill: impl FnOnce(&mut Cluster, i32)) {
    let stream = cluster.client();
    let (begun, backends) = mpsc::channel();
    let streaming = thread::spawn(move || rotate_until_it_breaks(stream, &begun));
    let backend = backends.recv().unwrap();
    thread::sleep(Duration::from_millis(fastrand::u64(1..200)));
    kill(cluster, backend);
    let exports = streaming.join().unwrap();

    let mut client = cluster.client();
    assert_eq!(reasons(&mut client, &exports), vec!["ok"; exports.len()]);
    let active = active_key(&mut client);
    // At most the one rotation that was not heard of has come after the last slice.
    let known = keys(&mut client, "verifying");
    let newest = kid(exports.last().unwrap());
    assert!(active == newest || known.last() == Some(&newest), "{active} after {newest}");
    let next = rotate(&mut client);
    assert_ne!(next, active);
    assert_eq!(active_key(&mut client), next);
    let epochs = "SELECT (count(*) = count(DISTINCT epoch))::text FROM graph_kernel.root_keys";
    assert_eq!(text(&mut client, epochs), "true");
}

#[test]
fn tokens_issued_before_a_backend_was_killed_verify() {
    let mut cluster = Cluster::start("");
    install(&mut cluster.client());
    for _ in 0..3 {
        survives(&mut cluster, |cluster, backend| kill_backend(cluster, backend));
    }
}

#[test]
fn tokens_issued_before_the_postmaster_was_killed_verify() {
    let mut cluster = Cluster::start("");
    install(&mut cluster.client());
    for _ in 0..4 {
        survives(&mut cluster, |cluster, _| {
            cluster.kill();
            cluster.recover();
        });
    }
}
