//! The SQL surface: each function unwraps its arguments, calls, wraps.

mod atlas;
mod batch;
mod content;
mod evidence;
mod graph;
mod keys;
mod policy;
mod slice;
mod verify;
mod version;
