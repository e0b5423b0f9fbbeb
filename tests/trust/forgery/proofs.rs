//! Forged proofs: what is not the kernel's statement about this export, under the key that the verifier chose, is
//! refused, and with the reason.

use base64ct::{Base64, Encoding};
use kernel::export::document::canonical_text;
use kernel::export::parse::ParsedExport;
use kernel::policy::SlicePolicy;
use kernel::trust::attestation::Status;
use kernel::trust::keys::{ProofKey, Secret};
use kernel::verification::proof::{KeySource, ProofRefusal, proof, verify_proof};
use kernel::verification::verify::verify_export;
use serde_json::{Value, json};

use crate::claim::{Claim, id, ring};

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The order of the group, little-endian: a signature's second half with this added is the same number.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The proof key of an epoch of [`ring`], in which the second one signs.
pub fn key_of(epoch: u32) -> ProofKey {
    let ring = ring();
    let (_, root) = ring.epochs.iter().find(|(number, _)| *number == epoch).expect("it is known");
    ProofKey::derive(&Secret::new(root.clone()), epoch)
}

/// An export, its proof and the public key.
struct Proven {
    export: String,
    proof: String,
    pem: String,
}

impl Proven {
    fn of(claim: &Claim) -> Self {
        let key = key_of(2);
        let export = claim.signed().text();
        let proof = proof(&verify_export(&export, &ring()), &key, KeySource::Database, &|| {});
        let proven =
            Proven { export, proof: proof.expect("it is valid"), pem: key.public_key().to_pem() };
        assert_eq!(proven.check(&proven.proof), Ok(()));
        proven
    }

    fn genuine() -> Self {
        Proven::of(&Claim::genuine())
    }

    fn check(&self, proof: &str) -> Result<(), ProofRefusal> {
        verify_proof(&self.export, proof, &self.pem, &|| {}).map(drop)
    }

    fn envelope(&self) -> Value {
        serde_json::from_str(&self.proof).unwrap()
    }

    fn statement(&self) -> String {
        let payload = self.envelope()["payload"].as_str().unwrap().to_owned();
        String::from_utf8(Base64::decode_vec(&payload).unwrap()).unwrap()
    }

    /// The proof with another signature.
    fn with_signature(&self, signature: &str) -> String {
        let mut envelope = self.envelope();
        envelope["signatures"][0]["sig"] = json!(signature);
        envelope.to_string()
    }

    fn signature(&self) -> String {
        self.envelope()["signatures"][0]["sig"].as_str().unwrap().to_owned()
    }
}

/// The envelope of a statement that the kernel did not make, signed with the kernel's key.
pub fn envelope_of(statement: &str) -> String {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), statement.len());
    let key = key_of(2);
    let signature = key.sign(format!("{head}{statement}").as_bytes());
    json!({
        "payload": Base64::encode_string(statement.as_bytes()),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{ "keyid": key.kid, "sig": Base64::encode_string(&signature) }],
    })
    .to_string()
}

/// The texts with one byte changed, where they are texts.
pub fn changed(text: &str) -> impl Iterator<Item = String> {
    (0..text.len()).flat_map(move |place| {
        [1u8, 2, 4, 0x20, 0x40].into_iter().filter_map(move |bit| {
            let mut bytes = text.as_bytes().to_vec();
            bytes[place] ^= bit;
            String::from_utf8(bytes).ok()
        })
    })
}

