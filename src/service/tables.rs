//! Users' tables as SQL code needs to know them: which table, which columns.

use pgrx::pg_sys;
use serde_json::Value;

use crate::pg::error::SqlError;
use crate::pg::private::binding::mapping;
use crate::pg::sql::types::JsonbText;
use crate::pg::tables::graph::Graph;
use crate::pg::tables::recorder::RecorderTable;

/// The bound graph.
///
/// # Errors
/// As [`Graph::current`].
pub fn bound_graph() -> Result<Value, SqlError> {
    Ok(Graph::current()?.description())
}

/// Two tables that are to be the graph, checked.
///
/// # Errors
/// As [`Graph::resolve`]; also where an embedding column that is named cannot be searched.
pub fn graph_of(
    turns: pg_sys::Oid,
    edges: pg_sys::Oid,
    columns: Option<&JsonbText>,
) -> Result<Value, SqlError> {
    let graph = Graph::resolve(String::new(), turns, edges, &mapping(columns)?)?;
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
