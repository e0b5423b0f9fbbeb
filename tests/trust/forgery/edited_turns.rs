//! Turns with edited fields.

use kernel::graph::turn::{Phase, Role, Turn};

use crate::claim::{Claim, id, reason};
use crate::document::Json;

type Edit = (&'static str, fn(&mut Turn), &'static str);

/// An edit of each field of a turn, and the reason when nothing else is edited.
const EDITS: [Edit; 12] = [
    // Between its neighbours, so that the turns stay in order.
    ("id", |turn| turn.id = between(turn), "boundary"),
    ("session_id", |turn| turn.session_id.push('x'), "digest_mismatch"),
    ("role", |turn| turn.role = other(turn.role, Role::ALL), "digest_mismatch"),
    ("phase", |turn| turn.phase = other(turn.phase, Phase::ALL), "digest_mismatch"),
    ("salience", |turn| turn.salience = turn.salience.next_up(), "digest_mismatch"),
    ("trajectory_depth", |turn| turn.trajectory_depth += 1, "digest_mismatch"),
    ("trajectory_sibling_order", |turn| turn.trajectory_sibling_order ^= 1, "digest_mismatch"),
    (
        "trajectory_homogeneity",
        |turn| turn.trajectory_homogeneity = turn.trajectory_homogeneity.next_down(),
        "digest_mismatch",
    ),
    ("trajectory_temporal", |turn| turn.trajectory_temporal = 0.0, "digest_mismatch"),
    ("trajectory_complexity", |turn| turn.trajectory_complexity *= -1.0, "digest_mismatch"),
    ("created_at", |turn| turn.created_at += 1, "digest_mismatch"),
    ("content_hash", |turn| turn.content_hash = None, "digest_mismatch"),
];

fn between(turn: &Turn) -> kernel::graph::turn::TurnId {
    let mut bytes = *turn.id.as_bytes();
    bytes[0] += 1;
    kernel::graph::turn::TurnId::from_bytes(bytes)
}

fn other<T: Copy + PartialEq>(value: T, all: &[T]) -> T {
    *all.iter().find(|candidate| **candidate != value).unwrap()
}

#[test]
fn there_is_an_edit_of_every_field() {
    let export = Claim::genuine().signed();
    let Json::Object(fields) = export.get("turns.0") else { panic!("a turn is an object") };
    let fields: Vec<&str> = fields.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(EDITS.map(|(field, _, _)| field)[..], fields);
}

#[test]
fn an_edited_field_is_found() {
    for claim in [Claim::genuine(), Claim::without_a_content_hash()] {
        for (field, edit, expected) in EDITS {
            let mut edited = claim.clone();
            edit(edited.turn(5));
            let path = format!("turns.4.{field}");
            let mut forged = claim.signed();
            assert_ne!(forged.get(&path), edited.signed().get(&path), "{field} is not edited");
            forged.set(&path, edited.signed().get(&path));
            assert_eq!(reason(&forged), expected, "{field}");
        }
    }
}

#[test]
fn an_edited_field_is_found_when_everything_without_a_key_is_computed_anew() {
    for claim in [Claim::genuine(), Claim::without_a_content_hash()] {
        let genuine = claim.signed();
        for (field, edit, _) in EDITS.into_iter().skip(1) {
            let mut edited = claim.clone();
            edit(edited.turn(5));
            assert_eq!(reason(&edited.with_tokens_of(&genuine)), "bad_mac", "{field}");
        }
    }
}

#[test]
fn a_turn_under_another_id_is_found() {
    let claim = Claim::genuine();
    let mut edited = claim.clone();
    edited.turn(5).id = id(6);
    for edge in edited.slice.edges.iter_mut().filter(|edge| edge.child == id(5)) {
        edge.child = id(6);
    }
    assert_eq!(reason(&edited.with_tokens_of(&claim.signed())), "bad_mac");
}

#[test]
fn the_fields_of_two_turns_cannot_be_swapped() {
    let claim = Claim::genuine();
    for field in EDITS.map(|(field, _, _)| field) {
        let mut forged = claim.signed();
        let [one, two] = ["turns.1", "turns.2"].map(|turn| format!("{turn}.{field}"));
        let (a, b) = (forged.get(&one), forged.get(&two));
        assert_ne!(a, b, "{field}");
        forged.set(&one, b);
        forged.set(&two, a);
        assert_ne!(reason(&forged), "ok", "{field}");
    }
}

#[test]
fn text_cannot_move_from_one_field_to_the_next() {
    // Without the lengths of texts both digests would be of the same bytes.
    let mut claim = Claim::genuine();
    claim.turn(1).session_id = "s".to_owned();
    let genuine = claim.signed();
    claim.turn(1).session_id = "suser".to_owned();
    assert_eq!(reason(&claim.with_tokens_of(&genuine)), "bad_mac");
}
