//! Values of type text that hold bytes which are not UTF-8, as settings of a connection's start and what is made of
//! them can: an error or an answer, never the end of the server's process, and never what lies behind the value.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

use crate::common::calls::{ANCHOR, Function, functions, values};
use crate::common::database::Database;
use crate::common::process::{backend_pid, program};
use crate::common::tell;
use postgres::{Client, SimpleQueryMessage};

/// Beginnings of characters that do not go on.
const BYTES: [&[u8]; 4] = [b"\xe2", b"\xe1\x9a", b"\xe3\x80", b"\xf0"];

/// Where they stand in a value, as expressions over `v.bytes`.
const PLACES: [&str; 4] = [
    "v.bytes",
    "v.bytes || 'behind'",
    "'before' || v.bytes || 'behind'",
    "repeat(' ', 100000) || v.bytes",
];

/// psql with a setting that holds these bytes.
fn psql(database: &Database, bytes: &[u8], statement: &str) -> Output {
    let options = [b"-c my.var=", bytes].concat();
    let mut psql = program("psql");
    psql.args(["-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement])
        .env("PGCLIENTENCODING", "SQL_ASCII")
        .env("PGOPTIONS", OsStr::from_bytes(&options))
        .env("PGHOST", &database.server.socket)
        .env("PGPORT", database.server.port.to_string())
        .env("PGUSER", &database.server.user)
        .env("PGDATABASE", &database.name);
    psql.output().unwrap()
}

/// A database whose table `odd` has a value `bytes` for each of [`BYTES`] and [`PLACES`].
fn database_of_bytes(name: &str) -> Database {
    let database = Database::with_tables(name);
    database
        .connect()
        .batch_execute("CREATE TABLE odd (n serial PRIMARY KEY, bytes text)")
        .unwrap();
    for bytes in BYTES {
        let places: Vec<String> = PLACES.iter().map(|place| format!("({place})")).collect();
        let statement = format!(
            "INSERT INTO odd (bytes) SELECT x FROM (SELECT current_setting('my.var') AS bytes) AS v,
                 LATERAL (VALUES {}) AS p (x)",
            places.join(", ")
        );
        let output = psql(&database, bytes, &statement);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let count: i64 = database.connect().query_one("SELECT count(*) FROM odd", &[]).unwrap().get(0);
    assert_eq!(count as usize, BYTES.len() * PLACES.len());
    database
}

/// A session that ends when the server restarts its processes.
struct Canary(Client, i32);

impl Canary {
    fn new(database: &Database) -> Self {
        let mut client = database.connect();
        let pid = backend_pid(&mut client);
        Canary(client, pid)
    }

    fn is_alive(&mut self) -> bool {
        self.0
            .query_one("SELECT pg_backend_pid()", &[])
            .is_ok_and(|row| row.get::<_, i32>(0) == self.1)
    }
}

/// Odd values of a type, as expressions over `v.bytes`; none where it cannot hold bytes.
fn odd_values(kind: &str) -> Vec<String> {
    let of_slice = |kind: &str| {
        format!(
            "(SELECT json_object_agg(e.key, CASE WHEN json_typeof(e.value) = 'string' THEN to_json(v.bytes) \
            ELSE e.value END)
                FROM kept, json_each(kept.slice) AS e)::{kind}"
        )
    };
    let written = |kind: &str, text: &str| format!("({text})::{kind}");
    match kind {
        "text" => vec!["v.bytes".to_owned()],
        "name" => vec!["v.bytes::name".to_owned()],
        "text[]" => {
            vec!["ARRAY[v.bytes]".to_owned(), "ARRAY['default', NULL, v.bytes, 'x']".to_owned()]
        }
        "json" | "jsonb" => vec![
            written(kind, "to_json(v.bytes)"),
            written(kind, "json_build_object(v.bytes, v.bytes)"),
            written(
                kind,
                "json_build_object('turns', json_build_object('id', v.bytes, v.bytes, 1))",
            ),
            written(
                kind,
                "json_build_object('turns', json_build_object('role', json_build_object('expression', v.bytes)))",
            ),
            written(
                kind,
                "json_build_array(json_build_object('segment_id', 1, 'ordinal', 1, 'text', v.bytes))",
            ),
            written(kind, "(SELECT replace(kept.slice::text, 'user', v.bytes) FROM kept)"),
            of_slice(kind),
        ],
        "jsonb[]" => vec![
            "ARRAY[to_jsonb(v.bytes)]".to_owned(),
            "ARRAY[jsonb_build_object(v.bytes, v.bytes), NULL]".to_owned(),
        ],
        "slice_policy" | "chunking_policy" => vec![
            written(kind, "v.bytes"),
            written(kind, "'{\"version\": \"' || v.bytes || '\"}'"),
            written(kind, "'{\"' || v.bytes || '\": 1}'"),
        ],
        // Tables and columns of such a name.
        "regclass" | "oid" => {
            vec![format!("(SELECT t.oid FROM tables AS t WHERE t.n = v.n)::{kind}")]
        }
        _ => Vec::new(),
    }
}

/// What is wrong with how a call for each odd value ends.
fn faults(client: &mut Client, function: &Function, arguments: &[String], n: usize) -> Vec<String> {
    let mut faults = Vec::new();
    for odd in 1..=BYTES.len() * PLACES.len() {
        let with_value: Vec<String> = arguments
            .iter()
            .map(|argument| {
                argument
                    .replace("v.bytes", "(SELECT o.bytes FROM odd AS o WHERE o.n = ODD)")
                    .replace("v.n", "ODD")
            })
            .map(|argument| argument.replace("ODD", &odd.to_string()))
            .collect();
        let call = function.call(&with_value);
        let (begin, end) = if function.is_procedure { ("", "") } else { ("BEGIN", "ROLLBACK") };
        client.batch_execute(begin).unwrap();
        let result = client.simple_query(&call);
        let mut says_bytes = false;
        let what =
            |fault: &str| format!("{} (argument {}, value {odd}): {fault}", function.name, n + 1);
        match &result {
            Ok(messages) => {
                for message in messages {
                    let SimpleQueryMessage::Row(row) = message else { continue };
                    for column in 0..row.len() {
                        // A function in SQL may give the bytes back that it was given.
                        if function.is_c && row.try_get(column).is_err() {
                            faults.push(what("an answer is not UTF-8"));
                        }
                    }
                }
            }
            Err(error) => match error.code() {
                Some(code) if code.code().starts_with("XX") => {
                    faults.push(what(&format!("{error:?}")));
                }
                Some(_) => {
                    let error = error.as_db_error().unwrap();
                    let message = error.message();
                    let all = [Some(message), error.detail(), error.hint()];
                    says_bytes = all.iter().flatten().any(|text| text.contains('\u{fffd}'));
                    if ["panic", "byte index", "capacity", "assert"]
                        .iter()
                        .any(|w| message.contains(w))
                    {
                        faults.push(what(message));
                    }
                }
                // A message of the server's own that holds the bytes, which this client cannot read, or a lost
                // connection.
                None => {}
            },
        }
        if client.is_closed() || client.batch_execute(end).is_err() {
            faults.push(what(&format!("the connection is lost: {result:?}")));
            return faults;
        }
        // This client reads bytes as the character that others write in their place; the server knows.
        if says_bytes && client.query_one("SELECT pg_temp.says_bytes($1)", &[&call]).unwrap().get(0)
        {
            let message = result.as_ref().err().and_then(|error| error.as_db_error());
            let message = message.map(|error| (error.message(), error.hint()));
            faults.push(what(&format!("an error of the extension is not UTF-8: {message:?}")));
        }
    }
    faults
}

#[test]
fn the_statement_that_ended_the_server_is_refused() {
    let database = Database::with_tables("bytes_statement");
    let mut canary = Canary::new(&database);
    for bytes in BYTES {
        for call in [
            "graph_content_hash(repeat(' ', 200000) || current_setting('my.var'))",
            "graph_normalize_text(current_setting('my.var'))",
            "graph_policy_hash(current_setting('my.var')::slice_policy)",
            "slice_policy_in(textout(current_setting('my.var')))",
            "chunking_policy_in(textout(current_setting('my.var')))",
            "graph_export_draw(to_json(current_setting('my.var')))",
            "graph_is_admissible_result(to_jsonb(current_setting('my.var')))",
        ] {
            let output = psql(&database, bytes, &format!("SELECT {call}"));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let named: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
            let expected =
                format!("invalid byte sequence for encoding \"UTF8\": {}", named.join(" "));
            assert!(said.contains(&expected), "{call}: {said}");
            assert!(said.contains("DETAIL:  INVALID_TEXT"), "{call}: {said}");
            assert!(canary.is_alive(), "{call} ended the server");
        }
    }
}

#[test]
fn every_argument_of_every_function_takes_any_bytes() {
    let database = database_of_bytes("bytes_arguments");
    let mut canary = Canary::new(&database);
    let mut admin = database.connect();
    admin
        .batch_execute(&format!(
            "SELECT graph_kernel.create_recorder_table(), graph_kernel.create_trace_table('public');
             ALTER TABLE memory_turns ADD embedding real[];
             INSERT INTO memory_turns (id, role, content_text, embedding) VALUES ('{ANCHOR}', 'user', 'anchor', \
             '{{1,0,0}}')"
        ))
        .unwrap();
    admin
        .batch_execute(&format!("CREATE TABLE kept AS SELECT graph_slice('{ANCHOR}') AS slice"))
        .unwrap();
    admin
        .batch_execute(
            "CREATE TABLE tables (n int, oid oid);
             DO $$
             DECLARE v record;
             BEGIN
                 FOR v IN SELECT n, bytes FROM odd WHERE n % 4 <> 0 LOOP
                     EXECUTE format('CREATE TABLE %I (id uuid, %I text)', v.bytes || v.n, v.bytes);
                     INSERT INTO tables SELECT v.n, max(c.oid::bigint)::oid FROM pg_class AS c WHERE c.relkind = 'r';
                 END LOOP;
             END $$",
        )
        .unwrap();
    let connect = || {
        let mut client = database.connect();
        client
            .batch_execute(
                "SET statement_timeout = '60s'; SET client_min_messages = error;
                 CREATE FUNCTION pg_temp.says_bytes(call text) RETURNS boolean LANGUAGE plpgsql AS $$
                 DECLARE message text; word text; hint text;
                 BEGIN
                     EXECUTE call;
                     RETURN false;
                 EXCEPTION WHEN OTHERS THEN
                     GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, word = PG_EXCEPTION_DETAIL,
                                             hint = PG_EXCEPTION_HINT;
                     RETURN word ~ '^[A-Z]+(_[A-Z]+)*(:|$)' AND NOT graph_kernel.is_text(concat(message, word, hint));
                 END $$",
            )
            .unwrap();
        client
    };
    let mut client = connect();
    let (mut places, mut found) = (0, Vec::new());
    for function in functions(&mut admin) {
        let good: Vec<String> = function.kinds.iter().map(|kind| values(kind).0).collect();
        for (n, kind) in function.kinds.iter().enumerate() {
            for value in odd_values(kind) {
                places += 1;
                let mut arguments = good.clone();
                arguments[n] = value;
                found.extend(faults(&mut client, &function, &arguments, n));
                if !canary.is_alive() {
                    found.push(format!("{} ended the server", function.name));
                    canary = Canary::new(&database);
                }
                if client.is_closed() {
                    client = connect();
                }
            }
        }
    }
    assert!(places > 150, "{places} arguments can hold bytes");
    tell(&format!("invalid bytes: {} calls", places * BYTES.len() * PLACES.len()));
    assert!(
        found.is_empty(),
        "{} faults:\n{}",
        found.len(),
        found[..found.len().min(30)].join("\n")
    );
}

/// What functions in SQL and PL/pgSQL say of an argument that is not text, without it.
#[test]
fn functions_in_sql_refuse_what_is_not_text() {
    let database = database_of_bytes("bytes_sql");
    let mut client = database.connect();
    for call in [
        "graph_kernel.unbind_tables(o.bytes)",
        "graph_kernel.unbind_store(o.bytes)",
        "graph_kernel.create_tables('other', jsonb_build_object(o.bytes, true))",
        "graph_policy(o.bytes)",
        "graph_policy_register('{\"max_nodes\": 1}', o.bytes)",
        "graph_kernel.check_request('{}', ARRAY[o.bytes], '{}')",
        "graph_kernel.check_request('{\"x\": 1}', '{}', ARRAY[o.bytes])",
    ] {
        let statement = format!("SELECT {call} FROM odd AS o WHERE o.n % 4 <> 0 LIMIT 1");
        let error = client.batch_execute(&statement).expect_err(call);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{call}: {error}"));
        let found = (error.code().code(), error.detail());
        assert_eq!(found, ("22021", Some("INVALID_TEXT")), "{call}: {}", error.message());
    }
}

/// The COPY of a restore ends where a row holds such bytes, and all rows of its table are lost.
#[test]
fn no_private_table_takes_bytes_from_a_superuser() {
    let database = database_of_bytes("bytes_stored");
    let mut client = database.connect();
    client
        .batch_execute("SELECT graph_kernel.create_recorder_table(), graph_kernel.create_trace_table('public'),
                    graph_kernel.create_slice_store('public')")
        .unwrap();
    let binding = |name: &str, columns: &str, resolved: &str, bound_by: &str| {
        format!(
            "binding (name, is_current, turns, columns, resolved, bound_by, binder, database)
             SELECT {name}, true, 'memory_turns', {columns}, {resolved}, {bound_by}, 10::oid, 0 FROM odd AS o"
        )
    };
    let (json, name) = ("jsonb_build_object('x', o.bytes)", "o.bytes");
    for row in [
        binding("o.bytes", "NULL", "'{}'", "'postgres'"),
        binding("'x'", json, "'{}'", "'postgres'"),
        binding("'x'", "NULL", json, "'postgres'"),
        binding("'x'", "NULL", "'{}'", name),
        "revoked_keys (kid) SELECT o.bytes FROM odd AS o".to_owned(),
        format!(
            "recorder_binding (events, bound_by, binder) SELECT 'recorder_events', {name}, 10::oid FROM odd AS o"
        ),
        format!(
            "recorder_binding (events, columns, bound_by, binder)
             SELECT 'recorder_events', {json}, 'x', 10::oid FROM odd AS o"
        ),
        format!(
            "trace_binding (traces, bound_by, binder) SELECT 'retrieval_traces', {name}, 10::oid FROM odd AS o"
        ),
        "store_binding (name, store, bound_by, binder)
         SELECT o.bytes, 'slice_store', 'x', 10::oid FROM odd AS o"
            .to_owned(),
        format!(
            "store_binding (name, store, bound_by, binder)
             SELECT 'default', 'slice_store', {name}, 10::oid FROM odd AS o"
        ),
        "policies (name, policy) SELECT o.bytes, '{\"max_nodes\": 17}' FROM odd AS o".to_owned(),
        format!(
            "policies (policy, registered_by) SELECT '{{\"max_nodes\": 17}}', {name} FROM odd AS o"
        ),
    ] {
        let (table, _) = row.split_once(' ').unwrap();
        for guarded in ["ENABLE TRIGGER ALL", "DISABLE TRIGGER ALL"] {
            let insert = format!(
                "BEGIN; ALTER TABLE graph_kernel.{table} {guarded};
                 DELETE FROM graph_kernel.{table} WHERE '{table}' <> 'policies';
                 INSERT INTO graph_kernel.{row} WHERE o.n % 4 <> 0 LIMIT 1"
            );
            let error = client.batch_execute(&insert).expect_err(&insert);
            let error = error.as_db_error().unwrap_or_else(|| panic!("{insert}: {error}"));
            let found = (error.code().code(), error.detail());
            assert_eq!(found, ("22021", Some("INVALID_TEXT")), "{insert}: {}", error.message());
            client.batch_execute("ROLLBACK").unwrap();
        }
    }
    let error = client
        .batch_execute(
            "SELECT graph_kernel.add_policy('{\"max_nodes\": 17}', o.bytes) FROM odd AS o WHERE o.n = 1",
        )
        .unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("22021"));
}

/// Turns and events of one session are found together, whatever the bytes of its name are.
#[test]
fn events_of_sessions_of_such_names_are_referred_to() {
    let database = database_of_bytes("bytes_references");
    let mut client = database.connect();
    client
        .batch_execute(
            "SELECT graph_kernel.create_recorder_table();
             SELECT graph_kernel.bind_recorder_table('recorder_events');
             INSERT INTO memory_turns (id, session_id, role, owner, content_text)
             SELECT gen_random_uuid(), o.bytes, 'user', 'bob', 'text' FROM odd AS o WHERE o.n IN (1, 2, 5);
             INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, session_id,
                                          occurred_at_ms, event_type, text)
             SELECT 1, o.n, o.n, 'e' || o.n, 1, o.bytes, o.n, 'ingress_text', 'text' FROM odd AS o
             UNION ALL SELECT 2, 1, 1, 'e', 1, chr(65533), 1, 'ingress_text', 'text'",
        )
        .unwrap();
    let names = "SELECT 'sha256:' || encode(sha256(o.bytes::bytea), 'hex') FROM odd AS o WHERE o.n IN (1, 2, 5)";
    let odd = format!(
        "SELECT (count(*) = 3 AND bool_and(r.key IN ({names}) AND r.count = 1))::text
         FROM graph_kernel.references('{{\"owner\": \"bob\"}}') AS r WHERE r.kind = 'event'"
    );
    assert_eq!(text_of(&mut client, &odd), "true");
    let by_hash = format!(
        "SELECT string_agg(r.kind || ' ' || r.count, ', ' ORDER BY r.kind) FROM ({names} LIMIT 1) AS n (name),
             graph_kernel.references(jsonb_build_object('sessions', jsonb_build_array(n.name))) AS r"
    );
    assert_eq!(text_of(&mut client, &by_hash), "event 1, turn 1");
}

/// Else a row that cannot be sought again would keep all others from being taken.
#[test]
fn kept_slices_are_taken_again_beside_rows_with_keys_of_such_bytes() {
    let database = database_of_bytes("bytes_kept");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "INSERT INTO memory_turns (id, role, content_text) VALUES ('{ANCHOR}', 'user', 'anchor');
             SELECT graph_kernel.create_slice_store('public');
             CREATE TABLE own_store (LIKE slice_store, PRIMARY KEY (key));
             SELECT graph_kernel.bind_store('own_store')"
        ))
        .unwrap();
    client.batch_execute(&format!("SELECT graph_keep(graph_slice('{ANCHOR}'))")).unwrap();
    client
        .batch_execute(
            "INSERT INTO own_store
             SELECT k.key, s.document, s.kind, s.graph, s.role, s.rls, s.anchor, s.turns, 'x', s.kept_at
             FROM own_store AS s, (SELECT bytes FROM odd WHERE n < 10
                                   UNION ALL SELECT repeat('a', 64 - octet_length(bytes)) || bytes FROM odd WHERE n = 1
                                   UNION ALL SELECT repeat('a', 64) || bytes FROM odd WHERE n = 1
                                   UNION ALL SELECT repeat('a', 63) || chr(10)) AS k (key)",
        )
        .unwrap();
    client.batch_execute("CALL graph_kernel.refresh_kept()").unwrap();
    let taken = "SELECT string_agg(concat_ws(' ', kept_by <> 'x', status), ', ')
                 FROM own_store WHERE checked_at IS NOT NULL";
    assert_eq!(text_of(&mut client, taken), "t identical");
    let named =
        "SELECT concat_ws(' ', ok, count = (SELECT count(*) FROM own_store WHERE kept_by = 'x'))
                 FROM graph_check() WHERE check_name = 'kept_documents'";
    assert_eq!(text_of(&mut client, named), "f t");
}

