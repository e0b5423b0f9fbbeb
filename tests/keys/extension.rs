//! Creating and dropping the extension, and with it keys.

use postgres::Client;

use crate::cluster::Cluster;
use crate::graph::{active_key, create_graph, kid, reason, refusal, slice, text};

/// A database whose owner is not a superuser, and a role that owns nothing.
fn with_owner() -> Cluster {
    let cluster = Cluster::start("");
    let mut admin = cluster.client();
    admin.batch_execute("CREATE ROLE keeper LOGIN; CREATE ROLE somebody LOGIN").unwrap();
    admin.batch_execute("CREATE DATABASE kept OWNER keeper").unwrap();
    cluster
}

fn is_there(client: &mut Client, what: &str) -> bool {
    text(client, &format!("SELECT ({what} IS NOT NULL)::text")) == "true"
}

#[test]
fn a_database_owner_creates_and_drops_the_extension() {
    let cluster = with_owner();
    let mut client = cluster.client_of("keeper", "kept");
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    create_graph(&mut client);
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    let first = active_key(&mut client);
    assert_eq!(kid(&export), first);

    // The triggers that keep content hashes are the extension's; the rows are not.
    assert_eq!(refusal(&mut client, "DROP EXTENSION graph_kernel").0, "2BP01");
    client.batch_execute("DROP EXTENSION graph_kernel CASCADE").unwrap();
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM public.memory_turns"), "6");
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM public.memory_turn_edges"), "5");
    assert!(!is_there(&mut client, "to_regnamespace('graph_kernel')"));

    // Created again, it has a key of its own.
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    assert_ne!(active_key(&mut client), first);
    assert_eq!(reason(&mut client, &export), "unknown_key");
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
}

/// The extension's objects that do not belong to the bootstrap superuser, whose OID is 10.
const OF_OTHERS: &str = "
    SELECT coalesce(string_agg(o.type || ' ' || o.identity, ', '), 'nothing')
    FROM pg_depend AS d JOIN pg_extension AS x ON x.oid = d.refobjid AND x.extname = 'graph_kernel'
    CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS o
    LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
    LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
    LEFT JOIN pg_namespace AS n ON d.classid = 'pg_namespace'::regclass AND n.oid = d.objid
    LEFT JOIN pg_operator AS q ON d.classid = 'pg_operator'::regclass AND q.oid = d.objid
    LEFT JOIN pg_opclass AS k ON d.classid = 'pg_opclass'::regclass AND k.oid = d.objid
    LEFT JOIN pg_opfamily AS f ON d.classid = 'pg_opfamily'::regclass AND f.oid = d.objid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND d.classid <> 'pg_cast'::regclass
      AND coalesce(proowner, relowner, typowner, nspowner, oprowner, opcowner, opfowner) IS DISTINCT FROM 10";

/// Ways to the root, and to what runs with more rights than its caller, for an owner of the objects.
const TAKEN_BY_OWNERS: [&str; 6] = [
    "ALTER TABLE graph_kernel.root_keys DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE graph_kernel.binding DISABLE TRIGGER ALL",
    "SELECT root FROM graph_kernel.root_keys",
    "ALTER FUNCTION graph_kernel.rotate_key(boolean) RESET ALL",
    "ALTER EXTENSION graph_kernel DROP TABLE graph_kernel.root_keys",
    "CREATE FUNCTION graph_kernel.planted() RETURNS int LANGUAGE sql AS 'SELECT 1'",
];

#[test]
fn the_extensions_owner_has_no_way_to_the_root_however_he_became_it() {
    let cluster = with_owner();
    let mut admin = cluster.client_of("postgres", "kept");
    admin
        .batch_execute(
            "CREATE ROLE maker LOGIN SUPERUSER; GRANT CREATE ON DATABASE kept TO maker, somebody",
        )
        .unwrap();
    let mut maker = cluster.client_of("maker", "kept");
    maker.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    assert_eq!(text(&mut admin, OF_OTHERS), "nothing");
    admin.batch_execute("ALTER ROLE maker NOSUPERUSER").unwrap();
    for statement in TAKEN_BY_OWNERS {
        assert_eq!(refusal(&mut maker, statement).0, "42501", "{statement}");
    }
    // What he was given as the owner stays his.
    maker
        .batch_execute("SELECT graph_kernel.rotate_key(); SELECT * FROM graph_kernel.keys")
        .unwrap();
    create_graph(&mut admin);
    maker.batch_execute("ALTER EXTENSION graph_kernel UPDATE").unwrap();
    admin.batch_execute("REASSIGN OWNED BY maker TO somebody").unwrap();
    let mut somebody = cluster.client_of("somebody", "kept");
    for statement in TAKEN_BY_OWNERS {
        assert_eq!(refusal(&mut somebody, statement).0, "42501", "{statement}");
    }
    // With the former owner's rights goes none of the objects.
    admin.batch_execute("DROP OWNED BY maker; DROP ROLE maker").unwrap();
    let export = slice(&mut admin);
    assert_eq!(reason(&mut admin, &export), "ok");
    assert_eq!(text(&mut admin, OF_OTHERS), "nothing");
    somebody.batch_execute("DROP EXTENSION graph_kernel CASCADE").unwrap();
    assert!(!is_there(&mut admin, "to_regnamespace('graph_kernel')"));
}

