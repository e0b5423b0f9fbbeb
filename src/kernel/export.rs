//! The export of a slice: its canonical bytes and fingerprints (SlicePolicy v1 §6).

use serde::Serialize;
use uuid::fmt::Hyphenated;
use xxhash_rust::xxh64::Xxh64;

use crate::attestation::{Attestation, Circumstances, TokenFields, digest};
use crate::canonical::{SCHEMA_VERSION, json_hash, json_text, xxh64_hex};
use crate::edge::Edge;
use crate::keys::{EpochKeys, Secret};
use crate::policy::{POLICY_ID, SlicePolicy};
use crate::slice::Slice;
use crate::turn::{Turn, TurnId};

/// A slice as it leaves the kernel; serialises to the canonical JSON.
#[derive(Serialize)]
pub struct Export<'a> {
    /// Where the slice was taken.
    pub anchor_turn_id: TurnId,
    /// Ascending by id.
    pub turns: Vec<&'a Turn>,
    /// Ascending by (parent, child, type).
    pub edges: &'a [Edge],
    /// The policy's version.
    pub policy_id: &'static str,
    /// The policy's parameters.
    pub policy_params_hash: String,
    /// The version of this shape.
    pub schema_version: &'static str,
    /// What was selected, by which policy.
    pub slice_id: String,
    /// What the selected turns contain.
    pub graph_snapshot_hash: String,
    /// The published token, when one was issued.
    pub admissibility_token: Option<String>,
    /// The claim that covers the whole export, when one was issued.
    pub attestation: Option<Attestation>,
}

impl<'a> Export<'a> {
    /// The export of a slice taken by this policy, without tokens.
    #[must_use]
    pub fn new(slice: &'a Slice, policy: &SlicePolicy) -> Self {
        let policy_params_hash = policy.params_hash();
        let turns: Vec<&Turn> = slice.turns.iter().map(|selected| &*selected.turn).collect();
        let slice_id = slice_id(slice.anchor, &turns, &slice.edges, &policy_params_hash);
        let graph_snapshot_hash = graph_snapshot_hash(&turns, slice.edges.len());
        Export {
            anchor_turn_id: slice.anchor,
            turns,
            edges: &slice.edges,
            policy_id: POLICY_ID,
            policy_params_hash,
            schema_version: SCHEMA_VERSION,
            slice_id,
            graph_snapshot_hash,
            admissibility_token: None,
            attestation: None,
        }
    }

    /// Adds the published token, unless the transaction may have changed the graph. `v2` signs it: the
    /// epoch's own secret or a shared one.
    pub fn sign(&mut self, v2: &Secret, circumstances: &Circumstances) {
        let token = (!circumstances.uncommitted).then(|| self.token_fields().sign(v2));
        self.admissibility_token = token;
    }

    /// Adds the published token and the attestation of the whole content.
    pub fn attest(
        &mut self,
        policy: &SlicePolicy,
        keys: &EpochKeys,
        v2: &Secret,
        circumstances: Circumstances,
    ) {
        self.sign(v2, &circumstances);
        let digest = digest(self.anchor_turn_id, &self.turns, self.edges, &policy.quantized_text());
        let fields = self.token_fields();
        let attestation =
            Attestation::new(keys, circumstances, &fields, digest, policy.quantized());
        self.attestation = Some(attestation);
    }

    fn token_fields(&self) -> TokenFields<'_> {
        TokenFields {
            slice_id: &self.slice_id,
            anchor: self.anchor_turn_id,
            policy_id: self.policy_id,
            params_hash: &self.policy_params_hash,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            schema_version: self.schema_version,
        }
    }

    /// The canonical JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        json_text(self)
    }

    /// What a service answers: turns by id alone. `slice_id` can be computed from it again.
    #[must_use]
    pub fn summary_json(&self) -> String {
        json_text(&Summary {
            slice_id: &self.slice_id,
            anchor_turn_id: self.anchor_turn_id,
            turn_ids: self.turns.iter().map(|turn| turn.id).collect(),
            edge_count: self.edges.len(),
            edges: self.edges,
            policy_id: self.policy_id,
            policy_params_hash: &self.policy_params_hash,
            schema_version: self.schema_version,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            admissibility_token: self.admissibility_token.as_deref(),
        })
    }
}

