//! Databases that are copies of another one in the same cluster.

use postgres::Client;
use postgres::error::SqlState;

use crate::cluster::Cluster;
use crate::graph::{active_key, install, keys, kid, reason, reasons, rotate, slice, text};
use crate::secret_file;

const BIND: &str = "SELECT graph_kernel.bind_tables('public.memory_turns', \
                    'public.memory_turn_edges')::text";
const GRAPH: &str = "SELECT graph::text FROM graph_kernel.bindings WHERE is_current";

/// Copies a database, as soon as its sessions have ended.
fn copy(cluster: &Cluster, of: &str, to: &str) -> Client {
    let mut admin = cluster.client_of("postgres", "template1");
    loop {
        match admin.batch_execute(&format!("CREATE DATABASE {to} TEMPLATE {of}")) {
            Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => {}
            done => break done.unwrap(),
        }
    }
    cluster.client_of("postgres", to)
}

#[test]
fn a_copy_of_a_database_signs_under_keys_of_its_own() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let graph = text(&mut client, BIND);
    let mut exports = vec![slice(&mut client)];
    rotate(&mut client);
    exports.push(slice(&mut client));
    drop(client);

    let mut copied = copy(&cluster, "postgres", "staging");
    assert_eq!(reasons(&mut copied, &exports), ["unknown_key"; 2]);
    let in_copy = slice(&mut copied);
    assert_eq!(reason(&mut copied, &in_copy), "ok");
    assert_eq!(kid(&in_copy), active_key(&mut copied));
    let verifying = keys(&mut copied, "verifying");
    assert_eq!(verifying.len(), 1);
    let published = "SELECT string_agg(kid, ' ' ORDER BY kid) FROM graph_kernel.proof_keys";
    assert_eq!(text(&mut copied, published), format!("{} {}", verifying[0], kid(&in_copy)));
    assert_ne!(text(&mut copied, GRAPH), graph);
    // A root of its own begins the next epoch.
    let next = rotate(&mut copied);
    assert_eq!(active_key(&mut copied), next);
    assert!(next.starts_with("3-"), "{next}");
    let later = slice(&mut copied);
    assert_eq!(reasons(&mut copied, &[in_copy.clone(), later.clone()]), ["ok"; 2]);
    drop(copied);

    let mut second = copy(&cluster, "staging", "copy_of_copy");
    let mut all = exports.clone();
    all.extend([in_copy, later]);
    assert_eq!(reasons(&mut second, &all), ["unknown_key"; 4]);
    let third = slice(&mut second);
    assert_eq!(reason(&mut second, &third), "ok");
    all.push(third);
    let mut original = cluster.client();
    let expected = ["ok", "ok", "unknown_key", "unknown_key", "unknown_key"];
    assert_eq!(reasons(&mut original, &all), expected);
    assert_eq!(slice(&mut original), exports[1]);
    assert_eq!(text(&mut original, GRAPH), graph);
    // By another name it is the same database.
    original.batch_execute("CREATE DATABASE aside").unwrap();
    drop(original);
    drop(second);
    let mut admin = cluster.client_of("postgres", "template1");
    admin.batch_execute("ALTER DATABASE copy_of_copy RENAME TO renamed").unwrap();
    assert_eq!(reason(&mut cluster.client_of("postgres", "renamed"), &all[4]), "ok");
}

#[test]
fn a_key_revoked_in_the_original_is_revoked_in_each_copy() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    text(&mut client, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    drop(client);
    let mut copied = copy(&cluster, "postgres", "first");
    assert_eq!(keys(&mut copied, "revoked").len(), 1);
    text(&mut copied, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    assert_eq!(keys(&mut copied, "revoked").len(), 2);
    drop(copied);
    let mut second = copy(&cluster, "first", "second");
    assert_eq!(keys(&mut second, "revoked").len(), 2);
    let export = slice(&mut second);
    assert_eq!(reason(&mut second, &export), "ok");
}

#[test]
fn a_copy_that_shares_the_key_file_names_a_bound_graph_otherwise() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let unbound = slice(&mut client);
    let graph = text(&mut client, BIND);
    secret_file::use_root(&cluster, &secret_file::random(32));
    drop(client);
    let mut client = cluster.client();
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    drop(client);

    let mut copied = copy(&cluster, "postgres", "staging");
    assert_eq!(reason(&mut copied, &export), "other_graph");
    let in_copy = slice(&mut copied);
    assert_eq!(reason(&mut copied, &in_copy), "ok");
    assert_eq!(kid(&in_copy), kid(&export));
    let name = text(&mut copied, GRAPH);
    assert_ne!(name, graph);
    assert!(in_copy.contains(&format!(r#""graph":"{name}""#)), "{in_copy}");
    // Bound again, it is the same graph; the function gives the name in attestations.
    assert_eq!(text(&mut copied, BIND), name);
    assert_eq!(reason(&mut copied, &in_copy), "ok");
    let mut original = cluster.client();
    assert_eq!(reasons(&mut original, &[export, in_copy]), ["ok", "other_graph"]);
    assert_eq!(text(&mut original, GRAPH), graph);

    // Without a binding all databases with the key file are one.
    for client in [&mut original, &mut copied] {
        client.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
    }
    assert_ne!(reason(&mut original, &unbound), "ok");
    let shared = slice(&mut copied);
    assert_eq!(reason(&mut original, &shared), "ok");
}
