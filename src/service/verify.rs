//! Checking exports and tokens against this database's keys, and slices taken again.

use kernel::explain::diff::{Difference, differences};
use kernel::export::parse::ParsedExport;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::trust::attestation::{Status, TokenFields};
use kernel::verification::proof::{ProofRefusal, proof as proof_of, verify_proof};
use kernel::verification::verify::{
    KeyRing, Verdict, has_known_versions, verify_document, verify_export,
};
use pgrx::PgSqlErrorCode;

use super::refusals;
use super::slices::ReadSlice;
use crate::pg::error::{SqlError, Word};
use crate::pg::guc;
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::keys::Keys;
use crate::pg::session::{COMMIT_FIRST, NOT_DISTRIBUTED};
use crate::pg::tables::graph::Graph;

/// The keys that verify what this database signed for the graph that the session has chosen.
///
/// # Errors
/// As [`Graph::attested_name`] and [`Keys::load`].
pub fn keys() -> Result<Keys, SqlError> {
    keys_of(&guc::graph())
}

/// The keys that verify what this database signed for the graph that is bound under this name.
///
/// # Errors
/// As [`keys`].
pub fn keys_of(binding: &str) -> Result<Keys, SqlError> {
    Keys::load(Graph::attested_name(binding)?)
}

/// The result of verifying an export or a record under these keys.
pub fn verified(document: &str, keys: &Keys) -> Verdict {
    noted(verify_document(document, keys))
}

fn noted(verdict: Verdict) -> Verdict {
    refusals::note("slice", verdict.reason(), verdict.slice_id());
    verdict
}

/// The result of verifying the text of an export or a record; "" is malformed.
///
/// # Errors
/// As [`keys`].
pub fn verdict(document: &str) -> Result<Verdict, SqlError> {
    Ok(verified(document, &keys()?))
}

/// The result of verifying an export's text: a record is malformed.
///
/// # Errors
/// As [`keys`].
pub fn verdict_of_export(export: &str) -> Result<Verdict, SqlError> {
    Ok(noted(verify_export(export, &keys()?)))
}

/// Those of these turns that are in an export that verifies; none where it does not.
///
/// # Errors
/// As [`keys`].
pub fn admissible_turns(export: &str, mut turns: Vec<TurnId>) -> Result<Vec<TurnId>, SqlError> {
    let verdict = verdict_of_export(export)?;
    turns.retain(|turn| verdict.valid().is_some_and(|valid| valid.export.contains(*turn)));
    Ok(turns)
}

/// Checks a proof of a document under a public key. Needs no key and no table of this database.
///
/// # Errors
/// Why the proof is not accepted.
pub fn check_proof(document: &str, proof: &str, public_key: &str) -> Result<(), ProofRefusal> {
    let checked = verify_proof(document, proof, public_key, &check_interrupts).map(drop);
    refusals::note("proof", checked.map_or_else(ProofRefusal::name, |()| "ok"), None);
    checked
}

/// The proof of an export or a record that verifies.
///
/// # Errors
/// 22023 when it does not; else as [`keys`].
pub fn proof(document: &str) -> Result<String, SqlError> {
    let keys = keys()?;
    let verdict = verified(document, &keys);
    let claim = verdict.attestation().filter(|_| verdict.valid().is_some());
    let key = claim.map(|claim| keys.proof_key(&claim.kid)).transpose()?.flatten();
    let proof = key.and_then(|key| proof_of(&verdict, &key, keys.source(), &check_interrupts));
    proof.ok_or_else(|| not_admissible(&verdict))
}

/// The error of a call that needs a document that verifies.
pub fn not_admissible(verdict: &Verdict) -> SqlError {
    refused(verdict, verdict.document.as_ref().is_some_and(|document| document.record.is_some()))
}

/// The error of a call that needs a record that verifies.
pub fn not_admissible_record(verdict: &Verdict) -> SqlError {
    refused(verdict, true)
}

fn refused(verdict: &Verdict, has_record: bool) -> SqlError {
    let what = if has_record { "prompt record" } else { "slice" };
    SqlError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("{what} does not verify: {}", verdict.reason()),
    )
    .word(Word::NotAdmissible)
    .reason(verdict.reason())
    .hint(match verdict.attestation() {
        Some(claim) if claim.status == Status::Uncommitted => COMMIT_FIRST,
        Some(claim) if claim.status == Status::Distributed => NOT_DISTRIBUTED,
        _ if verdict.reason() == "other_graph" => {
            "SET graph_kernel.graph to the binding that it is of: SELECT name, graph FROM graph_kernel.bindings;"
        }
        _ if has_record => match verdict.reason() {
            "unknown_key" | "revoked_key" | "unknown_version" => {
                "Take the record again, and give what graph_messages_record returns."
            }
            _ => GIVE_THE_RECORD,
        },
        _ => way_out(verdict.reason()),
    })
}

/// What to do about a record that does not verify as it stands.
pub const GIVE_THE_RECORD: &str = "Give the record as graph_messages_record returned it. What does not fit is \
                                   listed by graph_verify_explain.";

