//! SlicePolicy v1: the parameters of a slice (SlicePolicy v1 §2, §3, §8).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Serialize;

use crate::export::canonical::{json_hash, json_text};
use crate::export::json::{Json, JsonError, Limits, shown};
use crate::graph::turn::Phase;

/// The identifier of the policy's version (§2).
pub const POLICY_ID: &str = "slice_policy_v1";
/// The largest budget a policy may ask for.
pub const MAX_NODES_LIMIT: u32 = 10_000;
/// The longest policy text that is read, in bytes.
pub const POLICY_TEXT_MAX_BYTES: usize = 64 * 1024;

/// What the text of any policy may have.
pub(crate) const POLICY_LIMITS: Limits =
    Limits { bytes: POLICY_TEXT_MAX_BYTES, values: 1024, token_bytes: POLICY_TEXT_MAX_BYTES };

const MAX_COUNT: u32 = i32::MAX as u32;
const MAX_WEIGHT: f64 = 1e6;
const QUANTUM: f64 = 1e6;

/// A parameter in millionths. Hash and behaviour both come from this integer, so two policies
/// with one hash act alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Quantized(i64);

impl Quantized {
    /// To binary32, widened, times 1e6, rounded half away from zero.
    fn new(value: f64) -> Self {
        Quantized((f64::from(value as f32) * QUANTUM).round() as i64)
    }

    fn value(self) -> f32 {
        (self.0 as f64 / QUANTUM) as f32
    }
}

/// A valid SlicePolicy v1.
///
/// Read it from text with [`FromStr`]; text is a preset's name or a JSON object in which missing
/// keys take the default policy's values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlicePolicy {
    max_nodes: u32,
    max_radius: u32,
    phase_weights: PhaseWeights<Quantized>,
    salience_weight: Quantized,
    distance_decay: Quantized,
    include_siblings: bool,
    max_siblings_per_node: u32,
}

/// One value a phase, in the specification's key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PhaseWeights<T> {
    synthesis: T,
    planning: T,
    consolidation: T,
    debugging: T,
    exploration: T,
}

impl<T: Copy> PhaseWeights<T> {
    fn of(&self, phase: Phase) -> T {
        match phase {
            Phase::Synthesis => self.synthesis,
            Phase::Planning => self.planning,
            Phase::Consolidation => self.consolidation,
            Phase::Debugging => self.debugging,
            Phase::Exploration => self.exploration,
        }
    }

    fn of_mut(&mut self, phase: Phase) -> &mut T {
        match phase {
            Phase::Synthesis => &mut self.synthesis,
            Phase::Planning => &mut self.planning,
            Phase::Consolidation => &mut self.consolidation,
            Phase::Debugging => &mut self.debugging,
            Phase::Exploration => &mut self.exploration,
        }
    }

    fn map<U>(&self, f: impl Fn(T) -> U) -> PhaseWeights<U> {
        PhaseWeights {
            synthesis: f(self.synthesis),
            planning: f(self.planning),
            consolidation: f(self.consolidation),
            debugging: f(self.debugging),
            exploration: f(self.exploration),
        }
    }
}

/// The policy's JSON, keys in the specification's order; `T` is how a number is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyJson<T> {
    version: &'static str,
    max_nodes: u32,
    max_radius: u32,
    phase_weights: PhaseWeights<T>,
    salience_weight: T,
    distance_decay: T,
    include_siblings: bool,
    max_siblings_per_node: u32,
}

/// The policy's JSON with floats in millionths: what is hashed and attested.
pub type QuantizedPolicy = PolicyJson<i64>;

