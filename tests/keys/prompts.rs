//! Records of prompts over the life of their keys, and of their graph.

use postgres::Client;

use crate::cluster::Cluster;
use crate::dump::{dump, restore};
use crate::graph::{active_key, install, kid, reason, rotate, text};
use crate::secret_file::{self, random};

/// The records of the prompts at each of the six turns.
fn records(client: &mut Client) -> Vec<String> {
    let record =
        |n| format!("SELECT graph_messages_record('00000000-0000-4000-8000-00000000000{n}')::text");
    (1..=6).map(|n| text(client, &record(n))).collect()
}

/// The id of the key that signed the slice of a record.
fn kid_of(record: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(record).unwrap();
    let kid = kid(&value["slice"].to_string());
    assert!(value["token"].as_str().unwrap().starts_with(&format!("gkp1.{kid}.")));
    kid
}

/// What became of each message: the first letters of the states, such as `ucg`.
fn states(client: &mut Client, record: &str) -> String {
    let statement =
        "SELECT string_agg(left(state, 1), '' ORDER BY n) FROM graph_messages_show($1::text::json)";
    client.query_one(statement, &[&record]).unwrap_or_else(|error| panic!("{error:?}")).get(0)
}

/// Why a record is neither shown nor proven.
fn refusal(client: &mut Client, record: &str) -> String {
    let refused = ["graph_messages_show", "graph_proof"].map(|function| {
        let error =
            client.query(&format!("SELECT {function}($1::text::json)"), &[&record]).unwrap_err();
        error.as_db_error().unwrap().detail().unwrap().to_owned()
    });
    assert_eq!(refused[0], refused[1]);
    refused[0].clone()
}

/// The proof of a record, and its public key.
fn proof(client: &mut Client, record: &str) -> [String; 2] {
    let statement = "SELECT graph_proof($1::text::json)::text, public_key FROM graph_kernel.proof_keys WHERE kid = $2";
    let row = client.query_one(statement, &[&record, &kid_of(record)]).unwrap();
    [row.get(0), row.get(1)]
}

fn check(client: &mut Client, record: &str, [proof, key]: &[String; 2]) -> String {
    let check = "SELECT reason FROM graph_verify_proof($1::text::json, $2::text::json, $3)";
    client.query_one(check, &[&record, proof, key]).unwrap().get(0)
}

/// A cluster whose keys derive from a file, with the graph bound.
fn with_key_file(root: &[u8]) -> Cluster {
    let cluster = Cluster::start("");
    secret_file::use_root(&cluster, root);
    let mut client = cluster.client();
    install(&mut client);
    text(
        &mut client,
        "SELECT graph_kernel.bind_tables('public.memory_turns', 'public.memory_turn_edges')::text",
    );
    cluster
}

#[test]
fn each_step_is_shown_and_proven_after_edits_a_rotation_and_a_restore() {
    let root = random(32);
    let origin = with_key_file(&root);
    let mut client = origin.client();
    let mut taken = records(&mut client);
    let old = kid_of(&taken[0]);
    let proofs: Vec<_> = taken.iter().map(|record| proof(&mut client, record)).collect();
    rotate(&mut client);
    let later = records(&mut client);
    assert_ne!(kid_of(&later[0]), old);
    let id = |n| format!("'00000000-0000-4000-8000-00000000000{n}'");
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET content_text = 'edited' WHERE id = {};
             DELETE FROM memory_turn_edges WHERE parent_turn_id = {} OR child_turn_id = {};
             DELETE FROM memory_turns WHERE id = {}",
            id(2),
            id(4),
            id(4),
            id(4)
        ))
        .unwrap();

    let other = Cluster::start("");
    secret_file::use_root(&other, &root);
    restore(&other, "postgres", "postgres", &dump(&origin, "postgres", "postgres", &[]));
    for cluster in [&origin, &other] {
        let mut client = cluster.client();
        let expected = ["u", "uc", "ucu", "ucug", "ucugu", "ucuguu"];
        for (step, record) in taken.iter().enumerate() {
            assert_eq!(reason(&mut client, record), "ok");
            assert_eq!(states(&mut client, record), expected[step], "step {}", step + 1);
            // Ed25519 is deterministic, and the key of the record's epoch is the same.
            assert_eq!(proof(&mut client, record), proofs[step]);
            assert_eq!(check(&mut client, record, &proofs[step]), "ok");
            assert_eq!(states(&mut client, &later[step]), expected[step]);
        }
    }
    // A key that was revoked shows and proves nothing more, and leaves the proofs that were made.
    let mut client = other.client();
    // No dump has the epochs: the first one signs there until it is ended.
    assert_eq!(active_key(&mut client), old);
    client.batch_execute("SELECT graph_kernel.rotate_key(revoke_old => true)").unwrap();
    for (record, proof) in taken.drain(..).zip(&proofs) {
        assert_eq!(reason(&mut client, &record), "revoked_key");
        assert_eq!(refusal(&mut client, &record), "NOT_ADMISSIBLE: revoked_key");
        assert_eq!(check(&mut client, &record, proof), "ok");
    }
    assert_eq!(states(&mut client, &later[0]), "u");
}

