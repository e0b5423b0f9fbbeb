//! Proofs: signed statements about exports and records that anyone can check with a public key (PROOF.md).
//!
//! A proof is an in-toto Statement v1 in a DSSE v1 envelope, signed by Ed25519.

use base64ct::{Base64, Encoding};
use serde::{Serialize, Serializer};

use crate::graph::turn::TurnId;
use crate::hex::hex;
use crate::json::canonical::json_text;
use crate::json::object::{Object, ParseError};
use crate::json::{JsonLimits, JsonValue};
use crate::named_enum::named_enum;
use crate::policy::SlicePolicy;
use crate::prompt::record::{Document, text_hash};
use crate::trust::keys::{ProofKey, PublicKey};
use crate::verification::verify::{Verdict, consistency};

/// The longest proof that is read, in bytes.
pub const MAX_PROOF_BYTES: usize = 64 * 1024;

const LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_PROOF_BYTES, values: 1024, token_bytes: MAX_PROOF_BYTES };

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The types of statements about a slice and about a prompt.
const SLICE_TYPE: &str = "urn:x-graph-kernel:slice:v1";
const PROMPT_TYPE: &str = "urn:x-graph-kernel:prompt:v1";

named_enum! {
    /// Where the root of a key is kept, as its holder says.
    KeySource {
        /// In the database.
        Database = "database",
        /// In a file outside the database.
        File = "file",
    }
}

named_enum! {
    /// Why a proof is not accepted, in the order in which it is checked.
    ProofRefusal {
        /// The key is not an Ed25519 public key in PEM.
        MalformedKey = "malformed_key",
        /// The proof is not an envelope with one signature of a statement of this type.
        MalformedProof = "malformed_proof",
        /// The signature is not that of the statement under the key.
        BadSignature = "bad_signature",
        /// The text is neither an export nor a record.
        MalformedExport = "malformed_export",
        /// The statement is about another document.
        OtherExport = "other_export",
        /// Document and statement do not agree, or the document does not with itself.
        Inconsistent = "inconsistent",
    }
}

/// The proof of a document, where it is valid; `None` where it is not, or the key is not that of its attestation.
#[must_use]
pub fn proof(
    verdict: &Verdict,
    key: &ProofKey,
    source: KeySource,
    check_interrupts: &dyn Fn(),
) -> Option<String> {
    let document = verdict.valid()?;
    let statement = InTotoStatement::of(document, digest_of(document, check_interrupts), source)?;
    if statement.predicate.kid != key.kid {
        return None;
    }
    let payload = json_text(&statement);
    let signature = key.sign(&signed_bytes(payload.as_bytes()));
    Some(json_text(&Envelope {
        payload: Base64::encode_string(payload.as_bytes()),
        payload_type: PAYLOAD_TYPE,
        signatures: [EnvelopeSignature {
            keyid: key.kid.clone(),
            sig: Base64::encode_string(&signature),
        }],
    }))
}

/// Checks that a proof is the proof of this document, under a public key in PEM. Nothing else is needed for it: no key
/// that is secret, and no table.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify_proof(
    document: &str,
    proof: &str,
    public_key: &str,
    check_interrupts: &dyn Fn(),
) -> Result<Document, ProofRefusal> {
    let key = PublicKey::from_pem(public_key).ok_or(ProofRefusal::MalformedKey)?;
    let signed = read_envelope(proof).map_err(|_| ProofRefusal::MalformedProof)?;
    if !key.verify(&signed_bytes(&signed.payload), &signed.signature) {
        return Err(ProofRefusal::BadSignature);
    }
    let stated = read_statement(&signed.payload).map_err(|_| ProofRefusal::MalformedProof)?;
    let document =
        Document::parse(document, check_interrupts).map_err(|_| ProofRefusal::MalformedExport)?;
    let digest = digest_of(&document, check_interrupts);
    if stated.subject[0].digest.sha256 != digest {
        return Err(ProofRefusal::OtherExport);
    }
    let source = stated.predicate.key_source;
    let claim = document.export.attestation.as_ref();
    let says_the_same = InTotoStatement::of(&document, digest, source) == Some(stated)
        && claim.is_some_and(|claim| claim.kid == signed.key_id);
    if says_the_same && consistency(&document, check_interrupts).iter().all(|check| check.ok) {
        Ok(document)
    } else {
        Err(ProofRefusal::Inconsistent)
    }
}

