//! The extension's own tables, and what a backend caches until a change of them is announced.

pub mod binding;
pub mod keys;
pub mod members;
pub mod private_table;
pub mod session_cache;
pub mod version;
