//! Proofs: worked cases to the byte, computed from the text by an independent program, and proofs of slices by both
//! versions of the policy.

use graph_kernel_tests::data::read_text;
use graph_kernel_tests::key_ring::TestRing;
use kernel::export::document::canonical_text;
use kernel::export::parse::ParsedExport;
use kernel::trust::keys::{ProofKey, PublicKey, Secret};
use kernel::verification::proof::{KeySource, ProofRefusal, proof, verify_proof};
use kernel::verification::verify::verify_export;
use serde::Deserialize;
use serde_json::Value;

use crate::{bytes, data};

#[derive(Deserialize)]
struct Worked {
    root_hex: String,
    epoch: u32,
    key_source: String,
    seed_hex: String,
    public_key_pem: String,
    export_text: String,
    proof_text: String,
}

fn worked() -> Vec<Worked> {
    let cases: Vec<Worked> = serde_json::from_str(&read_text(&data("proof.json"))).unwrap();
    assert_eq!(cases.len(), 4);
    cases
}

impl Worked {
    fn key(&self) -> ProofKey {
        ProofKey::derive(&Secret::new(bytes(&self.root_hex)), self.epoch)
    }

    fn check(&self, export: &str, proof: &str) -> Result<(), ProofRefusal> {
        verify_proof(export, proof, &self.public_key_pem, &|| {}).map(drop)
    }
}

#[test]
fn keys_are_the_worked_ones() {
    for case in worked() {
        assert_eq!(case.key().public_key().to_pem(), case.public_key_pem);
        assert!(PublicKey::from_pem(&case.public_key_pem).is_some());
        // The private key cannot be read, so a signature is compared.
        let seed: [u8; 32] = bytes(&case.seed_hex).try_into().unwrap();
        let expected = ed25519_dalek::Signer::sign(&ed25519_dalek::SigningKey::from(seed), b"m");
        assert_eq!(case.key().sign(b"m"), expected.to_bytes());
    }
}

#[test]
fn proofs_are_the_worked_ones_to_the_byte() {
    for case in worked() {
        let mut ring = TestRing::new(&bytes(&case.root_hex));
        ring.epochs[0].0 = case.epoch;
        let source = KeySource::from_name(&case.key_source).unwrap();
        let made = proof(&verify_export(&case.export_text, &ring), &case.key(), source, &|| {});
        assert_eq!(made.as_deref(), Some(&*case.proof_text));
        assert_eq!(case.check(&case.export_text, &case.proof_text), Ok(()));
    }
}

#[test]
fn a_rewritten_export_has_the_same_proof() {
    for case in worked() {
        let export = ParsedExport::parse(&case.export_text, &|| {}).unwrap();
        assert_eq!(canonical_text(&export, &|| {}), case.export_text);
        // In order of keys, with white space.
        let value: Value = serde_json::from_str(&case.export_text).unwrap();
        let rewritten = serde_json::to_string_pretty(&value).unwrap();
        assert_ne!(rewritten, case.export_text);
        assert_eq!(case.check(&rewritten, &case.proof_text), Ok(()));
        let envelope: Value = serde_json::from_str(&case.proof_text).unwrap();
        let proof = serde_json::to_string_pretty(&envelope).unwrap();
        assert_eq!(case.check(&case.export_text, &proof), Ok(()));
    }
}

#[test]
fn one_case_does_not_prove_another() {
    let cases = worked();
    for (place, case) in cases.iter().enumerate() {
        for (other_place, other) in cases.iter().enumerate() {
            let same_export = case.export_text == other.export_text;
            let expected = if same_export { Ok(()) } else { Err(ProofRefusal::OtherExport) };
            assert_eq!(
                case.check(&case.export_text, &other.proof_text),
                expected,
                "{place} {other_place}"
            );
        }
    }
}
