//! Turns and edges that were removed and added.

use kernel::graph::edge::{Edge, EdgeType};

use crate::claim::{Claim, id, reason, selected, turn};

type Edit = fn(&mut Claim);

const EDITS: [(&str, Edit); 9] = [
    ("turn removed", |claim| {
        claim.slice.turns.pop();
        claim.slice.edges.pop();
    }),
    ("first turn removed", |claim| {
        claim.slice.turns.remove(0);
        claim.slice.edges.remove(0);
    }),
    ("turn added", |claim| claim.slice.turns.push(selected(turn(6)))),
    ("turn added with an edge", |claim| {
        claim.slice.turns.push(selected(turn(6)));
        claim.slice.edges.push(edge(5, 6));
    }),
    ("edge removed", |claim| {
        claim.slice.edges.remove(1);
    }),
    ("all edges removed", |claim| claim.slice.edges.clear()),
    ("edge added", |claim| claim.slice.edges.push(edge(4, 5))),
    ("edge retyped", |claim| claim.slice.edges[4].edge_type = EdgeType::Reply),
    ("anchor moved", |claim| claim.slice.anchor = id(1)),
];

fn edge(parent: u64, child: u64) -> Edge {
    Edge { parent: id(parent), child: id(child), edge_type: EdgeType::Reply }
}

#[test]
fn an_edited_selection_is_found() {
    for claim in [Claim::genuine(), Claim::without_a_content_hash()] {
        for (name, edit) in EDITS {
            let mut edited = claim.clone();
            edit(&mut edited);
            let mut forged = claim.signed();
            for path in ["anchor_turn_id", "turns", "edges"] {
                forged.set(path, edited.signed().get(path));
            }
            assert_eq!(reason(&forged), "slice_id_mismatch", "{name}");
        }
    }
}

#[test]
fn an_edited_selection_is_found_when_everything_without_a_key_is_computed_anew() {
    for claim in [Claim::genuine(), Claim::without_a_content_hash()] {
        for (name, edit) in EDITS {
            let mut edited = claim.clone();
            edit(&mut edited);
            assert_eq!(reason(&edited.with_tokens_of(&claim.signed())), "bad_mac", "{name}");
        }
    }
}

#[test]
fn turns_and_edges_of_another_genuine_export_are_found() {
    let claim = Claim::genuine();
    let mut other = claim.clone();
    other.turn(1).salience = 0.75;
    let mut forged = claim.signed();
    forged.set("turns", other.signed().get("turns"));
    // The same selection and contents: only the digest differs.
    assert_eq!(reason(&forged), "digest_mismatch");
    forged.set("attestation.digest", other.signed().get("attestation.digest"));
    assert_eq!(reason(&forged), "bad_mac");
}
