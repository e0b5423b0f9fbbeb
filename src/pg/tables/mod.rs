//! Users' tables as they are now: locked, their storage checked, their columns mapped.

pub mod bound_table;
pub mod embedding;
pub mod expression;
pub mod graph;
pub mod place;
pub mod recorder;
pub mod store;
mod unanalysed;
pub mod words;
