use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};

use crate::pg::error::OrRaise;
use crate::pg::private::binding::mapping;
use crate::pg::sql::types::JsonbText;
use crate::pg::tables::graph::Graph;
use crate::service::check;

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
    check::count(what).or_raise()
}

#[pg_extern(sql = false)]
fn turns_in_cycles() -> Option<i64> {
    check::turns_in_cycles().or_raise()
}
