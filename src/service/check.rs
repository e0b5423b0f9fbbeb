//! What `graph_check` counts.

use std::ops::ControlFlow;

use kernel::graph::cycles::{EdgeList, MAX_EDGES, MAX_TURNS};
use kernel::graph::turn::TurnId;
use pgrx::PgSqlErrorCode;

use crate::pg::access::store::all_edges;
use crate::pg::error::SqlError;
use crate::pg::interrupts::check_interrupts;
use crate::pg::tables::graph::Graph;

/// How many rows a finding has in the graph that is bound under this name; `None` for a name that is none.
///
/// # Errors
/// As [`Graph::named`] and [`Graph::check_settled`].
pub fn count(binding: &str, finding: &str) -> Result<Option<i64>, SqlError> {
    let graph = Graph::named(binding)?;
    let found = graph.count(finding);
    graph.check_settled().map(|()| found)
}

/// Computes what the mapping has at this place for each row of the table, and raises what that raises.
///
/// # Errors
/// As [`Graph::named`] and [`Graph::check_settled`].
pub fn evaluate(binding: &str, place: &str) -> Result<(), SqlError> {
    let graph = Graph::named(binding)?;
    graph.evaluate(place);
    graph.check_settled()
}

/// The first row of the table for which what the mapping has at this place raises an error: the name of its table, or
/// partition, and its ctid. `None` where there is none.
///
/// # Errors
/// As [`Graph::named`].
pub fn raising_row(binding: &str, place: &str) -> Result<Option<(String, String)>, SqlError> {
    Ok(Graph::named(binding)?.raising_row(place))
}

/// The turns in cycles, by id.
///
/// # Errors
/// As [`Graph::named`] and [`Graph::check_settled`], and 54000 where the graph has too many edges to check.
pub fn turns_in_cycles(binding: &str) -> Result<Vec<TurnId>, SqlError> {
    let graph = Graph::named(binding)?;
    let mut edges = EdgeList::default();
    let mut complete = true;
    all_edges(&graph, |parent, child| {
        complete = edges.push(parent, child);
        if complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    graph.check_settled()?;
    if complete {
        Ok(edges.turns_in_cycles(&check_interrupts))
    } else {
        let message = format!(
            "the graph has more than {MAX_EDGES} edges, or {MAX_TURNS} turns at their ends"
        );
        Err(SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message))
    }
}
