//! Policies as text: a canonical text reads back, and any other text is read or refused.

use kernel::policy::SlicePolicy;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::cases;
use crate::generate::{PolicyParams, policies};

/// Any valid policy, also with weights of any size.
fn any_policy() -> impl Strategy<Value = PolicyParams> {
    let weight = prop_oneof![-1e6..=1e6f64, -40.0..40.0f64, -1e-5..1e-5f64];
    let counts = (0..=i32::MAX as u32, 0..=i32::MAX as u32);
    let weights = prop::array::uniform5(weight);
    (policies(1..=10_000), weights, counts, any::<bool>()).prop_map(
        |(params, phase_weights, (max_radius, max_siblings_per_node), small)| {
            if small {
                return params;
            }
            PolicyParams { phase_weights, max_radius, max_siblings_per_node, ..params }
        },
    )
}

/// A policy and one that differs in the last digits of one number, or not at all.
fn near_pairs() -> impl Strategy<Value = (PolicyParams, PolicyParams)> {
    let step = select(vec![0.0, 1e-9, 3e-8, 1e-7, 4e-7, 5e-7, 6e-7, 1e-6, 2e-6]);
    (any_policy(), 0..8usize, step).prop_map(|(one, place, step)| {
        let mut other = one.clone();
        match place {
            weight @ 0..5 => other.phase_weights[weight] += step,
            5 => other.salience_weight = (other.salience_weight + step).min(1.0),
            6 => other.distance_decay = (other.distance_decay + step).min(1.0),
            _ => other.max_radius ^= u32::from(step > 5e-7),
        }
        other.phase_weights.iter_mut().for_each(|weight| *weight = weight.clamp(-1e6, 1e6));
        (one, other)
    })
}

/// Texts in the place of a JSON value.
fn json_values() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "null",
            "true",
            "[]",
            "{}",
            "\"\"",
            "-0",
            "0",
            "1",
            "1.0",
            "-1",
            "1e400",
            "-1e-400",
            "10001",
            "2147483648",
            "18446744073709551616",
            "0.30000000000000000001",
            "NaN",
            "\"slice_policy_v1\"",
            "[[[[{\"max_nodes\":1}]]]]",
            "\"\\ud800\"",
            "1e+1e",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}")),
        any::<String>().prop_map(|text| format!("{text:?}")),
    ]
}

/// Objects of known and unknown keys with values of any kind.
fn json_objects() -> impl Strategy<Value = String> {
    let key = select(vec![
        "version",
        "max_nodes",
        "max_radius",
        "phase_weights",
        "salience_weight",
        "distance_decay",
        "include_siblings",
        "max_siblings_per_node",
        "synthesis",
        "",
    ]);
    let entries = prop::collection::vec((key, json_values()), 0..6);
    (entries, any::<bool>()).prop_map(|(entries, nested)| {
        let entries: Vec<String> =
            entries.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
        let object = format!("{{{}}}", entries.join(","));
        if nested { format!(r#"{{"phase_weights":{object}}}"#) } else { object }
    })
}

/// A canonical text with a few random changes.
fn mutated_texts() -> impl Strategy<Value = String> {
    let accident = (any::<Index>(), any::<Index>(), any::<char>(), 0..5u8);
    let accidents = prop::collection::vec(accident, 1..6);
    (policies(1..=64), accidents).prop_map(|(params, accidents)| {
        let mut text: Vec<char> = params.policy().canonical_text().chars().collect();
        for (place, other, replacement, kind) in accidents {
            let (place, other) = (place.index(text.len()), other.index(text.len()));
            match kind {
                0 => text[place] = replacement,
                1 => text.insert(place, replacement),
                2 => text[place] = text[other],
                3 => text.insert(place, text[other]),
                _ => {
                    if text.len() > 1 {
                        text.remove(place);
                    }
                }
            }
        }
        text.into_iter().collect()
    })
}

/// Checks that a text is refused with a message, or read as a policy whose canonical text reads back.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<SlicePolicy>() {
        Ok(policy) => prop_assert_eq!(policy.canonical_text().parse(), Ok(policy)),
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn a_canonical_text_reads_back_as_the_same_policy(params in any_policy()) {
        let policy = params.policy();
        let read: SlicePolicy = policy.canonical_text().parse().unwrap();
        prop_assert_eq!(read.params_hash(), policy.params_hash());
        prop_assert_eq!(read.quantized_text(), policy.quantized_text());
        prop_assert_eq!(read.canonical_text(), policy.canonical_text());
        prop_assert_eq!(read, policy);
    }

    #[test]
    fn policies_of_one_hash_act_alike((one, other) in near_pairs()) {
        let (one, other) = (one.policy(), other.policy());
        let same_hash = one.params_hash() == other.params_hash();
        prop_assert_eq!(same_hash, one.canonical_text() == other.canonical_text());
        prop_assert_eq!(same_hash, one == other);
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        check_text(&text)?;
    }

    #[test]
    fn any_json_object_is_read_or_refused(text in json_objects()) {
        check_text(&text)?;
    }

    #[test]
    fn mutated_policies_are_read_or_refused(text in mutated_texts()) {
        check_text(&text)?;
    }
}
