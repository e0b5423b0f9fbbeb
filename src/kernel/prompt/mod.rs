//! A slice as a prompt, and the record of one.

pub mod kept;
pub mod messages;
pub mod provider;
pub mod record;
