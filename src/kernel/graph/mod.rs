//! What a graph is made of: turns, edges, contents, and the fingerprint of a whole one.

pub mod content;
pub mod edge;
pub mod snapshot;
pub mod turn;
pub mod turn_id;
