//! Databases that are copies of another one in the same cluster.

use postgres::Client;
use postgres::error::SqlState;

use crate::cluster::Cluster;
use crate::dump::{dump, restore};
use crate::graph::{
    SLICE, active_key, install, keys, kid, reason, reasons, refusal, rotate, slice, text,
};
use crate::secret_file;

const BIND: &str = "SELECT graph_kernel.bind_tables('public.memory_turns', \
                    'public.memory_turn_edges')::text";
const GRAPH: &str = "SELECT graph::text FROM graph_kernel.bindings WHERE is_current";
const REVOKE_OLD: &str = "SELECT graph_kernel.rotate_key(revoke_old => true)";

/// Copies a database, as soon as its sessions have ended.
fn copy(cluster: &Cluster, of: &str, to: &str) -> Client {
    administer(cluster, &format!("CREATE DATABASE {to} TEMPLATE {of}"));
    let name = to.split(' ').next().unwrap();
    cluster.client_of("postgres", name)
}

/// Runs a statement from another database, as soon as the sessions of the one that it is about have ended.
fn administer(cluster: &Cluster, statement: &str) {
    let mut admin = cluster.client_of("postgres", "template1");
    loop {
        match admin.batch_execute(statement) {
            Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => {}
            done => break done.unwrap(),
        }
    }
}

fn oid(client: &mut Client) -> String {
    text(client, "SELECT oid::text FROM pg_database WHERE datname = current_database()")
}

/// The HINT of the error that a statement must raise, which is of 55000 with this DETAIL.
fn way_out(client: &mut Client, statement: &str, word: &str) -> String {
    assert_eq!(refusal(client, statement), ("55000".to_owned(), word.to_owned()), "{statement}");
    let error = client.batch_execute(statement).unwrap_err();
    error.as_db_error().unwrap().hint().unwrap().to_owned()
}

/// That nothing is signed, and what to do about it.
fn signs_nothing(client: &mut Client) {
    let hint = way_out(client, SLICE, "KEYS_UNAVAILABLE");
    assert_eq!(hint, "Run SELECT graph_kernel.rotate_key().");
    assert!(keys(client, "active").is_empty());
}

#[test]
fn a_copy_of_a_database_signs_nothing_until_it_has_a_key_of_its_own() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let mut exports = vec![slice(&mut client)];
    rotate(&mut client);
    exports.push(slice(&mut client));
    let origins = [keys(&mut client, "verifying"), vec![active_key(&mut client)]].concat();
    drop(client);

    let mut copied = copy(&cluster, "postgres", "staging");
    assert_eq!(reasons(&mut copied, &exports), ["ok"; 2]);
    assert_eq!(keys(&mut copied, "verifying"), origins);
    signs_nothing(&mut copied);
    let prove = format!("SELECT graph_proof($${}$$::json)::text", exports[1]);
    way_out(&mut copied, &prove, "KEYS_UNAVAILABLE");
    let next = rotate(&mut copied);
    assert!(next.starts_with("3-"), "{next}");
    assert_eq!(active_key(&mut copied), next);
    let in_copy = slice(&mut copied);
    assert_eq!(kid(&in_copy), next);
    exports.push(in_copy.clone());
    assert_eq!(reasons(&mut copied, &exports), ["ok"; 3]);
    // What the other database signed is proven there.
    way_out(&mut copied, &prove, "KEYS_UNAVAILABLE");
    text(&mut copied, &format!("SELECT graph_proof($${in_copy}$$::json)::text"));
    let published = "SELECT string_agg(kid, ' ' ORDER BY kid) FROM graph_kernel.proof_keys";
    assert_eq!(text(&mut copied, published), format!("{} {next}", origins.join(" ")));
    drop(copied);

    let mut second = copy(&cluster, "staging", "copy_of_copy");
    assert_eq!(reasons(&mut second, &exports), ["ok"; 3]);
    signs_nothing(&mut second);
    rotate(&mut second);
    exports.push(slice(&mut second));
    let mut original = cluster.client();
    assert_eq!(reasons(&mut original, &exports), ["ok", "ok", "unknown_key", "unknown_key"]);
    assert_eq!(slice(&mut original), exports[1]);
    // Its next epoch has the number of the copy's, and another key.
    assert_ne!(rotate(&mut original), next);
    assert_eq!(reason(&mut original, &in_copy), "unknown_key");
    drop(original);
    drop(second);
    // By another name it is the same database.
    administer(&cluster, "ALTER DATABASE copy_of_copy RENAME TO renamed");
    assert_eq!(slice(&mut cluster.client_of("postgres", "renamed")), exports[3]);
}