#[test]
fn as_many_pins_and_seeds_as_may_be_are_attested_and_proven() {
    let pins: Vec<String> = (1..=64).map(|n| format!("\"{}\"", id(n))).collect();
    let seeds: Vec<String> = (1..=256).map(|n| format!("\"{}\":0.123456", id(n))).collect();
    let (pins, seeds) = (pins.join(","), seeds.join(","));
    let policy = format!(r#"{{"preset":"chat","pins":[{pins}],"seeds":{{{seeds}}}}}"#);
    let claim = Claim { policy: policy.parse().unwrap(), ..Claim::genuine() };
    let proven = Proven::of(&claim);
    // Another seed has the same slice_id and the same published token, and another digest.
    let other = proven.export.replacen(":123456", ":123457", 1);
    assert_ne!(other, proven.export);
    assert_eq!(verify_export(&other, &ring()).reason(), "digest_mismatch");
    let without = Claim { policy: SlicePolicy::preset("chat").unwrap(), ..Claim::genuine() };
    let without = Proven::of(&without);
    let head = |export: &str| {
        let export = ParsedExport::parse(export, &|| {}).unwrap();
        (export.slice_id, export.params_hash, export.admissibility_token)
    };
    assert_eq!(head(&without.export), head(&proven.export));
    assert_eq!(proven.check(&without.proof), Err(ProofRefusal::OtherExport));
}

#[test]
fn slices_by_either_version_are_proven() {
    for policy in [SlicePolicy::default(), SlicePolicy::preset("chat").unwrap()] {
        let proven = Proven::of(&Claim { policy: policy.clone(), ..Claim::genuine() });
        let statement: Value = serde_json::from_str(&proven.statement()).unwrap();
        assert_eq!(statement["predicate"]["policy_id"], policy.id());
    }
}

#[test]
fn no_byte_of_a_proof_can_be_changed() {
    let proven = Proven::genuine();
    for forged in changed(&proven.proof) {
        assert!(proven.check(&forged).is_err(), "{forged}");
    }
}

#[test]
fn no_byte_of_a_statement_can_be_changed() {
    let proven = Proven::genuine();
    for statement in changed(&proven.statement()) {
        let mut envelope = proven.envelope();
        envelope["payload"] = json!(Base64::encode_string(statement.as_bytes()));
        assert_eq!(
            proven.check(&envelope.to_string()),
            Err(ProofRefusal::BadSignature),
            "{statement}"
        );
        // Under the kernel's own key, but for what its holder says of the key.
        let signed = proven.check(&envelope_of(&statement));
        assert!(signed.is_err(), "{statement}");
    }
}

#[test]
fn no_byte_of_an_export_can_be_changed() {
    let proven = Proven::genuine();
    for export in changed(&proven.export) {
        let result = verify_proof(&export, &proven.proof, &proven.pem, &|| {}).map(drop);
        match result {
            Err(ProofRefusal::MalformedExport | ProofRefusal::OtherExport) => {}
            // Another spelling of the same number.
            _ => {
                let read = ParsedExport::parse(&export, &|| {}).unwrap();
                assert_eq!(canonical_text(&read, &|| {}), proven.export);
            }
        }
    }
}

#[test]
fn a_statement_has_exactly_its_fields_once() {
    let proven = Proven::genuine();
    let statement = proven.statement();
    let forged = |from: &str, to: &str| {
        assert!(statement.contains(from), "{from}");
        proven.check(&envelope_of(&statement.replacen(from, to, 1)))
    };
    for (from, to) in [
        ("\"_type\":", "\"extra\":1,\"_type\":"),
        ("\"kid\":", "\"extra\":null,\"kid\":"),
        ("\"rls\":false", "\"rls\":false,\"rls\":false"),
        ("\"name\":", "\"uri\":\"x\",\"name\":"),
        ("\"sha256\":", "\"sha512\":\"00\",\"sha256\":"),
        ("Statement/v1", "Statement/v2"),
        ("slice:v1", "slice:v2"),
        ("\"turns\":5", "\"turns\":5.5"),
        ("\"key_source\":\"database\"", "\"key_source\":\"elsewhere\""),
    ] {
        assert_eq!(forged(from, to), Err(ProofRefusal::MalformedProof), "{to}");
    }
    for (from, to) in [
        ("\"turns\":5", "\"turns\":4"),
        ("\"edges\":5", "\"edges\":6"),
        ("\"role\":\"alice\"", "\"role\":\"bob\""),
        ("\"rls\":false", "\"rls\":true"),
        ("\"graph\":\"default\"", "\"graph\":\"other\""),
        ("\"name\":\"slice/", "\"name\":\"slices/"),
        ("\"max_nodes\":256", "\"max_nodes\":257"),
    ] {
        assert_eq!(forged(from, to), Err(ProofRefusal::Inconsistent), "{to}");
    }
    // The order of keys is free, and what the holder says of the key is never believed.
    assert_eq!(forged("\"key_source\":\"database\"", "\"key_source\":\"file\""), Ok(()));
    let value: Value = serde_json::from_str(&statement).unwrap();
    assert_eq!(proven.check(&envelope_of(&value.to_string())), Ok(()));
}

#[test]
fn an_envelope_has_exactly_its_fields_and_one_signature() {
    let proven = Proven::genuine();
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut envelope = proven.envelope();
        edit(&mut envelope);
        proven.check(&envelope.to_string())
    };
    let malformed = Err(ProofRefusal::MalformedProof);
    let one = proven.envelope()["signatures"][0].clone();
    assert_eq!(edited(&|e| e["signatures"] = json!([])), malformed);
    assert_eq!(edited(&|e| e["signatures"] = json!([one, one])), malformed);
    assert_eq!(edited(&|e| e["signatures"] = one.clone()), malformed);
    assert_eq!(edited(&|e| e["extra"] = json!(1)), malformed);
    assert_eq!(edited(&|e| e["signatures"][0]["cert"] = json!("x")), malformed);
    assert_eq!(edited(&|e| e["payloadType"] = json!("application/json")), malformed);
    assert_eq!(edited(&|e| e["payload"] = json!(null)), malformed);
    assert_eq!(
        edited(&|e| e["signatures"][0]["keyid"] = json!("2-0000000000000000")),
        Err(ProofRefusal::Inconsistent)
    );
    let doubled =
        proven.proof.replacen('{', "{\"payloadType\":\"application/vnd.in-toto+json\",", 1);
    for text in [&doubled, "", "null", "[]", "{}", &format!("{} x", proven.proof), &proven.export] {
        assert_eq!(proven.check(text), malformed, "{text}");
    }
    assert_eq!(proven.check(&format!("{}{}", proven.proof, " ".repeat(70_000))), malformed);
}

