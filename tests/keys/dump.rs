//! Dumps, restored into other clusters.

use std::path::{Path, PathBuf};

use postgres::Client;

use crate::cluster::Cluster;
use crate::common::export::without_claims;
use crate::common::process::run;
use crate::graph::{
    active_key, create_graph, install, keys, kid, reason, reasons, refusal, rotate, slice, text,
};
use crate::secret_file;

/// Makes the memory tables the graph, by a name of its own.
const BIND: &str = "SELECT graph_kernel.bind_tables('public.memory_turns', \
                    'public.memory_turn_edges')::text";
/// A policy without a name, one with two, and another name of a preset.
const REGISTER: &str = "SELECT graph_policy_register('{\"max_nodes\": 7}');
                        SELECT graph_policy_register('{\"max_nodes\": 8}', 'eight');
                        SELECT graph_policy_register('{\"max_nodes\": 8}', 'acht');
                        SELECT graph_policy_register('default', 'usual')";
/// As a version wrote it in which chat was not a preset's name: only a superuser and the extension's owner can.
const REGISTERED_BEFORE_THE_PRESET: &str = "
    INSERT INTO graph_kernel.policies (name, policy)
    VALUES (NULL, '{\"max_nodes\": 9}'), ('chat', '{\"max_nodes\": 9}')";
const POLICIES: &str = "SELECT string_agg(p::text, ' ' ORDER BY p::text) FROM graph_policies AS p";
const FINGERPRINT: &str = "SELECT graph_policy_registry_fingerprint()";
const ROTATE_AND_REVOKE: &str = "SELECT graph_kernel.rotate_key(revoke_old => true)";

const GUARDED: &str = "
    CREATE TABLE atoms (slice json, turn uuid);
    CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE
        FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn');
    ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible";

#[test]
fn a_table_that_promotes_is_guarded_after_a_restore_as_before() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    client.batch_execute(GUARDED).unwrap();
    let insert = "INSERT INTO atoms SELECT graph_slice(id), id FROM memory_turns LIMIT 1";
    client.batch_execute(insert).unwrap();

    let other = Cluster::start("");
    restore(&other, "postgres", "postgres", &dump(&origin, "postgres", "postgres", &[]));
    let mut client = other.client();
    // The row is there, though its key is not known here.
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM atoms"), "1");
    let guarded = "SELECT bool_and(ok)::text FROM graph_check() WHERE check_name LIKE 'promotion%'";
    assert_eq!(text(&mut client, guarded), "true");
    for statement in ["INSERT INTO atoms SELECT * FROM atoms", "UPDATE atoms SET turn = NULL"] {
        let refused = client.batch_execute(statement).unwrap_err();
        let word = refused.as_db_error().unwrap().detail();
        assert_eq!(word, Some("NOT_ADMISSIBLE: unknown_key"), "{statement}");
    }
    client.batch_execute(insert).unwrap();
}

/// A role's dump of a database, as SQL or as the options ask. The next one of the cluster takes its place.
pub fn dump(cluster: &Cluster, role: &str, database: &str, options: &[&str]) -> PathBuf {
    let path = cluster.folder.join("dump");
    run(cluster
        .program("pg_dump", role)
        .args(options)
        .args(["--dbname", database, "--file"])
        .arg(&path));
    path
}

/// Restores a dump that is SQL, and returns what psql says of it.
pub fn restore(cluster: &Cluster, role: &str, database: &str, dump: &Path) -> String {
    let restored = cluster
        .program("psql", role)
        .args(["-X", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", database, "--file"])
        .arg(dump)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success(), "{said}");
    said
}

/// Restores a dump of the custom format.
pub fn restore_archive(
    cluster: &Cluster,
    role: &str,
    database: &str,
    options: &[&str],
    dump: &Path,
) {
    run(cluster
        .program("pg_restore", role)
        .args(options)
        .args(["--exit-on-error", "--dbname", database])
        .arg(dump));
}

/// The extension is another role's.
#[test]
fn the_owner_of_a_database_dumps_it() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    client.batch_execute("CREATE ROLE plain LOGIN").unwrap();
    client.batch_execute("CREATE DATABASE his OWNER plain").unwrap();
    let mut client = origin.client_of("postgres", "his");
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    let dump = dump(&origin, "plain", "his", &[]);
    assert!(std::fs::read_to_string(dump).unwrap().contains("CREATE EXTENSION"));
}

