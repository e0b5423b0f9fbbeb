//! Traces: what was searched and found, stored with the kernel's own verdict.

use crate::sample::{ANCHOR, database, question, refusal, text};

#[test]
fn a_trace_is_judged_by_the_kernel() {
    let database = database("traces", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    let slice = format!("graph_search_slice({question}, '{ANCHOR}', 'focused', 3)");
    let store = |edit: &str, from: &str| {
        format!("SELECT graph_trace({edit})::text FROM {from} AS s LIMIT 1")
    };
    assert_eq!(
        refusal(&mut client, &store("provenance", &slice)),
        ("42P01".into(), "TRACE_TABLE".into())
    );
    client.batch_execute("SELECT graph_kernel.create_trace_table()").unwrap();
    let global = format!("graph_search({question}, limit_count => 3)");
    for (edit, from, admissible) in [
        ("provenance", &slice, "true"),
        ("jsonb_set(provenance, '{elapsed_ms}', '0')", &slice, "true"),
        ("provenance", &global, "false"),
        ("jsonb_set(provenance, '{limit_requested}', '4')", &slice, "false"),
        ("jsonb_set(provenance, '{mac}', 'null')", &slice, "false"),
        (
            "jsonb_set(provenance, '{query_id}', '\"00000000-0000-4000-8000-000000000001\"')",
            &slice,
            "false",
        ),
    ] {
        let id = text(&mut client, &store(edit, from));
        let stored = text(
            &mut client,
            &format!("SELECT is_admissible::text FROM retrieval_traces WHERE id = '{id}'"),
        );
        assert_eq!(stored, admissible, "{edit} of {from}");
    }
    let consistent = text(
        &mut client,
        "SELECT bool_and(is_admissible = graph_is_admissible_result(provenance)
                         AND id::text = provenance ->> 'query_id'
                         AND retrieval_mode = provenance ->> 'retrieval_mode'
                         AND slice_id IS NOT DISTINCT FROM provenance ->> 'slice_id')::text
         FROM retrieval_traces",
    );
    assert_eq!(consistent, "true");
    for bad in [
        "'{}'",
        "'null'",
        "'[]'",
        "provenance - 'mac'",
        "provenance || '{\"more\": 1}'",
        "jsonb_set(provenance, '{is_admissible}', 'false')",
    ] {
        assert_eq!(
            refusal(&mut client, &store(bad, &slice)),
            ("22023".into(), "INVALID_PROVENANCE".into()),
            "{bad}"
        );
    }
    // A rule would change what is done, so nothing is.
    client.batch_execute("CREATE TABLE other (LIKE retrieval_traces)").unwrap();
    for (rule, word) in [
        ("ALSO NOTIFY stored", "TABLE_RULES"),
        ("INSTEAD INSERT INTO other VALUES (NEW.*) RETURNING *", "TABLE_RULES"),
        ("INSTEAD NOTHING", ""),
    ] {
        let rows = "SELECT count(*)::text FROM retrieval_traces";
        let before = text(&mut client, rows);
        client
            .batch_execute(&format!("CREATE RULE r AS ON INSERT TO retrieval_traces DO {rule}"))
            .unwrap();
        let refused = refusal(&mut client, &store("provenance", &slice));
        assert_eq!(refused, ("0A000".into(), word.into()), "{rule}");
        assert_eq!(text(&mut client, rows), before, "{rule}");
        client.batch_execute("DROP RULE r ON retrieval_traces").unwrap();
    }
    client.batch_execute("DROP TABLE retrieval_traces").unwrap();
    assert_eq!(
        refusal(&mut client, &store("provenance", &slice)),
        ("42P01".into(), "TRACE_TABLE".into())
    );
}

