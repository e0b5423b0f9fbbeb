//! What `graph_check` counts.

use std::ops::ControlFlow;

use kernel::insight::cycles::EdgeList;

use crate::pg::access::store::all_edges;
use crate::pg::error::SqlError;
use crate::pg::query::query;
use crate::pg::session::check_interrupts;
use crate::pg::tables::graph::Graph;

/// How many rows a finding has; `None` for a name that is none.
///
/// # Errors
/// As [`Graph::current`].
pub fn count(finding: &str) -> Result<Option<i64>, SqlError> {
    let graph = Graph::current()?;
    let Some(statement) = graph.count(finding) else { return Ok(None) };
    let mut count = None;
    query(&statement, &[], |row| {
        count = row.i64(0);
        ControlFlow::Continue(())
    });
    Ok(count)
}

/// How many turns are in cycles; `None` where the graph has too many edges to tell.
///
/// # Errors
/// As [`Graph::current`].
pub fn turns_in_cycles() -> Result<Option<i64>, SqlError> {
    let graph = Graph::current()?;
    let mut edges = EdgeList::default();
    let mut complete = true;
    all_edges(&graph, |parent, child| {
        complete = edges.push(parent, child);
        if complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let count = if complete { edges.turns_in_cycles(&check_interrupts) } else { None };
    Ok(count.map(|count| count as i64))
}
