//! Checks what a statement would read and call, after each planning, since it is parsed by names.
//!
//! A schema can be renamed while the tables in it are locked, and another table or a view put in its place. So
//! the tables of the analysed query are compared with those that were locked and checked. What row security adds
//! to it is not compared: it comes from the tables' owner, and runs with the caller's rights like any policy.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use super::statement::Statement;
use crate::pg::error::SqlError;
use crate::pg::tables::relation::{self, StorageError};

/// The relations and functions that a query refers to, without those that row security adds.
#[derive(Default)]
struct QueryReferences {
    /// Tables, in the order of the text.
    tables: Vec<pg_sys::Oid>,
    /// A relation that is not a table, such as a view, or a query part that no statement of sql/queries has.
    is_other: bool,
    /// A function that a plain role may have written.
    foreign: Option<pg_sys::Oid>,
}

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
    if named.is_other || named.foreign.is_some() && !inserts || !statement.names(&named.tables) {
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
    .detail("TABLE_RULES")
    .hint("Write a trigger in place of the rule.")
}

/// Tables came to the graph or left it while it was read.
pub fn partitions_changed() -> SqlError {
    changed("partitions of the bound tables are being attached or detached, or the binding changes")
}

fn changed(what: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, what)
        .detail("TABLES_CHANGED")
        .hint("Call the function again; graph_check() names the tables that are read.")
}

/// A function in a stored expression, such as an index predicate, that a plain role may have written.
///
/// # Safety
/// `expression` points to an expression tree or is NULL.
pub unsafe fn foreign_function(expression: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    let mut named = QueryReferences::default();
    // SAFETY: guaranteed by the caller.
    unsafe { walk(expression, (&raw mut named).cast()) };
    named.foreign
}

/// The server's own functions have OIDs below this one (FirstNormalObjectId).
pub const FIRST_NORMAL_OID: u32 = 16384;

/// INTERNALlanguageId and ClanguageId: only superusers make functions in them.
const TRUSTED_LANGUAGES: [u32; 2] = [12, 13];

/// Whether a plain role may have written the function.
pub fn is_foreign(function: pg_sys::Oid) -> bool {
    if function.to_u32() < FIRST_NORMAL_OID {
        return false;
    }
    let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
    // SAFETY: a syscache look-up; the tuple is released after it was read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, function.into());
        if tuple.is_null() {
            return true;
        }
        let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        let language = (*row).prolang;
        pg_sys::ReleaseSysCache(tuple);
        !TRUSTED_LANGUAGES.contains(&language.to_u32())
    }
}

/// # Safety
/// `query` points to an analysed query.
unsafe fn walk_query(query: *mut pg_sys::Query, named: &mut QueryReferences) {
    // SAFETY: a query's range table is a list of entries; an entry has the fields of its kind.
    unsafe {
        for entry in PgList::<pg_sys::RangeTblEntry>::from_pg((*query).rtable).iter_ptr() {
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => {
                    let kind = (*entry).relkind as u8;
                    named.is_other |= !matches!(
                        kind,
                        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE
                    );
                    if (*entry).relid.to_u32() >= FIRST_NORMAL_OID {
                        named.tables.push((*entry).relid);
                    }
                }
                // A view is a subquery that, from 16 on, keeps its OID; before, the view stands in its own query.
                pg_sys::RTEKind::RTE_SUBQUERY if (*entry).relid == pg_sys::InvalidOid => {
                    walk_query((*entry).subquery, named);
                }
                pg_sys::RTEKind::RTE_FUNCTION => {
                    walk((*entry).functions.cast(), std::ptr::from_mut(named).cast());
                }
                pg_sys::RTEKind::RTE_JOIN | pg_sys::RTEKind::RTE_RESULT => {}
                #[cfg(feature = "pg18")]
                pg_sys::RTEKind::RTE_GROUP => {
                    walk((*entry).groupexprs.cast(), std::ptr::from_mut(named).cast());
                }
                _ => named.is_other = true,
            }
        }
        // The parts that statements of sql/queries have. Row security adds checks to a write.
        let query = &*query;
        let parts: [*mut pg_sys::Node; 7] = [
            query.targetList.cast(),
            query.jointree.cast(),
            query.setOperations,
            query.havingQual,
            query.limitOffset,
            query.limitCount,
            query.returningList.cast(),
        ];
        let context = std::ptr::from_mut(named).cast();
        parts.into_iter().for_each(|part| {
            walk(part, context);
        });
    }
}

/// The server's walkers call this for each node; true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: `context` is the QueryReferences that every walk here is begun with; a node of this tag is a Query.
    unsafe {
        if (*node).type_ == pg_sys::NodeTag::T_Query {
            walk_query(node.cast(), &mut *context.cast());
            return false;
        }
        if pg_sys::check_functions_in_node(node, Some(note_function), context) {
            return true;
        }
        expression_tree_walker(node, walk, context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    let foreign = is_foreign(function);
    if foreign {
        // SAFETY: as in `walk`.
        unsafe { (*context.cast::<QueryReferences>()).foreign = Some(function) };
    }
    foreign
}

/// A function that a walk calls for each node; true ends the walk.
pub type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// Calls `walker` for each node right below this one.
///
/// # Safety
/// `node` is part of an analysed query, `context` what the walker takes.
pub unsafe fn expression_tree_walker(
    node: *mut pg_sys::Node,
    walker: Walker,
    context: *mut c_void,
) -> bool {
    // SAFETY: the server's own function, with this signature in 15 to 18.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| server_expression_tree_walker(node, walker, context))
    }
}

unsafe extern "C-unwind" {
    /// nodes/nodeFuncs.h; the bindings do not have it for every major.
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn server_expression_tree_walker(
        node: *mut pg_sys::Node,
        walker: Walker,
        context: *mut c_void,
    ) -> bool;
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
