//! Statistics of calls, in servers that preload the library.

use std::sync::{Arc, Mutex};
use std::thread;

use crate::cluster::Cluster;
use crate::common::database::Database;
use crate::common::process::{backend_pid, private_memory};
use postgres::{Client, NoTls};

const ANCHOR: &str = "00000000-0000-4000-8000-000000000001";

/// A server that preloads the library, with a database `notes` in which one turn has forty children.
fn preloaded(configuration: &str) -> Cluster {
    let cluster =
        Cluster::start(&format!("shared_preload_libraries = 'graph_kernel'\n{configuration}"));
    for name in ["notes", "other"] {
        cluster.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
    }
    notes(&cluster)
        .batch_execute(&format!(
            "CREATE EXTENSION graph_kernel;
             SELECT graph_kernel.create_tables();
             INSERT INTO memory_turns (id, content_text) VALUES ('{ANCHOR}', 'x');
             INSERT INTO memory_turns (id) SELECT gen_random_uuid() FROM generate_series(1, 40);
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id)
                 SELECT '{ANCHOR}', id FROM memory_turns WHERE id <> '{ANCHOR}';
             SELECT graph_kernel.reset_statistics()"
        ))
        .unwrap();
    cluster
}

fn notes(cluster: &Cluster) -> Client {
    cluster.client_of("postgres", "notes")
}

/// A value of a function's row.
fn value(client: &mut Client, function: &str, expression: &str) -> i64 {
    let query =
        format!("SELECT ({expression})::bigint FROM graph_kernel.statistics WHERE function = $1");
    client.query_opt(&query, &[&function]).unwrap().map_or(0, |row| row.get(0))
}

fn error_of(client: &mut Client, statement: &str) -> String {
    let error = client.batch_execute(statement).unwrap_err();
    error.as_db_error().unwrap().message().to_owned()
}

#[test]
fn nothing_is_counted_without_preloading_and_reading_says_so() {
    let database = Database::with_tables("statistics");
    let notices = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&notices);
    let mut client = database.server.connect_noting(&database.name, move |notice| {
        sink.lock().unwrap().push(notice);
    });
    client
        .batch_execute("SELECT graph_slice(gen_random_uuid()) FROM generate_series(1, 0)")
        .unwrap();
    let rows = client.query("SELECT * FROM graph_kernel.statistics", &[]).unwrap();
    assert!(rows.is_empty());
    client.batch_execute("SELECT graph_kernel.reset_statistics()").unwrap();
    let notices = notices.lock().unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].hint().unwrap().contains("shared_preload_libraries"), "{notices:?}");
}

#[test]
fn calls_errors_turns_and_times_are_counted() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    for _ in 0..3 {
        client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
    }
    let not_found = "SELECT graph_slice('00000000-0000-4000-8000-00000000dead')";
    error_of(&mut client, not_found);
    client.batch_execute("SET statement_timeout = 1").unwrap();
    let slow = "SELECT graph_slice(id, '{\"max_nodes\": 10000}') FROM memory_turns, generate_series(1, 1000)";
    error_of(&mut client, slow);
    client
        .batch_execute("RESET statement_timeout; SELECT graph_kernel.reset_statistics()")
        .unwrap();

    for _ in 0..3 {
        client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
    }
    error_of(&mut client, not_found);
    let mut slice = |expression: &str| value(&mut client, "graph_slice", expression);
    assert_eq!(slice("calls"), 4);
    assert_eq!(slice("turns_selected"), 3 * 41);
    assert!(slice("turns_read") >= 3 * 41);
    assert_eq!(slice("errors -> 'ANCHOR_NOT_FOUND'"), 1);
    assert_eq!(slice("(SELECT count(*) FROM jsonb_object_keys(errors))"), 1);
    assert_eq!(slice("histogram -> '+Inf'"), 4);
    assert_eq!(slice("(total_time > 0 AND total_time < 60000)::integer"), 1);
    let ordered = "SELECT count(*) FROM graph_kernel.statistics AS s, jsonb_each_text(s.histogram) AS a (bound, n),
                          jsonb_each_text(s.histogram) AS b (bound, n)
                    WHERE replace(b.bound, '+Inf', 'Infinity')::float8 > replace(a.bound, '+Inf', 'Infinity')::float8
                      AND b.n::bigint < a.n::bigint";
    assert_eq!(
        client.query_one(ordered, &[]).unwrap().get::<_, i64>(0),
        0,
        "bounds are cumulative"
    );

    // One call that returns row after row, also if it is not read to its end.
    let many = "SELECT count(*) FROM graph_slices(ARRAY(SELECT id FROM memory_turns))";
    client.batch_execute(many).unwrap();
    assert_eq!(value(&mut client, "graph_slices", "calls"), 1);
    assert_eq!(value(&mut client, "graph_slices", "histogram -> '+Inf'"), 1);
    client
        .batch_execute(
            "BEGIN;
             DECLARE c CURSOR FOR SELECT (graph_slices(ARRAY(SELECT id FROM memory_turns))).slice;
             FETCH 3 FROM c;
             COMMIT",
        )
        .unwrap();
    assert_eq!(value(&mut client, "graph_slices", "calls"), 2);
}