#[test]
fn a_dump_restored_without_a_key_file_has_a_new_key() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    let revoked = slice(&mut client);
    text(&mut client, ROTATE_AND_REVOKE);
    let old = slice(&mut client);
    rotate(&mut client);
    let origins_keys = keys(&mut client, "verifying");

    let other = Cluster::start("");
    restore(&other, "postgres", "postgres", &dump(&origin, "postgres", "postgres", &[]));
    let mut client = other.client();
    // Unknown, not forged.
    assert_eq!(reasons(&mut client, &[revoked, old.clone()]), ["unknown_key"; 2]);
    assert!(!origins_keys.contains(&active_key(&mut client)));
    let new = slice(&mut client);
    assert_eq!(without_claims(&new), without_claims(&old));
    assert_eq!(reason(&mut client, &new), "ok");
    assert_eq!(reason(&mut origin.client(), &new), "unknown_key");
}

/// A bound graph whose keys derive from a file: two keys revoked, one verifying, one active; and
/// an export of each.
fn origin_with_key_file(root: &[u8]) -> (Cluster, Vec<String>) {
    let origin = Cluster::start("");
    secret_file::use_root(&origin, root);
    let mut client = origin.client();
    install(&mut client);
    text(&mut client, BIND);
    let mut exports = vec![slice(&mut client)];
    for statement in [ROTATE_AND_REVOKE, ROTATE_AND_REVOKE, "SELECT graph_kernel.rotate_key()"] {
        text(&mut client, statement);
        exports.push(slice(&mut client));
    }
    assert_eq!(reasons(&mut client, &exports), ["revoked_key", "revoked_key", "ok", "ok"]);
    (origin, exports)
}

fn restored_with_key_file(origin: &Cluster, root: &[u8]) -> Cluster {
    let other = Cluster::start("");
    secret_file::use_root(&other, root);
    restore(&other, "postgres", "postgres", &dump(origin, "postgres", "postgres", &[]));
    other
}

/// That the active key is not revoked, and that what it signs verifies.
fn active_key_is_good(client: &mut Client) -> String {
    let active = active_key(client);
    let revoked = "SELECT coalesce(string_agg(kid, ' '), '') FROM graph_kernel.revoked_keys";
    assert!(!text(client, revoked).contains(&active));
    let export = slice(client);
    assert_eq!(kid(&export), active);
    assert_eq!(reason(client, &export), "ok");
    active
}

#[test]
fn with_the_key_file_a_restored_dump_verifies_what_its_origin_does() {
    let root = secret_file::random(32);
    let (origin, exports) = origin_with_key_file(&root);
    let other = restored_with_key_file(&origin, &root);
    let mut client = other.client();
    assert_eq!(reasons(&mut client, &exports), ["revoked_key", "revoked_key", "ok", "ok"]);
    active_key_is_good(&mut client);
    let new = slice(&mut client);
    assert_eq!(reason(&mut origin.client(), &new), "ok");

    // Another file is another root.
    secret_file::use_root(&other, &secret_file::random(32));
    assert_eq!(reasons(&mut client, &exports), ["unknown_key"; 4]);
}

