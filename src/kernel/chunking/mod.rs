//! Deterministic chunks of terminal-recorder events (`ft.recorder.chunking.v1`).
//!
//! [`event::RecorderEvent`]s go into a [`chunker::Chunker`] in log order and [`chunk::Chunk`]s come out as soon as no
//! later event can change them; no more than three chunks and one event are held.

pub mod chunk;
pub mod chunker;
pub mod event;
mod glue;
pub mod policy;
pub mod resume;
pub mod span;

/// The identifier of the contract: part of every chunk and of its id.
pub const POLICY_VERSION: &str = "ft.recorder.chunking.v1";