#[test]
fn nested_calls_are_counted_each_for_itself_also_when_they_fail() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    let request = format!("SELECT graph_api_slice('{{\"anchor_turn_id\": \"{ANCHOR}\"}}')");
    client.batch_execute(&request).unwrap();
    let outer = value(&mut client, "graph_api_slice", "calls");
    assert_eq!(outer, 1);
    client
        .batch_execute(
            "DO $$ BEGIN
                 FOR i IN 1 .. 5 LOOP
                     BEGIN
                         PERFORM graph_slice('00000000-0000-4000-8000-00000000dead');
                     EXCEPTION WHEN SQLSTATE '02000' THEN NULL;
                     END;
                 END LOOP;
             END $$",
        )
        .unwrap();
    assert_eq!(value(&mut client, "graph_slice", "errors -> 'ANCHOR_NOT_FOUND'"), 5);
    // What follows is still attributed to its own function.
    client.batch_execute(&format!("SELECT count(*) FROM graph_slice_turns('{ANCHOR}')")).unwrap();
    assert_eq!(value(&mut client, "graph_slice_turns", "turns_selected"), 41);
    assert_eq!(value(&mut client, "graph_slice_turns", "calls"), 1);
    // An error of PostgreSQL's own counts by its SQLSTATE.
    client.batch_execute("BEGIN; DROP TABLE memory_turn_edges CASCADE").unwrap();
    error_of(&mut client, &format!("SELECT graph_slice('{ANCHOR}')"));
    client.batch_execute("ROLLBACK").unwrap();
    let errors = "(SELECT sum(n::bigint) FROM jsonb_each_text(errors) AS e (word, n))";
    assert_eq!(value(&mut client, "graph_slice", errors), 6);
}

#[test]
fn counting_errors_leaves_no_memory_behind() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    let errors = "DO $do$ BEGIN FOR i IN 1..5000 LOOP
                      BEGIN PERFORM graph_slice('00000000-0000-4000-8000-00000000dead');
                      EXCEPTION WHEN OTHERS THEN NULL; END;
                  END LOOP; END $do$";
    let used = |client: &mut Client| -> i64 {
        let query = "SELECT sum(used_bytes)::bigint FROM pg_backend_memory_contexts
                     WHERE name IN ('TopMemoryContext', 'ErrorContext', 'error of graph_kernel')";
        client.query_one(query, &[]).unwrap().get(0)
    };
    client.batch_execute(errors).unwrap();
    let before = used(&mut client);
    client.batch_execute(errors).unwrap();
    let grown = used(&mut client) - before;
    assert!(grown < 16 * 1024, "{grown} bytes more after 5000 errors");
}

#[test]
fn errors_of_the_server_leave_no_memory_behind() {
    let cluster = preloaded("");
    notes(&cluster).batch_execute("CREATE ROLE plain LOGIN").unwrap();
    let mut plain = cluster.client_of("plain", "notes");
    let errors = format!(
        "DO $do$ BEGIN FOR i IN 1..20000 LOOP
             BEGIN PERFORM graph_slice('{ANCHOR}'); RAISE assert_failure;
             EXCEPTION WHEN insufficient_privilege THEN NULL; END;
         END LOOP; END $do$"
    );
    let pid = backend_pid(&mut plain);
    plain.batch_execute(&errors).unwrap();
    let before = private_memory(pid);
    plain.batch_execute(&errors).unwrap();
    let grown = private_memory(pid) - before;
    assert!(grown < 256, "{grown} KiB more after 20 000 errors");
}

