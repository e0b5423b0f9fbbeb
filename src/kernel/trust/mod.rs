//! Keys, and what is signed with them.

pub mod attestation;
pub mod keys;
