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
) -> Option<JsonB> {
    Some(JsonB(tables::graph_of(turns?, edges?, columns.as_ref()).or_raise()))
}

#[pg_extern(sql = false)]
fn describe_graph() -> JsonB {
    JsonB(tables::bound_graph().or_raise())
}

#[pg_extern(sql = false)]
fn count_found(what: &str) -> Option<i64> {
    check::count(what).or_raise()
}

#[pg_extern(sql = false)]
fn turns_in_cycles() -> Option<i64> {
    check::turns_in_cycles().or_raise()
}
