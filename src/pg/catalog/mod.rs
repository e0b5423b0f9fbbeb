//! The server's catalog: relations, their names, rights and storage, and functions.

pub mod functions;
pub mod index;
pub mod privileges;
pub mod relation;
pub mod role_writers;
pub mod settings;
pub mod writers;
