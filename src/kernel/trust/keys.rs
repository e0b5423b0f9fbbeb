//! Keys: what is derived from the root of an epoch, and the MACs and signatures that are made and checked with it.
//!
//! The root, a signing key and a verifying key are separate types. Code that holds a verifying key cannot sign with it,
//! although HMAC uses the same bytes for both. Key material is wiped when dropped, has no Debug, and can be read by no
//! function.

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePublicKey, EncodePublicKey};
use ed25519_dalek::{Signature, Signer};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::hex::{hex, is_lower_hex};
use crate::named_enum::named_enum;

/// The shortest root or shared secret, in bytes.
pub const SECRET_MIN_BYTES: usize = 32;

/// The longest public key that is read, in bytes.
const MAX_PEM_BYTES: usize = 4096;

const SALT: &[u8] = b"graph_kernel";

named_enum! {
    /// What a key is used for.
    KeyState {
        /// It signs and verifies.
        Active = "active",
        /// It verifies.
        Verifying = "verifying",
        /// Nothing that it signed is accepted.
        Revoked = "revoked",
    }
}

/// The bytes of which keys are made: the root of an epoch, or a secret that is shared with other programs.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A secret of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// Whether two secrets are the same bytes.
    #[must_use]
    pub fn same_as(&self, other: &Secret) -> bool {
        self.0 == other.0
    }

    fn hmac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut hmac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        hmac.update(message);
        hmac
    }
}

/// A key that signs, by HMAC-SHA256.
pub struct SigningKey(Secret);

impl SigningKey {
    /// The key of this secret.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        SigningKey(secret)
    }

    /// HMAC-SHA256 of the message.
    #[must_use]
    pub fn mac(&self, message: &[u8]) -> [u8; 32] {
        self.0.hmac(message).finalize().into_bytes().into()
    }

    /// The key that checks what this one signs.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(Secret(self.0.0.clone()))
    }
}

/// A key that checks what a [`SigningKey`] signed.
pub struct VerifyingKey(Secret);

impl VerifyingKey {
    /// Whether `mac` is the beginning of the message's HMAC-SHA256, in constant time. An empty one never is.
    #[must_use]
    pub fn verify(&self, message: &[u8], mac: &[u8]) -> bool {
        self.0.hmac(message).verify_truncated_left(mac).is_ok()
    }
}

/// The private key that signs proofs, by Ed25519 (RFC 8032).
pub struct ProofKey {
    /// Names the epoch's keys.
    pub kid: String,
    key: ed25519_dalek::SigningKey,
}

impl ProofKey {
    /// Derives the proof key of an epoch from its root.
    #[must_use]
    pub fn derive(root: &Secret, epoch: u32) -> Self {
        let hkdf = Hkdf::<Sha256>::new(Some(SALT), &root.0);
        let mut seed = Zeroizing::new([0; ed25519_dalek::SECRET_KEY_LENGTH]);
        expand(&hkdf, "proof", epoch, seed.as_mut_slice());
        ProofKey { kid: kid(&hkdf, epoch), key: ed25519_dalek::SigningKey::from_bytes(&seed) }
    }

    /// The signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }

    /// The key that checks what this one signs.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.key.verifying_key())
    }
}

/// A public key that checks proofs.
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo in PEM, with or without white space around it. `None` for any other text, for
    /// another kind of key, and for a text that is longer than a file of one key.
    #[must_use]
    pub fn from_pem(pem: &str) -> Option<Self> {
        if pem.len() > MAX_PEM_BYTES {
            return None;
        }
        ed25519_dalek::VerifyingKey::from_public_key_pem(pem.trim_ascii()).ok().map(PublicKey)
    }

    /// The SubjectPublicKeyInfo in PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("a public key always has this form")
    }

    /// Whether this is the message's signature. Keys of small order and signatures with a second spelling never are.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// The signing keys of an epoch.
pub struct SigningKeys {
    /// Names the epoch's keys: `<epoch>-<16 hex digits>`.
    pub kid: String,
    /// Signs the published token.
    pub v2: SigningKey,
    /// Signs attestations.
    pub v3: SigningKey,
    /// Signs provenance of retrieval.
    pub retrieval: SigningKey,
    /// Signs records of prompts.
    pub prompt: SigningKey,
}

