//! The embedding column and its operator are part of the binding.

use crate::common::process::{run, server_program};
use crate::common::variable;
use crate::sample::{ANCHOR, database, has_pgvector, question, refusal, search, text};

fn bind(embedding: &str) -> String {
    bind_turns(&format!("\"embedding\": {embedding}"))
}

fn bind_turns(keys: &str) -> String {
    format!(
        "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{{\"turns\": {{{keys}}}}}')"
    )
}

#[test]
fn the_operator_says_what_similarity_is() {
    if !has_pgvector("the_operator_says_what_similarity_is") {
        return;
    }
    let database = database("operators", "vector(384)");
    let mut client = database.connect();
    let question = question(&mut client);
    for (operator, similarity) in [
        ("<=>", "1 - (t.embedding <=> q)"),
        ("<#>", "-(t.embedding <#> q)"),
        ("<->", "1 / (1 + (t.embedding <-> q))"),
        ("<+>", "1 / (1 + (t.embedding <+> q))"),
    ] {
        client
            .batch_execute(&bind(&format!(
                "{{\"column\": \"embedding\", \"operator\": \"{operator}\"}}"
            )))
            .unwrap();
        let expected = client
            .query(
                &format!(
                    "SELECT t.id, {similarity} FROM graph_slice_turns('{ANCHOR}') AS s
                     JOIN memory_turns AS t ON t.id = s.turn_id,
                     CAST({question}::real[] AS vector) AS q ORDER BY 2 DESC, 1 LIMIT 5"
                ),
                &[],
            )
            .unwrap();
        let found = search(&mut client, &format!("{question}, '{ANCHOR}', 'default', 5"));
        let global = client
            .query(
                &format!(
                    "SELECT turn_id, similarity FROM graph_search({question}, limit_count => 200)"
                ),
                &[],
            )
            .unwrap();
        // What points away from the question is not found.
        let positive = format!(
            "SELECT count(*)::text FROM memory_turns AS t, CAST({question}::real[] AS vector) AS q
             WHERE {similarity} > 0"
        );
        assert_eq!(global.len().to_string(), text(&mut client, &positive), "{operator}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.0, expected.get::<_, uuid::Uuid>(0), "{operator}");
            let expected: f64 = expected.get(1);
            assert!((f64::from(found.1) - expected).abs() < 1e-4, "{operator}");
        }
    }
}

#[test]
fn a_bad_mapping_is_refused_when_it_is_bound() {
    let database = database("mapping", "real[]");
    let mut client = database.connect();
    for (mapping, code, word) in [
        ("\"content_text\"", "42804", "NO_EMBEDDINGS"),
        ("\"no_such_column\"", "42703", "NO_EMBEDDINGS"),
        ("7", "22023", "INVALID_BINDING"),
        ("{\"column\": 7}", "22023", "INVALID_BINDING"),
        ("{\"colum\": \"embedding\"}", "22023", "INVALID_BINDING"),
        ("{\"operator\": \"<\"}", "22023", "INVALID_BINDING"),
        ("{\"operator\": \"OPERATOR(public.<=>)\"}", "22023", "INVALID_BINDING"),
    ] {
        assert_eq!(refusal(&mut client, &bind(mapping)), (code.into(), word.into()), "{mapping}");
    }
    let call = format!("SELECT graph_search_slice('{{1}}', '{ANCHOR}')");
    client.batch_execute(&bind("null")).unwrap();
    assert_eq!(refusal(&mut client, &call), ("42703".into(), "NO_EMBEDDINGS".into()));
    client
        .batch_execute(&format!(
            "ALTER TABLE memory_turns RENAME embedding TO meaning; {}",
            bind("\"meaning\"")
        ))
        .unwrap();
    let question = question(&mut client);
    assert_eq!(search(&mut client, &format!("{question}, '{ANCHOR}'")).len(), 10);
    // An embedding that is gone takes no slice with it.
    client.batch_execute("ALTER TABLE memory_turns DROP COLUMN meaning").unwrap();
    client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
    assert_eq!(refusal(&mut client, &call), ("42703".into(), "NO_EMBEDDINGS".into()));
}

#[test]
fn a_column_of_another_kind_takes_no_slice_away() {
    let database = database("kind", "real[]");
    let mut client = database.connect();
    client
        .batch_execute("ALTER TABLE memory_turns ALTER embedding TYPE text USING embedding::text")
        .unwrap();
    client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
    let call = format!("SELECT graph_search_slice('{{1}}', '{ANCHOR}')");
    assert_eq!(refusal(&mut client, &call), ("42804".into(), "NO_EMBEDDINGS".into()));
}

