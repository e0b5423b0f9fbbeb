//! The rows of `graph_kernel.binding` and `graph_kernel.recorder_binding`.

use pgrx::{JsonB, pg_sys};
use serde_json::Value;

use super::private_table;

/// The tables an admin has pinned.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The name of the graph in attestations.
    pub graph: uuid::Uuid,
    /// The turns table.
    pub turns: pg_sys::Oid,
    /// The edges table.
    pub edges: pg_sys::Oid,
    /// Column names that differ from the recognised ones, as given to `bind_tables`.
    pub columns: Value,
}

/// The table's name in the private schema.
pub const TABLE: &std::ffi::CStr = c"binding";

impl Binding {
    /// The binding, or `None` while the tables are the default ones.
    pub fn current() -> Option<Self> {
        private_table::scan(TABLE, |row| {
            // SAFETY: columns as sql/bootstrap.sql declares them: graph uuid, turns and edges
            // regclass, columns jsonb.
            unsafe {
                Some(Binding {
                    graph: uuid::Uuid::from_bytes(*row.get::<pgrx::Uuid>(2)?.as_bytes()),
                    turns: row.get(3)?,
                    edges: row.get(4)?,
                    columns: row.get::<JsonB>(5).map_or(Value::Null, |json| json.0),
                })
            }
        })
        .pop()
    }
}

/// The event table an admin has pinned.
pub struct RecorderBinding {
    /// The table.
    pub events: pg_sys::Oid,
    /// Column names that differ from the recognised ones, as given to `bind_recorder_table`.
    pub columns: Value,
}

impl RecorderBinding {
    /// The binding, or `None` while the table is the default one.
    pub fn current() -> Option<Self> {
        private_table::scan(c"recorder_binding", |row| {
            // SAFETY: columns as sql/recorder.sql declares them: events regclass, columns jsonb.
            unsafe {
                Some(RecorderBinding {
                    events: row.get(2)?,
                    columns: row.get::<JsonB>(3).map_or(Value::Null, |json| json.0),
                })
            }
        })
        .pop()
    }
}
