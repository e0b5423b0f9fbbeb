//! Who searches, and when: row security, own changes, read-only transactions, cancel.

use crate::sample::{ANCHOR, database, question, reason, refusal, search, text};

#[test]
fn row_security_bounds_the_search() {
    let database = database("rls", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    let arguments = format!("{question}, '{ANCHOR}', 'default', 1000");
    let nearest = search(&mut client, &arguments)[0].0;
    client
        .batch_execute(&format!(
            "DO $$ BEGIN CREATE ROLE retrieval_reader LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO retrieval_reader;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY most ON memory_turns USING (id <> '{nearest}');
             SET ROLE retrieval_reader"
        ))
        .unwrap();
    let found = search(&mut client, &arguments);
    assert!(found.iter().all(|(id, _)| *id != nearest));
    assert_eq!(reason(&mut client, &arguments), "ok!");
    let signed = text(
        &mut client,
        &format!(
            "SELECT concat(provenance #>> '{{attestation,role}}', ' ', provenance #>> '{{attestation,rls}}')
             FROM graph_search_slice({arguments}) LIMIT 1"
        ),
    );
    assert_eq!(signed, "retrieval_reader true");
    let global: Vec<uuid::Uuid> = client
        .query(&format!("SELECT turn_id FROM graph_search({question}, limit_count => 1000)"), &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(global.len() > 100 && !global.contains(&nearest));
}

#[test]
fn a_column_right_is_enough_and_needed() {
    let database = database("columns", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE retrieval_columns LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT (id, session_id, role, trajectory_phase, salience_score, trajectory_depth,
                 trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal,
                 trajectory_complexity, created_at, content_hash) ON memory_turns TO retrieval_columns;
             GRANT SELECT ON memory_turn_edges TO retrieval_columns;
             SET ROLE retrieval_columns",
        )
        .unwrap();
    client.batch_execute(&format!("SELECT graph_slice('{ANCHOR}')")).unwrap();
    let call = format!("SELECT graph_search_slice({question}, '{ANCHOR}')");
    assert_eq!(refusal(&mut client, &call).0, "42501");
    client
        .batch_execute(
            "RESET ROLE;
             GRANT SELECT (embedding, content_text, valid_until) ON memory_turns TO retrieval_columns;
             SET ROLE retrieval_columns",
        )
        .unwrap();
    client.batch_execute(&call).unwrap();
    let narrowed = call.replace(')', ", options => '{\"owner\": \"alice\"}')");
    assert_eq!(refusal(&mut client, &narrowed).0, "42501");
    client
        .batch_execute(
            "RESET ROLE; GRANT SELECT (owner) ON memory_turns TO retrieval_columns;
             SET ROLE retrieval_columns",
        )
        .unwrap();
    client.batch_execute(&narrowed).unwrap();
}

#[test]
fn own_changes_are_not_signed() {
    let database = database("uncommitted", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    let arguments = format!("{question}, '{ANCHOR}', 'focused', 5");
    client.batch_execute("SELECT graph_kernel.create_trace_table()").unwrap();
    let mut transaction = client.transaction().unwrap();
    transaction
        .batch_execute(&format!(
            "UPDATE memory_turns SET embedding = embedding WHERE id = '{ANCHOR}'"
        ))
        .unwrap();
    assert_eq!(reason(&mut transaction, &arguments), "unsigned");
    for search in [format!("graph_search_slice({arguments})"), format!("graph_search({question})")]
    {
        let kept = text(
            &mut transaction,
            &format!(
                "SELECT concat(provenance ? 'mac', ' ', provenance ->> 'mac', provenance ->> 'is_admissible')
                 FROM {search} LIMIT 1"
            ),
        );
        assert_eq!(kept, "t false");
    }
    transaction
        .batch_execute(&format!(
            "SELECT graph_trace(provenance) FROM graph_search_slice({arguments}) LIMIT 1"
        ))
        .unwrap();
    assert_eq!(text(&mut transaction, "SELECT is_admissible::text FROM retrieval_traces"), "false");
    transaction.rollback().unwrap();
    assert_eq!(reason(&mut client, &arguments), "ok!");
}

#[test]
fn searching_writes_nothing() {
    let database = database("read_only", "real[]");
    let mut client = database.connect();
    let question = question(&mut client);
    let arguments = format!("{question}, '{ANCHOR}', 'focused', 5");
    client.batch_execute("SELECT graph_kernel.create_trace_table()").unwrap();
    let mut transaction = client.build_transaction().read_only(true).start().unwrap();
    assert_eq!(reason(&mut transaction, &arguments), "ok!");
    let call = format!(
        "SELECT * FROM graph_search({question}), graph_anchor(query_embedding => {question}),
                       graph_anchors_recent()"
    );
    transaction.batch_execute(&call).unwrap();
    let xid = "SELECT coalesce(pg_current_xact_id_if_assigned()::text, 'none')";
    assert_eq!(text(&mut transaction, xid), "none");
    let trace =
        format!("SELECT graph_trace(provenance) FROM graph_search_slice({arguments}) LIMIT 1");
    assert_eq!(refusal(&mut transaction, &trace).0, "25006");
}

#[test]
fn a_long_search_is_cancelled() {
    let database = database("cancel", "real[]");
    let mut client = database.connect();
    client
        .batch_execute(
            "INSERT INTO memory_turns (id, embedding)
             SELECT gen_random_uuid(), array_fill(1::real, '{384}') FROM generate_series(1, 20000);
             SET statement_timeout = '20ms'",
        )
        .unwrap();
    let call = "SELECT graph_search(array_fill(1::real, '{384}'))";
    assert_eq!(refusal(&mut client, call).0, "57014");
}
