//! Documents in few bytes: what is unpacked is what was packed, to the byte; other bytes are an error.

use kernel::binary::{BinaryError, from_cbor, is_packed, pack, to_cbor, unpack};
use kernel::export::parse::ParsedExport;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::prompt::record::{Document, Record, RecordedMessage};
use kernel::slicing::slice::Part;
use kernel::trust::attestation::{Attestation, Status};
use proptest::prelude::*;

use crate::cases;

/// Draws documents that a reader takes, of which few verify: ids twice and in any order, ends that are not turns, odd
/// numbers and names, tokens of other keys.
struct Draw(fastrand::Rng);

impl Draw {
    fn id(&mut self) -> TurnId {
        TurnId::from_u128(if self.0.bool() { self.0.u128(..4) } else { self.0.u128(..) })
    }

    fn hex(&mut self, bytes: usize) -> String {
        (0..bytes).map(|_| format!("{:02x}", self.0.u8(..))).collect()
    }

    fn name(&mut self) -> String {
        let odd = ["", "a", "\"\\", "\u{1}\u{1f}\n", "é漢🎉", "default", "\u{7f}\u{feff}"];
        match self.0.usize(..odd.len() + 2) {
            place if place < odd.len() => odd[place].to_owned(),
            _ => self.hex(16),
        }
    }

    fn float(&mut self) -> f32 {
        let odd = [
            0.0,
            -0.0,
            0.5,
            1.0,
            0.1,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            1e-45,
            65504.0,
            65505.0,
        ];
        match self.0.usize(..2 * odd.len()) {
            place if place < odd.len() => odd[place],
            _ => Some(f32::from_bits(self.0.u32(..))).filter(|n| n.is_finite()).unwrap_or(0.25),
        }
    }

    fn count(&mut self) -> u32 {
        let bits = self.0.u32(..33);
        self.0.u32(..).checked_shr(bits).unwrap_or(0)
    }

    fn time(&mut self) -> i64 {
        let odd = [0, i64::MIN, i64::MAX, -1, 9_224_318_015_999, -210_866_803_200];
        match self.0.usize(..2 * odd.len()) {
            place if place < odd.len() => odd[place],
            _ => 1_700_000_000 + self.0.i64(..100_000),
        }
    }

    fn some<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.0.u8(..4) > 0).then(|| draw(self))
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.usize(..of.len())]
    }

    fn turn(&mut self) -> Turn {
        Turn {
            id: self.id(),
            session_id: self.name(),
            role: self.one(Role::ALL),
            phase: self.one(Phase::ALL),
            salience: self.float(),
            trajectory_depth: self.count(),
            trajectory_sibling_order: self.count(),
            trajectory_homogeneity: self.float(),
            trajectory_temporal: self.float(),
            trajectory_complexity: self.float(),
            created_at: self.time(),
            content_hash: self.some(|draw| draw.hex(32)),
        }
    }

    fn token(&mut self, kind: &str, kid: &str) -> Option<String> {
        let kid = if self.0.bool() { kid.to_owned() } else { self.name() };
        let bytes = self.one(&[32, 32, 32, 31, 0]);
        let mac = if self.0.u8(..8) == 0 { self.name() } else { self.hex(bytes) };
        self.some(|_| format!("{kind}.{kid}.{mac}"))
    }

    fn attestation(&mut self) -> Attestation {
        let kid = self.name();
        let preset = self.one(&SlicePolicy::PRESETS);
        Attestation {
            v: self.count(),
            digest: self.hex(32),
            graph: self.name(),
            policy: SlicePolicy::preset(preset).unwrap(),
            role: self.name(),
            rls: self.0.bool(),
            status: self.one(Status::ALL),
            token: self.token("gk3", &kid),
            kid,
        }
    }

    fn document(&mut self) -> Document {
        let turns = self.0.usize(..40);
        let mut turns: Vec<Turn> = (0..turns).map(|_| self.turn()).collect();
        if self.0.bool() {
            turns.sort_by_key(|turn| turn.id);
        }
        let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).chain([self.id()]).collect();
        let edges = self.0.usize(..40);
        let mut edges: Vec<Edge> = (0..edges)
            .map(|_| Edge {
                parent: self.one(&ids),
                child: self.one(&ids),
                edge_type: self.one(EdgeType::ALL),
            })
            .collect();
        if self.0.bool() {
            edges.sort();
        }
        let export = ParsedExport {
            anchor: self.one(&ids),
            turns,
            edges,
            policy_id: self.name(),
            params_hash: self.hex(8),
            schema_version: self.name(),
            slice_id: self.hex(8),
            graph_snapshot_hash: Some(self.hex(8)),
            admissibility_token: self.some(|draw| draw.hex(16)),
            attestation: self.some(Self::attestation),
        };
        let kid = export.attestation.as_ref().map_or(String::new(), |claim| claim.kid.clone());
        let record = self.some(|draw| {
            let messages = draw.0.usize(..40);
            Record {
                context: draw.some(Self::hash),
                messages: (0..messages).map(|_| draw.message(&ids)).collect(),
                digest: draw.hash(),
                token: draw.token("gkp1", &kid),
            }
        });
        Document { export, record }
    }

    fn hash(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| self.0.u8(..))
    }

    fn message(&mut self, ids: &[TurnId]) -> RecordedMessage {
        RecordedMessage {
            turn_id: if self.0.u8(..8) == 0 { self.id() } else { self.one(ids) },
            part: self.one(Part::ALL),
            role: self.one(Role::ALL),
            created_at: self.some(Self::time),
            tokens: self.count() / 2,
            content: self.some(Self::hash),
            payload: self.some(Self::hash),
        }
    }
}

