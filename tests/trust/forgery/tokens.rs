//! Tokens of other exports, in other spellings, shortened and missing.

use kernel::graph::SCHEMA_VERSION;
use kernel::hex::hex;
use kernel::policy::{SlicePolicy, v1};
use kernel::trust::attestation::TokenFields;
use kernel::trust::keys::{Secret, SigningKey};
use kernel::verification::verify::verify_export;

use crate::claim::{Claim, id, reason, ring, string};
use crate::document::{Document, Json};

const TOKENS: [&str; 2] = ["admissibility_token", "attestation.token"];

/// The genuine export with another token.
fn with_token(path: &str, token: &str) -> Document {
    let mut export = Claim::genuine().signed();
    assert_ne!(string(&export, path), token, "{path} is not edited");
    export.set(path, token);
    export
}

#[test]
fn a_token_of_another_export_is_found() {
    let mut claim = Claim::genuine();
    claim.slice.edges.pop();
    let other = claim.signed();
    assert_eq!(reason(&other), "ok");
    for path in TOKENS {
        assert_eq!(reason(&with_token(path, &string(&other, path))), "bad_mac", "{path}");
    }
    assert_eq!(reason(&Claim::genuine().with_tokens_of(&other)), "bad_mac");
}

/// Other spellings of a hexadecimal text and pieces of it.
fn spellings(digits: &str) -> Vec<String> {
    let half = digits.len() / 2;
    let mut flipped = digits.to_owned();
    let last = if flipped.pop() == Some('0') { '1' } else { '0' };
    flipped.push(last);
    vec![
        String::new(),
        digits.to_uppercase(),
        format!("{}{}", &digits[..half], digits[half..].to_uppercase()),
        digits[..2].to_owned(),
        digits[..half].to_owned(),
        digits[..digits.len() - 2].to_owned(),
        digits[..digits.len() - 1].to_owned(),
        digits[2..].to_owned(),
        format!("{digits}00"),
        format!("00{digits}"),
        format!("{digits}{digits}"),
        format!(" {digits}"),
        format!("{digits} "),
        format!("{digits}\n"),
        format!("0x{digits}"),
        format!("+{}", &digits[1..]),
        digits.replace(|c: char| c.is_ascii_digit(), "٣"),
        flipped,
        "0".repeat(digits.len()),
        "g".repeat(digits.len()),
    ]
}

#[test]
fn a_published_token_has_one_spelling() {
    let token = string(&Claim::genuine().signed(), "admissibility_token");
    for spelling in spellings(&token) {
        let reason = reason(&with_token("admissibility_token", &spelling));
        let of_its_form =
            spelling.len() == 32 && spelling.bytes().all(|b| b"0123456789abcdef".contains(&b));
        assert_eq!(reason, if of_its_form { "bad_mac" } else { "malformed" }, "{spelling:?}");
    }
}

#[test]
fn an_attestation_token_has_one_spelling() {
    let token = string(&Claim::genuine().signed(), "attestation.token");
    let (prefix, mac) = token.rsplit_once('.').unwrap();
    let mut tokens: Vec<String> =
        spellings(mac).into_iter().map(|spelling| format!("{prefix}.{spelling}")).collect();
    tokens.extend([
        String::new(),
        ".".to_owned(),
        mac.to_owned(),
        prefix.to_owned(),
        format!("{prefix}.."),
        format!("{prefix}..{mac}"),
        format!(".{token}"),
        format!("{token}."),
        format!("{token}.{mac}"),
        token.replacen("gk3", "gk2", 1),
        token.replacen("gk3", "GK3", 1),
        token.replacen("gk3.", "gk3.0", 1),
        token.replacen("gk3.2", "gk3.1", 1),
        token.replace('.', " "),
        token.replace('.', "|"),
    ]);
    for token in tokens {
        assert_eq!(reason(&with_token("attestation.token", &token)), "bad_mac", "{token:?}");
    }
}

#[test]
fn the_published_token_alone_is_not_enough() {
    let mut export = Claim::genuine().signed();
    export.set("attestation", Json::Null);
    assert_eq!(reason(&export), "unattested");
    export.remove("attestation");
    assert_eq!(reason(&export), "malformed");
    let mut export = Claim::genuine().signed();
    export.set("attestation.v", 2);
    assert_eq!(reason(&export), "unknown_version");
}

#[test]
fn published_tokens_of_a_shared_secret_need_that_secret() {
    let claim = Claim::genuine();
    let secret = || Secret::new(b"a secret that two services share".to_vec());
    let shared = || SigningKey::new(secret());
    let mut export = claim.signed();
    let fields = fields_of(&export);
    export.set("admissibility_token", fields.token_fields().sign(&shared()));
    let mut verifier = ring();
    assert_eq!(verify_export(&export.text(), &verifier).reason(), "bad_mac");
    verifier.shared_v2 = Some(shared());
    assert_eq!(verify_export(&export.text(), &verifier).reason(), "ok");
    // The epoch's own key still verifies; the attestation is still needed.
    assert_eq!(verify_export(&claim.signed().text(), &verifier).reason(), "ok");
    export.set("attestation.token", "gk3");
    assert_eq!(verify_export(&export.text(), &verifier).reason(), "bad_mac");
}

