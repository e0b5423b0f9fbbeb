//! Tokens: the published one (v2) and the attestation that covers the whole export (v3).

use hmac::digest::Digest;
use serde::{Serialize, Serializer};
use sha2::Sha256;

use crate::graph::SCHEMA_VERSION;
use crate::graph::edge::Edge;
use crate::graph::turn::{Turn, TurnId};
use crate::hex::{from_lower_hex, hex, is_lower_hex};
use crate::interrupts::Interrupts;
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::trust::keys::{SigningKey, SigningKeys, VerifyingKey, VerifyingKeys};

/// The version of the attestation.
pub const ATTESTATION_VERSION: u32 = 3;

/// What the published token signs.
#[derive(Clone, Copy)]
pub struct TokenFields<'a> {
    /// The selection fingerprint.
    pub slice_id: &'a str,
    /// Where the slice was taken.
    pub anchor: TurnId,
    /// The policy's version.
    pub policy_id: &'a str,
    /// The policy's parameters.
    pub params_hash: &'a str,
    /// The content fingerprint.
    pub graph_snapshot_hash: &'a str,
    /// The version of the export's shape.
    pub schema_version: &'a str,
}

impl TokenFields<'_> {
    /// Whether every field has its form. Only then is the joined text unambiguous.
    #[must_use]
    pub fn are_well_formed(&self) -> bool {
        is_lower_hex(self.slice_id, 16)
            && is_lower_hex(self.params_hash, 16)
            && is_lower_hex(self.graph_snapshot_hash, 16)
            && SlicePolicy::IDS.contains(&self.policy_id)
            && self.schema_version == SCHEMA_VERSION
    }

    /// The admissibility token: 32 lower-case hex digits.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> String {
        hex(&key.mac(self.message().as_bytes())[..16])
    }

    /// Whether this is the token of the fields under the key.
    #[must_use]
    pub fn verify(&self, key: &VerifyingKey, token: &str) -> bool {
        let mac = from_lower_hex(token).filter(|mac| mac.len() == 16);
        self.are_well_formed() && mac.is_some_and(|mac| key.verify(self.message().as_bytes(), &mac))
    }

    fn message(&self) -> String {
        let TokenFields { slice_id, anchor, policy_id, params_hash, .. } = self;
        let TokenFields { graph_snapshot_hash, schema_version, .. } = self;
        format!(
            "{slice_id}|{anchor}|{policy_id}|{params_hash}|{graph_snapshot_hash}|{schema_version}\
             |admissibility_token_v2_hmac"
        )
    }
}

/// The circumstances in which a slice was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The name of the graph.
    pub graph: String,
    /// The role whose rights applied.
    pub role: String,
    /// Whether row security applied.
    pub rls: bool,
    /// Whether the slice is signed.
    pub status: Status,
}

named_enum! {
    /// Whether a slice is signed.
    Status {
        /// It is.
        Attested = "attested",
        /// It is not: its own transaction had changed the graph.
        Uncommitted = "uncommitted",
        /// It is not: it was read from several servers, which have no snapshot in common.
        Distributed = "distributed",
    }
}

impl Status {
    /// Why a document with this status is not valid.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Attested => "ok",
            Self::Uncommitted => "unattested",
            Self::Distributed => "distributed",
        }
    }
}

/// The last field of an export.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attestation {
    /// [`ATTESTATION_VERSION`].
    pub v: u32,
    /// Names the key.
    pub kid: String,
    /// SHA-256 over everything the slice says.
    pub digest: String,
    /// The name of the graph.
    pub graph: String,
    /// The policy, serialised with floats in millionths.
    #[serde(serialize_with = "quantized")]
    pub policy: SlicePolicy,
    /// The role whose rights applied.
    pub role: String,
    /// Whether row security applied.
    pub rls: bool,
    /// Whether the slice is signed.
    pub status: Status,
    /// The claim, none when it is not.
    pub token: Option<String>,
}

fn quantized<S: Serializer>(policy: &SlicePolicy, serializer: S) -> Result<S::Ok, S::Error> {
    policy.quantized().serialize(serializer)
}

