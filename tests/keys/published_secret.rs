//! The secret of published tokens that is shared with other verifiers.

use kernel::trust::keys::{Secret, SigningKey};
use postgres::Client;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::graph::{SLICE, install, reason, reasons, refusal, slice, text};
use crate::secret_file;

/// A running server with a secret shared in a file, what it holds, and an export from before.
fn sharing() -> (Cluster, Vec<u8>, String) {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let before = slice(&mut client);
    let secret = secret_file::random(57);
    share(&cluster, &secret);
    (cluster, secret, before)
}

fn share(cluster: &Cluster, secret: &[u8]) {
    let path = cluster.folder.join("v2.secret");
    secret_file::write(&path, secret);
    cluster.set("graph_kernel.v2_secret_file", path.to_str().unwrap());
}

/// The token as somebody else computes it, who has the secret and the export.
fn token_elsewhere(secret: &[u8], export: &str) -> String {
    let export: Value = serde_json::from_str(export).unwrap();
    let field = |name: &str| export[name].as_str().unwrap();
    let message = [
        field("slice_id"),
        field("anchor_turn_id"),
        field("policy_id"),
        field("policy_params_hash"),
        field("graph_snapshot_hash"),
        field("schema_version"),
        "admissibility_token_v2_hmac",
    ]
    .join("|");
    let mac = SigningKey::new(Secret::new(secret.to_vec())).mac(message.as_bytes());
    mac[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn token(export: &str) -> String {
    let export: Value = serde_json::from_str(export).unwrap();
    export["admissibility_token"].as_str().unwrap().to_owned()
}

fn token_verifies(client: &mut Client, token: &str, export: &str) -> bool {
    let statement = "
        SELECT graph_verify_token($1, e ->> 'slice_id', (e ->> 'anchor_turn_id')::uuid,
            e ->> 'policy_id', e ->> 'policy_params_hash', e ->> 'graph_snapshot_hash',
            e ->> 'schema_version')
        FROM (VALUES ($2::text::json)) AS v (e)";
    client.query_one(statement, &[&token, &export]).unwrap().get(0)
}

#[test]
fn published_tokens_are_the_hmac_of_the_shared_secret() {
    let (cluster, secret, before) = sharing();
    let mut client = cluster.client();
    let export = slice(&mut client);
    let expected = token_elsewhere(&secret, &export);
    assert_eq!(token(&export), expected);
    let of_a_row = "SELECT DISTINCT admissibility_token
                    FROM graph_slice_turns('00000000-0000-4000-8000-000000000003')";
    assert_eq!(text(&mut client, of_a_row), expected);

    // The attestation is signed as before, with the key of the epoch.
    assert_ne!(token(&before), expected);
    assert_eq!(before.replace(&token(&before), &expected), export);
    assert_eq!(reason(&mut client, &export), "ok");
}

#[test]
fn published_tokens_from_before_the_sharing_verify_on() {
    let (cluster, _, before) = sharing();
    let mut client = cluster.client();
    assert_eq!(reason(&mut client, &before), "ok");
    assert!(token_verifies(&mut client, &token(&before), &before));
    text(&mut client, "SELECT graph_kernel.rotate_key()");
    assert_eq!(reason(&mut client, &before), "ok");
    assert!(token_verifies(&mut client, &token(&before), &before));
}

#[test]
fn tokens_of_another_secret_do_not_verify() {
    let (cluster, secret, _) = sharing();
    let mut client = cluster.client();
    let export = slice(&mut client);
    assert!(token_verifies(&mut client, &token_elsewhere(&secret, &export), &export));
    let other = secret_file::random(57);
    let foreign = token_elsewhere(&other, &export);
    assert!(!token_verifies(&mut client, &foreign, &export));
    let forged = export.replace(&token(&export), &foreign);
    assert_eq!(reason(&mut client, &forged), "bad_mac");

    share(&cluster, &other);
    assert_eq!(reasons(&mut cluster.client(), &[export, forged]), ["bad_mac", "ok"]);
}

#[test]
fn revoking_a_key_does_not_reach_the_shared_secret() {
    let (cluster, _, before) = sharing();
    let mut client = cluster.client();
    let export = slice(&mut client);
    text(&mut client, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    assert_eq!(reason(&mut client, &export), "revoked_key");
    assert!(token_verifies(&mut client, &token(&export), &export));
    assert!(!token_verifies(&mut client, &token(&before), &before));
}

#[test]
fn a_copy_of_the_root_key_is_no_secret_to_share() {
    let (cluster, secret, _) = sharing();
    secret_file::use_root(&cluster, &secret);
    let mut client = cluster.client();
    for statement in [SLICE, "SELECT * FROM graph_kernel.keys", "SELECT * FROM graph_verify('{}')"]
    {
        let (code, detail) = refusal(&mut client, statement);
        assert_eq!((code.as_str(), detail.as_str()), ("55000", "KEYS_UNAVAILABLE"));
    }
    secret_file::use_root(&cluster, &secret_file::random(57));
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
}
