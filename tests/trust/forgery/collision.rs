//! Two slices with one slice_id: a 64-bit fingerprint does not resist a search for collisions. The published token is
//! the same for both, the attestation must not be.

use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::Slice;
use kernel::trust::attestation::{Circumstances, Status};

use crate::claim::{Claim, reason, selected, string, turn};

const ANCHOR: &str = "00000000-0000-4000-8000-000000000001";
const CHILDREN: [&str; 2] =
    ["b8deeab2-a2af-4000-8000-0000000021e1", "57c94f99-000e-4000-8000-00000000c160"];
const SLICE_ID: &str = "7376cb43901cb287";

/// The anchor with one reply; the reply's turn is the same but for its id.
fn slice_with(child: &str) -> Claim {
    let [anchor, child]: [TurnId; 2] = [ANCHOR, child].map(|id| id.parse().unwrap());
    let turns = [anchor, child].map(|id| {
        let mut turn = turn(1);
        (turn.id, turn.content_hash) = (id, None);
        selected(turn)
    });
    Claim {
        slice: Slice {
            anchor,
            turns: turns.into(),
            edges: vec![Edge { parent: anchor, child, edge_type: EdgeType::Reply }],
            pins_left_out: Vec::new(),
        },
        policy: SlicePolicy::default(),
        circumstances: Circumstances {
            graph: "default".to_owned(),
            role: "alice".to_owned(),
            rls: false,
            status: Status::Attested,
        },
    }
}

#[test]
fn the_two_slices_have_one_published_token() {
    for path in ["slice_id", "graph_snapshot_hash", "admissibility_token"] {
        let [one, other] = CHILDREN.map(|child| string(&slice_with(child).signed(), path));
        assert_eq!(one, other, "{path}");
    }
    assert_eq!(string(&slice_with(CHILDREN[0]).signed(), "slice_id"), SLICE_ID);
}

#[test]
fn the_attestation_tells_the_two_slices_apart() {
    let [one, other] = CHILDREN.map(slice_with);
    assert_eq!(reason(&one.signed()), "ok");
    assert_eq!(reason(&other.signed()), "ok");
    let [digest, token] = ["attestation.digest", "attestation.token"];
    assert_ne!(string(&one.signed(), digest), string(&other.signed(), digest));
    assert_ne!(string(&one.signed(), token), string(&other.signed(), token));

    let mut forged = one.signed();
    for path in ["turns", "edges"] {
        forged.set(path, other.signed().get(path));
    }
    assert_eq!(reason(&forged), "digest_mismatch");
    assert_eq!(reason(&other.with_tokens_of(&one.signed())), "bad_mac");
}
