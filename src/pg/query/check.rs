//! Checks what a statement would read and call, after each planning, since it is parsed by names.
//!
//! A schema can be renamed while the tables in it are locked, and another table or a view put in its place. So
//! the tables of the analysed query are compared with those that were locked and checked. What row security adds
//! to it is not compared: it comes from the tables' owner, and runs with the caller's rights like any policy.

use std::ptr::null_mut;

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use super::statement::Statement;
use crate::pg::catalog::functions::{QueryReferences, walk_query};
use crate::pg::catalog::relation::{self, StorageError};
use crate::pg::catalog::writers;
use crate::pg::error::{SqlError, Word};

/// Checks an analysed query of this statement and the tables it reads.
///
/// # Errors
/// 55000 where it names other tables or functions than the statement, 42809 where a table is not stored as a
/// graph's has to be.
///
/// # Safety
/// `query` points to an analysed query.
pub(super) unsafe fn check_query(
    query: *mut pg_sys::Query,
    statement: &Statement,
) -> Result<(), SqlError> {
    let mut named = QueryReferences::default();
    // SAFETY: guaranteed by the caller.
    unsafe { walk_query(query, &mut named) };
    // SAFETY: as above.
    let command = unsafe { (*query).commandType };
    let reads = command == pg_sys::CmdType::CMD_SELECT;
    // An INSERT always runs the defaults, constraints and triggers of the table's owner.
    let inserts = command == pg_sys::CmdType::CMD_INSERT;
    if named.is_other
        || named.foreign.is_some() && !inserts
        || named.has_foreign_values && reads
        || !statement.names(&named.tables)
    {
        return Err(replaced());
    }
    for table in &statement.tables {
        if !relation::has_columns(table.oid, &table.columns) {
            return Err(changed("the columns of a bound table were changed while it was read"));
        }
        if reads {
            relation::check_storage(table.oid).map_err(StorageError::into_sql_error)?;
        }
    }
    Ok(())
}

/// The tables were replaced between being locked and being read.
pub(super) fn replaced() -> SqlError {
    changed("a name in a statement over the bound tables has gone to another object")
}

/// A rule on the table changes what the statement does.
pub(super) fn has_rules() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "a table that is written has a rule for it",
    )
    .word(Word::TableRules)
    .hint("Write a trigger in place of the rule.")
}

/// Tables came to the graph or left it while it was read.
pub fn partitions_changed() -> SqlError {
    changed("partitions of the bound tables are being attached or detached, or the binding changes")
}

/// A partition is on its way out of the bound tables.
pub fn is_detaching() -> SqlError {
    changed("a partition of the bound tables is being detached concurrently").hint(
        "Call the function again once that has ended. A DETACH that was cancelled ends when the table's owner runs \
         ALTER TABLE ... DETACH PARTITION ... FINALIZE.",
    )
}

/// The error where the snapshot is older than what the catalog says of the tables: their rows of before may be gone.
pub fn tables_are_newer() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "another transaction has changed the tables or their binding after the snapshot was taken",
    )
    .word(Word::TablesChanged)
    .hint("Repeat the statement in a new transaction.")
}

/// Checks that none of these transactions, which wrote a binding, is one of others after the snapshot was taken.
///
/// # Errors
/// 40001.
pub fn check_unseen(writers: Vec<pg_sys::TransactionId>) -> Result<(), SqlError> {
    if writers::any_unseen(writers) { Err(tables_are_newer()) } else { Ok(()) }
}

fn changed(what: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, what)
        .word(Word::TablesChanged)
        .hint("Call the function again; graph_check() names the tables that are read.")
}

/// The analysed query behind a plan's source.
///
/// # Safety
/// `source` is valid and has been planned.
pub(super) unsafe fn analysed(source: *mut pg_sys::CachedPlanSource) -> *mut pg_sys::Query {
    // SAFETY: the source is guaranteed by the caller; a SELECT is one query.
    let query = unsafe { PgList::<pg_sys::Query>::from_pg((*source).query_list).get_ptr(0) };
    query.unwrap_or(null_mut())
}
