//! Deterministic chunks of terminal-recorder events (`ft.recorder.chunking.v1`).
//!
//! A [`chunker::Chunker`] is given [`event::RecorderEvent`]s in log order. It returns a [`chunk::Chunk`] as soon as no
//! later event can change it, and holds at most three chunks and one event.

pub mod chunk;
pub mod chunker;
pub mod event;
mod glue;
pub mod policy;
pub mod resume;
pub mod span;

/// The identifier of the contract: part of every chunk and of its id.
pub const POLICY_VERSION: &str = "ft.recorder.chunking.v1";
