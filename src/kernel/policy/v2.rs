//! The parameters of SlicePolicy v2 (POLICY-V2.md): those of v1, and what fills a context window.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::graph::edge::{EdgeType, EdgeTypes};
use crate::graph::facts::TurnFacts;
use crate::graph::turn::TurnId;
use crate::json::object::ParseError;
use crate::policy::admission::Admission;
use crate::policy::needs::Needs;
use crate::policy::position::Position;
use crate::policy::quantized::Quantized;
use crate::policy::text::PolicyKeys;
use crate::policy::v1::{MAX_NODES_LIMIT, V1Parameters};
use crate::policy::weights::{EdgeWeights, PhaseWeights};

/// The identifier of the version.
pub const ID: &str = "slice_policy_v2";

/// The keys that v1 does not have.
pub(super) const KEYS: [&str; 22] = [
    "max_tokens",
    "edge_weights",
    "edge_weights.reply",
    "edge_weights.branch",
    "edge_weights.reference",
    "edge_weights.default",
    "halving_seconds",
    "include_parents",
    "include_children",
    "same_session",
    "max_seconds_before",
    "max_seconds_after",
    "as_of",
    "keep_tool_results",
    "pins",
    "seeds",
    "recall_tokens",
    "recall_radius",
    "recall_decay",
    "recall_share",
    "cut_share",
    "cut_to_user",
];

/// The most pins of a policy.
pub(super) const MAX_PINS: usize = 64;
/// The most seeds of a policy.
pub(super) const MAX_SEEDS: usize = 256;
/// 1, in millionths.
const ONE: i64 = 1_000_000;

/// The largest integer that every reader of JSON reads exactly.
const MAX_SECONDS: i64 = (1 << 53) - 1;
const SECONDS: RangeInclusive<i64> = 0..=MAX_SECONDS;
const TOKENS: RangeInclusive<i64> = 1..=i32::MAX as i64;
const MAX_RECALL_RADIUS: u32 = 16;
/// The largest `cut_share`, in millionths.
const MAX_CUT_SHARE: i64 = 900_000;

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
    recall_tokens: Option<i64>,
    recall_radius: u32,
    recall_decay: Quantized,
    recall_share: Quantized,
    cut_share: Quantized,
    cut_to_user: bool,
    /// Different, in the order given.
    pins: Vec<TurnId>,
    seeds: BTreeMap<TurnId, Quantized>,
}

/// The JSON of the parameters, keys in canonical order; `T` is how a number is written. It is what is hashed.
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
    recall_tokens: Option<i64>,
    recall_radius: u32,
    recall_decay: T,
    recall_share: T,
    cut_share: T,
    cut_to_user: bool,
}

/// The JSON of a whole policy: the parameters, and after them what a policy is given beside an anchor.
#[derive(Serialize)]
struct WholeJson<'a, T> {
    #[serde(flatten)]
    parameters: V2ParametersJson<T>,
    pins: Option<&'a [TurnId]>,
    seeds: Option<BTreeMap<TurnId, T>>,
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
            recall_tokens: None,
            recall_radius: 8,
            recall_decay: Quantized::new(0.95),
            recall_share: Quantized::new(0.3),
            cut_share: Quantized::new(0.0),
            cut_to_user: false,
            pins: Vec::new(),
            seeds: BTreeMap::new(),
        }
    }
}

impl V2Parameters {
    /// All the way from the anchor back to the beginning, with the results of calls on it.
    pub(super) fn lineage() -> Self {
        V2Parameters {
            common: V1Parameters {
                max_nodes: MAX_NODES_LIMIT,
                max_radius: 10_000,
                distance_decay: Quantized::new(0.999),
                include_siblings: false,
                ..V1Parameters::indifferent()
            },
            include_children: false,
            keep_tool_results: true,
            ..Self::default()
        }
    }

    /// The same under a token budget and along replies, with a beginning that changes rarely.
    pub(super) fn chat() -> Self {
        let lineage = Self::lineage();
        V2Parameters {
            max_tokens: Some(16_000),
            edge_weights: EdgeWeights { reference: Quantized::new(0.0), ..lineage.edge_weights },
            cut_share: Quantized::new(0.5),
            cut_to_user: true,
            ..lineage
        }
    }

