//! Keys, what is signed with them, and verification.

pub mod attestation;
pub mod keys;
pub mod proof;
pub mod verify;
