//! By what a plan reads its tables: scans of the server's own, whose rows are those of the statement's snapshot, or
//! scans of an extension, which reads what it likes.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use super::statement::Statement;
use crate::pg::catalog::citus;
use crate::pg::catalog::relation;
use crate::pg::error::{SqlError, Word};
use crate::pg::text::shared_name;

/// Checks the scans of a plan that has just been made. Of those of extensions, Citus's are accepted, in statements over
/// tables that it is known to read, which are never attested: its servers run texts of its own. Then the plan must name
/// no table but the statement's. What policies read of other tables is their matter.
///
/// # Errors
/// 0A000 where another scan reads the tables.
///
/// # Safety
/// The plan is held by the caller.
pub(super) unsafe fn check_scans(
    cached: *mut pg_sys::CachedPlan,
    statement: &Statement,
) -> Result<(), SqlError> {
    // SAFETY: guaranteed by the caller; a plan is a list of planned statements.
    unsafe {
        for planned in PgList::<pg_sys::PlannedStmt>::from_pg((*cached).stmt_list).iter_ptr() {
            let mut scans = Vec::new();
            note((*planned).planTree, &mut scans);
            for plan in PgList::<pg_sys::Plan>::from_pg((*planned).subplans).iter_ptr() {
                note(plan, &mut scans);
            }
            for scan in scans {
                check_scan(scan, planned, statement)?;
            }
        }
    }
    Ok(())
}

/// # Safety
/// The scan is a node of the planned statement.
unsafe fn check_scan(
    scan: *const pg_sys::CustomScan,
    planned: *const pg_sys::PlannedStmt,
    statement: &Statement,
) -> Result<(), SqlError> {
    // SAFETY: guaranteed by the caller. The number of a scan's entry is 0 or one of the list's, which counts from 1.
    unsafe {
        let entries = PgList::<pg_sys::RangeTblEntry>::from_pg((*planned).rtable);
        let relation = |entry: *mut pg_sys::RangeTblEntry| {
            ((*entry).rtekind == pg_sys::RTEKind::RTE_RELATION).then_some((*entry).relid)
        };
        let of_scan = ((*scan).scan.scanrelid as usize).checked_sub(1);
        let scanned = of_scan.and_then(|index| entries.get_ptr(index)).and_then(relation);
        let is_own = |table| is_of(table, statement);
        if scanned.is_some_and(|table| !is_own(table)) {
            return Ok(());
        }
        let all_are_own = || entries.iter_ptr().filter_map(relation).all(is_own);
        if citus::is_own_scan(scan) {
            return match statement.is_distributed() && all_are_own() {
                true => Ok(()),
                false => Err(not_distributed()),
            };
        }
        let name = (*(*scan).methods).CustomName;
        let name = if name.is_null() { String::new() } else { shared_name(CStr::from_ptr(name)) };
        Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("a scan of an extension, {name}, reads the bound tables"),
        )
        .word(Word::GraphTables)
        .hint("Bind tables that the server itself reads: permanent plain ones, or partitioned tables of such."))
    }
}

/// Whether the statement names this table, or a partitioned one that it is below.
fn is_of(table: pg_sys::Oid, statement: &Statement) -> bool {
    let mut named = statement.tables.iter().map(|named| named.oid);
    named.any(|oid| oid == table || relation::partitions(oid).contains(&table))
}

fn not_distributed() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "Citus would read the bound tables together with others, or has distributed them only now",
    )
    .word(Word::GraphTables)
    .hint(
        "Call the function again. A row security policy of a bound table must not read one that Citus distributes, nor \
         that of a distributed one any other table.",
    )
}

/// Notes the custom scans of a plan.
///
/// # Safety
/// `plan` is NULL or a node of a plan.
unsafe fn note(plan: *const pg_sys::Plan, scans: &mut Vec<*const pg_sys::CustomScan>) {
    use pg_sys::NodeTag as Tag;
    // SAFETY: guaranteed by the caller; each cast follows the check of the node's tag.
    unsafe {
        if plan.is_null() {
            return;
        }
        pg_sys::check_stack_depth();
        note((*plan).lefttree, scans);
        note((*plan).righttree, scans);
        let list = match (*plan).type_ {
            Tag::T_Append => (*plan.cast::<pg_sys::Append>()).appendplans,
            Tag::T_MergeAppend => (*plan.cast::<pg_sys::MergeAppend>()).mergeplans,
            Tag::T_BitmapAnd => (*plan.cast::<pg_sys::BitmapAnd>()).bitmapplans,
            Tag::T_BitmapOr => (*plan.cast::<pg_sys::BitmapOr>()).bitmapplans,
            Tag::T_SubqueryScan => {
                return note((*plan.cast::<pg_sys::SubqueryScan>()).subplan, scans);
            }
            Tag::T_CustomScan => {
                scans.push(plan.cast());
                (*plan.cast::<pg_sys::CustomScan>()).custom_plans
            }
            _ => return,
        };
        for below in PgList::<pg_sys::Plan>::from_pg(list).iter_ptr() {
            note(below, scans);
        }
    }
}
