//! The parameters of SlicePolicy v2 (POLICY-V2.md): those of v1, and what bounds a context window.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::graph::edge::{EdgeType, EdgeTypes};
use crate::graph::facts::TurnFacts;
use crate::json::object::ParseError;
use crate::policy::admission::Admission;
use crate::policy::needs::Needs;
use crate::policy::position::Position;
use crate::policy::quantized::Quantized;
use crate::policy::text::PolicyKeys;
use crate::policy::v1::V1Parameters;
use crate::policy::weights::{EdgeWeights, PhaseWeights};

/// The identifier of the version.
pub const ID: &str = "slice_policy_v2";

/// The keys that v1 does not have.
pub(super) const KEYS: [&str; 10] = [
    "max_tokens",
    "edge_weights",
    "halving_seconds",
    "include_parents",
    "include_children",
    "same_session",
    "max_seconds_before",
    "max_seconds_after",
    "as_of",
    "keep_tool_results",
];

/// The largest integer that every reader of JSON reads exactly.
const MAX_SECONDS: i64 = (1 << 53) - 1;
const SECONDS: RangeInclusive<i64> = 0..=MAX_SECONDS;

/// The largest number of times that a priority is halved.
const MAX_HALVINGS: u64 = 126;

/// Valid parameters of SlicePolicy v2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct V2Parameters {
    pub(super) common: V1Parameters,
    max_tokens: Option<i64>,
    edge_weights: EdgeWeights<Quantized>,
    halving_seconds: Option<i64>,
    include_parents: bool,
    include_children: bool,
    same_session: bool,
    max_seconds_before: Option<i64>,
    max_seconds_after: Option<i64>,
    as_of: Option<i64>,
    keep_tool_results: bool,
}

/// The JSON of the parameters, keys in canonical order; `T` is how a number is written.
#[derive(Serialize)]
struct V2ParametersJson<T> {
    version: &'static str,
    max_nodes: u32,
    max_radius: u32,
    max_tokens: Option<i64>,
    phase_weights: PhaseWeights<T>,
    salience_weight: T,
    distance_decay: T,
    edge_weights: EdgeWeights<T>,
    halving_seconds: Option<i64>,
    include_parents: bool,
    include_children: bool,
    include_siblings: bool,
    max_siblings_per_node: u32,
    same_session: bool,
    max_seconds_before: Option<i64>,
    max_seconds_after: Option<i64>,
    as_of: Option<i64>,
    keep_tool_results: bool,
}

impl Default for V2Parameters {
    fn default() -> Self {
        Self::of(V1Parameters::default())
    }
}

impl V2Parameters {
    /// With every key that v1 does not have at its default.
    pub(super) fn of(common: V1Parameters) -> Self {
        V2Parameters {
            common,
            max_tokens: None,
            edge_weights: EdgeWeights {
                reply: Quantized::new(1.0),
                branch: Quantized::new(1.0),
                reference: Quantized::new(1.0),
                default: Quantized::new(1.0),
            },
            halving_seconds: None,
            include_parents: true,
            include_children: true,
            same_session: false,
            max_seconds_before: None,
            max_seconds_after: None,
            as_of: None,
            keep_tool_results: false,
        }
    }
}

impl V2Parameters {
    /// The way from the anchor back towards the beginning, with the results of calls on it.
    pub(super) fn lineage() -> Self {
        V2Parameters {
            common: V1Parameters {
                max_radius: 1000,
                distance_decay: Quantized::new(0.98),
                include_siblings: false,
                ..V1Parameters::default()
            },
            include_children: false,
            keep_tool_results: true,
            ..Self::default()
        }
    }

    /// The same under a token budget, replies before references.
    pub(super) fn chat() -> Self {
        let lineage = Self::lineage();
        V2Parameters {
            common: V1Parameters { distance_decay: Quantized::new(0.99), ..lineage.common },
            max_tokens: Some(8000),
            edge_weights: EdgeWeights { reference: Quantized::new(0.5), ..lineage.edge_weights },
            ..lineage
        }
    }

