//! From an anchor and a policy to a slice: the expansion, the store it asks, and what it holds.

pub mod admission;
pub(crate) mod expansion;
mod fetched;
mod frontier;
mod neighbourhood;
pub mod observer;
pub mod score;
pub mod slice;
pub mod slicer;
pub mod store;
mod window;
