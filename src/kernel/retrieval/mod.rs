//! Searching a slice by embeddings: similarity, ranking, and the signed record of a search.

pub mod provenance;
pub mod ranking;
pub mod search;
pub mod similarity;
