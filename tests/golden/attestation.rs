//! Tokens and attestations: worked exports for a known root, computed from the specification's text, and tokens of the
//! published crate for a known secret.

use graph_kernel_tests::data::{read_json_lines, read_text};
use graph_kernel_tests::key_ring::TestRing;
use kernel::export::document::Export;
use kernel::export::parse::ParsedExport;
use kernel::graph::SCHEMA_VERSION;
use kernel::graph::turn::{Turn, TurnId};
use kernel::hex::hex;
use kernel::policy::{SlicePolicy, v1};
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::trust::attestation::{Circumstances, Status, TokenFields};
use kernel::trust::keys::{Secret, SigningKey, SigningKeys};
use kernel::verification::verify::verify_export;
use serde::Deserialize;

use crate::{bytes, data, last_members, without_white_space};

const PUBLISHED_SECRET: &[u8] = b"graph-kernel-test-secret-32bytes";

#[derive(Deserialize)]
struct Worked {
    root_hex: String,
    epoch: u32,
    keys: WorkedKeys,
    #[serde(skip)]
    export: String,
}

#[derive(Deserialize)]
struct WorkedKeys {
    v2: String,
    v3: String,
    retrieval: String,
    kid: String,
}

impl Worked {
    fn ring(&self) -> TestRing {
        let mut ring = TestRing::new(&bytes(&self.root_hex));
        ring.epochs[0].0 = self.epoch;
        ring
    }

    fn keys(&self) -> SigningKeys {
        self.ring().active()
    }

    /// The slice in the export.
    fn slice(&self) -> Slice {
        let export = ParsedExport::parse(&self.export, &|| ()).unwrap();
        let selected = |turn: Turn| SelectedTurn {
            turn: turn.into(),
            distance: 0,
            priority: 0.0,
            part: Part::Line,
            seed: None,
            micros: 0,
            tokens: 0,
            selection_order: 0,
        };
        Slice {
            anchor: export.anchor,
            turns: export.turns.into_iter().map(selected).collect(),
            edges: export.edges,
            pins_left_out: Vec::new(),
        }
    }
}

/// The worked cases. The text of an export is that of the file without white space, so that the order of keys and the
/// spelling of numbers are compared.
fn worked() -> Vec<Worked> {
    let text = without_white_space(&read_text(&data("attestation.json")));
    let mut cases: Vec<Worked> = serde_json::from_str(&text).unwrap();
    for (case, export) in cases.iter_mut().zip(last_members(&text, "export")) {
        case.export = export;
    }
    assert_eq!(cases.len(), 2);
    cases
}

#[test]
fn derived_keys_are_the_worked_ones() {
    for case in worked() {
        let keys = case.keys();
        assert_eq!(keys.kid, case.keys.kid);
        // Keys cannot be read, so their MACs are compared.
        for (key, expected) in [
            (keys.v2, case.keys.v2),
            (keys.v3, case.keys.v3),
            (keys.retrieval, case.keys.retrieval),
        ] {
            let expected = SigningKey::new(Secret::new(bytes(&expected)));
            assert_eq!(key.mac(b"message"), expected.mac(b"message"));
        }
    }
}

#[test]
fn exports_are_the_worked_ones_to_the_byte() {
    for case in worked() {
        let (slice, policy, keys) = (case.slice(), SlicePolicy::default(), case.keys());
        let mut export = Export::new(&slice, &policy, &|| {});
        let circumstances = Circumstances {
            graph: "default".to_owned(),
            role: "alice".to_owned(),
            rls: false,
            status: Status::Attested,
        };
        export.attest(&policy, &keys, &keys.v2, circumstances);
        assert_eq!(export.to_json(), case.export);
    }
}

