//! Functions that the server calls immutable and whose results follow settings: which they are is asked of the server,
//! and none of them may be part of a mapping, or decide which rows an index has.

use std::thread;
use std::time::{Duration, Instant};

use postgres::Client;

use crate::common::database::Database;
use crate::setup::{Setup, status, text, turn_count};

/// Calls of a function that was found with the arguments that showed it; an output function is called by a cast.
fn expression(name: &str, call: &str, is_output: bool) -> String {
    if is_output { format!("({call})::text") } else { format!("pg_catalog.{name}({call})") }
}

#[test]
fn no_mapping_calls_what_follows_settings() {
    let database = Database::empty("attack_settings");
    let mut client = database.connect();
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    client.batch_execute(include_str!("settings.sql")).unwrap();
    for zone in ["summer", "posix"] {
        client.batch_execute(&format!("SET sweep.zone = {zone}")).unwrap();
        client.batch_execute("CALL sweep.run()").unwrap();
        client.batch_execute("RESET ALL").unwrap();
    }
    let counts =
        client.query_one("SELECT max(functions), max(answered) FROM sweep.called", &[]).unwrap();
    let counts: (i64, i64) = (counts.get(0), counts.get(1));
    assert!(counts.0 > 1_500 && counts.1 > 5_000, "functions and calls: {counts:?}");

    client
        .batch_execute(
            "CREATE TABLE public.messages (id uuid PRIMARY KEY, parent uuid);
             CREATE INDEX ON public.messages (parent, id)",
        )
        .unwrap();
    let found = "SELECT f.function::regprocedure::text, quote_ident(p.proname), f.call, \
        p.prorettype = 'cstring'::regtype
                 FROM sweep.found AS f JOIN pg_proc AS p ON p.oid = f.function ORDER BY f.function";
    let found = client.query(found, &[]).unwrap();
    let mut names = Vec::new();
    let mut faults = Vec::new();
    for row in &found {
        let (function, name, call, is_output): (String, String, String, bool) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        let value = expression(&name, &call, is_output);
        let value = format!("CASE WHEN ({value}) IS NULL THEN 'a' ELSE 'b' END");
        let columns = serde_json::json!({"turns": {"session_id": {"expression": value},
            "parents": [{"parent": "parent", "edge_type": "reply"}]}});
        let bind =
            "SELECT graph_kernel.bind_tables('public.messages', columns => $1::text::jsonb)::text";
        match client.query_one(bind, &[&columns.to_string()]) {
            Ok(_) => faults.push(format!("{function}: {value} was bound")),
            Err(error) => {
                let error = error.as_db_error().unwrap();
                let is_known = ["which follows settings", "uses pseudo-type"]
                    .iter()
                    .any(|why| error.message().contains(why));
                if !is_known || error.code().code() != "42P17" || error.hint().is_none() {
                    faults.push(format!("{function}: {value}: {error:?}"));
                }
            }
        }
        names.push(function);
    }
    assert!(faults.is_empty(), "{faults:#?}");
    for known in [
        "float4out(real)",
        "float8out(double precision)",
        "byteaout(bytea)",
        "quote_ident(text)",
        "circle_out(circle)",
        "timezone(text,timestamp without time zone)",
        "json_send(json)",
    ] {
        assert!(names.iter().any(|name| name == known), "the sweep finds {known}: {names:?}");
    }
}

/// What is refused, with what its hint has, and what may be written in its place.
const REFUSED: [(&str, &str, &str); 13] = [
    ("f::text", "numeric", "f::numeric::text"),
    ("r::varchar", "numeric", "r::numeric::varchar"),
    ("ARRAY[f]::text[] || s", "numeric", "(ARRAY[f::numeric]::text[])[1]"),
    ("b::text", "encode", "encode(b, 'hex')"),
    ("quote_ident(s)", "column", "quote_literal(s)"),
    ("p::text", "column", "(p[0]::numeric)::text"),
    (
        "CASE WHEN lt AT TIME ZONE 'IST' IS NULL THEN s END",
        "interval '0'",
        "CASE WHEN lt AT TIME ZONE interval '0' IS NULL THEN s END",
    ),
    (
        "CASE WHEN lt AT TIME ZONE s IS NULL THEN s END",
        "interval '0'",
        "CASE WHEN lt AT TIME ZONE interval '-5:30' IS NULL THEN s END",
    ),
    (
        "CASE WHEN at AT TIME ZONE 'CET' IS NULL THEN s END",
        "interval '0'",
        "CASE WHEN at AT TIME ZONE interval '1:00' IS NULL THEN s END",
    ),
    (
        "jsonb_path_query_first(j, s::jsonpath) #>> '{}'",
        "constant",
        "jsonb_path_query_first(j, '$.a') #>> '{}'",
    ),
    (
        "jsonb_path_query_first(j, '$.a.datetime(\"YYYY TZ\")') #>> '{}'",
        "datetime",
        "jsonb_path_query_first(j, '$.datetime') #>> '{}'",
    ),
    (
        "jsonb_path_query_first(j, '$.at.datetime()') #>> '{}'",
        "datetime",
        "jsonb_path_query_first(j, '$.at') #>> '{}'",
    ),
    (
        "CASE WHEN j @@ ANY (ARRAY['$.a == 1'::jsonpath]) THEN s END",
        "constant",
        "CASE WHEN j @@ '$.a == 1' THEN s END",
    ),
];