    /// Takes the parameters from the keys of a policy; a missing key takes its value from `default`.
    pub(super) fn take(keys: &mut PolicyKeys<'_>, default: &Self) -> Result<Self, ParseError> {
        let common = V1Parameters::take(keys, &default.common)?;
        let mut weights = keys.nested("edge_weights", "an object of numbers")?;
        let edge_weights = EdgeWeights::try_from_fn(|edge_type| {
            let default = default.edge_weights.get(edge_type);
            match &mut weights {
                Some(weights) => weights.float(edge_type.name(), 0.0..=1.0, default),
                None => Ok(default),
            }
        })?;
        weights.map_or(Ok(()), PolicyKeys::finish)?;
        let mut seconds = |key: &str, range: RangeInclusive<i64>, default| {
            keys.optional_integer(key, range, default)
        };
        Ok(V2Parameters {
            common,
            max_tokens: seconds("max_tokens", 1..=i64::from(i32::MAX), default.max_tokens)?,
            edge_weights,
            halving_seconds: seconds("halving_seconds", 1..=MAX_SECONDS, default.halving_seconds)?,
            max_seconds_before: seconds("max_seconds_before", SECONDS, default.max_seconds_before)?,
            max_seconds_after: seconds("max_seconds_after", SECONDS, default.max_seconds_after)?,
            as_of: seconds("as_of", -MAX_SECONDS..=MAX_SECONDS, default.as_of)?,
            include_parents: keys.boolean("include_parents", default.include_parents)?,
            include_children: keys.boolean("include_children", default.include_children)?,
            same_session: keys.boolean("same_session", default.same_session)?,
            keep_tool_results: keys.boolean("keep_tool_results", default.keep_tool_results)?,
        })
    }

    /// The canonical JSON: every key, in the canonical order.
    pub(super) fn json(&self) -> impl Serialize {
        self.json_with(Quantized::value)
    }

    /// The canonical JSON with floats in millionths.
    pub(super) fn quantized_json(&self) -> impl Serialize {
        self.json_with(Quantized::millionths)
    }

    fn json_with<T>(&self, number: impl Fn(Quantized) -> T) -> V2ParametersJson<T> {
        let V1Parameters {
            max_nodes,
            max_radius,
            phase_weights,
            salience_weight,
            distance_decay,
            include_siblings,
            max_siblings_per_node,
        } = &self.common;
        V2ParametersJson {
            version: ID,
            max_nodes: *max_nodes,
            max_radius: *max_radius,
            max_tokens: self.max_tokens,
            phase_weights: phase_weights.map(&number),
            salience_weight: number(*salience_weight),
            distance_decay: number(*distance_decay),
            edge_weights: self.edge_weights.map(&number),
            halving_seconds: self.halving_seconds,
            include_parents: self.include_parents,
            include_children: self.include_children,
            include_siblings: *include_siblings,
            max_siblings_per_node: *max_siblings_per_node,
            same_session: self.same_session,
            max_seconds_before: self.max_seconds_before,
            max_seconds_after: self.max_seconds_after,
            as_of: self.as_of,
            keep_tool_results: self.keep_tool_results,
        }
    }

    pub(super) fn max_tokens(&self) -> Option<u64> {
        self.max_tokens.map(|tokens| tokens as u64)
    }

    pub(super) fn as_of(&self) -> Option<i64> {
        self.as_of
    }

    pub(super) fn include_parents(&self) -> bool {
        self.include_parents
    }

    pub(super) fn include_children(&self) -> bool {
        self.include_children
    }

    pub(super) fn keep_tool_results(&self) -> bool {
        self.keep_tool_results
    }

    /// Whether all edges weigh 1.
    pub(super) fn weighs_alike(&self) -> bool {
        EdgeType::ALL.iter().all(|edge_type| self.edge_weights.get(*edge_type).value() == 1.0)
    }

    /// Whether other turns exist at other anchors.
    fn is_relative(&self) -> bool {
        self.same_session || self.max_seconds_before.is_some() || self.max_seconds_after.is_some()
    }

    pub(super) fn needs(&self) -> Needs {
        Needs {
            facts: !self.weighs_alike()
                || self.is_relative()
                || self.halving_seconds.is_some()
                || self.as_of.is_some()
                || self.keep_tool_results,
            tokens: self.max_tokens.is_some(),
            anchor: self.is_relative(),
            sessions: self.same_session,
        }
    }

