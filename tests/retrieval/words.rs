//! Searching the whole graph by words: what is looked at for it, and over which tables. What is found: the regression
//! tests `search` and `words`.

use crate::sample::{database, has_pgvector, question, refusal, text};

const WORDS: &str = "ALTER TABLE memory_turns ADD words tsvector
    GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED;
    CREATE INDEX memory_turns_words_idx ON memory_turns USING gin (words);";

/// An index of pgvector finds 40 turns by its settings, and a filter takes some of them away.
#[test]
fn as_many_as_are_wanted_are_found_whatever_an_approximate_index_finds() {
    if !has_pgvector("as_many_as_are_wanted_are_found_whatever_an_approximate_index_finds") {
        return;
    }
    let database = database("search_as_many", "vector(384)");
    let mut client = database.connect();
    let question = question(&mut client);
    // Those of the one role are far from the question, behind all others.
    client
        .batch_execute(&format!(
            "DELETE FROM memory_turn_edges; DELETE FROM memory_turns;
             INSERT INTO memory_turns (id, role, embedding)
             SELECT gen_random_uuid(), CASE WHEN n % 50 = 0 THEN 'tool' ELSE 'user' END,
                    (array_fill((n % 50 = 0)::int * 2.0 + n / 1e6, '{{383}}') || 1.0::numeric)::real[]::vector
                    + {question}::real[]::vector
             FROM generate_series(1, 3000) AS n;
             CREATE INDEX ON memory_turns USING hnsw (embedding vector_cosine_ops);
             ANALYZE memory_turns"
        ))
        .unwrap();
    let found = |client: &mut postgres::Client, limit: u32, filter: &str| {
        let call = format!(
            "SELECT count(*)::text FROM graph_search({question}, limit_count => {limit}, filter => '{filter}')"
        );
        text(client, &call)
    };
    // A session of its own each: the first one has not loaded pgvector's library before the call.
    for settings in ["", "SET hnsw.ef_search = 10", "SET enable_seqscan = off"] {
        let mut client = database.connect();
        client.batch_execute(settings).unwrap();
        assert_eq!(found(&mut client, 500, "{}"), "500", "{settings}");
        assert_eq!(found(&mut client, 60, r#"{"roles": ["tool"]}"#), "60", "{settings}");
        assert_eq!(found(&mut client, 5, r#"{"roles": ["system"]}"#), "0", "{settings}");
    }
    let kept = "SET hnsw.ef_search = 10; SELECT graph_search({question}, limit_count => 200)";
    client.batch_execute(&kept.replace("{question}", &question)).unwrap();
    assert_eq!(text(&mut client, "SHOW hnsw.ef_search"), "10");
}

/// The operator of words is not leakproof. Under row security the rows of an owner are found by the owner's index, and
/// no row of another owner is looked at.
#[test]
fn under_row_security_the_owners_turns_alone_are_read() {
    for owners in [10, 1000] {
        let database = database(&format!("words_owners_{owners}"), "real[]");
        let mut client = database.connect();
        client
            .batch_execute(&format!(
                "{WORDS} CREATE INDEX ON memory_turns (owner);
                 INSERT INTO memory_turns (id, owner, content_text)
                 SELECT gen_random_uuid(), 'owner ' || n % {owners}, 'invoice ' || n FROM generate_series(1, 5000) AS n;
                 ANALYZE memory_turns;
                 DO $$ BEGIN CREATE ROLE retrieval_words;
                 EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
                 CREATE SEQUENCE looked;
                 CREATE FUNCTION looks(uuid) RETURNS boolean LANGUAGE plpgsql COST 1 AS
                     $$ BEGIN PERFORM pg_catalog.nextval('public.looked'); RETURN true; END $$;
                 CREATE POLICY counted ON memory_turns USING (looks(id));
                 ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
                 GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_words;
                 GRANT USAGE ON SEQUENCE looked TO retrieval_words; SET ROLE retrieval_words"
            ))
            .unwrap();
        let found = text(
            &mut client,
            "SELECT count(*)::text FROM graph_search(NULL, 'invoice', 10, '{\"owner\": \"owner 7\"}')",
        );
        assert_eq!(found, "10".to_owned().replace("10", &(5000 / owners).min(10).to_string()));
        client.batch_execute("RESET ROLE").unwrap();
        let looked: i64 = text(&mut client, "SELECT last_value::text FROM looked").parse().unwrap();
        // Once for the words, once for the contents and the rows of each turn found.
        let own = 5000 / i64::from(owners);
        assert!(looked <= own + 3 * own.min(10), "{owners} owners: {looked} rows were looked at");
    }
}

/// The same turns over a partitioned table and over a plain one score the same, by counts and by row security.
#[test]
fn partitions_change_no_score() {
    let database = database("words_partitions", "real[]");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "{WORDS} CREATE SCHEMA parts;
             CREATE TABLE parts.turns (LIKE memory_turns INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY HASH (id);
             CREATE TABLE parts.one PARTITION OF parts.turns FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE parts.two PARTITION OF parts.turns FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             ALTER TABLE parts.turns ADD PRIMARY KEY (id);
             CREATE INDEX ON parts.turns USING gin (words);
             INSERT INTO parts.turns (id, content_text) SELECT id, content_text FROM memory_turns;
             SELECT graph_kernel.bind_tables('parts.turns', 'memory_turn_edges', name => 'parts');
             CALL graph_kernel.refresh_words(); CALL graph_kernel.refresh_words('parts');
             DO $$ BEGIN CREATE ROLE retrieval_words;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT USAGE ON SCHEMA parts TO retrieval_words;
             GRANT SELECT ON memory_turns, memory_turn_edges, parts.turns TO retrieval_words"
        ))
        .unwrap();
    let scores = |client: &mut postgres::Client, graph: &str| {
        client.batch_execute(&format!("SET graph_kernel.graph = '{graph}'")).unwrap();
        text(
            client,
            "SELECT count(*) || string_agg(turn_id || ' ' || words, ',' ORDER BY rank)
             FROM graph_search(NULL, 'How are invoice numbers kept without gaps?', 50)",
        )
    };
    let plain = scores(&mut client, "default");
    assert_eq!(scores(&mut client, "parts"), plain);
    assert!(plain.starts_with("50"), "{plain}");
    client
        .batch_execute(
            "ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; ALTER TABLE parts.turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY half ON memory_turns USING (id < '80000000-0000-0000-0000-000000000000');
             CREATE POLICY half ON parts.turns USING (id < '80000000-0000-0000-0000-000000000000');
             SET ROLE retrieval_words",
        )
        .unwrap();
    let seen = scores(&mut client, "default");
    assert_eq!(scores(&mut client, "parts"), seen);
    assert_ne!(seen, plain);
}

#[test]
fn a_long_search_by_words_is_cancelled() {
    let database = database("words_cancel", "real[]");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "{WORDS} INSERT INTO memory_turns (id, content_text)
             SELECT gen_random_uuid(), 'invoice number ' || n FROM generate_series(1, 30000) AS n;
             DO $$ BEGIN CREATE ROLE retrieval_words;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_words;
             CREATE POLICY all_of_them ON memory_turns USING (true);
             SET statement_timeout = '5ms'"
        ))
        .unwrap();
    for call in [
        "SELECT graph_search(NULL, 'invoice number')",
        "SELECT graph_recall(NULL, 'invoice number')",
        "CALL graph_kernel.refresh_words()",
        "SET ROLE retrieval_words; SELECT graph_search(NULL, 'invoice number')",
    ] {
        if call.starts_with("SET ROLE") {
            client
                .batch_execute(
                    "SET statement_timeout = 0; ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
                     SET statement_timeout = '5ms'",
                )
                .unwrap();
        }
        assert_eq!(refusal(&mut client, call).0, "57014", "{call}");
    }
}

/// The counts belong to the table and its column, whatever both are called and bound as.
#[test]
fn counts_stay_with_the_column() {
    let database = database("words_counts", "real[]");
    let mut client = database.connect();
    client.batch_execute(&format!("{WORDS} CALL graph_kernel.refresh_words()")).unwrap();
    let call = "SELECT string_agg(turn_id || ' ' || words, ',' ORDER BY rank)
                FROM graph_search(NULL, 'gapless invoice numbers')";
    let before = text(&mut client, call);
    client
        .batch_execute(
            "ALTER TABLE memory_turns RENAME words TO lexemes; ALTER TABLE memory_turns RENAME TO renamed;
             SELECT graph_kernel.bind_tables('renamed', 'memory_turn_edges', '{\"turns\": {\"words\": \"lexemes\"}}')",
        )
        .unwrap();
    assert_eq!(text(&mut client, call), before);
    // Another column has counts of its own: none.
    client
        .batch_execute(
            "ALTER TABLE renamed ADD words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED;
             SELECT graph_kernel.bind_tables('renamed', 'memory_turn_edges')",
        )
        .unwrap();
    assert_ne!(text(&mut client, call), before);
    client.batch_execute("CALL graph_kernel.refresh_words()").unwrap();
    assert_eq!(text(&mut client, call), before);
    // What is counted of a table goes with it, at the next call.
    client
        .batch_execute(
            "CREATE SCHEMA other; SELECT graph_kernel.create_tables('other', '{\"words\": \"simple\"}');
             SELECT graph_kernel.bind_tables('other.memory_turns', 'other.memory_turn_edges', name => 'other');
             CALL graph_kernel.refresh_words('other')",
        )
        .unwrap();
    let tables = "SELECT count(*)::text FROM graph_kernel.word_totals";
    assert_eq!(text(&mut client, tables), "3");
    client
        .batch_execute("DROP TABLE renamed CASCADE; CALL graph_kernel.refresh_words('other')")
        .unwrap();
    assert_eq!(text(&mut client, tables), "1");
}
