//! Edited circumstances, policies and statuses.

use crate::claim::{Claim, reason, ring, string};
use crate::document::{Document, Json};
use kernel::trust::attestation::Status;

/// The genuine export with one value of it edited.
fn edited(path: &str, value: &str) -> Document {
    let mut export = Claim::genuine().signed();
    assert_ne!(string(&export, path), value, "{path} is not edited");
    export.set(path, value);
    export
}

#[test]
fn an_edited_role_is_found() {
    for role in ["bob", "", "Alice", "alice ", "alice\u{200b}"] {
        assert_eq!(reason(&edited("attestation.role", role)), "bad_mac", "{role:?}");
    }
}

#[test]
fn edited_row_security_is_found() {
    for rls in [false, true] {
        let mut claim = Claim::genuine();
        claim.circumstances.rls = rls;
        let mut export = claim.signed();
        assert_eq!(reason(&export), "ok");
        export.set("attestation.rls", !rls);
        assert_eq!(reason(&export), "bad_mac");
    }
}

#[test]
fn an_edited_graph_is_found() {
    assert_eq!(reason(&edited("attestation.graph", "another")), "other_graph");
    let mut claim = Claim::genuine();
    claim.circumstances.graph = "another".to_owned();
    let mut export = claim.signed();
    assert_eq!(reason(&export), "other_graph");
    export.set("attestation.graph", "default");
    assert_eq!(reason(&export), "bad_mac");
}

#[test]
fn text_cannot_move_between_graph_and_role() {
    let mut claim = Claim::genuine();
    claim.circumstances.graph = "defaultal".to_owned();
    claim.circumstances.role = "ice".to_owned();
    let genuine = claim.signed();
    assert_eq!(reason(&Claim::genuine().with_tokens_of(&genuine)), "bad_mac");
}

#[test]
fn an_edited_key_id_is_found() {
    let older = ring().epochs[0].clone();
    let older = graph_kernel_tests::key_ring::TestRing::new(&older.1).active().kid;
    // The verifier has that key, but it did not sign.
    let mut export = edited("attestation.kid", &older);
    assert_eq!(reason(&export), "bad_mac");
    let token = string(&export, "attestation.token");
    let mac = token.rsplit('.').next().unwrap();
    export.set("attestation.token", format!("gk3.{older}.{mac}"));
    assert_eq!(reason(&export), "bad_mac");
    for kid in ["1-0000000000000000", "", "2", "2-", "../2"] {
        assert_eq!(reason(&edited("attestation.kid", kid)), "unknown_key", "{kid}");
    }
}

#[test]
fn an_edited_digest_is_found() {
    let digest = string(&Claim::genuine().signed(), "attestation.digest");
    let flipped = digest.replace(&digest[..1], if digest.starts_with('0') { "1" } else { "0" });
    assert_eq!(reason(&edited("attestation.digest", &flipped)), "digest_mismatch");
    assert_eq!(reason(&edited("attestation.digest", &"0".repeat(64))), "digest_mismatch");
}

#[test]
fn edited_fingerprints_are_found() {
    let zeros = "0".repeat(16);
    assert_eq!(reason(&edited("slice_id", &zeros)), "slice_id_mismatch");
    assert_eq!(reason(&edited("graph_snapshot_hash", &zeros)), "digest_mismatch");
    assert_eq!(reason(&edited("policy_params_hash", &zeros)), "params_hash_mismatch");
}

/// An edit of each parameter of the attested policy.
const PARAMETERS: [(&str, i128); 11] = [
    ("max_nodes", 257),
    ("max_radius", 11),
    ("max_siblings_per_node", 6),
    ("include_siblings", 0),
    ("salience_weight", 300_001),
    ("distance_decay", 900_001),
    ("phase_weights.synthesis", 1_000_001),
    ("phase_weights.planning", -1),
    ("phase_weights.consolidation", 0),
    ("phase_weights.debugging", 500_001),
    ("phase_weights.exploration", 300_001),
];

