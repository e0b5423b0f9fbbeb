//! Worked chunking cases, and the kernel's chunks in the shape the cases have.

use std::path::Path;

use kernel::chunking::POLICY_VERSION;
use kernel::chunking::chunk::Chunk;
use kernel::chunking::chunker::Chunker;
use kernel::chunking::event::{LogOffset, RecorderEvent};
use kernel::chunking::policy::ChunkingPolicy;
use serde::{Deserialize, Serialize};

use crate::data::read_json_lines;

/// A case: events and policy, and the chunks they must give.
#[derive(Deserialize)]
pub struct ChunkCase {
    /// Its name.
    pub name: String,
    /// The policy as written.
    pub policy: serde_json::Value,
    /// The events, in the order they arrive.
    pub events: Vec<serde_json::Value>,
    /// The chunks.
    pub chunks: Vec<ExpectedChunk>,
}

/// A chunk as the cases write it.
#[allow(missing_docs)] // the contract's names
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ExpectedChunk {
    pub chunk_id: String,
    pub policy_version: String,
    pub pane_id: i64,
    pub session_id: Option<String>,
    pub direction: String,
    pub start_offset: ExpectedOffset,
    pub end_offset: ExpectedOffset,
    pub event_ids: Vec<String>,
    pub event_count: usize,
    pub occurred_at_start_ms: i64,
    pub occurred_at_end_ms: i64,
    pub text_chars: usize,
    pub content_hash: String,
    pub text: String,
    pub overlap: Option<ExpectedOverlap>,
    pub start_char: usize,
    pub end_char: usize,
}

/// A place in the log as the cases write it.
#[allow(missing_docs)] // the contract's names
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct ExpectedOffset {
    pub segment_id: i64,
    pub ordinal: i64,
    pub byte_offset: i64,
}

/// An overlap as the cases write it.
#[allow(missing_docs)] // the contract's names
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ExpectedOverlap {
    pub from_chunk_id: String,
    pub source_end_offset: ExpectedOffset,
    pub chars: usize,
    pub text: String,
}

impl From<LogOffset> for ExpectedOffset {
    fn from(offset: LogOffset) -> Self {
        let LogOffset { segment_id, ordinal, byte_offset } = offset;
        ExpectedOffset { segment_id, ordinal, byte_offset }
    }
}

impl From<Chunk> for ExpectedChunk {
    fn from(chunk: Chunk) -> Self {
        ExpectedChunk {
            chunk_id: chunk.chunk_id,
            policy_version: POLICY_VERSION.to_owned(),
            pane_id: chunk.pane_id,
            session_id: chunk.session_id,
            direction: chunk.direction.name().to_owned(),
            start_offset: chunk.start.into(),
            end_offset: chunk.end.into(),
            event_count: chunk.event_ids.len(),
            event_ids: chunk.event_ids,
            occurred_at_start_ms: chunk.occurred_at_start_ms,
            occurred_at_end_ms: chunk.occurred_at_end_ms,
            text_chars: chunk.text_chars,
            content_hash: chunk.content_hash,
            text: chunk.text,
            overlap: chunk.overlap.map(|overlap| ExpectedOverlap {
                from_chunk_id: overlap.from_chunk_id,
                source_end_offset: overlap.source_end_offset.into(),
                chars: overlap.chars,
                text: overlap.text,
            }),
            start_char: chunk.start_char,
            end_char: chunk.end_char,
        }
    }
}

/// The cases of tests/golden/data/chunks.jsonl.gz.
#[must_use]
pub fn chunk_cases() -> Vec<ChunkCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data");
    read_json_lines(&folder.join("chunks.jsonl.gz"))
}

/// The chunks of events that are in log order.
#[must_use]
pub fn chunks_of(policy: &ChunkingPolicy, events: &[RecorderEvent<'_>]) -> Vec<Chunk> {
    let mut chunker = Chunker::new(policy.clone(), || {});
    let mut chunks = Vec::new();
    for event in events {
        chunker.push(event);
        chunks.extend(std::iter::from_fn(|| chunker.next_chunk().unwrap()));
    }
    chunker.finish();
    chunks.extend(std::iter::from_fn(|| chunker.next_chunk().unwrap()));
    chunks
}
