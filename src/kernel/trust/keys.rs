//! Secrets: what is derived from an epoch's root, and the MACs made with it.
//!
//! Key material is wiped when dropped, has no Debug and no way out but a MAC.

use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::export::canonical::{hex, is_lower_hex};

/// The shortest root or shared secret, in bytes.
pub const SECRET_MIN_BYTES: usize = 32;

const SALT: &[u8] = b"graph_kernel";

/// A key for HMAC-SHA256.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A key of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// HMAC-SHA256 of the message.
    #[must_use]
    pub fn mac(&self, message: &[u8]) -> [u8; 32] {
        self.hmac(message).finalize().into_bytes().into()
    }

    /// Whether `mac` begins the message's HMAC-SHA256, in constant time. An empty one never does.
    #[must_use]
    pub fn verify(&self, message: &[u8], mac: &[u8]) -> bool {
        self.hmac(message).verify_truncated_left(mac).is_ok()
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

/// The keys of one epoch.
pub struct EpochKeys {
    /// Names the keys: `<epoch>-<16 hex digits>`.
    pub kid: String,
    /// Signs the published token.
    pub v2: Secret,
    /// Signs attestations.
    pub v3: Secret,
    /// Signs provenance of retrieval.
    pub retrieval: Secret,
}

impl EpochKeys {
    /// Derives an epoch's keys from its root.
    #[must_use]
    pub fn derive(root: &Secret, epoch: u32) -> Self {
        let hkdf = Hkdf::<Sha256>::new(Some(SALT), &root.0);
        let expand = |label: &str, length: usize| {
            let info = [label.as_bytes(), &epoch.to_le_bytes()].concat();
            let mut key = Zeroizing::new(vec![0; length]);
            hkdf.expand(&info, &mut key).expect("the length is far below HKDF's limit");
            key
        };
        EpochKeys {
            kid: format!("{epoch}-{}", hex(&expand("kid", 8))),
            v2: Secret(expand("v2", 32)),
            v3: Secret(expand("v3", 32)),
            retrieval: Secret(expand("retrieval", 32)),
        }
    }
}

/// The epoch a kid names, when it has a kid's form.
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
    fn an_empty_mac_does_not_verify() {
        let secret = Secret::new(vec![1; 32]);
        assert!(!secret.verify(b"m", &[]));
        assert!(secret.verify(b"m", &secret.mac(b"m")));
        assert!(secret.verify(b"m", &secret.mac(b"m")[..16]));
        assert!(!secret.verify(b"n", &secret.mac(b"m")));
    }
}
