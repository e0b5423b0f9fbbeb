//! Records of prompts: worked cases to the byte, computed from the text by an independent program.

use std::collections::HashMap;

use graph_kernel_tests::data::read_text;
use graph_kernel_tests::key_ring::TestRing;
use kernel::export::document::Export;
use kernel::graph::turn::TurnId;
use kernel::json::jsonb_text;
use kernel::policy::SlicePolicy;
use kernel::prompt::messages::messages;
use kernel::prompt::record::{Document, Record, RecordedMessage, text_hash};
use kernel::slicing::slicer::{Limits, Slicer};
use kernel::trust::attestation::{Circumstances, Status};
use kernel::trust::keys::{ProofKey, Secret, SigningKey};
use kernel::verification::proof::{KeySource, proof, verify_proof};
use kernel::verification::verify::{verify_document, verify_export};
use serde::Deserialize;
use serde_json::Value;

use crate::policy_v2::{EdgeRow, Row, store};
use crate::{bytes, data, last_members, without_white_space};

#[derive(Deserialize)]
struct Worked {
    root_hex: String,
    epoch: u32,
    prompt_key: String,
    all_turns: Vec<Row>,
    edges: Vec<EdgeRow>,
    anchor: TurnId,
    policy: Value,
    payloads: HashMap<TurnId, Payload>,
    #[serde(skip)]
    record: String,
}

#[derive(Deserialize)]
struct Payload {
    json: Value,
    jsonb_text: String,
}

impl Worked {
    fn ring(&self) -> TestRing {
        let mut ring = TestRing::new(&bytes(&self.root_hex));
        ring.epochs[0].0 = self.epoch;
        ring
    }

    /// The record that the kernel makes.
    fn made(&self) -> String {
        let policy: SlicePolicy = self.policy.to_string().parse().unwrap();
        let mut store = store(&self.all_turns, &self.edges);
        let slice = Slicer::new(&mut store, &policy, Limits::default()).slice(self.anchor).unwrap();
        let keys = self.ring().active();
        let given = Document::parse(&self.record, &|| {}).unwrap();
        let attested = given.export.attestation.unwrap();
        let circumstances = Circumstances {
            graph: attested.graph,
            role: attested.role,
            rls: attested.rls,
            status: Status::Attested,
        };
        let mut export = Export::new(&slice, &policy, &|| {});
        export.attest(&policy, &keys, &keys.v2, circumstances);
        let rows: HashMap<TurnId, &Row> = self.all_turns.iter().map(|row| (row.id, row)).collect();
        let recorded = messages(&slice, &policy, &|| {}).into_iter().map(|selected| {
            let row = rows[&selected.turn.id];
            let payload = self.payloads.get(&row.id).map(|payload| payload.json.to_string());
            let payload = payload.map(|json| jsonb_text(&json, usize::MAX, &|| {}).unwrap());
            RecordedMessage {
                turn_id: row.id,
                part: selected.part,
                role: selected.turn.role,
                created_at: row.created_at.map(|seconds| seconds * 1_000_000),
                tokens: selected.tokens,
                content: row.content_text.as_deref().map(|text| text_hash(text, &|| {})),
                payload: payload.as_deref().map(|text| text_hash(text, &|| {})),
            }
        });
        let context = given.record.unwrap().context;
        let attestation = export.attestation.as_ref().unwrap();
        let record = Record::new(context, recorded.collect(), attestation, &keys, &|| {});
        record.to_json(&export.to_json(), &|| {})
    }
}

/// The worked cases, with the text of the file, so that the order of keys and the spelling of numbers are compared.
fn worked() -> Vec<Worked> {
    let text = without_white_space(&read_text(&data("prompt.json.gz")));
    let mut cases: Vec<Worked> = serde_json::from_str(&text).unwrap();
    for (case, record) in cases.iter_mut().zip(last_members(&text, "record")) {
        case.record = record;
    }
    assert_eq!(cases.len(), 4);
    cases
}

#[test]
fn keys_and_payloads_are_the_worked_ones() {
    for case in worked() {
        // Keys cannot be read, so their MACs are compared.
        let expected = SigningKey::new(Secret::new(bytes(&case.prompt_key)));
        assert_eq!(case.ring().active().prompt.mac(b"message"), expected.mac(b"message"));
        for payload in case.payloads.values() {
            let text = jsonb_text(&payload.json.to_string(), usize::MAX, &|| {});
            assert_eq!(text.as_deref(), Some(&*payload.jsonb_text));
        }
    }
}

#[test]
fn records_are_the_worked_ones_to_the_byte() {
    for case in worked() {
        assert_eq!(case.made(), case.record);
    }
}

#[test]
fn worked_records_verify_and_are_no_exports() {
    for case in worked() {
        let verdict = verify_document(&case.record, &case.ring());
        assert_eq!(verdict.reason(), "ok", "{:#?}", verdict.checks);
        assert_eq!(verdict.checks.len(), 19);
        assert_eq!(verify_export(&case.record, &case.ring()).reason(), "malformed");
        let document = verdict.valid().unwrap();
        assert_eq!(document.canonical_text(&|| {}), case.record);
        // In order of keys, with white space.
        let value: Value = serde_json::from_str(&case.record).unwrap();
        let rewritten = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(verify_document(&rewritten, &case.ring()).reason(), "ok");
        let mut ring = case.ring();
        ring.epochs[0].0 += 1;
        assert_eq!(verify_document(&case.record, &ring).reason(), "unknown_key");
    }
}

#[test]
fn a_record_is_proven_as_a_slice_is() {
    for case in worked() {
        let key = ProofKey::derive(&Secret::new(bytes(&case.root_hex)), case.epoch);
        let verdict = verify_document(&case.record, &case.ring());
        let made = proof(&verdict, &key, KeySource::File, &|| {}).unwrap();
        let pem = key.public_key().to_pem();
        assert_eq!(verify_proof(&case.record, &made, &pem, &|| {}).map(drop), Ok(()));
        let envelope: Value = serde_json::from_str(&made).unwrap();
        let payload = envelope["payload"].as_str().unwrap();
        let statement = <base64ct::Base64 as base64ct::Encoding>::decode_vec(payload).unwrap();
        let statement = String::from_utf8(statement).unwrap();
        let record: Value = serde_json::from_str(&case.record).unwrap();
        let digest = record["digest"].as_str().unwrap();
        let messages = record["messages"].as_array().unwrap();
        let tokens: u64 = messages.iter().map(|m| m["tokens"].as_u64().unwrap()).sum();
        let head = format!(r#""subject":[{{"name":"prompt/{digest}","digest""#);
        assert!(statement.contains(&head), "{statement}");
        assert!(statement.contains(r#""predicateType":"urn:x-graph-kernel:prompt:v1""#));
        let end = format!(
            r#""key_source":"file","prompt_digest":"{digest}","messages":{},"tokens":{tokens}}}}}"#,
            messages.len()
        );
        assert!(statement.ends_with(&end), "{statement}");
        // The proof of the record is not that of its slice.
        let slice = record["slice"].to_string();
        assert!(verify_proof(&slice, &made, &pem, &|| {}).is_err());
    }
}