impl Default for SlicePolicy {
    /// §12.
    fn default() -> Self {
        SlicePolicy {
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

impl SlicePolicy {
    /// The names of the presets, which text may give in place of a JSON object.
    pub const PRESETS: [&'static str; 3] = ["default", "focused", "broad"];

    /// The specification's small context (§9.2).
    #[must_use]
    pub fn focused() -> Self {
        SlicePolicy {
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
    #[must_use]
    pub fn broad() -> Self {
        SlicePolicy {
            max_nodes: 512,
            max_radius: 20,
            salience_weight: Quantized::new(0.2),
            distance_decay: Quantized::new(0.95),
            include_siblings: true,
            max_siblings_per_node: 10,
            ..Self::default()
        }
    }

    /// The preset of this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            "focused" => Some(Self::focused()),
            "broad" => Some(Self::broad()),
            _ => None,
        }
    }

    /// The budget: most turns a slice may have, 1 … 10000.
    #[must_use]
    pub fn max_nodes(&self) -> usize {
        self.max_nodes as usize
    }

    /// The most hops from the anchor, 0 … 2147483647.
    #[must_use]
    pub fn max_radius(&self) -> u32 {
        self.max_radius
    }

    /// What the phase counts for in a priority.
    #[must_use]
    pub fn phase_weight(&self, phase: Phase) -> f32 {
        self.phase_weights.of(phase).value()
    }

    /// What salience counts for in a priority, 0 … 1.
    #[must_use]
    pub fn salience_weight(&self) -> f32 {
        self.salience_weight.value()
    }

    /// What one hop leaves of a priority, 0 … 1.
    #[must_use]
    pub fn distance_decay(&self) -> f32 {
        self.distance_decay.value()
    }

    /// The most siblings one expanded turn may bring in: 0 when siblings are off.
    #[must_use]
    pub fn sibling_limit(&self) -> usize {
        if self.include_siblings { self.max_siblings_per_node as usize } else { 0 }
    }

    /// The same policy with another budget.
    #[must_use]
    pub(crate) fn with_max_nodes(&self, max_nodes: u32) -> Self {
        SlicePolicy { max_nodes, ..self.clone() }
    }

    /// The same policy with another radius, at most the largest there is.
    #[must_use]
    pub(crate) fn with_max_radius(&self, max_radius: u32) -> Self {
        SlicePolicy { max_radius: max_radius.min(MAX_COUNT), ..self.clone() }
    }

    /// The same policy with siblings on: as many as it says, or the default policy's where it says 0.
    #[must_use]
    pub(crate) fn with_siblings(&self) -> Self {
        let max_siblings_per_node = match self.max_siblings_per_node {
            0 => Self::default().max_siblings_per_node,
            limit => limit,
        };
        SlicePolicy { include_siblings: true, max_siblings_per_node, ..self.clone() }
    }

    /// The canonical JSON text: every key, in the specification's order.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        json_text(&self.json(Quantized::value))
    }

    /// The canonical JSON with floats in millionths: what `params_hash` is computed of.
    #[must_use]
    pub fn quantized(&self) -> QuantizedPolicy {
        self.json(|q| q.0)
    }

    /// [`SlicePolicy::quantized`] as text.
    #[must_use]
    pub fn quantized_text(&self) -> String {
        json_text(&self.quantized())
    }

    /// The fingerprint of the parameters (§8): 16 lower-case hex digits.
    #[must_use]
    pub fn params_hash(&self) -> String {
        json_hash(&self.quantized())
    }

    fn json<T>(&self, number: impl Fn(Quantized) -> T) -> PolicyJson<T> {
        PolicyJson {
            version: POLICY_ID,
            max_nodes: self.max_nodes,
            max_radius: self.max_radius,
            phase_weights: self.phase_weights.map(&number),
            salience_weight: number(self.salience_weight),
            distance_decay: number(self.distance_decay),
            include_siblings: self.include_siblings,
            max_siblings_per_node: self.max_siblings_per_node,
        }
    }
}

/// How a policy is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyRef<'a> {
    /// The policy's version.
    pub policy_id: &'static str,
    /// The fingerprint of its parameters.
    pub params_hash: &'a str,
}

/// The fingerprint of a registry that holds the policies of these `params_hash`es, in any order,
/// however often each is named: 16 lower-case hex digits.
#[must_use]
pub fn registry_fingerprint<'a>(params_hashes: impl IntoIterator<Item = &'a str>) -> String {
    let refs: BTreeSet<PolicyRef> = params_hashes
        .into_iter()
        .map(|params_hash| PolicyRef { policy_id: POLICY_ID, params_hash })
        .collect();
    json_hash(&refs)
}

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// The text is neither a preset's name nor JSON.
    Syntax(String),
    /// A key or its value is not allowed; the message names the key.
    Parameter(String),
    /// The text is longer than [`POLICY_TEXT_MAX_BYTES`].
    TooLong(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Syntax(message) | Self::Parameter(message) | Self::TooLong(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for PolicyError {}

impl FromStr for SlicePolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        check_length("slice", text)?;
        let text = text.trim_ascii();
        if let Some(preset) = Self::preset(text) {
            return Ok(preset);
        }
        if let Some((_, preset)) = PRESET_TEXTS.iter().find(|(canonical, _)| canonical == text) {
            return Ok(preset.clone());
        }
        match Json::read(text, POLICY_LIMITS, &|| {}) {
            Ok(Json::Object(entries)) => Self::from_entries(entries, Numbers::AsWritten),
            Ok(Json::String(name)) => Self::preset(&name).ok_or_else(|| no_preset(&name)),
            Ok(other) => Err(PolicyError::Parameter(format!(
                "slice policy must be a JSON object or a preset name, not {other}"
            ))),
            Err(JsonError::Syntax(..)) if !text.starts_with('{') => Err(no_preset(text)),
            Err(error) => Err(PolicyError::of_json("slice", error)),
        }
    }
}

/// Refuses the text of a kind of policies where it is too long.
pub(crate) fn check_length(kind: &str, text: &str) -> Result<(), PolicyError> {
    if text.len() <= POLICY_TEXT_MAX_BYTES {
        return Ok(());
    }
    Err(PolicyError::TooLong(format!(
        "{kind} policy text of {} bytes is longer than {POLICY_TEXT_MAX_BYTES}",
        text.len()
    )))
}

impl PolicyError {
    /// Why the text of a kind of policies cannot be read.
    pub(crate) fn of_json(kind: &str, error: JsonError) -> Self {
        let message = format!("{kind} policy is {error}");
        match error {
            JsonError::Syntax(..) => Self::Syntax(message),
            // Valid JSON, or it may be.
            JsonError::TooDeep => Self::Parameter(message),
            _ => Self::TooLong(message),
        }
    }
}

/// The presets by their canonical texts: what is mostly read need not be parsed each time.
static PRESET_TEXTS: LazyLock<Vec<(String, SlicePolicy)>> = LazyLock::new(|| {
    let presets = SlicePolicy::PRESETS.into_iter().filter_map(SlicePolicy::preset);
    presets.map(|preset| (preset.canonical_text(), preset)).collect()
});

fn no_preset(name: &str) -> PolicyError {
    PolicyError::Syntax(format!("no slice policy preset is named {}", shown(name)))
}

/// How a JSON policy writes its floats.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    AsWritten,
    Millionths,
}

