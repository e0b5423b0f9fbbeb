//! The SQL surface: each function unwraps its arguments, calls, wraps.

mod batch;
mod content;
mod graph;
mod keys;
mod policy;
mod service;
mod slice;
mod verify;
mod version;
