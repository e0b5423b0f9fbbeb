//! The server's catalog: relations, their rights and storage, names, and functions.

pub mod citus;
pub mod expression_check;
pub mod functions;
pub mod index;
pub mod names;
pub mod privileges;
pub mod refusal;
pub mod relation;
pub mod role_writers;
pub mod settings;
pub mod unfit_index;
pub mod writers;
