//! The rows of `graph_kernel.binding` and `graph_kernel.recorder_binding`.

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::error::SqlError;
use crate::pg::private::private_table::{BINDING, RECORDER_BINDING};
use crate::pg::sql::types::JsonbText;

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
    pub columns: Option<JsonbText>,
}

impl Binding {
    /// The binding, or `None` while the tables are the default ones.
    pub fn current() -> Option<Self> {
        let row = BINDING.scan(|row| {
            Some(Binding {
                graph: row.uuid(2)?,
                turns: row.relation(3)?,
                edges: row.relation(4)?,
                columns: row.json(5),
            })
        });
        row.into_iter().next()
    }
}

/// The event table an admin has pinned.
pub struct RecorderBinding {
    /// The table.
    pub events: pg_sys::Oid,
    /// Column names that differ from the recognised ones, as given to `bind_recorder_table`.
    pub columns: Option<JsonbText>,
}

impl RecorderBinding {
    /// The binding, or `None` while the table is the default one.
    pub fn current() -> Option<Self> {
        let row = RECORDER_BINDING
            .scan(|row| Some(RecorderBinding { events: row.relation(2)?, columns: row.json(3) }));
        row.into_iter().next()
    }
}

/// A mapping of columns as JSON; null where none was given.
///
/// # Errors
/// 22023 where it holds a number out of range or is nested too deeply.
pub fn mapping(columns: Option<&JsonbText>) -> Result<Value, SqlError> {
    let Some(JsonbText(text)) = columns else { return Ok(Value::Null) };
    serde_json::from_str(text).map_err(|error| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("column mapping cannot be read: {error}"),
        )
        .detail("INVALID_BINDING")
        .hint("Give column names, such as '{\"turns\": {\"id\": \"my_column\"}}'.")
    })
}