impl Attestation {
    /// The attestation of a slice.
    #[must_use]
    pub fn new(
        keys: &SigningKeys,
        circumstances: Circumstances,
        fields: &TokenFields<'_>,
        digest: [u8; 32],
        policy: SlicePolicy,
    ) -> Self {
        let Circumstances { graph, role, rls, status } = circumstances;
        let mut attestation = Attestation {
            v: ATTESTATION_VERSION,
            kid: keys.kid.clone(),
            digest: hex(&digest),
            graph,
            policy,
            role,
            rls,
            status,
            token: None,
        };
        if status == Status::Attested {
            let mac = keys.v3.mac(&attestation.message(fields, digest));
            attestation.token = Some(format!("gk3.{}.{}", keys.kid, hex(&mac)));
        }
        attestation
    }

    /// Whether the token is that of this attestation under the keys of the epoch.
    #[must_use]
    pub fn verify(&self, keys: &VerifyingKeys, fields: &TokenFields<'_>, digest: [u8; 32]) -> bool {
        let mac = self
            .token
            .as_deref()
            .and_then(|token| token.strip_prefix(&format!("gk3.{}.", self.kid)))
            .and_then(from_lower_hex)
            .filter(|mac| mac.len() == 32);
        self.kid == keys.kid
            && mac.is_some_and(|mac| keys.v3.verify(&self.message(fields, digest), &mac))
    }

    fn message(&self, fields: &TokenFields<'_>, digest: [u8; 32]) -> Vec<u8> {
        let mut message = Vec::new();
        let mut put = |bytes: &[u8]| message.extend_from_slice(bytes);
        encode(&mut put, "graph_kernel/token/v3");
        encode(&mut put, &self.kid);
        encode(&mut put, &self.graph);
        encode(&mut put, &self.role);
        put(&[u8::from(self.rls)]);
        encode(&mut put, self.status.name());
        encode(&mut put, fields.policy_id);
        encode(&mut put, fields.params_hash);
        put(fields.anchor.as_bytes());
        encode(&mut put, fields.slice_id);
        encode(&mut put, fields.graph_snapshot_hash);
        encode(&mut put, fields.schema_version);
        put(&digest);
        message
    }
}

/// SHA-256 of everything an export says of a slice, with turns and edges in export order.
#[must_use]
pub fn digest(
    anchor: TurnId,
    (turns, edges): (&[&Turn], &[Edge]),
    quantized_policy: &str,
    check_interrupts: &dyn Fn(),
) -> [u8; 32] {
    let interrupts = Interrupts::new(check_interrupts);
    let mut hasher = Sha256::new();
    let mut put = |bytes: &[u8]| {
        interrupts.bytes(bytes.len());
        hasher.update(bytes);
    };
    encode(&mut put, "graph_kernel/slice/v3");
    put(anchor.as_bytes());
    put(&(turns.len() as u32).to_le_bytes());
    for turn in turns {
        put(turn.id.as_bytes());
        encode(&mut put, &turn.session_id);
        encode(&mut put, turn.role.name());
        encode(&mut put, turn.phase.name());
        put(&turn.salience.to_le_bytes());
        put(&turn.trajectory_depth.to_le_bytes());
        put(&turn.trajectory_sibling_order.to_le_bytes());
        put(&turn.trajectory_homogeneity.to_le_bytes());
        put(&turn.trajectory_temporal.to_le_bytes());
        put(&turn.trajectory_complexity.to_le_bytes());
        put(&turn.created_at.to_le_bytes());
        match &turn.content_hash {
            None => put(&[0]),
            Some(hash) => {
                put(&[1]);
                encode(&mut put, hash);
            }
        }
    }
    put(&(edges.len() as u32).to_le_bytes());
    for edge in edges {
        put(edge.parent.as_bytes());
        put(edge.child.as_bytes());
        encode(&mut put, edge.edge_type.name());
    }
    encode(&mut put, quantized_policy);
    hasher.finalize().into()
}

/// Writes a text after its length, so that different sequences of texts have different bytes.
pub(crate) fn encode(put: &mut impl FnMut(&[u8]), text: &str) {
    put(&(text.len() as u32).to_le_bytes());
    put(text.as_bytes());
}
