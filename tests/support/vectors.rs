//! Recorded slices, and small graphs with the slices expected of them. Turns and edges of a small graph are read as the
//! test wants them.

use std::collections::BTreeMap;

use kernel::graph::turn::TurnId;
use serde::Deserialize;
use serde_json::Value;

/// A slice by SlicePolicy v1 of recorded data.
#[derive(Debug, PartialEq, Deserialize)]
pub struct RecordedSlice {
    /// The data's folder.
    pub data: String,
    /// The policy's name.
    pub policy_name: String,
    /// The policy.
    pub policy: Value,
    /// The anchor.
    pub anchor: TurnId,
    /// The policy's fingerprint.
    pub policy_params_hash: String,
    /// How many turns it has.
    pub turns: usize,
    /// How many edges it has.
    pub edges: usize,
    /// Its slice_id.
    pub slice_id: String,
    /// SHA-256 of the ids in the order of selection, one a line.
    pub selection_order_sha256: String,
}

/// A slice by SlicePolicy v2 of recorded data.
#[derive(Deserialize)]
pub struct RecordedSliceV2 {
    /// The data's folder.
    pub data: String,
    /// The policy's name.
    pub policy_name: String,
    /// The policy.
    pub policy: Value,
    /// The anchor.
    pub anchor: TurnId,
    /// The slice; `None` where the anchor does not exist.
    pub expected: Option<RecordedValues>,
}

/// The fingerprints of a [`RecordedSliceV2`].
#[derive(Debug, PartialEq, Deserialize)]
pub struct RecordedValues {
    /// The policy's fingerprint.
    pub policy_params_hash: String,
    /// How many turns it has.
    pub turns: usize,
    /// How many edges it has.
    pub edges: usize,
    /// The tokens of its turns together.
    pub tokens: u64,
    /// Its slice_id.
    pub slice_id: String,
    /// How many turns are cut.
    pub cut: usize,
    /// Whether the limits of the policy end the line.
    pub limited: bool,
    /// SHA-256 of the ids in the order of selection, one a line.
    pub selection_order_sha256: String,
    /// How many turns each part has.
    pub parts: BTreeMap<String, usize>,
    /// SHA-256 of the ids in the order of messages, one a line.
    pub messages_sha256: String,
}

/// A small graph, sliced by SlicePolicy v1.
#[derive(Deserialize)]
pub struct SmallGraph<Turns, Edges> {
    /// Its number.
    pub case: u32,
    /// The anchor.
    pub anchor: TurnId,
    /// The policy.
    pub policy: Value,
    /// Its turns.
    pub turns: Turns,
    /// Its edges.
    pub edges: Edges,
    /// The slice by the specification's order of equal priorities.
    pub spec_tiebreak: ExpectedSlice,
    /// The slice that the published crate takes.
    #[serde(rename = "crate")]
    pub published: ExpectedSlice,
    /// Whether the two may differ.
    pub tie_sensitive: bool,
}

/// The slice expected of a [`SmallGraph`].
#[derive(Debug, PartialEq, Deserialize)]
pub struct ExpectedSlice {
    /// The policy's fingerprint.
    pub policy_params_hash: String,
    /// The turns, by id.
    pub turn_ids: Vec<TurnId>,
    /// How many edges it has.
    pub edge_count: usize,
    /// Its slice_id.
    pub slice_id: String,
    /// Its graph_snapshot_hash.
    pub graph_snapshot_hash: String,
}

/// A small graph, sliced by SlicePolicy v2.
#[derive(Deserialize)]
pub struct SmallGraphV2<Turns, Edges> {
    /// Its number.
    pub case: u32,
    /// The policy.
    pub policy: Value,
    /// The anchor.
    pub anchor: TurnId,
    /// Its turns.
    pub turns: Turns,
    /// Its edges.
    pub edges: Edges,
    /// The slice; `None` where the anchor does not exist.
    pub expected: Option<ExpectedSliceV2>,
}

/// The slice expected of a [`SmallGraphV2`].
#[derive(Debug, PartialEq, Deserialize)]
pub struct ExpectedSliceV2 {
    /// The anchor.
    pub anchor_turn_id: TurnId,
    /// The turns, by id.
    pub turn_ids: Vec<TurnId>,
    /// The edges: parent, child, type.
    pub edges: Vec<(TurnId, TurnId, String)>,
    /// The distance of each turn.
    pub distances: BTreeMap<TurnId, u32>,
    /// The priority of each turn.
    pub priorities: BTreeMap<TurnId, f32>,
    /// The turns in the order of selection.
    pub selection_order: Vec<TurnId>,
    /// The tokens of its turns together.
    pub tokens: u64,
    /// The part of each turn.
    pub parts: BTreeMap<TurnId, String>,
    /// What is cut, in the order of the line.
    pub cut: Vec<TurnId>,
    /// Whether the limits of the policy end the line.
    pub limited: bool,
    /// The turns in the order of messages.
    pub messages: Vec<TurnId>,
    /// The policy's fingerprint.
    pub policy_params_hash: String,
    /// Its slice_id.
    pub slice_id: String,
}