/// A run of an agent: a record at each step, shown and proven step by step when all is over.
#[test]
fn a_run_of_500_steps_is_shown_and_proven() {
    const STEPS: usize = 500;
    const EDITED: usize = 41;
    const DELETED: usize = 67;
    let root = random(32);
    let origin = with_key_file(&root);
    let mut client = origin.client();
    client
        .batch_execute(
            "CREATE TABLE run (step int PRIMARY KEY, record json, proof json, public_key text)",
        )
        .unwrap();
    for step in 1..=STEPS {
        // The turn is committed, then what the model is shown of it is recorded.
        client
            .batch_execute(&format!(
                "INSERT INTO memory_turns (id, session_id, role, content_text, created_at)
                 VALUES (graph_turn_id('run', '{step}'), 'run',
                         CASE {step} % 3 WHEN 1 THEN 'user' WHEN 2 THEN 'assistant' ELSE 'tool' END,
                         'step {step}: ' || repeat('word ', {step} % 40), to_timestamp(1700000000 + {step}));
                 INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
                 SELECT graph_turn_id('run', ({step} - 1)::text), graph_turn_id('run', '{step}'), 'reply'
                  WHERE {step} > 1"
            ))
            .unwrap();
        client
            .batch_execute(&format!(
                "INSERT INTO run SELECT {step}, graph_messages_record(graph_turn_id('run', '{step}'),
                     format('{{\"preset\": \"chat\", \"max_tokens\": 300, \"pins\": [\"%s\"]}}',
                            graph_turn_id('run', '1'))::slice_policy)"
            ))
            .unwrap();
        if step == STEPS / 2 {
            rotate(&mut client);
        }
    }
    client
        .batch_execute(&format!(
            "UPDATE run SET proof = graph_proof(record), public_key = (SELECT k.public_key
                 FROM graph_kernel.proof_keys AS k WHERE k.kid = record #>> '{{slice,attestation,kid}}');
             UPDATE memory_turns SET content_text = 'edited'
              WHERE id IN (SELECT graph_turn_id('run', n::text) FROM generate_series({EDITED}, {STEPS}, {EDITED}) AS n);
             CREATE TABLE gone AS SELECT graph_turn_id('run', n::text) AS id
               FROM generate_series({DELETED}, {STEPS}, {DELETED}) AS n;
             DELETE FROM memory_turn_edges WHERE parent_turn_id IN (TABLE gone) OR child_turn_id IN (TABLE gone);
             DELETE FROM memory_turns WHERE id IN (TABLE gone)"
        ))
        .unwrap();
    let other = Cluster::start("");
    secret_file::use_root(&other, &root);
    restore(&other, "postgres", "postgres", &dump(&origin, "postgres", "postgres", &[]));
    for cluster in [&origin, &other] {
        let row = cluster
            .client()
            .query_one(
                "SELECT count(*) FILTER (WHERE v.reason = 'ok' AND p.reason = 'ok'), count(DISTINCT v.kid)
                   FROM run AS r, graph_verify(r.record) AS v,
                        graph_verify_proof(r.record, r.proof, r.public_key) AS p",
                &[],
            )
            .unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (STEPS as i64, 2));
        let rows = cluster
            .client()
            .query(
                "SELECT t.n, m.state, count(*) FROM run AS r, graph_messages_show(r.record) AS m,
                        (SELECT n, graph_turn_id('run', n::text) AS id FROM generate_series(1, 500) AS n) AS t
                  WHERE t.id = m.turn_id GROUP BY 1, 2",
                &[],
            )
            .unwrap();
        let mut shown = 0;
        for row in rows {
            let (n, state): (i32, &str) = (row.get(0), row.get(1));
            let expected = match n as usize {
                n if n.is_multiple_of(DELETED) => "gone",
                n if n.is_multiple_of(EDITED) => "changed",
                _ => "unchanged",
            };
            assert_eq!(state, expected, "turn {n}");
            shown += row.get::<_, i64>(2);
        }
        assert!(shown > 5 * STEPS as i64, "{shown}");
    }
}

#[test]
fn without_its_root_a_record_is_known_nowhere_and_its_proof_everywhere() {
    let origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    let taken = records(&mut client);
    let proven = proof(&mut client, &taken[5]);

    // Restored without the key, which no dump has.
    let other = Cluster::start("");
    restore(&other, "postgres", "postgres", &dump(&origin, "postgres", "postgres", &[]));
    let mut client = other.client();
    assert_eq!(reason(&mut client, &taken[5]), "unknown_key");
    assert_eq!(refusal(&mut client, &taken[5]), "NOT_ADMISSIBLE: unknown_key");
    assert_eq!(check(&mut client, &taken[5], &proven), "ok");
    assert_eq!(check(&mut client, &taken[4], &proven), "other_export");
    // Of the same messages, under a key of its own.
    let new = records(&mut client);
    let digest =
        |record: &str| serde_json::from_str::<serde_json::Value>(record).unwrap()["digest"].clone();
    assert_eq!(digest(&new[5]), digest(&taken[5]));
    assert_eq!(states(&mut client, &new[5]), "uuuuuu");
    assert_eq!(reason(&mut origin.client(), &new[5]), "unknown_key");

    // A key file takes the place of the table's root.
    secret_file::use_root(&origin, &random(32));
    let mut client = origin.client();
    assert_eq!(reason(&mut client, &taken[5]), "unknown_key");
    let of_file = records(&mut client);
    assert_eq!(states(&mut client, &of_file[5]), "uuuuuu");
    assert_ne!(proof(&mut client, &of_file[5]), proven);
}
