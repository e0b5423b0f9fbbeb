//! Verification of an export: everything in it that can be computed is computed again.

use crate::export::document::{graph_snapshot_hash, slice_id};
use crate::export::parse::ParsedExport;
use crate::graph::SCHEMA_VERSION;
use crate::graph::turn::TurnId;
use crate::hex::hex;
use crate::interrupts::Interrupts;
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::policy::registry::PolicyRef;
use crate::trust::attestation::{ATTESTATION_VERSION, Attestation, Status, TokenFields, digest};
use crate::trust::keys::{VerifyingKey, VerifyingKeys};

/// What a verifier has: the name of its graph, and keys that check signatures.
pub trait KeyRing {
    /// The name of the graph slices are taken from here.
    fn graph(&self) -> &str;
    /// The keys that this kid names, if they are known.
    fn verifying_keys(&self, kid: &str) -> Option<VerifyingKeys>;
    /// Whether the kid was revoked.
    fn is_revoked(&self, kid: &str) -> bool;
    /// The key of published tokens that is shared with other programs, if there is one.
    fn shared_v2_key(&self) -> Option<VerifyingKey>;
    /// Called often while an export is read and hashed. A verifier that can be cancelled checks for it here.
    fn check_interrupts(&self) {}
}

named_enum! {
    /// What is checked, in order; the first that fails is the reason.
    Check {
        /// The text is an export, with exactly its keys, each once.
        WellFormed = "well_formed",
        /// Turns and edges ascend, without duplicates (§6.2).
        Ordered = "ordered",
        /// Policy, schema and attestation have versions that are known (§11).
        Versions = "versions",
        /// The anchor is a turn and all edges lie within the turns (§7.1, §7.4).
        Boundary = "boundary",
        /// The export has a claim.
        Attested = "attested",
        /// The fingerprint of the parameters is that of the policy.
        ParamsHash = "params_hash",
        /// No more turns than the policy allows (§7.2).
        Budget = "budget",
        /// The selection fingerprint is that of the selection (§6.3).
        SliceId = "slice_id",
        /// The content fingerprint is that of the turns.
        SnapshotHash = "graph_snapshot_hash",
        /// The digest is that of everything the export says.
        Digest = "digest",
        /// The key is known here.
        KnownKey = "known_key",
        /// The key was not revoked.
        LiveKey = "live_key",
        /// The slice was taken from the graph that is bound here.
        Graph = "graph",
        /// The attestation's token is the kernel's.
        Token = "token",
        /// The published token is the kernel's.
        PublishedToken = "admissibility_token",
    }
}

impl Check {
    /// Why an export is not valid when the check fails.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::WellFormed => "malformed",
            Self::Ordered => "unordered",
            Self::Versions => "unknown_version",
            Self::Boundary => "boundary",
            Self::Attested => "unattested",
            Self::ParamsHash => "params_hash_mismatch",
            Self::Budget => "over_budget",
            Self::SliceId => "slice_id_mismatch",
            Self::SnapshotHash | Self::Digest => "digest_mismatch",
            Self::KnownKey => "unknown_key",
            Self::LiveKey => "revoked_key",
            Self::Graph => "other_graph",
            Self::Token | Self::PublishedToken => "bad_mac",
        }
    }
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// What was checked.
    pub check: Check,
    /// Whether it holds.
    pub ok: bool,
    /// What was compared.
    pub detail: String,
}

/// The result of a verification.
pub struct Verdict {
    /// The result of every check that could be made, in order.
    pub checks: Vec<CheckResult>,
    /// The export, when it is one.
    pub export: Option<ParsedExport>,
}