    /// What a search has found, with what was said around it.
    pub(super) fn recall() -> Self {
        let default = Self::default();
        V2Parameters {
            common: V1Parameters {
                max_nodes: MAX_NODES_LIMIT,
                max_radius: 0,
                ..V1Parameters::indifferent()
            },
            max_tokens: Some(4000),
            edge_weights: EdgeWeights { reference: Quantized::new(0.5), ..default.edge_weights },
            keep_tool_results: true,
            ..default
        }
    }

    /// Takes the parameters from the keys of a policy; a missing key takes its value from `default`.
    pub(super) fn take(keys: &mut PolicyKeys<'_>, default: &Self) -> Result<Self, ParseError> {
        let common = V1Parameters::take(keys, &default.common)?;
        let mut weights = keys.nested("edge_weights", "an object of numbers")?;
        let edge_weights = EdgeWeights::try_from_fn(|edge_type| {
            let default = default.edge_weights.get(edge_type);
            match &mut weights {
                Some(weights) => weights.millionths(edge_type.name(), 0..=ONE, default),
                None => Ok(default),
            }
        })?;
        weights.map_or(Ok(()), PolicyKeys::finish)?;
        let mut seconds = |key: &str, range: RangeInclusive<i64>, default| {
            keys.optional_integer(key, range, default)
        };
        Ok(V2Parameters {
            common,
            max_tokens: seconds("max_tokens", TOKENS, default.max_tokens)?,
            recall_tokens: seconds("recall_tokens", TOKENS, default.recall_tokens)?,
            edge_weights,
            halving_seconds: seconds("halving_seconds", 1..=MAX_SECONDS, default.halving_seconds)?,
            max_seconds_before: seconds("max_seconds_before", SECONDS, default.max_seconds_before)?,
            max_seconds_after: seconds("max_seconds_after", SECONDS, default.max_seconds_after)?,
            as_of: seconds("as_of", -MAX_SECONDS..=MAX_SECONDS, default.as_of)?,
            include_parents: keys.boolean("include_parents", default.include_parents)?,
            include_children: keys.boolean("include_children", default.include_children)?,
            same_session: keys.boolean("same_session", default.same_session)?,
            keep_tool_results: keys.boolean("keep_tool_results", default.keep_tool_results)?,
            recall_radius: keys.integer(
                "recall_radius",
                0..=MAX_RECALL_RADIUS,
                default.recall_radius,
            )?,
            recall_decay: keys.millionths("recall_decay", 0..=ONE, default.recall_decay)?,
            recall_share: keys.millionths("recall_share", 0..=ONE, default.recall_share)?,
            cut_share: keys.millionths("cut_share", 0..=MAX_CUT_SHARE, default.cut_share)?,
            cut_to_user: keys.boolean("cut_to_user", default.cut_to_user)?,
            pins: keys.pins(MAX_PINS)?,
            seeds: keys.seeds(MAX_SEEDS)?,
        })
    }

    /// The canonical JSON: every key, in the canonical order.
    pub(super) fn json(&self) -> impl Serialize {
        self.whole_with(Quantized::value)
    }

    /// The canonical JSON with floats in millionths: what is attested.
    pub(super) fn quantized_json(&self) -> impl Serialize {
        self.whole_with(Quantized::millionths)
    }

    /// [`V2Parameters::quantized_json`] without pins and seeds: what is hashed.
    pub(super) fn hashed_json(&self) -> impl Serialize {
        self.json_with(Quantized::millionths)
    }