/// Renamed by its owner after it was bound, to what no restore could read.
#[test]
fn a_bound_table_of_such_a_name_is_dumped_as_none() {
    let database = database_of_bytes("bytes_renamed");
    let mut client = database.connect();
    client
        .batch_execute(
            "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
             DO $$ BEGIN EXECUTE format('ALTER TABLE memory_turns RENAME TO %I',
                                        (SELECT bytes FROM odd WHERE n = 1)); END $$",
        )
        .unwrap();
    let row = "SELECT concat_ws(' ', turns, edges) FROM graph_kernel.binding";
    assert_eq!(text_of(&mut client, row), "- memory_turn_edges");
    assert_eq!(
        text_of(&mut client, "SELECT (turns::oid > 0)::text FROM graph_kernel.binding"),
        "true"
    );
}

/// The columns of turns that may hold any text.
const TURN_COLUMNS: [&str; 6] =
    ["session_id", "role", "trajectory_phase", "content_text", "content_hash", "payload"];

/// A graph whose root has a child for each odd value in each column, reached by an edge of that type.
fn graph_of_bytes(database: &Database) -> Client {
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "ALTER TABLE memory_turns ADD embedding real[] DEFAULT '{{1,0,0}}', DISABLE TRIGGER USER;
             INSERT INTO memory_turns (id, role, content_text) VALUES ('{ANCHOR}', 'user', 'anchor')"
        ))
        .unwrap();
    for column in TURN_COLUMNS {
        let value = match column {
            "payload" => {
                "jsonb_build_object('role', 'assistant', 'content', bytes, coalesce(bytes, ''), 1)"
            }
            _ => "bytes",
        };
        client
            .batch_execute(&format!(
                "INSERT INTO memory_turns (id, {column}) SELECT graph_turn_id('{column}' || n), {value} FROM odd"
            ))
            .unwrap();
    }
    client
        .batch_execute(&format!(
            "INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
             SELECT '{ANCHOR}', t.id, coalesce((SELECT o.bytes FROM odd AS o \
             WHERE t.id = graph_turn_id('role' || o.n)), 'reply')
             FROM memory_turns AS t WHERE t.id <> '{ANCHOR}'"
        ))
        .unwrap();
    client
}

