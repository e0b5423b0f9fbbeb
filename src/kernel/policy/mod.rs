//! SlicePolicy: the parameters of a slice.
//!
//! Each version has a module with its parameters, canonical form and priority. [`SlicePolicy`] is a policy of any
//! version: its methods here match on the version. Reading policies (`text`) and the registry know version 1
//! by name.

mod quantized;
pub mod registry;
pub mod text;
pub mod v1;

use serde::{Serialize, Serializer};

pub(crate) use self::text::{POLICY_LIMITS, check_length};
pub use self::text::{POLICY_TEXT_MAX_BYTES, PolicyError};
pub use self::v1::MAX_NODES_LIMIT;
use crate::export::canonical::{json_hash, json_text};
use crate::slicing::store::TurnFacts;

/// A valid policy.
///
/// Read it from text with [`std::str::FromStr`]; text is a preset's name or a JSON object in which missing keys take
/// the default policy's values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SlicePolicy {
    /// SlicePolicy v1.
    V1(v1::Parameters),
}

impl Default for SlicePolicy {
    fn default() -> Self {
        SlicePolicy::V1(v1::Parameters::default())
    }
}

impl SlicePolicy {
    /// The identifiers of the versions there are.
    pub const IDS: [&'static str; 1] = [v1::ID];

    /// The identifier of the policy's version.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self {
            SlicePolicy::V1(_) => v1::ID,
        }
    }

    /// The parameters that every version has.
    fn common(&self) -> &v1::Parameters {
        let SlicePolicy::V1(parameters) = self;
        parameters
    }

    fn common_mut(&mut self) -> &mut v1::Parameters {
        let SlicePolicy::V1(parameters) = self;
        parameters
    }

    /// The budget: most turns a slice may have, 1 … 10000.
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

    /// What a turn counts for at a distance from the anchor: the higher, the earlier it is selected.
    #[must_use]
    pub fn priority(&self, turn: &TurnFacts, distance: u32) -> f32 {
        match self {
            SlicePolicy::V1(parameters) => parameters.priority(turn, distance),
        }
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

    /// The same policy with siblings on: as many as it says, or the default policy's where it says 0.
    #[must_use]
    pub(crate) fn with_siblings(&self) -> Self {
        let mut policy = self.clone();
        let parameters = policy.common_mut();
        parameters.include_siblings = true;
        if parameters.max_siblings_per_node == 0 {
            parameters.max_siblings_per_node = v1::Parameters::default().max_siblings_per_node;
        }
        policy
    }

    /// The canonical JSON text: every key, in the specification's order.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        match self {
            SlicePolicy::V1(parameters) => json_text(&parameters.json()),
        }
    }

    /// The canonical JSON with floats in millionths: what is hashed and attested.
    #[must_use]
    pub fn quantized(&self) -> QuantizedPolicy<'_> {
        QuantizedPolicy(self)
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
}

/// A policy that serialises to its canonical JSON with floats in millionths.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedPolicy<'a>(&'a SlicePolicy);

impl Serialize for QuantizedPolicy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            SlicePolicy::V1(parameters) => parameters.quantized_json().serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_their_published_hashes() {
        let hashes = SlicePolicy::PRESETS.map(|p| SlicePolicy::preset(p).unwrap().params_hash());
        assert_eq!(hashes, ["02005444cae1117d", "1418f1bca097bcaf", "34dbc9c9d1bb9fb1"]);
    }
}