/// What a name stood for before the extension was dropped, nobody knows after it was created again.
#[test]
fn a_snapshot_from_before_the_extension_was_created_anew_attests_nothing() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION graph_kernel; CREATE SCHEMA other").unwrap();
    create_graph(&mut client);
    client
        .batch_execute(
            "SELECT graph_kernel.create_tables('other');
             SELECT graph_kernel.bind_tables('other.memory_turns', 'other.memory_turn_edges')",
        )
        .unwrap();
    let mut reader = cluster.client();
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT").unwrap();
    client
        .batch_execute(
            "BEGIN; DELETE FROM memory_turn_edges; DELETE FROM memory_turns WHERE session_id = 'key life'
                 AND id <> '00000000-0000-4000-8000-000000000003';
             DROP EXTENSION graph_kernel CASCADE; CREATE EXTENSION graph_kernel; COMMIT",
        )
        .unwrap();
    let export = slice(&mut reader);
    assert_eq!(reason(&mut client, &export), "unattested", "{export}");
    reader.batch_execute("COMMIT").unwrap();
    let export = slice(&mut reader);
    assert_eq!(reason(&mut client, &export), "ok");
}

#[test]
fn others_neither_create_nor_drop_the_extension() {
    let cluster = with_owner();
    let mut client = cluster.client_of("somebody", "kept");
    assert_eq!(refusal(&mut client, "CREATE EXTENSION graph_kernel").0, "42501");
    let mut owner = cluster.client_of("keeper", "kept");
    owner.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    assert_eq!(refusal(&mut client, "DROP EXTENSION graph_kernel").0, "42501");
    assert!(is_there(&mut owner, "to_regclass('graph_kernel.root_keys')"));
}

#[test]
fn each_database_has_keys_of_its_own() {
    let cluster = with_owner();
    let [mut here, mut there] = ["kept", "postgres"].map(|database| {
        let mut client = cluster.client_of("postgres", database);
        crate::graph::install(&mut client);
        client
    });
    let export = slice(&mut here);
    assert_eq!(reason(&mut here, &export), "ok");
    assert_eq!(reason(&mut there, &export), "unknown_key");
}

const DEFAULT_PRIVILEGES: &str = "
    ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO somebody, PUBLIC;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO somebody WITH GRANT OPTION;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO somebody;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO somebody";

/// What a role may do that it must not.
const TOO_MUCH: &str = "
    SELECT coalesce(string_agg(what, ', '), 'nothing') FROM (
        SELECT p || ' on schema' AS what FROM (VALUES ('CREATE')) AS v (p)
        WHERE has_schema_privilege('somebody', 'graph_kernel', p)
        UNION ALL
        SELECT p || ' on ' || c.relname
        FROM pg_class AS c,
             unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p
        WHERE c.relnamespace = 'graph_kernel'::regnamespace AND c.relkind IN ('r', 'v')
          AND has_table_privilege('somebody', c.oid, p)
          AND NOT (c.relname IN ('binding', 'bindings', 'recorder_binding', 'trace_binding', 'store_binding',
                                  'revoked_keys',
                                  'policies', 'known_policies', 'proof_keys', 'kept') AND p = 'SELECT')
        UNION ALL
        SELECT 'EXECUTE on ' || f.oid::regprocedure
        FROM pg_proc AS f
        WHERE f.pronamespace = 'graph_kernel'::regnamespace
          AND f.proname IN ('rotate_key', 'revoke_key', 'add_epoch', 'list_keys',
                            'bind_tables', 'describe_tables', 'bind_recorder_table',
                            'unbind_recorder_table', 'describe_recorder_table',
                            'bind_traces', 'announce_change', 'register_policy', 'rotate_key_internal',
                            'revoke_key_internal', 'bind_tables_internal', 'bind_recorder_table_internal',
                            'bind_traces_internal', 'unbind_tables_internal', 'bind_tables_for',
                            'bind_recorder_table_for', 'bind_traces_for', 'check_trace_table', 'set_binder',
                            'bind_store', 'unbind_store', 'bind_store_for', 'bind_store_internal', 'check_store')
          AND has_function_privilege('somebody', f.oid, 'EXECUTE')
    ) AS found";

fn stays_closed(cluster: &Cluster, creator: &str) {
    let mut client = cluster.client_of("postgres", "kept");
    client.batch_execute(DEFAULT_PRIVILEGES).unwrap();
    let mut creator = cluster.client_of(creator, "kept");
    creator.batch_execute(DEFAULT_PRIVILEGES).unwrap();
    creator.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    assert_eq!(text(&mut client, TOO_MUCH), "nothing");

    let mut somebody = cluster.client_of("somebody", "kept");
    for statement in [
        "SELECT * FROM graph_kernel.root_keys",
        "INSERT INTO graph_kernel.revoked_keys VALUES ('1-0123456789abcdef')",
        "SELECT * FROM graph_kernel.keys",
        "SELECT graph_kernel.rotate_key()",
        "SELECT graph_kernel.add_epoch()",
        "SELECT graph_kernel.revoke_key('1-0123456789abcdef')",
        "SELECT graph_kernel.bind_tables('pg_class', 'pg_class')",
        "SELECT graph_kernel.bind_traces('pg_class')",
    ] {
        assert_eq!(refusal(&mut somebody, statement).0, "42501", "{statement}");
    }
    assert_eq!(text(&mut creator, "SELECT count(*)::text FROM graph_kernel.keys"), "1");
}

#[test]
fn default_privileges_do_not_open_what_a_superuser_creates() {
    stays_closed(&with_owner(), "postgres");
}

#[test]
fn default_privileges_do_not_open_what_a_database_owner_creates() {
    stays_closed(&with_owner(), "keeper");
}
