//! From one major version of the server to another: by pg_upgrade, and by dumps. `make test` names the servers.

#[path = "../keys/cluster.rs"]
#[allow(dead_code)]
mod cluster;
#[path = "../server/common/mod.rs"]
mod common;
mod contents;
#[path = "../keys/graph.rs"]
#[allow(dead_code)]
mod graph;
#[path = "../keys/secret_file.rs"]
#[allow(dead_code)]
mod secret_file;

use std::path::Path;

use cluster::Cluster;
use common::process::{Programs, run};
use common::variable;
use contents::{ROLES, answers, assert_same, keep_documents, make_objects, stored, verdicts};
use graph::{active_key, reason, slice, text};

/// Those of each server, the oldest version first.
fn servers() -> Vec<Programs> {
    let folders = variable("GRAPH_KERNEL_SERVERS");
    let servers: Vec<_> =
        folders.split(':').map(|folder| Programs { folder: folder.into() }).collect();
    assert!(servers.len() > 1, "GRAPH_KERNEL_SERVERS names one server: {folders}");
    servers
}

/// Minor releases from November 2026 on keep a version of each column in its options, which `pg_dump` of an older minor
/// release takes for an option of the user's. Servers here come from different places, with different dates.
const FORGET_COLUMN_VERSIONS: &str =
    "UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%}'";

/// A cluster of these programs that was used for a while, with this root of its keys if there is one.
fn used_cluster(programs: &Programs, root: Option<&[u8]>) -> Cluster {
    let cluster = Cluster::start_with(programs);
    if let Some(root) = root {
        secret_file::use_root(&cluster, root);
    }
    let mut client = cluster.client();
    client.batch_execute(ROLES).unwrap();
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    make_objects(&mut client);
    keep_documents(&mut client);
    forget_column_versions(&cluster);
    cluster
}

fn forget_column_versions(cluster: &Cluster) {
    for database in ["postgres", "template1"] {
        cluster.client_of("postgres", database).batch_execute(FORGET_COLUMN_VERSIONS).unwrap();
    }
}

fn upgraded_by_pg_upgrade(root: Option<&[u8]>) {
    let servers = servers();
    let (old, new) = (&servers[0], &servers[servers.len() - 1]);
    let mut origin = used_cluster(old, root);
    let before = answers(&mut origin.client());
    origin.stop();

    let mut cluster = Cluster::created_with(new);
    // --verbose, as the logs are removed with the cluster.
    run(new
        .server_program("pg_upgrade")
        .arg("--verbose")
        .current_dir(&cluster.folder)
        .arg("--old-bindir")
        .arg(&old.folder)
        .arg("--new-bindir")
        .arg(&new.folder)
        .arg("--old-datadir")
        .arg(origin.data())
        .arg("--new-datadir")
        .arg(cluster.data())
        .args(["--username=postgres", "--socketdir"])
        .arg(&cluster.folder));
    cluster.launch();
    if let Some(root) = root {
        secret_file::use_root(&cluster, root);
    }
    let mut client = cluster.client();
    assert_same(&answers(&mut client), &before);
    let plan = "EXPLAIN SELECT FROM public.notes WHERE graph_turn_id(id) = graph_turn_id(7)";
    client.batch_execute("SET enable_seqscan = off").unwrap();
    let plan = client.query(plan, &[]).unwrap();
    assert!(plan.iter().any(|line| line.get::<_, &str>(0).contains("notes_turn")), "{plan:?}");
    // Keys, bindings and policies go on: a new key, a new slice, a policy of the next name.
    text(&mut client, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    client.batch_execute("SELECT graph_policy_register('{\"max_nodes\": 5}', 'five')").unwrap();
}

#[test]
fn pg_upgrade_keeps_everything() {
    upgraded_by_pg_upgrade(None);
}

#[test]
fn pg_upgrade_keeps_everything_with_a_root_key_file() {
    upgraded_by_pg_upgrade(Some(&secret_file::random(32)));
}

/// Writes a dump of a database of an older server with the programs of a newer one, and restores it there.
fn dumped_into(programs: &Programs, origin: &Cluster, root: Option<&[u8]>) -> Cluster {
    let cluster = Cluster::start_with(programs);
    if let Some(root) = root {
        secret_file::use_root(&cluster, root);
    }
    cluster.client().batch_execute(ROLES).unwrap();
    let path = cluster.folder.join("dump.sql");
    let file = |option: &str, path: &Path| format!("--{option}={}", path.display());
    run(programs
        .server_program("pg_dump")
        .args(["--host", &origin.server.socket, "--username=postgres", "--dbname=postgres"])
        .arg(file("file", &path)));
    run(cluster
        .program("psql", "postgres")
        .args(["-X", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres"])
        .arg(file("file", &path)));
    forget_column_versions(&cluster);
    cluster
}

#[test]
fn dumps_go_from_version_to_version_with_a_root_key_file() {
    let root = secret_file::random(32);
    let servers = servers();
    let mut cluster = used_cluster(&servers[0], Some(&root));
    let before = [stored(&mut cluster.client()), verdicts(&mut cluster.client())].concat();
    for programs in &servers[1..] {
        cluster = dumped_into(programs, &cluster, Some(&root));
        let mut client = cluster.client();
        assert_same(&[stored(&mut client), verdicts(&mut client)].concat(), &before);
    }
}

#[test]
fn dumps_without_a_root_key_file_go_without_keys() {
    let servers = servers();
    let mut cluster = used_cluster(&servers[0], None);
    let before = stored(&mut cluster.client());
    let mut keys = vec![active_key(&mut cluster.client())];
    for programs in &servers[1..] {
        cluster = dumped_into(programs, &cluster, None);
        let mut client = cluster.client();
        assert_same(&stored(&mut client), &before);
        // Unknown, not forged; and what is signed now is signed by a key of its own.
        assert_eq!(verdicts(&mut client)[0], "unknown_key unknown_key unknown_key");
        let key = active_key(&mut client);
        assert!(!keys.contains(&key));
        keys.push(key);
        let export = slice(&mut client);
        assert_eq!(reason(&mut client, &export), "ok");
    }
}