/// Where the item of CBOR ends that begins here.
fn item_end(cbor: &[u8], at: usize) -> usize {
    let (major, minor) = (cbor[at] >> 5, usize::from(cbor[at] & 31));
    let width = match minor {
        0..24 => 0,
        24..28 => 1 << (minor - 24),
        _ => panic!("a head without a length"),
    };
    let bytes = &cbor[at + 1..at + 1 + width];
    let number = bytes.iter().fold(0, |number: usize, byte| number << 8 | usize::from(*byte));
    let argument = if width == 0 { minor } else { number };
    let at = at + 1 + width;
    match major {
        2 | 3 => at + argument,
        4 => (0..argument).fold(at, |at, _| item_end(cbor, at)),
        5 | 6 => panic!("a map or a tag"),
        _ => at,
    }
}

fn text(document: &Document) -> String {
    document.canonical_text(&|| {})
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn any_document_comes_back_to_the_byte(seed: u64) {
        let drawn = Draw(fastrand::Rng::with_seed(seed)).document();
        let canonical = text(&drawn);
        // A reader takes it, as it takes those of the kernel.
        let document = Document::parse(&canonical, &|| {}).unwrap();
        let bytes = pack(&document, &|| {}).unwrap();
        prop_assert!(is_packed(&bytes) && bytes.len() < canonical.len());
        prop_assert_eq!(&bytes, &pack(&drawn, &|| {}).unwrap());
        let unpacked = unpack(&bytes, &|| {}).unwrap();
        prop_assert_eq!(text(&unpacked), canonical);
        prop_assert_eq!(format!("{unpacked:?}"), format!("{document:?}"));
    }

    #[test]
    fn changed_bytes_are_an_error(seed: u64) {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let document = draw.document();
        let bytes = pack(&document, &|| {}).unwrap();
        let mut changed = bytes.clone();
        let place = draw.0.usize(..bytes.len());
        changed[place] ^= 1 << draw.0.u8(..8);
        // A bit of the frame's header says nothing of what is in it.
        if let Ok(other) = unpack(&changed, &|| {}) {
            prop_assert_eq!(text(&other), text(&document));
        }
        let shorter = unpack(&bytes[..place], &|| {});
        prop_assert!(shorter.is_err());
        changed = bytes;
        changed.push(0);
        let longer = unpack(&changed, &|| {});
        prop_assert!(longer.is_err());
    }

    #[test]
    fn a_document_has_one_form_in_cbor(seed: u64) {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let document = draw.document();
        let cbor = to_cbor(&document, &|| {}).unwrap();
        prop_assert_eq!(text(&from_cbor(&cbor, &|| {}).unwrap()), text(&document));
        prop_assert_eq!(item_end(&cbor, 0), cbor.len());
        for _ in 0..10 {
            let mut changed = cbor.clone();
            for _ in 0..=draw.0.usize(..3) {
                let place = draw.0.usize(..changed.len());
                match draw.0.u8(..4) {
                    0 => changed[place] = draw.0.u8(..),
                    1 => changed[place] ^= 1 << draw.0.u8(..8),
                    2 => drop(changed.remove(place)),
                    _ => changed.insert(place, draw.one(&[0x18, 0x00, 0xf6, 0x9b, 0x5f, 0xff])),
                }
            }
            // What is taken is another document, in its one form, which a reader takes.
            if let Ok(other) = from_cbor(&changed, &|| {}) {
                prop_assert_eq!(to_cbor(&other, &|| {}).unwrap(), changed);
                let read = Document::parse(&text(&other), &|| {}).unwrap();
                prop_assert_eq!(text(&read), text(&other));
            }
        }
    }
}