impl Verdict {
    /// `ok`, or the reason why the export is not valid, one of [`Check::reason`].
    #[must_use]
    pub fn reason(&self) -> &'static str {
        let failed = self.checks.iter().find(|outcome| !outcome.ok);
        failed.map_or("ok", |outcome| outcome.check.reason())
    }

    /// The export, when every check holds.
    #[must_use]
    pub fn valid(&self) -> Option<&ParsedExport> {
        self.export.as_ref().filter(|_| self.reason() == "ok")
    }

    /// What the export says of its origin.
    #[must_use]
    pub fn attestation(&self) -> Option<&Attestation> {
        self.export.as_ref()?.attestation.as_ref()
    }

    /// The id that the export gives its slice.
    #[must_use]
    pub fn slice_id(&self) -> Option<&str> {
        self.export.as_ref().map(|export| export.slice_id.as_str())
    }

    fn note(&mut self, check: Check, ok: bool, detail: impl Into<String>) {
        self.checks.push(CheckResult { check, ok, detail: detail.into() });
    }

    fn compare(&mut self, check: Check, given: &str, computed: &str) {
        let ok = given == computed;
        let sign = if ok { "=" } else { "<>" };
        self.note(check, ok, format!("given {given} {sign} computed {computed}"));
    }
}

/// Verifies an export. Every check is made that the export allows, also after one has failed.
#[must_use]
pub fn verify(text: &str, ring: &impl KeyRing) -> Verdict {
    let mut verdict = Verdict { checks: Vec::new(), export: None };
    let check_interrupts = || ring.check_interrupts();
    match ParsedExport::parse(text, &check_interrupts) {
        Ok(export) => {
            verdict.note(Check::WellFormed, true, "keys exact and unique");
            check_without_keys(&mut verdict, &export, &check_interrupts);
            match &export.attestation {
                Some(attestation) if attestation.status == Status::Attested => {
                    check_claim(&mut verdict, &export, attestation, ring);
                }
                Some(_) => verdict.note(
                    Check::Attested,
                    false,
                    "the slice saw changes of its own transaction",
                ),
                None => verdict.note(Check::Attested, false, "there is no attestation"),
            }
            verdict.export = Some(export);
        }
        Err(error) => verdict.note(Check::WellFormed, false, error),
    }
    verdict
}

/// Whether the versions of policy, schema and attestation are known, and the attested policy has the version that the
/// export names.
#[must_use]
pub fn has_known_versions(export: &ParsedExport) -> bool {
    let is_known = |attestation: &Attestation| {
        attestation.v == ATTESTATION_VERSION && attestation.policy.id() == export.policy_id
    };
    SlicePolicy::IDS.contains(&export.policy_id.as_str())
        && export.schema_version == SCHEMA_VERSION
        && export.attestation.as_ref().is_none_or(is_known)
}

/// Makes the checks that need no key.
fn check_without_keys(verdict: &mut Verdict, export: &ParsedExport, check_interrupts: &dyn Fn()) {
    let ordered = export.is_ordered();
    verdict.note(Check::Ordered, ordered, "turns by id, edges by parent, child, type");

    let versions = has_known_versions(export);
    let detail = format!("policy {}, schema {}", export.policy_id, export.schema_version);
    verdict.note(Check::Versions, versions, detail);

    let interrupts = Interrupts::new(check_interrupts);
    let mut ids: Vec<TurnId> = export.turns.iter().map(|turn| turn.id).collect();
    ids.sort_unstable_by(|a, b| {
        interrupts.item();
        a.cmp(b)
    });
    let contains = |id: TurnId| {
        interrupts.item();
        ids.binary_search(&id).is_ok()
    };
    let outside = export.edges.iter().filter(|e| !contains(e.parent) || !contains(e.child)).count();
    let anchor = if contains(export.anchor) { "is a turn" } else { "is not a turn" };
    let boundary = outside == 0 && contains(export.anchor);
    verdict.note(Check::Boundary, boundary, format!("anchor {anchor}, {outside} edges outside"));
}

