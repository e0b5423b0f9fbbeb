use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use pgrx::{Uuid, pg_sys};

use crate::pg::error::OrRaise;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonText, JsonbText, Text, to_sql_uuid};
use crate::pg::text::{JsonArg, TextArg};
use crate::service::kept::{self, Refreshed};
use crate::service::references::{self, Reference};
use crate::service::tables;

#[pg_extern(volatile, parallel_unsafe, cost = 3000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_keep(document: JsonArg) -> Text {
    Text(kept::keep(&document).or_raise())
}

#[pg_extern(stable, parallel_restricted, cost = 1000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_kept(key: TextArg) -> Option<JsonText> {
    kept::kept_document(&key).or_raise().map(JsonText)
}

// Declared in sql/store.sql, in the private schema.
#[pg_extern(sql = false)]
fn check_store(
    store: Option<pg_sys::Oid>,
    graph: Option<TextArg>,
    binder: Option<pg_sys::Oid>,
) -> Option<JsonbText> {
    Some(kept::store_of(store?, &graph?, binder?).or_raise().into())
}

#[pg_extern(sql = false)]
fn describe_store(graph: TextArg) -> Option<JsonbText> {
    kept::bound_store(&graph).or_raise().map(JsonbText::from)
}

#[pg_extern(sql = false)]
fn create_slice_store(call: FunctionCall) -> pgrx::Internal {
    tables::create_slice_store(&call)
}

#[pg_extern(sql = false)]
fn bind_store(call: FunctionCall) -> pgrx::Internal {
    tables::bind_store(&call)
}

#[pg_extern(sql = false)]
fn unfit_documents(
    graph: TextArg,
) -> TableIterator<'static, (name!(key, Text), name!(fault, &'static str))> {
    let graph = graph.to_string();
    TableIterator::new(move |put| {
        kept::unfit(&graph, |key, fault| put((Text(key), fault))).or_raise();
    })
}

#[pg_extern(sql = false)]
fn missing_references(graph: TextArg, place: pg_sys::Oid, reference: TextArg) -> Option<i64> {
    kept::missing_references(&graph, place, &reference).or_raise()
}

#[pg_extern(sql = false)]
fn count_references(
    place: pg_sys::Oid,
    reference: TextArg,
) -> TableIterator<'static, (name!(key, Option<Text>), name!(found, Option<i64>))> {
    let reference = reference.to_string();
    TableIterator::new(move |put| match kept::references(place, &reference) {
        Some(counts) => {
            counts.into_iter().for_each(|(key, found)| put((Some(Text(key)), Some(found))));
        }
        None => put((None, None)),
    })
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn list_kept() -> TableIterator<
    'static,
    (
        name!(key, Text),
        name!(kind, Text),
        name!(graph, Text),
        name!(anchor_turn_id, Option<Uuid>),
        name!(turns, i64),
        name!(role, Text),
        name!(rls, bool),
        name!(kept_by, Text),
        name!(kept_at, Option<TimestampWithTimeZone>),
        name!(checked_at, Option<TimestampWithTimeZone>),
        name!(status, Option<Text>),
        name!(superseded_by, Option<Text>),
    ),
> {
    let time = |micros: Option<i64>| micros.and_then(|micros| micros.try_into().ok());
    TableIterator::new(move |put| {
        kept::rows(|row| {
            put((
                Text(row.key),
                Text(row.kind),
                Text(row.graph),
                row.anchor.map(to_sql_uuid),
                row.turns,
                Text(row.role),
                row.rls,
                Text(row.kept_by),
                time(row.kept_at),
                time(row.checked_at),
                row.status.map(Text),
                row.superseded_by.map(Text),
            ));
        })
        .or_raise();
    })
}

#[pg_extern(sql = false)]
fn refresh_batch(
    since: i64,
    most: i64,
) -> TableIterator<'static, (name!(taken, i64), name!(changed, i64), name!(failed, i64))> {
    TableIterator::new(move |put| {
        let Refreshed { taken, changed, failed } = kept::refresh(since, most).or_raise();
        put((taken, changed, failed));
    })
}

#[pg_extern(sql = false)]
fn kept_by_others() -> i64 {
    kept::of_others().or_raise()
}

#[pg_extern(sql = false)]
fn list_references(
    graph: TextArg,
    filter: JsonbText,
    promoting: JsonbText,
) -> TableIterator<
    'static,
    (name!(kind, Text), name!(place, i64), name!(key, Option<Text>), name!(count, Option<i64>)),
> {
    let (graph, promoting) = (graph.to_string(), references::promoting(&promoting.0).or_raise());
    TableIterator::new(move |put| {
        references::list(&graph, &filter.0, &promoting, |found| {
            let Reference { kind, place, key, count } = found;
            put((
                Text(kind.to_owned()),
                place.to_u32().into(),
                key.map(|key| Text(key.to_owned())),
                count,
            ));
        })
        .or_raise();
    })
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_keep(json) IS
    'keeps a slice or a record of a prompt that verifies in the store of the graph, once; returns its key';
COMMENT ON FUNCTION graph_kept(text) IS
    'the document of a key in the store of the graph';
",
    name = "kept_comments",
    requires = [graph_keep, graph_kept]
);
