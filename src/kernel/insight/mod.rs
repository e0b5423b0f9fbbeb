//! For people: why turns are in a slice or not, what differs between slices, drawings, cycles.

pub mod cycles;
pub mod diff;
pub mod draw;
pub mod explain;
pub mod picture;
pub mod prompt;
pub mod why;