/// The checks of an export that need no key, in order.
#[must_use]
pub fn consistency(export: &ParsedExport, check_interrupts: &dyn Fn()) -> Vec<CheckResult> {
    let mut verdict = Verdict { checks: Vec::new(), export: None };
    check_without_keys(&mut verdict, export, check_interrupts);
    match export.attestation.as_ref().filter(|claim| claim.status == Status::Attested) {
        Some(attestation) => {
            check_fingerprints(&mut verdict, export, attestation, check_interrupts);
        }
        None => verdict.note(Check::Attested, false, "there is no claim"),
    }
    verdict.checks
}

/// Computes again what the export and its attestation say of the slice. Returns the digest.
fn check_fingerprints(
    verdict: &mut Verdict,
    export: &ParsedExport,
    attestation: &Attestation,
    check_interrupts: &dyn Fn(),
) -> [u8; 32] {
    let policy = &attestation.policy;
    verdict.note(Check::Attested, true, format!("by {}", attestation.kid));
    verdict.compare(Check::ParamsHash, &export.params_hash, &policy.params_hash());
    let (turns, max_nodes) = (export.turns.len(), policy.max_nodes());
    verdict.note(Check::Budget, turns <= max_nodes, format!("{turns} of {max_nodes} turns"));

    let refs = export.turn_refs();
    let all = (&refs[..], &export.edges[..]);
    let policy_ref = PolicyRef { policy_id: policy.id(), params_hash: &export.params_hash };
    let selection = slice_id(export.anchor, all, policy_ref, check_interrupts);
    verdict.compare(Check::SliceId, &export.slice_id, &selection);
    let content = graph_snapshot_hash(&refs, export.edges.len(), check_interrupts);
    verdict.compare(Check::SnapshotHash, export.snapshot_hash(), &content);
    let everything = digest(export.anchor, all, &policy.quantized_text(), check_interrupts);
    verdict.compare(Check::Digest, &attestation.digest, &hex(&everything));
    everything
}

/// Checks what the attestation claims.
fn check_claim(
    verdict: &mut Verdict,
    export: &ParsedExport,
    attestation: &Attestation,
    ring: &impl KeyRing,
) {
    let check_interrupts = || ring.check_interrupts();
    let everything = check_fingerprints(verdict, export, attestation, &check_interrupts);
    let keys = ring.verifying_keys(&attestation.kid);
    verdict.note(Check::KnownKey, keys.is_some(), attestation.kid.clone());
    let revoked = ring.is_revoked(&attestation.kid);
    verdict.note(Check::LiveKey, !revoked, if revoked { "revoked" } else { "not revoked" });
    verdict.compare(Check::Graph, &attestation.graph, ring.graph());
    if let Some(keys) = keys {
        check_tokens(verdict, export, attestation, everything, &keys, ring);
    }
}

fn check_tokens(
    verdict: &mut Verdict,
    export: &ParsedExport,
    attestation: &Attestation,
    digest: [u8; 32],
    keys: &VerifyingKeys,
    ring: &impl KeyRing,
) {
    let fields = TokenFields {
        slice_id: &export.slice_id,
        anchor: export.anchor,
        policy_id: &export.policy_id,
        params_hash: &export.params_hash,
        graph_snapshot_hash: export.snapshot_hash(),
        schema_version: &export.schema_version,
    };
    let signed = attestation.verify(keys, &fields, digest);
    verdict.note(Check::Token, signed, "HMAC-SHA256 over the digest and its circumstances");
    let published = export
        .admissibility_token
        .as_deref()
        .is_some_and(|token| has_published_token(&fields, token, keys, ring));
    verdict.note(Check::PublishedToken, published, "truncated HMAC-SHA256 over the fingerprints");
}

/// Whether the published token is that of the fields: under the epoch's key or the shared one.
pub(crate) fn has_published_token(
    fields: &TokenFields<'_>,
    token: &str,
    keys: &VerifyingKeys,
    ring: &impl KeyRing,
) -> bool {
    let shared = || ring.shared_v2_key().is_some_and(|key| fields.verify(&key, token));
    fields.verify(&keys.v2, token) || shared()
}
