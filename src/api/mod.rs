//! The SQL functions: each unwraps its arguments, calls one function of `service`, and wraps the result.

mod anchor;
mod atlas;
mod batch;
mod compare;
mod content;
mod document;
mod evidence;
mod explain;
mod graph;
mod kept;
mod keys;
mod lists;
mod messages;
mod policy;
mod promotion;
mod prompt;
mod provenance;
mod recall;
mod recorder;
mod search;
mod slice;
mod statistics;
mod summaries;
mod turn_id;
mod verify;
mod version;
