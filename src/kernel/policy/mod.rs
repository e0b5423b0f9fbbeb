//! SlicePolicy: the parameters of a slice.
//!
//! Each version has a module with its parameters, canonical form and priority. [`SlicePolicy`] is a policy of any
//! version: its methods here match on the version.

pub mod admission;
pub mod needs;
pub mod position;
mod quantized;
pub mod registry;
pub mod text;
pub mod v1;
pub mod v2;
mod weights;

use serde::{Serialize, Serializer};

pub use self::text::{MAX_POLICY_TEXT_BYTES, PolicyError};
pub(crate) use self::text::{POLICY_LIMITS, check_length};
pub use self::v1::MAX_NODES_LIMIT;
use self::v1::V1Parameters;
use self::v2::V2Parameters;
use crate::graph::edge::EdgeTypes;
use crate::graph::facts::TurnFacts;
use crate::graph::turn::TurnId;
use crate::json::canonical::{json_hash, json_text};
use crate::policy::admission::Admission;
use crate::policy::needs::Needs;
use crate::policy::position::Position;

/// A valid policy.
///
/// Read it from text with [`std::str::FromStr`]; text is a preset's name or a JSON object in which missing keys take
/// the default policy's values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SlicePolicy {
    /// SlicePolicy v1.
    V1(V1Parameters),
    /// SlicePolicy v2.
    V2(Box<V2Parameters>),
}

impl Default for SlicePolicy {
    fn default() -> Self {
        SlicePolicy::V1(V1Parameters::default())
    }
}

