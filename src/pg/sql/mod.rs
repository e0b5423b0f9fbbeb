//! Arguments and results of SQL functions, and what the planner is told of them.

pub mod rows;
pub mod support;
pub mod types;