/// The keys that check the signatures of an epoch.
pub struct VerifyingKeys {
    /// Names the epoch's keys.
    pub kid: String,
    /// Checks the published token.
    pub v2: VerifyingKey,
    /// Checks attestations.
    pub v3: VerifyingKey,
    /// Checks provenance of retrieval.
    pub retrieval: VerifyingKey,
    /// Checks records of prompts.
    pub prompt: VerifyingKey,
}

impl SigningKeys {
    /// Derives the keys of an epoch from its root.
    #[must_use]
    pub fn derive(root: &Secret, epoch: u32) -> Self {
        let hkdf = Hkdf::<Sha256>::new(Some(SALT), &root.0);
        let key = |label| {
            let mut key = Zeroizing::new(vec![0; 32]);
            expand(&hkdf, label, epoch, &mut key);
            SigningKey(Secret(key))
        };
        SigningKeys {
            kid: kid(&hkdf, epoch),
            v2: key("v2"),
            v3: key("v3"),
            retrieval: key("retrieval"),
            prompt: key("prompt"),
        }
    }

    /// The keys that check the signatures of these.
    #[must_use]
    pub fn verifying_keys(&self) -> VerifyingKeys {
        VerifyingKeys {
            kid: self.kid.clone(),
            v2: self.v2.verifying_key(),
            v3: self.v3.verifying_key(),
            retrieval: self.retrieval.verifying_key(),
            prompt: self.prompt.verifying_key(),
        }
    }
}

impl VerifyingKeys {
    /// Derives the keys of an epoch from its root.
    #[must_use]
    pub fn derive(root: &Secret, epoch: u32) -> Self {
        SigningKeys::derive(root, epoch).verifying_keys()
    }
}

/// Fills `key` with what the label names in an epoch.
fn expand(hkdf: &Hkdf<Sha256>, label: &str, epoch: u32, key: &mut [u8]) {
    let info = [label.as_bytes(), &epoch.to_le_bytes()].concat();
    hkdf.expand(&info, key).expect("the length is far below HKDF's limit");
}

fn kid(hkdf: &Hkdf<Sha256>, epoch: u32) -> String {
    let mut tail = [0; 8];
    expand(hkdf, "kid", epoch, &mut tail);
    format!("{epoch}-{}", hex(&tail))
}

/// The epoch in a kid; `None` where the text does not have the form of a kid.
#[must_use]
pub fn epoch_of_kid(kid: &str) -> Option<u32> {
    let (epoch, tail) = kid.split_once('-')?;
    let canonical = !epoch.starts_with('0') && epoch.bytes().all(|b| b.is_ascii_digit());
    (canonical && is_lower_hex(tail, 16)).then(|| epoch.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kids_have_one_spelling() {
        assert_eq!(epoch_of_kid("1-cead444189c0afd2"), Some(1));
        for bad in [
            "",
            "1",
            "01-cead444189c0afd2",
            "+1-cead444189c0afd2",
            "1-CEAD444189C0AFD2",
            "1-cead",
            "-cead444189c0afd2",
            "99999999999-cead444189c0afd2",
        ] {
            assert_eq!(epoch_of_kid(bad), None, "{bad}");
        }
    }

    #[test]
    fn secrets_are_compared_by_their_bytes() {
        let secret = Secret::new(vec![1; 32]);
        assert!(secret.same_as(&Secret::new(vec![1; 32])));
        assert!(!secret.same_as(&Secret::new(vec![2; 32])));
    }

    #[test]
    fn an_empty_mac_does_not_verify() {
        let signing = SigningKey::new(Secret::new(vec![1; 32]));
        let (verifying, mac) = (signing.verifying_key(), signing.mac(b"m"));
        assert!(!verifying.verify(b"m", &[]));
        assert!(verifying.verify(b"m", &mac));
        assert!(verifying.verify(b"m", &mac[..16]));
        assert!(!verifying.verify(b"n", &mac));
    }
}