#[test]
fn what_is_revoked_stays_revoked_in_copies_of_copies() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let mut exports = vec![slice(&mut client)];
    text(&mut client, REVOKE_OLD);
    exports.push(slice(&mut client));
    drop(client);
    let mut copied = copy(&cluster, "postgres", "first");
    assert_eq!(reasons(&mut copied, &exports), ["revoked_key", "ok"]);
    // The key before is the original's, which signed nothing here.
    text(&mut copied, REVOKE_OLD);
    assert_eq!(reasons(&mut copied, &exports), ["revoked_key"; 2]);
    exports.push(slice(&mut copied));
    text(&mut copied, REVOKE_OLD);
    exports.push(slice(&mut copied));
    let expected = ["revoked_key", "revoked_key", "revoked_key", "ok"];
    assert_eq!(reasons(&mut copied, &exports), expected);
    drop(copied);
    let mut second = copy(&cluster, "first", "second");
    assert_eq!(reasons(&mut second, &exports), expected);
    // It is not a key that signs, so it can be revoked before another one does.
    let newest = kid(&exports[3]);
    second.batch_execute(&format!("SELECT graph_kernel.revoke_key('{newest}')")).unwrap();
    assert_eq!(reasons(&mut second, &exports), ["revoked_key"; 4]);
    signs_nothing(&mut second);
    rotate(&mut second);
    let export = slice(&mut second);
    assert_eq!(reason(&mut second, &export), "ok");
    let mut original = cluster.client();
    assert_eq!(reasons(&mut original, &exports[..2]), ["revoked_key", "ok"]);
}

/// Binds again in a copy: until then no call reads the graph, after it the name is another one.
fn bind_again(copied: &mut Client, graph: &str, old: &[String]) -> String {
    let hint =
        "Run SELECT graph_kernel.bind_tables('public.memory_turns', 'public.memory_turn_edges').";
    let verify = "SELECT graph_verify('{}')";
    for statement in [SLICE, verify] {
        assert_eq!(way_out(copied, statement, "GRAPH_TABLES"), hint);
    }
    let check = "SELECT ok || ': ' || detail || '; ' || hint FROM graph_check() WHERE check_name = 'bound_tables'";
    let said =
        "false: the graph \"default\" was bound in another database, of which this one is a copy; ";
    assert_eq!(text(copied, check), format!("{said}{hint}"));
    let name = text(copied, BIND);
    assert_ne!(name, graph);
    assert_eq!(text(copied, GRAPH), name);
    assert_eq!(text(copied, BIND), name);
    for export in old {
        assert_eq!(reason(copied, export), "other_graph");
    }
    name
}

