//! Signed documents, and the JSON in which they are: what is accepted reads back from its canonical text and as jsonb
//! rewrites it; what verifies says what was signed, and nothing else; what is signed verifies.

use kernel::binary::{from_cbor, is_packed, pack, to_cbor, unpack};
use kernel::export::document::{Export, canonical_text};
use kernel::json::{JsonError, JsonLimits, JsonValue};
use kernel::export::parse::ParsedExport;
use kernel::drawing::export::{dot, mermaid};
use kernel::explain::diff;
use kernel::graph::turn::{Role, TurnId};
use kernel::policy::SlicePolicy;
use kernel::prompt::kept::KeptMessage;
use kernel::prompt::record::{Document, Record, RecordedMessage};
use kernel::retrieval::provenance::Provenance;
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::trust::attestation::{Circumstances, Status};
use kernel::trust::keys::PublicKey;
use kernel::verification::proof::{KeySource, proof as proof_of, verify_proof};
use kernel::verification::verify::{Check, verify_export, verify_document};
use serde_json::Value;

use crate::genuine::{Genuine, same_json, with};
use crate::is_message;
use crate::memory::bounded;

pub(crate) const NO_LIMITS: JsonLimits =
    JsonLimits { bytes: usize::MAX, values: usize::MAX, token_bytes: usize::MAX };

/// JSON as it comes back from a column of type jsonb: other white space, other order of keys.
fn rewritten(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

/// Texts are JSON where another reader says so, with the same values.
pub fn json(text: &str) {
    let read = bounded(text.len(), || JsonValue::read(text, NO_LIMITS, &|| ()));
    match (serde_json::from_str::<Value>(text), read) {
        (_, Err(JsonError::TooDeep)) => {}
        (Ok(value), read) => assert_eq!(value_of(&read.unwrap()), value),
        // The other reader takes no number beyond binary64, and one level less.
        (Err(error), Ok(json)) => assert!(
            has_number_beyond_binary64(&json) || error.to_string().contains("recursion limit"),
            "{error}"
        ),
        (Err(_), Err(error)) => {
            assert!(matches!(error, JsonError::Syntax(..)));
            is_message(error);
        }
    }
}

fn value_of(json: &JsonValue<'_>) -> Value {
    match json {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(on) => Value::Bool(*on),
        JsonValue::Number(number) => serde_json::from_str(number.text()).unwrap(),
        JsonValue::String(text) => Value::String(text.clone().into_owned()),
        JsonValue::Array(items) => items.iter().map(value_of).collect(),
        JsonValue::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone().into_owned(), value_of(value))).collect()
        }
    }
}

fn has_number_beyond_binary64(json: &JsonValue<'_>) -> bool {
    match json {
        JsonValue::Number(number) => number.text().parse::<f64>().unwrap().is_infinite(),
        JsonValue::Array(items) => items.iter().any(has_number_beyond_binary64),
        JsonValue::Object(entries) => {
            entries.iter().any(|(_, value)| has_number_beyond_binary64(value))
        }
        _ => false,
    }
}

/// All that an export says, to the bit.
fn values(export: &ParsedExport) -> String {
    format!("{export:?}")
}

/// An export.
pub fn export(text: &str) {
    let read = bounded(text.len(), || ParsedExport::parse(text, &|| ()));
    with(|genuine| {
        let reason = verify_export(text, &genuine.ring).reason();
        let Ok(export) = read.map_err(is_message) else {
            assert_eq!(reason, "malformed");
            return;
        };
        if reason == "ok" {
            let was_signed = genuine.cases.iter().any(|case| {
                values(&ParsedExport::parse(&case.export_text, &|| ()).unwrap()) == values(&export)
            });
            assert!(was_signed, "an export that was not signed verifies");
        }
        let canonical = canonical_text(&export, &|| ());
        for text in [rewritten(&canonical), canonical] {
            let again = ParsedExport::parse(&text, &|| ()).unwrap();
            assert_eq!(values(&again), values(&export));
            assert_eq!(verify_export(&text, &genuine.ring).reason(), reason);
        }
        let turns = export.turn_refs();
        let whole = (&turns[..], &export.edges[..]);
        if let Ok(export) = ParsedExport::parse_whole(text, &|| ()) {
            assert!(!dot(&export, &|| ()).is_empty());
            assert!(!mermaid(&export, &|| ()).is_empty());
            diff::differences(whole, whole, &|| (), &mut |_| panic!("it differs from itself"));
        }
        signed_anew(genuine, text, export);
    });
}

