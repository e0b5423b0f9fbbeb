//! The extension's own tables, and what a backend caches until a change of them is announced.

pub mod binding;
mod bound_relation;
mod bound_role;
pub mod keys;
pub mod members;
pub mod private_table;
mod secret;
pub mod session_cache;
mod stored_text;
pub mod version;
pub mod word_counts;
