//! The extension's own tables, read as the server reads its catalogs: whatever the caller's
//! rights, at the latest committed state, on a standby and in parallel workers too.

use std::ffi::{CStr, c_int};
use std::num::NonZeroUsize;

use pgrx::pg_sys;
use pgrx::{FromDatum, heap_getattr_raw};

use super::relation;

/// A row of a private table; columns count from 1.
pub struct PrivateRow {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl PrivateRow {
    /// The value of a column, copied.
    ///
    /// # Safety
    /// `T` must be the Rust type of the column.
    pub unsafe fn get<T: FromDatum>(&self, column: usize) -> Option<T> {
        let column = NonZeroUsize::new(column)?;
        // SAFETY: the scan that made this row is still open; the caller vouches for the type.
        unsafe {
            let datum = heap_getattr_raw(self.tuple, column, self.descriptor)?;
            T::from_datum(datum, false)
        }
    }
}

/// The tables whose changes are announced.
const ANNOUNCED: [&CStr; 3] = [c"binding", c"root_keys", c"revoked_keys"];

/// Whether this transaction may have written to a table whose changes are announced. It sees its rows at once, and
/// announces them at the end of the statement.
pub fn may_be_changing() -> bool {
    // SAFETY: reads the transaction's state. Without an XID nothing was written.
    let has_xid = unsafe { pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId };
    has_xid && ANNOUNCED.into_iter().any(|table| relation::is_locked_for_writing(oid(table)))
}

/// The OID of a table in the private schema.
pub fn oid(table: &CStr) -> pg_sys::Oid {
    // SAFETY: syscache look-ups; the schema is there as long as the extension is.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"graph_kernel".as_ptr(), false);
        pg_sys::get_relname_relid(table.as_ptr(), schema)
    }
}

/// What `read` makes of each row, in no order.
pub fn scan<T>(table: &CStr, read: impl Fn(&PrivateRow) -> Option<T>) -> Vec<T> {
    // SAFETY: the relation is open and the scan's tuple valid while `read` looks at it. A NULL
    // snapshot makes this a catalog scan.
    unsafe {
        let relation = pg_sys::table_open(oid(table), pg_sys::AccessShareLock as i32);
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::InvalidOid,
            false,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        let mut rows = Vec::new();
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let row = PrivateRow { tuple, descriptor: (*relation).rd_att };
            rows.extend(read(&row));
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
        rows
    }
}

/// Keeps other writers out of a table to the transaction's end.
pub fn lock_against_writers(table: &CStr) {
    // SAFETY: any OID may be locked.
    unsafe { pg_sys::LockRelationOid(oid(table), pg_sys::ExclusiveLock as i32) };
}

/// Adds a row so that logical decoding never sees it. The table must have no index.
pub fn insert_undecoded<const N: usize>(table: &CStr, values: [Option<pg_sys::Datum>; N]) {
    let mut nulls = values.map(|value| value.is_none());
    let mut values = values.map(|value| value.unwrap_or(pg_sys::Datum::null()));
    // SAFETY: the caller gives one value of the right type for each column; the relation is open
    // while the tuple is formed and inserted.
    unsafe {
        let relation = pg_sys::table_open(oid(table), pg_sys::RowExclusiveLock as i32);
        assert_eq!((*(*relation).rd_att).natts as usize, N, "one value for each column");
        let tuple =
            pg_sys::heap_form_tuple((*relation).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::heap_insert(
            relation,
            tuple,
            pg_sys::GetCurrentCommandId(true),
            pg_sys::HEAP_INSERT_NO_LOGICAL as c_int,
            std::ptr::null_mut(),
        );
        // No trigger does.
        relation::announce_change((*relation).rd_id);
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}