#[test]
fn worked_exports_verify() {
    for case in worked() {
        let verdict = verify_export(&case.export, &case.ring());
        assert_eq!(verdict.reason(), "ok", "{:#?}", verdict.checks);
        assert!(verdict.valid().is_some());
        assert_eq!(verdict.attestation().unwrap().role, "alice");
        let slice_id = verdict.slice_id().unwrap();
        assert!(case.export.contains(&format!(r#""slice_id":"{slice_id}""#)));
    }
}

#[test]
fn worked_exports_do_not_verify_with_another_root_or_epoch() {
    for case in worked() {
        let mut ring = case.ring();
        ring.epochs[0].0 += 1;
        assert_eq!(verify_export(&case.export, &ring).reason(), "unknown_key");
        ring = case.ring();
        ring.epochs[0].1[31] ^= 1;
        assert_eq!(verify_export(&case.export, &ring).reason(), "unknown_key");
    }
}

/// The fields of a published token.
#[derive(Deserialize)]
struct Published {
    policy_params_hash: String,
    slice_id: String,
    graph_snapshot_hash: String,
    admissibility_token: String,
}

impl Published {
    fn fields(&self, anchor: TurnId) -> TokenFields<'_> {
        TokenFields {
            slice_id: &self.slice_id,
            anchor,
            policy_id: v1::ID,
            params_hash: &self.policy_params_hash,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            schema_version: SCHEMA_VERSION,
        }
    }
}

#[test]
fn tokens_of_small_graphs_are_the_published_ones() {
    #[derive(Deserialize)]
    struct TokenCase {
        anchor: TurnId,
        #[serde(rename = "crate")]
        published: Published,
        spec_tiebreak: Published,
    }
    let key = SigningKey::new(Secret::new(PUBLISHED_SECRET.to_vec()));
    let cases: Vec<TokenCase> = read_json_lines(&data("small-graphs.jsonl.gz"));
    assert_eq!(cases.len(), 200);
    for case in cases {
        for published in [&case.published, &case.spec_tiebreak] {
            let fields = published.fields(case.anchor);
            assert_eq!(fields.sign(&key), published.admissibility_token);
            assert!(fields.verify(&key.verifying_key(), &published.admissibility_token));
        }
    }
}

/// From reference-values.txt: the message of each slice's token, and its whole HMAC.
const REFERENCE: [(&str, &str); 5] = [
    (
        "8d6980384910121d|00000000-0000-0000-0000-000000000002|slice_policy_v1|02005444cae1117d|cabbed132a0cf673|1.0.0|admissibility_token_v2_hmac",
        "30568a7d63efc0abc754f379e2296e6500687b8271d2b5e641a7c62b6b6d66a4",
    ),
    (
        "8d6980384910121d|00000000-0000-0000-0000-000000000002|slice_policy_v1|02005444cae1117d|a6faea3cbf82687e|1.0.0|admissibility_token_v2_hmac",
        "51b36075bed61fd9722bf9a3ac981139694e1e22acd833068969c782e141fb09",
    ),
    (
        "cc22f8dd10bc4c89|00000000-0000-0000-0000-000000000001|slice_policy_v1|1418f1bca097bcaf|a6faea3cbf82687e|1.0.0|admissibility_token_v2_hmac",
        "dd876ac1d059c5011205c2e859e75c533a26c4e7ee6368f290ef88c26dcd36c2",
    ),
    (
        "92130a69aae04c6d|00000000-0000-0000-0000-000000000005|slice_policy_v1|34dbc9c9d1bb9fb1|a6faea3cbf82687e|1.0.0|admissibility_token_v2_hmac",
        "3d6dfe6121e05f956c79a4c8336e426e23088d750e7b745da4f269ddf8a3b08e",
    ),
    // A single turn, for which only the token is published.
    (
        "16bb6edda12803d4|00000000-0000-0000-0000-000000000001|slice_policy_v1|02005444cae1117d|43795b5103677b5e|1.0.0|admissibility_token_v2_hmac",
        "3a9f0c192a8a154a76e012b37c184b4d",
    ),
];

#[test]
fn tokens_of_reference_slices_are_the_published_ones() {
    let key = SigningKey::new(Secret::new(PUBLISHED_SECRET.to_vec()));
    for (message, hmac) in REFERENCE {
        assert!(hex(&key.mac(message.as_bytes())).starts_with(hmac));
        let parts: Vec<&str> = message.split('|').collect();
        let published = Published {
            slice_id: parts[0].to_owned(),
            policy_params_hash: parts[3].to_owned(),
            graph_snapshot_hash: parts[4].to_owned(),
            admissibility_token: hmac[..32].to_owned(),
        };
        let fields = published.fields(parts[1].parse().unwrap());
        assert_eq!(fields.sign(&key), published.admissibility_token);
    }
}