#[test]
fn what_follows_settings_is_refused_with_what_does_not() {
    let database = Database::empty("attack_settings_hints");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             CREATE TABLE messages (id uuid PRIMARY KEY, parent uuid, s text, f float8, r real, b bytea, p point, \
             lt timestamp,
                                    at timestamptz, j jsonb);
             CREATE INDEX ON messages (parent, id)",
        )
        .unwrap();
    let major = text(&mut client, "SELECT current_setting('server_version_num')");
    let mut bind = |expression: &str| {
        let columns = serde_json::json!({"turns": {"session_id": {"expression": expression},
            "parents": [{"parent": "parent", "edge_type": "reply"}]}});
        let bind = "SELECT graph_kernel.bind_tables('messages', columns => $1::text::jsonb)::text";
        let error = client.query_one(bind, &[&columns.to_string()]).err();
        error.map(|error| error.as_db_error().unwrap().clone())
    };
    for (refused, hint, instead) in REFUSED {
        let error = bind(refused).unwrap_or_else(|| panic!("{refused} was bound"));
        assert_eq!(
            (error.code().code(), error.detail()),
            ("42P17", Some("INVALID_BINDING")),
            "{refused}"
        );
        assert!(error.message().ends_with("which follows settings"), "{refused}: {error:?}");
        assert!(error.hint().is_some_and(|text| text.contains(hint)), "{refused}: {error:?}");
        assert_eq!(bind(instead), None, "{instead}");
    }
    // From 18 on a name is looked for among the abbreviations of the session's zone first.
    let is_18 = major.as_str() >= "18";
    for zone in ["UTC", "gmt", "Europe/Berlin"] {
        let by_name = format!("CASE WHEN lt AT TIME ZONE '{zone}' IS NULL THEN s END");
        assert_eq!(bind(&by_name).is_some(), is_18, "{zone}");
    }
}

/// The predicate is true when it is planned, and was not when rows were written.
#[test]
fn an_index_whose_predicate_follows_settings_decides_nothing() {
    for (name, predicate) in [
        ("folded", "(0.1234567::float8)::text = '0.1234567'"),
        (
            "implied",
            "edge_type IS NULL OR parent_turn_id IS NOT NULL AND (0.1234567::float8)::text = '0.1234567'",
        ),
        ("constant", "'a'::text = 'a'"),
        // As the output function of an extension's type, such as cube.
        (
            "of_extension",
            "parent_turn_id IS NULL OR textin(public.shown(0.1234567::float8)) = '0.1234567'",
        ),
    ] {
        let mut setup = Setup::new(&format!("settings_index_{name}"));
        setup
            .admin()
            .batch_execute(
                "CREATE FUNCTION public.shown(float8) RETURNS cstring
                     LANGUAGE internal IMMUTABLE STRICT AS 'float8out'",
            )
            .unwrap();
        let mut owner = setup.owner();
        owner
            .batch_execute(
                "SET search_path = pg_catalog, public;
                 CREATE TABLE b2.plain_edges (LIKE b2.edges INCLUDING ALL);
                 INSERT INTO b2.plain_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 2999) AS n;
                 GRANT SELECT ON b2.plain_edges TO PUBLIC; ANALYZE b2.plain_edges",
            )
            .unwrap();
        let bind = "SELECT graph_kernel.bind_tables('b2.turns', 'b2.plain_edges')";
        setup.admin().batch_execute(bind).unwrap();
        let mut reader = setup.reader();
        let slice = "SELECT graph_slice(turn(5))::text";
        let before = text(&mut reader, slice);
        assert_eq!((turn_count(&before), status(&before).as_str()), (10, "attested"));
        owner
            .batch_execute(&format!(
                "SET extra_float_digits = -14;
                 CREATE INDEX misleading ON b2.plain_edges (parent_turn_id, child_turn_id, edge_type) WHERE {predicate};
                 CREATE INDEX misleading2 ON b2.plain_edges (child_turn_id, parent_turn_id, edge_type) \
                 WHERE {predicate};
                 RESET extra_float_digits; ANALYZE b2.plain_edges"
            ))
            .unwrap();
        for client in [&mut reader, &mut setup.reader()] {
            assert_eq!(text(client, slice), before, "{name}");
        }
        setup.admin().batch_execute(bind).unwrap();
        setup.assert_sound();
    }
}

