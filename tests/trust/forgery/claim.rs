//! A slice that the kernel signs, and the best forgery without its key.

use std::rc::Rc;

use graph_kernel_tests::key_ring::TestRing;
use kernel::export::document::Export;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::trust::attestation::{Circumstances, Status};
use kernel::trust::keys::{Secret, SigningKeys};
use kernel::verification::verify::verify_export;

use crate::document::{Document, Json};

/// A slice with everything that is signed with it.
#[derive(Clone, Debug)]
pub struct Claim {
    pub slice: Slice,
    pub policy: SlicePolicy,
    pub circumstances: Circumstances,
}

impl Claim {
    /// Five turns; neighbours differ in every field; the middle one is the anchor.
    pub fn genuine() -> Self {
        let edge =
            |parent, child, edge_type| Edge { parent: id(parent), child: id(child), edge_type };
        Claim {
            slice: Slice {
                anchor: id(3),
                turns: (1..=5).map(turn).map(selected).collect(),
                edges: vec![
                    edge(1, 2, EdgeType::Reply),
                    edge(2, 3, EdgeType::Reply),
                    edge(2, 3, EdgeType::Reference),
                    edge(3, 4, EdgeType::Branch),
                    edge(3, 5, EdgeType::Default),
                ],
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

    /// The same, with one turn without a content hash: the content fingerprint is then computed from counts and times.
    pub fn without_a_content_hash() -> Self {
        let mut claim = Self::genuine();
        claim.turn(2).content_hash = None;
        claim
    }

    /// The turn of this number, 1 to 5.
    pub fn turn(&mut self, number: usize) -> &mut Turn {
        Rc::make_mut(&mut self.slice.turns[number - 1].turn)
    }

    /// The export that these keys sign.
    pub fn signed_with(&self, keys: &SigningKeys) -> Document {
        let mut export = Export::new(&self.slice, &self.policy, &|| {});
        export.attest(&self.policy, keys, &keys.v2, self.circumstances.clone());
        Document::parse(&export.to_json())
    }

    /// The kernel's export.
    pub fn signed(&self) -> Document {
        self.signed_with(&ring().active())
    }

    /// The best forgery without the key: hashes, fingerprints and digest are computed anew, key id
    /// and tokens are those of a genuine export.
    pub fn with_tokens_of(&self, genuine: &Document) -> Document {
        let other = SigningKeys::derive(&Secret::new(vec![0xee; 32]), 1);
        let mut forged = self.signed_with(&other);
        for path in ["admissibility_token", "attestation.kid", "attestation.token"] {
            forged.set(path, genuine.get(path));
        }
        forged
    }
}

pub fn id(number: u64) -> TurnId {
    TurnId::from_u64_pair(0x4000, 0x8000_0000_0000_0000 + number)
}

pub fn turn(number: u64) -> Turn {
    let n = number as usize;
    Turn {
        id: id(number),
        session_id: format!("session {}", n % 2),
        role: Role::ALL[n % Role::ALL.len()],
        phase: Phase::ALL[n % Phase::ALL.len()],
        salience: n as f32 / 10.0,
        trajectory_depth: number as u32,
        trajectory_sibling_order: number.abs_diff(10) as u32,
        trajectory_homogeneity: 1.0 / (n as f32 + 1.0),
        trajectory_temporal: n as f32 / 5.0,
        trajectory_complexity: n as f32 * 1.5,
        created_at: 1_704_067_200 + 60 * number as i64,
        content_hash: Some(format!("{number:064x}")),
    }
}

pub fn selected(turn: Turn) -> SelectedTurn {
    SelectedTurn {
        turn: turn.into(),
        distance: 0,
        priority: 0.0,
        part: Part::Line,
        seed: None,
        micros: 0,
        tokens: 0,
        selection_order: 0,
    }
}

/// The verifier: two epochs of the graph `default`, the second one signs.
pub fn ring() -> TestRing {
    let mut ring = TestRing::new(&[1; 32]);
    ring.epochs.push((2, vec![2; 32]));
    ring
}

/// The verifier's reason.
pub fn reason(export: &Document) -> &'static str {
    reason_of(&export.text())
}

pub fn reason_of(text: &str) -> &'static str {
    verify_export(text, &ring()).reason()
}

/// The string at a path.
pub fn string(export: &Document, path: &str) -> String {
    match export.get(path) {
        Json::String(text) => text,
        other => panic!("{path} is {other}"),
    }
}

#[test]
fn genuine_exports_verify() {
    for claim in [Claim::genuine(), Claim::without_a_content_hash()] {
        assert_eq!(reason(&claim.signed()), "ok");
    }
}

#[test]
fn a_forgery_that_changes_nothing_verifies() {
    // Otherwise the others would be refused for the wrong reason.
    let genuine = Claim::genuine().signed();
    let forged = Claim::genuine().with_tokens_of(&genuine);
    assert_eq!(forged.text(), genuine.text());
}
