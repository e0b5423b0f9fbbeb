//! A table's owner tries to have code of its own run in somebody's call through what a mapping may hold, and what it
//! refers to is changed after it was bound.

use postgres::Client;

use crate::setup::{OWNER, Outcome, Setup, assert_none, attempt, text};

/// Messages of the owner's, functions that note when somebody else runs them, and types with such functions.
const MESSAGES: &str = "
    CREATE FUNCTION planted.note(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.f(); RETURN 'user'; END $$;
    CREATE FUNCTION planted.note(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN planted.f(); END $$;
    CREATE OPERATOR planted.%% (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.note);
    CREATE DOMAIN planted.checked AS text CHECK (planted.note(value, 'x'));
    CREATE TYPE planted.kind AS ENUM ('user', 'tool');
    CREATE FUNCTION planted.kind_text(planted.kind) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.f(); RETURN 'user'; END $$;
    CREATE CAST (planted.kind AS text) WITH FUNCTION planted.kind_text AS IMPLICIT;
    CREATE TYPE planted.pair AS (a text, b planted.checked);
    CREATE FUNCTION planted.difference(text, text) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.f(); RETURN 1; END $$;
    CREATE TYPE planted.span AS RANGE (subtype = text, subtype_diff = planted.difference);
    CREATE COLLATION planted.odd (locale = 'C');
    CREATE SCHEMA app;
    GRANT USAGE ON SCHEMA app TO PUBLIC;
    CREATE TABLE app.messages (key varchar, parent varchar, words text, kind planted.kind, checked planted.checked,
                               pair planted.pair, number bigint);
    INSERT INTO app.messages
    SELECT 'm' || n, 'm' || n - 1, 'user', 'user'::planted.kind, 'user', ROW('user', 'user')::planted.pair, n
    FROM generate_series(1, 10) AS n;
    GRANT SELECT ON app.messages TO PUBLIC;
    CREATE FUNCTION planted.of_row(app.messages) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.f(); RETURN 'user'; END $$;
    CREATE UNIQUE INDEX ON app.messages (public.graph_turn_id(key));
    CREATE INDEX ON app.messages (public.graph_turn_id(parent));";

/// Objects in the extension's schema with names that a mapping uses.
const OVERLOADS: [&str; 6] = [
    "CREATE FUNCTION public.graph_turn_id(varchar) RETURNS uuid LANGUAGE plpgsql IMMUTABLE AS
         $$ BEGIN PERFORM planted.f(); RETURN gen_random_uuid(); END $$",
    "CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
         $$ BEGIN PERFORM planted.f(); RETURN 'user'; END $$;
     CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT planted.note($1)'",
    "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.note)",
    "CREATE DOMAIN public.text AS pg_catalog.text CHECK (planted.note(value, 'x'));
     CREATE DOMAIN public.float8 AS pg_catalog.float8 CHECK (planted.f())",
    "CREATE FUNCTION public.varchar(text) RETURNS varchar LANGUAGE sql IMMUTABLE AS 'SELECT planted.note($1)'",
    "CREATE FUNCTION pg_temp.graph_turn_id(varchar) RETURNS uuid LANGUAGE plpgsql IMMUTABLE AS
         $$ BEGIN PERFORM planted.f(); RETURN gen_random_uuid(); END $$",
];

const CALLS: [&str; 7] = [
    "SELECT s -> 'turns', s -> 'edges' FROM graph_slice(public.graph_turn_id('m5')) AS s",
    "SELECT turn_id, role, salience FROM graph_slice_turns(public.graph_turn_id('m5'))",
    "SELECT slice -> 'turns' FROM graph_slices(ARRAY[public.graph_turn_id('m5')]) WHERE error IS NULL",
    "SELECT * FROM graph_slice_explain(public.graph_turn_id('m5'))",
    "SELECT graph_snapshot()",
    "SELECT * FROM graph_anchors_recent(10)",
    "SELECT check_name, count FROM graph_check() WHERE check_name <> 'bound_tables'",
];

fn setup(name: &str) -> Setup {
    let setup = Setup::new(name);
    let mut admin = setup.admin();
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {OWNER}")).unwrap();
    setup.owner().batch_execute(MESSAGES).unwrap();
    // Without statistics nothing of the owner's runs while its rows are planned for.
    setup
}

/// Binds the messages, with this for the role.
fn bind(client: &mut Client, role: &str) -> Outcome {
    let mapping = serde_json::json!({ "turns": {
        "id": { "expression": "graph_turn_id(key)" },
        "role": { "expression": role },
        "salience": { "expression": "number / 20.0::float8" },
        "parents": [{ "parent": { "expression": "graph_turn_id(parent)" }, "edge_type": "reply" }],
        "follows": { "session": "words", "order": ["number"], "edge_type": "reply" },
    } });
    bind_by(client, &mapping)
}

/// Binds the messages, with this for the session and for the order of turns that follow each other.
fn bind_following(client: &mut Client, key: &str) -> Outcome {
    bind_by(
        client,
        &serde_json::json!({ "turns": {
            "id": { "expression": "graph_turn_id(key)" },
            "role": null,
            "follows": {
                "session": { "expression": key },
                "order": ["number", { "expression": key }],
                "edge_type": "reply",
            },
        } }),
    )
}

fn bind_by(client: &mut Client, mapping: &serde_json::Value) -> Outcome {
    attempt(
        client,
        &format!(
            "SELECT graph_kernel.bind_tables('app.messages', columns => '{}')",
            mapping.to_string().replace('\'', "''")
        ),
    )
}

/// What is wrong with all calls by a superuser, whose answers must not be others than these where there are any.
fn faults(setup: &Setup, what: &str, answers: Option<&[Vec<String>]>) -> Vec<String> {
    faults_of(setup, &CALLS, what, answers)
}

fn faults_of(
    setup: &Setup,
    calls: &[&str],
    what: &str,
    answers: Option<&[Vec<String>]>,
) -> Vec<String> {
    let mut admin = setup.admin();
    let mut faults = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let outcome = attempt(&mut admin, call);
        if let Outcome::Unsafe(_) = outcome {
            admin = setup.admin();
        }
        let rows = answers.map(|answers| answers[number].as_slice());
        let fault = match (&outcome, rows) {
            (_, Some(rows)) => outcome.fault(call, rows),
            (Outcome::Unsafe(error), None) => Some(error.clone()),
            _ => None,
        };
        faults.extend(fault.map(|fault| format!("{call}\n  after {what}: {fault}")));
    }
    if setup.has_caught() {
        faults.push(format!("{what}: a superuser has run the owner's function"));
        admin.batch_execute("SELECT setval('planted.caught', 1, false)").unwrap();
    }
    faults
}

fn answers(setup: &Setup) -> Vec<Vec<String>> {
    let mut admin = setup.admin();
    CALLS.map(|call| attempt(&mut admin, call).answer(call).expect(call)).to_vec()
}

#[test]
fn no_code_of_the_owner_runs_through_an_expression() {
    let mut setup = setup("mapping_code");
    let mut all = Vec::new();
    for expression in [
        "planted.note(words)",
        "upper(planted.note(words))",
        "CASE WHEN words OPERATOR(planted.%%) words THEN words END",
        "words OPERATOR(planted.%%) ANY (ARRAY[words])::text",
        "nullif(words, 'x') || planted.note(words)",
        "words::planted.checked",
        "words::planted.checked::text",
        "kind::text",
        "kind || words",
        "lower(kind)",
        "(words::planted.kind)::text",
        "(pair).a",
        "(pair).b",
        "pair::text",
        "ROW(words, words)::planted.pair::text",
        "planted.span(words, words)::text",
        "lower(planted.span(words, words))",
        "words COLLATE planted.odd",
        "messages.of_row",
        "messages.note",
        "planted.of_row(messages)",
        "planted.of_row(messages.*)",
        "coalesce(words, planted.note(words))",
        "CASE planted.note(words) WHEN 'a' THEN 'user' END",
        "(ARRAY[planted.note(words)])[1]",
        "(ARRAY[words]::planted.checked[])[1]",
        "greatest(kind, 'user')::text",
        "(SELECT planted.note(words))",
        "words || (SELECT planted.note('x') FROM app.messages LIMIT 1)",
        "checked",
        "checked || ''",
    ] {
        let mut admin = setup.admin();
        for bind in [bind, bind_following] {
            if let Outcome::Unsafe(error) = bind(&mut admin, expression) {
                all.push(format!("binding {expression}: {error}"));
            }
            all.extend(faults(&setup, expression, None));
        }
    }
    assert_none(&all);
    setup.assert_sound();
}

/// What narrows a search, and the message as it was sent.
const SOUGHT: &str = "
    CREATE DOMAIN planted.moment AS timestamptz CHECK (planted.f());
    CREATE DOMAIN planted.document AS jsonb CHECK (planted.f());
    CREATE FUNCTION planted.document_text(planted.kind) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.f(); RETURN '{}'; END $$;
    CREATE CAST (planted.kind AS jsonb) WITH FUNCTION planted.document_text AS IMPLICIT;
    CREATE FUNCTION planted.later(timestamptz) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.f(); RETURN $1; END $$;
    ALTER TABLE app.messages ADD embedding real[], ADD until timestamptz, ADD moment planted.moment,
        ADD sent jsonb, ADD document planted.document, ADD written json;
    UPDATE app.messages SET embedding = ARRAY[number, 1], until = 'infinity', moment = 'infinity', sent = '{}',
        document = '{}', written = '{}';";

const SEARCHES: [&str; 5] = [
    "SELECT turn_id, similarity FROM graph_search('{1,2}', filter => '{\"owner\": \"user\"}')",
    "SELECT turn_id, similarity FROM graph_search_slice('{1,2}', public.graph_turn_id('m5'),
         options => '{\"owner\": \"user\"}')",
    "SELECT turn_id, similarity FROM graph_search('{1,2}')",
    "SELECT * FROM graph_anchor(query_embedding => '{1,2}')",
    "SELECT check_name, count FROM graph_check() WHERE check_name <> 'bound_tables'",
];

