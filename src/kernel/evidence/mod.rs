//! Slices as evidence: how varied one is, whether it is sufficient, and what many have in common.

pub mod atlas;
pub mod diversity;
pub mod slice_sets;
pub mod sufficiency;
