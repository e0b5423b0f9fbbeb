//! A search that is narrowed by the owner of turns: what is looked at for it, and what it does not do.

use postgres::Client;

use crate::sample::{ANCHOR, database, has_pgvector, question, refusal, search, text};

/// A reader under a policy that notes each row it looks at, of many turns of others and a few of alice's.
fn crowd(client: &mut Client, role: &str, owner_type: &str, alice: &str, column_type: &str) {
    client
        .batch_execute(&format!(
            "DO $$ BEGIN CREATE ROLE {role};
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             ALTER TABLE memory_turns ALTER owner TYPE {owner_type} USING NULL;
             -- Before rows are updated in place: it is used while older transactions run, here of other tests.
             CREATE INDEX ON memory_turns (owner);
             UPDATE memory_turns SET owner = '{alice}' WHERE trajectory_depth < 2;
             INSERT INTO memory_turns (id, owner, embedding)
             SELECT gen_random_uuid(), md5(n::text)::uuid::text::{owner_type},
                    array_fill(n % 7, '{{384}}')::real[]::{column_type}
             FROM generate_series(1, 5000) AS n;
             ANALYZE memory_turns;
             CREATE SEQUENCE looked;
             CREATE FUNCTION looks(uuid) RETURNS boolean LANGUAGE plpgsql COST 1 AS
                 $$ BEGIN PERFORM pg_catalog.nextval('public.looked'); RETURN true; END $$;
             CREATE POLICY counted ON memory_turns USING (looks(id));
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             GRANT SELECT ON memory_turns, memory_turn_edges TO {role};
             GRANT USAGE ON SEQUENCE looked TO {role};
             SET ROLE {role}"
        ))
        .unwrap();
}

/// How many turns a search over the whole graph finds, and how many rows the policy looks at for them.
fn found_and_looked(client: &mut Client, role: &str, call: &str) -> (i64, i64) {
    client.batch_execute("RESET ROLE; ALTER SEQUENCE looked RESTART").unwrap();
    client.batch_execute(&format!("SET ROLE {role}")).unwrap();
    let found = client.query_one(&format!("SELECT count(*) FROM {call}"), &[]).unwrap().get(0);
    client.batch_execute("RESET ROLE").unwrap();
    let looked = client.query_one("SELECT last_value FROM looked", &[]).unwrap().get(0);
    (found, looked)
}

/// An operator that is not leakproof would be asked after the policy, so of every row.
#[test]
fn an_index_on_the_owner_is_used_also_under_row_security() {
    const ALICE: &str = "a11ce000-0000-4000-8000-000000000000";
    let mut cases = vec![
        ("text", "text", "real[]"),
        ("varchar", "varchar(40)", "real[]"),
        ("domain", "address", "real[]"),
        ("uuid", "uuid", "real[]"),
    ];
    if has_pgvector("an_index_on_the_owner_is_used_also_under_row_security") {
        cases.push(("vector", "text", "vector(384)"));
    }
    for (name, owner_type, column_type) in cases {
        let database = database(&format!("owner_{name}"), column_type);
        let mut client = database.connect();
        client.batch_execute("CREATE DOMAIN address AS text CHECK (value LIKE '%-%')").unwrap();
        let question = question(&mut client);
        let role = "retrieval_owners";
        crowd(&mut client, role, owner_type, ALICE, column_type);
        let call = format!(
            "graph_search({question}, limit_count => 1000, filter => '{{\"owner\": \"{ALICE}\"}}')"
        );
        let (found, looked) = found_and_looked(&mut client, role, &call);
        assert!((1..100).contains(&found), "{name}: {found}");
        assert!(looked < 1000, "{name}: the policy looked at {looked} rows");
        // Each turn of the slice is looked up by its id.
        let slice = format!(
            "graph_search_slice({question}, '{ANCHOR}', options => '{{\"owner\": \"{ALICE}\"}}')"
        );
        assert!(found_and_looked(&mut client, role, &slice).1 < 3000, "{name}");
        client.batch_execute("DROP INDEX memory_turns_owner_idx").unwrap();
        let (without, looked) = found_and_looked(&mut client, role, &call);
        assert_eq!(without, found, "{name}");
        assert!(looked > 5000, "{name}: without the index every row is looked at, not {looked}");
    }
}