/// Binds the messages, with these three keys.
fn bind_sought(client: &mut Client, keys: &serde_json::Value) -> Outcome {
    let mut mapping = serde_json::json!({ "turns": {
        "id": { "expression": "graph_turn_id(key)" },
        "role": null,
        "parents": [{ "parent": { "expression": "graph_turn_id(parent)" }, "edge_type": "reply" }],
    } });
    for (key, value) in keys.as_object().unwrap() {
        mapping["turns"][key] = value.clone();
    }
    bind_by(client, &mapping)
}

#[test]
fn what_narrows_a_search_runs_no_code_of_the_owner() {
    let mut setup = setup("mapping_sought");
    setup.owner().batch_execute(SOUGHT).unwrap();
    let mut all = Vec::new();
    for (key, values) in [
        ("owner", ["checked", "kind", "pair", "words", "number"].as_slice()),
        ("valid_until", &["moment", "until", "checked", "kind"]),
        ("payload", &["document", "sent", "written", "kind", "pair", "checked"]),
    ] {
        for value in values {
            let keys = serde_json::json!({ key: value });
            if let Outcome::Unsafe(error) = bind_sought(&mut setup.admin(), &keys) {
                all.push(format!("binding {key} to {value}: {error}"));
            }
            all.extend(faults_of(&setup, &SEARCHES, value, None));
        }
    }
    for (key, expression) in [
        ("owner", "words"),
        ("owner", "planted.note(words)"),
        ("valid_until", "planted.later(until)"),
        ("valid_until", "until::planted.moment"),
        ("valid_until", "moment"),
        ("valid_until", "until + interval '1 day'"),
        ("valid_until", "now()"),
        ("payload", "sent::planted.document"),
        ("payload", "kind::jsonb"),
        ("payload", "to_jsonb(pair)"),
        ("payload", "to_jsonb(messages)"),
        ("payload", "document -> 'a'"),
        ("payload", "(SELECT sent FROM app.messages LIMIT 1)"),
    ] {
        let keys = serde_json::json!({ key: { "expression": expression } });
        let bound = bind_sought(&mut setup.admin(), &keys);
        match &bound {
            Outcome::Unsafe(error) => all.push(format!("binding {key} to {expression}: {error}")),
            Outcome::Answer(_) if key == "owner" => all.push(format!("{expression} is an owner")),
            _ => {}
        }
        all.extend(faults_of(&setup, &SEARCHES, expression, None));
    }
    assert_none(&all);
    setup.assert_sound();
}

