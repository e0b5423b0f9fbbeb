//! The export of a slice: its canonical bytes and fingerprints (SlicePolicy v1 §6).

use serde::Serialize;
use uuid::fmt::Hyphenated;
use xxhash_rust::xxh64::Xxh64;

use crate::export::parse::ParsedExport;
use crate::export::writer::JsonWriter;
use crate::graph::SCHEMA_VERSION;
use crate::graph::edge::Edge;
use crate::graph::turn::{Turn, TurnId};
use crate::interrupts::{CHECKED_BYTES, Interrupts};
use crate::json::canonical::{Checked, json_hash, json_text};
use crate::policy::SlicePolicy;
use crate::policy::registry::PolicyRef;
use crate::slicing::slice::Slice;
use crate::trust::attestation::{Attestation, Circumstances, Status, TokenFields, digest};
use crate::trust::keys::{SigningKey, SigningKeys};

/// The export of a slice.
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
    /// The attestation of the whole export, when one was issued.
    pub attestation: Option<Attestation>,
    check_interrupts: &'a dyn Fn(),
}

impl<'a> Export<'a> {
    /// The export of a slice taken by this policy, without tokens. `check_interrupts` is called often, here and
    /// in all that is made of the export.
    #[must_use]
    pub fn new(slice: &'a Slice, policy: &SlicePolicy, check_interrupts: &'a dyn Fn()) -> Self {
        let policy_params_hash = policy.params_hash();
        let turns: Vec<&Turn> = slice.turns.iter().map(|selected| &*selected.turn).collect();
        let selection = (&turns[..], &slice.edges[..]);
        let policy_ref = PolicyRef { policy_id: policy.id(), params_hash: &policy_params_hash };
        let slice_id = slice_id(slice.anchor, selection, policy_ref, check_interrupts);
        let graph_snapshot_hash = graph_snapshot_hash(&turns, slice.edges.len(), check_interrupts);
        Export {
            anchor_turn_id: slice.anchor,
            turns,
            edges: &slice.edges,
            policy_id: policy.id(),
            policy_params_hash,
            schema_version: SCHEMA_VERSION,
            slice_id,
            graph_snapshot_hash,
            admissibility_token: None,
            attestation: None,
            check_interrupts,
        }
    }

    /// Adds the published token, where the slice is attested. `v2` signs it: the
    /// epoch's own key or a shared one.
    pub fn sign(&mut self, v2: &SigningKey, circumstances: &Circumstances) {
        let is_attested = circumstances.status == Status::Attested;
        let token = is_attested.then(|| self.token_fields().sign(v2));
        self.admissibility_token = token;
    }

    /// Adds the published token and the attestation of the whole content.
    pub fn attest(
        &mut self,
        policy: &SlicePolicy,
        keys: &SigningKeys,
        v2: &SigningKey,
        circumstances: Circumstances,
    ) {
        self.sign(v2, &circumstances);
        let selection = (&self.turns[..], self.edges);
        let policy_text = policy.quantized_text();
        let digest = digest(self.anchor_turn_id, selection, &policy_text, self.check_interrupts);
        let fields = self.token_fields();
        let attestation = Attestation::new(keys, circumstances, &fields, digest, policy.clone());
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

    /// How long [`Export::to_json`] expects the text to be.
    #[must_use]
    pub fn expected_bytes(&self) -> usize {
        expected_bytes(&self.turns, self.edges)
    }

    /// The canonical JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let end = ExportEnd {
            policy_id: self.policy_id,
            policy_params_hash: &self.policy_params_hash,
            schema_version: self.schema_version,
            slice_id: &self.slice_id,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            admissibility_token: self.admissibility_token.as_deref(),
            attestation: self.attestation.as_ref(),
        };
        let selection = (&self.turns[..], self.edges);
        export_json(self.anchor_turn_id, selection, &end, self.check_interrupts)
    }

    /// The body of a response of a service: turns by id alone. `slice_id` can be computed from it.
    #[must_use]
    pub fn summary_json(&self) -> String {
        json_text(&SummaryJson {
            slice_id: &self.slice_id,
            anchor_turn_id: self.anchor_turn_id,
            turn_ids: self.turns.iter().map(|turn| turn.id).collect(),
            edge_count: self.edges.len(),
            edges: Checked(self.edges, self.check_interrupts),
            policy_id: self.policy_id,
            policy_params_hash: &self.policy_params_hash,
            schema_version: self.schema_version,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            admissibility_token: self.admissibility_token.as_deref(),
        })
    }
}

/// The members of an export after its turns and edges.
#[derive(Serialize)]
struct ExportEnd<'a> {
    policy_id: &'a str,
    policy_params_hash: &'a str,
    schema_version: &'a str,
    slice_id: &'a str,
    graph_snapshot_hash: &'a str,
    admissibility_token: Option<&'a str>,
    attestation: Option<&'a Attestation>,
}

fn expected_bytes(turns: &[&Turn], edges: &[Edge]) -> usize {
    1024 + 512 * turns.len() + 128 * edges.len()
}

fn export_json(
    anchor: TurnId,
    (turns, edges): (&[&Turn], &[Edge]),
    end: &ExportEnd<'_>,
    check_interrupts: &dyn Fn(),
) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    // Reserved at once: a large text that grows is copied without a check for interrupts.
    let mut json = JsonWriter::with_capacity(expected_bytes(turns, edges));
    json.raw("{\"anchor_turn_id\":");
    json.id(anchor);
    json.raw(",\"turns\":");
    json.turns(turns, &interrupts);
    json.raw(",\"edges\":");
    json.edges(edges, &interrupts);
    json.raw(",");
    // The object without its opening brace.
    json.raw(&json_text(end)[1..]);
    json.finish()
}