impl SlicePolicy {
    /// Reads the policy of an attestation: every key, floats in millionths.
    ///
    /// # Errors
    /// As for text; also for a missing key.
    pub fn from_quantized(json: Json<'_>) -> Result<Self, PolicyError> {
        let Json::Object(entries) = json else {
            return Err(PolicyError::Parameter(format!(
                "slice policy must be an object, not {json}"
            )));
        };
        let keys = entries.len();
        let weights = entries.iter().find_map(|(key, value)| match value {
            Json::Object(weights) if key == "phase_weights" => Some(weights.len()),
            _ => None,
        });
        let policy = Self::from_entries(entries, Numbers::Millionths)?;
        // Keys are known and unique by now, so the counts say whether one is missing.
        if (keys, weights) != (8, Some(Phase::ALL.len())) {
            return Err(PolicyError::Parameter("slice policy lacks a key".to_owned()));
        }
        Ok(policy)
    }

    fn from_entries(entries: Entries<'_>, numbers: Numbers) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        for (key, value) in unique("", entries)? {
            let range = Range { key: &key, value: &value, numbers };
            match key.as_ref() {
                "version" => match &value {
                    Json::String(version) if version == POLICY_ID => {}
                    _ => return Err(range.error(&format!("must be {POLICY_ID:?}"))),
                },
                "max_nodes" => policy.max_nodes = range.integer(1, MAX_NODES_LIMIT)?,
                "max_radius" => policy.max_radius = range.integer(0, MAX_COUNT)?,
                "phase_weights" => match value {
                    Json::Object(weights) => policy.set_weights(weights, numbers)?,
                    _ => return Err(range.error("must be an object of numbers")),
                },
                "salience_weight" => policy.salience_weight = range.float(0.0, 1.0)?,
                "distance_decay" => policy.distance_decay = range.float(0.0, 1.0)?,
                "include_siblings" => match value {
                    Json::Bool(on) => policy.include_siblings = on,
                    _ => return Err(range.error("must be true or false")),
                },
                "max_siblings_per_node" => {
                    policy.max_siblings_per_node = range.integer(0, MAX_COUNT)?;
                }
                _ => return Err(unknown_key(&key)),
            }
        }
        Ok(policy)
    }

    fn set_weights(&mut self, weights: Entries<'_>, numbers: Numbers) -> Result<(), PolicyError> {
        for (name, value) in unique("phase_weights.", weights)? {
            let key = format!("phase_weights.{name}");
            // The names are keys here: exact, unlike the phases of stored rows.
            let phase = Phase::ALL.iter().find(|phase| phase.name() == name);
            let phase = *phase.ok_or_else(|| unknown_key(&key))?;
            *self.phase_weights.of_mut(phase) =
                Range { key: &key, value: &value, numbers }.float(-MAX_WEIGHT, MAX_WEIGHT)?;
        }
        Ok(())
    }
}

/// A key's value, and what may be asked of it.
struct Range<'a> {
    key: &'a str,
    value: &'a Json<'a>,
    numbers: Numbers,
}