/// The only column of the only row, which is UTF-8.
fn text_of(client: &mut Client, statement: &str) -> String {
    client
        .query_one(statement, &[])
        .unwrap_or_else(|error| panic!("{statement}: {error:?}"))
        .try_get::<_, Option<String>>(0)
        .unwrap_or_else(|error| panic!("{statement}: {error:?}"))
        .unwrap_or_default()
}

#[test]
fn rows_with_any_bytes_are_read_and_their_contents_have_no_hash() {
    let database = database_of_bytes("bytes_rows");
    let mut canary = Canary::new(&database);
    let mut client = graph_of_bytes(&database);
    let policy = r#"{"max_nodes": 1000}"#;
    let v2 = r#"{"version": "slice_policy_v2", "max_nodes": 1000, "max_tokens": 2147483647, "same_session": false}"#;
    let one = format!("'{ANCHOR}'");
    for (policy, columns) in [(policy, "{}"), (v2, r#"{"turns": {"roles": {"human": "user"}}}"#)] {
        client
            .batch_execute(&format!(
                "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{columns}')"
            ))
            .unwrap();
        for call in [
            format!("graph_slice({one}, '{policy}')::text"),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_slice_turns({one}, '{policy}') AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_slice_edges({one}, '{policy}') AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_messages({one}, '{policy}') AS t)"
            ),
            format!("graph_messages_record({one}, '{policy}')::text"),
            format!(
                "(SELECT string_agg(t::text, ',')
                    FROM graph_messages_show(graph_messages_record({one}, '{policy}')) AS t)"
            ),
            format!("graph_messages_json(graph_messages_record({one}, '{policy}'), 'openai')::text"),
            format!("graph_messages_json(graph_messages_record({one}, '{policy}'), 'plain')::text"),
            format!("graph_proof(graph_messages_record({one}, '{policy}'))::text"),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_slice_stats({one}, '{policy}') AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_slice_explain({one}, '{policy}') AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_why({one}, graph_turn_id('role3'), '{policy}') AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_slices(ARRAY[{one}]::uuid[], '{policy}') AS t)"
            ),
            format!(
                "graph_slice_draw({one}, '{policy}', 'dot', '{{\"max_turns\": 1000, \"chars\": 1000}}')"
            ),
            format!(
                "graph_slice_draw({one}, '{policy}', 'mermaid', '{{\"max_turns\": 1000, \"frontier\": true}}')"
            ),
            format!("graph_export_draw(graph_slice({one}, '{policy}'), 'dot')"),
            format!("graph_export_draw(graph_slice({one}, '{policy}'))"),
            format!("graph_diversity(graph_slice({one}, '{policy}'))::text"),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_search_slice('{{1,0,0}}', {one}, '{policy}', 100) AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_replay(graph_slice({one}, '{policy}')) AS t)"
            ),
            format!(
                "(SELECT string_agg(t::text, ',') FROM graph_verify(graph_slice({one}, '{policy}')) AS t)"
            ),
            format!("graph_proof(graph_slice({one}, '{policy}'))::text"),
            format!("graph_api_slice(json_build_object('anchor_turn_id', {one}))::text"),
            "(SELECT string_agg(t::text, ',') FROM graph_search('{1,0,0}', limit_count => 100) AS t)"
                .to_owned(),
            "(SELECT string_agg(t::text, ',') FROM graph_anchors_recent(1000) AS t)".to_owned(),
            format!("graph_atlas(ARRAY[{one}]::uuid[])::text"),
            "graph_snapshot()::text".to_owned(),
            "(SELECT string_agg(t::text, ',') FROM graph_content_audit() AS t)".to_owned(),
            "(SELECT string_agg(t::text, ',') FROM graph_check() AS t)".to_owned(),
        ] {
            let answer = text_of(&mut client, &format!("SELECT {call}"));
            assert!(!answer.is_empty(), "{call}");
            assert!(canary.is_alive(), "{call} ended the server");
        }
        let verdict = text_of(
            &mut client,
            &format!("SELECT reason FROM graph_verify(graph_slice({one}, '{policy}'))"),
        );
        assert_eq!(verdict, "ok");
        let record = format!("graph_messages_record({one}, '{policy}')");
        let reason = text_of(&mut client, &format!("SELECT reason FROM graph_verify({record})"));
        assert_eq!(reason, "ok");
        let states =
            format!("SELECT string_agg(DISTINCT state, ',') FROM graph_messages_show({record})");
        assert_eq!(text_of(&mut client, &states), "unchanged");
        let replay = text_of(
            &mut client,
            &format!("SELECT status FROM graph_replay(graph_slice({one}, '{policy}'))"),
        );
        assert_eq!(replay, "identical");
    }

    // Each value is shown with U+FFFD for what is not UTF-8, and nothing more.
    let shown = |n: usize| {
        let bytes = BYTES[n / 4];
        let value = match n % 4 {
            0 => bytes.to_vec(),
            1 => [bytes, b"behind"].concat(),
            2 => [b"before", bytes, b"behind"].concat(),
            _ => [&[b' '; 100_000], bytes].concat(),
        };
        String::from_utf8_lossy(&value).into_owned()
    };
    for n in 0..BYTES.len() * PLACES.len() {
        let content = text_of(
            &mut client,
            &format!(
                "SELECT content FROM graph_messages({one}, '{policy}') WHERE turn_id = graph_turn_id('content_text{}')",
                n + 1
            ),
        );
        assert_eq!(content, shown(n));
        if n % 4 < 3 {
            let session = format!(
                "SELECT session_id FROM graph_slice_turns({one}, '{policy}') \
                WHERE turn_id = graph_turn_id('session_id{}')",
                n + 1
            );
            assert_eq!(text_of(&mut client, &session), shown(n));
        }
    }

    // A content that is not text has no hash: it is a finding, the audit lists it, and the backfill leaves it.
    let values = BYTES.len() * PLACES.len();
    let finding =
        "SELECT ok || ' ' || count FROM graph_check() WHERE check_name = 'contents_not_text'";
    assert_eq!(text_of(&mut client, finding), format!("false {values}"));
    let command = text_of(
        &mut client,
        "SELECT hint FROM graph_check() WHERE check_name = 'contents_not_text'",
    );
    assert_eq!(client.query(&command, &[]).unwrap().len(), values);
    let listed = "SELECT count(*)::text FROM graph_content_audit() WHERE computed IS NULL";
    assert_eq!(text_of(&mut client, listed), values.to_string());
    client.batch_execute("CALL graph_kernel.backfill_content_hashes()").unwrap();
    assert_eq!(text_of(&mut client, listed), values.to_string());
    let hashes = "SELECT count(*)::text FROM memory_turns WHERE id IN (SELECT graph_turn_id('content_text' || n) \
        FROM odd) AND content_hash IS NOT NULL";
    assert_eq!(text_of(&mut client, hashes), "0");
    // One that was changed into such bytes is not what was hashed.
    client
        .batch_execute(
            "UPDATE memory_turns SET content_hash = graph_content_hash('x') \
            WHERE id = graph_turn_id('content_text1')",
        )
        .unwrap();
    let stale = "SELECT count::text FROM graph_check() WHERE check_name = 'stale_content_hashes'";
    assert_eq!(text_of(&mut client, stale), "1");
    client
        .batch_execute(
            "CREATE TRIGGER hash BEFORE INSERT OR UPDATE ON memory_turns FOR EACH ROW \
            EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'content_hash')",
        )
        .unwrap();
    let refused = client
        .batch_execute(
            "INSERT INTO memory_turns (id, content_text) SELECT gen_random_uuid(), bytes FROM odd",
        )
        .unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "22021", "{refused:?}");
    assert!(canary.is_alive());
}

