//! The SQL surface: each function unwraps its arguments, calls, wraps.

mod anchor;
mod batch;
mod content;
mod graph;
mod keys;
mod policy;
mod provenance;
mod retrieval;
mod service;
mod slice;
mod verify;
mod version;
