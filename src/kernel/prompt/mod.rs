//! A slice as a prompt.

pub mod messages;