#[test]
fn base64_and_signatures_have_one_spelling() {
    let proven = Proven::genuine();
    let signature = proven.signature();
    assert!(signature.ends_with("=="));
    let payload = proven.envelope()["payload"].as_str().unwrap().to_owned();
    let bare = signature.trim_end_matches('=');
    // The last digit before the padding holds four bits that are not used.
    let spare =
        format!("{}{}==", &bare[..bare.len() - 1], if bare.ends_with('w') { 'x' } else { 'B' });
    for text in [
        bare,
        &spare,
        &format!("{signature}\n"),
        &format!(" {signature}"),
        &signature.replace('=', "%3D"),
    ] {
        let result = proven.check(&proven.with_signature(text));
        assert!(
            matches!(result, Err(ProofRefusal::MalformedProof | ProofRefusal::BadSignature)),
            "{text}"
        );
        assert!(text == spare || result == Err(ProofRefusal::MalformedProof), "{text}");
    }
    let mut envelope = proven.envelope();
    envelope["payload"] = json!(format!("{payload}\n"));
    assert_eq!(proven.check(&envelope.to_string()), Err(ProofRefusal::MalformedProof));

    // The same number once more: s + L.
    let mut bytes = Base64::decode_vec(&signature).unwrap();
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(carry, 0);
    let result = proven.check(&proven.with_signature(&Base64::encode_string(&bytes)));
    assert_eq!(result, Err(ProofRefusal::BadSignature));
    for length in [0, 63, 65] {
        let result = proven.check(&proven.with_signature(&Base64::encode_string(&vec![7; length])));
        assert_eq!(result, Err(ProofRefusal::MalformedProof));
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", Base64::encode_string(der))
}

#[test]
fn only_an_ed25519_public_key_checks() {
    let proven = Proven::genuine();
    let check = |pem: &str| verify_proof(&proven.export, &proven.proof, pem, &|| {}).map(drop);
    let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    der.extend([1; 32]);
    let mut x25519 = der.clone();
    x25519[8] = 0x6e;
    let longer = [&der[..], &[0]].concat();
    for text in [
        "",
        "key",
        &pem("PRIVATE KEY", &der),
        &pem("PUBLIC KEY", &x25519),
        &pem("PUBLIC KEY", &longer),
        &pem("PUBLIC KEY", &der[..40]),
        &proven.pem.replace("-----END", "----END"),
        &format!("{0}{0}", proven.pem),
        &format!("{}{}", proven.pem, "\n".repeat(5000)),
    ] {
        assert_eq!(check(text), Err(ProofRefusal::MalformedKey), "{text}");
    }
    assert_eq!(check(&proven.pem.replace('\n', "\r\n")), Ok(()));
    assert_eq!(check(&key_of(1).public_key().to_pem()), Err(ProofRefusal::BadSignature));
}

/// Under a key of small order, signatures can be made without a private key.
#[test]
fn keys_of_small_order_check_nothing() {
    let proven = Proven::genuine();
    let identity: [u8; 32] = std::array::from_fn(|place| u8::from(place == 0));
    // With the identity for key and commitment and s = 0, the equation holds for every message.
    let signature = [identity.as_slice(), &[0; 32]].concat();
    let der =
        [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00][..], &identity];
    let forged = proven.with_signature(&Base64::encode_string(&signature));
    let result =
        verify_proof(&proven.export, &forged, &pem("PUBLIC KEY", &der.concat()), &|| {}).map(drop);
    assert_eq!(result, Err(ProofRefusal::BadSignature));
}

#[test]
fn only_what_verifies_is_signed() {
    let made = |export: &str, key: &ProofKey| {
        proof(&verify_export(export, &ring()), key, KeySource::File, &|| {})
    };
    let genuine = Claim::genuine().signed();
    assert!(made(&genuine.text(), &key_of(2)).is_some());
    assert_eq!(made(&genuine.text(), &key_of(1)), None);
    let mut edited = Claim::genuine();
    edited.turn(2).salience = 0.75;
    assert_eq!(made(&edited.with_tokens_of(&genuine).text(), &key_of(2)), None);
    for status in [Status::Uncommitted, Status::Distributed] {
        let mut unsigned = Claim::genuine();
        unsigned.circumstances.status = status;
        assert_eq!(made(&unsigned.signed().text(), &key_of(2)), None);
    }
    assert_eq!(made("", &key_of(2)), None);
    let mut revoking = ring();
    revoking.revoked.push(key_of(2).kid);
    let verdict = verify_export(&genuine.text(), &revoking);
    assert_eq!(proof(&verdict, &key_of(2), KeySource::File, &|| {}), None);
}
