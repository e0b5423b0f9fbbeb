use pgrx::prelude::*;
use pgrx::{Uuid, pg_sys};

use crate::pg::error::OrRaise;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonbText, Text, to_sql_uuid};
use crate::pg::text::TextArg;
use crate::service::{check, tables};

// Declared in sql/binding.sql, in the private schema.
#[pg_extern(sql = false)]
fn describe_tables(
    turns: Option<pg_sys::Oid>,
    edges: Option<pg_sys::Oid>,
    columns: Option<JsonbText>,
    schema: Option<TextArg>,
    name: Option<TextArg>,
    binder: Option<pg_sys::Oid>,
) -> Option<JsonbText> {
    let graph = tables::graph_of(turns?, edges, columns.as_ref(), &schema?, &name?, binder?);
    Some(graph.or_raise().into())
}

#[pg_extern(sql = false)]
fn bind_tables(call: FunctionCall) -> pgrx::Internal {
    tables::bind(&call)
}

#[pg_extern(sql = false)]
fn create_tables(call: FunctionCall) -> pgrx::Internal {
    tables::create_tables(&call)
}

#[pg_extern(sql = false)]
fn unbind_tables(call: FunctionCall) -> pgrx::Internal {
    tables::unbind(&call)
}

#[pg_extern(sql = false)]
fn chosen_graph() -> Text {
    Text(tables::chosen_graph())
}

#[pg_extern(sql = false)]
fn describe_graph(graph: TextArg) -> JsonbText {
    tables::graph_named(&graph).or_raise().into()
}

#[pg_extern(sql = false)]
fn advisory_xact_lock(of_table: pg_sys::Oid, key: i32) {
    tables::lock_for_append(of_table, key).or_raise();
}

#[pg_extern(sql = false)]
fn count_found(graph: TextArg, what: TextArg) -> Option<i64> {
    check::count(&graph, &what).or_raise()
}

#[pg_extern(sql = false)]
fn evaluate(graph: TextArg, place: TextArg) {
    check::evaluate(&graph, &place).or_raise();
}

#[pg_extern(sql = false)]
fn raising_row(
    graph: TextArg,
    place: TextArg,
) -> TableIterator<'static, (name!(row_table, Text), name!(row_id, Text))> {
    let found = check::raising_row(&graph, &place).or_raise();
    TableIterator::new(|put| {
        if let Some((table, id)) = found {
            put((Text(table), Text(id)));
        }
    })
}

#[pg_extern(sql = false)]
fn roles_advice(graph: TextArg) -> Option<Text> {
    tables::roles_advice(&graph).or_raise().map(Text)
}

#[pg_extern(sql = false)]
fn turns_in_cycles(graph: TextArg) -> TableIterator<'static, (name!(turn_id, Uuid),)> {
    let turns = check::turns_in_cycles(&graph).or_raise();
    TableIterator::new(move |put| turns.into_iter().for_each(|turn| put((to_sql_uuid(turn),))))
}
