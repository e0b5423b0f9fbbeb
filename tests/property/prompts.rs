//! Records of prompts: what the kernel records of any slice by any policy verifies, and in no other order.

use std::collections::HashMap;

use graph_kernel_tests::key_ring::TestRing;
use kernel::export::document::Export;
use kernel::graph::turn::{Turn, TurnId, is_in_second};
use kernel::policy::SlicePolicy;
use kernel::prompt::messages::messages;
use kernel::prompt::record::{Document, Record, RecordedMessage};
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::slicing::slicer::{Limits, SliceError, Slicer};
use kernel::trust::attestation::{Circumstances, Status};
use kernel::verification::verify::{verify_document, verify_export};
use proptest::prelude::*;

use crate::cases;
use crate::generate::{Case, graphs, hubs, policies};
use crate::naive_v2::PolicyV2;
use crate::policy_v2::{policies_v2, store};

/// The times of infinities, as turns have them and in microseconds.
const INFINITE: (i64, i64) = (9_224_318_015_999, i64::MAX);
const MINUS_INFINITE: (i64, i64) = (-210_866_803_200, i64::MIN);

/// Gives some turns of the graph no time, or one that is infinite or between two seconds. The times of all in
/// microseconds.
fn with_odd_times(case: &mut Case, seed: u64) -> HashMap<TurnId, i64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut micros = HashMap::new();
    for turn in &mut case.graph.turns {
        let (second, micro) = match random.u8(..12) {
            0 => (0, 0),
            1 => INFINITE,
            2 => MINUS_INFINITE,
            3 => (-1, -1),
            4 => (turn.created_at, turn.created_at * 1_000_000 + random.i64(0..1_000_000)),
            _ => (turn.created_at, turn.created_at * 1_000_000),
        };
        turn.created_at = second;
        micros.insert(turn.id, micro);
    }
    micros
}

/// The slice at the anchor, if the policy lets there be one.
fn slice_of(
    case: &Case,
    policy: &SlicePolicy,
    micros: HashMap<TurnId, i64>,
    seed: u64,
) -> Option<Slice> {
    let mut store = store(&case.graph, seed).with_micros(micros);
    match Slicer::new(&mut store, policy, Limits::default()).slice(case.anchor) {
        Ok(slice) => Some(slice),
        Err(SliceError::AnchorNotFound(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

fn recorded(selected: &SelectedTurn, seed: u64) -> RecordedMessage {
    let SelectedTurn { turn, micros, part, tokens, .. } = selected;
    let Turn { id, role, created_at, .. } = **turn;
    let mut random = fastrand::Rng::with_seed(seed ^ id.as_u128() as u64);
    let mut hash = || random.bool().then(|| std::array::from_fn(|_| random.u8(..)));
    RecordedMessage {
        turn_id: id,
        part: *part,
        role,
        created_at: (created_at != 0).then_some(*micros),
        tokens: *tokens,
        content: hash(),
        payload: hash(),
    }
}

fn signed(slice: &Slice, policy: &SlicePolicy, messages: Vec<RecordedMessage>) -> String {
    let keys = ring().active();
    let mut export = Export::new(slice, policy, &|| {});
    let circumstances = Circumstances {
        graph: "default".to_owned(),
        role: "alice".to_owned(),
        rls: true,
        status: Status::Attested,
    };
    export.attest(policy, &keys, &keys.v2, circumstances);
    let attestation = export.attestation.as_ref().unwrap();
    let context = messages.len().is_multiple_of(2).then_some([7; 32]);
    Record::new(context, messages, attestation, &keys, &|| {}).to_json(&export.to_json(), &|| {})
}

fn ring() -> TestRing {
    TestRing::new(&[4; 32])
}

fn reason(record: &str) -> &'static str {
    verify_document(record, &ring()).reason()
}

fn check(mut case: Case, policy: &SlicePolicy, seed: u64) -> Result<(), TestCaseError> {
    let micros = with_odd_times(&mut case, seed);
    let Some(slice) = slice_of(&case, policy, micros, seed) else { return Ok(()) };
    let recorded: Vec<RecordedMessage> =
        messages(&slice, policy, &|| {}).into_iter().map(|turn| recorded(turn, seed)).collect();
    for (message, turn) in recorded.iter().zip(messages(&slice, policy, &|| {})) {
        prop_assert!(is_in_second(message.created_at, turn.turn.created_at));
    }
    let record = signed(&slice, policy, recorded.clone());
    let verdict = verify_document(&record, &ring());
    prop_assert_eq!(verdict.reason(), "ok", "{:#?}", verdict.checks);
    let read = Document::parse(&record, &|| {}).unwrap();
    prop_assert_eq!(&read.record.as_ref().unwrap().messages, &recorded);
    prop_assert_eq!(&read.canonical_text(&|| {}), &record);
    prop_assert_eq!(verify_export(&record, &ring()).reason(), "malformed");

    // Signed as well, so that nothing but the order is wrong.
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..4 {
        let mut other = recorded.clone();
        random.shuffle(&mut other);
        let expected = if other == recorded { "ok" } else { "other_order" };
        prop_assert_eq!(reason(&signed(&slice, policy, other)), expected);
    }
    let place = random.usize(..recorded.len());
    let mut other = recorded.clone();
    let message = other.remove(place);
    prop_assert_eq!(reason(&signed(&slice, policy, other.clone())), "other_turns");
    other.insert(random.usize(..=other.len()), message.clone());
    other.insert(random.usize(..=other.len()), message);
    prop_assert_eq!(reason(&signed(&slice, policy, other)), "other_turns");
    // In another part it stands in another place, or the policy does not have the part, or nothing tells.
    let mut other = recorded.clone();
    other[place].part = Part::ALL[random.usize(..Part::ALL.len())];
    let found = reason(&signed(&slice, policy, other.clone()));
    let is_anchor = other[place].turn_id == slice.anchor;
    if other == recorded {
        prop_assert_eq!(found, "ok");
    } else if is_anchor {
        prop_assert_eq!(found, "other_turns");
    } else {
        prop_assert!(["ok", "other_turns", "other_order"].contains(&found), "{}", found);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn records_by_v1_verify_in_their_order_alone(case in graphs(), params in policies(1..=40), seed: u64) {
        check(case, &params.policy(), seed)?;
    }

    #[test]
    fn records_by_v2_verify_in_their_order_alone(case in graphs(), policy in policies_v2(), seed: u64) {
        check(case, &policy.policy(), seed)?;
    }

    /// Without a radius there is no line, whatever else the policy allows.
    #[test]
    fn records_without_a_radius_verify(case in graphs(), policy in policies_v2(), v2: bool, seed: u64) {
        let mut policy: PolicyV2 = policy;
        policy.common.max_radius = 0;
        policy.common.include_siblings = true;
        policy.common.max_siblings_per_node = 4;
        check(case, &if v2 { policy.policy() } else { policy.common.policy() }, seed)?;
    }
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn records_of_large_slices_verify(case in hubs(200..=400, 800), policy in policies_v2(), seed: u64) {
        let mut policy: PolicyV2 = policy;
        policy.common.max_nodes = 300;
        policy.max_tokens = None;
        policy.edge_weights = [1.0; 4];
        check(case, &policy.policy(), seed)?;
    }
}