/// An approximate index looks at the nearest turns of all, and loses those of an owner who has few.
#[test]
fn every_turn_of_an_owner_is_compared_whatever_an_index_does() {
    if !has_pgvector("every_turn_of_an_owner_is_compared_whatever_an_index_does") {
        return;
    }
    let database = database("owner_exact", "vector(384)");
    let mut client = database.connect();
    let question = question(&mut client);
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET owner = 'alice' WHERE trajectory_depth IN (3, 4);
             INSERT INTO memory_turns (id, embedding, owner)
             SELECT gen_random_uuid(), {question}::real[]::vector, 'bob' FROM generate_series(1, 3000);
             CREATE INDEX ON memory_turns USING hnsw (embedding vector_cosine_ops);
             ANALYZE memory_turns"
        ))
        .unwrap();
    let count = |client: &mut Client, call: &str| {
        text(client, &format!("SELECT count(*)::text FROM {call}"))
    };
    let alices = count(&mut client, "memory_turns WHERE owner = 'alice'");
    let narrowed = format!(
        "graph_search({question}, limit_count => 1000, filter => '{{\"owner\": \"alice\"}}')"
    );
    for settings in ["SELECT 1", "SET enable_seqscan = off; SET enable_bitmapscan = off"] {
        client.batch_execute(settings).unwrap();
        assert_eq!(count(&mut client, &narrowed), alices, "{settings}");
        let first = narrowed.replace("1000", "3");
        assert_eq!(count(&mut client, &first), "3", "{settings}");
    }
}

/// It chooses among what the caller may see.
#[test]
fn naming_another_owner_shows_nothing_that_is_hidden() {
    let database = database("owner_hidden", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    client
        .batch_execute(&format!(
            "DO $$ BEGIN CREATE ROLE retrieval_alice;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             UPDATE memory_turns SET owner = 'retrieval_' || CASE role WHEN 'user' THEN 'alice' ELSE 'bob' END;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON memory_turns USING (owner = current_user OR trajectory_depth < 8 OR id = '{ANCHOR}');
             GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_alice;
             -- By distance every turn has some similarity, and is found.
             SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                 '{{\"turns\": {{\"embedding\": {{\"column\": \"embedding\", \"operator\": \"<->\"}}}}}}')"
        ))
        .unwrap();
    let count = |client: &mut Client, owner: &str| {
        let call = format!(
            "SELECT count(*)::text FROM graph_search({question}, limit_count => 1000,
                 filter => '{{\"owner\": \"retrieval_{owner}\"}}')"
        );
        text(client, &call)
    };
    let all = count(&mut client, "bob");
    client.batch_execute("SET ROLE retrieval_alice").unwrap();
    let visible = "SELECT count(*)::text FROM memory_turns WHERE embedding IS NOT NULL AND owner = 'retrieval_";
    let bobs = text(&mut client, &format!("{visible}bob'"));
    assert_eq!(count(&mut client, "bob"), bobs);
    assert_ne!(all, bobs);
    assert_eq!(count(&mut client, "alice"), text(&mut client, &format!("{visible}alice'")));
    // The slice is what it is without an owner: all that she may see of it.
    let turns = format!("SELECT count(*)::text FROM graph_slice_turns('{ANCHOR}')");
    let signed = format!(
        "SELECT provenance ->> 'turn_count' FROM graph_search_slice({question}, '{ANCHOR}',
             options => '{{\"owner\": \"retrieval_alice\"}}') LIMIT 1"
    );
    assert_eq!(text(&mut client, &signed), text(&mut client, &turns));
    let found = search(
        &mut client,
        &format!(
            "{question}, '{ANCHOR}', 'default', 1000, options => '{{\"owner\": \"retrieval_alice\"}}'"
        ),
    );
    assert!(!found.is_empty());
    let ids: Vec<String> = found.iter().map(|(id, _)| format!("'{id}'")).collect();
    let others = format!(
        "SELECT count(*)::text FROM memory_turns WHERE id IN ({}) AND owner <> 'retrieval_alice'",
        ids.join(", ")
    );
    assert_eq!(text(&mut client, &others), "0");
}

