//! Checks of what the kernel has signed: exports, records of prompts, and their proofs.

pub mod proof;
pub mod verify;
