//! Documents that were signed by a key of the golden vectors: nothing else may verify under it.

use base64ct::{Base64, Encoding};
use graph_kernel_tests::data::read_text;
use graph_kernel_tests::key_ring::TestRing;
use kernel::export::parse::ParsedExport;
use kernel::graph::turn::Role;
use kernel::prompt::record::Document;
use kernel::retrieval::provenance::{Provenance, SliceInfo};
use kernel::retrieval::ranking::Filters;
use kernel::retrieval::search::SearchFilter;
use kernel::trust::keys::{ProofKey, Secret};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// A worked case of tests/golden/data/proof.json.
#[derive(Deserialize)]
pub struct WorkedProof {
    root_hex: String,
    epoch: u32,
    pub public_key_pem: String,
    pub export_text: String,
    pub statement_text: String,
    pub proof_text: String,
}

/// A worked case of tests/golden/data/prompt.json.gz.
#[derive(Deserialize)]
struct WorkedPrompt {
    root_hex: String,
    epoch: u32,
    record: Value,
}

/// All that the key of the worked cases has signed, and the key.
pub struct Genuine {
    /// Records of prompts, canonical, and the keys that signed them.
    pub records: Vec<String>,
    pub ring_of_records: TestRing,
    pub cases: Vec<WorkedProof>,
    pub ring: TestRing,
    pub key: ProofKey,
    pub provenance: Provenance,
}

impl Genuine {
    fn new() -> Self {
        let cases: Vec<WorkedProof> =
            serde_json::from_str(include_str!("../../golden/data/proof.json")).unwrap();
        let root = bytes(&cases[0].root_hex);
        let ring = ring(&root, cases[0].epoch);
        let key = ProofKey::derive(&Secret::new(root), cases[0].epoch);
        let prompts = concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/data/prompt.json.gz");
        let prompts: Vec<WorkedPrompt> = serde_json::from_str(&read_text(prompts.as_ref())).unwrap();
        let ring_of_records = self::ring(&bytes(&prompts[0].root_hex), prompts[0].epoch);
        let canonical = |prompt: &WorkedPrompt| {
            Document::parse(&prompt.record.to_string(), &|| ()).unwrap().canonical_text(&|| ())
        };
        let records = prompts.iter().map(canonical).collect();
        let mut provenance = searched(&cases[0].export_text);
        provenance.sign(&ring.active());
        Genuine { records, ring_of_records, cases, ring, key, provenance }
    }

    /// The public key that all cases verify under.
    pub fn pem(&self) -> &str {
        &self.cases[0].public_key_pem
    }

    /// The envelope in which this payload is signed, as DSSE has it.
    pub fn envelope(&self, payload: &str) -> String {
        const TYPE: &str = "application/vnd.in-toto+json";
        let signed = format!("DSSEv1 {} {TYPE} {} {payload}", TYPE.len(), payload.len());
        serde_json::json!({
            "payload": Base64::encode_string(payload.as_bytes()),
            "payloadType": TYPE,
            "signatures": [{
                "keyid": self.key.kid,
                "sig": Base64::encode_string(&self.key.sign(signed.as_bytes())),
            }],
        })
        .to_string()
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|hex| u8::from_str_radix(str::from_utf8(hex).unwrap(), 16).unwrap()).collect()
}

fn ring(root: &[u8], epoch: u32) -> TestRing {
    let mut ring = TestRing::new(root);
    ring.epochs[0].0 = epoch;
    ring
}

/// The provenance of a search in the slice of an export.
fn searched(export: &str) -> Provenance {
    let export = ParsedExport::parse(export, &|| ()).unwrap();
    Provenance {
        query_id: Uuid::from_u128(7),
        query_text: Some("why \"now\"?".to_owned()),
        timestamp: "2026-01-01T12:00:00.000000Z".to_owned(),
        retrieved_turn_ids: export.turns.iter().map(|turn| turn.id).collect(),
        slice: Some(SliceInfo {
            turn_count: export.turns.len() as u32,
            edge_count: export.edges.len() as u32,
            slice_id: export.slice_id,
            anchor: export.anchor,
            policy_id: export.policy_id,
            params_hash: export.params_hash,
            schema_version: export.schema_version,
            graph_snapshot_hash: export.graph_snapshot_hash.unwrap(),
            admissibility_token: export.admissibility_token,
            attestation: export.attestation.unwrap(),
        }),
        query_embedding_hash: Some("ab".repeat(32)),
        result_hash: "cd".repeat(32),
        limit_requested: 10,
        admissibility_shortfall: false,
        filter: SearchFilter {
            owner: Some("alice".to_owned()),
            roles: Some(vec![Role::User]),
            to: Some(1_767_225_600),
            least: Filters { min_similarity: Some(0.1), min_salience: None },
            ..SearchFilter::default()
        },
        elapsed_ms: 1.25,
        mac: None,
    }
}

/// Calls `check` with what was signed.
pub fn with<T>(check: impl FnOnce(&Genuine) -> T) -> T {
    thread_local! {
        static GENUINE: Genuine = Genuine::new();
    }
    GENUINE.with(check)
}

/// Whether two texts are the same JSON, whatever its white space, the order of keys and the spelling of numbers.
pub fn same_json(one: &str, other: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    match (read(one), read(other)) {
        (Some(one), Some(other)) => same(&one, &other),
        _ => false,
    }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}
