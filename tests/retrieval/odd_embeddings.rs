//! Embeddings that are missing, cannot be compared or have other dimensions.

use crate::sample::{ANCHOR, database, has_pgvector, reason, refusal, search};

const SMALL: &str = "UPDATE memory_turns SET embedding = '{1,0}'";

#[test]
fn what_cannot_be_compared_counts_as_no_embedding() {
    let database = database("odd", "real[]");
    let mut client = database.connect();
    client.batch_execute(SMALL).unwrap();
    let query = format!("'{{1,1}}', '{ANCHOR}', limit_count => 169");
    assert_eq!(search(&mut client, &query).len(), 169);
    assert_eq!(reason(&mut client, &query), "ok!");
    for odd in [
        "NULL",
        "'{0,0}'",
        "'{1,NULL}'",
        "'{NaN,1}'",
        "'{Infinity,1}'",
        "'{{1,0}}'",
        "'{}'",
        "'{1}'",
        "'{1,2,3}'",
    ] {
        client
            .batch_execute(&format!(
                "{SMALL}; UPDATE memory_turns SET embedding = {odd} WHERE id = '{ANCHOR}'"
            ))
            .unwrap();
        assert_eq!(search(&mut client, &query).len(), 168, "{odd}");
        // It could have filled the limit.
        assert_eq!(reason(&mut client, &query), "shortfall", "{odd}");
        let smaller = format!("'{{1,1}}', '{ANCHOR}', limit_count => 168");
        assert_eq!(reason(&mut client, &smaller), "ok!", "{odd}");
        let salient = format!("'{{1,1}}', '{ANCHOR}', limit_count => 169, min_salience => 0.999");
        assert_eq!(search(&mut client, &salient).len(), 0);
    }
}

#[test]
fn other_dimensions_are_an_error_where_all_are_so() {
    let database = database("dimensions", "real[]");
    let mut client = database.connect();
    client.batch_execute("UPDATE memory_turns SET embedding = '{1,2,3}'").unwrap();
    let calls = [
        format!("SELECT graph_search_slice('{{1,1}}', '{ANCHOR}')"),
        "SELECT graph_search('{1,1}')".to_owned(),
        "SELECT graph_anchor(query_embedding => '{1,1}')".to_owned(),
        "SELECT graph_recall('{1,1}')".to_owned(),
    ];
    for call in &calls {
        assert_eq!(refusal(&mut client, call), ("22023".into(), "EMBEDDING_DIMENSIONS".into()));
    }
    // One of the query's is enough: who stores another keeps nobody from searching.
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET embedding = '{{1,0}}' WHERE id = '{ANCHOR}'"
        ))
        .unwrap();
    for call in &calls {
        assert!(!client.query(call, &[]).unwrap().is_empty(), "{call}");
    }
}

/// What words alone have found is compared by itself.
#[test]
fn a_hit_by_words_may_have_other_dimensions() {
    let database = database("hybrid_dimensions", "real[]");
    let mut client = database.connect();
    client
        .batch_execute(
            "UPDATE memory_turns SET embedding = '{1,0}';
             ALTER TABLE memory_turns ADD words tsvector GENERATED ALWAYS AS
                 (to_tsvector('pg_catalog.english'::regconfig, content_text)) STORED;
             INSERT INTO memory_turns (id, content_text, embedding) VALUES (gen_random_uuid(), 'kangaroo', '{1}')",
        )
        .unwrap();
    let found = client
        .query_one(
            "SELECT count(*) FILTER (WHERE content = 'kangaroo')
               FROM graph_search('{1,1}', 'kangaroo', 1000)",
            &[],
        )
        .unwrap();
    assert_eq!(found.get::<_, i64>(0), 1);
    assert!(
        !client.query("SELECT FROM graph_recall('{1,1}', 'kangaroo')", &[]).unwrap().is_empty()
    );
}

#[test]
fn bad_queries_are_refused() {
    let database = database("queries", "real[]");
    let mut client = database.connect();
    for bad in ["{}", "{1,NULL}", "{NaN}", "{1,-Infinity}", "{0,0}"] {
        for call in [
            format!("SELECT graph_search_slice('{bad}', '{ANCHOR}')"),
            format!("SELECT graph_search('{bad}')"),
            format!("SELECT graph_anchor(query_embedding => '{bad}')"),
        ] {
            assert_eq!(refusal(&mut client, &call), ("22023".into(), "INVALID_EMBEDDING".into()));
        }
    }
    let missing = "SELECT graph_search_slice('{1}', '00000000-0000-0000-0000-000000000000')";
    assert_eq!(refusal(&mut client, missing), ("02000".into(), "ANCHOR_NOT_FOUND".into()));
}

#[test]
fn pgvectors_own_odd_values() {
    if !has_pgvector("pgvectors_own_odd_values") {
        return;
    }
    let database = database("vectors", "vector");
    let mut client = database.connect();
    client.batch_execute("UPDATE memory_turns SET embedding = '[1,0]'").unwrap();
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET embedding = '[0,0]' WHERE id = '{ANCHOR}'"
        ))
        .unwrap();
    let query = format!("'{{1,1}}', '{ANCHOR}', limit_count => 1000");
    assert_eq!(search(&mut client, &query).len(), 168);
    let global =
        client.query("SELECT FROM graph_search('{1,1}', limit_count => 1000)", &[]).unwrap();
    assert_eq!(global.len(), 199);
    client
        .batch_execute(&format!("UPDATE memory_turns SET embedding = '[1]' WHERE id = '{ANCHOR}'"))
        .unwrap();
    assert_eq!(search(&mut client, &query).len(), 168);
    let global =
        client.query("SELECT FROM graph_search('{1,1}', limit_count => 1000)", &[]).unwrap();
    assert_eq!(global.len(), 199);
}
