//! Whether a slice is sufficient as evidence.

use std::str::FromStr;

use serde::Serialize;

use crate::evidence::diversity::Diversity;
use crate::json::JsonValue;
use crate::json::object::{Object, ParseError};
use crate::policy::{POLICY_LIMITS, PolicyError, check_length};

const MAX_COUNT: u32 = i32::MAX as u32;

/// What a slice needs to be sufficient.
///
/// Read it from JSON with [`FromStr`]: a preset's name as a string, or an object in which missing
/// keys take the default policy's values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SufficiencyPolicy {
    /// The least number of turns.
    pub min_turns: u32,
    /// The least number of different roles.
    pub min_roles: u32,
    /// The least number of different phases.
    pub min_phases: u32,
    /// The least number of turns of high salience.
    pub min_high_salience: u32,
    /// Whether both a user and an assistant must have a turn.
    pub require_exchange: bool,
    /// The least mean salience, 0 … 1.
    pub min_mean_salience: f32,
}

impl Default for SufficiencyPolicy {
    fn default() -> Self {
        SufficiencyPolicy {
            min_turns: 3,
            min_roles: 2,
            min_phases: 1,
            min_high_salience: 1,
            require_exchange: true,
            min_mean_salience: 0.3,
        }
    }
}

/// One thing that a slice lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Violation {
    /// The key of the policy that asks for more.
    pub key: &'static str,
    /// What it asks for; 1 stands for true.
    pub required: f32,
    /// What there is; 0 stands for false.
    pub actual: f32,
}

impl SufficiencyPolicy {
    /// The names of the presets.
    pub const PRESETS: [&'static str; 3] = ["default", "lenient", "strict"];

    /// The preset of this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            "lenient" => Some(SufficiencyPolicy {
                min_turns: 1,
                min_roles: 1,
                min_phases: 1,
                min_high_salience: 0,
                require_exchange: false,
                min_mean_salience: 0.0,
            }),
            "strict" => Some(SufficiencyPolicy {
                min_turns: 5,
                min_roles: 2,
                min_phases: 2,
                min_high_salience: 2,
                require_exchange: true,
                min_mean_salience: 0.5,
            }),
            _ => None,
        }
    }

    /// What turns of this diversity lack, in the order of the policy's keys.
    #[must_use]
    pub fn violations(&self, found: &Diversity) -> Vec<Violation> {
        let least = |key, required: u32, actual: usize| Violation {
            key,
            required: required as f32,
            actual: actual as f32,
        };
        let saliences = &found.salience_stats;
        let exchange = (u32::from(self.require_exchange), usize::from(found.has_exchange));
        let asked = [
            least("min_turns", self.min_turns, found.turn_count),
            least("min_roles", self.min_roles, found.unique_roles),
            least("min_phases", self.min_phases, found.unique_phases),
            least("min_high_salience", self.min_high_salience, saliences.high_salience_count),
            least("require_exchange", exchange.0, exchange.1),
            Violation {
                key: "min_mean_salience",
                required: self.min_mean_salience,
                actual: saliences.mean,
            },
        ];
        asked.into_iter().filter(|violation| violation.actual < violation.required).collect()
    }

    fn from_object(json: JsonValue<'_>) -> Result<Self, ParseError> {
        let mut policy = Self::default();
        let mut object = Object::policy("sufficiency policy", json)?;
        for (key, count) in [
            ("min_turns", &mut policy.min_turns),
            ("min_roles", &mut policy.min_roles),
            ("min_phases", &mut policy.min_phases),
            ("min_high_salience", &mut policy.min_high_salience),
        ] {
            if object.has(key) {
                let wanted = format_args!("an integer between 0 and {MAX_COUNT}");
                *count = object.read(key, wanted, |json| match json {
                    JsonValue::Number(number) => {
                        let count = u32::try_from(number.written_integer()?).ok();
                        count.filter(|count| *count <= MAX_COUNT)
                    }
                    _ => None,
                })?;
            }
        }
        if object.has("require_exchange") {
            policy.require_exchange = object.boolean("require_exchange")?;
        }
        if object.has("min_mean_salience") {
            let wanted = "a number between 0 and 1";
            policy.min_mean_salience =
                object.read("min_mean_salience", wanted, |json| match json {
                    JsonValue::Number(number) => {
                        let mean = number.as_f64().filter(|mean| (0.0..=1.0).contains(mean));
                        mean.map(|mean| mean as f32)
                    }
                    _ => None,
                })?;
        }
        object.finish()?;
        Ok(policy)
    }
}

impl FromStr for SufficiencyPolicy {
    type Err = PolicyError;

    fn from_str(json: &str) -> Result<Self, PolicyError> {
        check_length("sufficiency", json)?;
        match JsonValue::read(json, POLICY_LIMITS, &|| {}) {
            Ok(JsonValue::String(name)) => {
                Self::preset(&name).ok_or_else(|| PolicyError::unknown_preset("sufficiency", &name))
            }
            Ok(json @ JsonValue::Object(_)) => {
                Self::from_object(json).map_err(PolicyError::Parameter)
            }
            Ok(other) => Err(PolicyError::Parameter(format!(
                "sufficiency policy must be a JSON object or a preset name, not {other}"
            ))),
            Err(error) => Err(PolicyError::of_json("sufficiency", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::MAX_POLICY_TEXT_BYTES;

    #[test]
    fn missing_keys_take_defaults() {
        assert_eq!("{}".parse(), Ok(SufficiencyPolicy::default()));
        let parsed: SufficiencyPolicy = r#"{"min_turns":9,"min_mean_salience":0}"#.parse().unwrap();
        let wanted =
            SufficiencyPolicy { min_turns: 9, min_mean_salience: 0.0, ..Default::default() };
        assert_eq!(parsed, wanted);
        assert_eq!(r#""strict""#.parse(), Ok(SufficiencyPolicy::preset("strict").unwrap()));
    }

    #[test]
    fn what_is_no_policy_is_refused_by_name() {
        for (json, named) in [
            (r#"{"min_turn":1}"#, "min_turn"),
            (r#"{"min_turns":1.0}"#, "min_turns"),
            (r#"{"min_turns":-1}"#, "min_turns"),
            (r#"{"min_turns":2147483648}"#, "min_turns"),
            (r#"{"min_roles":1,"min_roles":1}"#, "twice"),
            (r#"{"require_exchange":1}"#, "require_exchange"),
            (r#"{"min_mean_salience":1.1}"#, "min_mean_salience"),
            (r#"{"min_mean_salience":"0.5"}"#, "min_mean_salience"),
            (r#""lax""#, "lax"),
            ("[]", "an array"),
            ("null", "null"),
            ("{", "JSON"),
            (r#"{"min_turns":1e400}"#, "min_turns"),
            (&" ".repeat(MAX_POLICY_TEXT_BYTES + 1), "65536"),
            (&"[".repeat(200), "128"),
        ] {
            let error = json.parse::<SufficiencyPolicy>().unwrap_err().to_string();
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
