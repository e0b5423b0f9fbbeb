//! Glue to PostgreSQL: one wrapper for each facility of the server. Unsafe code stands only here.
#![allow(unsafe_code)]

pub mod binding;
pub mod bound_table;
pub mod content;
pub mod embedding;
pub mod environment;
pub mod error;
pub mod graph;
pub mod guc;
mod kept;
pub mod keys;
pub mod private_table;
pub mod query;
pub mod recorder;
pub mod relation;
pub mod retrieval;
pub mod session;
pub mod store;
pub mod support;
pub mod table;
pub mod text_type;
pub mod trace;

#[cfg(any(test, feature = "pg_test"))]
mod tests;