/// A turn that is valid no more is found by no search, and is where it was in every slice.
#[test]
fn valid_until_takes_a_turn_out_of_searches_alone() {
    let mut types = vec!["real[]"];
    if has_pgvector("valid_until_takes_a_turn_out_of_searches_alone") {
        types.push("vector(384)");
    }
    for column_type in types {
        let database = database(&format!("valid_{}", &column_type[..4]), column_type);
        let mut client = database.connect();
        let question = question(&mut client);
        let slice = format!("SELECT graph_slice('{ANCHOR}')::text");
        let before = text(&mut client, &slice);
        let all = search(&mut client, &format!("{question}, '{ANCHOR}', 'default', 1000"));
        let best = all[0].0;
        let first = |client: &mut Client| -> Vec<String> {
            let call = format!(
                "SELECT (SELECT turn_id::text FROM graph_search_slice({question}, '{ANCHOR}', limit_count => 1)),
                        (SELECT turn_id::text FROM graph_search({question}, limit_count => 1)),
                        (SELECT anchor_turn_id::text FROM graph_anchor(query_embedding => {question}))"
            );
            let row = client.query_one(&call, &[]).unwrap();
            (0..3).map(|column| row.get(column)).collect()
        };
        assert_eq!(first(&mut client), vec![best.to_string(); 3]);
        client
            .batch_execute(&format!(
                "UPDATE memory_turns SET valid_until = now() - interval '1 second' WHERE id = '{best}'"
            ))
            .unwrap();
        assert!(first(&mut client).iter().all(|id| *id != best.to_string()));
        let left = search(&mut client, &format!("{question}, '{ANCHOR}', 'default', 1000"));
        assert_eq!(left, all[1..]);
        assert_eq!(text(&mut client, &slice), before);
        client.batch_execute("UPDATE memory_turns SET valid_until = 'infinity'").unwrap();
        assert_eq!(first(&mut client), vec![best.to_string(); 3]);
        let bad = format!(
            "SELECT graph_search_slice({question}, '{ANCHOR}', options => '{{\"at\": 1}}')"
        );
        assert_eq!(refusal(&mut client, &bad), ("22023".into(), "INVALID_OPTIONS".into()));
    }
}

/// Row security narrows behind an approximate index as a filter does.
#[test]
fn row_security_behind_an_index_hides_no_turn_of_ones_own() {
    if !has_pgvector("row_security_behind_an_index_hides_no_turn_of_ones_own") {
        return;
    }
    let database = database("rls_index", "vector(384)");
    let mut client = database.connect();
    let question = question(&mut client);
    client
        .batch_execute(&format!(
            "INSERT INTO memory_turns (id, session_id, role, content_text, embedding, owner)
             SELECT md5(n::text)::uuid, 'near', 'user', 'near', {question}::real[]::vector, 'near'
               FROM generate_series(1, 2000) AS n;
             CREATE INDEX ON memory_turns USING hnsw (embedding vector_cosine_ops);
             ANALYZE memory_turns;
             DO $$ BEGIN CREATE ROLE retrieval_owner LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_owner;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON memory_turns USING (owner IS DISTINCT FROM 'near');
             SET ROLE retrieval_owner; SET enable_seqscan = off"
        ))
        .unwrap();
    let found: i64 = client
        .query_one(
            &format!("SELECT count(*) FROM graph_search({question}, limit_count => 10)"),
            &[],
        )
        .unwrap()
        .get(0);
    assert_eq!(found, 10);
}
