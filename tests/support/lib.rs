//! What the tests share: finding data, reading it, reaching a server.

pub mod data;
pub mod key_ring;
pub mod machine;
pub mod memory_store;
pub mod messages;
pub mod providers;
pub mod recorder;
pub mod shared;
pub mod vectors;