/// A record of a prompt, or an export where one is read.
pub fn record(text: &str) {
    let read = bounded(text.len(), || Document::parse(text, &|| ()));
    let Ok(document) = read.map_err(is_message) else { return };
    with(|genuine| {
        let ring = &genuine.ring_of_records;
        let canonical = document.canonical_text(&|| ());
        let reason = verify_document(text, ring).reason();
        if reason == "ok" && document.record.is_some() {
            assert!(genuine.records.contains(&canonical));
        }
        for text in [rewritten(&canonical), canonical.clone()] {
            let again = Document::parse(&text, &|| ()).unwrap();
            assert_eq!(again.canonical_text(&|| ()), canonical);
            assert_eq!(verify_document(&text, ring).reason(), reason);
        }
        let export = &document.export;
        let (Some(record), Some(claim)) = (document.record, &export.attestation) else { return };
        // What the kernel signs of messages is right in all that it computes.
        let signed = Record::new(record.context, record.messages, claim, &ring.active(), &|| ());
        let verdict = verify_document(&signed.to_json(&canonical_text(export, &|| ()), &|| ()), ring);
        let digest = verdict.checks.iter().find(|outcome| outcome.check == Check::PromptDigest);
        assert!(digest.is_none_or(|outcome| outcome.ok));
    });
}

/// Documents in few bytes; other bytes are the CBOR within, which the checksum of a frame guards.
pub fn binary(data: &[u8]) {
    let read = match is_packed(data) {
        // Of 16 KiB a frame makes all that a document may be; a quarter of a gigabyte holds it.
        true => bounded(1 << 20, || unpack(data, &|| ())),
        false => bounded(16 * data.len(), || from_cbor(data, &|| ())),
    };
    let Ok(document) = read.map_err(is_message) else { return };
    let canonical = document.canonical_text(&|| ());
    let Ok(again) = Document::parse(&canonical, &|| ()) else {
        // Near the limits of documents, which are counted otherwise.
        assert!(canonical.len() > 32 << 20);
        return;
    };
    assert_eq!(again.canonical_text(&|| ()), canonical);
    let cbor = to_cbor(&again, &|| ()).unwrap();
    let bytes = pack(&again, &|| ()).unwrap();
    assert_eq!(unpack(&bytes, &|| ()).unwrap().canonical_text(&|| ()), canonical);
    if !is_packed(data) {
        assert_eq!(cbor, data);
    }
}

/// A message without a text.
fn blank() -> RecordedMessage {
    RecordedMessage {
        turn_id: TurnId::from_u128(0),
        part: Part::Line,
        role: Role::User,
        created_at: None,
        tokens: 0,
        content: None,
        payload: None,
    }
}

/// Texts that were kept of messages.
pub fn contents(text: &str) {
    let read = bounded(text.len(), || KeptMessage::read_all(text, &|| ()));
    let Ok(kept) = read.map_err(is_message) else { return };
    let stored = |kept: &[KeptMessage]| kept.iter().map(|kept| kept.matches(&blank())).collect::<Vec<_>>();
    let again = KeptMessage::read_all(&format!("\n{text}\t"), &|| ()).unwrap();
    assert_eq!((stored(&again), &again), (stored(&kept), &kept));
}

