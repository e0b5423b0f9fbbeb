//! sql/roles/search.sql: slices for those who cannot read the tables.

use crate::sample::{ANCHOR, database, folder, question, refusal, text};

#[test]
fn callers_get_slices_and_nothing_else() {
    let database = database("mediated", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    let sample = std::fs::read_to_string(folder().join("../roles/search.sql")).unwrap();
    client.batch_execute(&sample).unwrap();
    client.batch_execute("SET ROLE context_caller").unwrap();
    let slice = format!("SELECT context.slice('{ANCHOR}')::text");
    let export = text(&mut client, &slice);
    assert!(export.contains(r#""role":"context_reader""#), "{export}");
    let found = text(
        &mut client,
        &format!(
            "SELECT concat(count(*), ' ', bool_and(graph_can_promote(provenance, turn_id)))
             FROM context.search({question}, '{ANCHOR}', 5)"
        ),
    );
    assert_eq!(found, "5 t");
    for forbidden in [
        "SELECT FROM memory_turns".to_owned(),
        "SELECT FROM memory_turn_edges".to_owned(),
        format!("SELECT graph_slice('{ANCHOR}')"),
        format!("SELECT graph_search_global({question})"),
        "SELECT graph_anchor()".to_owned(),
        "SET ROLE context_reader".to_owned(),
        "CREATE FUNCTION context.more() RETURNS int LANGUAGE sql AS 'SELECT 1'".to_owned(),
        "ALTER FUNCTION context.slice(uuid) RESET ALL".to_owned(),
    ] {
        client.batch_execute("SET SESSION AUTHORIZATION context_caller").unwrap();
        assert_eq!(refusal(&mut client, &forbidden).0, "42501", "{forbidden}");
        client.batch_execute("RESET SESSION AUTHORIZATION").unwrap();
    }
    // Nobody else may call them.
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE retrieval_reader LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT USAGE ON SCHEMA context TO retrieval_reader; SET ROLE retrieval_reader",
        )
        .unwrap();
    assert_eq!(refusal(&mut client, &slice).0, "42501");
}
