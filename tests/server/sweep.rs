//! Every function of the extension, called with every odd value of its arguments' types: an answer or a clear error, never
//! an internal error, and never the end of the server's process.

mod common;

use common::database::Database;
use common::tell;
use postgres::Client;
use postgres::error::SqlState;

const ANCHOR: &str = "00000000-0000-4000-8000-000000000001";

/// How many calls with random values are made for each function and role.
const RANDOM_CALLS: usize = 40;

/// A value of a type that a call may succeed with, and odd ones, as expressions of SQL.
fn values(kind: &str) -> (String, Vec<String>) {
    let quoted = |texts: &[&str]| texts.iter().map(|text| format!("'{text}'::{kind}")).collect();
    let (good, mut odd): (String, Vec<String>) = match kind {
        "uuid" => (
            format!("'{ANCHOR}'::uuid"),
            quoted(&[
                "00000000-0000-0000-0000-000000000000",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ]),
        ),
        "slice_policy" => (
            "'default'::slice_policy".to_owned(),
            quoted(&[
                "chat",
                "lineage",
                r#"{"max_nodes": 10000, "max_radius": 2147483647, "max_siblings_per_node": 2147483647}"#,
                r#"{"max_nodes": 1, "max_radius": 0, "salience_weight": 0, "distance_decay": 0}"#,
                r#"{"version": "slice_policy_v2", "max_tokens": 1, "same_session": true, "keep_tool_results": true}"#,
                r#"{"version": "slice_policy_v2", "as_of": -9007199254740991, "halving_seconds": 1}"#,
            ]),
        ),
        "chunking_policy" => (
            "'default'::chunking_policy".to_owned(),
            quoted(&[r#"{"max_chunk_chars": 1, "overlap_chars": 0}"#]),
        ),
        "json" | "jsonb" => (
            format!("(SELECT slice::{kind} FROM kept)"),
            [
                "{}",
                "[]",
                "null",
                "1",
                "\"x\"",
                "[{}]",
                "[null]",
                "1e400",
                "{\"a\": {\"a\": {}}}",
                "{\"turns\": {}, \"edges\": []}",
                "{\"anchor_turn_id\": 5, \"turns\": [1], \"edges\": [[]], \"attestation\": 7}",
            ]
            .iter()
            .filter(|text| kind == "json" || **text != "1e400")
            .map(|text| format!("'{text}'::{kind}"))
            .chain([
                format!("(repeat('[', 3000) || repeat(']', 3000))::{kind}"),
                format!("to_json(repeat('x', 1000000))::{kind}"),
                format!("(SELECT json_agg(n)::{kind} FROM generate_series(1, 20000) AS n)"),
                format!("(SELECT replace(slice::text, '00000000', 'ffffffff')::{kind} FROM kept)"),
                format!("(SELECT replace(slice::text, '1.0.0', 'é')::{kind} FROM kept)"),
                format!("(SELECT (slice -> 'turns')::{kind} FROM kept)"),
            ])
            .collect(),
        ),
        "text" | "name" => (
            "'default'".to_owned() + "::" + kind,
            [
                "",
                "public",
                "é\u{1}",
                "no such thing",
                "%s %I",
                "'';--",
                "gk3.1.00",
                "-----BEGIN PUBLIC KEY-----",
            ]
            .iter()
            .map(|text| format!("'{text}'::{kind}"))
            .chain([format!("repeat('x', 1000000)::{kind}"), format!("repeat('é', 33)::{kind}")])
            .collect(),
        ),
        "integer" => ("1".to_owned(), quoted(&["0", "-1", "2147483647", "-2147483648"])),
        "bigint" => (
            "1::bigint".to_owned(),
            quoted(&["0", "-1", "9223372036854775807", "-9223372036854775808"]),
        ),
        "real" | "double precision" => (
            format!("0.5::{kind}"),
            quoted(&["0", "-1", "NaN", "Infinity", "-Infinity", "1e-37", "3e38", "-0"]),
        ),
        "boolean" => ("true".to_owned(), quoted(&["false"])),
        "oid" => {
            ("'memory_turns'::regclass::oid".to_owned(), quoted(&["0", "1", "4294967295", "1259"]))
        }
        "regclass" => (
            "'memory_turns'::regclass".to_owned(),
            quoted(&[
                "0",
                "4294967295",
                "pg_class",
                "pg_authid",
                "kept",
                "graph_kernel.keys",
                "memory_turns_pkey",
            ]),
        ),
        "uuid[]" => (
            format!("ARRAY['{ANCHOR}']::uuid[]"),
            [
                "'{}'",
                "'{NULL}'",
                "'{{00000000-0000-4000-8000-000000000001},{00000000-0000-4000-8000-000000000002}}'",
                "'[5:5]={00000000-0000-4000-8000-000000000001}'",
                "ARRAY(SELECT gen_random_uuid() FROM generate_series(1, 20000))",
                "array_fill('00000000-0000-4000-8000-000000000001'::uuid, ARRAY[300])",
            ]
            .iter()
            .map(|text| format!("{text}::uuid[]"))
            .collect(),
        ),
        "text[]" => (
            "'{default}'::text[]".to_owned(),
            quoted(&["{}", "{NULL}", "{{a},{b}}", "{\"\"}", "{default,default,default}"]),
        ),
        "real[]" => (
            "'{1,0,0}'::real[]".to_owned(),
            [
                "'{}'",
                "'{NULL}'",
                "'{NaN,1,2}'",
                "'{Infinity,0,0}'",
                "'{0,0,0}'",
                "'{{1,2},{3,4}}'",
                "array_fill(1, ARRAY[20000])",
            ]
            .iter()
            .map(|text| format!("{text}::real[]"))
            .collect(),
        ),
        other => panic!("the sweep has no values of type {other}"),
    };
    odd.push(format!("NULL::{kind}"));
    (good, odd)
}

struct Function {
    name: String,
    is_procedure: bool,
    kinds: Vec<String>,
}

impl Function {
    fn call(&self, arguments: &[String]) -> String {
        let call = format!("{}({})", self.name, arguments.join(", "));
        if self.is_procedure { format!("CALL {call}") } else { format!("SELECT * FROM {call}") }
    }
}

/// The functions that SQL can call: without those of triggers and with arguments of internal types.
fn functions(client: &mut Client) -> Vec<Function> {
    let rows = client
        .query(
            "SELECT n.nspname || '.' || p.proname, p.prokind = 'p',
                    ARRAY(SELECT format_type(t.oid, NULL)
                            FROM unnest(p.proargtypes) WITH ORDINALITY AS a (oid, n) JOIN pg_type AS t ON t.oid = a.oid
                           ORDER BY a.n)
               FROM pg_depend AS d
               JOIN pg_proc AS p ON p.oid = d.objid
               JOIN pg_namespace AS n ON n.oid = p.pronamespace
               JOIN pg_extension AS x ON x.oid = d.refobjid
              WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
                AND x.extname = 'graph_kernel' AND p.prorettype NOT IN ('trigger'::regtype, 'internal'::regtype)
                AND NOT p.proargtypes::oid[] && ARRAY['internal', 'cstring']::regtype[]::oid[]
              ORDER BY 1, 3",
            &[],
        )
        .unwrap();
    rows.iter()
        .map(|row| Function { name: row.get(0), is_procedure: row.get(1), kinds: row.get(2) })
        .collect()
}

/// What is wrong with the answer to a call, which changes nothing.
fn fault(client: &mut Client, call: &str, is_procedure: bool) -> Option<String> {
    // A procedure commits, and cannot within a transaction.
    let (begin, end) = if is_procedure { ("", "") } else { ("BEGIN", "ROLLBACK") };
    client.batch_execute(begin).unwrap();
    let result = client.batch_execute(call);
    if client.is_closed() {
        return Some(format!("{call}: the connection is lost"));
    }
    if let Err(error) = client.batch_execute(end) {
        return Some(format!("{call}: afterwards {error:?}"));
    }
    let error = result.err()?;
    let code = error.code().cloned()?;
    let is_internal = code.code().starts_with("XX") || code == SqlState::QUERY_CANCELED;
    is_internal.then(|| format!("{call}: {} {error:?}", code.code()))
}

#[test]
fn no_function_answers_with_an_internal_error() {
    let database = Database::with_tables("sweep");
    let mut admin = database.connect();
    for statement in [
        format!(
            "SELECT graph_kernel.create_recorder_tables(), graph_kernel.create_trace_table('public');
             INSERT INTO memory_turns (id, content_text) VALUES ('{ANCHOR}', 'anchor');
             INSERT INTO memory_turns (id, session_id, content_text) SELECT gen_random_uuid(), 's', 'x' FROM generate_series(1, 50);
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id) SELECT '{ANCHOR}', id FROM memory_turns WHERE id <> '{ANCHOR}'"
        ),
        "DROP ROLE IF EXISTS gk_test_sweep; CREATE ROLE gk_test_sweep LOGIN;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO gk_test_sweep"
            .to_owned(),
        format!("CREATE TABLE kept AS SELECT graph_slice('{ANCHOR}') AS slice; GRANT SELECT ON kept TO gk_test_sweep"),
    ] {
        admin.batch_execute(&statement).unwrap();
    }
    let functions = functions(&mut admin);
    assert!(functions.len() > 100, "{} functions", functions.len());
    let mut random = fastrand::Rng::with_seed(7);
    let (mut calls, mut faults) = (0, Vec::new());
    for role in ["postgres", "gk_test_sweep"] {
        let mut config = postgres::Config::new();
        config
            .host_path(&database.server.socket)
            .port(database.server.port)
            .user(role)
            .dbname(&database.name);
        let connect = || {
            let mut client = config.connect(postgres::NoTls).unwrap();
            client
                .batch_execute("SET statement_timeout = '20s'; SET client_min_messages = error")
                .unwrap();
            client
        };
        let mut client = connect();
        for function in &functions {
            let values: Vec<_> = function.kinds.iter().map(|kind| values(kind)).collect();
            let good: Vec<String> = values.iter().map(|(good, _)| good.clone()).collect();
            let mut tried = vec![function.call(&good)];
            for (n, (_, odd)) in values.iter().enumerate() {
                for value in odd {
                    let mut arguments = good.clone();
                    arguments[n].clone_from(value);
                    tried.push(function.call(&arguments));
                }
            }
            if values.len() > 1 {
                for _ in 0..RANDOM_CALLS {
                    let arguments: Vec<String> = values
                        .iter()
                        .map(|(_, odd)| odd[random.usize(..odd.len())].clone())
                        .collect();
                    tried.push(function.call(&arguments));
                }
            }
            for call in tried {
                calls += 1;
                faults.extend(fault(&mut client, &call, function.is_procedure));
                if client.is_closed() {
                    client = connect();
                }
            }
        }
    }
    tell(&format!("sweep: {calls} calls of {} functions", functions.len()));
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults[..faults.len().min(20)].join("\n")
    );
    database.drop_role("gk_test_sweep");
}
