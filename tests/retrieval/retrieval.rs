//! Retrieval inside a server, with the sample conversation's embeddings and with pgvector.

#[path = "../server/common/mod.rs"]
mod common;

mod sample;

mod anchors;
mod api;
mod binding;
mod circumstances;
mod exact;
mod exported;
mod mediated;
mod odd_embeddings;
mod owners;
mod traces;
mod words;
