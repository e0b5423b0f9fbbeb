//! A key ring in memory.

use std::cell::Cell;

use kernel::trust::keys::{Secret, SigningKey, SigningKeys, VerifyingKey, VerifyingKeys};
use kernel::verification::verify::KeyRing;

/// A [`KeyRing`] of epochs with known roots.
pub struct TestRing {
    /// The name of the graph.
    pub graph: String,
    /// Epochs and their roots; the last one signs.
    pub epochs: Vec<(u32, Vec<u8>)>,
    /// Revoked key ids.
    pub revoked: Vec<String>,
    /// The shared key of published tokens.
    pub shared_v2: Option<SigningKey>,
    /// How often a verifier has checked for interrupts.
    pub interrupt_checks: Cell<u32>,
}

impl TestRing {
    /// One epoch with this root, the graph being `default`.
    #[must_use]
    pub fn new(root: &[u8]) -> Self {
        TestRing {
            graph: "default".to_owned(),
            epochs: vec![(1, root.to_vec())],
            revoked: Vec::new(),
            shared_v2: None,
            interrupt_checks: Cell::new(0),
        }
    }

    /// The keys that sign.
    #[must_use]
    pub fn active(&self) -> SigningKeys {
        self.keys_of(self.epochs.len() - 1)
    }

    /// The keys of an epoch, the oldest being 0.
    #[must_use]
    pub fn keys_of(&self, index: usize) -> SigningKeys {
        let (epoch, root) = &self.epochs[index];
        SigningKeys::derive(&Secret::new(root.clone()), *epoch)
    }
}

impl KeyRing for TestRing {
    fn graph(&self) -> &str {
        &self.graph
    }

    fn verifying_keys(&self, kid: &str) -> Option<VerifyingKeys> {
        let mut epochs = (0..self.epochs.len()).map(|index| self.keys_of(index).verifying_keys());
        epochs.find(|keys| keys.kid == kid)
    }

    fn is_revoked(&self, kid: &str) -> bool {
        self.revoked.iter().any(|revoked| revoked == kid)
    }

    fn shared_v2_key(&self) -> Option<VerifyingKey> {
        self.shared_v2.as_ref().map(SigningKey::verifying_key)
    }

    fn check_interrupts(&self) {
        self.interrupt_checks.set(self.interrupt_checks.get() + 1);
    }
}
