//! Constants in a mapping's expressions: reading one runs the input function of its type while the server analyses the
//! expression, and what one names or computes may depend on objects and settings that a plain role can change.

use postgres::Client;

use crate::common::database::Database;
use crate::setup::{Outcome, Setup, assert_none, attempt, text};

/// Types whose input functions run the owner's function, and functions and operators that take them.
const TYPES: &str = "
    CREATE DOMAIN planted.checked AS int CHECK (planted.f());
    CREATE TYPE planted.pair AS (a int, b planted.checked);
    CREATE TYPE planted.span AS RANGE (subtype = planted.checked);
    CREATE FUNCTION planted.take(planted.checked[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'user' $$;
    CREATE FUNCTION planted.take(int, planted.checked[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT true $$;
    CREATE OPERATOR planted.@@@ (LEFTARG = int, RIGHTARG = planted.checked[], FUNCTION = planted.take);
    CREATE SCHEMA app;
    GRANT USAGE ON SCHEMA app TO PUBLIC;
    CREATE TABLE app.messages (id uuid PRIMARY KEY, parent uuid, words text, number int, checked planted.checked,
                               list planted.checked[], pair planted.pair, span planted.span);
    CREATE INDEX ON app.messages (parent, id);
    GRANT SELECT ON app.messages TO PUBLIC;
    INSERT INTO app.messages (id, parent, words, number) SELECT turn(n), turn(n - 1), 'user', n \
    FROM generate_series(1, 9) AS n;
    CREATE FUNCTION planted.of_row(app.messages) RETURNS planted.checked[] LANGUAGE sql IMMUTABLE AS $$ \
    SELECT NULL::planted.checked[] $$;
    CREATE FUNCTION public.graph_turn_id(planted.checked[]) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ \
    SELECT NULL::uuid $$;
    CREATE FUNCTION public.graph_turn_id(int, int) RETURNS planted.pair LANGUAGE sql IMMUTABLE AS $$ \
    SELECT NULL::planted.pair $$;
    CREATE FUNCTION public.graph_turn_id(int, planted.pair) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ \
    SELECT NULL::uuid $$;
    CREATE FUNCTION planted.of_pairs(int, planted.pair) RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE AGGREGATE public.graph_message_role(int ORDER BY planted.pair) (SFUNC = planted.of_pairs, STYPE = int,
        INITCOND = '0');
    CREATE DOMAIN public.graph_content_hash AS planted.pair;
    CREATE FUNCTION public.lower(planted.checked[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'user' $$;";

const EXPRESSIONS: [&str; 34] = [
    "'{1}'::planted.checked[]",
    "'{1}'::planted.checked[]::text",
    "CAST('{1}' AS planted.checked[])::text",
    "planted.checked '1'",
    "NULL::planted.checked",
    "('(1,2)'::planted.pair)::text",
    "'[1,2)'::planted.span::text",
    "planted.take('{1}')",
    "planted.take(number, '{1}')::text",
    "CASE WHEN number OPERATOR(planted.@@@) '{1}' THEN words END",
    "public.lower('{1}')",
    "graph_turn_id('{1}')::text",
    "graph_turn_id('{1}' COLLATE \"C\")::text",
    "graph_turn_id(NULL)::text",
    "array_position('{1}', checked)::text",
    "array_position(NULL, checked)::text",
    "coalesce(list, '{1}')::text",
    "CASE WHEN list = '{1}' THEN words END",
    "CASE WHEN number = ANY (list || '{1}') THEN words END",
    "CASE WHEN pair = '(1,2)' THEN words END",
    "CASE WHEN span @> '[1,2)' THEN words END",
    "CASE WHEN messages = '(,,,,1,,,)' THEN words END",
    "(messages.of_row || '{1}')::text",
    "ROW('1', NULL)::planted.pair::text",
    // What is beside a call takes the type of its result.
    "CASE WHEN COALESCE(graph_turn_id(1, 1), '(1,2)') IS NULL THEN words END",
    "CASE WHEN graph_turn_id(1, 1) = '(1,2)' THEN words END",
    "CASE WHEN COALESCE(graph_content_hash('y'::varchar), '(1,2)') IS NULL THEN words END",
    "CASE WHEN COALESCE(public.graph_content_hash('y'::varchar), '(1,2)') IS NULL THEN words END",
    // Constants of unknown type that are arguments by other names.
    "CASE WHEN (graph_message_role(1) WITHIN GROUP (ORDER BY '(1,2)')) IS NULL THEN words END",
    "CASE WHEN (public.graph_message_role(1) WITHIN GROUP (ORDER BY '(1,2)')) IS NULL THEN words END",
    "CASE WHEN graph_turn_id(1, unknown('(1,2)')) IS NULL THEN words END",
    "CASE WHEN graph_turn_id(1, pg_catalog.unknown('(1,2)')) IS NULL THEN words END",
    "CASE WHEN public.graph_turn_id(1, unknown('(1,2)') COLLATE \"C\") IS NULL THEN words END",
    "CASE WHEN public.graph_turn_id(1, TREAT('(1,2)' AS unknown)) IS NULL THEN words END",
];

fn setup(name: &str) -> Setup {
    let setup = Setup::new(name);
    let mut admin = setup.admin();
    admin.batch_execute("GRANT CREATE ON SCHEMA public TO attack_owner").unwrap();
    setup.owner().batch_execute(TYPES).unwrap();
    setup
}

fn bind(client: &mut Client, columns: &serde_json::Value) -> Outcome {
    let columns = columns.to_string().replace('\'', "''");
    attempt(
        client,
        &format!("SELECT graph_kernel.bind_tables('app.messages', columns => '{columns}')"),
    )
}

/// Whether a superuser has run the owner's function since this was asked last.
fn caught(setup: &Setup, expression: &str) -> Option<String> {
    setup.has_caught().then(|| {
        setup.admin().batch_execute("SELECT setval('planted.caught', 1, false)").unwrap();
        format!("{expression}: a superuser has run the owner's function")
    })
}

#[test]
fn no_input_function_of_a_users_type_runs_while_an_expression_is_analysed() {
    let mut setup = setup("literal_binding");
    let mut all = Vec::new();
    for expression in EXPRESSIONS {
        let places = [
            serde_json::json!({"turns": {"session_id": {"expression": expression},
                "parents": [{"parent": "parent", "edge_type": "reply"}]}}),
            serde_json::json!({"turns": {
                "parents": [{"parent": {"expression": expression}, "edge_type": "reply"}]}}),
        ];
        for columns in places {
            if let Outcome::Unsafe(error) = bind(&mut setup.admin(), &columns) {
                all.push(format!("{expression}: {error}"));
            }
            all.extend(caught(&setup, expression));
        }
    }
    assert_none(&all);
    setup.assert_sound();
}

/// The owner of the extension may insert rows of bindings, as a restore does.
#[test]
fn no_input_function_runs_for_a_binding_that_was_inserted() {
    let mut setup = setup("literal_inserted");
    let columns = serde_json::json!({"turns": {"session_id": {"expression": "words"},
        "parents": [{"parent": "parent", "edge_type": "reply"}]}});
    bind(&mut setup.admin(), &columns).answer("binding").expect("it is bound");
    let resolved =
        "SELECT resolved::text FROM graph_kernel.binding WHERE is_current AND name = 'default'";
    let resolved = text(&mut setup.admin(), resolved);
    let mut all = Vec::new();
    for expression in EXPRESSIONS {
        let quoted = serde_json::Value::from(expression).to_string();
        let mut admin = setup.admin();
        admin
            .batch_execute(&format!(
                "UPDATE graph_kernel.binding SET resolved =
                     jsonb_set($good${resolved}$good$, '{{turns,session_id,expression}}', $new${quoted}$new$)
                  WHERE is_current AND name = 'default'"
            ))
            .unwrap();
        for call in ["SELECT graph_slice(turn(5))", "SELECT * FROM graph_check()"] {
            if let Outcome::Unsafe(error) = attempt(&mut admin, call) {
                all.push(format!("{expression}: {call}: {error}"));
                admin = setup.admin();
            }
        }
        all.extend(caught(&setup, expression));
    }
    assert_none(&all);
    setup.assert_sound();
}

/// A text search configuration can be altered without a lock on any table.
#[test]
fn objects_that_constants_name_are_the_servers_own() {
    let database = Database::empty("literal_objects");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             CREATE TEXT SEARCH CONFIGURATION own (COPY = english);
             CREATE TEXT SEARCH DICTIONARY own (TEMPLATE = simple);
             CREATE TABLE messages (id uuid PRIMARY KEY, parent uuid, s text, c regconfig, o oid);
             CREATE INDEX ON messages (parent, id)",
        )
        .unwrap();
    let own = text(&mut client, "SELECT 'own'::regconfig::oid::text");
    let mut bind = |expression: &str| {
        let expression = expression.replace('\'', "''");
        attempt(
            &mut client,
            &format!(
                "SELECT graph_kernel.bind_tables('messages', columns => '{{\"turns\": {{
                     \"session_id\": {{\"expression\": \"{expression}\"}},
                     \"parents\": [{{\"parent\": \"parent\", \"edge_type\": \"reply\"}}]}}}}')"
            ),
        )
    };
    for expression in [
        "to_tsvector('public.own'::regconfig, s)::text".to_owned(),
        "to_tsvector('public.own', s)::text".to_owned(),
        format!("to_tsvector({own}::oid::regconfig, s)::text"),
        format!("to_tsvector('{own}'::regconfig, s)::text"),
        "to_tsvector(c, s)::text".to_owned(),
        "to_tsvector(o::regconfig, s)::text".to_owned(),
        "to_tsvector((ARRAY['public.own'::regconfig])[1], s)::text".to_owned(),
        "to_tsvector(('{public.own}'::regconfig[])[1], s)::text".to_owned(),
        "to_tsvector(CASE WHEN s = '' THEN 'english'::regconfig ELSE 'public.own'::regconfig END, s)::text".to_owned(),
        "ts_lexize('public.own', s)::text".to_owned(),
    ] {
        let outcome = bind(&expression);
        assert_eq!(outcome, Outcome::Refused("42P17".to_owned()), "{expression}");
    }
    let outcome = bind("to_tsvector('pg_catalog.english', s)::text");
    assert!(outcome.answer("binding").is_some(), "the server's own stay allowed");
}

/// What a text of an amount means follows `lc_monetary`, and what an aclitem says, the roles that there are.
#[test]
fn no_mapping_has_money_or_an_aclitem() {
    let database = Database::empty("literal_money");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             CREATE DOMAIN amount AS money;
             CREATE TABLE messages (id uuid PRIMARY KEY, parent uuid, s text, n numeric, price money, prices money[],
                                    paid amount, acl aclitem, acls aclitem[]);
             CREATE INDEX ON messages (parent, id)",
        )
        .unwrap();
    let mut bind = |expression: &str| {
        let columns = serde_json::json!({"turns": {"session_id": {"expression": expression},
            "parents": [{"parent": "parent", "edge_type": "reply"}]}});
        let bind = "SELECT graph_kernel.bind_tables('messages', columns => $1::text::jsonb)::text";
        let error = client.query_one(bind, &[&columns.to_string()]).err();
        error.map(|error| error.as_db_error().unwrap().clone())
    };
    for (expression, what) in [
        ("CASE WHEN price > '$5.25' THEN s END", "money"),
        ("CASE WHEN '$5.25'::money > price THEN s END", "money"),
        ("CASE WHEN s = '' THEN s ELSE '$5.25'::money::numeric::text END", "money"),
        ("CASE WHEN price IS NULL THEN s END", "money"),
        ("CASE WHEN paid > '$5.25'::money THEN s END", "money"),
        ("CASE WHEN prices = '{$5.25}' THEN s END", "money"),
        ("CASE WHEN '{$5.25}'::money[] IS NULL THEN s END", "money"),
        ("CASE WHEN ARRAY['1'::money, '2'] IS NULL THEN s END", "money"),
        ("CASE WHEN NULL::money IS NULL THEN s END", "money"),
        ("CASE WHEN acl = 'postgres=r/postgres' THEN s END", "names an object"),
        ("CASE WHEN 'postgres=r/postgres'::aclitem IS NULL THEN s END", "names an object"),
        ("CASE WHEN '{postgres=r/postgres}'::aclitem[] IS NULL THEN s END", "names an object"),
        ("CASE WHEN acls IS NULL THEN s END", "names an object"),
    ] {
        let error = bind(expression).unwrap_or_else(|| panic!("{expression} was bound"));
        assert_eq!(
            (error.code().code(), error.detail()),
            ("42P17", Some("INVALID_BINDING")),
            "{expression}: {error:?}"
        );
        assert!(error.message().contains(what), "{expression}: {error:?}");
        assert!(error.hint().is_some(), "{expression}: {error:?}");
    }
    assert_eq!(bind("CASE WHEN n > 5.25 THEN s END"), None);
}

/// Expressions whose meaning follows settings that any role may change when they are parsed or written out, each with
/// the settings.
const SETTINGS: [(&str, &str, &str); 8] = [
    (
        "session_id",
        "CASE WHEN f = 0.1234567890123::float8 THEN s ELSE s || 'x' END",
        "SET extra_float_digits = -10",
    ),
    ("session_id", r"encode(b || '\x00ff'::bytea, 'hex')", "SET bytea_output = escape"),
    ("session_id", "lower(s COLLATE \"C\")", "SET quote_all_identifiers = on"),
    ("session_id", r"replace(s, 'n', '\n')", "SET standard_conforming_strings = off"),
    (
        "session_id",
        "CASE WHEN nullif(s, 'none') = NULL THEN 'x' ELSE 'y' END",
        "SET transform_null_equals = on",
    ),
    (
        "created_at",
        "coalesce(at, '2024-01-02 03:04 IST'::timestamptz)",
        "SET timezone_abbreviations = 'India'",
    ),
    ("created_at", "coalesce(at, '2024-01-02 03:04'::timestamptz)", "SET TimeZone = 'Asia/Tokyo'"),
    ("created_at", "coalesce(at, '01/02/2024 03:04'::timestamptz)", "SET DateStyle = 'SQL, DMY'"),
];

#[test]
fn settings_of_the_caller_change_no_value() {
    let database = Database::empty("literal_settings");
    let mut client = database.connect();
    client
        .batch_execute(
            r"CREATE EXTENSION graph_kernel;
              CREATE TABLE messages (id uuid PRIMARY KEY, parent uuid, s text, f float8, r real, b bytea, i interval,
                                     lt timestamp, at timestamptz);
              CREATE INDEX ON messages (parent, id);
              INSERT INTO messages (id, s, f, r, b, i, lt) VALUES
                  ('00000000-0000-4000-8000-000000000001', 'none', 0.1234567890123, 0.3, '\x00ff',
                   '1 day 02:03', '2024-01-01 12:00')",
        )
        .unwrap();
    let slice = "SELECT graph_slice('00000000-0000-4000-8000-000000000001')::text";
    let mut faults = Vec::new();
    for (key, expression, setting) in SETTINGS {
        let columns = serde_json::json!({"turns": {key: {"expression": expression},
            "parents": [{"parent": "parent", "edge_type": "reply"}]}});
        let bind = "SELECT graph_kernel.bind_tables('messages', columns => $1::text::jsonb)::text";
        client.query_one(bind, &[&columns.to_string()]).unwrap();
        let expected = text(&mut client, slice);
        // In a session that has read the graph before, and in new ones: one that only reads, one that binds as well.
        let mut other = database.connect();
        other.batch_execute(setting).unwrap();
        let mut warm = database.connect();
        text(&mut warm, slice);
        warm.batch_execute(setting).unwrap();
        for (who, client) in [("a new session", &mut other), ("a session", &mut warm)] {
            if text(client, slice) != expected {
                faults.push(format!("{expression} with {setting} in {who}"));
            }
        }
        other.query_one(bind, &[&columns.to_string()]).unwrap();
        let turns = |export: &str| export.split("\"policy_id\"").next().unwrap().to_owned();
        if turns(&text(&mut client, slice)) != turns(&expected) {
            faults.push(format!("{expression}, bound with {setting}"));
        }
        let after = text(
            &mut other,
            &format!("SELECT current_setting('{}')", setting.split_whitespace().nth(1).unwrap()),
        );
        let wanted = setting.split("= ").nth(1).unwrap().trim_matches('\'');
        assert_eq!(after, wanted, "the session keeps its setting");
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// What runs in spite of all restrictions has the rights of whoever has written the text.
#[test]
fn an_expression_is_analysed_with_the_rights_of_its_binder() {
    let setup = setup("literal_rights");
    let mut admin = setup.admin();
    let statement =
        "SELECT graph_kernel.bind_tables('app.messages', columns => '{\"turns\": {\"session_id\":
        {\"expression\": \"current_user::text\"},
        \"parents\": [{\"parent\": \"parent\", \"edge_type\": \"reply\"}]}}')";
    assert!(matches!(attempt(&mut admin, statement), Outcome::Refused(_)));
    // The role is the session's own again, after an error and without one.
    assert_eq!(text(&mut admin, "SELECT current_user::text"), "postgres");
    let columns = serde_json::json!({"turns": {"session_id": {"expression": "lower(words)"},
        "parents": [{"parent": "parent", "edge_type": "reply"}]}});
    bind(&mut admin, &columns).answer("binding").expect("it is bound");
    assert_eq!(text(&mut admin, "SELECT current_user::text"), "postgres");
    let mut reader = setup.reader();
    assert!(text(&mut reader, "SELECT graph_slice(turn(5))::text").contains("\"user\""));
    assert_eq!(text(&mut reader, "SELECT current_user::text"), "attack_reader");
}
