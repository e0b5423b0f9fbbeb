//! What a graph is made of: turns, edges, contents, the order of a conversation, and the fingerprint of a whole one.

pub mod content;
pub mod conversation;
pub mod cycles;
pub mod edge;
pub mod facts;
pub mod snapshot;
pub mod turn;
pub mod turn_id;

/// The version of the shape of exported turns and edges (SlicePolicy v1 §10.1); part of every fingerprint.
pub const SCHEMA_VERSION: &str = "1.0.0";
