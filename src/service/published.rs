//! What the published crate and its service gave, in the kernel's own form.

use std::ops::ControlFlow;

use kernel::export::document::canonical_text;
use kernel::export::published::{Published, PublishedBody};
use kernel::graph::edge::Edge;
use kernel::graph::turn::Turn;
use kernel::policy::MAX_NODES_LIMIT;
use kernel::policy::needs::Needs;
use kernel::slicing::store::{GraphStore, Neighbour};
use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;

/// The canonical text of a published export, which is not attested. An answer that names turns by their ids gets them
/// from the graph, with the caller's rights.
///
/// # Errors
/// 22023 where it is neither, or the graph has not what it names; as any reading.
pub fn export(document: &str) -> Result<String, SqlError> {
    memory::assure(document.len());
    let export = match Published::parse(document, &check_interrupts).map_err(invalid)? {
        Published::Export(export) => export,
        Published::Body(body) => {
            let (turns, edges) = read(&body)?;
            body.with(turns, edges, &check_interrupts).map_err(invalid)?
        }
    };
    Ok(canonical_text(&export, &check_interrupts))
}

/// The turns that it names, and the edges into them.
fn read(body: &PublishedBody) -> Result<(Vec<Turn>, Vec<Edge>), SqlError> {
    let ids = body.turn_ids();
    if ids.len() > MAX_NODES_LIMIT as usize {
        return Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("slice of {} turns is larger than {MAX_NODES_LIMIT}", ids.len()),
        )
        .word(Word::SliceTooLarge)
        .hint("Take the slice again by a policy with fewer max_nodes."));
    }
    let reader = GraphReader::current()?;
    let (mut turns, mut edges) = (Vec::new(), Vec::new());
    reader.ask_settled(Needs::default(), |store| {
        store.turns(ids, &mut |(turn, _)| {
            turns.push(turn);
            ControlFlow::Continue(())
        })?;
        store.neighbours(ids, &[], &mut |(child, neighbour)| {
            if let Neighbour::Parent(edge) = neighbour
                && body.names(edge.parent)
            {
                edges.push(Edge { parent: edge.parent, child, edge_type: edge.edge_type });
            }
            ControlFlow::Continue(())
        })
    })?;
    Ok((turns, edges))
}

fn invalid(why: String) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("the document is not a published export: {why}"),
    )
    .word(Word::InvalidExport)
    .hint(
        "Give an export with turns and edges, or the service's answer for one slice, in the database with its turns. \
         A trace names no turns: call graph_slice with its anchor and policy, and compare the slice_id.",
    )
}