/// The body of a slice (retrieval integration §4.3), with its edges.
#[derive(Serialize)]
struct Summary<'a> {
    slice_id: &'a str,
    anchor_turn_id: TurnId,
    turn_ids: Vec<TurnId>,
    edge_count: usize,
    edges: &'a [Edge],
    policy_id: &'static str,
    policy_params_hash: &'a str,
    schema_version: &'static str,
    graph_snapshot_hash: &'a str,
    admissibility_token: Option<&'a str>,
}

/// The selection fingerprint (§6.3): of the canonical JSON of an array of all that selects.
pub(crate) fn slice_id(
    anchor: TurnId,
    turns: &[&Turn],
    edges: &[Edge],
    params_hash: &str,
) -> String {
    // Nearly all of it is ids, which need no escapes: a serializer would look at each of their bytes.
    let mut json = String::with_capacity(40 * turns.len() + 128 * edges.len() + 128);
    json.push('[');
    push_id(&mut json, anchor);
    json.push(',');
    push_array(&mut json, turns, |json, turn| push_id(json, turn.id));
    json.push(',');
    push_array(&mut json, edges, |json, edge| {
        json.push_str("{\"parent\":");
        push_id(json, edge.parent);
        json.push_str(",\"child\":");
        push_id(json, edge.child);
        json.push_str(",\"edge_type\":\"");
        json.push_str(edge.edge_type.fingerprint_name());
        json.push_str("\"}");
    });
    json.push(',');
    // The rest of the array, from behind its own bracket.
    json.push_str(&json_text(&(POLICY_ID, params_hash, SCHEMA_VERSION))[1..]);
    xxh64_hex(json.as_bytes())
}

fn push_id(json: &mut String, id: TurnId) {
    json.push('"');
    json.push_str(id.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]));
    json.push('"');
}

fn push_array<T>(json: &mut String, items: &[T], push: impl Fn(&mut String, &T)) {
    json.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        push(json, item);
    }
    json.push(']');
}

/// The content fingerprint: of the content hashes where every turn has one, else of counts and
/// the latest time.
pub(crate) fn graph_snapshot_hash(turns: &[&Turn], edge_count: usize) -> String {
    let hashes: Option<Vec<&str>> = turns.iter().map(|turn| turn.content_hash.as_deref()).collect();
    let Some(hashes) = hashes else {
        let latest = turns.iter().map(|turn| turn.created_at).max().unwrap_or(0);
        return json_hash(&(latest, turns.len(), edge_count, SCHEMA_VERSION));
    };
    let mut hasher = Xxh64::new(0);
    hasher.update(&(edge_count as u64).to_le_bytes());
    hasher.update(SCHEMA_VERSION.as_bytes());
    for (turn, hash) in turns.iter().zip(hashes) {
        hasher.update(turn.id.as_bytes());
        hasher.update(hash.as_bytes());
    }
    format!("{:016x}", hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::EdgeType;
    use crate::turn::StoredTurn;

    #[derive(Serialize)]
    struct FingerprintEdge {
        parent: TurnId,
        child: TurnId,
        edge_type: &'static str,
    }

    #[test]
    fn the_selection_fingerprint_is_of_canonical_json() {
        let id = TurnId::from_u128;
        let turn = |n| Turn::from(StoredTurn { id: id(n), ..StoredTurn::default() });
        let turns = [turn(0xab), turn(0xcd << 64), turn(u128::MAX)];
        let edges: Vec<Edge> = EdgeType::ALL
            .iter()
            .map(|edge_type| Edge { parent: id(1), child: id(2), edge_type: *edge_type })
            .collect();
        for (turns, edges) in [(&turns[..], &edges[..]), (&turns[..1], &edges[..1]), (&[], &[])] {
            for params_hash in ["0123456789abcdef", "\"],\\"] {
                let refs: Vec<&Turn> = turns.iter().collect();
                let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
                let named = edges.iter().map(|edge| FingerprintEdge {
                    parent: edge.parent,
                    child: edge.child,
                    edge_type: edge.edge_type.fingerprint_name(),
                });
                let named: Vec<FingerprintEdge> = named.collect();
                let all = (id(3), ids, named, POLICY_ID, params_hash, SCHEMA_VERSION);
                assert_eq!(slice_id(id(3), &refs, edges, params_hash), json_hash(&all));
            }
        }
    }
}
