//! Searches within a slice that somebody has exported, and within a slice by words.

use serde_json::Value;
use uuid::Uuid;

use postgres::Client;

use crate::sample::{ANCHOR, database, question, refusal, search, text};

/// The slice at [`ANCHOR`] as a literal.
fn export(client: &mut Client) -> String {
    let export = text(client, &format!("SELECT graph_slice('{ANCHOR}', 'focused')::text"));
    format!("'{}'::json", export.replace('\'', "''"))
}

/// The turns found in an export and their similarities, in the order of their rank.
fn in_export(client: &mut Client, arguments: &str) -> Vec<(Uuid, Option<f32>)> {
    let query =
        format!("SELECT turn_id, similarity FROM graph_search_export({arguments}) ORDER BY rank");
    let rows = client.query(&query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn provenance(client: &mut Client, call: &str) -> Value {
    let query = format!("SELECT provenance::text FROM {call} ORDER BY rank LIMIT 1");
    serde_json::from_str(&text(client, &query)).unwrap()
}

#[test]
fn an_export_is_searched_as_its_slice_is() {
    let database = database("export", "real[]");
    let mut client = database.connect();
    let (question, export) = (question(&mut client), export(&mut client));
    let expected = search(&mut client, &format!("{question}, '{ANCHOR}', 'focused', 10"));
    let found = in_export(&mut client, &format!("{question}, {export}"));
    assert_eq!(found.len(), 10);
    for (ours, (id, similarity)) in found.iter().zip(&expected) {
        assert_eq!(*ours, (*id, Some(*similarity)));
    }
    let mut of_export =
        provenance(&mut client, &format!("graph_search_export({question}, {export})"));
    let call = format!("graph_search_slice({question}, '{ANCHOR}', 'focused')");
    let mut of_slice = provenance(&mut client, &call);
    for record in [&mut of_export, &mut of_slice] {
        for changing in ["query_id", "timestamp", "elapsed_ms", "mac"] {
            assert!(record.as_object_mut().unwrap().remove(changing).is_some(), "{changing}");
        }
    }
    assert_eq!(of_export, of_slice);
    let promotes = format!(
        "SELECT (graph_is_admissible_result(s.provenance) AND graph_can_promote(s.provenance, s.turn_id)
                 AND (SELECT bool_and(matches) FROM graph_replay_retrieval(s.provenance, {question})))::text
         FROM graph_search_export({question}, {export}) AS s WHERE s.rank = 1"
    );
    assert_eq!(text(&mut client, &promotes), "true");
    for none in [
        format!("{question}, NULL"),
        format!("NULL, {export}"),
        format!("{question}, {export}, NULL"),
        format!("{question}, {export}, options => NULL"),
    ] {
        assert_eq!(in_export(&mut client, &none), [], "{none}");
    }
}

#[test]
fn what_does_not_verify_is_not_searched() {
    let database = database("export_refused", "real[]");
    let mut client = database.connect();
    let (question, export) = (question(&mut client), export(&mut client));
    for (slice, detail) in [
        ("'{}'".to_owned(), "NOT_ADMISSIBLE: malformed"),
        ("'null'".to_owned(), "NOT_ADMISSIBLE: malformed"),
        (
            export.replacen("\"role\":\"user\"", "\"role\":\"tool\"", 1),
            "NOT_ADMISSIBLE: digest_mismatch",
        ),
    ] {
        let refused =
            refusal(&mut client, &format!("SELECT graph_search_export({question}, {slice})"));
        assert_eq!(refused, ("22023".into(), detail.into()));
    }
    // Of another graph, of tables that have the same turns.
    client
        .batch_execute(
            "CREATE SCHEMA other; CREATE TABLE other.turns AS SELECT * FROM memory_turns;
             CREATE TABLE other.edges AS SELECT * FROM memory_turn_edges;
             ALTER TABLE other.turns ADD PRIMARY KEY (id);
             SELECT graph_kernel.bind_tables('other.turns', 'other.edges', name => 'other');
             SET graph_kernel.graph = 'other'",
        )
        .unwrap();
    let refused =
        refusal(&mut client, &format!("SELECT graph_search_export({question}, {export})"));
    assert_eq!(refused, ("22023".into(), "NOT_ADMISSIBLE: other_graph".into()));
}

#[test]
fn what_is_gone_is_not_found_and_makes_a_shortfall() {
    let database = database("export_gone", "real[]");
    let mut client = database.connect();
    let (question, export) = (question(&mut client), export(&mut client));
    let all = format!("{question}, {export}, 1000");
    let before = in_export(&mut client, &all);
    let best = before[0].0;
    // Before it is committed, nothing is signed.
    let mut transaction = client.transaction().unwrap();
    for table in [
        "memory_turn_edges WHERE parent_turn_id",
        "memory_turn_edges WHERE child_turn_id",
        "memory_turns WHERE id",
    ] {
        transaction.batch_execute(&format!("DELETE FROM {table} = '{best}'")).unwrap();
    }
    let mac = format!(
        "SELECT coalesce(provenance ->> 'mac', 'none') FROM graph_search_export({all}) LIMIT 1"
    );
    assert_eq!(text(&mut transaction, &mac), "none");
    transaction.commit().unwrap();
    assert_ne!(text(&mut client, &mac), "none");
    assert_eq!(in_export(&mut client, &all), before[1..]);
    let says = |client: &mut Client, arguments: &str| {
        let call = format!("graph_search_export({arguments})");
        let record = provenance(client, &call);
        let admissible =
            format!("SELECT graph_is_admissible_result(provenance)::text FROM {call} LIMIT 1");
        assert_eq!(record["is_admissible"].to_string(), text(client, &admissible), "{arguments}");
        record["admissibility_shortfall"].as_bool().unwrap()
    };
    assert!(says(&mut client, &all));
    assert!(says(&mut client, &format!("{question}, {export}, 3")), "it was the best");
    // One that is gone and would not have passed the filter is not missed.
    let salience = "SELECT ((max(salience) + 0.01)::real)::text FROM graph_slice_turns";
    let above = text(&mut client, &format!("{salience}('{}', 'focused')", before[1].0));
    let none = format!("{question}, {export}, 1000, min_salience => {above}");
    assert_eq!(in_export(&mut client, &none), []);
}

#[test]
fn a_caller_finds_what_he_may_see_under_the_role_of_the_export() {
    let database = database("export_rls", "real[]");
    let mut client = database.connect();
    let (question, export) = (question(&mut client), export(&mut client));
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE export_reader NOLOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO export_reader;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY users ON memory_turns TO export_reader USING (role = 'user')",
        )
        .unwrap();
    let call = format!("graph_search_export({question}, {export}, 1000)");
    let others = format!("SELECT count(*) FILTER (WHERE role <> 'user')::text FROM {call}");
    assert_ne!(text(&mut client, &others), "0");
    let signed = provenance(&mut client, &call)["attestation"].clone();
    client.batch_execute("SET ROLE export_reader").unwrap();
    assert_eq!(text(&mut client, &others), "0");
    assert_ne!(text(&mut client, &format!("SELECT count(*)::text FROM {call}")), "0");
    let record = provenance(&mut client, &call);
    assert_eq!(record["attestation"], signed, "the export's role and rls");
    assert_eq!(record["attestation"]["rls"], false);
    assert_eq!(record["admissibility_shortfall"], true);
    let first = provenance(&mut client, &format!("graph_search_export({question}, {export}, 1)"));
    assert_eq!(first["is_admissible"], false, "a hidden turn may have been the best");
}

