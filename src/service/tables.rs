//! Descriptions of users' tables for SQL code: which table, which columns.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use pgrx::pg_sys;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::pg::access::trace;
use crate::pg::catalog::relation::row_security_applies_to;
use crate::pg::error::SqlError;
use crate::pg::fixed_settings;
use crate::pg::guc;
use crate::pg::private::binding::{self, mapping};
use crate::pg::query::query;
use crate::pg::session::with_rights_of;
use crate::pg::sql::types::JsonbText;
use crate::pg::tables::graph::{Advice, Graph, GraphTables, MappingReading};
use crate::pg::tables::recorder::RecorderTable;

/// The name of the binding that the session has chosen.
pub fn chosen_graph() -> String {
    guc::graph()
}

/// The name in attestations of a graph that was bound in this database, or in one that it is a copy of.
pub fn attested_graph(graph: Uuid, database: pg_sys::Oid) -> Uuid {
    binding::attested_graph(graph, database)
}

/// The graph that is bound under this name.
///
/// # Errors
/// As [`Graph::named`].
pub fn graph_named(binding: &str) -> Result<Value, SqlError> {
    Ok(Graph::named(binding)?.description())
}

/// Tables that are to be the graph of this name, as `binder` binds them, checked. Expressions may name functions of the
/// extension, which is in `schema`.
///
/// # Errors
/// As [`Graph::resolve`]; also where an embedding column that is named cannot be searched.
pub fn graph_of(
    turns: pg_sys::Oid,
    edges: Option<pg_sys::Oid>,
    columns: Option<&JsonbText>,
    schema: &str,
    binding: &str,
    binder: pg_sys::Oid,
) -> Result<Value, SqlError> {
    let (columns, reading) = (&mapping(columns)?, MappingReading::Given(schema));
    let binder = Some(binder);
    let tables = GraphTables { binding, turns, edges, columns, reading, binder };
    let graph = Graph::resolve(String::new(), &tables)?;
    graph.check_binder()?;
    graph.check_embedding()?;
    let mut description = graph.description();
    description["advice"] = graph.advice(&BTreeSet::new(), &tables).map(advice_json).into();
    Ok(description)
}

/// What the mapping leaves out without saying so, with the names of roles that these tables have, as far as the binder may
/// read them: without them where row security hides rows from it.
///
/// # Errors
/// As [`Graph::resolve`]; 42501 where the role may not read them, and what an expression raises on a row.
pub fn advice_on_roles(
    turns: pg_sys::Oid,
    edges: Option<pg_sys::Oid>,
    columns: Option<&JsonbText>,
    schema: &str,
    binding: &str,
    binder: pg_sys::Oid,
) -> Result<Option<Value>, SqlError> {
    let (columns, reading) = (&mapping(columns)?, MappingReading::Given(schema));
    let tables = GraphTables { binding, turns, edges, columns, reading, binder: Some(binder) };
    let graph = Graph::resolve(String::new(), &tables)?;
    graph.check_binder()?;
    let Some(statement) = graph.role_names() else { return Ok(None) };
    fixed_settings::fix(&fixed_settings::COMPUTING);
    let mut names = BTreeSet::new();
    with_rights_of(binder, || {
        if row_security_applies_to(turns) {
            return;
        }
        query(&statement, &[], |row| {
            names.extend(row.text(0, |name| name.map(str::to_owned)));
            ControlFlow::Continue(())
        });
    });
    Ok(graph.advice(&names, &tables).map(advice_json))
}

fn advice_json(advice: Advice) -> Value {
    json!({ "message": advice.message, "hint": advice.hint })
}

/// A table that is to be the event table, as `binder` binds it, checked.
///
/// # Errors
/// As [`RecorderTable::resolve`].
pub fn events_of(
    events: pg_sys::Oid,
    columns: Option<&JsonbText>,
    binder: pg_sys::Oid,
) -> Result<Value, SqlError> {
    Ok(RecorderTable::resolve(events, &mapping(columns)?, Some(binder))?.description())
}

/// Checks a table that is to be the table of traces, as `binder` binds it.
///
/// # Errors
/// As [`trace::lock`].
pub fn check_traces(traces: pg_sys::Oid, binder: pg_sys::Oid) -> Result<(), SqlError> {
    trace::lock(traces, binder).map(|_| ())
}