#[test]
fn verifications_are_counted_by_result() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    client
        .batch_execute(&format!(
            "CREATE TABLE kept AS SELECT graph_slice('{ANCHOR}') AS slice;
             SELECT graph_verify(slice) FROM kept;
             SELECT graph_verify(replace(slice::text, '\"salience\":0.5', '\"salience\":0.6')::json) FROM kept;
             SELECT graph_is_admissible('{{}}', '{ANCHOR}');
             CREATE TABLE atoms (slice json, turns uuid[]);
             CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE FOR EACH ROW
                 EXECUTE FUNCTION graph_require_admissible('slice', 'turns')"
        ))
        .unwrap();
    assert_eq!(value(&mut client, "graph_verify", "verifications -> 'ok'"), 1);
    assert_eq!(
        value(
            &mut client,
            "graph_verify",
            "(SELECT count(*) FROM jsonb_object_keys(verifications))"
        ),
        2
    );
    assert_eq!(value(&mut client, "graph_is_admissible", "verifications -> 'malformed'"), 1);
    client
        .batch_execute(&format!(
            "INSERT INTO atoms SELECT slice, ARRAY['{ANCHOR}'::uuid] FROM kept"
        ))
        .unwrap();
    error_of(&mut client, "INSERT INTO atoms SELECT slice, ARRAY[gen_random_uuid()] FROM kept");
    assert_eq!(value(&mut client, "graph_require_admissible", "calls"), 2);
    assert_eq!(value(&mut client, "graph_require_admissible", "errors -> 'NOT_ADMISSIBLE'"), 1);
    assert_eq!(value(&mut client, "graph_require_admissible", "verifications -> 'ok'"), 1);
    assert_eq!(
        value(&mut client, "graph_require_admissible", "verifications -> 'turn_outside'"),
        1
    );

    client
        .batch_execute(
            "CREATE TABLE findings (provenance jsonb, turn uuid);
             CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON findings NOT DEFERRABLE FOR EACH ROW
                 EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turn')",
        )
        .unwrap();
    let message = error_of(&mut client, "INSERT INTO findings VALUES ('{}', gen_random_uuid())");
    assert!(message.contains("malformed"), "{message}");
    let function = "graph_require_admissible_result";
    assert_eq!(value(&mut client, function, "errors -> 'NOT_ADMISSIBLE'"), 1);
    assert_eq!(value(&mut client, function, "verifications -> 'malformed'"), 1);
}

#[test]
fn words_beyond_the_room_are_counted_together_until_a_reset() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    // A row security policy of a user's raises within a slice what it likes.
    client
        .batch_execute(
            "CREATE ROLE plain LOGIN;
             GRANT SELECT ON memory_turns, memory_turn_edges TO plain;
             CREATE FUNCTION refuse() RETURNS boolean LANGUAGE plpgsql SET search_path = public AS
                 $$ BEGIN RAISE EXCEPTION 'm' USING DETAIL = current_setting('test.word'); END $$;
             CREATE POLICY refusing ON memory_turns USING (refuse());
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY",
        )
        .unwrap();
    let mut plain = cluster.client_of("plain", "notes");
    let function = "graph_slice";
    let mut raise = |word: &str| {
        plain.batch_execute(&format!("SET test.word = '{word}'")).unwrap();
        assert_eq!(error_of(&mut plain, &format!("SELECT graph_slice('{ANCHOR}')")), "m");
    };
    let others = "coalesce(errors -> 'OTHER', '0')";
    for _ in 0..2 {
        for n in 0..30 {
            raise(&"X".repeat(n + 1));
        }
        raise("X");
        assert_eq!(value(&mut client, function, "errors -> 'X'"), 2);
        assert_eq!(value(&mut client, function, others), 6);
        let words = "(SELECT count(*) FROM jsonb_object_keys(errors))";
        assert_eq!(value(&mut client, function, words), 25);
        client.batch_execute("SELECT graph_kernel.reset_statistics()").unwrap();
        raise("AFTER_RESET");
        assert_eq!(value(&mut client, function, "errors -> 'AFTER_RESET'"), 1);
        client.batch_execute("SELECT graph_kernel.reset_statistics()").unwrap();
    }
}