#[test]
fn events_with_any_bytes_are_refused() {
    let database = database_of_bytes("bytes_events");
    let mut canary = Canary::new(&database);
    let mut client = database.connect();
    client.batch_execute("SELECT graph_kernel.create_recorder_table()").unwrap();
    let columns = ["event_id", "session_id", "event_type", "schema_version", "text"];
    for column in columns {
        for odd in 1..=BYTES.len() * PLACES.len() {
            client
                .batch_execute(&format!(
                    "TRUNCATE recorder_events;
                     INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, session_id, \
                     occurred_at_ms, event_type, text)
                     VALUES (1, 1, 0, 'a', 1, 's', 0, 'ingress_text', 'x');
                     UPDATE recorder_events SET {column} = (SELECT bytes FROM odd WHERE n = {odd})"
                ))
                .unwrap();
            for call in [
                "recorder_chunks()",
                "recorder_chunks_since(1, 1)",
                "recorder_event_chunks(1, 1)",
                "recorder_chunk_span(1, 1, 0, 1, 1, 1)",
            ] {
                let error = client.simple_query(&format!("SELECT * FROM {call}")).unwrap_err();
                let error = error.as_db_error().unwrap();
                assert_eq!(error.code().code(), "22000", "{column}: {error:?}");
                assert!(error.message().contains(&format!("{column} is not UTF-8")), "{error:?}");
                assert_eq!(error.detail(), Some("INVALID_EVENT"));
            }
        }
    }
    assert!(canary.is_alive());
}