impl Range<'_> {
    fn integer(&self, min: u32, max: u32) -> Result<u32, PolicyError> {
        let integer = self.whole().and_then(|n| u32::try_from(n).ok());
        integer
            .filter(|n| (min..=max).contains(n))
            .ok_or_else(|| self.error(&format!("must be an integer between {min} and {max}")))
    }

    fn float(&self, min: f64, max: f64) -> Result<Quantized, PolicyError> {
        let quantized = match (self.numbers, self.value) {
            (Numbers::AsWritten, Json::Number(number)) => {
                number.as_f64().filter(|n| (min..=max).contains(n)).map(Quantized::new)
            }
            (Numbers::Millionths, _) => {
                let range = (min * QUANTUM) as i64..=(max * QUANTUM) as i64;
                self.whole().filter(|n| range.contains(n)).map(Quantized)
            }
            _ => None,
        };
        quantized.ok_or_else(|| self.error(&format!("must be a number between {min} and {max}")))
    }

    fn whole(&self) -> Option<i64> {
        match (self.numbers, self.value) {
            (Numbers::AsWritten, Json::Number(number)) => number.written_integer(),
            // Other programs may have written the export anew.
            (Numbers::Millionths, Json::Number(number)) => number.integer(),
            _ => None,
        }
    }

    fn error(&self, requirement: &str) -> PolicyError {
        PolicyError::Parameter(format!(
            "slice policy key {:?} {requirement}, not {}",
            self.key, self.value
        ))
    }
}

fn unknown_key(key: &str) -> PolicyError {
    PolicyError::Parameter(format!("slice policy has no key {}", shown(key)))
}

type Entries<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

fn unique<'a>(prefix: &str, entries: Entries<'a>) -> Result<Entries<'a>, PolicyError> {
    let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_ref()).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PolicyError::Parameter(format!(
            "slice policy key {} is given twice",
            shown(&format!("{prefix}{}", pair[0]))
        ))),
        None => Ok(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SlicePolicy, String> {
        text.parse().map_err(|error: PolicyError| error.to_string())
    }

    #[test]
    fn presets_have_their_published_hashes() {
        let hashes = SlicePolicy::PRESETS.map(|p| SlicePolicy::preset(p).unwrap().params_hash());
        assert_eq!(hashes, ["02005444cae1117d", "1418f1bca097bcaf", "34dbc9c9d1bb9fb1"]);
    }

    #[test]
    fn missing_keys_take_defaults_and_the_canonical_text_reads_back() {
        assert_eq!(parse("{}").unwrap(), SlicePolicy::default());
        let policy = parse(r#"{"max_nodes":3,"phase_weights":{"synthesis":0.12345649}}"#).unwrap();
        assert_eq!(parse(&policy.canonical_text()).unwrap(), policy);
        assert!(policy.canonical_text().contains(r#""synthesis":0.123456,"planning":0.9"#));
    }

    #[test]
    fn parameters_act_as_they_are_hashed() {
        let a = parse(r#"{"salience_weight":0.3000001}"#).unwrap();
        let b = parse(r#"{"salience_weight":0.3000004}"#).unwrap();
        assert_eq!(a.params_hash(), b.params_hash());
        assert_eq!(a.salience_weight(), b.salience_weight());
        assert_eq!(a, b);
    }

    #[test]
    fn quantisation_rounds_half_away_from_zero() {
        let q = |v| Quantized::new(v).0;
        assert_eq!(
            [q(0.0078125), q(0.0234375), q(100.3), q(0.9)],
            [7813, 23438, 100_300_003, 900_000]
        );
        assert_eq!([q(-0.5), q(-0.0), q(-0.0078125)], [-500_000, 0, -7813]);
    }

    #[test]
    fn bad_policies_name_their_key() {
        let cases = [
            (
                r#"{"max_nodes":0}"#,
                r#"slice policy key "max_nodes" must be an integer between 1 and 10000, not 0"#,
            ),
            (
                r#"{"max_nodes":256.0}"#,
                r#"slice policy key "max_nodes" must be an integer between 1 and 10000, not 256.0"#,
            ),
            (
                r#"{"distance_decay":1.5}"#,
                r#"slice policy key "distance_decay" must be a number between 0 and 1, not 1.5"#,
            ),
            (
                r#"{"phase_weights":{"Synthesis":1}}"#,
                r#"slice policy has no key "phase_weights.Synthesis""#,
            ),
            (
                r#"{"phase_weights":{"planning":1,"planning":1}}"#,
                r#"slice policy key "phase_weights.planning" is given twice"#,
            ),
            (r#"{"max_nodes":1,"max_nodes":1}"#, r#"slice policy key "max_nodes" is given twice"#),
            (
                r#"{"version":"slice_policy_v2"}"#,
                r#"slice policy key "version" must be "slice_policy_v1", not "slice_policy_v2""#,
            ),
            (r#"{"radius":1}"#, r#"slice policy has no key "radius""#),
            ("[]", "slice policy must be a JSON object or a preset name, not an array"),
            ("wide", r#"no slice policy preset is named "wide""#),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err(), message);
        }
    }
}