#[test]
fn what_narrows_a_search_is_compared_by_the_servers_operators() {
    let mut setup = setup("mapping_compared");
    setup.owner().batch_execute(SOUGHT).unwrap();
    let keys = serde_json::json!({ "owner": "words", "valid_until": "until", "payload": "sent" });
    bind_sought(&mut setup.admin(), &keys).answer("binding").expect("it is bound");
    let mut admin = setup.admin();
    let before: Vec<Vec<String>> =
        SEARCHES.map(|call| attempt(&mut admin, call).answer(call).expect(call)).to_vec();
    assert_eq!(before[0].len(), 10);
    let mut warm = setup.admin();
    let mut all = Vec::new();
    let mut owner = setup.owner();
    for overload in [
        OVERLOADS[2],
        OVERLOADS[3],
        "CREATE FUNCTION planted.at_least(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
             $$ BEGIN RETURN planted.f(); END $$;
         CREATE OPERATOR public.>= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = planted.at_least);
         CREATE FUNCTION public.timezone(text, timestamptz) RETURNS timestamp LANGUAGE plpgsql IMMUTABLE AS
             $$ BEGIN PERFORM planted.f(); RETURN 'infinity'; END $$",
        "CREATE DOMAIN public.uuid AS pg_catalog.uuid CHECK (planted.f());
         CREATE DOMAIN public.timestamptz AS pg_catalog.timestamptz CHECK (planted.f())",
    ] {
        owner.batch_execute(overload).unwrap_or_else(|error| panic!("{overload}: {error:?}"));
        all.extend(faults_of(&setup, &SEARCHES, overload, Some(&before)));
    }
    for (column, kind) in [
        ("words", "planted.kind"),
        ("words", "planted.checked"),
        ("words", "planted.pair"),
        ("words", "bigint"),
        ("until", "planted.moment"),
        ("until", "planted.kind"),
        ("until", "timestamp"),
        ("sent", "planted.document"),
        ("sent", "planted.kind"),
    ] {
        for call in SEARCHES {
            attempt(&mut warm, call).answer(call).expect(call);
        }
        owner
            .batch_execute(&format!(
                "ALTER TABLE app.messages ADD aside {kind};
                 ALTER TABLE app.messages RENAME {column} TO before;
                 ALTER TABLE app.messages RENAME aside TO {column}"
            ))
            .unwrap();
        for call in SEARCHES {
            if let Outcome::Unsafe(error) = attempt(&mut warm, call) {
                all.push(format!("{call} after {column} became {kind}: {error}"));
                warm = setup.admin();
            }
        }
        all.extend(faults_of(&setup, &SEARCHES, &format!("{column} became {kind}"), None));
        owner
            .batch_execute(&format!(
                "ALTER TABLE app.messages DROP {column};
                 ALTER TABLE app.messages RENAME before TO {column}"
            ))
            .unwrap();
    }
    assert_none(&all);
    setup.assert_sound();
}

