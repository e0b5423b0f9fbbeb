//! What is read and written through statements, with the caller's rights.

pub mod advisory_lock;
pub mod caller;
pub mod content;
pub mod events;
pub mod kept;
pub mod lists;
pub mod search;
pub mod store;
pub mod trace;
pub mod words;
