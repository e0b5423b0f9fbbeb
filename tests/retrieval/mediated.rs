//! sql/roles/mediated.sql: searches inside slices for those who cannot read the tables.

use crate::common::shared_roles;
use crate::sample::{ANCHOR, database, folder, question, refusal, text};

const USER: &str = "aaaaaaaa-0000-4000-8000-000000000001";

#[test]
fn callers_get_slices_and_nothing_else() {
    let database = database("mediated", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    for script in ["supabase.sql", "mediated.sql"] {
        let _roles = shared_roles();
        let script = std::fs::read_to_string(folder().join("../roles").join(script)).unwrap();
        client.batch_execute(&script).unwrap();
    }
    let own = format!(
        "UPDATE memory_turns SET owner_id = '{USER}';
         SET request.jwt.claims = '{{\"sub\": \"{USER}\"}}'; SET ROLE authenticated"
    );
    client.batch_execute(&own).unwrap();
    let slice = format!("SELECT api.graph_slice('{ANCHOR}')::text");
    let export = text(&mut client, &slice);
    assert!(export.contains(r#""role":"graph_reader""#), "{export}");
    let found = text(
        &mut client,
        &format!(
            "SELECT concat(count(*), ' ', bool_and(graph_can_promote(provenance, turn_id)))
             FROM (SELECT turn_id, first_value(provenance) OVER (ORDER BY rank) AS provenance
                   FROM api.search_slice({question}, '{ANCHOR}', limit_count => 5)) AS s"
        ),
    );
    assert_eq!(found, "5 t");
    let body = format!(
        "SELECT json_array_length(api.graph_api_search_slice(json_build_object(
             'anchor_turn_id', '{ANCHOR}', 'query_embedding', {question}::real[])) -> 'results')::text"
    );
    assert_eq!(text(&mut client, &body), "10");
    for forbidden in [
        "SELECT FROM memory_turns".to_owned(),
        "SELECT FROM memory_turn_edges".to_owned(),
        format!("SELECT graph_slice('{ANCHOR}')"),
        format!("SELECT graph_search_global({question})"),
        "SELECT graph_anchor()".to_owned(),
        "SET ROLE graph_reader".to_owned(),
        "CREATE FUNCTION api.more() RETURNS int LANGUAGE sql AS 'SELECT 1'".to_owned(),
        "ALTER FUNCTION api.graph_slice(uuid, text) RESET ALL".to_owned(),
    ] {
        client.batch_execute("SET SESSION AUTHORIZATION authenticated").unwrap();
        assert_eq!(refusal(&mut client, &forbidden).0, "42501", "{forbidden}");
        client.batch_execute("RESET SESSION AUTHORIZATION").unwrap();
    }
    // No other role may call them.
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE retrieval_reader LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT USAGE ON SCHEMA api TO retrieval_reader; SET ROLE retrieval_reader",
        )
        .unwrap();
    assert_eq!(refusal(&mut client, &slice).0, "42501");
}