impl SlicePolicy {
    /// The identifiers of the versions there are.
    pub const IDS: [&'static str; 2] = [v1::ID, v2::ID];

    /// The identifier of the policy's version.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self {
            SlicePolicy::V1(_) => v1::ID,
            SlicePolicy::V2(_) => v2::ID,
        }
    }

    /// The parameters that every version has.
    fn common(&self) -> &V1Parameters {
        match self {
            SlicePolicy::V1(parameters) => parameters,
            SlicePolicy::V2(parameters) => &parameters.common,
        }
    }

    fn common_mut(&mut self) -> &mut V1Parameters {
        match self {
            SlicePolicy::V1(parameters) => parameters,
            SlicePolicy::V2(parameters) => &mut parameters.common,
        }
    }

    /// The most turns that a slice may have, 1 … 10000.
    #[must_use]
    pub fn max_nodes(&self) -> usize {
        self.common().max_nodes as usize
    }

    /// The most hops from the anchor, 0 … 2147483647.
    #[must_use]
    pub fn max_radius(&self) -> u32 {
        self.common().max_radius
    }

    /// The most siblings one expanded turn may bring in: 0 when siblings are off.
    #[must_use]
    pub fn sibling_limit(&self) -> usize {
        let parameters = self.common();
        if parameters.include_siblings { parameters.max_siblings_per_node as usize } else { 0 }
    }

    /// Whether a slice can have more than its anchor.
    #[must_use]
    pub fn expands(&self) -> bool {
        self.max_radius() > 0 && self.max_nodes() > 1
    }

    /// The priority of a turn at its position. Turns of higher priority are selected first.
    #[must_use]
    pub fn priority(&self, turn: &TurnFacts, position: Position) -> f32 {
        match self {
            SlicePolicy::V1(parameters) => parameters.priority(turn, position.distance),
            SlicePolicy::V2(parameters) => parameters.priority(turn, position),
        }
    }

    fn v2(&self) -> Option<&V2Parameters> {
        match self {
            SlicePolicy::V1(_) => None,
            SlicePolicy::V2(parameters) => Some(parameters),
        }
    }

    /// What the policy reads of turns and edges besides phase and salience.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.v2().map_or(Needs::default(), V2Parameters::needs)
    }

    /// The turns and edges that exist for every anchor.
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.v2().map_or(Admission::default(), V2Parameters::admission)
    }

    /// The turns and edges that exist at an anchor of these facts.
    #[must_use]
    pub fn admission_at(&self, anchor: &TurnFacts) -> Admission {
        self.v2().map_or(Admission::default(), |parameters| parameters.admission_at(anchor))
    }

    /// The most tokens that the selected turns may have together, 1 … 2147483647.
    #[must_use]
    pub fn max_tokens(&self) -> Option<u64> {
        self.v2()?.max_tokens()
    }

    /// Whether the policy counts tokens: they are then read.
    #[must_use]
    pub fn counts_tokens(&self) -> bool {
        self.v2().is_some_and(V2Parameters::counts_tokens)
    }

    /// The most tokens that recalled turns may have together, 1 … 2147483647. The line leaves them.
    #[must_use]
    pub fn recall_tokens(&self) -> Option<u64> {
        self.v2()?.recall_tokens()
    }

    /// How many hops from a seed turns are recalled, 0 … 16.
    #[must_use]
    pub fn recall_radius(&self) -> u32 {
        self.v2().map_or(0, V2Parameters::recall_radius)
    }

    /// What a hop leaves of the strength of a recalled turn, 0 … 1.
    #[must_use]
    pub fn recall_decay(&self) -> f32 {
        self.v2().map_or(0.0, V2Parameters::recall_decay)
    }

    /// The rank of a recalled turn of this strength; `own` is that of its own hit, 0 where it has none.
    #[must_use]
    pub fn recall_rank(&self, turn: &TurnFacts, strength: f32, own: f32, anchor_time: i64) -> f32 {
        self.v2().map_or(0.0, |parameters| parameters.recall_rank(turn, strength, own, anchor_time))
    }

    /// The most of the line's tokens that is cut off at its beginning, in millionths, 0 … 900000.
    #[must_use]
    pub fn cut_share(&self) -> u32 {
        self.v2().map_or(0, V2Parameters::cut_share)
    }

    /// Whether a line that is cut begins with a turn of the user's.
    #[must_use]
    pub fn cuts_to_user(&self) -> bool {
        self.v2().is_some_and(V2Parameters::cut_to_user)
    }

    /// The turns that are selected right after the anchor, at most 64, in the order given.
    #[must_use]
    pub fn pins(&self) -> &[TurnId] {
        self.v2().map_or(&[], V2Parameters::pins)
    }

    /// What a search has found, at most 256 turns, with the strength of each, above 0 and up to 1; by id.
    pub fn seeds(&self) -> impl Iterator<Item = (TurnId, f32)> {
        self.v2().into_iter().flat_map(V2Parameters::seeds)
    }

    /// The strength of a seed; `None` of what is not one.
    #[must_use]
    pub fn seed(&self, id: TurnId) -> Option<f32> {
        self.v2()?.seed(id)
    }

    /// Whether the policy has pins or seeds, which are inputs of one call as the anchor is.
    #[must_use]
    pub fn has_inputs(&self) -> bool {
        !self.pins().is_empty() || self.seeds().next().is_some()
    }

    /// Whether no turn of the line comes after the anchor in a conversation.
    #[must_use]
    pub fn anchor_is_last(&self) -> bool {
        !self.include_children() && !self.common().include_siblings
    }

    /// The same policy with the first 256 of these turns, of different ids, as its seeds; `None` of a version that has
    /// none. What is not above 0 and up to 1 is left out.
    #[must_use]
    pub fn with_seeds(&self, seeds: impl Iterator<Item = (TurnId, f32)>) -> Option<Self> {
        Some(SlicePolicy::V2(self.v2()?.with_seeds(seeds).into()))
    }

    /// The same policy without pins and seeds.
    #[must_use]
    pub fn without_inputs(&self) -> Self {
        match self {
            SlicePolicy::V1(_) => self.clone(),
            SlicePolicy::V2(parameters) => SlicePolicy::V2(parameters.without_inputs().into()),
        }
    }

    /// The same policy with one more pin; `None` where it cannot have it.
    #[must_use]
    pub(crate) fn with_pin(&self, id: TurnId) -> Option<Self> {
        Some(SlicePolicy::V2(self.v2()?.with_pin(id)?.into()))
    }

    /// Turns that were created after this Unix second are ignored.
    #[must_use]
    pub fn as_of(&self) -> Option<i64> {
        self.v2()?.as_of()
    }

    /// Whether parents are discovered.
    #[must_use]
    pub fn include_parents(&self) -> bool {
        self.v2().is_none_or(V2Parameters::include_parents)
    }

    /// Whether children are discovered.
    #[must_use]
    pub fn include_children(&self) -> bool {
        self.v2().is_none_or(V2Parameters::include_children)
    }

    /// Whether calls and their results are selected together or not at all.
    #[must_use]
    pub fn keeps_tool_results(&self) -> bool {
        self.v2().is_some_and(V2Parameters::keep_tool_results)
    }

    /// Whether the weights of all types of edges are 1.
    #[must_use]
    pub fn weighs_alike(&self) -> bool {
        self.v2().is_none_or(V2Parameters::weighs_alike)
    }

    /// Whether more strength never makes a priority lower.
    #[must_use]
    pub fn stronger_is_better(&self) -> bool {
        self.weighs_alike() || !self.common().has_negative_phase_weights()
    }

    /// The factor by which a hop along edges of these types multiplies the strength. There is at least one type.
    #[must_use]
    pub fn weight(&self, types: EdgeTypes) -> f32 {
        self.v2().map_or(1.0, |parameters| parameters.weight(types))
    }

    /// The same policy with another budget.
    #[must_use]
    pub(crate) fn with_max_nodes(&self, max_nodes: u32) -> Self {
        let mut policy = self.clone();
        policy.common_mut().max_nodes = max_nodes;
        policy
    }

    /// The same policy with another radius, at most the largest there is.
    #[must_use]
    pub(crate) fn with_max_radius(&self, max_radius: u32) -> Self {
        let mut policy = self.clone();
        policy.common_mut().max_radius = max_radius.min(v1::MAX_COUNT);
        policy
    }

    /// The same policy with another limit on tokens, or none. `None` for a version without that key.
    #[must_use]
    pub(crate) fn with_max_tokens(&self, max_tokens: Option<u32>) -> Option<Self> {
        Some(SlicePolicy::V2(self.v2()?.with_max_tokens(max_tokens).into()))
    }

    /// The policies that each leave out one key of v2 that excludes turns or edges, or selects them last. The text is
    /// the key and the value that has no such effect.
    pub(crate) fn relaxations(&self) -> Vec<(&'static str, Self)> {
        let relaxed = self.v2().map(V2Parameters::relaxations).unwrap_or_default();
        relaxed
            .into_iter()
            .map(|(change, relaxed)| (change, SlicePolicy::V2(relaxed.into())))
            .collect()
    }

    /// These policies as policies of one version, which select the same turns. A v1 policy is the v2 policy in which
    /// the keys that v1 does not have are at their defaults.
    pub(crate) fn comparable(a: &Self, b: &Self) -> (Self, Self) {
        if a.id() == b.id() {
            return (a.clone(), b.clone());
        }
        let as_v2 = |policy: &Self| match policy {
            SlicePolicy::V1(common) => SlicePolicy::V2(V2Parameters::of(common.clone()).into()),
            SlicePolicy::V2(_) => policy.clone(),
        };
        (as_v2(a), as_v2(b))
    }

    /// The v1 policy with the same parameters, without those that v1 does not have.
    #[must_use]
    pub(crate) fn as_v1(&self) -> Self {
        SlicePolicy::V1(self.common().clone())
    }

    /// The same policy with siblings on: as many as it says, or the default policy's where it says 0.
    #[must_use]
    pub(crate) fn with_siblings(&self) -> Self {
        let mut policy = self.clone();
        let parameters = policy.common_mut();
        parameters.include_siblings = true;
        if parameters.max_siblings_per_node == 0 {
            parameters.max_siblings_per_node = V1Parameters::default().max_siblings_per_node;
        }
        policy
    }

    /// A description for people: the preset if it is one, and what differs from the defaults of the version.
    #[must_use]
    pub fn description(&self) -> String {
        let named = self.without_inputs();
        let preset =
            Self::PRESETS.into_iter().find(|name| Self::preset(name).as_ref() == Some(&named));
        let mut words: Vec<String> = preset.into_iter().map(str::to_owned).collect();
        words.push(match self.max_nodes() {
            1 => "1 turn".to_owned(),
            most => format!("at most {most} turns"),
        });
        words.extend(self.max_tokens().map(|tokens| format!("{tokens} tokens")));
        words.push(format!("{} hops", self.max_radius()));
        match (self.include_parents(), self.include_children()) {
            (true, true) => {}
            (true, false) => words.push("no children".to_owned()),
            (false, true) => words.push("no parents".to_owned()),
            (false, false) => words.push("no parents, no children".to_owned()),
        }
        words.push(match self.sibling_limit() {
            0 => "no siblings".to_owned(),
            most => format!("{most} siblings of each turn"),
        });
        words.extend(self.v2().map(V2Parameters::description).into_iter().flatten());
        words.join(", ")
    }

    /// The canonical JSON text: every key, in the specification's order.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        match self {
            SlicePolicy::V1(parameters) => json_text(&parameters.json()),
            SlicePolicy::V2(parameters) => json_text(&parameters.json()),
        }
    }

    /// The canonical JSON with floats in millionths: what is attested.
    #[must_use]
    pub fn quantized(&self) -> QuantizedPolicy<'_> {
        QuantizedPolicy(self)
    }

    /// [`SlicePolicy::quantized`] as text.
    #[must_use]
    pub fn quantized_text(&self) -> String {
        json_text(&self.quantized())
    }

    /// The fingerprint of the parameters (§8): 16 lower-case hex digits. Pins and seeds are not in it.
    #[must_use]
    pub fn params_hash(&self) -> String {
        match self {
            SlicePolicy::V1(parameters) => json_hash(&parameters.quantized_json()),
            SlicePolicy::V2(parameters) => json_hash(&parameters.hashed_json()),
        }
    }
}

/// A policy that serialises to its canonical JSON with floats in millionths.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedPolicy<'a>(&'a SlicePolicy);

impl Serialize for QuantizedPolicy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            SlicePolicy::V1(parameters) => parameters.quantized_json().serialize(serializer),
            SlicePolicy::V2(parameters) => parameters.quantized_json().serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_their_published_hashes() {
        let hashes = SlicePolicy::PRESETS.map(|p| SlicePolicy::preset(p).unwrap().params_hash());
        assert_eq!(
            hashes,
            [
                "02005444cae1117d",
                "1418f1bca097bcaf",
                "34dbc9c9d1bb9fb1",
                "16e237605e72c58d",
                "0d5b155cc33c3f9a",
                "dc1d22d5f631adec"
            ]
        );
        let defaults: SlicePolicy = r#"{"version":"slice_policy_v2"}"#.parse().unwrap();
        assert_eq!(defaults.params_hash(), "2e2496ef3bb85ae3");
    }
}
