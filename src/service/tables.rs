//! Descriptions of users' tables for SQL code: which table, which columns.

use pgrx::pg_sys;
use serde_json::Value;

use crate::pg::error::SqlError;
use crate::pg::guc;
use crate::pg::private::binding::mapping;
use crate::pg::sql::types::JsonbText;
use crate::pg::tables::graph::{Graph, GraphTables, MappingReading};
use crate::pg::tables::recorder::RecorderTable;

/// The name of the binding that the session has chosen.
pub fn chosen_graph() -> String {
    guc::graph()
}

/// The graph that is bound under this name.
///
/// # Errors
/// As [`Graph::named`].
pub fn graph_named(binding: &str) -> Result<Value, SqlError> {
    Ok(Graph::named(binding)?.description())
}

/// Tables that are to be the graph of this name, checked. Expressions may name functions of the extension, which is in
/// `schema`.
///
/// # Errors
/// As [`Graph::resolve`]; also where an embedding column that is named cannot be searched.
pub fn graph_of(
    turns: pg_sys::Oid,
    edges: Option<pg_sys::Oid>,
    columns: Option<&JsonbText>,
    schema: &str,
    binding: &str,
) -> Result<Value, SqlError> {
    let (columns, reading) = (&mapping(columns)?, MappingReading::Given(schema));
    let tables = GraphTables { binding, turns, edges, columns, reading };
    let graph = Graph::resolve(String::new(), &tables)?;
    graph.check_embedding()?;
    Ok(graph.description())
}

/// A table that is to be the event table, checked.
///
/// # Errors
/// As [`RecorderTable::resolve`].
pub fn events_of(events: pg_sys::Oid, columns: Option<&JsonbText>) -> Result<Value, SqlError> {
    Ok(RecorderTable::resolve(events, &mapping(columns)?)?.description())
}