/// A constraint that the server would believe, and a path in which an operator has another meaning.
#[test]
fn nothing_that_is_set_while_planning_decides_what_is_read() {
    for (name, set) in [
        ("constraint", "set_config('constraint_exclusion', 'on', false)"),
        ("reset", "set_config('constraint_exclusion', NULL, false)"),
        ("pruning", "set_config('enable_partition_pruning', 'on', false)"),
        ("path", "set_config('search_path', 'planted, pg_catalog', false)"),
    ] {
        let mut setup = Setup::new(&format!("settings_planned_{name}"));
        let mut owner = setup.owner();
        owner
            .batch_execute(
                "SET search_path = pg_catalog, public;
                 CREATE TABLE b2.plain_edges (LIKE b2.edges INCLUDING ALL);
                 ALTER TABLE b2.plain_edges ADD COLUMN note int;
                 INSERT INTO b2.plain_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 9) AS n;
                 GRANT SELECT ON b2.plain_edges TO PUBLIC; GRANT USAGE ON SCHEMA planted TO PUBLIC;
                 CREATE OPERATOR planted.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = pg_catalog.uuid_ne);
                 CREATE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
                 GRANT EXECUTE ON FUNCTION planted.is_so TO PUBLIC;
                 ALTER TABLE b2.plain_edges ADD CHECK \
                 (planted.is_so(1) OR parent_turn_id IS NULL AND child_turn_id IS NULL);
                 CREATE OR REPLACE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false'"
            )
            .unwrap();
        let bind = "SELECT graph_kernel.bind_tables('b2.turns', 'b2.plain_edges')";
        let believing = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET constraint_exclusion = on', \
            current_database()); END $$";
        setup.admin().batch_execute(&format!("{bind}; {believing}")).unwrap();
        let slice = "SELECT graph_slice(turn(5))::text";
        let before = text(&mut setup.reader(), slice);
        assert_eq!((turn_count(&before), status(&before).as_str()), (10, "attested"));
        let mut known = setup.reader();
        text(&mut known, slice);
        owner
            .batch_execute(&format!(
                "CREATE FUNCTION planted.setting(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
                     $$ BEGIN PERFORM {set}; RETURN 1; END $$;
                 GRANT EXECUTE ON FUNCTION planted.setting TO PUBLIC;
                 CREATE STATISTICS b2.planted ON (planted.setting(1) + note) FROM b2.plain_edges;
                 ANALYZE b2.plain_edges"
            ))
            .unwrap();
        let shown = "SELECT concat_ws(' ', current_setting('constraint_exclusion'), \
            current_setting('enable_partition_pruning'), current_setting('search_path'), current_user)";
        for client in [&mut known, &mut setup.reader()] {
            let set_before = text(client, shown);
            assert_eq!(text(client, slice), before, "{name}");
            assert_eq!(text(client, shown), set_before, "{name}");
        }
        setup.assert_sound();
    }
}

/// The server plans nothing anew where rights change that decide which policies there are.
#[test]
fn a_plan_of_other_rights_is_not_used() {
    let mut setup = Setup::new("settings_rights");
    let mut admin = setup.admin();
    admin
        .batch_execute(
            "DROP ROLE IF EXISTS attack_seer, attack_all; CREATE ROLE attack_seer; CREATE ROLE attack_all;
             GRANT SELECT ON b2.turns, b2.edges TO attack_seer; GRANT USAGE ON SCHEMA b2, planted TO attack_seer;
             ALTER TABLE b2.turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY one ON b2.turns TO attack_seer USING (id <> turn(3));
             CREATE POLICY all_of_them ON b2.turns TO attack_all USING (true)",
        )
        .unwrap();
    let mut reader = setup.admin();
    reader.batch_execute("SET ROLE attack_seer").unwrap();
    let slice = "SELECT graph_slice(turn(5))::text";
    let rls = |export: &str| export.contains("\"rls\":true");
    let mut seen = |what: &str, expected: (bool, bool)| {
        let export = text(&mut reader, slice);
        let found = (export.contains("000000000003\",\"session_id"), rls(&export));
        assert_eq!(found, expected, "{what}");
    };
    seen("a policy applies", (false, true));
    admin.batch_execute("GRANT attack_all TO attack_seer").unwrap();
    seen("another one does", (true, true));
    admin.batch_execute("REVOKE attack_all FROM attack_seer").unwrap();
    seen("the first one again", (false, true));
    admin.batch_execute("ALTER ROLE attack_seer BYPASSRLS").unwrap();
    seen("none applies", (true, false));
    admin.batch_execute("ALTER ROLE attack_seer NOBYPASSRLS").unwrap();
    seen("it applies again", (false, true));
    admin
        .batch_execute("DROP OWNED BY attack_seer, attack_all; DROP ROLE attack_seer, attack_all")
        .unwrap();
    setup.assert_sound();
}