#[test]
fn names_in_private_tables_settings_and_triggers_may_be_any_bytes() {
    let database = database_of_bytes("bytes_names");
    let mut canary = Canary::new(&database);
    let mut client = graph_of_bytes(&database);
    client.batch_execute("CREATE TABLE promoted (id uuid, slice text, turn uuid)").unwrap();
    let guard = |function: &str, document: &str, turns: &str| {
        let argument = |a: &str| if a.starts_with('(') { a.to_owned() } else { format!("'{a}'") };
        let (document, turns) = (argument(document), argument(turns));
        format!(
            "DO $$ BEGIN EXECUTE format('CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON promoted NOT DEFERRABLE
                 FOR EACH ROW EXECUTE FUNCTION {function}(%L, %L)', {document}, {turns}); END $$"
        )
    };
    let plain_trigger = |function: &str, value: &str| {
        format!(
            "DO $$ DECLARE name text := {value}; BEGIN
                 name := CASE WHEN octet_length(name) < 60 THEN name ELSE 'x' END;
                 EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON promoted FOR EACH ROW \
                 EXECUTE FUNCTION {function}(%L)',
                                name, {value});
             END $$"
        )
    };
    let check = "SELECT count(hint) FROM graph_check()".to_owned();
    let insert = |document: &str, turn: &str| {
        format!("INSERT INTO promoted VALUES (gen_random_uuid(), {document}, {turn})")
    };
    for odd in 1..=BYTES.len() * PLACES.len() {
        let value = format!("(SELECT bytes FROM odd WHERE n = {odd})");
        let of_graph = || format!("SELECT graph_slice('{ANCHOR}')");
        let set_graph = || format!("SELECT set_config('graph_kernel.graph', {value}, true)");
        for (before, after, expected) in [
            (set_graph(), of_graph(), "22021"),
            (set_graph(), "SELECT * FROM graph_check()".to_owned(), "22021"),
            (
                format!(
                    "ALTER TABLE graph_kernel.binding DISABLE TRIGGER USER;
                     INSERT INTO graph_kernel.binding (graph, name, is_current, turns, edges, columns, resolved, \
                     bound_by, bound_at, binder,
                                                       database)
                     SELECT gen_random_uuid(), {value}, true, 'memory_turns'::regclass, \
                     'memory_turn_edges'::regclass, NULL, '{{}}', 'x', now(), current_user::regrole::oid,
                            (SELECT oid FROM pg_database WHERE datname = current_database())"
                ),
                of_graph(),
                "22021",
            ),
            (
                format!(
                    "ALTER TABLE graph_kernel.binding DISABLE TRIGGER USER;
                     INSERT INTO graph_kernel.binding (graph, name, is_current, turns, edges, columns, resolved, \
                     bound_by, bound_at, binder,
                                                       database)
                     SELECT gen_random_uuid(), 'default', true, 'memory_turns'::regclass, \
                     'memory_turn_edges'::regclass, to_jsonb({value}), to_jsonb({value}), 'x', now(), \
                     current_user::regrole::oid,
                            (SELECT oid FROM pg_database WHERE datname = current_database())"
                ),
                of_graph(),
                "22021",
            ),
            (
                format!(
                    "ALTER TABLE graph_kernel.revoked_keys DISABLE TRIGGER USER;
                     INSERT INTO graph_kernel.revoked_keys VALUES ({value}, now())"
                ),
                of_graph(),
                "22021",
            ),
            (
                "CREATE ROLE gk_test_bytes_plain; GRANT SELECT ON odd TO gk_test_bytes_plain;
                 GRANT EXECUTE ON FUNCTION graph_kernel.register_policy TO gk_test_bytes_plain;
                 SET LOCAL ROLE gk_test_bytes_plain"
                    .to_owned(),
                format!(
                    "INSERT INTO graph_kernel.policies (name, policy) VALUES ({value}, '{{\"max_nodes\": 3}}')"
                ),
                "22021",
            ),
            (
                "SELECT 1".to_owned(),
                format!("SELECT graph_policy_register('{{\"max_nodes\": 3}}', {value})"),
                "22021",
            ),
            (guard("graph_require_admissible", &value, "turn"), insert("'{}'", "NULL"), "22021"),
            (guard("graph_require_admissible", "slice", &value), insert("'{}'", "NULL"), "22021"),
            (guard("graph_require_admissible_result", &value, "turn"), insert("'{}'", "NULL"), "22021"),
            (
                guard("graph_require_admissible", "slice", "turn"),
                insert(&value, "gen_random_uuid()"),
                "22021",
            ),
            (
                guard("graph_require_admissible_result", "slice", "turn"),
                insert(&value, "gen_random_uuid()"),
                "22021",
            ),
            (
                guard("graph_require_admissible", "slice", "turn"),
                insert(&format!("json_build_object({value}, {value})"), "gen_random_uuid()"),
                "22021",
            ),
            // Names and arguments of another's triggers, functions and policies do not end a check.
            (guard("graph_require_admissible", &value, "turn"), check.clone(), ""),
            (plain_trigger("graph_require_admissible", &value), check.clone(), ""),
            (plain_trigger("graph_require_admissible_result", &value), check.clone(), ""),
            (
                format!(
                    "DO $$ DECLARE name text := {value}; BEGIN
                         name := CASE WHEN octet_length(name) < 60 THEN name ELSE 'x' END;
                         EXECUTE format('CREATE FUNCTION %1$I() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS \
                         %2$L',
                                        name, 'BEGIN PERFORM graph_slice(NULL); RETURN true; END -- ' || {value});
                         EXECUTE format('CREATE POLICY %1$I ON memory_turns USING (%1$I())', name);
                         EXECUTE format('CREATE INDEX %1$I ON memory_turns (role)', name);
                     END $$"
                ),
                check.clone(),
                "",
            ),
        ] {
            client.batch_execute("BEGIN").unwrap();
            let result = client.batch_execute(&before).and_then(|()| client.batch_execute(&after));
            let code = result.as_ref().err().and_then(|error| error.code()).map(|code| code.code());
            assert_eq!(code.unwrap_or_default(), expected, "{before}; {after}: {result:?}");
            client.batch_execute("ROLLBACK").unwrap();
        }
    }
    let mut created = 0;
    // One trigger with such a name and such arguments does not keep graph_check from answering.
    for odd in (1..=BYTES.len() * PLACES.len()).filter(|odd| odd % PLACES.len() != 0) {
        let value = format!("(SELECT left(bytes, 50) FROM odd WHERE n = {odd})");
        let create = format!(
            "BEGIN; DO $$ BEGIN EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON promoted FOR EACH ROW \
            EXECUTE FUNCTION graph_require_admissible(%L, %L)', {value}, {value}, 'roles=' || {value}); END $$"
        );
        if client.batch_execute(&create).is_ok() {
            let found = "SELECT count, detail, hint FROM graph_check() WHERE check_name = 'promotion_triggers'";
            let found = client.query_one(found, &[]).unwrap();
            assert_eq!(found.get::<_, i64>(0), 1, "{odd}");
            let (detail, hint): (String, String) = (found.get(1), found.get(2));
            assert!(detail.contains('\u{fffd}') && hint.contains('\u{fffd}'), "{detail} {hint}");
            created += 1;
        }
        client.batch_execute("ROLLBACK").unwrap();
    }
    assert!(created > 0, "no trigger was created");
    assert!(canary.is_alive());
}

