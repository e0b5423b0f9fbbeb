//! The rows of `graph_kernel.binding`, `recorder_binding`, `trace_binding` and `store_binding`.

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::error::{SqlError, Word};
use crate::pg::private::private_table::{
    BINDING, PrivateRow, RECORDER_BINDING, RowPlace, STORE_BINDING, TRACE_BINDING, this_database,
};
use crate::pg::sql::types::JsonbText;

/// The tables that are bound under a name.
pub struct Binding {
    /// The name of the graph in attestations.
    pub graph: uuid::Uuid,
    /// The turns table.
    pub turns: pg_sys::Oid,
    /// The edges table; without one, edges are in the turns table.
    pub edges: Option<pg_sys::Oid>,
    /// The table of the same edges that is asked for those into a turn.
    pub edges_by_child: Option<pg_sys::Oid>,
    /// The mapping of columns as given to `bind_tables`.
    pub columns: Option<JsonbText>,
    /// The same as it was resolved then: a column's name, an expression or null for each key.
    pub resolved: JsonbText,
    /// The role that bound them.
    pub binder: pg_sys::Oid,
    /// Whether another database wrote the row, of which this one is a copy. Such a binding does not count.
    pub is_copied: bool,
    /// The transaction that wrote the row, where it is not frozen.
    pub writers: Vec<pg_sys::TransactionId>,
    /// Where the row is stored.
    pub place: RowPlace,
}

impl Binding {
    /// The names that stand for a binding now, in ascending order.
    pub fn names() -> Vec<String> {
        let mut names = BINDING.scan(|row| row.boolean(2)?.then(|| row.text(1))?);
        names.sort_unstable();
        names
    }

    /// The binding that has this name now.
    pub fn named(name: &str) -> Option<Self> {
        let row = BINDING.scan(|row| {
            let is_named = row.boolean(2)? && row.text(1)? == name;
            is_named.then_some(())?;
            Some(Binding {
                graph: row.uuid(0)?,
                turns: row.relation(3)?,
                edges: row.relation(4),
                edges_by_child: row.relation(11),
                columns: row.json(5),
                resolved: row.json(6)?,
                binder: row.role(9)?,
                is_copied: row.oid(10)? != this_database(),
                writers: row.writer().into_iter().collect(),
                place: row.place(),
            })
        });
        row.into_iter().next()
    }

    /// Whether the active snapshot sees that this name stands for the row that is stored there, or for none. Another
    /// session's commit shows its rows before this one hears of it.
    pub fn is_seen(name: &str, place: RowPlace) -> bool {
        let is_named =
            |row: &PrivateRow| row.boolean(2)?.then(|| row.text(1))?.filter(|text| text == name);
        place.is_seen() || place.is_of_no_row() && BINDING.scan_seen(is_named).is_empty()
    }

    /// That no table has a name.
    pub fn none() -> RowPlace {
        BINDING.no_row()
    }

    /// The transactions that took a name from a graph, or wrote such a row, or made the table of the bindings, where
    /// they are not frozen.
    pub fn writers_of_former(name: &str) -> Vec<pg_sys::TransactionId> {
        let is_named = |row: &PrivateRow| row.text(1).is_some_and(|text| text == name);
        BINDING.writers(|row| row.boolean(2) == Some(false) && is_named(row))
    }
}

/// The event table an admin has pinned.
pub struct RecorderBinding {
    /// The table.
    pub events: pg_sys::Oid,
    /// Column names that differ from the recognised ones, as given to `bind_recorder_table`.
    pub columns: Option<JsonbText>,
    /// The role that bound it.
    pub binder: pg_sys::Oid,
}

impl RecorderBinding {
    /// The binding, or `None` while the table is the default one.
    pub fn current() -> Option<Self> {
        let row = RECORDER_BINDING.scan(|row| {
            Some(RecorderBinding {
                events: row.relation(1)?,
                columns: row.json(2),
                binder: row.role(4)?,
            })
        });
        row.into_iter().next()
    }
}

/// The transactions that decided which table holds recorder events, where they are not frozen.
pub fn recorder_writers() -> Vec<pg_sys::TransactionId> {
    RECORDER_BINDING.writers(|_| true)
}

/// The same of the table of traces.
pub fn traces_writers() -> Vec<pg_sys::TransactionId> {
    TRACE_BINDING.writers(|_| true)
}

/// The same of the store of the graph of this name, and those that took another graph's from it.
pub fn store_writers(graph: &str) -> Vec<pg_sys::TransactionId> {
    STORE_BINDING.writers(|row| row.text(0).is_some_and(|name| name == graph))
}

/// The table of traces, and the role that bound it; `None` while there is none.
pub fn bound_traces() -> Option<(pg_sys::Oid, pg_sys::Oid)> {
    TRACE_BINDING.scan(|row| Some((row.relation(1)?, row.role(3)?))).into_iter().next()
}

/// The store that is bound for the graph of this name, and the role that bound it; `None` while there is none.
pub fn bound_store(graph: &str) -> Option<(pg_sys::Oid, pg_sys::Oid)> {
    let rows = STORE_BINDING.scan(|row| {
        let is_named = row.text(0)? == graph;
        is_named.then_some((row.relation(1)?, row.role(3)?))
    });
    rows.into_iter().next()
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
        .word(Word::InvalidBinding)
        .hint("Give column names, such as '{\"turns\": {\"id\": \"my_column\"}}'.")
    })
}
