//! The bound table of traces.

use std::ops::ControlFlow;

use kernel::graph::turn::TurnId;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::json;

use crate::pg::catalog::citus;
use crate::pg::catalog::names;
use crate::pg::catalog::privileges::{Use, check_binder};
use crate::pg::catalog::relation::{self, Table};
use crate::pg::error::{SqlError, Word};
use crate::pg::private::binding::{bound_traces, traces_writers};
use crate::pg::query::{
    Argument, ColumnType, NamedTable, Planning, Statement, Template, check_unseen, query,
};
use crate::pg::tables::store::PromotingRows;

const TRACE: Template = Template::new(
    include_str!("../../../sql/queries/trace.sql"),
    &[ColumnType::Id],
    Planning::Once,
);

const TRACES: Template = Template::new(
    include_str!("../../../sql/queries/traces.sql"),
    &[ColumnType::Text, ColumnType::Text],
    Planning::Once,
);

/// What is stored of a search.
pub struct Trace<'a> {
    /// Its query_id.
    pub id: TurnId,
    /// `slice` or `global`.
    pub retrieval_mode: &'a str,
    /// Whether what was found may be promoted.
    pub is_admissible: bool,
    /// The slice that was searched.
    pub slice_id: Option<&'a str>,
    /// The slice's token.
    pub admissibility_token: Option<&'a str>,
    /// The whole provenance, as JSON.
    pub provenance: &'a str,
}

/// The table of traces that this role binds or bound, locked AccessShare.
///
/// # Errors
/// 42P01 where it was dropped, 42809 where it is not a table of a user's, 42501 where its binder may not insert there.
pub fn lock(table: pg_sys::Oid, binder: pg_sys::Oid) -> Result<Table, SqlError> {
    let table = Table::lock(table).ok_or_else(|| missing("the bound trace table was dropped"))?;
    relation::check_is_stored(table.oid)
        .and_then(|()| relation::check_is_users(table.oid, &relation::partitions(table.oid)))
        .map_err(|error| error.into_sql_error().word(Word::TraceTable))?;
    let binding = || "SELECT traces FROM graph_kernel.trace_binding".to_owned();
    check_binder(binder, table.oid, Use::Insert, Vec::new, binding)
        .map_err(|error| error.word(Word::TraceTable))?;
    Ok(table)
}

fn missing(message: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE, message)
        .word(Word::TraceTable)
        .hint("SELECT graph_kernel.create_trace_table();")
}

/// Adds a trace to the bound table, with the caller's rights.
///
/// # Errors
/// As [`lock`]; 42P01 when there is none; 40001 where the snapshot is older than the binding.
pub fn insert(trace: &Trace<'_>) -> Result<(), SqlError> {
    let (table, binder) = bound_traces().ok_or_else(|| missing("no trace table is bound"))?;
    relation::check_rights(table);
    let table = lock(table, binder)?;
    check_unseen(traces_writers())?;
    let text = TRACE.text.replace("{traces}", &table.qualified_name());
    let (id, is_admissible) = (trace.id.to_string(), trace.is_admissible.to_string());
    let arguments = [
        Some(id.as_str()),
        Some(trace.retrieval_mode),
        Some(is_admissible.as_str()),
        trace.slice_id,
        trace.admissibility_token,
        Some(trace.provenance),
    ]
    .map(Argument::Text);
    let is_distributed = citus::reads_any(&[table.oid]);
    let table = NamedTable { oid: table.oid, columns: table.columns, is_distributed };
    let statement = Statement::new(&TRACE, text, vec![table]);
    query(&statement, &arguments, |_| ControlFlow::Continue(()));
    Ok(())
}

/// The bound table of traces; `None` where none is bound, or it was dropped.
///
/// # Errors
/// 40001 where the snapshot is older than the binding.
pub fn bound() -> Result<Option<pg_sys::Oid>, SqlError> {
    let bound = bound_traces().map(|(table, _)| table);
    check_unseen(traces_writers())?;
    Ok(bound.filter(|table| names::typed_name(*table).is_some()))
}

/// Hands the id and the provenance of each trace in the bound table to `put`, `None` for one that is too long; none
/// where none is bound. Returns what was read.
///
/// # Errors
/// As [`lock`], [`bound`] and [`PromotingRows::of`].
pub fn all(mut put: impl FnMut(&str, Option<&str>)) -> Result<Option<PromotingRows>, SqlError> {
    let Some((table, binder)) = bound_traces() else { return Ok(None) };
    relation::check_rights(table);
    let table = lock(table, binder)?.oid;
    check_unseen(traces_writers())?;
    let rows =
        PromotingRows::waited_for(table, &json!({ "id": "id", "provenance": "provenance" }))?;
    query(&rows.statement(&TRACES), &[], |row| {
        row.text(0, |id| {
            row.text(1, |provenance| put(id.unwrap_or_default(), provenance));
        });
        ControlFlow::Continue(())
    });
    Ok(Some(rows))
}
