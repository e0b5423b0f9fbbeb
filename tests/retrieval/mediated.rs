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
    let latest = text(&mut client, "SELECT anchor_turn_id::text FROM graph_anchor()");
    let latest_at = text(&mut client, "SELECT created_at::text FROM graph_anchors_recent(1)");
    let nearest =
        format!("SELECT anchor_turn_id::text FROM graph_anchor(query_embedding => {question})");
    let nearest = text(&mut client, &nearest);
    let session =
        text(&mut client, &format!("SELECT session_id FROM memory_turns WHERE id = '{ANCHOR}'"));
    let in_session = format!(
        "SELECT concat(anchor_turn_id, ' ', created_at) FROM graph_anchors_recent(1, '{session}')"
    );
    let in_session = text(&mut client, &in_session);
    client.batch_execute(&own).unwrap();
    for (anchor, found) in [
        (format!("api.graph_anchor('{ANCHOR}')"), format!("{ANCHOR} explicit")),
        (format!("api.graph_anchor(query_embedding => {question})"), format!("{nearest} semantic")),
        ("api.graph_anchor()".to_owned(), format!("{latest} temporal")),
        ("api.graph_anchors_recent(1)".to_owned(), format!("{latest} {latest_at}")),
        (
            format!("api.graph_anchors_recent(limit_count => 1, session_id => '{session}')"),
            in_session.clone(),
        ),
    ] {
        let call = format!(
            "SELECT concat_ws(' ', VARIADIC ARRAY(SELECT value FROM json_each_text(row_to_json(a)))) FROM {anchor} AS a"
        );
        assert_eq!(text(&mut client, &call), found, "{anchor}");
    }
    // What row security hides is not an anchor.
    client
        .batch_execute(&format!(
            "RESET ROLE; UPDATE memory_turns SET owner_id = NULL WHERE id = '{latest}'; SET ROLE authenticated"
        ))
        .unwrap();
    let hidden = format!("SELECT api.graph_anchor('{latest}')");
    assert_eq!(refusal(&mut client, &hidden), ("02000".into(), "ANCHOR_NOT_FOUND".into()));
    let recent = "SELECT anchor_turn_id::text FROM api.graph_anchors_recent(1)";
    assert_ne!(text(&mut client, recent), latest);
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
        format!("SELECT graph_search({question})"),
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