fn edit_policy(export: &mut Document, parameter: &str, value: i128) {
    let path = format!("attestation.policy.{parameter}");
    match export.get(&path) {
        Json::Bool(on) => export.set(&path, !on),
        _ => export.set(&path, value),
    }
}

#[test]
fn an_edited_policy_is_found() {
    for (parameter, value) in PARAMETERS {
        let mut export = Claim::genuine().signed();
        edit_policy(&mut export, parameter, value);
        assert_eq!(reason(&export), "params_hash_mismatch", "{parameter}");
    }
}

#[test]
fn an_edited_policy_is_found_when_everything_without_a_key_is_computed_anew() {
    let genuine = Claim::genuine().signed();
    let policies = [
        r#"{"max_nodes":257}"#,
        r#"{"max_radius":11}"#,
        r#"{"max_siblings_per_node":6}"#,
        r#"{"include_siblings":false}"#,
        r#"{"salience_weight":0.300001}"#,
        r#"{"distance_decay":0.900001}"#,
        r#"{"phase_weights":{"synthesis":1.000001}}"#,
        r#"{"phase_weights":{"planning":-1}}"#,
        r#"{"phase_weights":{"consolidation":0}}"#,
        r#"{"phase_weights":{"debugging":0.500001}}"#,
        r#"{"phase_weights":{"exploration":0.300001}}"#,
    ];
    for policy in policies {
        let mut claim = Claim::genuine();
        claim.policy = policy.parse().unwrap();
        assert_eq!(reason(&claim.with_tokens_of(&genuine)), "bad_mac", "{policy}");
    }
}

#[test]
fn a_budget_raised_after_signing_is_found() {
    // More turns than the policy allows, and the policy edited so that it would.
    let mut claim = Claim::genuine();
    claim.policy = r#"{"max_nodes":4}"#.parse().unwrap();
    let genuine = claim.signed();
    assert_eq!(reason(&genuine), "over_budget");
    claim.policy = r#"{"max_nodes":5}"#.parse().unwrap();
    assert_eq!(reason(&claim.with_tokens_of(&genuine)), "bad_mac");
}

#[test]
fn a_slice_that_is_not_attested_cannot_be_made_so() {
    for (status, why) in [(Status::Uncommitted, "unattested"), (Status::Distributed, "distributed")]
    {
        let mut claim = Claim::genuine();
        claim.circumstances.status = status;
        let mut export = claim.signed();
        assert_eq!(export.get("admissibility_token"), Json::Null);
        assert_eq!(export.get("attestation.token"), Json::Null);
        assert_eq!(reason(&export), why);

        // With the tokens of the attested slice its status is still not attested.
        let attested = Claim::genuine().signed();
        for path in ["admissibility_token", "attestation.token"] {
            export.set(path, attested.get(path));
        }
        assert_eq!(reason(&export), why);
    }
}

#[test]
fn an_attested_slice_without_tokens_does_not_verify() {
    let mut claim = Claim::genuine();
    claim.circumstances.status = Status::Uncommitted;
    let mut export = claim.signed();
    export.set("attestation.status", "attested");
    assert_eq!(reason(&export), "bad_mac");
    for path in ["admissibility_token", "attestation.token"] {
        let mut export = Claim::genuine().signed();
        export.set(path, Json::Null);
        assert_eq!(reason(&export), "bad_mac", "{path}");
    }
}

#[test]
fn the_status_is_signed() {
    // Even a signature of an uncommitted slice would not verify as attested: the status is part of the MAC.
    for (status, why) in [("uncommitted", "unattested"), ("distributed", "distributed")] {
        let mut export = Claim::genuine().signed();
        export.set("attestation.status", status);
        assert_eq!(reason(&export), why);
    }
    for status in ["", "Attested", "ATTESTED", "attested ", "committed", "trusted"] {
        assert_eq!(reason(&edited("attestation.status", status)), "malformed", "{status:?}");
    }
}