#[test]
fn a_slice_is_searched_by_words_alone() {
    let database = database("slice_words", "real[]");
    let mut client = database.connect();
    let by_words = format!("NULL, '{ANCHOR}', 'focused', 5, query_text => 'invoice numbers'");
    let refused = refusal(&mut client, &format!("SELECT graph_search_slice({by_words})"));
    assert_eq!(refused, ("42703".into(), "NO_WORDS".into()));
    client
        .batch_execute(
            "ALTER TABLE memory_turns ADD COLUMN words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED",
        )
        .unwrap();
    let export = export(&mut client);
    let expected = "SELECT count(*)::text FROM memory_turns AS t JOIN graph_slice_turns($$ANCHOR$$, 'focused') AS s
                        ON s.turn_id = t.id WHERE t.words @@ 'invoic | number'"
        .replace("ANCHOR", ANCHOR);
    let expected = text(&mut client, &expected);
    assert_ne!(expected, "0");
    let of_export = format!("NULL, {export}, 5, query_text => 'invoice numbers'");
    for call in
        [format!("graph_search_slice({by_words})"), format!("graph_search_export({of_export})")]
    {
        let all = call.replace(", 5,", ", 1000,");
        let found = format!(
            "SELECT concat_ws(' ', count(*), count(s.similarity), bool_and(t.words @@ 'invoic | number'))
             FROM {all} AS s JOIN memory_turns AS t ON t.id = s.turn_id"
        );
        assert_eq!(text(&mut client, &found), format!("{expected} 0 t"), "{call}");
        let record = provenance(&mut client, &call);
        assert_eq!(record["query_embedding_hash"], Value::Null);
        assert_eq!(record["is_admissible"], true);
        let replayed = format!(
            "SELECT bool_and(r.matches)::text FROM (SELECT provenance FROM {call} LIMIT 1) AS s,
                    graph_replay_retrieval(s.provenance, '{{1}}') AS r"
        );
        assert_eq!(text(&mut client, &replayed), "true", "{call}");
    }
    // The better ones first: by the scores that the whole graph's search has.
    let order =
        |call: &str| format!("SELECT string_agg(turn_id::text, ' ' ORDER BY rank) FROM {call}");
    let in_graph = format!(
        "(SELECT g.turn_id, g.rank FROM graph_search(NULL, 'invoice numbers', 1000) AS g
           JOIN graph_slice_turns('{ANCHOR}', 'focused') AS s USING (turn_id) ORDER BY g.rank LIMIT 5) AS o"
    );
    let in_slice = text(&mut client, &order(&format!("graph_search_slice({by_words})")));
    assert_eq!(in_slice, text(&mut client, &order(&in_graph)));
    let similar = format!("SELECT graph_search_slice({by_words}, min_similarity => 0.5)");
    assert_eq!(refusal(&mut client, &similar), ("22023".into(), "INVALID_QUERY".into()));
    assert_eq!(search(&mut client, &format!("NULL, '{ANCHOR}'")), []);
}

