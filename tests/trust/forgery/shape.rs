//! Keys, order and form: what is not exactly an export is malformed.

use std::cell::Cell;

use kernel::export::parse::{MAX_EXPORT_BYTES, ParsedExport};
use kernel::graph::edge::{Edge, EdgeType};

use kernel::verification::verify::verify_export;

use crate::claim::{Claim, id, reason, reason_of, ring, selected, turn};
use crate::document::{Document, Json};

fn genuine() -> Document {
    Claim::genuine().signed()
}

#[test]
fn a_key_twice_is_found_at_every_level() {
    let export = genuine();
    for path in export.objects() {
        let keys: Vec<(String, Json)> = export.clone().entries(&path).clone();
        for (key, value) in keys {
            for again in [value, Json::Null] {
                for in_front in [true, false] {
                    let mut forged = export.clone();
                    let entries = forged.entries(&path);
                    let at = if in_front { 0 } else { entries.len() };
                    entries.insert(at, (key.clone(), again.clone()));
                    assert_eq!(reason(&forged), "malformed", "{path:?} {key}");
                }
            }
        }
    }
}

#[test]
fn a_key_twice_is_found_when_one_is_escaped() {
    let text = genuine().text();
    for (key, escaped) in [("turns", r"\u0074urns"), ("role", r"r\u006fle"), ("kid", r"\u006bid")] {
        let twice =
            text.replacen(&format!(r#""{key}":"#), &format!(r#""{escaped}":null,"{key}":"#), 1);
        assert_eq!(reason_of(&twice), "malformed", "{key}");
        let escaped = text.replacen(&format!(r#""{key}":"#), &format!(r#""{escaped}":"#), 1);
        assert_eq!(reason_of(&escaped), "ok", "{key}");
    }
}

#[test]
fn a_key_too_many_is_found_at_every_level() {
    let export = genuine();
    for path in export.objects() {
        for key in ["", "x", "ID", "Role", "role ", "turns", "__proto__", "distance", "policy_ref"]
        {
            let mut forged = export.clone();
            let entries = forged.entries(&path);
            entries.push((key.to_owned(), Json::Null));
            assert_eq!(reason(&forged), "malformed", "{path:?} {key:?}");
        }
    }
}

#[test]
fn a_missing_key_is_found_at_every_level() {
    let export = genuine();
    for path in export.objects() {
        for position in 0..export.clone().entries(&path).len() {
            let mut forged = export.clone();
            let (key, _) = forged.entries(&path).remove(position);
            assert_eq!(reason(&forged), "malformed", "{path:?} {key}");
        }
    }
}

#[test]
fn a_key_twice_is_found_when_another_is_missing() {
    // So that the number of keys is right.
    let export = genuine();
    for path in export.objects() {
        for position in 1..export.clone().entries(&path).len() {
            let mut forged = export.clone();
            let entries = forged.entries(&path);
            entries[position] = entries[position - 1].clone();
            assert_eq!(reason(&forged), "malformed", "{path:?} {position}");
        }
    }
}

#[test]
fn a_value_of_another_kind_is_found_everywhere() {
    let others = || {
        [
            Json::Null,
            Json::Bool(true),
            Json::Bool(false),
            Json::Integer(0),
            Json::Integer(-1),
            Json::Integer(i128::from(u64::MAX)),
            Json::Float(0.5),
            Json::Float(1e300),
            Json::String(String::new()),
            Json::String("x".to_owned()),
            Json::Array(Vec::new()),
            Json::Array(vec![Json::Null]),
            Json::Object(Vec::new()),
        ]
    };
    let export = genuine();
    for path in export.values() {
        for other in others() {
            let mut forged = export.clone();
            let value = forged.at(&path);
            if *value == other {
                continue;
            }
            *value = other.clone();
            assert_ne!(reason(&forged), "ok", "{path:?} as {other:?}");
        }
    }
}

#[test]
fn every_other_text_in_place_of_a_text_is_found() {
    let export = genuine();
    for path in export.scalars() {
        let mut forged = export.clone();
        let Json::String(text) = forged.at(&path).clone() else { continue };
        let mut first = text.chars();
        first.next();
        for other in [
            format!("{text} "),
            format!(" {text}"),
            format!("{text}\0"),
            format!("{text}\u{feff}"),
            text.to_uppercase(),
            first.as_str().to_owned(),
        ] {
            if other == text {
                continue;
            }
            *forged.at(&path) = Json::String(other.clone());
            assert_ne!(reason(&forged), "ok", "{path:?} as {other:?}");
        }
    }
}

#[test]
fn reordered_and_repeated_turns_are_found() {
    let mut forged = genuine();
    forged.array("turns").swap(1, 2);
    assert_eq!(reason(&forged), "unordered");
    forged = genuine();
    forged.array("turns").reverse();
    assert_eq!(reason(&forged), "unordered");
    forged = genuine();
    let again = forged.array("turns")[2].clone();
    forged.array("turns").insert(2, again);
    assert_eq!(reason(&forged), "unordered");
}

#[test]
fn reordered_and_repeated_edges_are_found() {
    let mut forged = genuine();
    forged.array("edges").swap(0, 1);
    assert_eq!(reason(&forged), "unordered");
    // Edges between the same turns are ordered by type.
    forged = genuine();
    forged.array("edges").swap(1, 2);
    assert_eq!(reason(&forged), "unordered");
    forged = genuine();
    let again = forged.array("edges")[0].clone();
    forged.array("edges").insert(0, again);
    assert_eq!(reason(&forged), "unordered");
}

#[test]
fn unordered_slices_do_not_verify_even_when_they_were_signed() {
    let mut claim = Claim::genuine();
    claim.slice.turns.reverse();
    assert_eq!(reason(&claim.signed()), "unordered");
    claim = Claim::genuine();
    claim.slice.edges.reverse();
    assert_eq!(reason(&claim.signed()), "unordered");
    claim = Claim::genuine();
    let again = claim.slice.turns[4].clone();
    claim.slice.turns.push(again);
    assert_eq!(reason(&claim.signed()), "unordered");
}

#[test]
fn other_versions_are_unknown() {
    let versions = [
        ("policy_id", &["", "slice_policy_v2", "Slice_policy_v1", "slice_policy_v1 "][..]),
        ("schema_version", &["", "1.0", "1.0.1", "2.0.0", "1.0.0 "][..]),
    ];
    for (path, others) in versions {
        for other in others {
            let mut forged = genuine();
            forged.set(path, *other);
            assert_eq!(reason(&forged), "unknown_version", "{path} {other:?}");
        }
    }
    for v in [0, 1, 2, 4, 33, i128::from(u32::MAX)] {
        let mut forged = genuine();
        forged.set("attestation.v", v);
        assert_eq!(reason(&forged), "unknown_version", "{v}");
    }
    for v in [-3, i128::from(u32::MAX) + 4] {
        let mut forged = genuine();
        forged.set("attestation.v", v);
        assert_eq!(reason(&forged), "malformed", "{v}");
    }
    let mut forged = genuine();
    forged.set("attestation.policy.version", "slice_policy_v2");
    assert_eq!(reason(&forged), "malformed");
}

#[test]
fn an_anchor_outside_does_not_verify_even_when_it_was_signed() {
    let mut claim = Claim::genuine();
    claim.slice.anchor = id(9);
    assert_eq!(reason(&claim.signed()), "boundary");
    claim.slice.turns.clear();
    claim.slice.edges.clear();
    assert_eq!(reason(&claim.signed()), "boundary");
}

#[test]
fn an_edge_outside_does_not_verify_even_when_it_was_signed() {
    for outside in [0, 9] {
        let mut claim = Claim::genuine();
        claim.slice.edges[0].parent = id(outside);
        claim.slice.edges.sort();
        assert_eq!(reason(&claim.signed()), "boundary");
        let mut claim = Claim::genuine();
        claim.slice.edges[4].child = id(outside);
        claim.slice.edges.sort();
        assert_eq!(reason(&claim.signed()), "boundary");
    }
}

#[test]
fn more_turns_than_the_budget_do_not_verify_even_when_they_were_signed() {
    let mut claim = Claim::genuine();
    claim.policy = r#"{"max_nodes":5}"#.parse().unwrap();
    assert_eq!(reason(&claim.signed()), "ok");
    claim.slice.turns.push(selected(turn(6)));
    assert_eq!(reason(&claim.signed()), "over_budget");
}

#[test]
fn ids_have_one_spelling() {
    let text = genuine().text();
    let written = id(1).to_string();
    for other in [
        written.to_uppercase(),
        written.replace('-', ""),
        format!("{{{written}}}"),
        format!("urn:uuid:{written}"),
        format!(" {written}"),
        format!("{written}\0"),
    ] {
        let respelled = text.replace(&written, &other.replace('\0', r"\u0000"));
        let expected = if other == written { "ok" } else { "malformed" };
        assert_eq!(reason_of(&respelled), expected, "{other}");
    }
}

#[test]
fn texts_that_are_no_json_object_are_malformed() {
    let text = genuine().text();
    let deep = "[".repeat(1_000_000);
    for other in [
        "",
        " ",
        "null",
        "true",
        "0",
        "\"\"",
        "[]",
        "{}",
        "{",
        "NaN",
        &deep,
        &text[..text.len() - 1],
        &format!("{text}{text}"),
        &format!("[{text}]"),
        &format!("{text},"),
        &format!("{text}x"),
        &format!("{text}\0"),
        &format!("\u{feff}{text}"),
        &format!("/**/{text}"),
        &text.replace('"', "'"),
        &text.replacen(r#"{"anchor"#, r#"{,"anchor"#, 1),
        &text.replacen("}]", "},]", 1),
        &text.replacen("session", "\u{1}", 1),
        &text.replacen("session", r"\ud800", 1),
    ] {
        assert_eq!(reason_of(other), "malformed", "{}", &other[..other.len().min(80)]);
    }
}

#[test]
fn an_export_beyond_the_longest_is_malformed() {
    let text = genuine().text();
    let padded = |length: usize| text.clone() + &" ".repeat(length - text.len());
    assert_eq!(reason_of(&padded(MAX_EXPORT_BYTES)), "ok");
    assert_eq!(reason_of(&padded(MAX_EXPORT_BYTES + 1)), "malformed");
}

#[test]
fn looking_for_the_ends_of_edges_takes_few_steps() {
    // The work is measured by the checks for interrupts. A linear search for each end takes a million steps.
    let mut claim = Claim::genuine();
    claim.slice.turns = (0..8000).map(turn).map(selected).collect();
    let parent = claim.slice.edges[0].parent;
    let outside = |n: u64| Edge { parent, child: id((1 << 32) + n), edge_type: EdgeType::Reply };
    claim.slice.edges = (0..16_000).map(outside).collect();
    for expected in ["boundary", "unordered"] {
        let mut export = claim.signed();
        export.set("attestation", Json::Null);
        let text = export.text();
        let read = Cell::new(0);
        ParsedExport::parse(&text, &|| read.set(read.get() + 1)).unwrap();
        let ring = ring();
        assert_eq!(verify_export(&text, &ring).reason(), expected);
        let (verified, read) = (ring.interrupt_checks.get(), read.get());
        assert!(read > 0 && verified < 8 * read, "{verified} checks, {read} of them while reading");
        claim.slice.turns.swap(0, 1);
    }
}

#[test]
fn a_text_with_a_zero_byte_is_malformed() {
    // PostgreSQL cannot store it, so no export has one, and texts of an export that are returned must be storable.
    for path in ["attestation.role", "attestation.kid", "attestation.graph", "turns.0.session_id"] {
        let mut forged = genuine();
        forged.set(path, "a\0b");
        assert_eq!(reason(&forged), "malformed", "{path}");
    }
}