#[test]
fn a_binding_of_the_original_does_not_count_in_a_copy() {
    for with_key_file in [false, true] {
        let cluster = Cluster::start("");
        if with_key_file {
            secret_file::use_root(&cluster, &secret_file::random(32));
        }
        let mut client = cluster.client();
        install(&mut client);
        let unbound = slice(&mut client);
        let graph = text(&mut client, BIND);
        let export = slice(&mut client);
        assert_eq!(reason(&mut client, &export), "ok");
        drop(client);

        let mut copied = copy(&cluster, "postgres", "staging");
        if !with_key_file {
            // Also before the tables are bound.
            rotate(&mut copied);
        }
        let name = bind_again(&mut copied, &graph, std::slice::from_ref(&export));
        let in_copy = slice(&mut copied);
        assert_eq!(reason(&mut copied, &in_copy), "ok");
        assert_eq!(kid(&in_copy) == kid(&export), with_key_file);
        assert!(in_copy.contains(&format!(r#""graph":"{name}""#)), "{in_copy}");
        drop(copied);
        let mut second = copy(&cluster, "staging", "second");
        bind_again(&mut second, &name, &[export.clone(), in_copy.clone()]);
        drop(second);

        let mut original = cluster.client();
        let expected = if with_key_file { "other_graph" } else { "unknown_key" };
        assert_eq!(reasons(&mut original, &[export.clone(), in_copy]), ["ok", expected]);
        assert_eq!(text(&mut original, GRAPH), graph);
        assert_eq!(text(&mut original, BIND), graph);

        // Without a binding all databases with the key file are one.
        let mut copied = cluster.client_of("postgres", "staging");
        for client in [&mut original, &mut copied] {
            client.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
        }
        assert_eq!(reasons(&mut copied, &[unbound, export]), ["ok", "other_graph"]);
        let shared = slice(&mut copied);
        let expected = if with_key_file { "ok" } else { "unknown_key" };
        assert_eq!(reason(&mut original, &shared), expected);
    }
}

#[test]
fn a_dump_of_a_copy_does_not_bring_the_graph_of_the_original() {
    let root = secret_file::random(32);
    let cluster = Cluster::start("");
    secret_file::use_root(&cluster, &root);
    let mut client = cluster.client();
    install(&mut client);
    let graph = text(&mut client, BIND);
    let export = slice(&mut client);
    drop(client);
    let mut copied = copy(&cluster, "postgres", "staging");
    for bound_again in [false, true] {
        let name = bound_again.then(|| text(&mut copied, BIND));
        let target = if bound_again { "after" } else { "before" };
        let dump = dump(&cluster, "postgres", "staging", &[]);
        administer(&cluster, &format!("CREATE DATABASE {target} TEMPLATE template0"));
        restore(&cluster, "postgres", target, &dump);
        let mut restored = cluster.client_of("postgres", target);
        let names = "SELECT coalesce(string_agg(graph::text, ' '), '') FROM graph_kernel.binding";
        assert_eq!(text(&mut restored, names), name.unwrap_or_default());
        assert_eq!(reason(&mut restored, &export), "other_graph");
        assert_ne!(text(&mut restored, BIND), graph);
        let taken = slice(&mut restored);
        assert_eq!(reason(&mut restored, &taken), "ok");
        assert_eq!(reason(&mut cluster.client(), &taken), "other_graph");
    }
}

#[test]
fn the_oid_of_a_dropped_database_gives_its_key_only_to_whoever_copies_a_copy_of_it() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    drop(client);
    let mut first = copy(&cluster, "postgres", "first");
    rotate(&mut first);
    let (signed, reused) = (slice(&mut first), oid(&mut first));
    drop(first);
    drop(copy(&cluster, "first", "kept"));
    administer(&cluster, "DROP DATABASE first");

    // A copy of the original has that one's key only, whatever its OID.
    let mut again = copy(&cluster, "postgres", &format!("again OID {reused}"));
    assert_eq!(oid(&mut again), reused);
    signs_nothing(&mut again);
    assert_eq!(reason(&mut again, &signed), "unknown_key");
    rotate(&mut again);
    let export = slice(&mut again);
    assert_ne!(kid(&export), kid(&signed));
    for other in ["postgres", "kept"] {
        assert_eq!(reason(&mut cluster.client_of("postgres", other), &export), "unknown_key");
    }
    drop(again);
    administer(&cluster, "DROP DATABASE again");

    // As docs/security.md says: a copy of a copy of the dropped database, under its OID, is that database.
    let mut back = copy(&cluster, "kept", &format!("back OID {reused}"));
    assert_eq!(kid(&slice(&mut back)), kid(&signed));
    let taken = slice(&mut back);
    let mut kept = cluster.client_of("postgres", "kept");
    assert_eq!(reason(&mut kept, &taken), "ok");
    kept.batch_execute(&format!("SELECT graph_kernel.revoke_key('{}')", kid(&signed))).unwrap();
    assert_eq!(reason(&mut kept, &taken), "revoked_key");
    assert_eq!(reason(&mut cluster.client(), &taken), "unknown_key");
}
