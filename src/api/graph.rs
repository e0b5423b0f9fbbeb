use kernel::insight::cycles::EdgeList;
use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};
use std::ops::ControlFlow;

use crate::pg::error::OrRaise;
use crate::pg::private::binding::mapping;
use crate::pg::query::query;
use crate::pg::read::store;
use crate::pg::session::check_interrupts;
use crate::pg::sql::types::JsonbText;
use crate::pg::tables::graph::Graph;

// Declared in sql/binding.sql, in the private schema.
#[pg_extern(sql = false)]
fn describe_tables(
    turns: Option<pg_sys::Oid>,
    edges: Option<pg_sys::Oid>,
    columns: Option<JsonbText>,
) -> Option<JsonB> {
    let mapping = mapping(columns.as_ref()).or_raise();
    let graph = Graph::resolve(String::new(), turns?, edges?, &mapping).or_raise();
    graph.check_embedding().or_raise();
    Some(JsonB(graph.description()))
}

#[pg_extern(sql = false)]
fn describe_graph() -> JsonB {
    JsonB(Graph::current().or_raise().description())
}

#[pg_extern(sql = false)]
fn count_found(what: &str) -> Option<i64> {
    let graph = Graph::current().or_raise();
    let statement = graph.count(what)?;
    let mut count = None;
    query(&statement, &[], |row| {
        count = row.i64(0);
        ControlFlow::Continue(())
    });
    count
}

#[pg_extern(sql = false)]
fn turns_in_cycles() -> Option<i64> {
    let graph = Graph::current().or_raise();
    let mut edges = EdgeList::default();
    let mut whole = true;
    store::all_edges(&graph, |parent, child| {
        whole = edges.push(parent, child);
        if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let count = if whole { edges.turns_in_cycles(&check_interrupts) } else { None };
    count.map(|count| count as i64)
}
