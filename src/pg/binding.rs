//! The row of `graph_kernel.binding`, read as the server reads its catalogs: whatever the caller's
//! rights, at the latest committed state, on a standby too.

use pgrx::pg_sys;
use pgrx::{FromDatum, JsonB, heap_getattr_raw};
use serde_json::Value;
use std::num::NonZeroUsize;
use uuid::Uuid;

/// The tables an admin has pinned.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The name of the graph in attestations.
    pub graph: Uuid,
    /// The turns table.
    pub turns: pg_sys::Oid,
    /// The edges table.
    pub edges: pg_sys::Oid,
    /// Column names that differ from the recognised ones, as given to `bind_tables`.
    pub columns: Value,
}

/// The columns of graph_kernel.binding, by number.
mod column {
    pub const GRAPH: usize = 2;
    pub const TURNS: usize = 3;
    pub const EDGES: usize = 4;
    pub const COLUMNS: usize = 5;
}

impl Binding {
    /// The binding, or `None` while the tables are the default ones.
    pub fn current() -> Option<Self> {
        // SAFETY: the table is the extension's own with the columns of sql/bootstrap.sql; values
        // are copied out before the scan ends. A NULL snapshot makes this a catalog scan.
        unsafe {
            let schema = pg_sys::get_namespace_oid(c"graph_kernel".as_ptr(), false);
            let oid = pg_sys::get_relname_relid(c"binding".as_ptr(), schema);
            let table = pg_sys::table_open(oid, pg_sys::AccessShareLock as i32);
            let scan = pg_sys::systable_beginscan(
                table,
                pg_sys::InvalidOid,
                false,
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
            );
            let tuple = pg_sys::systable_getnext(scan);
            let binding = (!tuple.is_null()).then(|| Self::from_tuple(tuple, (*table).rd_att));
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(table, pg_sys::AccessShareLock as i32);
            binding
        }
    }

    unsafe fn from_tuple(tuple: pg_sys::HeapTuple, descriptor: pg_sys::TupleDesc) -> Self {
        // SAFETY: the caller's tuple has this descriptor.
        let datum = |number: usize| unsafe {
            let number = NonZeroUsize::new(number).expect("columns count from 1");
            heap_getattr_raw(tuple, number, descriptor)
        };
        // SAFETY: types as in sql/bootstrap.sql; all but `columns` are NOT NULL.
        unsafe {
            let oid = |number| {
                datum(number).map_or(pg_sys::InvalidOid, |d| pg_sys::Oid::from(d.value() as u32))
            };
            Binding {
                graph: datum(column::GRAPH)
                    .and_then(|d| pgrx::Uuid::from_datum(d, false))
                    .map_or(Uuid::nil(), |id| Uuid::from_bytes(*id.as_bytes())),
                turns: oid(column::TURNS),
                edges: oid(column::EDGES),
                columns: datum(column::COLUMNS)
                    .and_then(|d| JsonB::from_datum(d, false))
                    .map_or(Value::Null, |json| json.0),
            }
        }
    }
}
