//! Checks of what the kernel has signed: exports and their proofs.

pub mod proof;
pub mod verify;