#[test]
fn after_a_restore_with_the_key_file_each_rotation_begins_a_key() {
    let root = secret_file::random(32);
    let (origin, exports) = origin_with_key_file(&root);
    let other = restored_with_key_file(&origin, &root);
    let mut client = other.client();
    let mut seen = vec![active_key(&mut client)];
    for statement in ["SELECT graph_kernel.rotate_key()", ROTATE_AND_REVOKE, ROTATE_AND_REVOKE] {
        let new = text(&mut client, statement);
        assert!(!seen.contains(&new), "{statement} gives {new} after {seen:?}");
        assert_eq!(active_key_is_good(&mut client), new);
        seen.push(new);
    }
    assert_eq!(reasons(&mut client, &exports[..2]), ["revoked_key"; 2]);
}

#[test]
fn a_binding_keeps_its_name_in_a_dump() {
    let root = secret_file::random(32);
    let (origin, exports) = origin_with_key_file(&root);
    origin
        .client()
        .batch_execute(
            r#"CREATE TABLE by_child (LIKE memory_turn_edges);
               SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                   '{"edges_by_child": "public.by_child"}', 'twice');
               ALTER TABLE by_child RENAME TO renamed"#,
        )
        .unwrap();
    let other = restored_with_key_file(&origin, &root);
    let by_child = "SELECT b.graph || ' ' || b.edges_by_child FROM graph_kernel.binding AS b WHERE b.name = 'twice'";
    let twice = text(&mut origin.client(), by_child);
    assert!(twice.ends_with(" renamed"), "{twice}");
    assert_eq!(text(&mut other.client(), by_child), twice);
    let bound = "SELECT b.graph || ' ' || b.turns || ' ' || b.edges FROM graph_kernel.binding AS b
                 WHERE b.name = 'default'";
    let binding = text(&mut origin.client(), bound);
    assert_eq!(text(&mut other.client(), bound), binding);
    let name = binding.split(' ').next().unwrap();
    assert!(exports[3].contains(&format!(r#""graph":"{name}""#)));
}

/// A database of a role that is not a superuser.
fn owned_database(cluster: &Cluster) -> Client {
    let mut admin = cluster.client();
    admin.batch_execute("CREATE ROLE keeper LOGIN").unwrap();
    admin.batch_execute("CREATE DATABASE kept OWNER keeper").unwrap();
    cluster.client_of("keeper", "kept")
}

#[test]
fn an_owner_who_is_no_superuser_dumps_and_restores() {
    let origin = Cluster::start("");
    let mut client = owned_database(&origin);
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    create_graph(&mut client);
    let graph = text(&mut client, BIND);
    text(&mut client, ROTATE_AND_REVOKE);
    let old = slice(&mut client);
    client.batch_execute(REGISTER).unwrap();
    client.batch_execute(REGISTERED_BEFORE_THE_PRESET).unwrap();
    let policies = text(&mut client, POLICIES);
    assert!(policies.contains("(chat,") && policies.contains("\"\"max_nodes\"\":9"), "{policies}");
    let fingerprint = text(&mut client, FINGERPRINT);

    let other = Cluster::start("");
    let mut client = owned_database(&other);
    restore(&other, "keeper", "kept", &dump(&origin, "keeper", "kept", &[]));
    let tables = "SELECT b.turns || ' ' || b.edges FROM graph_kernel.binding AS b";
    assert_eq!(text(&mut client, tables), "memory_turns memory_turn_edges");
    // He could have edited the dump: the graph has a name of its own from here on.
    assert_ne!(text(&mut client, "SELECT graph::text FROM graph_kernel.binding"), graph);
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM graph_kernel.revoked_keys"), "1");
    assert_eq!(text(&mut client, POLICIES), policies);
    assert_eq!(text(&mut client, FINGERPRINT), fingerprint);
    assert_eq!(reason(&mut client, &old), "unknown_key");
    let new = slice(&mut client);
    assert_eq!(without_claims(&new), without_claims(&old));
    assert_eq!(reason(&mut client, &new), "ok");
    let next = rotate(&mut client);
    assert_eq!(active_key(&mut client), next);
}

#[test]
fn an_archive_restores_as_its_owner_too() {
    let origin = Cluster::start("");
    let mut client = owned_database(&origin);
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    create_graph(&mut client);
    text(&mut client, BIND);
    let archive = dump(&origin, "keeper", "kept", &["--format=custom"]);

    let other = Cluster::start("");
    let mut client = owned_database(&other);
    restore_archive(&other, "keeper", "kept", &["--single-transaction"], &archive);
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
}

#[test]
fn registered_policies_are_in_a_dump_and_the_presets_are_not() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    client.batch_execute(REGISTER).unwrap();
    let policies = text(&mut client, POLICIES);
    assert_eq!(policies.matches("slice_policy_v1,").count(), 7, "{policies}");
    client.batch_execute(REGISTERED_BEFORE_THE_PRESET).unwrap();
    let policies = text(&mut client, POLICIES);

    // Restored into a cluster that has the presets already.
    let other = Cluster::start("");
    restore(&other, "postgres", "postgres", &dump(&origin, "postgres", "postgres", &[]));
    let mut client = other.client();
    assert_eq!(text(&mut client, POLICIES), policies);
    // And they may be registered again.
    client.batch_execute(REGISTER).unwrap();
    assert_eq!(text(&mut client, POLICIES), policies);
}

/// A restore in which a table of one binding is missing loses no other binding, and a table that is gone is no number
/// in the dump: another table could have it by then.
#[test]
fn a_restore_without_a_bound_table_keeps_every_other_binding() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    text(&mut client, BIND);
    let bound = |name: &str| {
        format!(
            "SELECT graph_kernel.bind_tables('{name}.memory_turns', '{name}.memory_turn_edges', name => '{name}')::text"
        )
    };
    for name in ["missing", "dropped", "other", "renamed"] {
        client
            .batch_execute(&format!(
                "CREATE SCHEMA {name}; SELECT graph_kernel.create_tables('{name}')"
            ))
            .unwrap();
        text(&mut client, &bound(name));
    }
    // Of bindings that were replaced, one has tables that the restore lacks, one has tables that were dropped.
    for name in ["missing", "dropped"] {
        text(&mut client, &bound(name).replace(&format!("name => '{name}'"), "name => 'other'"));
    }
    text(&mut client, &bound("other"));
    client
        .batch_execute(
            "SELECT graph_kernel.create_recorder_table('missing'), graph_kernel.create_trace_table('missing');
             SELECT graph_kernel.bind_recorder_table('missing.recorder_events');
             SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('missing'), 'missing');
             SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('renamed'), 'renamed');
             ALTER TABLE renamed.memory_turns RENAME TO \"memory \"\"turns\"\" now\";
             DROP SCHEMA dropped CASCADE",
        )
        .unwrap();
    let graph_of = |client: &mut Client, name: &str| {
        let graph = format!(
            "SELECT graph::text FROM graph_kernel.bindings WHERE name = '{name}' AND is_current"
        );
        text(client, &graph)
    };
    let missing = graph_of(&mut client, "missing");

    let other = Cluster::start("");
    let without = dump(&origin, "postgres", "postgres", &["--exclude-schema=missing"]);
    let said = restore(&other, "postgres", "postgres", &without);
    for warning in [
        "WARNING:  there is no table missing.memory_turns",
        "WARNING:  graph_kernel.binding names a table that is not here: the graph missing cannot be used",
        "WARNING:  graph_kernel.recorder_binding names a table that is not here",
        "WARNING:  graph_kernel.trace_binding names a table that is not here",
        "WARNING:  graph_kernel.store_binding names a table that is not here: the graph missing has no store",
    ] {
        assert!(said.contains(warning), "{warning}: {said}");
    }
    let mut client = other.client();
    let rows = "SELECT string_agg(concat_ws(' ', name, turns, edges, is_current), ', ' ORDER BY name, is_current)
                FROM graph_kernel.binding";
    assert_eq!(
        text(&mut client, rows),
        "default memory_turns memory_turn_edges t, dropped - - t, missing - - t, \
         other other.memory_turns other.memory_turn_edges t, \
         renamed renamed.\"memory \"\"turns\"\" now\" renamed.memory_turn_edges t"
    );
    let stores = "SELECT string_agg(concat_ws(' ', name, store), ', ' ORDER BY name) FROM graph_kernel.store_binding";
    assert_eq!(text(&mut client, stores), "missing -, renamed renamed.slice_store");
    let oids = "SELECT concat_ws(' ', turns::oid, edges::oid) FROM graph_kernel.binding WHERE name = 'dropped'";
    assert_eq!(text(&mut client, oids), "0 0");
    // A name stands for what is not there: it does not become that of the default tables.
    for name in ["missing", "dropped"] {
        client.batch_execute(&format!("SET graph_kernel.graph = '{name}'")).unwrap();
        let lost = ("42P01".to_owned(), "GRAPH_TABLES".to_owned());
        assert_eq!(refusal(&mut client, crate::graph::SLICE), lost);
        client.batch_execute("SELECT * FROM graph_check()").unwrap();
    }
    client.batch_execute("RESET graph_kernel.graph").unwrap();
    client.batch_execute("SELECT graph_kernel.create_recorder_table()").unwrap();
    assert_eq!(refusal(&mut client, "SELECT * FROM recorder_chunks()").0, "42P01");
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");

    // With the tables, the rows are restored as they were.
    client
        .batch_execute("CREATE SCHEMA missing; SELECT graph_kernel.create_tables('missing')")
        .unwrap();
    let data = dump(&origin, "postgres", "postgres", &["--format=custom"]);
    let bindings = ["--data-only", "--schema=graph_kernel", "--table=binding"];
    restore_archive(&other, "postgres", "postgres", &bindings, &data);
    assert_eq!(graph_of(&mut client, "missing"), missing);
    assert!(
        text(&mut client, rows)
            .contains("missing missing.memory_turns missing.memory_turn_edges t")
    );
    client.batch_execute("SET graph_kernel.graph = 'missing'").unwrap();
    assert_eq!(refusal(&mut client, crate::graph::SLICE).0, "02000");
}

