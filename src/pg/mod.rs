//! Glue to PostgreSQL: one wrapper for each facility of the server. Unsafe code stands only here.
#![allow(unsafe_code)]

pub mod access;
pub mod environment;
pub mod error;
pub mod guc;
pub mod memory;
pub mod private;
pub mod query;
// The server's own functions: the program of the unit tests has none.
#[cfg(all(target_os = "linux", not(test)))]
mod reporting;
pub mod session;
pub mod settings;
pub mod sql;
pub mod statistics;
pub mod tables;
pub mod trigger;

#[cfg(any(test, feature = "pg_test"))]
mod tests;
