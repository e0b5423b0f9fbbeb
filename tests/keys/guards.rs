//! Nothing but the functions and a restore changes the private tables: no subscription, no role that may set
//! session_replication_role, no TRUNCATE.

use std::thread;
use std::time::{Duration, Instant};

use postgres::Client;

use crate::cluster::{Cluster, wait_until};
use crate::dump::{dump, restore, restore_archive};
use crate::graph::{install, kid, reason, refusal, rotate, slice, text};

const TABLES: [&str; 7] = [
    "binding",
    "revoked_keys",
    "root_keys",
    "policies",
    "recorder_binding",
    "trace_binding",
    "store_binding",
];

/// All that is stored, but for the roots themselves.
const STORED: &str = "
    SELECT (SELECT string_agg(b::text, ' ' ORDER BY b::text) FROM graph_kernel.binding AS b)
        || (SELECT string_agg(k::text, ' ' ORDER BY k::text) FROM graph_kernel.revoked_keys AS k)
        || (SELECT string_agg(k.epoch::text, ' ' ORDER BY k.epoch) FROM graph_kernel.root_keys AS k)
        || (SELECT string_agg(p::text, ' ' ORDER BY p::text) FROM graph_kernel.policies AS p)
        || (SELECT string_agg(r::text, ' ') FROM graph_kernel.recorder_binding AS r)
        || (SELECT string_agg(t::text, ' ') FROM graph_kernel.trace_binding AS t)
        || (SELECT string_agg(s::text, ' ') FROM graph_kernel.store_binding AS s)";

/// A row in each table.
fn fill(client: &mut Client) {
    install(client);
    client
        .batch_execute(
            "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges'),
                    graph_kernel.create_recorder_table(), graph_kernel.create_trace_table(),
                    graph_kernel.rotate_key(revoke_old => true);
             SELECT graph_kernel.bind_recorder_table('recorder_events');
             SELECT graph_kernel.bind_store(graph_kernel.create_slice_store());
             SELECT graph_policy_register('{\"max_nodes\": 7}', 'seven')",
        )
        .unwrap();
}

/// What a publisher sends that a subscriber must not take.
const PUBLISHED: [&str; 11] = [
    "INSERT INTO graph_kernel.binding
         (graph, name, is_current, turns, edges, resolved, bound_by, binder, database)
     SELECT 'e2b2b0a4-0000-4000-8000-000000000000', 'brought', true, turns, edges, resolved, 'postgres', 10::oid, 5
     FROM graph_kernel.binding LIMIT 1",
    "UPDATE graph_kernel.binding SET is_current = false",
    "DELETE FROM graph_kernel.revoked_keys",
    "INSERT INTO graph_kernel.revoked_keys (kid) SELECT kid FROM graph_kernel.keys ON CONFLICT DO NOTHING",
    "SELECT graph_policy_register('{\"max_nodes\": 8}', 'brought')",
    "DELETE FROM graph_kernel.trace_binding",
    "UPDATE graph_kernel.store_binding SET name = 'other'",
    "UPDATE graph_kernel.recorder_binding SET columns = '{}'",
    "INSERT INTO graph_kernel.word_totals VALUES (1, 1, 1, 1, now())",
    "INSERT INTO graph_kernel.word_counts VALUES (1, 1, '{word}', 1)",
    "TRUNCATE graph_kernel.root_keys, graph_kernel.binding, graph_kernel.revoked_keys",
];

