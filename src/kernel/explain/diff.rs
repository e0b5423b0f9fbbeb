//! What differs between two slices.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::export::parse::ParsedExport;
use crate::graph::edge::Edge;
use crate::graph::turn::{Turn, TurnId};
use crate::interrupts::Interrupts;
use crate::json::JsonValue;
use crate::json::canonical::json_text;
use crate::policy::{POLICY_LIMITS, SlicePolicy};

/// One difference, from the first slice to the second.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// A turn only the first has.
    TurnGone(TurnId),
    /// A turn only the second has.
    TurnNew(TurnId),
    /// A field of a turn that both have.
    TurnField {
        /// The turn.
        id: TurnId,
        /// The field's name in exports.
        field: &'static str,
        /// Its value in the first, as in exports.
        was: String,
        /// Its value in the second.
        now: String,
    },
    /// An edge only the first has.
    EdgeGone(Edge),
    /// An edge only the second has.
    EdgeNew(Edge),
}

/// A difference between two exports in a key of the slice as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadDifference {
    /// The key in exports; `policy.KEY` for a parameter of the attested policy.
    pub field: String,
    /// Its value in the first.
    pub was: String,
    /// Its value in the second.
    pub now: String,
}

/// The differences between two exports other than those of turns, edges and tokens. The parameters of the policies are
/// compared where both exports are attested, hashes of contents where both have them.
#[must_use]
pub fn head_differences(was: &ParsedExport, now: &ParsedExport) -> Vec<HeadDifference> {
    let mut pairs = vec![
        ("anchor_turn_id".to_owned(), was.anchor.to_string(), now.anchor.to_string()),
        ("policy_id".to_owned(), was.policy_id.clone(), now.policy_id.clone()),
        ("policy_params_hash".to_owned(), was.params_hash.clone(), now.params_hash.clone()),
    ];
    if let (Some(was), Some(now)) = (&was.attestation, &now.attestation) {
        let (was, now) = SlicePolicy::comparable(&was.policy, &now.policy);
        let inputs = [inputs(&was), inputs(&now)];
        let [was, now] = [was, now].map(|policy| parameters(&policy.without_inputs()));
        let both = was.into_iter().zip(now);
        pairs.extend(both.map(|((key, was), (_, now))| (format!("policy.{key}"), was, now)));
        let [was, now] = inputs;
        pairs.extend([
            ("policy.pins".to_owned(), was.0, now.0),
            ("policy.seeds".to_owned(), was.1, now.1),
        ]);
    }
    pairs.extend([
        ("schema_version".to_owned(), was.schema_version.clone(), now.schema_version.clone()),
        ("slice_id".to_owned(), was.slice_id.clone(), now.slice_id.clone()),
    ]);
    if was.has_contents()
        && now.has_contents()
        && let (Some(was), Some(now)) = (&was.graph_snapshot_hash, &now.graph_snapshot_hash)
    {
        pairs.push(("graph_snapshot_hash".to_owned(), was.clone(), now.clone()));
    }
    let differ = pairs.into_iter().filter(|(_, was, now)| was != now);
    differ.map(|(field, was, now)| HeadDifference { field, was, now }).collect()
}

/// A policy's pins and its seeds, as it writes them.
fn inputs(policy: &SlicePolicy) -> (String, String) {
    let pins: Vec<TurnId> = policy.pins().to_vec();
    let seeds: BTreeMap<TurnId, f32> = policy.seeds().collect();
    let pins = if pins.is_empty() { "null".to_owned() } else { json_text(&pins) };
    let seeds = if seeds.is_empty() { "null".to_owned() } else { json_text(&seeds) };
    (pins, seeds)
}

/// A policy's parameters by name, in the order of its canonical text.
fn parameters(policy: &SlicePolicy) -> Vec<(String, String)> {
    let text = policy.canonical_text();
    let Ok(JsonValue::Object(entries)) = JsonValue::read(&text, POLICY_LIMITS, &|| {}) else {
        return Vec::new();
    };
    let flatten = |(key, value): (Cow<'_, str>, JsonValue<'_>)| match value {
        JsonValue::Object(weights) => weights
            .into_iter()
            .map(|(name, value)| (format!("{key}.{name}"), value.to_string()))
            .collect(),
        value => vec![(key.into_owned(), value.to_string())],
    };
    entries.into_iter().flat_map(flatten).collect()
}

/// Calls `visit` with the differences between the turns and edges of two exports. Where one has no hashes of contents,
/// as it is of the form of SlicePolicy v1 §6.1, those of the other are not a difference.
pub fn export_differences(
    was: &ParsedExport,
    now: &ParsedExport,
    check_interrupts: &dyn Fn(),
    visit: &mut dyn FnMut(Difference),
) {
    let has_hashes = was.has_contents() && now.has_contents();
    differences(
        (&was.turn_refs(), &was.edges),
        (&now.turn_refs(), &now.edges),
        check_interrupts,
        &mut |found| match found {
            Difference::TurnField { field: "content_hash", .. } if !has_hashes => {}
            found => visit(found),
        },
    );
}

