//! Columns whose type is a domain of the owner's: no function of the owner's is found by it, and they read as their
//! base types do.

use crate::setup::{GRAPH_CALLS, LOG_CALLS, Setup, assert_none, attempt};

/// What somebody may make to catch a name that is looked up by a column's type.
fn overloads(domain: &str) -> String {
    let function = |schema: &str, name: &str, arguments: &str, result: &str, value: &str| {
        format!(
            "CREATE FUNCTION {schema}.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM planted.f(); RETURN {value}; END $$;
             GRANT EXECUTE ON FUNCTION {schema}.{name}({arguments}) TO PUBLIC;"
        )
    };
    let both = format!("{domain}, {domain}");
    let with_text = format!("{domain}, text");
    [
        function("public", "graph_content_hash", domain, "text", "'caught'"),
        function("public", "graph_content_hash", &format!("{domain}, VARIADIC text[]"), "text", "'caught'"),
        function("public", "lower", domain, "text", "'caught'"),
        function("public", "same", &both, "boolean", "true"),
        function("public", "same_text", &with_text, "boolean", "true"),
        format!("CREATE OPERATOR public.= (LEFTARG = {domain}, RIGHTARG = {domain}, FUNCTION = public.same);"),
        format!("CREATE OPERATOR public.<> (LEFTARG = {domain}, RIGHTARG = {domain}, FUNCTION = public.same);"),
        format!("CREATE OPERATOR public.~ (LEFTARG = {domain}, RIGHTARG = text, FUNCTION = public.same_text);"),
        format!("CREATE OPERATOR public.<> (LEFTARG = {domain}, RIGHTARG = text, FUNCTION = public.same_text);"),
        format!("CREATE OPERATOR public.= (LEFTARG = {domain}, RIGHTARG = text, FUNCTION = public.same_text);"),
    ]
    .concat()
}

/// Columns of the graph with their types; those of the log are texts.
const COLUMNS: [(&str, &str, &str); 13] = [
    ("turns", "content_text", "text"),
    ("turns", "content_hash", "text"),
    ("turns", "session_id", "text"),
    ("turns", "role", "text"),
    ("turns", "trajectory_phase", "text"),
    ("turns", "created_at", "timestamptz"),
    ("turns", "salience_score", "real"),
    ("turns", "trajectory_depth", "int"),
    ("turns", "embedding", "real[]"),
    ("edges", "edge_type", "text"),
    ("events", "event_id", "text"),
    ("events", "text", "text"),
    ("events", "occurred_at_ms", "bigint"),
];

/// A role that is not an owner of the extension, but may create objects in the schema of the extension.
fn setup(name: &str) -> Setup {
    let setup = Setup::new(name);
    setup.admin().batch_execute("GRANT CREATE ON SCHEMA public TO attack_owner").unwrap();
    setup
}

fn all_calls() -> Vec<&'static str> {
    let backfill = "CALL graph_kernel.backfill_content_hashes()";
    GRAPH_CALLS.into_iter().chain(LOG_CALLS).chain([backfill]).collect()
}

#[test]
fn a_domain_over_any_type_runs_nothing_of_its_owners() {
    let mut faults = Vec::new();
    let mut answers = Vec::new();
    let mut plain = Setup::new("domains_plain");
    for call in all_calls() {
        answers.push(attempt(&mut plain.admin(), call).answer(call).expect(call));
    }
    for (table, column, base) in COLUMNS {
        let mut setup = setup(&format!("domains_{table}_{column}"));
        let mut owner = setup.owner();
        owner
            .batch_execute(&format!(
                "CREATE DOMAIN public.ours AS {base};
                 ALTER TABLE b2.{table} ALTER COLUMN {column} TYPE public.ours;
                 {}",
                overloads("public.ours")
            ))
            .unwrap();
        for (call, rows) in all_calls().into_iter().zip(&answers) {
            let outcome = attempt(&mut setup.admin(), call);
            // A domain reads as its base type does: an error is not an answer.
            let fault = (outcome != crate::setup::Outcome::Answer(rows.clone()))
                .then(|| format!("answered {outcome:.200?}, not {rows:.200?}"));
            faults.extend(fault.map(|fault| format!("{column} {base}: {call}: {fault}")));
            if setup.has_caught() {
                faults.push(format!("{column} {base}: {call}: runs the owner's function"));
                owner.batch_execute("SELECT setval('planted.caught', 1, false)").unwrap();
            }
        }
        setup.assert_sound();
    }
    assert_none(&faults);
    plain.assert_sound();
}

