//! The REST bodies of searches, called as PostgREST calls them: one json argument, a read-only
//! transaction, a role of the request's.

use postgres::Client;
use serde_json::{Value, json};

use crate::sample::{ANCHOR, database, refusal, text};

/// The answer to a request in a transaction as PostgREST makes one for a STABLE function.
fn call(client: &mut Client, function: &str, request: &Value) -> Result<Value, (String, String)> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL ROLE api_caller")
        .unwrap();
    let literal = request.to_string().replace('\'', "''");
    let query = format!("SELECT {function}('{literal}'::json)");
    let answer = match client.query_one(&format!("{query}::text"), &[]) {
        Ok(row) => Ok(serde_json::from_str(row.get(0)).unwrap()),
        Err(_) => {
            client.batch_execute("ROLLBACK; BEGIN READ ONLY; SET LOCAL ROLE api_caller").unwrap();
            Err(refusal(client, &query))
        }
    };
    client.batch_execute("ROLLBACK").unwrap();
    answer
}

fn prepared(name: &str) -> (crate::common::database::Database, Client, Value) {
    let database = database(name, "real[]");
    let mut client = database.connect();
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE api_caller NOLOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT SELECT ON memory_turns, memory_turn_edges TO api_caller",
        )
        .unwrap();
    let question = text(&mut client, "SELECT to_json(embedding)::text FROM questions LIMIT 1");
    (database, client, serde_json::from_str(&question).unwrap())
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_search_within_a_slice_answers_as_specified() {
    let (_database, mut client, question) = prepared("api_slice");
    let request = json!({
        "query": "invoice 'numbers'?", "query_embedding": question, "anchor_turn_id": ANCHOR, "limit": 3,
        "policy_ref": {"policy_id": "slice_policy_v1", "params_hash": "02005444cae1117d"},
        "min_similarity": 0.1,
    });
    let answer = call(&mut client, "graph_api_search_slice", &request).unwrap();
    assert_eq!(keys(&answer), ["provenance", "query", "results", "slice_info"]);
    assert_eq!(answer["query"], "invoice 'numbers'?");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!(keys(&results[0]), ["content", "role", "similarity", "trajectory", "turn_id"]);
    assert_eq!(
        keys(&results[0]["trajectory"]),
        ["complexity", "depth", "homogeneity", "sibling_order", "temporal"]
    );
    for key in ["slice_id", "anchor_turn_id", "turn_count", "edge_count", "schema_version"] {
        assert_eq!(answer["slice_info"][key], answer["provenance"][key], "{key}");
    }
    assert_eq!(answer["provenance"]["limit_returned"], 3);
    // The provenance is whole: it can be stored and promoted on.
    let provenance = answer["provenance"].to_string().replace('\'', "''");
    let found = results[2]["turn_id"].as_str().unwrap();
    let promotes = format!("SELECT graph_can_promote('{provenance}', '{found}')::text");
    assert_eq!(text(&mut client, &promotes), "true");
}

#[test]
fn a_slice_that_was_exported_is_searched_and_words_answer() {
    let (_database, mut client, question) = prepared("api_export");
    client
        .batch_execute(
            "ALTER TABLE memory_turns ADD COLUMN words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED",
        )
        .unwrap();
    let export = text(&mut client, &format!("SELECT graph_slice('{ANCHOR}')::text"));
    let export: Value = serde_json::from_str(&export).unwrap();
    let by_anchor = json!({"query_embedding": question, "anchor_turn_id": ANCHOR, "limit": 3});
    let expected = call(&mut client, "graph_api_search_slice", &by_anchor).unwrap();
    let by_slice = json!({"query_embedding": question, "slice": export, "limit": 3});
    let answer = call(&mut client, "graph_api_search_slice", &by_slice).unwrap();
    for key in ["results", "slice_info"] {
        assert_eq!(answer[key], expected[key], "{key}");
    }
    for place in [json!({"slice": export}), json!({"anchor_turn_id": ANCHOR})] {
        let mut request = place;
        request["query"] = json!("invoice numbers");
        let answer = call(&mut client, "graph_api_search_slice", &request).unwrap();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(
            keys(&results[0]),
            ["content", "role", "similarity", "trajectory", "turn_id", "words"]
        );
        assert_eq!(results[0]["similarity"], Value::Null);
        assert!(results.is_sorted_by(|a, b| a["words"].as_f64() >= b["words"].as_f64()));
        assert_eq!(answer["provenance"]["is_admissible"], true);
    }
}

#[test]
fn nothing_found_still_has_a_provenance() {
    let (_database, mut client, question) = prepared("api_nothing");
    let request =
        json!({"query_embedding": question, "anchor_turn_id": ANCHOR, "min_similarity": 0.99});
    let answer = call(&mut client, "graph_api_search_slice", &request).unwrap();
    assert_eq!(answer["results"], json!([]));
    assert_eq!(answer["query"], Value::Null);
    assert_eq!(answer["provenance"]["is_admissible"], true);
    assert_eq!(answer["provenance"]["retrieved_turn_ids"], json!([]));
}