/// A role that has the binder's former name, or his OID, is not taken for him.
#[test]
fn the_binder_is_found_by_the_name_that_he_had_at_the_dump() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    client
        .batch_execute(
            "CREATE ROLE ann; GRANT USAGE ON SCHEMA graph_kernel TO ann;
             GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO ann;
             GRANT SELECT ON memory_turns, memory_turn_edges TO ann; SET ROLE ann;
             SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges'); RESET ROLE;
             ALTER ROLE ann RENAME TO anna",
        )
        .unwrap();
    let shown = "SELECT bound_by FROM graph_kernel.bindings";
    for (options, found) in [(&[][..], true), (&["--disable-triggers"], true), (&[], false)] {
        let table = ["--data-only", "--table=graph_kernel.binding"];
        let data = dump(&origin, "postgres", "postgres", &[&table[..], options].concat());
        let other = Cluster::start("");
        let mut client = other.client();
        // Roles have other OIDs than there, and one has the old name.
        client.batch_execute("CREATE ROLE a; CREATE ROLE ann SUPERUSER; CREATE ROLE b").unwrap();
        if found {
            client.batch_execute("CREATE ROLE anna SUPERUSER").unwrap();
        }
        install(&mut client);
        restore(&other, "postgres", "postgres", &data);
        let binder = "SELECT coalesce((SELECT rolname::text FROM pg_roles WHERE oid = binder), '')
                      FROM graph_kernel.binding";
        assert_eq!(text(&mut client, binder), if found { "anna" } else { "" }, "{options:?}");
        match found {
            true => _ = slice(&mut client),
            false => {
                assert_eq!(refusal(&mut client, crate::graph::SLICE).0, "42501");
                assert_eq!(text(&mut client, shown), "ann", "the name that it was bound by");
            }
        }
    }
}