/// Ids may be of a domain, or be refused when they are bound; nothing in between.
#[test]
fn a_domain_over_uuid() {
    for (table, column, key) in [
        ("turns", "id", "PRIMARY KEY (id)"),
        ("edges", "parent_turn_id", "PRIMARY KEY (parent_turn_id, child_turn_id)"),
        ("edges", "child_turn_id", "PRIMARY KEY (parent_turn_id, child_turn_id)"),
    ] {
        let mut setup = setup(&format!("domains_uuid_{column}"));
        let mut owner = setup.owner();
        let mut admin = setup.admin();
        let call = "SELECT s -> 'turns', s -> 'edges' FROM graph_slice(turn(5)) AS s";
        let rows = attempt(&mut admin, call).answer(call).expect(call);
        owner
            .batch_execute(&format!(
                "CREATE DOMAIN public.ours AS uuid;
                 {}
                 CREATE TABLE b2.plain (LIKE b2.{table});
                 ALTER TABLE b2.plain ALTER COLUMN {column} TYPE public.ours;
                 INSERT INTO b2.plain SELECT * FROM b2.{table};
                 ALTER TABLE b2.plain ADD {key}",
                overloads("public.ours")
            ))
            .unwrap();
        let tables =
            if table == "turns" { "'b2.plain', 'b2.edges'" } else { "'b2.turns', 'b2.plain'" };
        let bind = format!("SELECT graph_kernel.bind_tables({tables})");
        if attempt(&mut admin, &bind).answer(&bind).is_some() {
            assert_eq!(attempt(&mut setup.admin(), call).answer(call), Some(rows), "{column}");
            for call in GRAPH_CALLS {
                attempt(&mut setup.admin(), call).answer(call);
            }
        }
        assert!(!setup.has_caught(), "{column}");
        setup.assert_sound();
    }
}

#[test]
fn a_domain_over_an_enum_or_varchar_slices() {
    for (name, base, made) in [
        ("enum", "public.speaker", "CREATE TYPE public.speaker AS ENUM ('user', 'tool');"),
        ("varchar", "varchar(20)", ""),
        ("domain", "public.inner_domain", "CREATE DOMAIN public.inner_domain AS varchar(20);"),
        ("checked", "text CHECK (length(VALUE) < 20)", ""),
    ] {
        let mut setup = setup(&format!("domains_role_{name}"));
        let call = "SELECT s -> 'turns', s -> 'edges' FROM graph_slice(turn(5)) AS s";
        let rows = attempt(&mut setup.admin(), call).answer(call).expect(call);
        let mut owner = setup.owner();
        owner
            .batch_execute(&format!(
                "{made} CREATE DOMAIN public.ours AS {base};
                 ALTER TABLE b2.turns ALTER COLUMN role TYPE public.ours USING role::public.ours;
                 {}",
                overloads("public.ours")
            ))
            .unwrap();
        let bind = "SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges')";
        attempt(&mut setup.admin(), bind).answer(bind).expect(bind);
        for call in GRAPH_CALLS {
            assert!(
                attempt(&mut setup.admin(), call).answer(call).is_some(),
                "{name}: {call} is refused"
            );
        }
        assert_eq!(attempt(&mut setup.admin(), call).answer(call), Some(rows), "{name}");
        assert!(!setup.has_caught(), "{name}");
        setup.assert_sound();
    }
}

/// Casts of an enum, and of a base type to the domain, are the owner's as well.
#[test]
fn a_cast_of_an_enum_is_not_run() {
    let mut setup = setup("domains_cast");
    setup
        .owner()
        .batch_execute(
            "CREATE TYPE public.speaker AS ENUM ('user', 'tool');
             CREATE DOMAIN public.ours AS public.speaker;
             CREATE FUNCTION planted.speaker_text(public.speaker) RETURNS text LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM planted.f(); RETURN 'system'; END $$;
             CREATE CAST (public.speaker AS text) WITH FUNCTION planted.speaker_text AS IMPLICIT;
             ALTER TABLE b2.turns ALTER COLUMN role TYPE public.ours USING 'tool'",
        )
        .unwrap();
    for call in GRAPH_CALLS {
        attempt(&mut setup.admin(), call).answer(call);
    }
    assert!(!setup.has_caught(), "the cast's function ran");
    let call = "SELECT DISTINCT t ->> 'role' FROM json_array_elements(graph_slice(turn(5)) -> 'turns') AS t";
    assert_eq!(attempt(&mut setup.admin(), call).answer(call), Some(vec!["tool".to_owned()]));
    setup.assert_sound();
}
