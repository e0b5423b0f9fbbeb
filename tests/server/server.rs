//! Tests that share the running server: each has databases and roles of its own, or a server of its own.

#[path = "../keys/cluster.rs"]
#[allow(dead_code)]
mod cluster;
mod common;
mod page;

mod atlas;
mod cancel;
mod content;
mod docs;
mod golden;
mod http;
mod import;
mod invalid_bytes;
mod little_memory;
mod mcp;
mod memory;
mod policy_v2;
mod postgrest;
mod proofs;
mod providers;
mod recorder;
mod serve;
mod snapshot;
mod statements;
mod statistics;
mod sweep;