/// What to do about an export that does not verify for this reason, which is not that of its graph or its transaction.
pub fn way_out(reason: &str) -> &'static str {
    match reason {
        "unknown_key" | "revoked_key" | "unknown_version" => {
            "Take the slice again, and give what graph_slice returns."
        }
        _ => {
            "Give the export as graph_slice returned it. What does not fit is listed by graph_verify_explain."
        }
    }
}

/// Whether a published token was made for these fields with a key of this database that is not revoked.
///
/// # Errors
/// As [`keys`].
pub fn verify_token(token: &str, fields: &TokenFields<'_>) -> Result<bool, SqlError> {
    let keys = keys()?;
    let own = keys.all().into_iter().filter(|epoch| !keys.is_revoked(&epoch.kid));
    let is_valid = own.into_iter().any(|epoch| fields.verify(&epoch.v2, token))
        || keys.shared_v2_key().is_some_and(|key| fields.verify(&key, token));
    refusals::note("token", if is_valid { "ok" } else { "bad_token" }, Some(fields.slice_id));
    Ok(is_valid)
}

/// Why an export cannot be compared with the slice taken now.
pub struct Unreplayable {
    /// A stable word.
    pub reason: &'static str,
    /// The value that the reason refers to.
    pub about: Option<String>,
}

/// A difference between an export and the slice taken now.
pub enum Drift {
    /// A turn or an edge.
    Content(Difference),
    /// A fingerprint of the whole: its key, its value in the export, its value now.
    Fingerprint(&'static str, String, String),
}

/// What comparing an export with the slice taken now has found.
pub struct Replayed {
    /// What differs.
    pub drifts: Vec<Drift>,
    /// How many of the export's turns have no content hash: an edit of their contents shows nowhere.
    pub without_content_hash: usize,
}

/// Takes an export's slice again, by the policy given or the attested one, and compares. `Ok(Err(_))` where that
/// cannot be done.
///
/// # Errors
/// Where the slice could be taken and not exported.
pub fn replay(
    text: &str,
    policy: Option<SlicePolicy>,
) -> Result<Result<Replayed, Unreplayable>, SqlError> {
    let graph = Graph::attested_name(&guc::graph())?;
    let (export, policy) = match replayable(text, policy, &graph) {
        Ok(replayable) => replayable,
        Err(unreplayable) => return Ok(Err(unreplayable)),
    };
    let taken = match ReadSlice::at(export.anchor, &policy) {
        Ok(taken) => taken,
        Err(error) if error.is(Word::TablesChanged) => return Err(error),
        Err(error) => {
            return Ok(Err(unreplayable(error.word_name(), Some(error.message().to_owned()))));
        }
    };
    let now = taken.unsigned()?;
    let mut drifts = Vec::new();
    let (was, is) = ((&export.turn_refs()[..], &export.edges[..]), (&now.turns[..], now.edges));
    let has_contents = export.has_contents();
    differences(was, is, &check_interrupts, &mut |found| match found {
        Difference::TurnField { field: "content_hash", .. } if !has_contents => {}
        found => drifts.push(Drift::Content(found)),
    });
    for (key, was, now) in [
        ("slice_id", Some(&export.slice_id), &now.slice_id),
        (
            "graph_snapshot_hash",
            export.graph_snapshot_hash.as_ref().filter(|_| has_contents),
            &now.graph_snapshot_hash,
        ),
    ] {
        if let Some(was) = was
            && was != now
        {
            drifts.push(Drift::Fingerprint(key, was.clone(), now.clone()));
        }
    }
    let without_content_hash = was.0.iter().filter(|turn| turn.content_hash.is_none()).count();
    Ok(Ok(Replayed { drifts, without_content_hash }))
}

/// The export and the policy it was made by.
fn replayable(
    text: &str,
    policy: Option<SlicePolicy>,
    graph: &str,
) -> Result<(ParsedExport, SlicePolicy), Unreplayable> {
    let export = ParsedExport::parse(text, &check_interrupts)
        .map_err(|error| unreplayable("malformed", Some(error)))?;
    if !has_known_versions(&export) {
        return Err(unreplayable("unknown_version", None));
    }
    if let Some(attestation) = &export.attestation
        && attestation.graph != graph
    {
        return Err(unreplayable("other_graph", Some(attestation.graph.clone())));
    }
    let attested = export.attestation.as_ref().map(|attestation| attestation.policy.clone());
    let policy = match (policy, attested) {
        // A policy keeps its name whatever it pins.
        (Some(given), Some(attested)) if given == attested.without_inputs() => attested,
        (given, attested) => given.or(attested).ok_or_else(|| unreplayable("no_policy", None))?,
    };
    if policy.params_hash() != export.params_hash {
        return Err(unreplayable("params_hash_mismatch", Some(export.params_hash.clone())));
    }
    Ok((export, policy))
}

fn unreplayable(reason: &'static str, about: Option<String>) -> Unreplayable {
    Unreplayable { reason, about }
}
