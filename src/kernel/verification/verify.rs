//! Verification of an export, or of a record with the export that it holds: everything that can be computed is computed
//! again.

use std::collections::HashMap;

use crate::export::document::{graph_snapshot_hash, slice_id};
use crate::export::parse::ParsedExport;
use crate::graph::SCHEMA_VERSION;
use crate::graph::conversation::Utterance;
use crate::graph::turn::{Role, Turn, TurnId, is_in_second};
use crate::hex::hex;
use crate::interrupts::Interrupts;
use crate::json::object::ParseError;
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::policy::registry::PolicyRef;
use crate::prompt::messages::order;
use crate::prompt::record::{Document, Record, RecordedMessage};
use crate::slicing::slice::Part;
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
        /// The text is an export or a record, with exactly its keys, each once.
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
        /// The messages of a record are the turns of its slice, each once, as the slice and its policy have them.
        Messages = "messages",
        /// The messages are in the order in which a model is shown them.
        MessageOrder = "message_order",
        /// The digest of a record is that of its messages, its context and its slice.
        PromptDigest = "prompt_digest",
        /// The token of a record is the kernel's.
        PromptToken = "prompt_token",
    }
}

impl Check {
    /// Why a document is not valid when the check fails.
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
            Self::Messages => "other_turns",
            Self::MessageOrder => "other_order",
            Self::PromptDigest => "prompt_digest_mismatch",
            Self::PromptToken => "prompt_token_mismatch",
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
    /// The document, when it is one.
    pub document: Option<Document>,
}

