//! Proofs and the life of their keys.

use postgres::Client;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::graph::{active_key, install, kid, rotate, slice, text};
use crate::secret_file::{self, random};

/// The proof of an export.
fn proof(client: &mut Client, export: &str) -> String {
    client.query_one("SELECT graph_proof($1::text::json)::text", &[&export]).unwrap().get(0)
}

/// The field `key_source` of a proof's statement.
fn source(client: &mut Client, proof: &str) -> String {
    let statement = "SELECT convert_from(decode($1::text::json ->> 'payload', 'base64'), 'UTF8')";
    let statement: String = client.query_one(statement, &[&proof]).unwrap().get(0);
    let statement: Value = serde_json::from_str(&statement).unwrap();
    statement["predicate"]["key_source"].as_str().unwrap().to_owned()
}

/// The public key of this id, and where its root is said to be.
fn published(client: &mut Client, kid: &str) -> (String, String) {
    let keys = "SELECT public_key, key_source FROM graph_kernel.proof_keys WHERE kid = $1";
    let row = client.query_one(keys, &[&kid]).unwrap();
    (row.get(0), row.get(1))
}

fn answer(client: &mut Client, export: &str, proof: &str, key: &str) -> String {
    let check = "SELECT reason FROM graph_verify_proof($1::text::json, $2::text::json, $3)";
    client.query_one(check, &[&export, &proof, &key]).unwrap().get(0)
}

#[test]
fn a_proof_says_where_its_key_is_kept_and_outlives_it() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let of_table = slice(&mut client);
    let proof_of_table = proof(&mut client, &of_table);
    assert_eq!(source(&mut client, &proof_of_table), "database");
    let (key_of_table, kept) = published(&mut client, &kid(&of_table));
    assert_eq!(kept, "database");

    secret_file::use_root(&cluster, &random(32));
    let mut client = cluster.client();
    let of_file = slice(&mut client);
    let proof_of_file = proof(&mut client, &of_file);
    assert_eq!(source(&mut client, &proof_of_file), "file");
    let (key_of_file, kept) = published(&mut client, &kid(&of_file));
    assert_eq!(kept, "file");
    assert_ne!(key_of_file, key_of_table);
    assert_eq!(answer(&mut client, &of_file, &proof_of_file, &key_of_file), "ok");
    assert_eq!(answer(&mut client, &of_file, &proof_of_file, &key_of_table), "bad_signature");

    // The key is no longer in the table of the database; a holder of the public one still checks.
    assert_eq!(answer(&mut client, &of_table, &proof_of_table, &key_of_table), "ok");
    let refused = client.query_one("SELECT graph_proof($1::text::json)", &[&of_table]).unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().detail(), Some("NOT_ADMISSIBLE: unknown_key"));

    // A rotation changes no older proof. A revocation ends them, and leaves those that were made.
    rotate(&mut client);
    assert_eq!(proof(&mut client, &of_file), proof_of_file);
    assert_ne!(active_key(&mut client), kid(&of_file));
    let revoked = kid(&of_file);
    client.batch_execute(&format!("SELECT graph_kernel.revoke_key('{revoked}')")).unwrap();
    let refused = client.query_one("SELECT graph_proof($1::text::json)", &[&of_file]).unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().detail(), Some("NOT_ADMISSIBLE: revoked_key"));
    assert_eq!(answer(&mut client, &of_file, &proof_of_file, &key_of_file), "ok");
    let state = format!("SELECT state FROM graph_kernel.proof_keys WHERE kid = '{revoked}'");
    assert_eq!(text(&mut client, &state), "revoked");
}
