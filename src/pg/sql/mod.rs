//! Arguments and results of SQL functions, and estimates for the planner.

pub mod call;
pub mod rows;
pub mod support;
pub mod types;