/// The owner of a table is not held to its policies where a foreign key cascades.
#[test]
fn a_plan_of_a_cascade_is_used_there_alone() {
    let setup = Setup::new("settings_cascade");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "SET search_path = pg_catalog, public;
             ALTER TABLE b2.turns ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
             CREATE POLICY one ON b2.turns USING (id <> turn(3));
             CREATE TABLE b2.keys (n int PRIMARY KEY);
             CREATE TABLE b2.held (n int REFERENCES b2.keys ON DELETE CASCADE);
             CREATE TABLE b2.seen (n int, export text);
             CREATE FUNCTION b2.slice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO b2.seen VALUES (old.n, graph_slice(turn(5))::text); RETURN old;
             END $$;
             CREATE TRIGGER slice BEFORE DELETE ON b2.held FOR EACH ROW EXECUTE FUNCTION b2.slice();
             INSERT INTO b2.keys VALUES (1), (2); INSERT INTO b2.held VALUES (1), (2)",
        )
        .unwrap();
    let slice = "SELECT graph_slice(turn(5))::text";
    let cascaded = |client: &mut Client, n: i32| {
        client.execute("DELETE FROM b2.keys WHERE n = $1", &[&n]).unwrap();
        text(client, &format!("SELECT export FROM b2.seen WHERE n = {n}"))
    };
    let seen = |export: &str| (turn_count(export), export.contains("\"rls\":true"));
    let (mut first, mut second) = (setup.owner(), setup.owner());
    for client in [&mut first, &mut second] {
        client.batch_execute("SET search_path = pg_catalog, public").unwrap();
    }
    let exports = [text(&mut first, slice), cascaded(&mut first, 1)];
    let others = [cascaded(&mut second, 2), text(&mut second, slice)];
    let [held, free] = [seen(&exports[0]), seen(&exports[1])];
    assert!(held.1 && !free.1 && held.0 < free.0, "{held:?}, {free:?}");
    assert_eq!([seen(&others[0]), seen(&others[1])], [free, held]);
}

/// From 18 on. It is computed when it is read, by functions that no mapping may call.
#[test]
fn no_virtual_generated_column_is_part_of_a_mapping() {
    let database = Database::empty("attack_virtual");
    let mut client = database.connect();
    let major = text(&mut client, "SELECT current_setting('server_version_num')");
    if major.as_str() < "18" {
        return;
    }
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             CREATE TABLE messages (id uuid PRIMARY KEY, parent uuid, f float8, s text,
                                    shown text GENERATED ALWAYS AS (f::text) VIRTUAL,
                                    kept text GENERATED ALWAYS AS (s) STORED);
             CREATE INDEX ON messages (parent, id)",
        )
        .unwrap();
    let mut bind = |value: serde_json::Value| {
        let columns = serde_json::json!({"turns": {"session_id": value,
            "parents": [{"parent": "parent", "edge_type": "reply"}]}});
        let bind = "SELECT graph_kernel.bind_tables('messages', columns => $1::text::jsonb)::text";
        let error = client.query_one(bind, &[&columns.to_string()]).err();
        error.map(|error| error.as_db_error().unwrap().code().code().to_owned())
    };
    for expression in ["shown", "messages.shown", "lower(shown)", "CASE WHEN s = '' THEN shown END"]
    {
        let value = serde_json::json!({"expression": expression});
        assert_eq!(bind(value).as_deref(), Some("0A000"), "{expression}");
    }
    assert_eq!(bind("shown".into()).as_deref(), Some("42703"));
    assert_eq!(bind(serde_json::json!({"expression": "lower(kept)"})), None);
}

