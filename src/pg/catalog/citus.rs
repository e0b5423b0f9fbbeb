//! Citus, which keeps tables on several servers: the tables that it reads, and the scans by which it does.

use std::ffi::{CStr, c_void};
use std::num::NonZeroUsize;
use std::ptr::null_mut;

use pgrx::{FromDatum, PgList, heap_getattr_raw, pg_sys};

use super::functions::is_c_function;

/// The extension.
const EXTENSION: &CStr = c"citus";

/// Its list of tables, and the column of their OIDs.
const TABLES: &CStr = c"pg_dist_partition";
const TABLE: &CStr = c"logicalrelid";

/// A function of the extension that is in its library, without arguments.
const FUNCTION: &CStr = c"citus_version";

/// The schema pg_catalog, in which both are.
const CATALOG: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);

/// The extension, where this database has it.
fn extension() -> Option<pg_sys::Oid> {
    // SAFETY: a look-up in the catalog.
    let extension = unsafe { pg_sys::get_extension_oid(EXTENSION.as_ptr(), true) };
    (extension != pg_sys::InvalidOid).then_some(extension)
}

/// Whether an object is a member of the extension.
fn is_member(class: pg_sys::Oid, object: pg_sys::Oid, extension: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the catalog.
    object != pg_sys::InvalidOid
        && unsafe { pg_sys::getExtensionOfObject(class, object) } == extension
}

/// Whether Citus reads one of these tables: those that it has distributed, reference tables, and local ones that it was
/// told of. It announces a change of its list as a change of the table. Without Citus this is one look-up in a cache.
pub fn reads_any(tables: &[pg_sys::Oid]) -> bool {
    // SAFETY: a syscache look-up.
    let list = unsafe { pg_sys::get_relname_relid(TABLES.as_ptr(), CATALOG) };
    list != pg_sys::InvalidOid
        && extension().is_some_and(|citus| is_member(pg_sys::RelationRelationId, list, citus))
        && is_one_listed(list, tables)
}

fn is_one_listed(list: pg_sys::Oid, tables: &[pg_sys::Oid]) -> bool {
    // SAFETY: the list is open and its tuples valid while it is scanned. The column is checked to be one of OIDs. A
    // NULL snapshot makes this a catalog scan.
    unsafe {
        let relation = pg_sys::table_open(list, pg_sys::AccessShareLock as i32);
        let types = [pg_sys::REGCLASSOID, pg_sys::OIDOID];
        let number = pg_sys::get_attnum(list, TABLE.as_ptr());
        let column = usize::try_from(number).ok().and_then(NonZeroUsize::new);
        let column = column.filter(|_| types.contains(&pg_sys::get_atttype(list, number)));
        let mut is_listed = false;
        if let Some(column) = column {
            let scan = pg_sys::systable_beginscan(
                relation,
                pg_sys::InvalidOid,
                false,
                null_mut(),
                0,
                null_mut(),
            );
            while !is_listed {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                let table = heap_getattr_raw(tuple, column, (*relation).rd_att)
                    .and_then(|table| pg_sys::Oid::from_datum(table, false));
                is_listed = table.is_some_and(|table| tables.contains(&table));
            }
            pg_sys::systable_endscan(scan);
        }
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
        is_listed
    }
}

/// Whether a custom scan is of the library of the extension of this database.
///
/// # Safety
/// `scan` points to a node of a plan.
pub unsafe fn is_own_scan(scan: *const pg_sys::CustomScan) -> bool {
    let Some(extension) = extension() else { return false };
    // SAFETY: the name is a list of two strings; a function that is not there has no OID. One in C has its address
    // looked up, and the library of it is loaded to the session's end.
    unsafe {
        let mut name = PgList::<pg_sys::Node>::new();
        for part in [c"pg_catalog", FUNCTION] {
            name.push(pg_sys::makeString(part.as_ptr().cast_mut()).cast());
        }
        let function = pg_sys::LookupFuncName(name.into_pg(), 0, null_mut(), true);
        if !is_member(pg_sys::ProcedureRelationId, function, extension) || !is_c_function(function)
        {
            return false;
        }
        let mut info = pg_sys::FmgrInfo::default();
        pg_sys::fmgr_info(function, &raw mut info);
        let own = info.fn_addr.and_then(|address| library_of(address as *const c_void));
        own.is_some() && own == library_of((*scan).methods.cast())
    }
}

/// Where the library is loaded that an address is of.
fn library_of(address: *const c_void) -> Option<usize> {
    // SAFETY: fills in the record; any address may be asked for.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        let is_found = libc::dladdr(address, &raw mut found) != 0;
        (is_found && !found.dli_fbase.is_null()).then_some(found.dli_fbase as usize)
    }
}