/// An operator of a user's would run with the rights of the role that searches.
#[test]
fn operators_and_casts_of_users_are_never_run() {
    if !has_pgvector("operators_and_casts_of_users_are_never_run") {
        return;
    }
    let database = database("shadow", "vector(384)");
    let mut client = database.connect();
    let question = question(&mut client);
    let slice = format!("{question}, '{ANCHOR}', 'default', 5");
    let global = format!(
        "SELECT string_agg(turn_id::text, ' ') FROM graph_search({question}, limit_count => 5)"
    );
    let before = (search(&mut client, &slice), text(&mut client, &global));
    client
        .batch_execute(
            "CREATE SCHEMA decoys; SET search_path = decoys, pg_catalog, public;
             CREATE FUNCTION caught(public.vector, public.vector) RETURNS float8 LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'caught'; END $$;
             CREATE OPERATOR <=> (LEFTARG = public.vector, RIGHTARG = public.vector, FUNCTION = caught);
             CREATE OPERATOR <%> (LEFTARG = public.vector, RIGHTARG = public.vector, FUNCTION = caught);
             CREATE FUNCTION vector_out(public.vector) RETURNS text LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'caught'; END $$",
        )
        .unwrap();
    assert_eq!((search(&mut client, &slice), text(&mut client, &global)), before);

    // One beside the type that is not the extension's, then one that its owner added to it.
    client
        .batch_execute(
            "SET search_path = public;
             CREATE FUNCTION public.caught(vector, vector) RETURNS float8 LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'caught'; END $$;
             ALTER EXTENSION vector DROP OPERATOR <+> (vector, vector);
             ALTER OPERATOR <+> (vector, vector) SET SCHEMA decoys;
             CREATE OPERATOR <+> (LEFTARG = vector, RIGHTARG = vector, FUNCTION = caught)",
        )
        .unwrap();
    let taxicab = bind("{\"operator\": \"<+>\"}");
    assert_eq!(refusal(&mut client, &taxicab), ("42883".into(), "NO_EMBEDDINGS".into()));
    client.batch_execute("ALTER EXTENSION vector ADD OPERATOR <+> (vector, vector)").unwrap();
    assert_eq!(refusal(&mut client, &taxicab), ("42883".into(), "NO_EMBEDDINGS".into()));
}

#[test]
fn the_type_may_move_to_another_schema() {
    if !has_pgvector("the_type_may_move_to_another_schema") {
        return;
    }
    let database = database("moved", "vector(384)");
    let mut client = database.connect();
    let question = question(&mut client);
    let slice = format!("{question}, '{ANCHOR}', 'default', 5");
    let global = format!(
        "SELECT string_agg(turn_id::text, ' ') FROM graph_search({question}, limit_count => 5)"
    );
    let before = (search(&mut client, &slice), text(&mut client, &global));
    client
        .batch_execute(
            "CREATE SCHEMA \"Odd; \"\" Name\"; ALTER EXTENSION vector SET SCHEMA \"Odd; \"\" \
        Name\"",
        )
        .unwrap();
    assert_eq!((search(&mut client, &slice), text(&mut client, &global)), before);
    client.batch_execute("DROP EXTENSION vector CASCADE").unwrap();
    client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
    let call = format!("SELECT graph_search_slice({slice})");
    assert_eq!(refusal(&mut client, &call), ("42703".into(), "NO_EMBEDDINGS".into()));
}

#[test]
fn a_dump_carries_the_column_and_the_trace_table() {
    let origin = database("dumped", "real[]");
    let mut client = origin.connect();
    client
        .batch_execute(&format!(
            "ALTER TABLE memory_turns RENAME embedding TO meaning;
             ALTER TABLE memory_turns RENAME owner TO \"Whose \"\"turn\"\"\";
             ALTER TABLE memory_turns ADD gone_at bigint;
             UPDATE memory_turns
             SET \"Whose \"\"turn\"\"\" = role, gone_at = CASE trajectory_depth % 2 WHEN 0 THEN 7 END;
             {};
             CREATE SCHEMA audit; SELECT graph_kernel.create_trace_table('audit')",
            bind_turns(
                r#""embedding": {"column": "meaning", "operator": "<->"}, "owner": "Whose \"turn\"",
                   "valid_until": {"expression": "to_timestamp(gone_at)"}"#
            )
        ))
        .unwrap();
    let question = question(&mut client);
    let arguments =
        format!("{question}, '{ANCHOR}', 'focused', 5, options => '{{\"owner\": \"assistant\"}}'");
    let before = search(&mut client, &arguments);
    assert_eq!(before.len(), 4);
    let described = "SELECT (graph_kernel.describe_graph('default') #- '{turns,oid}' #- '{edges,oid}' #- '{tables}'
                             #- '{indexes}')::text";
    let description = text(&mut client, described);
    assert!(
        description.contains("graph_kernel.json_text(t.\\\"payload\\\")")
            && description.contains("t.\\\"Whose \\\"\\\"turn\\\"\\\"\\\"::pg_catalog.text")
            && description.contains("to_timestamp"),
        "{description}"
    );
    let restored = crate::common::database::Database::empty("retrieval_restored");
    let dump = format!("{}/retrieval.sql", variable("GRAPH_KERNEL_SCRATCH"));
    let connection = |database: &str| {
        ["--host", &variable("PGHOST"), "--username", &variable("PGUSER"), "--dbname", database]
            .map(str::to_owned)
    };
    run(server_program("pg_dump").args(connection(&origin.name)).args(["--file", &dump]));
    run(server_program("psql")
        .args(["-X", "--quiet", "--set=ON_ERROR_STOP=1", "--file", &dump])
        .args(connection(&restored.name)));
    let mut client = restored.connect();
    assert_eq!(search(&mut client, &arguments), before);
    assert_eq!(text(&mut client, described), description);
    let traced = format!(
        "SELECT graph_trace(provenance)::text FROM graph_search_slice({arguments}) LIMIT 1"
    );
    let id = text(&mut client, &traced);
    assert_eq!(text(&mut client, "SELECT id::text FROM audit.retrieval_traces"), id);
}
