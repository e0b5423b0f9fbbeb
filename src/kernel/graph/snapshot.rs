//! The snapshot of a whole graph: which turns and edges there are, in one fingerprint.

use serde::Serialize;

use crate::graph::SCHEMA_VERSION;
use crate::graph::turn::TurnId;
use crate::json::canonical::{ArrayHasher, json_hash};

/// Which turns and edges a graph has. It does not cover the contents of turns or the types of edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphSnapshot {
    /// The fingerprint of all that follows.
    pub snapshot_id: String,
    /// Rows of the turns table.
    pub turn_count: u64,
    /// Rows of the edges table.
    pub edge_count: u64,
    /// The latest `created_at` in Unix seconds; 0 without turns.
    pub max_timestamp: i64,
    /// The version of this shape.
    pub schema_version: &'static str,
    /// The fingerprint of the turn ids, ascending, once each.
    pub turn_id_hash: String,
    /// The fingerprint of the pairs (parent, child), ascending, one for each edge.
    pub edge_pair_hash: String,
}

/// Makes a snapshot row by row, without holding the rows.
#[derive(Default)]
pub struct SnapshotBuilder {
    turn_ids: ArrayHasher,
    last_turn: Option<TurnId>,
    turn_count: u64,
    latest: Option<i64>,
    edge_pairs: ArrayHasher,
}

impl SnapshotBuilder {
    /// Adds a turn; turns come by ascending id.
    pub fn turn(&mut self, id: TurnId, created_at: i64) {
        if self.last_turn != Some(id) {
            self.turn_ids.push(&id);
        }
        self.last_turn = Some(id);
        self.turn_count += 1;
        self.latest = self.latest.max(Some(created_at));
    }

    /// Adds an edge; edges come by ascending (parent, child).
    pub fn edge(&mut self, parent: TurnId, child: TurnId) {
        self.edge_pairs.push(&(parent, child));
    }

    /// The snapshot of all that was added.
    #[must_use]
    pub fn finish(self) -> GraphSnapshot {
        #[derive(Serialize)]
        struct Fingerprinted<'a> {
            turn_count: u64,
            edge_count: u64,
            max_timestamp: i64,
            schema_version: &'static str,
            turn_id_hash: &'a str,
            edge_pair_hash: &'a str,
        }
        let edge_count = self.edge_pairs.len() as u64;
        let (turn_id_hash, edge_pair_hash) = (self.turn_ids.finish(), self.edge_pairs.finish());
        let fingerprinted = Fingerprinted {
            turn_count: self.turn_count,
            edge_count,
            max_timestamp: self.latest.unwrap_or(0),
            schema_version: SCHEMA_VERSION,
            turn_id_hash: &turn_id_hash,
            edge_pair_hash: &edge_pair_hash,
        };
        GraphSnapshot {
            snapshot_id: json_hash(&fingerprinted),
            turn_count: self.turn_count,
            edge_count,
            max_timestamp: self.latest.unwrap_or(0),
            schema_version: SCHEMA_VERSION,
            turn_id_hash,
            edge_pair_hash,
        }
    }
}