    fn whole_with<T>(&self, number: impl Fn(Quantized) -> T + Copy) -> WholeJson<'_, T> {
        let seeds = || self.seeds.iter().map(|(id, strength)| (*id, number(*strength))).collect();
        WholeJson {
            parameters: self.json_with(number),
            pins: (!self.pins.is_empty()).then_some(&self.pins),
            seeds: (!self.seeds.is_empty()).then(seeds),
        }
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
            recall_tokens: self.recall_tokens,
            recall_radius: self.recall_radius,
            recall_decay: number(self.recall_decay),
            recall_share: number(self.recall_share),
            cut_share: number(self.cut_share),
            cut_to_user: self.cut_to_user,
        }
    }

    pub(super) fn max_tokens(&self) -> Option<u64> {
        self.max_tokens.map(|tokens| tokens as u64)
    }

    pub(super) fn recall_tokens(&self) -> Option<u64> {
        self.recall_tokens.map(|tokens| tokens as u64)
    }

    pub(super) fn recall_radius(&self) -> u32 {
        self.recall_radius
    }

    pub(super) fn recall_decay(&self) -> f32 {
        self.recall_decay.value()
    }

    /// The most of the line's tokens that is cut off, in millionths.
    pub(super) fn cut_share(&self) -> u32 {
        self.cut_share.millionths() as u32
    }

    pub(super) fn cut_to_user(&self) -> bool {
        self.cut_to_user
    }

    pub(super) fn pins(&self) -> &[TurnId] {
        &self.pins
    }

    /// The seeds with their strengths, by id.
    pub(super) fn seeds(&self) -> impl Iterator<Item = (TurnId, f32)> {
        self.seeds.iter().map(|(id, strength)| (*id, strength.value()))
    }

    pub(super) fn seed(&self, id: TurnId) -> Option<f32> {
        self.seeds.get(&id).map(|strength| strength.value())
    }

    /// The same parameters with one more pin; `None` where it is one, or there are as many as may be.
    pub(super) fn with_pin(&self, id: TurnId) -> Option<Self> {
        let room = self.pins.len() < MAX_PINS && !self.pins.contains(&id);
        room.then(|| {
            let mut pinned = self.clone();
            pinned.pins.push(id);
            pinned
        })
    }

    /// The same parameters with these seeds, of which those that are nothing in millionths are left out.
    pub(super) fn with_seeds(&self, seeds: impl Iterator<Item = (TurnId, f32)>) -> Self {
        let seeds = seeds.map(|(id, strength)| (id, Quantized::new(strength.into())));
        let seeds = seeds.filter(|(_, strength)| (1..=ONE).contains(&strength.millionths()));
        V2Parameters { seeds: seeds.take(MAX_SEEDS).collect(), ..self.clone() }
    }

    /// The same parameters without pins and seeds.
    pub(super) fn without_inputs(&self) -> Self {
        V2Parameters { pins: Vec::new(), seeds: BTreeMap::new(), ..self.clone() }
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

    /// Whether any of its parameters counts tokens.
    pub(super) fn counts_tokens(&self) -> bool {
        self.max_tokens.is_some() || self.recall_tokens.is_some() || self.cuts()
    }

    /// Whether the beginning of a line may be cut off.
    fn cuts(&self) -> bool {
        self.cut_share.millionths() > 0
    }

    pub(super) fn needs(&self) -> Needs {
        Needs {
            facts: !self.weighs_alike()
                || self.is_relative()
                || self.halving_seconds.is_some()
                || self.as_of.is_some()
                || self.keep_tool_results
                || self.cuts(),
            tokens: self.counts_tokens(),
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
        strong * self.halved(turn, position.anchor_time) + 0.0
    }

    /// The rank of a recalled turn of this strength; `own` is that of its own hit. Each operation in binary32, in the
    /// order of the text.
    pub(super) fn recall_rank(
        &self,
        turn: &TurnFacts,
        strength: f32,
        own: f32,
        anchor_time: i64,
    ) -> f32 {
        let rest = Quantized::from_millionths(ONE - self.recall_share.millionths()).value();
        let shared = (rest * strength) + (self.recall_share.value() * own);
        (self.common.base_priority(turn) * shared) * self.halved(turn, anchor_time) + 0.0
    }

    /// 2^−h, where h is how many whole `halving_seconds` are between turn and anchor, at most [`MAX_HALVINGS`].
    fn halved(&self, turn: &TurnFacts, anchor_time: i64) -> f32 {
        let halvings = self.halving_seconds.map_or(0, |seconds| {
            let apart = turn.created_at.abs_diff(anchor_time) / seconds.unsigned_abs();
            apart.min(MAX_HALVINGS) as u32
        });
        // 2^-126 is the least that binary32 holds with full precision.
        f32::from_bits((127 - halvings) << 23)
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
            ("cut_share 0", with(&|p| p.cut_share = all.cut_share)),
            ("recall_tokens null", with(&|p| p.recall_tokens = None)),
            ("recall_radius 16", with(&|p| p.recall_radius = MAX_RECALL_RADIUS)),
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
        if self.cuts() {
            let to_user = if self.cut_to_user { " to a turn of the user's" } else { "" };
            words.push(format!("up to {} of the line cut off{to_user}", self.cut_share.value()));
        }
        words.extend(self.recall_tokens.map(|tokens| format!("{tokens} tokens to recall")));
        match self.pins.len() {
            0 => {}
            1 => words.push("1 pin".to_owned()),
            pins => words.push(format!("{pins} pins")),
        }
        match self.seeds.len() {
            0 => {}
            1 => words.push("1 seed".to_owned()),
            seeds => words.push(format!("{seeds} seeds")),
        }
        words
    }
}
