//! The parameters of SlicePolicy v1 (§2, §3), their canonical form and the priority they give (§4).

use serde::Serialize;

use crate::graph::facts::TurnFacts;
use crate::graph::turn::Phase;
use crate::json::object::ParseError;
use crate::policy::quantized::Quantized;
use crate::policy::text::PolicyKeys;
use crate::policy::weights::PhaseWeights;

/// The identifier of the version (§2).
pub const ID: &str = "slice_policy_v1";
/// The largest budget a policy may ask for.
pub const MAX_NODES_LIMIT: u32 = 10_000;

pub(super) const MAX_COUNT: u32 = i32::MAX as u32;
const MAX_WEIGHT: f64 = 1e6;

/// Valid parameters of SlicePolicy v1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct V1Parameters {
    pub(super) max_nodes: u32,
    pub(super) max_radius: u32,
    pub(super) phase_weights: PhaseWeights<Quantized>,
    pub(super) salience_weight: Quantized,
    pub(super) distance_decay: Quantized,
    pub(super) include_siblings: bool,
    pub(super) max_siblings_per_node: u32,
}

/// The JSON of the parameters, keys in the specification's order; `T` is how a number is written.
#[derive(Serialize)]
struct V1ParametersJson<T> {
    version: &'static str,
    max_nodes: u32,
    max_radius: u32,
    phase_weights: PhaseWeights<T>,
    salience_weight: T,
    distance_decay: T,
    include_siblings: bool,
    max_siblings_per_node: u32,
}

impl Default for V1Parameters {
    /// §12.
    fn default() -> Self {
        V1Parameters {
            max_nodes: 256,
            max_radius: 10,
            phase_weights: PhaseWeights {
                synthesis: Quantized::new(1.0),
                planning: Quantized::new(0.9),
                consolidation: Quantized::new(0.6),
                debugging: Quantized::new(0.5),
                exploration: Quantized::new(0.3),
            },
            salience_weight: Quantized::new(0.3),
            distance_decay: Quantized::new(0.9),
            include_siblings: true,
            max_siblings_per_node: 5,
        }
    }
}

impl V1Parameters {
    /// The specification's small context (§9.2).
    pub(super) fn focused() -> Self {
        V1Parameters {
            max_nodes: 32,
            max_radius: 3,
            salience_weight: Quantized::new(0.5),
            distance_decay: Quantized::new(0.8),
            include_siblings: false,
            max_siblings_per_node: 0,
            ..Self::default()
        }
    }

    /// The specification's wide context (§9.3).
    pub(super) fn broad() -> Self {
        V1Parameters {
            max_nodes: 512,
            max_radius: 20,
            salience_weight: Quantized::new(0.2),
            distance_decay: Quantized::new(0.95),
            include_siblings: true,
            max_siblings_per_node: 10,
            ..Self::default()
        }
    }

    /// Without regard to phase and salience.
    pub(super) fn indifferent() -> Self {
        let one = Quantized::new(1.0);
        let default = Self::default();
        V1Parameters {
            phase_weights: default.phase_weights.map(|_| one),
            salience_weight: Quantized::new(0.0),
            ..default
        }
    }

    /// Takes the parameters from the keys of a policy; a missing key takes its value from `default`.
    pub(super) fn take(keys: &mut PolicyKeys<'_>, default: &Self) -> Result<Self, ParseError> {
        let max_nodes = keys.integer("max_nodes", 1..=MAX_NODES_LIMIT, default.max_nodes)?;
        let max_radius = keys.integer("max_radius", 0..=MAX_COUNT, default.max_radius)?;
        let mut weights = keys.nested("phase_weights", "an object of numbers")?;
        let phase_weights = PhaseWeights::try_from_fn(|phase| match &mut weights {
            Some(weights) => {
                let default = default.phase_weights.get(phase);
                weights.float(phase.name(), -MAX_WEIGHT..=MAX_WEIGHT, default)
            }
            None => Ok(default.phase_weights.get(phase)),
        })?;
        weights.map_or(Ok(()), PolicyKeys::finish)?;
        Ok(V1Parameters {
            max_nodes,
            max_radius,
            phase_weights,
            salience_weight: keys.float("salience_weight", 0.0..=1.0, default.salience_weight)?,
            distance_decay: keys.float("distance_decay", 0.0..=1.0, default.distance_decay)?,
            include_siblings: keys.boolean("include_siblings", default.include_siblings)?,
            max_siblings_per_node: keys.integer(
                "max_siblings_per_node",
                0..=MAX_COUNT,
                default.max_siblings_per_node,
            )?,
        })
    }

