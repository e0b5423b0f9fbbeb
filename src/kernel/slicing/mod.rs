//! From an anchor and a policy to a slice: the expansion, the store it asks, and what it holds.

mod fetched;
mod neighbourhood;
pub mod observer;
pub mod score;
pub mod slice;
pub mod slicer;
pub mod store;
mod window;
