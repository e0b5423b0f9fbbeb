use pgrx::Uuid;
use pgrx::prelude::*;

use super::slice::{export_each, export_text};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::table::TableIterator;
use crate::pg::text_type::{JsonText, Policy, from_sql_uuid};

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slices(
    anchors: Vec<Option<Uuid>>,
    policy: default!(Policy, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<Uuid>),
        name!(slice, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<String>),
    ),
> {
    let id = |anchor: &Option<Uuid>| anchor.map(from_sql_uuid).ok_or_else(null_anchor);
    TableIterator::new(move |put| {
        let slices = export_each(&policy.0, &anchors, id, |anchor, export| {
            put(match export.and_then(|export| export_text(&export)) {
                Ok(text) => (*anchor, Some(text), None, None),
                Err(error) => (*anchor, None, Some(error.word()), Some(error.message().to_owned())),
            });
        });
        slices.or_raise();
    })
}

fn null_anchor() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, "anchor is null")
        .detail("INVALID_TURN_ID")
}