#[test]
fn a_global_search_is_marked() {
    let (_database, mut client, question) = prepared("api_global");
    let request = json!({"query": "all", "query_embedding": question, "limit": 2});
    let answer = call(&mut client, "graph_api_search_global", &request).unwrap();
    assert_eq!(keys(&answer), ["provenance", "query", "results"]);
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    assert_eq!(answer["provenance"]["retrieval_mode"], "global");
    for (key, value) in [("is_admissible", json!(false)), ("slice_id", Value::Null)] {
        assert_eq!(answer["provenance"][key], value);
    }
}

#[test]
fn errors_are_statuses_with_a_stable_word() {
    let (_database, mut client, question) = prepared("api_errors");
    let good = json!({"query_embedding": question, "anchor_turn_id": ANCHOR});
    let with = |key: &str, value: Value| {
        let mut request = good.clone();
        request[key] = value;
        request
    };
    let missing = "00000000-0000-0000-0000-0000000fffff";
    let unknown = json!({"policy_id": "slice_policy_v1", "params_hash": "nope"});
    for (request, status, word) in [
        (with("anchor_turn_id", json!("zzz")), "PT400", "INVALID_TURN_ID"),
        (with("anchor_turn_id", json!(missing)), "PT404", "SLICE_FAILED"),
        (with("policy_ref", unknown), "PT404", "POLICY_NOT_FOUND"),
        (json!({"query_embedding": question}), "PT400", "INVALID_REQUEST"),
        (json!({"anchor_turn_id": ANCHOR}), "PT400", "INVALID_QUERY"),
        (json!({"anchor_turn_id": ANCHOR, "query": "invoices"}), "PT503", "SERVICE_UNAVAILABLE"),
        (json!({"query_embedding": question, "slice": {}}), "PT400", "NOT_ADMISSIBLE: malformed"),
        (with("slice", json!({})), "PT400", "INVALID_REQUEST"),
        (with("slice", json!(null)), "PT400", "INVALID_REQUEST"),
        (json!([]), "PT400", "INVALID_REQUEST"),
        (json!(null), "PT400", "INVALID_REQUEST"),
        (with("bogus", json!(1)), "PT400", "INVALID_REQUEST"),
        (with("limit", json!(0)), "PT400", "INVALID_LIMIT"),
        (with("limit", json!("many")), "PT400", "INVALID_REQUEST"),
        (with("limit", json!(10.5)), "PT400", "INVALID_REQUEST"),
        (with("limit", json!(99_999_999_999u64)), "PT400", "INVALID_REQUEST"),
        (with("min_similarity", json!("x")), "PT400", "INVALID_REQUEST"),
        (with("query_embedding", json!([])), "PT400", "INVALID_EMBEDDING"),
        (with("query_embedding", json!([1, null])), "PT400", "INVALID_EMBEDDING"),
        (with("query_embedding", json!([1, 2])), "PT400", "EMBEDDING_DIMENSIONS"),
        (with("query_embedding", json!("x")), "PT400", "INVALID_REQUEST"),
        (with("query_embedding", json!(["x"])), "PT400", "INVALID_REQUEST"),
        (with("query_embedding", json!([1e300])), "PT400", "INVALID_REQUEST"),
        (with("query_embedding", json!([[1]])), "PT400", "INVALID_REQUEST"),
        (with("query", json!("x".repeat(70_000))), "PT400", "INVALID_QUERY"),
    ] {
        let shown: String = request.to_string().chars().take(80).collect();
        let refused = call(&mut client, "graph_api_search_slice", &request).unwrap_err();
        assert_eq!(refused, (status.into(), word.into()), "{shown}");
    }
    let none = json!({"limit": 1});
    let refused = call(&mut client, "graph_api_search_global", &none).unwrap_err();
    assert_eq!(refused, ("PT400".into(), "INVALID_QUERY".into()));
    // What the caller may not do stays what it is: PostgREST answers 42501 with 403.
    client.batch_execute("REVOKE SELECT ON memory_turns FROM api_caller").unwrap();
    assert_eq!(call(&mut client, "graph_api_search_slice", &good).unwrap_err().0, "42501");
    client
        .batch_execute(
            "GRANT SELECT ON memory_turns TO api_caller; ALTER TABLE memory_turns DROP COLUMN embedding",
        )
        .unwrap();
    let refused = call(&mut client, "graph_api_search_slice", &good).unwrap_err();
    assert_eq!(refused, ("PT503".into(), "SERVICE_UNAVAILABLE".into()));
}
