//! Glue to PostgreSQL: one wrapper for each facility of the server. Unsafe code stands only here.
#![allow(unsafe_code)]

pub mod access;
pub mod catalog;
pub mod environment;
pub mod error;
pub mod fixed_settings;
pub mod guc;
pub mod interrupts;
pub mod private;
pub mod query;
pub mod session;
pub mod shortage;
pub mod sql;
pub mod statistics;
pub mod subtransaction;
pub mod tables;
pub mod text;
pub mod trigger;

#[cfg(any(test, feature = "pg_test"))]
mod tests;
