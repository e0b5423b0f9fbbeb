//! Slices as evidence: how varied one is, whether it is enough, and many side by side.

pub mod atlas;
pub mod diversity;
pub mod slice_sets;
pub mod sufficiency;