/// The plan is valid when its tables are locked; a lock on another one is waited for, and then it is analysed anew.
#[test]
fn a_plan_made_after_waiting_for_a_lock_follows_no_setting_of_the_caller() {
    let mut setup = Setup::new("settings_lock");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE TABLE b2.messages (id uuid, parent uuid, kind text) PARTITION BY HASH (id);
             CREATE TABLE b2.messages_1 PARTITION OF b2.messages FOR VALUES WITH (MODULUS 1, REMAINDER 0);
             CREATE UNIQUE INDEX ON b2.messages (id);
             INSERT INTO b2.messages VALUES (public.turn(1), NULL, 'NULL'), (public.turn(2), public.turn(1), 'NULL');
             GRANT SELECT ON b2.messages TO PUBLIC",
        )
        .unwrap();
    let columns = serde_json::json!({"turns": {"parents": [{"edge_type": "reply", "parent":
        {"expression": "CASE WHEN kind = ANY ('{NULL,x}'::text[]) THEN parent END"}}]}});
    let bind = "SELECT graph_kernel.bind_tables('b2.messages', columns => $1::text::jsonb)::text";
    setup.admin().query_one(bind, &[&columns.to_string()]).unwrap();
    let mut reader = setup.reader();
    let slice = "SELECT graph_slice(turn(2))::text";
    let edges = |export: &str| {
        let export: serde_json::Value = serde_json::from_str(export).unwrap();
        export["edges"].as_array().unwrap().len()
    };
    assert_eq!(edges(&text(&mut reader, slice)), 0);
    reader.batch_execute("SET array_nulls = off").unwrap();
    owner
        .batch_execute("BEGIN; LOCK TABLE b2.messages_1; CREATE INDEX ON ONLY b2.messages (kind)")
        .unwrap();
    let pid = text(&mut reader, "SELECT pg_backend_pid()::text");
    let waiting = thread::spawn(move || (text(&mut reader, slice), reader));
    let waits = format!(
        "SELECT coalesce(wait_event_type = 'Lock', false)::text FROM pg_stat_activity WHERE pid = {pid}"
    );
    let (begun, mut admin) = (Instant::now(), setup.admin());
    while text(&mut admin, &waits) != "true" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it waits for the lock");
        thread::sleep(Duration::from_millis(20));
    }
    owner.batch_execute("COMMIT").unwrap();
    let (export, mut reader) = waiting.join().unwrap();
    assert_eq!(edges(&export), 0, "{export}");
    reader.batch_execute("RESET array_nulls").unwrap();
    assert_eq!(edges(&text(&mut reader, slice)), 0, "and the plan after it");
    setup.assert_sound();
}

/// A scan of a GIN index gives a random part of the rows where it is set.
#[test]
fn a_limit_on_what_a_gin_index_gives_drops_no_edges() {
    let setup = Setup::new("settings_gin");
    let mut admin = setup.admin();
    if let Err(error) = admin.batch_execute("CREATE EXTENSION btree_gin") {
        crate::common::tell(&format!("SKIPPED: attacks: no btree_gin: {error}"));
        return;
    }
    admin
        .batch_execute(
            "CREATE TABLE b2.gin_edges (parent_turn_id uuid NOT NULL, child_turn_id uuid NOT NULL, edge_type text);
             INSERT INTO b2.gin_edges SELECT turn(n), turn(4), 'reply' FROM generate_series(1, 3) AS n;
             INSERT INTO b2.gin_edges SELECT gen_random_uuid(), gen_random_uuid(), 'reply' \
             FROM generate_series(1, 5000);
             CREATE INDEX ON b2.gin_edges USING gin (parent_turn_id);
             CREATE INDEX ON b2.gin_edges USING gin (child_turn_id);
             GRANT SELECT ON b2.gin_edges TO PUBLIC; ANALYZE b2.gin_edges;
             SELECT graph_kernel.bind_tables('b2.turns', 'b2.gin_edges')",
        )
        .unwrap();
    let mut reader = setup.reader();
    let slice = "SELECT graph_slice(turn(4))::text";
    let edges = "SELECT jsonb_array_length(graph_slice(turn(4))::jsonb -> 'edges')::text";
    assert_eq!(text(&mut reader, edges), "3");
    let whole = text(&mut reader, slice);
    // A limit is kept by chance for each row.
    reader.batch_execute("SET gin_fuzzy_search_limit = 1").unwrap();
    for _ in 0..20 {
        assert_eq!(text(&mut reader, slice), whole);
    }
    assert_eq!(text(&mut reader, "SHOW gin_fuzzy_search_limit"), "1");
}