    /// What exists, but for what depends on the anchor.
    pub(super) fn admission(&self) -> Admission {
        let edge_types = EdgeType::ALL.iter().copied();
        Admission {
            edge_types: edge_types
                .filter(|edge_type| self.edge_weights.get(*edge_type).millionths() != 0)
                .collect(),
            latest: self.as_of.unwrap_or(i64::MAX),
            ..Admission::default()
        }
    }

    pub(super) fn admission_at(&self, anchor: &TurnFacts) -> Admission {
        let always = self.admission();
        let before = self.max_seconds_before.map(|s| anchor.created_at.saturating_sub(s));
        let after = self.max_seconds_after.map(|s| anchor.created_at.saturating_add(s));
        Admission {
            earliest: before.unwrap_or(i64::MIN),
            latest: after.map_or(always.latest, |after| after.min(always.latest)),
            session: self.same_session.then_some(anchor.session),
            ..always
        }
    }

    pub(super) fn weight(&self, types: EdgeTypes) -> f32 {
        let weights = types.iter().map(|edge_type| self.edge_weights.get(edge_type).value());
        weights.fold(0.0, f32::max)
    }

    /// The priority of v1, times the strength, halved for each whole `halving_seconds` between turn and anchor: each
    /// operation in binary32, in that order.
    pub(super) fn priority(&self, turn: &TurnFacts, position: Position) -> f32 {
        let strong = self.common.priority(turn, position.distance) * position.strength;
        let halvings = self.halving_seconds.map_or(0, |seconds| {
            let apart = turn.created_at.abs_diff(position.anchor_time) / seconds.unsigned_abs();
            apart.min(MAX_HALVINGS) as u32
        });
        // 2^-126 is the least that binary32 holds with full precision.
        strong * f32::from_bits((127 - halvings) << 23) + 0.0
    }

    /// The same parameters with another limit on tokens, or none.
    pub(super) fn with_max_tokens(&self, max_tokens: Option<u32>) -> Self {
        V2Parameters { max_tokens: max_tokens.map(i64::from), ..self.clone() }
    }

    /// The parameters that each leave out one key that excludes turns or edges, or selects them last. The text is the
    /// key and the value that has no such effect.
    pub(super) fn relaxations(&self) -> Vec<(&'static str, Self)> {
        let all = Self::default();
        let with = |change: &dyn Fn(&mut Self)| {
            let mut relaxed = self.clone();
            change(&mut relaxed);
            relaxed
        };
        let mut relaxations = vec![
            ("as_of null", with(&|p| p.as_of = None)),
            ("max_seconds_before null", with(&|p| p.max_seconds_before = None)),
            ("max_seconds_after null", with(&|p| p.max_seconds_after = None)),
            ("same_session false", with(&|p| p.same_session = false)),
            ("include_parents true", with(&|p| p.include_parents = true)),
            ("include_children true", with(&|p| p.include_children = true)),
            ("edge_weights of 1", with(&|p| p.edge_weights = all.edge_weights)),
            ("halving_seconds null", with(&|p| p.halving_seconds = None)),
            ("keep_tool_results false", with(&|p| p.keep_tool_results = false)),
        ];
        relaxations.retain(|(_, relaxed)| relaxed != self);
        relaxations
    }

    /// What the keys that bound no number of turns or tokens say, where they differ from the defaults.
    pub(super) fn description(&self) -> Vec<String> {
        let mut words = Vec::new();
        for edge_type in EdgeType::ALL {
            match self.edge_weights.get(*edge_type) {
                weight if weight.value() == 1.0 => {}
                weight if weight.millionths() == 0 => {
                    words.push(format!("no {} edges", edge_type.name()))
                }
                weight => {
                    words.push(format!("{} edges count {}", edge_type.name(), weight.value()))
                }
            }
        }
        words.extend(
            self.halving_seconds.map(|s| format!("half as much for each {s} s from the anchor")),
        );
        if self.same_session {
            words.push("the same session".to_owned());
        }
        words.extend(self.max_seconds_before.map(|s| format!("at most {s} s earlier")));
        words.extend(self.max_seconds_after.map(|s| format!("at most {s} s later")));
        words.extend(self.as_of.map(|seconds| format!("as of Unix second {seconds}")));
        if self.keep_tool_results {
            words.push("calls with their results".to_owned());
        }
        words
    }
}