    /// The canonical JSON: every key, in the specification's order.
    pub(super) fn json(&self) -> impl Serialize {
        self.json_with(Quantized::value)
    }

    /// The canonical JSON with floats in millionths.
    pub(super) fn quantized_json(&self) -> impl Serialize {
        self.json_with(Quantized::millionths)
    }

    fn json_with<T>(&self, number: impl Fn(Quantized) -> T) -> V1ParametersJson<T> {
        V1ParametersJson {
            version: ID,
            max_nodes: self.max_nodes,
            max_radius: self.max_radius,
            phase_weights: self.phase_weights.map(&number),
            salience_weight: number(self.salience_weight),
            distance_decay: number(self.distance_decay),
            include_siblings: self.include_siblings,
            max_siblings_per_node: self.max_siblings_per_node,
        }
    }

    /// Whether a turn may have a priority below 0.
    pub(super) fn has_negative_phase_weights(&self) -> bool {
        Phase::ALL.iter().any(|phase| self.phase_weights.get(*phase).value() < 0.0)
    }

    /// `(phase_weight + salience × salience_weight) × decay^distance`, each operation in binary32 in that order, so
    /// that a priority is the same bits on every machine.
    pub(super) fn priority(&self, turn: &TurnFacts, distance: u32) -> f32 {
        // Adding +0.0 turns −0.0 into 0.0: the two compare equal and must rank equal.
        self.base_priority(turn) * power(self.distance_decay.value(), distance) + 0.0
    }

    /// The priority of a turn at the anchor: `phase_weight + salience × salience_weight`.
    pub(super) fn base_priority(&self, turn: &TurnFacts) -> f32 {
        self.phase_weights.get(turn.phase).value() + turn.salience * self.salience_weight.value()
    }
}

/// `base^exponent` by square and multiply, in the order of compiler-rt's `__powisf2`.
fn power(mut base: f32, mut exponent: u32) -> f32 {
    let mut result = 1.0f32;
    loop {
        if exponent & 1 == 1 {
            result *= base;
        }
        exponent /= 2;
        if exponent == 0 {
            return result;
        }
        base *= base;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_the_published_bits() {
        let bits: Vec<u32> = (0..=10).map(|n| power(0.9, n).to_bits()).collect();
        assert_eq!(
            bits,
            [
                0x3f80_0000,
                0x3f66_6666,
                0x3f4f_5c28,
                0x3f3a_9fbd,
                0x3f27_f62a,
                0x3f17_2a59,
                0x3f08_0c83,
                0x3ef4_e351,
                0x3edc_662f,
                0x3ec6_5bf7,
                0x3eb2_85f7
            ]
        );
        assert_eq!(power(0.0, 0), 1.0);
        assert_eq!(power(0.0, 7), 0.0);
        assert_eq!(power(0.5, u32::MAX), 0.0);
    }

    #[test]
    fn priorities_are_the_published_bits() {
        let default = V1Parameters::default();
        let bits = |phase, salience, distance| {
            default.priority(&TurnFacts::scoring(phase, salience), distance).to_bits()
        };
        assert_eq!(bits(Phase::Exploration, 0.3, 0), 0x3ec7_ae15);
        assert_eq!(bits(Phase::Planning, 0.8, 1), 0x3f83_53f7);
        assert_eq!(bits(Phase::Synthesis, 0.9, 2), 0x3f83_ac70);
        assert_eq!(bits(Phase::Debugging, 0.1, 3), 0x3ec5_d248);
        assert_eq!(bits(Phase::Consolidation, 0.5, 3), 0x3f0b_f7ce);
    }
}
