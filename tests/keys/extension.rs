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
          AND NOT (c.relname IN ('binding', 'bindings', 'recorder_binding', 'trace_binding', 'policies',
                                  'known_policies', 'proof_keys') AND p = 'SELECT')
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
                            'bind_recorder_table_for', 'bind_traces_for', 'check_trace_table', 'set_binder')
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