/// The fields of a published token, each of which a forger may choose.
#[derive(Clone)]
struct Fields {
    slice_id: String,
    policy_id: String,
    params_hash: String,
    graph_snapshot_hash: String,
    schema_version: String,
}

fn fields_of(export: &Document) -> Fields {
    Fields {
        slice_id: string(export, "slice_id"),
        policy_id: string(export, "policy_id"),
        params_hash: string(export, "policy_params_hash"),
        graph_snapshot_hash: string(export, "graph_snapshot_hash"),
        schema_version: string(export, "schema_version"),
    }
}

impl Fields {
    fn token_fields(&self) -> TokenFields<'_> {
        TokenFields {
            slice_id: &self.slice_id,
            anchor: id(3),
            policy_id: &self.policy_id,
            params_hash: &self.params_hash,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            schema_version: &self.schema_version,
        }
    }

    /// Every field in turn.
    fn each(&mut self) -> [&mut String; 5] {
        let Fields { slice_id, policy_id, params_hash, graph_snapshot_hash, schema_version } = self;
        [slice_id, policy_id, params_hash, graph_snapshot_hash, schema_version]
    }
}

#[test]
fn a_published_token_verifies_for_its_fields_alone() {
    let key = ring().active().v2;
    let export = Claim::genuine().signed();
    let token = string(&export, "admissibility_token");
    assert!(fields_of(&export).token_fields().verify(&key.verifying_key(), &token));
    let anchor = id(4);
    let moved = fields_of(&export);
    assert!(!TokenFields { anchor, ..moved.token_fields() }.verify(&key.verifying_key(), &token));
    for field in 0..5 {
        let mut fields = fields_of(&export);
        fields.each()[field].replace_range(..1, "f");
        assert!(!fields.token_fields().verify(&key.verifying_key(), &token), "field {field}");
    }
}

#[test]
fn fields_with_a_delimiter_in_them_do_not_verify() {
    let key = ring().active().v2;
    let [mut one, mut other] = [(); 2].map(|()| fields_of(&Claim::genuine().signed()));
    (one.policy_id, one.params_hash) = ("p|q".to_owned(), "r".to_owned());
    (other.policy_id, other.params_hash) = ("p".to_owned(), "q|r".to_owned());
    let token = one.token_fields().sign(&key);
    // Joined by `|` both are the same text, and so have the same token.
    assert_eq!(other.token_fields().sign(&key), token);
    for fields in [one, other] {
        assert!(!fields.token_fields().verify(&key.verifying_key(), &token));
    }
}

#[test]
fn fields_out_of_form_do_not_verify_even_when_they_were_signed() {
    let key = ring().active().v2;
    let genuine = fields_of(&Claim::genuine().signed());
    for field in 0..5 {
        let written = genuine.clone().each()[field].clone();
        for odd in [
            String::new(),
            written.to_uppercase(),
            format!("{written}|"),
            format!("|{written}"),
            format!("{written} "),
            written[1..].to_owned(),
            format!("{written}0"),
        ] {
            if odd == written {
                continue; // no letters in it
            }
            let mut fields = genuine.clone();
            *fields.each()[field] = odd.clone();
            let token = fields.token_fields().sign(&key);
            assert!(
                !fields.token_fields().verify(&key.verifying_key(), &token),
                "field {field}: {odd:?}"
            );
        }
    }
}

#[test]
fn an_empty_mac_is_no_prefix_of_every_mac() {
    let fields = fields_of(&Claim::genuine().signed());
    let key = ring().active().v2;
    let whole = hex(&key.mac(
        format!(
            "{}|{}|{}|{}|{}|{SCHEMA_VERSION}|admissibility_token_v2_hmac",
            fields.slice_id,
            id(3),
            v1::ID,
            SlicePolicy::default().params_hash(),
            fields.graph_snapshot_hash,
        )
        .as_bytes(),
    ));
    for length in 0..=64 {
        let verifies = fields.token_fields().verify(&key.verifying_key(), &whole[..length]);
        assert_eq!(verifies, length == 32, "{length} digits");
    }
}

#[test]
fn a_published_token_of_a_key_is_none_of_another() {
    let mut other = ring();
    let export = Claim::genuine().signed();
    let token = string(&export, "admissibility_token");
    let fields = fields_of(&export);
    assert!(!fields.token_fields().verify(&ring().active().verifying_keys().v3, &token));
    assert!(!fields.token_fields().verify(&ring().active().verifying_keys().retrieval, &token));
    other.epochs.pop();
    assert!(!fields.token_fields().verify(&other.active().verifying_keys().v2, &token));
}