impl Verdict {
    /// `ok`, or the reason why the document is not valid, one of [`Check::reason`] and [`Status::reason`].
    #[must_use]
    pub fn reason(&self) -> &'static str {
        let failed = self.checks.iter().find(|outcome| !outcome.ok).map(|outcome| outcome.check);
        match (failed, self.attestation()) {
            (Some(Check::Attested), Some(claim)) => claim.status.reason(),
            (failed, _) => failed.map_or("ok", Check::reason),
        }
    }

    /// The document, when every check holds.
    #[must_use]
    pub fn valid(&self) -> Option<&Document> {
        self.document.as_ref().filter(|_| self.reason() == "ok")
    }

    /// What the export says of its origin.
    #[must_use]
    pub fn attestation(&self) -> Option<&Attestation> {
        self.document.as_ref()?.export.attestation.as_ref()
    }

    /// The id that the export gives its slice.
    #[must_use]
    pub fn slice_id(&self) -> Option<&str> {
        self.document.as_ref().map(|document| document.export.slice_id.as_str())
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
pub fn verify_export(text: &str, ring: &impl KeyRing) -> Verdict {
    let export = ParsedExport::parse(text, &|| ring.check_interrupts());
    verdict(export.map(|export| Document { export, record: None }), ring)
}

/// As [`verify_export`], of an export or a record.
#[must_use]
pub fn verify_document(text: &str, ring: &impl KeyRing) -> Verdict {
    verdict(Document::parse(text, &|| ring.check_interrupts()), ring)
}

fn verdict(document: Result<Document, ParseError>, ring: &impl KeyRing) -> Verdict {
    let mut verdict = Verdict { checks: Vec::new(), document: None };
    let check_interrupts = || ring.check_interrupts();
    match document {
        Ok(document) => {
            verdict.note(Check::WellFormed, true, "keys exact and unique");
            let export = &document.export;
            check_without_keys(&mut verdict, export, &check_interrupts);
            match &export.attestation {
                Some(attestation) if attestation.status == Status::Attested => {
                    check_claim(&mut verdict, &document, attestation, ring);
                }
                Some(attestation) => {
                    let why = match attestation.status {
                        Status::Distributed => {
                            "the slice was read from several servers without a snapshot in common"
                        }
                        _ => "the slice saw changes of its own transaction",
                    };
                    verdict.note(Check::Attested, false, why);
                }
                None => verdict.note(Check::Attested, false, "there is no attestation"),
            }
            verdict.document = Some(document);
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

/// The checks of a document that need no key, in order.
#[must_use]
pub fn consistency(document: &Document, check_interrupts: &dyn Fn()) -> Vec<CheckResult> {
    let mut verdict = Verdict { checks: Vec::new(), document: None };
    let export = &document.export;
    check_without_keys(&mut verdict, export, check_interrupts);
    match export.attestation.as_ref().filter(|claim| claim.status == Status::Attested) {
        Some(attestation) => {
            check_fingerprints(&mut verdict, export, attestation, check_interrupts);
            if let Some(record) = &document.record {
                check_record(&mut verdict, record, export, attestation, check_interrupts);
            }
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
    Document { export, record }: &Document,
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
    if let Some(keys) = &keys {
        check_tokens(verdict, export, attestation, everything, keys, ring);
    }
    if let Some(record) = record {
        check_record(verdict, record, export, attestation, &check_interrupts);
        if let Some(keys) = &keys {
            let signed = record.verify(attestation, keys);
            verdict.note(Check::PromptToken, signed, "HMAC-SHA256 over the digest of the prompt");
        }
    }
}

/// Computes again what a record says of the messages.
fn check_record(
    verdict: &mut Verdict,
    record: &Record,
    export: &ParsedExport,
    attestation: &Attestation,
    check_interrupts: &dyn Fn(),
) {
    let wrong = wrong_message(record, export, &attestation.policy, check_interrupts);
    let count = record.messages.len();
    verdict.note(
        Check::Messages,
        wrong.is_none(),
        wrong.clone().unwrap_or(format!("{count} turns")),
    );
    // Only different turns have an order.
    if wrong.is_none() {
        let turns: Vec<(Utterance, Part)> = record.messages.iter().map(placed).collect();
        let order = order(&turns, &export.edges, &attestation.policy, check_interrupts);
        let mut pairs = record.messages.iter().zip(&order);
        let wrong = pairs.position(|(message, id)| message.turn_id != *id);
        let detail = match wrong {
            None => "parents before their children, else by time and id".to_owned(),
            Some(place) => format!("message {} should be turn {}", place + 1, order[place]),
        };
        verdict.note(Check::MessageOrder, wrong.is_none(), detail);
    }
    let computed = record.computed_digest(attestation, check_interrupts);
    verdict.compare(Check::PromptDigest, &hex(&record.digest), &hex(&computed));
}

fn placed(message: &RecordedMessage) -> (Utterance, Part) {
    let RecordedMessage { turn_id, part, role, created_at, .. } = message;
    let time = created_at.unwrap_or(0);
    (Utterance { id: *turn_id, time, is_result: *role == Role::Tool }, *part)
}

/// The first message that is not a turn of the slice, given once, as the slice and its policy have it; or which turn is
/// missing.
fn wrong_message(
    record: &Record,
    export: &ParsedExport,
    policy: &SlicePolicy,
    check_interrupts: &dyn Fn(),
) -> Option<String> {
    let interrupts = Interrupts::new(check_interrupts);
    let mut left: HashMap<TurnId, &Turn> =
        export.turns.iter().map(|turn| (turn.id, turn)).collect();
    for (place, message) in (1..).zip(&record.messages) {
        interrupts.item();
        let RecordedMessage { turn_id, part, role, created_at, .. } = message;
        let is_anchor = *turn_id == export.anchor;
        let can_be_in_part = match part {
            Part::Anchor => is_anchor || policy.keeps_tool_results(),
            Part::Pinned => !is_anchor && !policy.pins().is_empty(),
            Part::Line => !is_anchor && policy.max_radius() > 0,
            Part::Recalled => !is_anchor && policy.seeds().next().is_some(),
        };
        let what = match left.remove(turn_id) {
            None => "is not a turn of the slice, or is given before",
            Some(turn) if turn.role != *role => "has another role in the slice",
            Some(turn) if !is_in_second(*created_at, turn.created_at) => {
                "has another time in the slice"
            }
            Some(_) if !can_be_in_part => "cannot be in this part by the policy",
            Some(_) => continue,
        };
        return Some(format!("message {place}: {turn_id} {what}"));
    }
    left.keys().min().map(|id| format!("turn {id} is not among the messages"))
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