#[test]
fn sums_are_exact_and_each_database_has_its_own() {
    let cluster = preloaded("");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let config = cluster.config("postgres", "notes");
            thread::spawn(move || {
                let mut client = config.connect(NoTls).unwrap();
                for _ in 0..250 {
                    client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut client = notes(&cluster);
    assert_eq!(value(&mut client, "graph_slice", "calls"), 1000);
    assert_eq!(value(&mut client, "graph_slice", "turns_selected"), 41_000);

    let mut other = cluster.client_of("postgres", "other");
    other.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    assert_eq!(value(&mut other, "graph_slice", "calls"), 0);
    other.batch_execute("SELECT graph_kernel.reset_statistics()").unwrap();
    assert_eq!(value(&mut client, "graph_slice", "calls"), 1000);
    client.batch_execute("SELECT graph_kernel.reset_statistics()").unwrap();
    assert_eq!(value(&mut client, "graph_slice", "calls"), 0);
}

#[test]
fn statistics_are_for_those_who_monitor() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    client
        .batch_execute(
            "CREATE ROLE plain LOGIN; CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher",
        )
        .unwrap();
    let mut plain = cluster.client_of("plain", "notes");
    for statement in [
        "SELECT * FROM graph_kernel.statistics",
        "SELECT * FROM graph_kernel.list_statistics()",
        "SELECT graph_kernel.reset_statistics()",
    ] {
        assert!(error_of(&mut plain, statement).contains("permission denied"), "{statement}");
    }
    let mut watcher = cluster.client_of("watcher", "notes");
    watcher.batch_execute("SELECT * FROM graph_kernel.statistics").unwrap();
    assert!(
        error_of(&mut watcher, "SELECT graph_kernel.reset_statistics()").contains("permission")
    );
}

#[test]
fn refusals_are_logged_without_what_the_caller_says() {
    /// As long as a name may be.
    const FORGER: &str = "forger_with_a_name_that_is_as_long_as_those_of_roles_may_be_her";
    let cluster = preloaded("graph_kernel.log_refusals = on");
    let mut client = notes(&cluster);
    for statement in [
        format!(
            "CREATE ROLE {FORGER} LOGIN; GRANT SELECT ON memory_turns, memory_turn_edges TO {FORGER}"
        ),
        format!(
            "CREATE TABLE kept AS SELECT graph_slice('{ANCHOR}')::text AS slice; GRANT SELECT ON kept TO {FORGER}"
        ),
    ] {
        client.batch_execute(&statement).unwrap();
    }
    let mut forger = cluster.client_of(FORGER, "notes");
    forger
        .batch_execute(
            "SELECT graph_verify(slice::json) FROM kept;
             SELECT graph_verify(replace(slice, '\"salience\":0.5', '\"salience\":0.6')::json) FROM kept;
             SELECT graph_verify(regexp_replace(slice, '\"slice_id\":\"[^\"]*\"',
                                 '\"slice_id\":\"a\\\\nLOG:  all is well\\\\u001b[31m' || repeat('x', \
                                 100) || '\"')::json) FROM kept;
             SELECT graph_verify('{}')",
        )
        .unwrap();
    let log = String::from_utf8(cluster.log()).unwrap();
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("refused slice")).collect();
    assert_eq!(refused.len(), 3, "{log}");
    assert!(
        refused.iter().all(|line| line.contains(&format!("role \"{FORGER}\","))),
        "{refused:?}"
    );
    assert!(refused[0].contains("reason digest_mismatch"), "{refused:?}");
    assert!(
        refused[2].ends_with(", slice unknown") && refused[2].contains("reason malformed"),
        "{refused:?}"
    );
    assert!(refused.iter().all(|line| line.len() < 300 && !line.contains('\u{1b}')), "{refused:?}");
    assert!(
        !log.contains("LOG:  all is well"),
        "neither the text nor the statement is logged: {log}"
    );
    let denied = error_of(&mut forger, "SET graph_kernel.log_refusals = off");
    assert!(denied.contains("permission denied"), "{denied}");
}

#[test]
fn functions_that_others_add_to_the_extension_are_not_counted() {
    let cluster = preloaded("");
    let mut admin = cluster.client();
    admin.batch_execute("CREATE ROLE owner LOGIN").unwrap();
    admin.batch_execute("CREATE DATABASE owned OWNER owner").unwrap();
    let mut owner = cluster.client_of("owner", "owned");
    owner
        .batch_execute(
            "CREATE SCHEMA added;
             CREATE EXTENSION graph_kernel;
             DO $$ BEGIN
                 FOR i IN 1..600 LOOP
                     EXECUTE format('CREATE FUNCTION added.f%s() RETURNS int LANGUAGE sql
                                     SET search_path = pg_catalog RETURN 1', i);
                     EXECUTE format('ALTER EXTENSION graph_kernel ADD FUNCTION added.f%s()', i);
                     EXECUTE format('SELECT added.f%s()', i);
                 END LOOP;
             END $$",
        )
        .unwrap();
    let added = "SELECT count(*) FROM graph_kernel.list_statistics() WHERE function ~ '^f[0-9]+$'";
    let mut watcher = cluster.client_of("postgres", "owned");
    assert_eq!(watcher.query_one(added, &[]).unwrap().get::<_, i64>(0), 0);

    // There is room for those of another database, in C, SQL and PL/pgSQL.
    let mut client = notes(&cluster);
    client
        .batch_execute(&format!(
            "SELECT graph_slice('{ANCHOR}'); SELECT graph_kernel.create_trace_table();
             SELECT graph_api_health(); SELECT * FROM graph_check()"
        ))
        .unwrap();
    for function in ["graph_slice", "create_trace_table", "graph_api_health", "graph_check"] {
        assert_eq!(value(&mut client, function, "calls"), 1, "{function}");
    }
}

#[test]
fn an_error_with_a_long_detail_is_counted() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    // The detail is not a word: its SQLSTATE is counted.
    client
        .batch_execute(
            "CREATE FUNCTION fails() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'no' USING ERRCODE = '22012', DETAIL = repeat('A', 1000000) || ': x';
             END $$;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON memory_turns USING (fails());
             CREATE ROLE reads; GRANT SELECT ON memory_turns, memory_turn_edges TO reads; SET ROLE reads",
        )
        .unwrap();
    let slice = "SELECT graph_slice('00000000-0000-4000-8000-000000000001')";
    client.batch_execute(slice).unwrap_err();
    client.batch_execute("RESET ROLE").unwrap();
    let words = "SELECT errors::text FROM graph_kernel.statistics WHERE function = 'graph_slice'";
    let words: String = client.query_one(words, &[]).unwrap().get(0);
    assert!(words.contains("22012"), "{words}");
}

/// Each function of the extension that the server announces has an entry once it was called.
#[test]
fn every_function_of_the_extension_may_be_counted() {
    let cluster = preloaded("");
    let mut client = notes(&cluster);
    let functions = client
        .query(
            "SELECT DISTINCT p.proname::text FROM pg_proc AS p
             JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
             WHERE p.proconfig IS NOT NULL AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype",
            &[],
        )
        .unwrap();
    assert!(functions.len() > 80, "{}", functions.len());
    for row in &functions {
        // Each with NULLs, which call it or are refused by it. A strict one is not called.
        let name: &str = row.get(0);
        let calls = "SELECT string_agg(format('SELECT * FROM %s(%s)', p.oid::regproc,
                 (SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY o)
                  FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (t, o))), ';;')
             FROM pg_proc AS p JOIN pg_depend AS d
               ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
             WHERE p.proname = $1 AND NOT p.proisstrict";
        let calls: Option<String> = client.query_one(calls, &[&name]).unwrap().get(0);
        let Some(calls) = calls else { continue };
        for call in calls.split(";;") {
            let _ = client.batch_execute(call);
        }
        let counted = "SELECT calls FROM graph_kernel.list_statistics() WHERE function = $1";
        if name == "reset_statistics" {
            continue;
        }
        let counted = client.query_opt(counted, &[&name]).unwrap();
        assert!(counted.is_some_and(|row| row.get::<_, i64>(0) > 0), "{name}");
    }
}
