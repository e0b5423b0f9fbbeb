//! A search within a slice finds exactly the slice's most similar turns, whatever an index does.

use uuid::Uuid;

use crate::sample::{ANCHOR, database, has_pgvector, search, text};

/// The similarities of every turn of the slice as pgvector's operator computes them.
fn by_operator(client: &mut postgres::Client, question: &str, policy: &str) -> Vec<(Uuid, f64)> {
    let query = format!(
        "SELECT t.id, 1 - (t.embedding <=> {question}::real[]::vector)
         FROM graph_slice_turns('{ANCHOR}', '{policy}') AS s
         JOIN memory_turns AS t ON t.id = s.turn_id
         ORDER BY 2 DESC, 1"
    );
    client.query(&query, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn the_ranking_is_that_of_the_operator() {
    if !has_pgvector("the_ranking_is_that_of_the_operator") {
        return;
    }
    let database = database("operator", "vector(384)");
    let mut client = database.connect();
    let questions: Vec<String> = client
        .query("SELECT quote_literal(embedding) FROM questions", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    for question in questions {
        for policy in ["default", "focused", r#"{"max_nodes": 7}"#] {
            let expected = by_operator(&mut client, &question, policy);
            let found = search(&mut client, &format!("{question}, '{ANCHOR}', '{policy}', 1000"));
            assert_eq!(found.len(), expected.len());
            for (ours, theirs) in found.iter().zip(&expected) {
                assert!((f64::from(ours.1) - theirs.1).abs() < 1e-5, "{ours:?} {theirs:?}");
            }
            let mut ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
            let mut expected: Vec<_> = expected.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids[0], expected[0]);
            ids.sort();
            expected.sort();
            assert_eq!(ids, expected);
        }
    }
}

#[test]
fn every_type_of_column_gives_the_same_ranking() {
    let name = "every_type_of_column_gives_the_same_ranking";
    let real = database("real", "real[]");
    let mut client = real.connect();
    let question = crate::sample::question(&mut client);
    let arguments = format!("{question}, '{ANCHOR}', 'default', 20");
    let expected = search(&mut client, &arguments);
    assert_eq!(expected.len(), 20);
    if !has_pgvector(name) {
        return;
    }
    let vector = database("vector", "vector");
    assert_eq!(search(&mut vector.connect(), &arguments), expected, "the same bits");
    let half = database("half", "halfvec(384)");
    let halves = search(&mut half.connect(), &arguments);
    assert_eq!(halves[0].0, expected[0].0);
    for ((_, half), (_, full)) in halves.iter().zip(&expected) {
        assert!((half - full).abs() < 1e-3, "{half} {full}");
    }
    // A question of numbers that the type has not is compared all the same, over the whole graph too.
    let mut client = half.connect();
    let nearest = |client: &mut postgres::Client, question: &str| -> Vec<String> {
        let query = format!("SELECT turn_id::text FROM graph_search({question}, NULL, 5)");
        client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let expected = nearest(&mut client, &question);
    for factor in ["1e6", "1e30"] {
        let longer =
            format!("(SELECT array_agg(x * {factor}::real) FROM unnest({question}::real[]) AS x)");
        assert_eq!(nearest(&mut client, &longer), expected, "{factor}");
    }
}

#[test]
fn ties_go_by_turn_id() {
    let database = database("ties", "real[]");
    let mut client = database.connect();
    client.batch_execute("UPDATE memory_turns SET embedding = '{1,2,3}'").unwrap();
    let found = search(&mut client, &format!("'{{3,2,1}}', '{ANCHOR}', 'default', 1000"));
    assert!(found.is_sorted_by_key(|(id, _)| *id));
    assert_eq!(found.len(), 169);
    let first = search(&mut client, &format!("'{{3,2,1}}', '{ANCHOR}', 'default', 3"));
    assert_eq!(first, found[..3]);
}

/// Turns outside the slice that are nearer than any inside: an index with a filter looks at them
/// alone.
#[test]
fn an_approximate_index_loses_turns_and_we_do_not() {
    if !has_pgvector("an_approximate_index_loses_turns_and_we_do_not") {
        return;
    }
    let database = database("crowd", "vector(384)");
    let mut client = database.connect();
    let question = crate::sample::question(&mut client);
    let arguments = format!("{question}, '{ANCHOR}', 'default', 10");
    let before = search(&mut client, &arguments);
    // An index over rows updated in place is not used while older transactions run, here of other tests.
    client.batch_execute("VACUUM FULL memory_turns").unwrap();
    client
        .batch_execute(&format!(
            "INSERT INTO memory_turns (id, embedding)
             SELECT gen_random_uuid(), {question}::real[]::vector FROM generate_series(1, 2000);
             CREATE INDEX ON memory_turns USING hnsw (embedding vector_cosine_ops);
             ANALYZE memory_turns"
        ))
        .unwrap();
    assert_eq!(search(&mut client, &arguments), before);

    let filtered = format!(
        "SELECT t.id FROM memory_turns AS t
         WHERE t.id = ANY (ARRAY(SELECT turn_id FROM graph_slice_turns('{ANCHOR}')))
         ORDER BY t.embedding <=> {question}::real[]::vector LIMIT 10"
    );
    client
        .batch_execute(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off",
        )
        .unwrap();
    let plan: Vec<String> = client
        .query(&format!("EXPLAIN {filtered}"), &[])
        .unwrap()
        .iter()
        .map(|r| r.get(0))
        .collect();
    assert!(
        plan.iter().any(|line| line.contains("hnsw") || line.contains("embedding_idx")),
        "{plan:?}"
    );
    let lost = client.query(&filtered, &[]).unwrap().len();
    assert!(lost < 10, "the index found {lost} turns");
    assert_eq!(search(&mut client, &arguments), before);
}

#[test]
fn filters_and_limits() {
    let database = database("filters", "real[]");
    let mut client = database.connect();
    let question = crate::sample::question(&mut client);
    let all = search(&mut client, &format!("{question}, '{ANCHOR}', limit_count => 1000"));
    assert_eq!(all.len(), 169);
    let least = all[4].1;
    let similar = search(
        &mut client,
        &format!("{question}, '{ANCHOR}', limit_count => 1000, min_similarity => {least}"),
    );
    assert_eq!(similar, all[..5]);
    let salient = search(
        &mut client,
        &format!("{question}, '{ANCHOR}', limit_count => 1000, min_salience => 0.6"),
    );
    let expected: i64 = client
        .query_one(
            &format!(
                "SELECT count(*) FROM graph_slice_turns('{ANCHOR}') WHERE salience >= 0.6::real"
            ),
            &[],
        )
        .unwrap()
        .get(0);
    assert_eq!(salient.len() as i64, expected);
    assert!(
        search(&mut client, &format!("{question}, '{ANCHOR}', min_similarity => 2")).is_empty()
    );
    for (limit, code) in [("0", "22023"), ("-1", "22023"), ("1001", "22023")] {
        let call =
            format!("SELECT graph_search_slice({question}, '{ANCHOR}', limit_count => {limit})");
        assert_eq!(
            crate::sample::refusal(&mut client, &call),
            (code.into(), "INVALID_LIMIT".into())
        );
    }
    for filter in ["min_similarity => 'NaN'", "min_salience => 'Infinity'"] {
        let call = format!("SELECT graph_search_slice({question}, '{ANCHOR}', {filter})");
        assert_eq!(
            crate::sample::refusal(&mut client, &call),
            ("22023".into(), "INVALID_QUERY".into())
        );
    }
}

#[test]
fn rows_carry_the_turns() {
    let database = database("rows", "real[]");
    let mut client = database.connect();
    let question = crate::sample::question(&mut client);
    let odd = text(
        &mut client,
        &format!(
            "SELECT count(*)::text
             FROM graph_search_slice({question}, '{ANCHOR}', limit_count => 1000) AS f
             JOIN graph_slice_turns('{ANCHOR}') AS s USING (turn_id)
             JOIN memory_turns AS t ON t.id = f.turn_id
             WHERE f.content IS DISTINCT FROM t.content_text
                OR (f.session_id, f.role, f.phase, f.salience, f.trajectory_depth,
                    f.trajectory_sibling_order, f.trajectory_homogeneity, f.trajectory_temporal,
                    f.trajectory_complexity, f.created_at)
                IS DISTINCT FROM
                   (s.session_id, s.role, s.phase, s.salience, s.trajectory_depth,
                    s.trajectory_sibling_order, s.trajectory_homogeneity, s.trajectory_temporal,
                    s.trajectory_complexity, s.created_at)"
        ),
    );
    assert_eq!(odd, "0");
}

#[test]
fn a_replay_matches_until_something_changes() {
    let database = database("replay", "real[]");
    let mut client = database.connect();
    let question = crate::sample::question(&mut client);
    client
        .batch_execute(&format!(
            "CREATE TABLE kept AS SELECT provenance FROM graph_search_slice({question}, '{ANCHOR}', 'focused', 5) \
            WHERE rank = 1
             UNION ALL SELECT provenance FROM graph_search({question}, limit_count => 5) WHERE rank = 1"
        ))
        .unwrap();
    let mut differing = |question: &str| {
        text(
            &mut client,
            &format!(
                "SELECT coalesce(string_agg(DISTINCT r.field, ' ' ORDER BY r.field), 'none')
                 FROM kept, graph_replay_retrieval(kept.provenance, {question}) AS r WHERE NOT r.matches"
            ),
        )
    };
    assert_eq!(differing(&question), "none");
    let other = question.replacen("{", "{0.5,", 1);
    let other = format!("{}}}'", &other[..other.rfind(',').unwrap()]);
    assert!(differing(&other).contains("query_embedding_hash"));
    assert_eq!(differing("'{1,2}'"), "search", "a search that cannot be made again");
    let mut second = database.connect();
    second
        .batch_execute(&format!(
            "UPDATE memory_turns SET embedding = embedding[2:] || embedding[1]
             WHERE id = (SELECT turn_id FROM graph_search({question}, limit_count => 1))"
        ))
        .unwrap();
    assert_eq!(differing(&question), "result_hash retrieved_turn_ids");
}

#[test]
fn sizes_a_caller_chooses_are_bounded() {
    let database = database("sizes", "real[]");
    let mut client = database.connect();
    let question = crate::sample::question(&mut client);
    let long = "array_fill(1::real, '{16001}')";
    for call in [
        format!("SELECT graph_search_slice({long}, '{ANCHOR}')"),
        format!("SELECT graph_search({long})"),
        format!("SELECT graph_anchor(query_embedding => {long})"),
    ] {
        let refused = crate::sample::refusal(&mut client, &call);
        assert_eq!(refused, ("22023".into(), "INVALID_EMBEDDING".into()), "{call}");
    }
    let wordy = format!("SELECT graph_search({question}, query_text => repeat('x', 65537))");
    let refused = crate::sample::refusal(&mut client, &wordy);
    assert_eq!(refused, ("54000".into(), "INVALID_QUERY".into()));
    let reason = "SELECT graph_kernel.provenance_reason(to_jsonb(repeat('x', 2000000)))";
    assert_eq!(text(&mut client, reason), "malformed");

    client
        .batch_execute("UPDATE memory_turns SET content_text = repeat('x', 8 * 1024 * 1024)")
        .unwrap();
    let few = format!("SELECT graph_search_slice({question}, '{ANCHOR}', limit_count => 7)");
    client.batch_execute(&few).unwrap();
    let many = format!("SELECT graph_search_slice({question}, '{ANCHOR}', limit_count => 9)");
    let shown = many.replacen("SELECT ", "SELECT count(*)::text FROM ", 1);
    assert_eq!(text(&mut client, &shown), "8", "as many as fit");
    let short =
        many.replacen("SELECT ", "SELECT provenance ->> 'admissibility_shortfall' FROM ", 1);
    assert_eq!(text(&mut client, &format!("{short} LIMIT 1")), "true");
}