/// The canonical JSON text of an export that was read, in the order that it gives its turns and edges. It is what the
/// kernel wrote, if that is what was read.
#[must_use]
pub fn canonical_text(export: &ParsedExport, check_interrupts: &dyn Fn()) -> String {
    let end = ExportEnd {
        policy_id: &export.policy_id,
        policy_params_hash: &export.params_hash,
        schema_version: &export.schema_version,
        slice_id: &export.slice_id,
        graph_snapshot_hash: export.snapshot_hash(),
        admissibility_token: export.admissibility_token.as_deref(),
        attestation: export.attestation.as_ref(),
    };
    let selection = (&export.turn_refs()[..], &export.edges[..]);
    export_json(export.anchor, selection, &end, check_interrupts)
}

/// The body of a slice (retrieval integration §4.3), with its edges.
#[derive(Serialize)]
struct SummaryJson<'a> {
    slice_id: &'a str,
    anchor_turn_id: TurnId,
    turn_ids: Vec<TurnId>,
    edge_count: usize,
    edges: Checked<'a, Edge>,
    policy_id: &'static str,
    policy_params_hash: &'a str,
    schema_version: &'static str,
    graph_snapshot_hash: &'a str,
    admissibility_token: Option<&'a str>,
}

/// The selection fingerprint (§6.3): the hash of the canonical JSON of an array of anchor, turns, edges, policy and
/// schema.
pub(crate) fn slice_id(
    anchor: TurnId,
    (turns, edges): (&[&Turn], &[Edge]),
    policy: PolicyRef<'_>,
    check_interrupts: &dyn Fn(),
) -> String {
    // Nearly all of it is ids, which need no escapes: a serializer would check each of their bytes.
    let expected = 40 * turns.len() + 128 * edges.len() + 128;
    let mut json = HashedText {
        text: String::with_capacity(expected.min(CHECKED_BYTES + 256)),
        hasher: Xxh64::new(0),
        check_interrupts,
    };
    json.push("[");
    json.push_id(anchor);
    json.push(",[");
    for (index, turn) in turns.iter().enumerate() {
        json.push(if index == 0 { "" } else { "," });
        json.push_id(turn.id);
        json.advance();
    }
    json.push("],[");
    for (index, edge) in edges.iter().enumerate() {
        json.push(if index == 0 { "{\"parent\":" } else { ",{\"parent\":" });
        json.push_id(edge.parent);
        json.push(",\"child\":");
        json.push_id(edge.child);
        json.push(",\"edge_type\":\"");
        json.push(edge.edge_type.fingerprint_name());
        json.push("\"}");
        json.advance();
    }
    json.push("],");
    // The rest of the array, without its opening bracket.
    json.push(&json_text(&(policy.policy_id, policy.params_hash, SCHEMA_VERSION))[1..]);
    json.hasher.update(json.text.as_bytes());
    format!("{:016x}", json.hasher.digest())
}

/// A text that is hashed as it grows: only its end is held.
struct HashedText<'a> {
    text: String,
    hasher: Xxh64,
    check_interrupts: &'a dyn Fn(),
}

impl HashedText<'_> {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn push_id(&mut self, id: TurnId) {
        self.push("\"");
        self.push(id.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]));
        self.push("\"");
    }

    /// Hashes the text that is held, where there is enough of it.
    fn advance(&mut self) {
        if self.text.len() >= CHECKED_BYTES {
            self.hasher.update(self.text.as_bytes());
            self.text.clear();
            (self.check_interrupts)();
        }
    }
}

/// The content fingerprint: of the content hashes where every turn has one, else of counts and
/// the latest time.
pub(crate) fn graph_snapshot_hash(
    turns: &[&Turn],
    edge_count: usize,
    check_interrupts: &dyn Fn(),
) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let is_hashed = |turn: &&Turn| {
        interrupts.item();
        turn.content_hash.is_some()
    };
    if !turns.iter().all(is_hashed) {
        let latest = turns.iter().map(|turn| turn.created_at).max().unwrap_or(0);
        return json_hash(&(latest, turns.len(), edge_count, SCHEMA_VERSION));
    }
    let mut hasher = Xxh64::new(0);
    hasher.update(&(edge_count as u64).to_le_bytes());
    hasher.update(SCHEMA_VERSION.as_bytes());
    for turn in turns {
        interrupts.item();
        hasher.update(turn.id.as_bytes());
        hasher.update(turn.content_hash.as_deref().unwrap_or_default().as_bytes());
    }
    format!("{:016x}", hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::edge::EdgeType;
    use crate::graph::turn::StoredTurn;

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
        let many_turns: Vec<Turn> = turns.iter().cycle().take(6000).cloned().collect();
        let many_edges = edges.repeat(2000);
        for (turns, edges) in [
            (&turns[..], &edges[..]),
            (&turns[..1], &edges[..1]),
            (&[], &[]),
            (&many_turns, &many_edges),
        ] {
            for params_hash in ["0123456789abcdef", "\"],\\"] {
                let refs: Vec<&Turn> = turns.iter().collect();
                let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
                let named = edges.iter().map(|edge| FingerprintEdge {
                    parent: edge.parent,
                    child: edge.child,
                    edge_type: edge.edge_type.fingerprint_name(),
                });
                let named: Vec<FingerprintEdge> = named.collect();
                let policy = PolicyRef { policy_id: "p", params_hash };
                let all = (id(3), ids, named, "p", params_hash, SCHEMA_VERSION);
                assert_eq!(slice_id(id(3), (&refs, edges), policy, &|| {}), json_hash(&all));
            }
        }
    }
}
