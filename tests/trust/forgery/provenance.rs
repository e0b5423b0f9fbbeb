//! Edited provenance: whatever field is changed, the result is not admissible.

use kernel::export::document::Export;
use kernel::graph::turn::Role;
use kernel::retrieval::provenance::{Provenance, SliceInfo};
use kernel::retrieval::ranking::Filters;
use kernel::retrieval::search::SearchFilter;
use kernel::trust::attestation::{Circumstances, Status};
use kernel::trust::keys::{Secret, SigningKeys};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::claim::{Claim, id, ring};

fn signed_by(claim: &Claim, keys: &SigningKeys, edit: impl FnOnce(&mut Provenance)) -> Provenance {
    let mut export = Export::new(&claim.slice, &claim.policy, &|| {});
    export.attest(&claim.policy, keys, &keys.v2, claim.circumstances.clone());
    let mut provenance = Provenance {
        query_id: Uuid::from_u128(7),
        query_text: Some("why \"now\"?\n".to_owned()),
        timestamp: "2026-01-01T12:00:00.000000Z".to_owned(),
        slice: SliceInfo::new(&export),
        retrieved_turn_ids: vec![id(2), id(4)],
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
    };
    edit(&mut provenance);
    provenance.sign(keys);
    provenance
}

fn genuine() -> Provenance {
    signed_by(&Claim::genuine(), &ring().active(), |_| ())
}

fn reason(text: &str) -> &'static str {
    match Provenance::parse(text, &|| {}) {
        Ok(provenance) => provenance.admissibility(&ring()),
        Err(_) => "malformed",
    }
}

/// Every value inside, by its JSON pointer, objects and arrays themselves too.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(entries) => {
            entries.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| pointers(value, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// Other values that could stand in a value's place.
fn others(value: &Value) -> Vec<Value> {
    let mut others = vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(7),
        json!(0.5),
        json!(""),
        json!("global"),
        json!("slice"),
        json!([]),
        json!({}),
        json!(id(1)),
    ];
    match value {
        Value::String(text) => {
            let mut flipped = text.clone();
            let last = if flipped.pop() == Some('0') { '1' } else { '0' };
            flipped.push(last);
            others.extend([json!(flipped), json!(text.to_uppercase()), json!(format!("{text} "))]);
        }
        Value::Number(_) => {
            let number = value.as_f64().unwrap();
            others.extend([json!(number + 1.0), json!(number - 1.0), json!(-number)]);
        }
        Value::Array(items) => {
            let mut shorter = items.clone();
            shorter.pop();
            let reversed: Vec<Value> = items.iter().rev().cloned().collect();
            let longer = [items.clone(), vec![json!(id(5))]].concat();
            others.extend([json!(shorter), json!(reversed), json!(longer)]);
        }
        _ => {}
    }
    others
        .retain(|other| other != value && !(other.as_f64() == value.as_f64() && other.is_number()));
    others
}

#[test]
fn the_genuine_one_is_admissible_and_reads_back() {
    let genuine = genuine();
    assert_eq!(genuine.admissibility(&ring()), "ok");
    let read = Provenance::parse(&genuine.to_json(), &|| {}).unwrap();
    assert_eq!(read, genuine);
    // As jsonb rewrites it: other key order, other white space.
    let value: Value = serde_json::from_str(&genuine.to_json()).unwrap();
    assert_eq!(reason(&serde_json::to_string_pretty(&value).unwrap()), "ok");
}

#[test]
fn a_change_of_any_field_is_found() {
    let genuine: Value = serde_json::from_str(&genuine().to_json()).unwrap();
    let mut paths = Vec::new();
    pointers(&genuine, "", &mut paths);
    let mut tried = 0;
    for path in paths.iter().filter(|path| *path != "/elapsed_ms") {
        for other in others(genuine.pointer(path).unwrap()) {
            let mut edited = genuine.clone();
            *edited.pointer_mut(path).unwrap() = other.clone();
            assert_ne!(reason(&edited.to_string()), "ok", "{path} = {other}");
            tried += 1;
        }
    }
    assert!(tried > 600, "{tried} edits");
}

#[test]
fn a_missing_or_added_key_is_found() {
    let genuine: Value = serde_json::from_str(&genuine().to_json()).unwrap();
    for path in ["", "/policy_ref", "/attestation", "/attestation/policy", "/filters_applied"] {
        let keys: Vec<String> =
            genuine.pointer(path).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let mut edited = genuine.clone();
            edited.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(&key);
            assert_eq!(reason(&edited.to_string()), "malformed", "{path}/{key} is missing");
        }
        let mut edited = genuine.clone();
        edited.pointer_mut(path).unwrap()["more"] = json!(1);
        assert_eq!(reason(&edited.to_string()), "malformed", "{path} has one more key");
    }
    let text = genuine.to_string();
    let twice = text.replacen('{', "{\"is_admissible\":true,", 1);
    assert_eq!(reason(&twice), "malformed");
}

#[test]
fn only_the_elapsed_time_is_free() {
    let mut slower = genuine();
    slower.elapsed_ms = 1e9;
    assert_eq!(slower.admissibility(&ring()), "ok");
}

