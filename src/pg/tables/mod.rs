//! Users' tables as they are now: locked, their storage checked, their columns mapped.

pub mod bound_table;
mod catalog_writers;
pub mod embedding;
pub mod expression;
pub mod graph;
pub mod privileges;
pub mod recorder;
pub mod relation;
mod unanalysed;