/// The bytes that DSSE signs (its pre-authentication encoding).
fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn digest_of(document: &Document, check_interrupts: &dyn Fn()) -> String {
    hex(&text_hash(&document.canonical_text(check_interrupts), check_interrupts))
}

#[derive(Serialize)]
struct Envelope {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: &'static str,
    signatures: [EnvelopeSignature; 1],
}

#[derive(Serialize)]
struct EnvelopeSignature {
    keyid: String,
    sig: String,
}

/// What an envelope holds.
struct Signed {
    payload: Vec<u8>,
    key_id: String,
    signature: [u8; 64],
}

#[derive(PartialEq, Serialize)]
struct InTotoStatement {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: [Subject; 1],
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(PartialEq, Serialize)]
struct Subject {
    name: String,
    digest: SubjectDigest,
}

#[derive(PartialEq, Serialize)]
struct SubjectDigest {
    sha256: String,
}

#[derive(PartialEq, Serialize)]
struct Predicate {
    anchor_turn_id: TurnId,
    policy_id: String,
    policy_params_hash: String,
    #[serde(serialize_with = "quantized")]
    policy: SlicePolicy,
    turns: usize,
    edges: usize,
    slice_id: String,
    graph_snapshot_hash: String,
    schema_version: String,
    graph: String,
    role: String,
    rls: bool,
    kid: String,
    key_source: KeySource,
    /// What a statement about a prompt has in addition.
    #[serde(flatten)]
    prompt: Option<PromptPredicate>,
}

#[derive(PartialEq, Serialize)]
struct PromptPredicate {
    prompt_digest: String,
    messages: usize,
    tokens: u64,
}

fn quantized<S: Serializer>(policy: &SlicePolicy, serializer: S) -> Result<S::Ok, S::Error> {
    policy.quantized().serialize(serializer)
}

impl InTotoStatement {
    /// The statement about a document; `None` where it has no attestation.
    fn of(document: &Document, sha256: String, key_source: KeySource) -> Option<Self> {
        let Document { export, record } = document;
        let attestation = export.attestation.as_ref()?;
        let prompt = record.as_ref().map(|record| PromptPredicate {
            prompt_digest: hex(&record.digest),
            messages: record.messages.len(),
            tokens: record.tokens(),
        });
        let (name, predicate_type) = match &prompt {
            Some(prompt) => (format!("prompt/{}", prompt.prompt_digest), PROMPT_TYPE),
            None => (format!("slice/{}", export.slice_id), SLICE_TYPE),
        };
        Some(InTotoStatement {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: [Subject { name, digest: SubjectDigest { sha256 } }],
            predicate_type: predicate_type.to_owned(),
            predicate: Predicate {
                anchor_turn_id: export.anchor,
                policy_id: export.policy_id.clone(),
                policy_params_hash: export.params_hash.clone(),
                policy: attestation.policy.clone(),
                turns: export.turns.len(),
                edges: export.edges.len(),
                slice_id: export.slice_id.clone(),
                graph_snapshot_hash: export.snapshot_hash().to_owned(),
                schema_version: export.schema_version.clone(),
                graph: attestation.graph.clone(),
                role: attestation.role.clone(),
                rls: attestation.rls,
                kid: attestation.kid.clone(),
                key_source,
                prompt,
            },
        })
    }
}