/// A function that is leakproof may be given rows that row security hides: an error would show them.
#[test]
fn ids_of_texts_that_are_not_utf8_show_nothing_of_hidden_rows() {
    let database = database_of_bytes("bytes_hidden");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE FUNCTION shows(bytes text) RETURNS boolean LANGUAGE plpgsql COST 100000 AS $$ BEGIN RETURN bytes \
            IS NULL; END $$;
             CREATE POLICY hides ON odd USING (shows(bytes));
             ALTER TABLE odd ENABLE ROW LEVEL SECURITY;
             DO $$ BEGIN CREATE ROLE bytes_reader; EXCEPTION WHEN duplicate_object THEN END $$;
             GRANT SELECT ON odd TO bytes_reader; SET ROLE bytes_reader",
        )
        .unwrap();
    for id in [
        "graph_turn_id(bytes)",
        "graph_turn_id(VARIADIC ARRAY[bytes])",
        "graph_turn_id('a', bytes)",
    ] {
        let found = format!("SELECT count(*)::text FROM odd WHERE {id} = '{ANCHOR}'");
        assert_eq!(text_of(&mut client, &found), "0", "{id}");
    }
    // Ids of different bytes differ, and are the same for the same ones.
    client.batch_execute("RESET ROLE").unwrap();
    let ids = "SELECT count(DISTINCT graph_turn_id(bytes)) || ' ' || count(DISTINCT bytes::bytea) || ' '
                   || bool_and(graph_turn_id(bytes) = graph_turn_id(left(bytes, 0), bytes)) FROM odd";
    assert_eq!(text_of(&mut client, ids), "16 16 true");
    let raising =
        "SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc AS p JOIN pg_depend AS d
                       ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                   WHERE p.proleakproof AND p.prosrc NOT LIKE 'graph_turn_id%' AND p.prosrc NOT IN
                       ('byteaeq', 'byteane', 'hashvarlena', 'hashvarlenaextended')";
    let raising: Option<String> = client.query_one(raising, &[]).unwrap().get(0);
    assert_eq!(raising, None, "other functions that are leakproof");
}

