//! The keys that a verifier accepts.

use graph_kernel_tests::key_ring::TestRing;
use kernel::trust::keys::{VerifyingKey, VerifyingKeys};
use kernel::verification::verify::{KeyRing, verify_export};

use crate::claim::{Claim, ring, string};

#[test]
fn exports_of_older_epochs_verify() {
    let claim = Claim::genuine();
    let mut old = ring();
    old.epochs.pop();
    let export = claim.signed_with(&old.active());
    assert!(string(&export, "attestation.kid").starts_with("1-"));
    assert_eq!(verify_export(&export.text(), &ring()).reason(), "ok");
    assert_eq!(verify_export(&claim.signed().text(), &old).reason(), "unknown_key");
}

#[test]
fn a_revoked_key_does_not_verify() {
    let export = Claim::genuine().signed();
    let mut verifier = ring();
    verifier.revoked.push(string(&export, "attestation.kid"));
    assert_eq!(verify_export(&export.text(), &verifier).reason(), "revoked_key");
    // An older key still verifies.
    verifier.epochs.pop();
    let older = Claim::genuine().signed_with(&verifier.active());
    assert_eq!(verify_export(&older.text(), &verifier).reason(), "ok");
}

#[test]
fn an_unknown_key_that_is_revoked_is_unknown() {
    let export = Claim::genuine().signed();
    let mut verifier = TestRing::new(&[7; 32]);
    verifier.revoked.push(string(&export, "attestation.kid"));
    assert_eq!(verify_export(&export.text(), &verifier).reason(), "unknown_key");
}

#[test]
fn a_key_signs_for_its_graph() {
    let export = Claim::genuine().signed();
    let mut verifier = ring();
    verifier.graph = "7f0c1bd8-6b0a-4a5f-8a52-000000000000".to_owned();
    assert_eq!(verify_export(&export.text(), &verifier).reason(), "other_graph");
}

#[test]
fn roots_and_epochs_give_keys_of_their_own() {
    let kid = |root: u8, epoch| {
        let mut ring = TestRing::new(&[root; 32]);
        ring.epochs[0].0 = epoch;
        ring.active().kid
    };
    let kids = [kid(1, 1), kid(1, 2), kid(2, 1), kid(2, 2)];
    for (i, one) in kids.iter().enumerate() {
        assert!(kids.iter().skip(i + 1).all(|other| other[2..] != one[2..]), "{kids:?}");
    }
}

#[test]
fn the_three_keys_of_an_epoch_differ() {
    let keys = ring().active();
    let macs = [&keys.v2, &keys.v3, &keys.retrieval].map(|key| key.mac(b"message"));
    assert!(macs[0] != macs[1] && macs[1] != macs[2] && macs[0] != macs[2]);
}

#[test]
fn keys_under_another_id_do_not_verify() {
    /// Answers every key id with the active keys, under another key id.
    struct Careless(TestRing);
    impl KeyRing for Careless {
        fn graph(&self) -> &str {
            self.0.graph()
        }
        fn verifying_keys(&self, _kid: &str) -> Option<VerifyingKeys> {
            let keys = self.0.active().verifying_keys();
            Some(VerifyingKeys { kid: "9-0123456789abcdef".to_owned(), ..keys })
        }
        fn is_revoked(&self, kid: &str) -> bool {
            self.0.is_revoked(kid)
        }
        fn shared_v2_key(&self) -> Option<VerifyingKey> {
            None
        }
    }
    let export = Claim::genuine().signed();
    assert_eq!(verify_export(&export.text(), &Careless(ring())).reason(), "bad_mac");
}
