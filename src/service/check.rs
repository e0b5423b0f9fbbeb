//! What `graph_check` counts.

use std::ops::ControlFlow;

use kernel::graph::cycles::EdgeList;
use pgrx::pg_sys;

use crate::pg::access::store::all_edges;
use crate::pg::error::SqlError;
use crate::pg::interrupts::check_interrupts;
use crate::pg::query::{Argument, query};
use crate::pg::tables::graph::Graph;

/// How many rows a finding has in the graph that is bound under this name; `None` for a name that is none.
///
/// # Errors
/// As [`Graph::named`].
pub fn count(binding: &str, finding: &str) -> Result<Option<i64>, SqlError> {
    let graph = Graph::named(binding)?;
    let Some(statement) = graph.count(finding) else { return Ok(None) };
    let mut count = None;
    query(&statement, &[], |row| {
        count = row.i64(0);
        ControlFlow::Continue(())
    });
    Ok(count)
}

/// Computes what the mapping has at this place for each row of the table, or for the row at `row`, and raises what
/// that raises.
///
/// # Errors
/// As [`Graph::named`].
pub fn evaluate(
    binding: &str,
    place: &str,
    row: Option<(pg_sys::Oid, &str)>,
) -> Result<(), SqlError> {
    let graph = Graph::named(binding)?;
    let Some(statement) = graph.evaluation(place, row.is_some()) else { return Ok(()) };
    let oid = row.map(|(table, _)| table.to_u32().to_string());
    let arguments = [oid.as_deref(), row.map(|(_, tid)| tid)].map(Argument::Text);
    let arguments = if row.is_some() { &arguments[..] } else { &[] };
    query(&statement, arguments, |_| ControlFlow::Continue(()));
    Ok(())
}

/// How many turns are in cycles; `None` where the graph has too many edges to check.
///
/// # Errors
/// As [`Graph::named`].
pub fn turns_in_cycles(binding: &str) -> Result<Option<i64>, SqlError> {
    let graph = Graph::named(binding)?;
    let mut edges = EdgeList::default();
    let mut complete = true;
    all_edges(&graph, |parent, child| {
        complete = edges.push(parent, child);
        if complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let count = complete.then(|| edges.turns_in_cycles(&check_interrupts));
    Ok(count.map(|count| count as i64))
}
