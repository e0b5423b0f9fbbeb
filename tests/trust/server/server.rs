//! Trust inside a server: what an attacker with SQL access can try.

#[path = "../../server/common/mod.rs"]
mod common;

mod graph;

mod cursors;
mod exports;
mod other_sessions;
mod partitions;
mod private_schema;
mod prompts;
mod rebinding;
mod replay;
mod row_security;
mod settings;
mod uncommitted;
mod workers;
