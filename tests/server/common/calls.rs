//! Calls of every function of the extension.

use postgres::Client;

/// A turn of the graph that is called about.
pub const ANCHOR: &str = "00000000-0000-4000-8000-000000000001";

/// A value of a type that a call may succeed with, and odd ones, as expressions of SQL.
pub fn values(kind: &str) -> (String, Vec<String>) {
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
                format!("graph_messages_record('{ANCHOR}')::{kind}"),
                format!("graph_messages_record('{ANCHOR}', 'default', repeat('00', 32))::{kind}"),
                format!("(json_build_object('messages', 1, 'slice', 2)::{kind})"),
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
        "regproc" => (
            "'graph_content_hash_trigger'::regproc".to_owned(),
            quoted(&["0", "4294967295", "pg_catalog.now", "graph_check"]),
        ),
        // No statement makes one.
        "graph_kernel.secret" => {
            let none = || "NULL::graph_kernel.secret".to_owned();
            (none(), vec![none()])
        }
        "graph_kernel.bound_relation" => (
            "'memory_turns'::graph_kernel.bound_relation".to_owned(),
            quoted(&["-", "0", "4294967295", "nowhere.memory_turns", "memory_turns_pkey"]),
        ),
        "graph_kernel.bound_role" => (
            "'10'::graph_kernel.bound_role".to_owned(),
            vec!["10::oid::graph_kernel.bound_role".to_owned()],
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
        "oid[]" => ("'{10}'::oid[]".to_owned(), vec!["'{NULL,0,4294967295}'::oid[]".to_owned()]),
        "text[]" => (
            "'{default}'::text[]".to_owned(),
            quoted(&["{}", "{NULL}", "{{a},{b}}", "{\"\"}", "{default,default,default}"]),
        ),
        "jsonb[]" => (
            "ARRAY['null']::jsonb[]".to_owned(),
            quoted(&["{}", "{NULL}", "{{1},{2}}", r#"{"{\\"a\\": 1}", NULL}"#, "[7:7]={0}"]),
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
        "bytea" => (
            "'\\x89474b440101'::bytea".to_owned(),
            [
                "''",
                "'\\x00'",
                "'\\x89474b44ff01'",
                "'\\x89474b4401012848'",
                "decode(repeat('89474b440101', 100000), 'hex')",
            ]
            .iter()
            .map(|text| format!("{text}::bytea"))
            .collect(),
        ),
        "interval" => (
            "'1 day'::interval".to_owned(),
            quoted(&["0", "-1 day", "178000000 years", "-178000000 years"]),
        ),
        other => panic!("the sweep has no values of type {other}"),
    };
    odd.push(format!("NULL::{kind}"));
    (good, odd)
}

/// A function of the extension.
pub struct Function {
    pub name: String,
    pub is_procedure: bool,
    /// Whether it is written in C, which is Rust here.
    pub is_c: bool,
    /// The types of its arguments.
    pub kinds: Vec<String>,
}

impl Function {
    /// The statement that calls it.
    pub fn call(&self, arguments: &[String]) -> String {
        let call = format!("{}({})", self.name, arguments.join(", "));
        if self.is_procedure { format!("CALL {call}") } else { format!("SELECT * FROM {call}") }
    }
}

/// The functions that SQL can call: without those of triggers and with arguments of internal types.
pub fn functions(client: &mut Client) -> Vec<Function> {
    let rows = client
        .query(
            "SELECT n.nspname || '.' || p.proname, p.prokind = 'p',
                    p.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'c'),
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
              ORDER BY 1, 4",
            &[],
        )
        .unwrap();
    rows.iter()
        .map(|row| Function {
            name: row.get(0),
            is_procedure: row.get(1),
            is_c: row.get(2),
            kinds: row.get(3),
        })
        .collect()
}