#[test]
fn promotion_takes_a_turn_that_was_retrieved() {
    let database = database("promotion", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    let verdicts = text(
        &mut client,
        &format!(
            "SELECT concat(bool_and(graph_can_promote(s.provenance, s.turn_id)), ' ',
                           bool_or(graph_can_promote(s.provenance, o.turn_id)), ' ',
                           bool_or(graph_can_promote(g.provenance, s.turn_id)), ' ',
                           bool_or(graph_can_promote(s.provenance, NULL)), ' ',
                           bool_or(graph_can_promote(NULL, s.turn_id)), ' ',
                           bool_or(graph_can_promote('{{}}', s.turn_id)))
             FROM (SELECT turn_id, first_value(provenance) OVER (ORDER BY rank) AS provenance
                   FROM graph_search_slice({question}, '{ANCHOR}', 'focused', 3)) AS s,
                  graph_slice_turns('{ANCHOR}', 'focused') AS o,
                  graph_search({question}, limit_count => 3) AS g
             WHERE NOT s.provenance -> 'retrieved_turn_ids' ? o.turn_id::text"
        ),
    );
    assert_eq!(verdicts, "t f f f f f");
}

/// The table of the integration's document (003 §8.6), whose columns beyond these it leaves open.
#[test]
fn the_documented_table_takes_traces_with_one_more_column() {
    let database = database("traces_documented", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    client
        .batch_execute(
            "CREATE TABLE retrieval_traces (
                 id UUID PRIMARY KEY,
                 retrieval_mode TEXT CHECK (retrieval_mode IN ('slice', 'global')),
                 is_admissible BOOLEAN NOT NULL,
                 slice_id TEXT,
                 admissibility_token TEXT);
             CREATE INDEX idx_admissible ON retrieval_traces (is_admissible);
             INSERT INTO retrieval_traces VALUES (gen_random_uuid(), 'global', false)",
        )
        .unwrap();
    let error = client.batch_execute("SELECT graph_kernel.bind_traces('retrieval_traces')");
    let error = error.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.detail()), ("42703", Some("TRACE_TABLE")));
    let hint = error.hint().unwrap();
    assert_eq!(hint, "ALTER TABLE public.retrieval_traces ADD COLUMN provenance jsonb;");
    client.batch_execute(hint).unwrap();
    client
        .batch_execute(&format!(
            "SELECT graph_kernel.bind_traces('retrieval_traces');
             SELECT graph_trace(provenance) FROM graph_search_slice({question}, '{ANCHOR}', limit_count => 1)"
        ))
        .unwrap();
    let stored = "SELECT string_agg(concat(retrieval_mode, ' ', is_admissible, ' ',
                                           provenance ->> 'slice_id' = slice_id), ', ' ORDER BY retrieval_mode)
                  FROM retrieval_traces";
    assert_eq!(text(&mut client, stored), "global f , slice t t");
}

#[test]
fn who_may_trace_is_who_may_insert() {
    let database = database("tracers", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE retrieval_tracer LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_tracer;
             SELECT graph_kernel.create_trace_table();
             SET ROLE retrieval_tracer",
        )
        .unwrap();
    let trace = format!(
        "SELECT graph_trace(provenance) FROM graph_search_slice({question}, '{ANCHOR}', 'focused', 3) LIMIT 1"
    );
    assert_eq!(refusal(&mut client, &trace).0, "42501");
    client
        .batch_execute(
            "RESET ROLE; GRANT INSERT ON retrieval_traces TO retrieval_tracer; SET ROLE retrieval_tracer",
        )
        .unwrap();
    client.batch_execute(&trace).unwrap();
    // Binding another table is for administrators.
    assert_eq!(refusal(&mut client, "SELECT graph_kernel.bind_traces('memory_turns')").0, "42501");
    client
        .batch_execute("RESET ROLE; CREATE SCHEMA traces AUTHORIZATION retrieval_tracer; SET ROLE retrieval_tracer")
        .unwrap();
    assert_eq!(refusal(&mut client, "SELECT graph_kernel.create_trace_table('traces')").0, "42501");
    client
        .batch_execute(
            "RESET ROLE; GRANT EXECUTE ON FUNCTION graph_kernel.bind_traces TO retrieval_tracer;
             SET ROLE retrieval_tracer; SELECT graph_kernel.create_trace_table('traces')",
        )
        .unwrap();
    client.batch_execute(&trace).unwrap();
    assert_eq!(text(&mut client, "SELECT count(*)::text FROM traces.retrieval_traces"), "1");
    client.batch_execute("RESET ROLE").unwrap();
    let wrong = "SELECT graph_kernel.bind_traces('memory_turns')";
    assert_eq!(refusal(&mut client, wrong), ("42703".into(), "TRACE_TABLE".into()));
}