/// What the kernel signs of a slice verifies, if it is a slice.
fn signed_anew(genuine: &Genuine, text: &str, export: ParsedExport) {
    let is_whole = ParsedExport::parse_whole(text, &|| ()).is_ok();
    let policy = export.attestation.map_or_else(SlicePolicy::default, |claim| claim.policy);
    let is_slice = is_whole && export.turns.len() <= policy.max_nodes();
    let selected = |turn: kernel::graph::turn::Turn| SelectedTurn {
        turn: turn.into(),
        distance: 0,
        priority: 0.0,
        part: Part::Line,
        seed: None,
        micros: 0,
        tokens: 0,
        selection_order: 0,
    };
    let slice = Slice {
        anchor: export.anchor,
        turns: export.turns.into_iter().map(selected).collect(),
        edges: export.edges,
        pins_left_out: Vec::new(),
    };
    let mut export = Export::new(&slice, &policy, &|| ());
    let keys = genuine.ring.active();
    let circumstances = Circumstances {
        graph: "default".to_owned(),
        role: "alice".to_owned(),
        rls: true,
        status: Status::Attested,
    };
    export.attest(&policy, &keys, &keys.v2, circumstances);
    let signed = export.to_json();
    let verdict = verify_export(&signed, &genuine.ring);
    assert_eq!(verdict.reason() == "ok", is_slice, "{}", verdict.reason());
    let proof = proof_of(&verdict, &genuine.key, KeySource::File, &|| ());
    assert_eq!(proof.is_some(), is_slice);
    if let Some(proof) = proof {
        assert_eq!(verify_proof(&rewritten(&signed), &proof, genuine.pem(), &|| ()).map(drop), Ok(()));
    }
}

/// The attestation of an export that is otherwise genuine.
pub fn attestation(text: &str) {
    let spliced = with(|genuine| {
        let (before, _) = genuine.cases[0].export_text.split_once(r#""attestation":"#).unwrap();
        format!(r#"{before}"attestation":{text}}}"#)
    });
    export(&spliced);
}

/// An envelope: no other than those that were signed prove an export.
pub fn proof(text: &str) {
    with(|genuine| {
        for case in genuine.cases.iter().step_by(2) {
            let verified = bounded(case.export_text.len() + text.len(), || {
                verify_proof(&case.export_text, text, genuine.pem(), &|| ())
            });
            if verified.is_ok() {
                assert!(genuine.cases.iter().any(|case| same_json(&case.proof_text, text)));
            }
        }
    });
}

/// A statement that is signed whatever it says: only the true one proves an export.
pub fn statement(text: &str) {
    with(|genuine| {
        let envelope = genuine.envelope(text);
        // Two cases have one export.
        for case in genuine.cases.iter().step_by(2) {
            let verified = bounded(case.export_text.len() + text.len(), || {
                verify_proof(&case.export_text, &envelope, genuine.pem(), &|| ())
            });
            if verified.is_ok() {
                assert!(genuine.cases.iter().any(|case| same_json(&case.statement_text, text)));
            }
        }
    });
}

/// A public key in PEM: what is accepted reads back, and no other key verifies a proof.
pub fn public_key(text: &str) {
    let Some(key) = bounded(text.len(), || PublicKey::from_pem(text)) else { return };
    let pem = key.to_pem();
    assert_eq!(PublicKey::from_pem(&pem).map(|key| key.to_pem()).as_ref(), Some(&pem));
    with(|genuine| {
        let case = &genuine.cases[0];
        let verified = verify_proof(&case.export_text, &case.proof_text, text, &|| ());
        assert_eq!(verified.is_ok(), pem == genuine.pem());
    });
}

/// The provenance of a search.
pub fn provenance(text: &str) {
    let read = bounded(text.len(), || Provenance::parse(text, &|| ()));
    let Ok(mut read) = read.map_err(is_message) else { return };
    with(|genuine| {
        let ring = &genuine.ring;
        if read.signature(ring) == "ok" {
            assert_eq!(read.canonical_text(), genuine.provenance.canonical_text());
        }
        let json = read.to_json();
        for text in [rewritten(&json), json] {
            let again = Provenance::parse(&text, &|| ()).unwrap();
            assert_eq!((again.canonical_text(), &again), (read.canonical_text(), &read));
            assert_eq!(again.admissibility(ring), read.admissibility(ring));
        }
        read.sign(&ring.active());
        assert_eq!(Provenance::parse(&read.to_json(), &|| ()).unwrap().signature(ring), "ok");
    });
}