#[test]
fn a_mac_is_bound_to_its_provenance_and_its_key() {
    let other = signed_by(&Claim::genuine(), &ring().active(), |p| p.query_id = Uuid::from_u128(8));
    let mut lent = genuine();
    lent.mac = other.mac;
    assert_eq!(lent.admissibility(&ring()), "bad_mac");

    let other = SigningKeys::derive(&Secret::new(vec![0xee; 32]), 2);
    let forged = signed_by(&Claim::genuine(), &other, |_| ());
    assert_eq!(forged.admissibility(&ring()), "unknown_key");
    let mut renamed = forged;
    renamed.mac = renamed.mac.map(|mac| mac.replace(&other.kid, &ring().active().kid));
    assert_eq!(renamed.admissibility(&ring()), "bad_mac");

    let genuine = genuine();
    for mac in ["", "gk3r.", "gk3r..", "gk3r.x.y"] {
        let lent = Provenance { mac: Some(mac.to_owned()), ..genuine.clone() };
        assert_eq!(lent.admissibility(&ring()), "bad_mac", "{mac:?}");
    }
    // A token of another kind is not a MAC.
    let token = genuine.slice.as_ref().unwrap().attestation.token.clone().unwrap();
    let lent = Provenance { mac: Some(token.replacen("gk3.", "gk3r.", 1)), ..genuine.clone() };
    assert_eq!(lent.admissibility(&ring()), "bad_mac");
    assert_eq!(Provenance { mac: None, ..genuine }.admissibility(&ring()), "unsigned");
}

#[test]
fn a_revoked_key_and_an_epoch_before() {
    let mut ring = ring();
    let first = ring.keys_of(0);
    let old = signed_by(&Claim::genuine(), &first, |_| ());
    assert_eq!(old.admissibility(&ring), "ok");
    ring.revoked.push(first.kid);
    assert_eq!(old.admissibility(&ring), "revoked_key");
    assert_eq!(genuine().admissibility(&ring), "ok");
}

/// What the kernel signs, but does not accept for promotion.
#[test]
fn genuine_but_not_admissible() {
    let keys = ring().active();
    let claim = Claim::genuine();
    let global = signed_by(&claim, &keys, |p| p.slice = None);
    assert_eq!(reason(&global.to_json()), "global");
    assert!(!global.is_admissible());

    let short = signed_by(&claim, &keys, |p| p.admissibility_shortfall = true);
    assert_eq!(reason(&short.to_json()), "shortfall");

    let with = |circumstances: Circumstances| Claim { circumstances, ..claim.clone() };
    let other_graph =
        with(Circumstances { graph: Uuid::nil().to_string(), ..claim.circumstances.clone() });
    assert_eq!(reason(&signed_by(&other_graph, &keys, |_| ()).to_json()), "other_graph");
    for status in [Status::Uncommitted, Status::Distributed] {
        let unsigned = with(Circumstances { status, ..claim.circumstances.clone() });
        let search = signed_by(&unsigned, &keys, |_| ());
        assert!(!search.is_admissible());
        assert_eq!(reason(&search.to_json()), "bad_token", "{status:?}");
        let unsigned = Provenance { mac: None, ..search };
        let why = if status == Status::Distributed { "distributed" } else { "unsigned" };
        assert_eq!(reason(&unsigned.to_json()), why);
    }
}

/// The attestation of another slice is not accepted in a search, even if the kernel signed the search.
#[test]
fn the_slice_inside_must_carry_its_own_tokens() {
    let keys = ring().active();
    let mut smaller = Claim::genuine();
    smaller.slice.edges.pop();
    let of_smaller = signed_by(&smaller, &keys, |_| ());
    let lent = of_smaller.slice.unwrap();
    for edit in [
        (|slice, lent| slice.admissibility_token = lent.admissibility_token)
            as fn(&mut SliceInfo, SliceInfo),
        |slice, lent| slice.attestation = lent.attestation,
        |slice, lent| slice.slice_id = lent.slice_id,
        |slice, _| slice.admissibility_token = None,
        |slice, _| slice.attestation.token = None,
        |slice, _| slice.params_hash = "0".repeat(16),
        |slice, _| slice.anchor = id(1),
    ] {
        let mixed = signed_by(&Claim::genuine(), &keys, |p| {
            edit(p.slice.as_mut().unwrap(), lent.clone());
        });
        assert_eq!(mixed.admissibility(&ring()), "bad_token");
    }
}

/// The bytes that the reference documents.
#[test]
fn the_mac_is_over_the_documented_bytes() {
    let (genuine, keys) = (genuine(), ring().active());
    let mut message = Vec::new();
    for text in ["graph_kernel/retrieval/v3", &keys.kid, &genuine.canonical_text()] {
        message.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        message.extend_from_slice(text.as_bytes());
    }
    let mac = kernel::hex::hex(&keys.retrieval.mac(&message));
    assert_eq!(genuine.mac, Some(format!("gk3r.{}.{mac}", keys.kid)));
    // No other key of the epoch signs it.
    for other in [&keys.v2, &keys.v3] {
        assert_ne!(mac, kernel::hex::hex(&other.mac(&message)));
    }
}

/// The canonical form is documented, so that who has the key can check a MAC without this library.
#[test]
fn the_canonical_form_is_the_documented_one() {
    let text = genuine().canonical_text();
    assert!(text.starts_with(concat!(
        r#"{"query_id":"00000000-0000-0000-0000-000000000007","query_text":"why \"now\"?\n","#,
        r#""timestamp":"2026-01-01T12:00:00.000000Z","retrieval_mode":"slice","is_admissible":true,"retrieved_turn_ids":["#
    )));
    assert!(text.ends_with(
        r#""limit_requested":10,"limit_returned":2,"admissibility_shortfall":false,"filters_applied":{"min_similarity":0.1,"min_salience":null,"owner":"alice","sessions":null,"roles":["user"],"from":null,"to":1767225600}}"#
    ));
}