#[test]
fn no_expression_opens_a_table_by_its_oid() {
    let mut setup = setup("mapping_oids");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE TABLE planted.parted (id text) PARTITION BY HASH ((planted.note('x') || id))",
        )
        .unwrap();
    let oid = text(&mut owner, "SELECT 'planted.parted'::regclass::oid::text");
    let mut all = Vec::new();
    for table in [format!("{oid}::oid"), format!("(number * 0 + {oid})::oid")] {
        let expression =
            format!("CASE WHEN satisfies_hash_partition({table}, 1, 0, words) THEN words END");
        let bound = bind(&mut setup.admin(), &expression).answer("binding");
        all.extend(bound.map(|_| format!("{expression} is bound")));
        all.extend(faults(&setup, &expression, None));
    }
    assert_none(&all);
    setup.assert_sound();
}

#[test]
fn objects_in_the_extensions_schema_capture_no_name_of_a_mapping() {
    let mut setup = setup("mapping_overloads");
    let expression = "CASE WHEN lower(key) = lower(words) THEN key::text ELSE lower(words) END";
    bind(&mut setup.admin(), expression).answer("binding").expect("it is bound");
    let before = answers(&setup);
    let mut all = Vec::new();
    let mut owner = setup.owner();
    for overload in OVERLOADS {
        owner.batch_execute(overload).unwrap_or_else(|error| panic!("{overload}: {error:?}"));
        all.extend(faults(&setup, overload, Some(&before)));
        // Bound again, it may be refused, or stay what it is.
        if let Outcome::Unsafe(error) = bind(&mut setup.admin(), expression) {
            all.push(format!("binding after {overload}: {error}"));
        }
        all.extend(faults(&setup, overload, Some(&before)));
    }
    assert_none(&all);
    setup.assert_sound();
}

