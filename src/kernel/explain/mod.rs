//! For people: why turns are in a slice or not, and what differs between slices.

pub mod diff;
pub mod explanation;
pub mod why;