#[test]
fn a_subscription_changes_no_private_table() {
    let publisher = Cluster::start("wal_level = logical");
    let subscriber = Cluster::start("");
    let (mut from, mut to) = (publisher.client(), subscriber.client());
    for client in [&mut from, &mut to] {
        fill(client);
        client.batch_execute("CREATE TABLE applied (n int PRIMARY KEY)").unwrap();
    }
    from.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES").unwrap();
    // As a superuser's hand could: the publisher's guards are not the subscriber's.
    for table in TABLES {
        from.batch_execute(&format!("ALTER TABLE graph_kernel.{table} DISABLE TRIGGER USER"))
            .unwrap();
    }
    // An update or a delete needs a row that the subscriber has.
    for (column, table) in [("graph", "binding"), ("kid", "revoked_keys")] {
        let known = text(&mut to, &format!("SELECT {column}::text FROM graph_kernel.{table}"));
        from.batch_execute(&format!("UPDATE graph_kernel.{table} SET {column} = '{known}'"))
            .unwrap();
    }
    let stored = text(&mut to, STORED);
    let export = slice(&mut to);
    let subscribe = |options: &str| {
        format!(
            "CREATE SUBSCRIPTION taken CONNECTION 'host={} port={} user=postgres dbname=postgres'
             PUBLICATION everything WITH ({options})",
            publisher.server.socket, publisher.server.port
        )
    };
    let refusals = || {
        let log = subscriber.log();
        String::from_utf8_lossy(&log).matches("never changed by a subscription").count()
    };
    let wait_for_refusal = |before: usize, what: &str| {
        let start = Instant::now();
        while refusals() == before {
            assert!(start.elapsed() < Duration::from_secs(20), "not refused: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    for (number, change) in PUBLISHED.iter().enumerate() {
        let before = refusals();
        to.batch_execute(&subscribe("copy_data = false")).unwrap();
        // It applies what is not a private table's.
        from.batch_execute(&format!("INSERT INTO applied VALUES ({number})")).unwrap();
        wait_until(&mut to, &format!("SELECT EXISTS (SELECT FROM applied WHERE n = {number})"));
        from.batch_execute(change).unwrap_or_else(|error| panic!("{change}: {error:?}"));
        wait_for_refusal(before, change);
        assert_eq!(text(&mut to, STORED), stored, "{change}");
        to.batch_execute("DROP SUBSCRIPTION taken").unwrap();
    }
    // The first copy of the tables.
    let before = refusals();
    from.batch_execute("INSERT INTO graph_kernel.revoked_keys (kid) VALUES ('9-0123456789abcdef')")
        .unwrap();
    to.batch_execute("TRUNCATE applied").unwrap();
    to.batch_execute(&subscribe("copy_data = true")).unwrap();
    wait_for_refusal(before, "the first copy");
    assert_eq!(text(&mut to, STORED), stored);
    to.batch_execute("DROP SUBSCRIPTION taken").unwrap();
    assert_eq!(reason(&mut to, &export), "ok");
}

/// The extension's owner and a role with pg_write_all_data, both of which may set session_replication_role.
fn with_replica_roles() -> (Cluster, Client, Client) {
    let cluster = Cluster::start("");
    cluster
        .client()
        .batch_execute(
            "CREATE ROLE keeper LOGIN; CREATE ROLE writer LOGIN IN ROLE pg_write_all_data;
             GRANT SET ON PARAMETER session_replication_role TO keeper, writer",
        )
        .unwrap();
    cluster.client().batch_execute("CREATE DATABASE kept OWNER keeper").unwrap();
    let mut keeper = cluster.client_of("keeper", "kept");
    fill(&mut keeper);
    let mut writer = cluster.client_of("writer", "kept");
    for client in [&mut keeper, &mut writer] {
        client.batch_execute("SET session_replication_role = replica").unwrap();
    }
    (cluster, keeper, writer)
}

#[test]
fn a_replica_role_passes_no_guard() {
    let (cluster, mut keeper, mut writer) = with_replica_roles();
    let mut admin = cluster.client_of("postgres", "kept");
    let stored = text(&mut admin, STORED);
    // Also where he may not read what is there.
    let private = ("42501".to_owned(), "PRIVATE_TABLE".to_owned());
    for row in [
        "revoked_keys VALUES ('9-0123456789abcdef')",
        "trace_binding (traces) VALUES ('memory_turns')",
        "store_binding (name, store) VALUES ('default', 'memory_turns')",
    ] {
        let insert = format!("INSERT INTO graph_kernel.{row}");
        assert_eq!(refusal(&mut writer, &insert), private, "{insert}");
    }
    for table in TABLES {
        admin
            .batch_execute(&format!("GRANT ALL ON graph_kernel.{table} TO writer, keeper"))
            .unwrap();
        for client in [&mut keeper, &mut writer] {
            for statement in ["DELETE FROM", "TRUNCATE"] {
                let statement = format!("{statement} graph_kernel.{table}");
                // Row security shows no root: there is nothing to delete.
                if statement != "DELETE FROM graph_kernel.root_keys" {
                    assert_eq!(refusal(client, &statement), private, "{statement}");
                }
            }
        }
    }
    for statement in [
        "UPDATE graph_kernel.revoked_keys SET kid = '9-0123456789abcdef'",
        "UPDATE graph_kernel.binding SET graph = gen_random_uuid()",
        "UPDATE graph_kernel.policies SET registered_by = 'x'",
        "INSERT INTO graph_kernel.root_keys VALUES (99, NULL, now())",
    ] {
        for client in [&mut keeper, &mut writer] {
            assert_eq!(refusal(client, statement).0, "42501", "{statement}");
        }
    }
    assert_eq!(text(&mut admin, STORED), stored);
    // A binding with a name of its owner's choice.
    let chosen = "e2b2b0a4-0000-4000-8000-000000000000";
    let insert = format!(
        "INSERT INTO graph_kernel.binding (graph, name, is_current, turns, edges, resolved, bound_by, binder)
         SELECT '{chosen}', 'brought', true, turns, edges, resolved, 'postgres', 10::oid FROM graph_kernel.binding"
    );
    assert_eq!(refusal(&mut writer, &insert).0, "42501");
    keeper.batch_execute(&insert).unwrap();
    let brought = "SELECT bound_by || ' ' || (graph <> 'e2b2b0a4-0000-4000-8000-000000000000')
                   FROM graph_kernel.bindings WHERE name = 'brought'";
    assert_eq!(text(&mut admin, brought), "keeper true");
    // Nor a policy that another has registered.
    keeper
        .batch_execute(
            "INSERT INTO graph_kernel.policies (policy, registered_by) VALUES ('{\"max_nodes\": 11}', 'postgres')",
        )
        .unwrap();
    let registered =
        "SELECT registered_by FROM graph_policies WHERE policy::json ->> 'max_nodes' = '11'";
    assert_eq!(text(&mut admin, registered), "keeper");
}

/// A dump with rows that name odd things: they are left out or of no use, and all others are there.
#[test]
fn one_odd_row_loses_no_other_in_a_restore() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    fill(&mut client);
    client
        .batch_execute(
            "CREATE ROLE gone; CREATE VIEW a_view AS SELECT * FROM memory_turns;
             CREATE TABLE lost (LIKE memory_turns INCLUDING ALL);
             GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO gone;
             GRANT SELECT ON memory_turns, memory_turn_edges TO gone;
             GRANT USAGE ON SCHEMA public TO gone",
        )
        .unwrap();
    let mut insert = |name: &str, turns: &str| {
        let statement = format!(
            "INSERT INTO graph_kernel.binding (name, is_current, turns, edges, resolved, bound_by)
             SELECT '{name}', true, '{turns}', edges, resolved, bound_by FROM graph_kernel.binding LIMIT 1"
        );
        client.batch_execute(&statement).unwrap();
    };
    insert("index", "memory_turns_pkey");
    insert("view", "a_view");
    insert("catalog", "pg_class");
    insert("lost", "lost");
    client
        .batch_execute(
            "DROP TABLE lost; CREATE TEMP TABLE temporary (LIKE memory_turns INCLUDING ALL);
             SET ROLE gone;
             SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', name => 'of gone');
             RESET ROLE;
             UPDATE graph_kernel.recorder_binding SET bound_by = 'gone', binder = 'gone'::regrole::oid;
             INSERT INTO graph_kernel.binding (name, is_current, turns, resolved, bound_by)
             SELECT 'temporary', true, 'temporary', resolved, bound_by FROM graph_kernel.binding LIMIT 1;
             DELETE FROM graph_kernel.trace_binding;
             INSERT INTO graph_kernel.trace_binding (traces) VALUES ('memory_turns_pkey')",
        )
        .unwrap();
    let of_gone = "SELECT graph::text FROM graph_kernel.bindings WHERE name = 'of gone'";
    let graph = text(&mut client, of_gone);
    let rows = dump(&origin, "postgres", "postgres", &["--no-privileges"]);

    let other = Cluster::start("");
    let said = restore(&other, "postgres", "postgres", &rows);
    for warning in [
        "WARNING:  role gone in table graph_kernel.binding does not exist: the binding does not count",
        "if each column holds what the mapping says: SELECT turns, edges, edges_by_child, columns FROM \
         graph_kernel.binding WHERE is_current AND name OPERATOR(pg_catalog.=) 'of gone';",
        "WARNING:  role gone in table graph_kernel.recorder_binding does not exist: the binding does not count",
        "if each column holds what the mapping says: SELECT events, columns FROM graph_kernel.recorder_binding;",
        "names public.a_view, which is not a permanent table",
    ] {
        assert!(said.contains(warning), "{warning}: {said}");
    }
    let mut client = other.client();
    let names =
        "SELECT string_agg(name, ', ' ORDER BY name) FROM graph_kernel.bindings WHERE is_current";
    assert_eq!(text(&mut client, names), "catalog, default, index, lost, of gone, temporary, view");
    assert_eq!(
        text(&mut client, "SELECT events::text FROM graph_kernel.recorder_binding"),
        "recorder_events"
    );
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    // What nobody who is here has bound does not count until it is bound again, as the graph that it was.
    client.batch_execute("SET graph_kernel.graph = 'of gone'").unwrap();
    let no_binder = |word: &str| ("42501".to_owned(), word.to_owned());
    assert_eq!(refusal(&mut client, crate::graph::SLICE), no_binder("GRAPH_TABLES"));
    assert_eq!(
        refusal(&mut client, "SELECT * FROM recorder_chunks()"),
        no_binder("RECORDER_TABLE")
    );
    let found = "SELECT ok || ' ' || detail FROM graph_check() WHERE check_name = 'bound_tables'";
    assert_eq!(
        text(&mut client, found),
        "false the role that bound table public.memory_turns was not found when its binding was restored"
    );
    let hint =
        text(&mut client, "SELECT hint FROM graph_check() WHERE check_name = 'bound_tables'");
    // It shows the mapping. Who has read it binds it.
    assert_eq!(client.query(&hint, &[]).unwrap().len(), 1, "{hint}");
    let bind =
        "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', NULL, 'of gone')";
    client.batch_execute(bind).unwrap();
    assert_eq!(text(&mut client, of_gone), graph);
    slice(&mut client);
    client
        .batch_execute("SELECT graph_kernel.bind_recorder_table('public.recorder_events', NULL)")
        .unwrap();
    client.batch_execute("SELECT * FROM recorder_chunks()").unwrap();
    for name in ["view", "catalog", "lost", "index", "temporary"] {
        client.batch_execute(&format!("SET graph_kernel.graph = '{name}'")).unwrap();
        refusal(&mut client, crate::graph::SLICE);
    }
    // Restored again, nothing is lost and nothing doubled.
    let count = "SELECT count(*)::text FROM graph_kernel.binding";
    let before = text(&mut client, count);
    let data = dump(&origin, "postgres", "postgres", &["--format=custom", "--no-privileges"]);
    let bindings = ["--data-only", "--schema=graph_kernel", "--table=binding"];
    restore_archive(&other, "postgres", "postgres", &bindings, &data);
    assert_eq!(text(&mut client, count), before);
}

/// Rows that are there already end no restore, which would lose the others.
#[test]
fn a_restore_over_rows_that_are_there_loses_none() {
    let cluster = Cluster::start("");
    let mut admin = cluster.client();
    admin.batch_execute("CREATE DATABASE a").unwrap();
    admin.batch_execute("CREATE DATABASE b").unwrap();
    let fill = |database: &str, statements: &str| {
        let mut client = cluster.client_of("postgres", database);
        client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
        client.batch_execute(statements).unwrap();
        client
    };
    fill(
        "a",
        r#"INSERT INTO graph_kernel.revoked_keys (kid) VALUES ('1-aaaaaaaaaaaaaaaa'), ('1-bbbbbbbbbbbbbbbb');
           SELECT graph_policy_register('{"max_nodes": 7}', 'seven'),
                  graph_policy_register('{"max_nodes": 8}', 'taken'),
                  graph_policy_register('{"max_nodes": 9}', 'nine')"#,
    );
    let mut client = fill(
        "b",
        // Each session holds them all: what is no key's takes no room.
        r#"INSERT INTO graph_kernel.revoked_keys (kid) SELECT repeat('x', 2000) || n FROM generate_series(1, 9) AS n;
           INSERT INTO graph_kernel.revoked_keys (kid) VALUES ('1-aaaaaaaaaaaaaaaa'), ('1-AAAAAAAAAAAAAAAA');
           SELECT graph_policy_register('{"max_nodes": 7}', 'seven'),
                  graph_policy_register('{"max_nodes": 5}', 'taken')"#,
    );
    let rows = dump(&cluster, "postgres", "a", &["--data-only"]);
    let said = restore(&cluster, "postgres", "b", &rows);
    assert!(said.contains("the name taken is another policy's: the row is left out"), "{said}");
    let kids = "SELECT string_agg(kid, ' ' ORDER BY kid) FROM graph_kernel.revoked_keys";
    assert_eq!(text(&mut client, kids), "1-aaaaaaaaaaaaaaaa 1-bbbbbbbbbbbbbbbb");
    let policies = "SELECT string_agg(concat_ws(' ', name, policy::json ->> 'max_nodes'), ', ' \
                    ORDER BY name, policy::json ->> 'max_nodes') FROM graph_kernel.policies";
    assert_eq!(text(&mut client, policies), "nine 9, seven 7, taken 5, 5, 7, 8, 9");
}

/// Sessions read some private tables whole: only a superuser can make them large.
#[test]
fn what_sessions_read_whole_is_bounded() {
    let cluster = Cluster::start("");
    let mut admin = cluster.client();
    admin
        .batch_execute(
            "CREATE ROLE extension_owner LOGIN; GRANT CREATE ON DATABASE postgres TO extension_owner",
        )
        .unwrap();
    let mut owner = cluster.client_of("extension_owner", "postgres");
    owner.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    let revoke = "INSERT INTO graph_kernel.revoked_keys (kid) VALUES ('1-aaaaaaaaaaaaaaaa')";
    owner.batch_execute(revoke).unwrap();
    let fill = "INSERT INTO graph_kernel.revoked_keys (kid)
        SELECT '1-' || lpad(to_hex(n), 16, '0') FROM generate_series(1, 300000) AS n";
    admin
        .batch_execute(&format!(
            "ALTER TABLE graph_kernel.revoked_keys DISABLE TRIGGER USER; {fill};
             ALTER TABLE graph_kernel.revoked_keys ENABLE ALWAYS TRIGGER guard"
        ))
        .unwrap();
    let more = "INSERT INTO graph_kernel.revoked_keys (kid) VALUES ('1-cccccccccccccccc')";
    let error = owner.batch_execute(more).unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "54000", "{error:?}");
    assert_eq!(error.detail(), Some("PRIVATE_TABLE"));
    admin.batch_execute(more).unwrap();
    // Of all bindings the names are read.
    for row in [
        "binding (name, is_current, turns, resolved)
         SELECT repeat('x', n), false, 'pg_class'::regclass, '{}' FROM generate_series(63, 64) AS n",
        "store_binding (name, store) SELECT repeat('x', n), 'pg_class'::regclass FROM generate_series(63, 64) AS n",
    ] {
        owner.batch_execute(&format!("INSERT INTO graph_kernel.{row}")).unwrap();
    }
    // With what is stored beside the rows.
    owner
        .batch_execute(
            "INSERT INTO graph_kernel.binding (name, is_current, turns, columns, resolved)
             SELECT 'x', false, 'pg_class'::regclass,
                    (SELECT jsonb_object_agg(n, repeat('x', 200)) FROM generate_series(1, 1500) AS n), '{}'",
        )
        .unwrap();
    for table in ["binding", "store_binding"] {
        let longest =
            format!("SELECT string_agg(length(name)::text, ' ') FROM graph_kernel.{table}");
        assert_eq!(text(&mut owner, &longest), "63", "{table}");
    }
}

/// A restore that disables triggers leaves the guards plain; graph_check says how to put them right.
#[test]
fn a_restore_without_triggers_is_put_right() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    fill(&mut client);
    let data = dump(&origin, "postgres", "postgres", &["--format=custom"]);
    let other = Cluster::start("");
    let mut client = other.client();
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    client
        .batch_execute(
            "SELECT graph_kernel.create_tables(), graph_kernel.create_recorder_table();
             SELECT graph_kernel.make_trace_table('public'), graph_kernel.make_slice_store('public')",
        )
        .unwrap();
    restore_archive(&other, "postgres", "postgres", &["--data-only", "--disable-triggers"], &data);
    let check = "SELECT count::text FROM graph_check() WHERE check_name = 'private_triggers'";
    let hint = "SELECT hint FROM graph_check() WHERE check_name = 'private_triggers'";
    assert_ne!(text(&mut client, check), "0");
    let commands = text(&mut client, hint);
    client.batch_execute(&commands).unwrap();
    assert_eq!(text(&mut client, check), "0");
    // The roles are found by their names; the database has the OID that it had there.
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    assert_ne!(kid(&export), "");
    client.query("SELECT * FROM recorder_chunks()", &[]).unwrap();
    rotate(&mut client);
}