#[test]
fn columns_that_change_their_type_run_no_code() {
    let mut setup = setup("mapping_types");
    let mut all = Vec::new();
    for (column, kind) in [
        ("words", "planted.kind"),
        ("words", "planted.checked"),
        ("words", "planted.checked[]"),
        ("words", "planted.pair"),
        ("words", "planted.span"),
        ("words", "bytea"),
        ("key", "planted.kind"),
        ("key", "planted.checked"),
        ("parent", "planted.pair"),
        ("parent", "bigint"),
        ("number", "numeric"),
        ("number", "text"),
    ] {
        let expression = "CASE WHEN words = 'user' THEN lower(words) ELSE words || key END";
        bind(&mut setup.admin(), expression).answer("binding").expect("it is bound");
        // A session that has read the tables before, and new ones.
        let mut warm = setup.admin();
        attempt(&mut warm, CALLS[1]).answer(CALLS[1]).expect("a slice");
        let mut owner = setup.owner();
        owner
            .batch_execute(&format!(
                "ALTER TABLE app.messages ADD aside {kind};
                 ALTER TABLE app.messages RENAME {column} TO before;
                 ALTER TABLE app.messages RENAME aside TO {column}"
            ))
            .unwrap();
        for call in CALLS {
            if let Outcome::Unsafe(error) = attempt(&mut warm, call) {
                all.push(format!("{call} after {column} became {kind}: {error}"));
                warm = setup.admin();
            }
        }
        all.extend(faults(&setup, &format!("{column} became {kind}"), None));
        owner
            .batch_execute(&format!(
                "ALTER TABLE app.messages DROP {column};
                 ALTER TABLE app.messages RENAME before TO {column}"
            ))
            .unwrap();
    }
    assert_none(&all);
    setup.assert_sound();
}

#[test]
fn another_schema_in_the_place_of_the_extensions() {
    let mut setup = setup("mapping_schema");
    bind(&mut setup.admin(), "words").answer("binding").expect("it is bound");
    let mut warm = setup.admin();
    attempt(&mut warm, CALLS[1]).answer(CALLS[1]).expect("a slice");
    let replaced = format!(
        "
        ALTER SCHEMA public RENAME TO aside; CREATE SCHEMA public AUTHORIZATION {OWNER};
        GRANT USAGE ON SCHEMA public TO PUBLIC"
    );
    setup.admin().batch_execute(&replaced).unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE FUNCTION public.graph_turn_id(text) RETURNS uuid LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN aside.graph_turn_id($1); END $$",
        )
        .unwrap();
    let mut all = Vec::new();
    for client in [&mut warm, &mut setup.admin()] {
        for call in CALLS {
            let call = call.replace("public.", "aside.").replace("graph_s", "aside.graph_s");
            if let Outcome::Unsafe(error) = attempt(client, &call) {
                all.push(format!("{call}: {error}"));
            }
        }
    }
    assert!(!setup.has_caught(), "a superuser has run the owner's function");
    assert_none(&all);
    setup.assert_sound();
}

