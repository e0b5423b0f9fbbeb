//! The published measures of the five turns, and the violations of a single turn.

use std::sync::LazyLock;

use graph_kernel_tests::data::read_text;
use kernel::evidence::diversity::Diversity;
use kernel::evidence::sufficiency::SufficiencyPolicy;
use kernel::graph::turn::{StoredTurn, Turn, TurnId};
use kernel::json::canonical::json_text;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::data;
use crate::reference::five_turns;

#[derive(Deserialize)]
struct Published {
    metrics: Value,
    policies: serde_json::Map<String, Value>,
    weak_turn: WeakTurn,
    weak_turn_strict_violations: Vec<Value>,
}

#[derive(Deserialize)]
struct WeakTurn {
    role: String,
    phase: String,
    salience: f64,
}

static PUBLISHED: LazyLock<Published> =
    LazyLock::new(|| serde_json::from_str(&read_text(&data("sufficiency.json"))).unwrap());

impl WeakTurn {
    fn turn(&self) -> Turn {
        StoredTurn {
            id: TurnId::from_u128(1),
            session_id: Some("s"),
            role: Some(&self.role),
            phase: Some(&self.phase),
            salience: Some(self.salience),
            ..StoredTurn::default()
        }
        .into()
    }
}

#[test]
fn the_diversity_of_the_five_turns_is_the_published_one() {
    // The crate writes names with capitals.
    let expected: Value =
        serde_json::from_str(&PUBLISHED.metrics.to_string().to_lowercase()).unwrap();
    let found: Value =
        serde_json::from_str(&json_text(&Diversity::of(&five_turns().turns))).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn presets_are_the_published_ones_and_pass_the_five_turns() {
    let diversity = Diversity::of(&five_turns().turns);
    assert_eq!(PUBLISHED.policies.len(), SufficiencyPolicy::PRESETS.len());
    for (name, expected) in &PUBLISHED.policies {
        let preset = SufficiencyPolicy::preset(name).unwrap();
        let text = json_text(&preset);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *expected);
        assert_eq!(text.parse(), Ok(preset));
        assert_eq!(preset.violations(&diversity), [], "{name}");
    }
}

#[test]
fn a_weak_turn_violates_the_strict_preset_as_published() {
    let names = [
        ("min_turns", "InsufficientTurns"),
        ("min_roles", "InsufficientRoles"),
        ("min_phases", "InsufficientPhases"),
        ("min_high_salience", "InsufficientHighSalience"),
        ("require_exchange", "NoExchange"),
        ("min_mean_salience", "LowMeanSalience"),
    ];
    let strict = SufficiencyPolicy::preset("strict").unwrap();
    let violations = strict.violations(&Diversity::of(&[PUBLISHED.weak_turn.turn()]));
    let found: Vec<Value> = violations
        .iter()
        .map(|violation| {
            let (_, name) = names.iter().find(|(key, _)| *key == violation.key).unwrap();
            let number = |n: f32| serde_json::from_str::<Value>(&n.to_string()).unwrap();
            let (required, actual) = (number(violation.required), number(violation.actual));
            match violation.key {
                "require_exchange" => json!(name),
                _ => json!({ *name: { "required": required, "actual": actual } }),
            }
        })
        .collect();
    assert_eq!(found, PUBLISHED.weak_turn_strict_violations);
}
