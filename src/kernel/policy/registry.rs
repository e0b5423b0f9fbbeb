//! The presets, and the fingerprint of a registry of policies.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;

use super::SlicePolicy;
use super::v1::V1Parameters;
use super::v2::V2Parameters;
use crate::json::canonical::json_hash;

impl SlicePolicy {
    /// The names of the presets, which text may give in place of a JSON object.
    pub const PRESETS: [&'static str; 6] =
        ["default", "focused", "broad", "lineage", "chat", "recall"];

    /// Those that every registry counts in its fingerprint.
    pub const COUNTED_PRESETS: [&'static str; 3] = ["default", "focused", "broad"];

    /// The specification's small context (§9.2).
    #[must_use]
    pub fn focused() -> Self {
        SlicePolicy::V1(V1Parameters::focused())
    }

    /// The specification's wide context (§9.3).
    #[must_use]
    pub fn broad() -> Self {
        SlicePolicy::V1(V1Parameters::broad())
    }

    /// The preset of this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            "focused" => Some(Self::focused()),
            "broad" => Some(Self::broad()),
            "lineage" => Some(SlicePolicy::V2(V2Parameters::lineage().into())),
            "chat" => Some(SlicePolicy::V2(V2Parameters::chat().into())),
            "recall" => Some(SlicePolicy::V2(V2Parameters::recall().into())),
            _ => None,
        }
    }

    /// The preset of this canonical text.
    pub(super) fn preset_of_text(text: &str) -> Option<Self> {
        let (_, preset) = PRESET_TEXTS.iter().find(|(canonical, _)| canonical == text)?;
        Some(preset.clone())
    }
}

/// The presets by their canonical texts. Most texts that are read are one of these, and need not be parsed.
static PRESET_TEXTS: LazyLock<Vec<(String, SlicePolicy)>> = LazyLock::new(|| {
    let presets = SlicePolicy::PRESETS.into_iter().filter_map(SlicePolicy::preset);
    presets.map(|preset| (preset.canonical_text(), preset)).collect()
});

/// How a policy is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyRef<'a> {
    /// The policy's version.
    pub policy_id: &'a str,
    /// The fingerprint of its parameters.
    pub params_hash: &'a str,
}

/// The fingerprint of a registry that holds these policies, in any order, however often each is
/// named: 16 lower-case hex digits.
#[must_use]
pub fn registry_fingerprint<'a>(policies: impl IntoIterator<Item = PolicyRef<'a>>) -> String {
    let policies: BTreeSet<PolicyRef> = policies.into_iter().collect();
    json_hash(&policies)
}