/// A plain role may own the extension, hence add functions of its own to it.
#[test]
fn functions_that_the_extensions_owner_adds_to_it_are_not_its_own() {
    let mut setup = setup("mapping_member");
    let remove = format!(
        "SET client_min_messages = warning; DROP EXTENSION graph_kernel CASCADE;
         CREATE SCHEMA own AUTHORIZATION {OWNER}"
    );
    setup.admin().batch_execute(&remove).unwrap();
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE EXTENSION graph_kernel SCHEMA own;
             CREATE OPERATOR own.%% (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.note);
             CREATE DOMAIN own.checked AS text CHECK (planted.note(value, 'x'));
             ALTER EXTENSION graph_kernel ADD FUNCTION planted.note(text);
             ALTER EXTENSION graph_kernel ADD OPERATOR own.%% (text, text);
             ALTER EXTENSION graph_kernel ADD DOMAIN own.checked;
             ALTER EXTENSION graph_kernel ADD COLLATION planted.odd",
        )
        .unwrap();
    for expression in [
        "planted.note(words)",
        "CASE WHEN words OPERATOR(own.%%) words THEN words END",
        "words::own.checked::text",
        "words COLLATE planted.odd",
    ] {
        let bound = bind(&mut owner, expression);
        assert!(
            matches!(&bound, Outcome::Refused(code) if code == "42P17" || code == "0A000"),
            "{expression}: {bound:?}"
        );
    }
    assert_eq!(bind(&mut owner, "words").answer("binding").map(|rows| rows.len()), Some(1));
    let forged = "UPDATE graph_kernel.binding SET resolved = jsonb_set(resolved, '{turns,role}',
                      '{\"expression\": \"planted.note(words)\"}')";
    // Its owner may not write the extension's tables; whoever may is not a plain role, and gains nothing.
    assert_eq!(attempt(&mut owner, forged), Outcome::Refused("42501".to_owned()));
    let mut admin = setup.admin();
    admin.batch_execute(forged).unwrap();
    let slice = "SELECT own.graph_slice(own.graph_turn_id('m5'))";
    assert_eq!(attempt(&mut admin, slice), Outcome::Refused("42P17".to_owned()));
    assert!(!setup.has_caught());
    setup.assert_sound();
}

