//! The SQL surface: each function unwraps its arguments, calls, wraps.

mod batch;
mod content;
mod graph;
mod policy;
mod slice;
mod version;