/// Names and rows that others make, which are not text or which the client's encoding does not have.
#[test]
fn one_name_or_one_row_hides_no_other_finding() {
    let database = database_of_bytes("bytes_findings");
    let mut client = graph_of_bytes(&database);
    let name = "'f' || (SELECT o.bytes FROM odd AS o WHERE n = 1)";
    for name in [name, "U&'f\\20AC'"] {
        client
            .batch_execute(&format!(
                "DO $$ DECLARE name text := {name}; BEGIN
                     EXECUTE format('CREATE FUNCTION %1$I() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS %2$L',
                                    name, 'BEGIN PERFORM graph_slice(NULL); RETURN true; END');
                     EXECUTE format('CREATE FUNCTION %1$I(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS %2$L',
                                    name, 'BEGIN RETURN $1; END');
                     EXECUTE format('CREATE POLICY %1$I ON memory_turns USING (%1$I())', name);
                     EXECUTE format('CREATE STATISTICS %1$I ON (%1$I(role)) FROM memory_turns', name);
                     EXECUTE format('CREATE TABLE %1$I (%1$I uuid, slice json)', name);
                     EXECUTE format('CREATE TRIGGER %1$I AFTER INSERT ON %1$I FOR EACH ROW
                                     EXECUTE FUNCTION graph_require_admissible(%2$L, %1$L)', name, 'slice');
                 END $$"
            ))
            .unwrap();
    }
    // Too deep for the server's stack.
    client
        .batch_execute(
            "CREATE TABLE bound (id uuid PRIMARY KEY, parent uuid, txt text);
             CREATE INDEX ON bound (parent, id);
             INSERT INTO bound VALUES (graph_turn_id(1), NULL, repeat('[', 100000)),
                 (graph_turn_id(2), graph_turn_id(1), repeat('[', 100000));
             SELECT graph_kernel.bind_tables('bound', name => 'deep', columns => '{\"turns\": {\"session_id\":
                 {\"expression\": \"(txt::jsonb) ->> 0\"}, \"parents\": [{\"parent\": \"parent\", \
                 \"edge_type\": \"reply\"}]}}')",
        )
        .unwrap();
    for encoding in ["UTF8", "LATIN1", "SQL_ASCII"] {
        let set = format!("SET client_encoding = {encoding}; ");
        let rows = "SELECT check_name || ' ' || ok || ' ' || coalesce(count::text, '-') || ' ' || (hint IS NULL) \
            FROM graph_check()
                    WHERE check_name IN ('policy_search_path', 'user_functions', 'definer_functions', 'cycles')";
        let found = psql(&database, b"x", &format!("{set}{rows}"));
        let found = String::from_utf8_lossy(&[found.stdout, found.stderr].concat()).into_owned();
        // A hint that the encoding has not is none.
        let is_lost = encoding == "LATIN1";
        let expected = format!(
            "SET\npolicy_search_path false 2 {is_lost}\nuser_functions false 2 {is_lost}\ndefiner_functions false 1 \
            {is_lost}\n\
             definer_functions false 1 {is_lost}\ncycles true 0 true\n"
        );
        assert_eq!(found, expected, "{encoding}");
        let all = psql(&database, b"x", &format!("{set}SELECT * FROM graph_check()"));
        assert!(all.status.success(), "{encoding}: {}", String::from_utf8_lossy(&all.stderr));
        let deep = "SET graph_kernel.graph = deep; SELECT check_name || ' ' || ok || ' ' || (hint IS NULL) \
            FROM graph_check()
                    WHERE check_name IN ('raising_expression', 'replies_between_sessions', 'cycles')";
        let found = psql(&database, b"x", &format!("{set}{deep}"));
        let found = String::from_utf8_lossy(&[found.stdout, found.stderr].concat()).into_owned();
        let expected = "SET\nSET\nraising_expression false false\nreplies_between_sessions false true\ncycles true \
            true\n";
        assert_eq!(found, expected, "{encoding}");
    }
}

#[test]
fn a_role_of_another_encoding_calls_and_is_signed_by_a_name_of_its_own() {
    let database = database_of_bytes("bytes_roles");
    let mut client = graph_of_bytes(&database);
    client
        .batch_execute("SELECT graph_kernel.create_recorder_table(), graph_kernel.create_trace_table('public'),
                    graph_kernel.create_slice_store('public')")
        .unwrap();
    let mut names = Vec::new();
    for odd in [1, 5, 2] {
        let value = format!("(SELECT bytes FROM odd WHERE n = {odd})");
        let drop = format!(
            "DO $$ BEGIN EXECUTE format('DROP ROLE IF EXISTS %I', 'gk_test_' || {value}); END $$"
        );
        client.batch_execute(&drop).unwrap();
        client
            .batch_execute(&format!(
                "DO $$ BEGIN EXECUTE format('CREATE ROLE %I', 'gk_test_' || {value});
                             EXECUTE format('GRANT SELECT ON memory_turns, memory_turn_edges TO %I', \
                             'gk_test_' || {value}); END $$;
                 CREATE FUNCTION pg_temp.slice_{odd}() RETURNS json LANGUAGE plpgsql AS $$
                 BEGIN
                     EXECUTE format('SET LOCAL ROLE %I', 'gk_test_' || {value});
                     RETURN graph_slice('{ANCHOR}');
                 END $$;"
            ))
            .unwrap();
        let slice = text_of(&mut client, &format!("SELECT pg_temp.slice_{odd}()::text"));
        let verdict = client
            .query_one("SELECT reason, role FROM graph_verify($1::text::json)", &[&slice])
            .unwrap();
        assert_eq!(verdict.get::<_, String>(0), "ok");
        names.push(verdict.get::<_, String>(1));
        // No dump could be restored that has its name.
        client
            .batch_execute(&format!(
                "DO $$ BEGIN EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA graph_kernel TO %I',
                                            'gk_test_' || {value});
                             EXECUTE format('GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO %I',
                                            'gk_test_' || {value}); END $$;
                 CREATE FUNCTION pg_temp.call_{odd}(call text) RETURNS void LANGUAGE plpgsql AS $$
                 BEGIN
                     EXECUTE format('SET LOCAL ROLE %I', 'gk_test_' || {value});
                     EXECUTE call;
                 END $$"
            ))
            .unwrap();
        for call in [
            "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')",
            "SELECT graph_kernel.bind_recorder_table('recorder_events')",
            "SELECT graph_kernel.bind_traces('retrieval_traces')",
            "SELECT graph_kernel.bind_store('slice_store')",
            "SELECT graph_policy_register('{\"max_nodes\": 17}', 'of a role')",
            "SELECT graph_policy_register('{\"max_nodes\": 17}')",
        ] {
            let error = client
                .execute(&format!("SELECT pg_temp.call_{odd}($call${call}$call$)"), &[])
                .expect_err(call);
            let error = error.as_db_error().unwrap();
            assert_eq!(
                (error.code().code(), error.detail(), error.message()),
                ("22021", Some("INVALID_TEXT"), "the name of the role is not UTF-8"),
                "{call}"
            );
            let hint = error.hint().unwrap().replace("new_name", "gk_test_renamed");
            client
                .batch_execute(&format!("BEGIN; {hint}"))
                .unwrap_or_else(|e| panic!("{hint}: {e}"));
            let found = "SELECT count(*)::text FROM pg_roles WHERE rolname = 'gk_test_renamed'";
            assert_eq!(text_of(&mut client, found), "1", "{hint}");
            client.batch_execute("ROLLBACK").unwrap();
        }
        client
            .batch_execute(&format!(
                "DO $$ BEGIN EXECUTE format('DROP OWNED BY %I', 'gk_test_' || {value}); END $$; {drop}"
            ))
            .unwrap();
    }
    assert!(names[0].starts_with("gk_test_\u{fffd} sha256:"), "{names:?}");
    assert_eq!(names[0].len(), "gk_test_\u{fffd} sha256:".len() + 64);
    assert_ne!(names[0], names[1], "bytes that look the same are not the same name");
    assert!(names[2].starts_with("gk_test_\u{fffd}behind sha256:"), "{names:?}");
}

#[test]
fn texts_are_as_long_as_values_may_be_and_not_longer() {
    let database = database_of_bytes("bytes_length");
    let mut client = database.connect();
    // The longest text that the server makes.
    let longest = "SELECT octet_length(graph_normalize_text(repeat('x', 1073741819)))::text";
    assert_eq!(text_of(&mut client, longest), "1073741819");
    // Three bytes stand for each that is not UTF-8.
    let error = client
        .batch_execute(
            "SELECT graph_kernel.text_prefix(repeat((SELECT bytes FROM odd WHERE n = 1), 400000000), 2147483647)",
        )
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "54000", "{error:?}");
    assert_eq!(error.detail(), Some("RESULT_TOO_LONG"));
    assert_eq!(
        error.message(),
        "result of 1200000000 bytes is longer than a value may be, 1073741819 bytes"
    );
}
