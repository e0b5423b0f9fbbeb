use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};

use crate::pg::error::OrRaise;
use crate::pg::sql::types::JsonbText;
use crate::service::{check, tables};

// Declared in sql/binding.sql, in the private schema.
#[pg_extern(sql = false)]
fn describe_tables(
    turns: Option<pg_sys::Oid>,
    edges: Option<pg_sys::Oid>,
    columns: Option<JsonbText>,
    schema: Option<&str>,
    name: Option<&str>,
) -> Option<JsonB> {
    Some(JsonB(tables::graph_of(turns?, edges, columns.as_ref(), schema?, name?).or_raise()))
}

#[pg_extern(sql = false)]
fn chosen_graph() -> String {
    tables::chosen_graph()
}

#[pg_extern(sql = false)]
fn describe_graph(graph: &str) -> JsonB {
    JsonB(tables::graph_named(graph).or_raise())
}

#[pg_extern(sql = false)]
fn count_found(graph: &str, what: &str) -> Option<i64> {
    check::count(graph, what).or_raise()
}

#[pg_extern(sql = false)]
fn evaluate(graph: &str, place: &str) {
    check::evaluate(graph, place, None).or_raise();
}

#[pg_extern(sql = false)]
fn evaluate_row(graph: &str, place: &str, row_table: pg_sys::Oid, row_id: &str) {
    check::evaluate(graph, place, Some((row_table, row_id))).or_raise();
}

#[pg_extern(sql = false)]
fn turns_in_cycles(graph: &str) -> Option<i64> {
    check::turns_in_cycles(graph).or_raise()
}
