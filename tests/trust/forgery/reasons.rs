//! The list of reasons.

use std::collections::BTreeSet;

use graph_kernel_tests::key_ring::TestRing;
use kernel::verification::verify::{Check, verify_document, verify_export};

use crate::claim::{Claim, ring};
use crate::document::{Document, Json};
use crate::prompts::{self, Prompt};

/// As documented.
const REASONS: [&str; 18] = [
    "ok",
    "malformed",
    "unordered",
    "unknown_version",
    "unattested",
    "unknown_key",
    "revoked_key",
    "other_graph",
    "bad_mac",
    "digest_mismatch",
    "slice_id_mismatch",
    "params_hash_mismatch",
    "over_budget",
    "boundary",
    "other_turns",
    "other_order",
    "prompt_digest_mismatch",
    "prompt_token_mismatch",
];

/// Of an export; those of a record come after.
const OF_EXPORTS: usize = 15;

const CHECKS: [Check; 19] = [
    Check::WellFormed,
    Check::Ordered,
    Check::Versions,
    Check::Boundary,
    Check::Attested,
    Check::ParamsHash,
    Check::Budget,
    Check::SliceId,
    Check::SnapshotHash,
    Check::Digest,
    Check::KnownKey,
    Check::LiveKey,
    Check::Graph,
    Check::Token,
    Check::PublishedToken,
    Check::Messages,
    Check::MessageOrder,
    Check::PromptDigest,
    Check::PromptToken,
];

/// A document with only the fault that this check finds, and the verifier of it.
fn failing(check: Check) -> (Document, TestRing) {
    let (mut claim, mut ring) = (Claim::genuine(), ring());
    let mut export = claim.signed();
    match check {
        Check::WellFormed => export.remove("attestation.rls"),
        Check::Ordered => export.array("turns").swap(0, 1),
        Check::Versions => export.set("schema_version", "1.0.1"),
        Check::Boundary => {
            claim.slice.edges.truncate(4);
            claim.slice.edges[3].child = crate::claim::id(9);
            export = claim.signed();
        }
        Check::Attested => export.set("attestation", Json::Null),
        Check::ParamsHash => export.set("attestation.policy.max_nodes", 300),
        Check::Budget => {
            claim.policy = r#"{"max_nodes":2}"#.parse().unwrap();
            export = claim.signed();
        }
        Check::SliceId => export.set("slice_id", "0123456789abcdef"),
        Check::SnapshotHash => export.set("graph_snapshot_hash", "0123456789abcdef"),
        Check::Digest => export.set("attestation.digest", "0".repeat(64)),
        Check::KnownKey => ring.epochs.truncate(1),
        Check::LiveKey => ring.revoked.push(ring.active().kid),
        Check::Graph => ring.graph = "another".to_owned(),
        Check::Token => export.set("attestation.role", "bob"),
        Check::PublishedToken => export.set("admissibility_token", "0".repeat(32)),
        Check::Messages | Check::MessageOrder | Check::PromptDigest | Check::PromptToken => {
            let mut prompt = Prompt::genuine();
            export = prompt.signed();
            match check {
                Check::Messages => {
                    prompt.messages.pop();
                    export = prompt.signed();
                }
                Check::MessageOrder => {
                    prompt.messages.swap(0, 1);
                    export = prompt.signed();
                }
                Check::PromptDigest => {
                    prompt.context = None;
                    let digest = export.get("digest");
                    export = prompt.signed();
                    export.set("digest", digest);
                }
                _ => {
                    prompt.context = None;
                    export = prompt.with_token_of(&export);
                }
            }
        }
    }
    (export, ring)
}

#[test]
fn each_check_gives_its_reason_and_the_list_is_closed() {
    let mut seen = BTreeSet::from(["ok"]);
    for check in CHECKS {
        let (export, ring) = failing(check);
        let verdict = verify_document(&export.text(), &ring);
        let failed: Vec<Check> = verdict.checks.iter().filter(|o| !o.ok).map(|o| o.check).collect();
        assert_eq!(failed.first(), Some(&check), "{:#?}", verdict.checks);
        assert_eq!(verdict.reason(), check.reason());
        assert!(verdict.valid().is_none());
        seen.insert(verdict.reason());
    }
    assert_eq!(seen, BTreeSet::from(REASONS));
}

#[test]
fn a_valid_document_passes_every_check() {
    for (document, checks) in [
        (Claim::genuine().signed(), &CHECKS[..OF_EXPORTS]),
        (Prompt::genuine().signed(), &CHECKS[..]),
    ] {
        let verdict = verify_document(&document.text(), &ring());
        let passed: Vec<Check> = verdict.checks.iter().map(|outcome| outcome.check).collect();
        assert_eq!(passed, checks);
        assert!(verdict.checks.iter().all(|outcome| outcome.ok));
    }
}

#[test]
fn the_first_check_that_fails_is_the_reason() {
    // Each export here has every fault from one check on.
    let mut export = Claim::genuine().signed();
    export.set("attestation.role", "bob");
    export.set("admissibility_token", "0".repeat(32));
    export.set("attestation.digest", "0".repeat(64));
    let reason = |export: &Document| verify_export(&export.text(), &ring()).reason();
    assert_eq!(reason(&export), "digest_mismatch");
    export.set("slice_id", "0123456789abcdef");
    assert_eq!(reason(&export), "slice_id_mismatch");
    export.set("attestation.policy.max_nodes", 2);
    assert_eq!(reason(&export), "params_hash_mismatch");
    export.set("schema_version", "2");
    assert_eq!(reason(&export), "unknown_version");
    export.array("turns").swap(0, 1);
    assert_eq!(reason(&export), "unordered");
    export.remove("edges");
    assert_eq!(reason(&export), "malformed");
}

#[test]
fn the_first_check_of_a_record_that_fails_is_the_reason() {
    let mut prompt = Prompt::genuine();
    prompt.context = None;
    let mut record = prompt.with_token_of(&Prompt::genuine().signed());
    assert_eq!(prompts::reason(&record), "prompt_token_mismatch");
    record.set("digest", "0".repeat(64));
    assert_eq!(prompts::reason(&record), "prompt_digest_mismatch");
    record.array("messages").swap(0, 1);
    assert_eq!(prompts::reason(&record), "other_order");
    record.array("messages").pop();
    assert_eq!(prompts::reason(&record), "other_turns");
    record.set("slice.admissibility_token", "0".repeat(32));
    assert_eq!(prompts::reason(&record), "bad_mac");
    record.set("slice.slice_id", "0123456789abcdef");
    assert_eq!(prompts::reason(&record), "slice_id_mismatch");
    record.remove("context");
    assert_eq!(prompts::reason(&record), "malformed");
}
