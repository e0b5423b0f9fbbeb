//! Read-only statements on the caller's snapshot, run by the server's executor.
//!
//! The calls of SPI and pgrx are not used. `Spi::select` is read-only only until the transaction has an XID: then a
//! statement takes a snapshot of its own, and a slice could mix two states. `get_one` and `run` assign an XID, which
//! fails on a standby. A cursor of SPI is a portal, which SQL can close and replace by name. Here SPI only parses and
//! keeps plans. Before a plan is used it is checked ([`check`]). Before a row is read the types of its columns are
//! compared with what is read of them ([`row`]).

mod check;
mod execution;
mod lexemes;
mod plan;
mod planner;
mod row;
mod scans;
mod statement;

pub use check::{check_unseen, is_detaching, partitions_changed, tables_are_newer};
pub use execution::{
    BatchStatement, CallingQuery, Cursor, query, watch_savepoints, with_latest, with_own_writes,
};
pub use lexemes::Lexemes;
pub use planner::watch_planner;
pub use row::{ColumnType, Row};
pub use statement::{Argument, NamedTable, POSTGRES_EPOCH, Planning, Statement, Template};