/// A head of CBOR: its major type and an 8-byte argument.
fn head(major: u8, argument: u64) -> Vec<u8> {
    let mut head = vec![major << 5 | 27];
    head.extend(argument.to_be_bytes());
    head
}

#[test]
fn lengths_are_not_believed() {
    for length in [3, 1 << 31, u64::MAX / 16, u64::MAX] {
        for major in [2, 3, 4, 5, 6] {
            let cbor = [vec![0x82, 0x98, 24], head(major, length)].concat();
            assert!(matches!(from_cbor(&cbor, &|| {}), Err(BinaryError::Malformed(_))), "{length}");
        }
    }
    // Depth: no item of a document holds more than it should.
    assert!(from_cbor(&[0x81; 1 << 20], &|| {}).is_err());
}

#[test]
fn a_name_of_many_turns_is_as_long_as_its_json() {
    let ids = 16 * 10_000;
    let cbor = [
        vec![0x82, 0x98, 24],
        head(2, ids),
        vec![0; ids as usize],
        // No other ids; the anchor; a column of sessions with one name, of 12 000 bytes in JSON.
        vec![0x40, 0x00, 0x82, 0x81],
        head(3, 2000),
        vec![1; 2000],
        vec![0x80],
    ]
    .concat();
    assert_eq!(from_cbor(&cbor, &|| {}).unwrap_err(), BinaryError::TooLarge);
}

#[test]
fn a_column_of_one_value_makes_no_more_turns_than_a_document_has() {
    // 300 000 ids of 16 bytes would be turns of more than 64 MiB.
    let ids = 16 * 300_000;
    let cbor = [vec![0x82, 0x98, 24], head(2, ids), vec![0; ids as usize]].concat();
    let mut cbor = cbor;
    cbor.extend([0x40, 0x00]);
    assert_eq!(from_cbor(&cbor, &|| {}).unwrap_err(), BinaryError::TooLarge);
}

/// What few bytes are packed in is as much as they suggest, so that many small rows cost no hours.
#[test]
fn few_bytes_hold_no_large_document() {
    // The ids of 20 000 turns, all zero, no others, and nothing more: the end of the CBOR is not reached.
    let ids = 16 * 20_000u32;
    let begin = [vec![0x82, 0x98, 24], head(2, ids.into())].concat();
    let block = |kind: u32, size: usize, is_last: bool| {
        ((size as u32) << 3 | kind << 1 | u32::from(is_last)).to_le_bytes()[..3].to_vec()
    };
    let mut packed = b"\x89GKD\x01\x01\x28\xb5\x2f\xfd\xa0".to_vec();
    packed.extend((begin.len() as u32 + ids + 1).to_le_bytes());
    packed.extend(block(0, begin.len(), false));
    packed.extend(&begin);
    for size in [131_072, 131_072, ids as usize - 262_144] {
        packed.extend(block(1, size, false));
        packed.push(0);
    }
    packed.extend(block(0, 1, true));
    packed.push(0x40);
    assert_eq!(unpack(&packed, &|| {}).unwrap_err(), BinaryError::TooLarge);
    let cbor = [begin, vec![0; ids as usize], vec![0x40]].concat();
    assert!(matches!(from_cbor(&cbor, &|| {}), Err(BinaryError::Malformed(_))));

    // Nothing is packed that would not be read.
    let mut document = Draw(fastrand::Rng::with_seed(1)).document();
    let edge = Edge {
        parent: document.export.anchor,
        child: document.export.anchor,
        edge_type: EdgeType::Reply,
    };
    document.export.edges = vec![edge; 400_000];
    assert!(to_cbor(&document, &|| {}).is_ok());
    assert_eq!(pack(&document, &|| {}).unwrap_err(), BinaryError::TooLarge);
}