/// A dump that was edited, or a superuser, may put anything into the extension's table.
#[test]
fn whatever_stands_in_the_table_of_bindings_is_an_error_at_most() {
    let mut setup = setup("mapping_forged");
    bind(&mut setup.admin(), "words").answer("binding").expect("it is bound");
    let before = answers(&setup);
    let good =
        "SELECT resolved::text FROM graph_kernel.binding WHERE is_current AND name = 'default'";
    let good = text(&mut setup.admin(), good);
    let role =
        |role: &str| format!("jsonb_set($good${good}$good$, '{{turns,role}}', $role${role}$role$)");
    let resolved = [
        "'null'".to_owned(),
        "'1'".to_owned(),
        "'[]'".to_owned(),
        "'{}'".to_owned(),
        r#"'{"turns": []}'"#.to_owned(),
        r#"'{"turns": {}, "edges": {}, "more": {}}'"#.to_owned(),
        r#"'{"turns": {"id": true}}'"#.to_owned(),
        r#"'{"turns": {"id": {"expression": 5}}}'"#.to_owned(),
        role("{}"),
        role("[]"),
        role("5"),
        role(r#""nope""#),
        role(r#""key\" || planted.note(key) || \"""#),
        role(r#"{"expression": "*"}"#),
        role(r#"{"expression": "app.messages.*"}"#),
        role(r#"{"expression": "t"}"#),
        role(r#"{"expression": "words, words"}"#),
        role(r#"{"expression": "words FROM pg_authid --"}"#),
        role(r#"{"expression": "words) FROM app.messages; --"}"#),
        role(r#"{"expression": "planted.note(words)"}"#),
        role(r#"{"expression": "(SELECT rolpassword FROM pg_authid LIMIT 1)"}"#),
        role(r#"{"expression": "$1"}"#),
        role(r#"{"expression": "{t.id}"}"#),
        role(r#"{"expression": "'[[' || words || ']]'"}"#),
        format!(
            "jsonb_set($good${good}$good$, '{{turns,parents}}', '[{{\"parent\": {{\"expression\": \"*\"}}, \
            \"edge_type\": \"reply\"}}]')"
        ),
        format!(
            "jsonb_set($good${good}$good$, '{{turns,role,expression}}', to_jsonb(repeat('(', 5000) || 'words'))"
        ),
        format!(
            "jsonb_set($good${good}$good$, '{{turns,role,expression}}', to_jsonb('words' || repeat(' || words', 1500)))"
        ),
    ];
    let mut all = Vec::new();
    for resolved in resolved {
        let mut admin = setup.admin();
        let forge = format!(
            "UPDATE graph_kernel.binding SET resolved = ({resolved})::jsonb
                             WHERE is_current AND name = 'default'"
        );
        admin.batch_execute(&forge).unwrap_or_else(|error| panic!("{forge}: {error:?}"));
        all.extend(faults(&setup, &resolved, None));
    }
    let restore = format!(
        "UPDATE graph_kernel.binding SET resolved = $good${good}$good$
                           WHERE is_current AND name = 'default'"
    );
    setup.admin().batch_execute(&restore).unwrap();
    assert_none(&all);
    assert_eq!(answers(&setup), before);
    setup.assert_sound();
}

/// In the extension's schema, for a type that calls a function of the owner's when a value is read.
#[test]
fn no_constant_takes_the_type_of_anothers_parameter() {
    let mut setup = setup("mapping_parameter");
    setup.admin().batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {OWNER}")).unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE TYPE planted.held AS (d planted.checked);
             CREATE FUNCTION public.graph_turn_id(planted.held, integer) RETURNS uuid
                 LANGUAGE sql IMMUTABLE AS 'SELECT gen_random_uuid()'",
        )
        .unwrap();
    let found = [
        "graph_turn_id('(x)', 1)",
        "graph_turn_id('(x)'::unknown, 1)",
        "graph_turn_id(NULL::unknown, 1)",
    ]
    .into_iter()
    .flat_map(|expression| {
        let mapping = serde_json::json!({"turns": {"id": {"expression": "graph_turn_id(key)"},
                "parents": [{"parent": {"expression": expression}, "edge_type": "reply"}]}});
        let outcome = bind_by(&mut setup.admin(), &mapping);
        assert!(!setup.has_caught(), "{expression}: {outcome:?}");
        faults(&setup, expression, None)
    });
    assert_none(&found.collect::<Vec<_>>());
    setup.assert_sound();
}

/// What a reader learns of rows that are hidden from it: nothing, though an expression raises on one.
#[test]
fn expressions_are_computed_for_no_hidden_row() {
    let mut setup = setup("mapping_hidden");
    let mut owner = setup.owner();
    bind(&mut setup.admin(), "(100 / (number - 7))::text").answer("binding").expect("it is bound");
    owner
        .batch_execute(
            "CREATE POLICY visible ON app.messages USING (number <> 7);
                        ALTER TABLE app.messages ENABLE ROW LEVEL SECURITY",
        )
        .unwrap();
    let mut reader = setup.reader();
    let slice = "SELECT count(*) FROM graph_slice_turns(public.graph_turn_id('m5'))";
    // The turn after the hidden one follows the turn before it.
    let count = slice.replace("count(*)", "count(*)::text");
    assert_eq!(text(&mut reader, &count), "9");
    let raising = "SELECT ok::text FROM graph_check() WHERE check_name = 'raising_expression'";
    let findings = attempt(&mut reader, raising).answer(raising).unwrap();
    assert!(findings.iter().all(|ok| ok == "true"), "{findings:?}");
    // Who sees the row sees the error.
    assert_eq!(attempt(&mut setup.admin(), slice), Outcome::Refused("22012".to_owned()));
    // Nor is it computed to find which turn is before another.
    bind_following(&mut setup.admin(), "(number / 20 + 100 / (number - 7) * 0)::text")
        .answer("binding")
        .expect("it is bound");
    assert_eq!(text(&mut reader, &count), "9");
    assert_eq!(attempt(&mut setup.admin(), slice), Outcome::Refused("22012".to_owned()));
    setup.assert_sound();
}

/// A call reads the setting once; a cursor goes on over the graph that it began with.
#[test]
fn a_cursor_stays_with_its_graph() {
    let mut setup = Setup::new("mapping_cursor");
    let call = "SELECT turn_id, session_id FROM graph_slice_turns(turn(5))";
    let batch =
        "SELECT slice -> 'turns' FROM graph_slices(ARRAY[turn(5), turn(4), turn(6), turn(9)])";
    for call in [call, batch] {
        let mut reader = setup.reader();
        let rows = attempt(&mut reader, call).answer(call).unwrap();
        let fetched = attempt(
            &mut reader,
            &format!("BEGIN; DECLARE c CURSOR FOR {call}; FETCH 1 FROM c; SET graph_kernel.graph = 'other';
                      FETCH 1 FROM c; SET graph_kernel.graph = 'none'; FETCH ALL FROM c; ROLLBACK"),
        );
        assert_eq!(fetched.answer(call).unwrap(), rows);
    }
    setup.assert_sound();
}