/// Calls `visit` with the differences between two slices, given as turns and edges in export order: turns by id, then
/// edges.
pub fn differences(
    was: (&[&Turn], &[Edge]),
    now: (&[&Turn], &[Edge]),
    check_interrupts: &dyn Fn(),
    visit: &mut dyn FnMut(Difference),
) {
    let interrupts = Interrupts::new(check_interrupts);
    merge(
        was.0,
        now.0,
        |turn| turn.id,
        |was, now| {
            interrupts.item();
            match (was, now) {
                (Some(was), Some(now)) => compare_turns(was, now, visit),
                (Some(was), None) => visit(Difference::TurnGone(was.id)),
                (None, Some(now)) => visit(Difference::TurnNew(now.id)),
                (None, None) => {}
            }
        },
    );
    merge(
        was.1,
        now.1,
        |edge| *edge,
        |was, now| {
            interrupts.item();
            match (was, now) {
                (Some(was), None) => visit(Difference::EdgeGone(*was)),
                (None, Some(now)) => visit(Difference::EdgeNew(*now)),
                _ => {}
            }
        },
    );
}

/// Visits the items of two ascending lists in order, equal ones together.
fn merge<'a, T, K: Ord>(
    mut a: &'a [T],
    mut b: &'a [T],
    key: impl Fn(&T) -> K,
    mut visit: impl FnMut(Option<&'a T>, Option<&'a T>),
) {
    loop {
        let order = match (a.first(), b.first()) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(x), Some(y)) => key(x).cmp(&key(y)),
        };
        visit(a.first().filter(|_| order.is_le()), b.first().filter(|_| order.is_ge()));
        a = &a[usize::from(order.is_le())..];
        b = &b[usize::from(order.is_ge())..];
    }
}

fn compare_turns(was: &Turn, now: &Turn, visit: &mut dyn FnMut(Difference)) {
    macro_rules! compare {
        ($($field:ident),+) => {$(
            if was.$field != now.$field {
                visit(Difference::TurnField {
                    id: now.id,
                    field: stringify!($field),
                    was: field_text(&was.$field),
                    now: field_text(&now.$field),
                });
            }
        )+};
    }
    compare!(
        session_id,
        role,
        phase,
        salience,
        trajectory_depth,
        trajectory_sibling_order,
        trajectory_homogeneity,
        trajectory_temporal,
        trajectory_complexity,
        created_at,
        content_hash
    );
}

