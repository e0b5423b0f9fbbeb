//! The SQL surface: each function unwraps its arguments, calls, wraps.

mod atlas;
mod batch;
mod compare;
mod content;
mod evidence;
mod explain;
mod graph;
mod keys;
mod policy;
mod recorder;
mod slice;
mod verify;
mod version;