fn read_envelope(text: &str) -> Result<Signed, ParseError> {
    let mut envelope = Object::new("proof", JsonValue::read(text, LIMITS, &|| ())?)?;
    let payload = base64(&envelope.string("payload")?)?;
    envelope.read("payloadType", PAYLOAD_TYPE, |json| is_text(json, PAYLOAD_TYPE))?;
    let mut signatures = envelope.list("signatures", |json| {
        let mut signature = Object::new("signature", json)?;
        let key_id = signature.string("keyid")?;
        let bytes = base64(&signature.string("sig")?)?;
        signature.finish()?;
        let bytes = bytes.try_into().map_err(|_| "signature has not 64 bytes".to_owned())?;
        Ok((key_id, bytes))
    })?;
    envelope.finish()?;
    let (Some((key_id, signature)), true) = (signatures.pop(), signatures.is_empty()) else {
        return Err("proof must have one signature".to_owned());
    };
    Ok(Signed { payload, key_id, signature })
}

fn read_statement(payload: &[u8]) -> Result<InTotoStatement, ParseError> {
    let text = str::from_utf8(payload).map_err(|_| "statement is not UTF-8".to_owned())?;
    let mut statement = Object::new("statement", JsonValue::read(text, LIMITS, &|| ())?)?;
    statement.read("_type", STATEMENT_TYPE, |json| is_text(json, STATEMENT_TYPE))?;
    let subjects = statement.list("subject", |json| {
        let mut subject = Object::new("subject", json)?;
        let name = subject.string("name")?;
        let mut digest = subject.nested("digest", "an object")?;
        let sha256 = digest.hex("sha256", 64)?;
        digest.finish()?;
        subject.finish()?;
        Ok(Subject { name, digest: SubjectDigest { sha256 } })
    })?;
    let predicate_type = statement.string("predicateType")?;
    let of_prompt = match &*predicate_type {
        SLICE_TYPE => false,
        PROMPT_TYPE => true,
        _ => return Err("predicateType is not known".to_owned()),
    };
    let predicate = read_predicate(statement.take("predicate")?, of_prompt)?;
    statement.finish()?;
    Ok(InTotoStatement {
        statement_type: STATEMENT_TYPE.to_owned(),
        subject: subjects.try_into().map_err(|_| "statement must have one subject".to_owned())?,
        predicate_type,
        predicate,
    })
}

fn read_predicate(json: JsonValue<'_>, of_prompt: bool) -> Result<Predicate, ParseError> {
    let mut predicate = Object::new("predicate", json)?;
    let read = Predicate {
        anchor_turn_id: predicate.id("anchor_turn_id")?,
        policy_id: predicate.string("policy_id")?,
        policy_params_hash: predicate.hex("policy_params_hash", 16)?,
        policy: SlicePolicy::from_quantized(predicate.take("policy")?)
            .map_err(|error| format!("predicate.policy: {error}"))?,
        turns: predicate.count("turns")? as usize,
        edges: predicate.count("edges")? as usize,
        slice_id: predicate.hex("slice_id", 16)?,
        graph_snapshot_hash: predicate.hex("graph_snapshot_hash", 16)?,
        schema_version: predicate.string("schema_version")?,
        graph: predicate.string("graph")?,
        role: predicate.string("role")?,
        rls: predicate.boolean("rls")?,
        kid: predicate.string("kid")?,
        key_source: predicate.named("key_source", KeySource::from_name)?,
        prompt: of_prompt.then(|| read_prompt(&mut predicate)).transpose()?,
    };
    predicate.finish()?;
    Ok(read)
}

fn read_prompt(predicate: &mut Object<'_>) -> Result<PromptPredicate, ParseError> {
    Ok(PromptPredicate {
        prompt_digest: predicate.hex("prompt_digest", 64)?,
        messages: predicate.count("messages")? as usize,
        tokens: u64::try_from(predicate.integer("tokens")?).map_err(|_| "tokens are negative")?,
    })
}

fn is_text(json: &JsonValue<'_>, text: &str) -> Option<()> {
    matches!(json, JsonValue::String(value) if value == text).then_some(())
}

/// The bytes of standard base64 with padding, which has one spelling.
fn base64(text: &str) -> Result<Vec<u8>, ParseError> {
    Base64::decode_vec(text).map_err(|_| "not base64".to_owned())
}
