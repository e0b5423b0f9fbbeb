//! Searching by embeddings and by words: similarity, ranking, and the signed record of a search.

pub mod fusion;
pub mod provenance;
pub mod ranking;
pub mod search;
pub mod similarity;
pub mod words;