/// A value as exports write it, strings without their quotes.
fn field_text(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => json_text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::edge::EdgeType;
    use crate::graph::turn::StoredTurn;

    fn turn(id: u128, salience: f64) -> Turn {
        Turn::from(StoredTurn {
            id: TurnId::from_u128(id),
            salience: Some(salience),
            ..StoredTurn::default()
        })
    }

    /// An export of no turns under this policy.
    fn export(policy: &SlicePolicy, slice_id: &str) -> ParsedExport {
        let (hash, hex) = (policy.params_hash(), "0".repeat(64));
        let (id, anchor, policy) = (policy.id(), TurnId::from_u128(1), policy.quantized_text());
        let text = format!(
            r#"{{"anchor_turn_id":"{anchor}","turns":[],"edges":[],"policy_id":"{id}",
            "policy_params_hash":"{hash}","schema_version":"1.0.0","slice_id":"{slice_id}",
            "graph_snapshot_hash":"0000000000000000","admissibility_token":null,
            "attestation":{{"v":3,"kid":"k","digest":"{hex}","graph":"default","policy":{policy},
            "role":"r","rls":false,"status":"uncommitted","token":null}}}}"#
        );
        ParsedExport::parse(&text, &|| {}).unwrap()
    }

    /// An export of one turn, as SlicePolicy v1 §6.1 has it, with more in the turn and at the end.
    fn export_with(salience: &str, of_turn: &str, later: &str) -> String {
        let id = TurnId::from_u128(1);
        format!(
            r#"{{"anchor_turn_id":"{id}","turns":[{{"id":"{id}","session_id":"","role":"user",
            "phase":"planning","salience":{salience},"trajectory_depth":0,
            "trajectory_sibling_order":0,"trajectory_homogeneity":0.5,"trajectory_temporal":0.5,
            "trajectory_complexity":1.0,"created_at":1704067200{of_turn}}}],"edges":[],
            "policy_id":"slice_policy_v1","policy_params_hash":"02005444cae1117d",
            "schema_version":"1.0.0","slice_id":"0123456789abcdef"{later}}}"#
        )
    }

    #[test]
    fn an_export_of_the_locked_form_is_compared_in_what_it_has() {
        const LATER: &str = r#","graph_snapshot_hash":"fedcba9876543210","admissibility_token":null,
            "attestation":null"#;
        let read = |text: String| ParsedExport::parse_whole(&text, &|| {}).unwrap();
        let found = |was: &ParsedExport, now: &ParsedExport| {
            let mut found = Vec::new();
            export_differences(was, now, &|| {}, &mut |one| found.push(one));
            (head_differences(was, now), found)
        };
        let hash = format!(r#","content_hash":"{}""#, "0".repeat(64));
        let text = export_with("0.5", "", "");
        let error = ParsedExport::parse(&text, &|| {}).unwrap_err();
        assert_eq!(error, "turn.content_hash is missing");
        let (locked, now) = (read(text), read(export_with("0.5", &hash, LATER)));
        assert_eq!(found(&locked, &now), (Vec::new(), Vec::new()));
        assert_eq!(found(&now, &locked), (Vec::new(), Vec::new()));
        let (head, content) = found(&locked, &read(export_with("0.25", &hash, LATER)));
        assert_eq!((head, content.len()), (Vec::new(), 1));
        // What was made of such an export says nothing of contents either.
        let made = read(export_with("0.5", r#","content_hash":null"#, LATER));
        assert_eq!(found(&made, &now), (Vec::new(), Vec::new()));
        // Where both have hashes, one that is gone is a difference.
        let signed = LATER.replacen("null", &format!("\"{}\"", "0".repeat(32)), 1);
        let without = read(export_with("0.5", r#","content_hash":null"#, &signed));
        assert_eq!(found(&without, &now).1.len(), 1);
        // What is not in either form is refused in both.
        for (of_turn, later) in [(r#","content":"""#, ""), ("", r#","graph_snapshot_hash":null"#)] {
            let text = export_with("0.5", of_turn, later);
            assert!(ParsedExport::parse_whole(&text, &|| {}).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_and_parameters_that_differ_are_named() {
        let policy = |text: &str| -> SlicePolicy { text.parse().unwrap() };
        let was = export(&SlicePolicy::default(), "0000000000000001");
        let now = policy(r#"{"max_nodes":7,"phase_weights":{"planning":0.5}}"#);
        let now = export(&now, "0000000000000002");
        assert_eq!(head_differences(&was, &was), []);
        let found: Vec<_> = head_differences(&was, &now)
            .into_iter()
            .filter(|found| found.field != "policy_params_hash")
            .map(|found| [found.field, found.was, found.now])
            .collect();
        assert_eq!(
            found,
            [
                ["policy.max_nodes", "256", "7"],
                ["policy.phase_weights.planning", "0.9", "0.5"],
                ["slice_id", "0000000000000001", "0000000000000002"],
            ]
        );
    }

    #[test]
    fn pins_and_seeds_that_differ_are_named() {
        let policy = |text: &str| -> SlicePolicy { text.parse().unwrap() };
        let id = TurnId::from_u128;
        let given = format!(
            r#"{{"preset":"chat","pins":["{}"],"seeds":{{"{}":0.5,"{}":1}}}}"#,
            id(1),
            id(2),
            id(3)
        );
        let was = export(&policy("chat"), "0000000000000001");
        let now = export(&policy(&given), "0000000000000001");
        let found: Vec<_> = head_differences(&was, &now)
            .into_iter()
            .map(|found| [found.field, found.was, found.now])
            .collect();
        let (pins, seeds) =
            (format!(r#"["{}"]"#, id(1)), format!(r#"{{"{}":0.5,"{}":1.0}}"#, id(2), id(3)));
        assert_eq!(found, [["policy.pins", "null", &pins], ["policy.seeds", "null", &seeds]]);
    }

    #[test]
    fn edges_that_only_one_has_are_told_apart() {
        let edge = |child| Edge {
            parent: TurnId::from_u128(1),
            child: TurnId::from_u128(child),
            edge_type: EdgeType::Reply,
        };
        let mut found = Vec::new();
        differences((&[], &[edge(1), edge(2)]), (&[], &[edge(2), edge(3)]), &|| {}, &mut |d| {
            found.push(d);
        });
        assert_eq!(found, [Difference::EdgeGone(edge(1)), Difference::EdgeNew(edge(3))]);
    }

    #[test]
    fn gone_new_and_changed_turns_are_told_apart() {
        let (a, b, b2, c) = (turn(1, 0.1), turn(2, 0.3), turn(2, 0.4), turn(3, 0.1));
        let mut found = Vec::new();
        differences((&[&a, &b], &[]), (&[&b2, &c], &[]), &|| {}, &mut |difference| {
            found.push(difference);
        });
        assert_eq!(
            found,
            [
                Difference::TurnGone(a.id),
                Difference::TurnField {
                    id: b.id,
                    field: "salience",
                    was: "0.3".to_owned(),
                    now: "0.4".to_owned()
                },
                Difference::TurnNew(c.id),
            ]
        );
    }
}
