//! Descriptions of users' tables for SQL code: which table, which columns.

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::access::{advisory_lock, trace};
use crate::pg::catalog::relation::row_security_applies_to;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::fixed_settings::Level;
use crate::pg::guc;
use crate::pg::private::binding::{Binding, mapping, recorder_writers, traces_writers};
use crate::pg::private::members::{call_for_caller, call_member};
use crate::pg::query::check_unseen;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::types::JsonbText;
use crate::pg::subtransaction::guarded;
use crate::pg::tables::graph::{Advice, Graph, GraphTables, MappingReading, edges_by_child};
use crate::pg::tables::recorder::RecorderTable;

/// The name of the binding that the session has chosen.
pub fn chosen_graph() -> String {
    guc::graph()
}

/// Takes the lock by which those who append to a table order themselves, until the transaction ends.
///
/// # Errors
/// As [`advisory_lock::take`], and [`Graph::check_appended`] of the chosen graph, where there is one: who appends to it
/// has found it before.
pub fn lock_for_append(table: pg_sys::Oid, key: i32) -> Result<(), SqlError> {
    if let Ok(graph) = Graph::named(&chosen_graph()) {
        graph.check_appended(table)?;
    }
    advisory_lock::take(table, key)
}

/// Binds tables as a graph, and says what could be better: with the arguments of a call of `bind_tables`. What reads
/// the tables runs after the function with definer's rights, with those of the caller: code of the tables' owner may
/// run.
///
/// Raises as [`call_for_caller`].
pub fn bind(call: &FunctionCall) -> pgrx::Internal {
    let bound = call_for_caller(call, c"bind_tables_for");
    if let Some(name) = call.text(3) {
        advise(&name);
    }
    bound
}

/// Binds a table of recorder events, with the arguments of a call of `bind_recorder_table`.
///
/// Raises as [`call_for_caller`], and 40001 where the snapshot is older than the binding.
pub fn bind_recorder_table(call: &FunctionCall) -> pgrx::Internal {
    check_unseen(recorder_writers()).or_raise();
    call_for_caller(call, c"bind_recorder_table_for")
}

/// Binds a table of traces, with the arguments of a call of `bind_traces`.
///
/// Raises as [`bind_recorder_table`].
pub fn bind_traces(call: &FunctionCall) -> pgrx::Internal {
    check_unseen(traces_writers()).or_raise();
    call_for_caller(call, c"bind_traces_for")
}

/// Binds a store of documents for a graph, with the arguments of a call of `bind_store`.
///
/// Raises as [`call_for_caller`].
pub fn bind_store(call: &FunctionCall) -> pgrx::Internal {
    call_for_caller(call, c"bind_store_for")
}

/// Creates a store of documents, with the arguments of a call of `create_slice_store`.
///
/// Raises as [`call_member`].
pub fn create_slice_store(call: &FunctionCall) -> pgrx::Internal {
    call_member(call, c"make_slice_store")
}

/// Creates the tables of a graph, with the arguments of a call of `create_tables`.
///
/// Raises as [`call_member`].
pub fn create_tables(call: &FunctionCall) -> pgrx::Internal {
    call_member(call, c"create_tables_internal")
}

/// Creates a table of recorder events, with the arguments of a call of `create_recorder_table`.
///
/// Raises as [`call_member`].
pub fn create_recorder_table(call: &FunctionCall) -> pgrx::Internal {
    call_member(call, c"make_recorder_table")
}

/// Creates a table of traces and binds it, with the arguments of a call of `create_trace_table`.
///
/// Raises as [`call_member`].
pub fn create_trace_table(call: &FunctionCall) -> pgrx::Internal {
    call_member(call, c"create_trace_table_internal")
}

/// Takes the name from a graph, with the arguments of a call of `unbind_tables`.
///
/// Raises as [`call_member`].
pub fn unbind(call: &FunctionCall) -> pgrx::Internal {
    call_member(call, c"unbind_tables_for")
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
    let edges_by_child = edges_by_child(binding, columns)?;
    let tables = GraphTables { binding, turns, edges, edges_by_child, columns, reading, binder };
    let graph = Graph::resolve(String::new(), &tables)?;
    graph.check_binder()?;
    graph.check_embedding()?;
    graph.check_words()?;
    Ok(graph.description())
}

/// Says what the mapping of the binding of this name, which was just made, leaves out. It lists the names of roles that
/// its tables have, as far as the current role may read them; none where row security hides rows. What only advises
/// raises nothing: the role may lack the right to read, an expression may raise on a row.
pub fn advise(binding: &str) {
    let told = guarded(|| {
        let level = Level::begin();
        let advice = advice(binding);
        level.end();
        advice
    });
    if let Some(Ok(Some(advice))) = told {
        SqlError::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, advice.message)
            .hint(advice.hint)
            .report(PgLogLevel::NOTICE);
    }
}

fn advice(binding: &str) -> Result<Option<Advice>, SqlError> {
    let Some(bound) = Binding::named(binding) else { return Ok(None) };
    let graph = Graph::named(binding)?;
    let reads_all = !row_security_applies_to(bound.turns);
    let names = reads_all.then(|| guarded(|| graph.role_names())).flatten().unwrap_or_default();
    Ok(graph.advice(
        &names,
        &given_tables(binding, Some(&bound), &graph, &mapping(bound.columns.as_ref())?),
    ))
}

/// How to say what the names of roles mean that the graph bound under this name has and that are not known. `None`
/// where all are.
///
/// # Errors
/// As [`Graph::named`].
pub fn roles_advice(binding: &str) -> Result<Option<String>, SqlError> {
    let graph = Graph::named(binding)?;
    let bound = Binding::named(binding);
    let columns = mapping(bound.as_ref().and_then(|bound| bound.columns.as_ref()))?;
    Ok(graph.roles_advice(&given_tables(binding, bound.as_ref(), &graph, &columns)))
}

/// The tables of a graph with the mapping as it was given, for commands that bind them again.
fn given_tables<'a>(
    binding: &'a str,
    bound: Option<&Binding>,
    graph: &Graph,
    columns: &'a Value,
) -> GraphTables<'a> {
    let mut edges = graph.tables().skip(1);
    let (edges, edges_by_child) = (edges.next(), edges.next());
    let (turns, binder) = (graph.turns_table(), bound.map(|bound| bound.binder));
    let reading = MappingReading::Default;
    GraphTables { binding, turns, edges, edges_by_child, columns, reading, binder }
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