#[test]
fn words_of_a_slice_are_narrowed_like_embeddings() {
    let database = database("slice_words_narrowed", "real[]");
    let mut client = database.connect();
    client
        .batch_execute(
            "ALTER TABLE memory_turns ADD COLUMN words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED;
             UPDATE memory_turns SET owner = role;
             DO $$ BEGIN CREATE ROLE words_reader NOLOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO words_reader;
             CREATE POLICY results ON memory_turns TO words_reader USING (role = 'tool')",
        )
        .unwrap();
    let call = |options: &str| {
        format!(
            "SELECT string_agg(DISTINCT role, ' ') FROM graph_search_slice(NULL, '{ANCHOR}', 'focused', 1000,
                 query_text => 'invoice numbers'{options})"
        )
    };
    assert_eq!(text(&mut client, &call("")), "assistant tool");
    let owner = r#", options => '{"owner": "tool"}'"#;
    assert_eq!(text(&mut client, &call(owner)), "tool");
    client.batch_execute("ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY").unwrap();
    client.batch_execute("SET ROLE words_reader").unwrap();
    // Other turns of the slice, and its anchor, are hidden.
    let of_a_tool =
        "SELECT id::text FROM memory_turns WHERE words @@ 'invoic' ORDER BY created_at, id LIMIT 1";
    let anchor = text(&mut client, of_a_tool);
    assert_eq!(text(&mut client, &call("").replace(ANCHOR, &anchor)), "tool");
}

/// Whom row security hides rows from chooses what is found, though none of the export's turns be hidden.
#[test]
fn a_search_under_row_security_promotes_the_export_of_its_own_role_alone() {
    let database = database("export_searcher", "real[]");
    let mut client = database.connect();
    let (question, of_admin) = (question(&mut client), export(&mut client));
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE export_searcher NOLOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO export_searcher;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY everything ON memory_turns TO export_searcher USING (true);
             SET ROLE export_searcher",
        )
        .unwrap();
    let own = export(&mut client);
    for (export, is_narrowed) in [(of_admin, true), (own, false)] {
        let record =
            provenance(&mut client, &format!("graph_search_export({question}, {export}, 3)"));
        assert_eq!(record["admissibility_shortfall"], is_narrowed);
        assert_eq!(record["attestation"]["rls"], !is_narrowed);
    }
}

/// Another row with the id of a turn, which somebody may have inserted, decides nothing in silence.
#[test]
fn a_turn_that_is_stored_twice_is_not_found_by_one_of_its_rows() {
    let database = database("export_twice", "real[]");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE SCHEMA many;
             CREATE TABLE many.turns (id uuid, parent uuid, owner text, content_text text, embedding real[],
                 words tsvector GENERATED ALWAYS AS (to_tsvector('english'::regconfig, content_text)) STORED,
                 PRIMARY KEY (id, owner)) PARTITION BY LIST (owner);
             CREATE TABLE many.shared PARTITION OF many.turns FOR VALUES IN ('shared');
             CREATE TABLE many.others PARTITION OF many.turns DEFAULT;
             INSERT INTO many.turns (id, parent, owner, content_text, embedding) VALUES
                 ('00000000-0000-0000-0000-000000000001', NULL, 'shared', 'refunds are not allowed', '{1,0}'),
                 ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'shared',
                  'refunds', '{0.7,0.7}');
             SELECT graph_kernel.bind_tables('many.turns', name => 'many', columns =>
                 '{\"turns\": {\"parents\": [{\"parent\": \"parent\", \"edge_type\": \"reply\"}]}}');
             SET graph_kernel.graph = 'many'",
        )
        .unwrap();
    let export = text(
        &mut client,
        "SELECT graph_slice('00000000-0000-0000-0000-000000000002', 'default')::text",
    );
    let searches = [
        format!("graph_search_export('{{1,0}}', '{export}', 1)"),
        format!("graph_search_export(NULL, '{export}', 1, query_text => 'refunds allowed')"),
        "graph_search('{1,0}', limit_count => 1)".to_owned(),
        "graph_search('{1,0}', 'refunds allowed', limit_count => 1)".to_owned(),
    ];
    for search in &searches {
        let found = text(&mut client, &format!("SELECT turn_id::text FROM {search}"));
        assert!(found.ends_with('1'), "{search}");
    }
    client
        .batch_execute(
            "INSERT INTO many.turns (id, owner, content_text, embedding) VALUES
                 ('00000000-0000-0000-0000-000000000001', 'other', 'x', '{0,1}')",
        )
        .unwrap();
    for search in &searches {
        let refused = refusal(&mut client, &format!("SELECT {search}"));
        assert_eq!(refused, ("21000".into(), "DUPLICATE_TURN".into()), "{search}");
    }
}
