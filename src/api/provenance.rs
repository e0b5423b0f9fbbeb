use kernel::retrieval::provenance::Provenance;
use pgrx::prelude::*;
use pgrx::{Uuid, pg_sys};

use super::anchor::elements;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::read::trace::{self, Trace};
use crate::pg::sql::types::{JsonbText, from_sql_uuid, to_sql_uuid};
use crate::service::provenance::{admissibility, admissible_turns, parse, search_again};
use crate::service::verify::keys;

#[pg_extern(stable, parallel_safe)]
fn graph_is_admissible_result(provenance: Option<JsonbText>) -> bool {
    admissible_turns(&text(provenance)).or_raise().is_some()
}

#[pg_extern(stable, parallel_safe)]
fn graph_can_promote(provenance: Option<JsonbText>, turn: Option<Uuid>) -> bool {
    let retrieved = admissible_turns(&text(provenance)).or_raise();
    retrieved.zip(turn).is_some_and(|(retrieved, turn)| retrieved.contains(&from_sql_uuid(turn)))
}

// Declared in sql/retrieval.sql, in the private schema.
#[pg_extern(sql = false)]
fn provenance_reason(provenance: Option<JsonbText>) -> &'static str {
    match parse(&text(provenance)) {
        Ok(provenance) => admissibility(&provenance).or_raise(),
        Err(_) => "malformed",
    }
}

#[pg_extern(sql = false)]
fn write_trace(traces: Option<pg_sys::Oid>, provenance: Option<JsonbText>) -> Uuid {
    let text = text(provenance);
    let parsed = parse(&text).map_err(|_| malformed()).or_raise();
    let slice = parsed.slice.as_ref();
    let trace = Trace {
        id: parsed.query_id,
        retrieval_mode: if slice.is_some() { "slice" } else { "global" },
        is_admissible: admissibility(&parsed).or_raise() == "ok",
        slice_id: slice.map(|slice| slice.slice_id.as_str()),
        admissibility_token: slice.and_then(|slice| slice.admissibility_token.as_deref()),
        provenance: &text,
    };
    trace::insert(traces, &trace).or_raise();
    to_sql_uuid(parsed.query_id)
}

fn malformed() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, "not a provenance of a search")
        .detail("INVALID_PROVENANCE")
        .hint("Give the column provenance of graph_search_slice or graph_search_global as it is.")
}

type SearchReplayRow = (bool, &'static str, Option<String>, Option<String>);

#[pg_extern(stable, parallel_restricted)]
fn graph_replay_retrieval(
    provenance: Option<JsonbText>,
    query_embedding: Option<Array<f32>>,
) -> TableIterator<
    'static,
    (
        name!(matches, bool),
        name!(field, &'static str),
        name!(was, Option<String>),
        name!(now, Option<String>),
    ),
> {
    let Some(embedding) = query_embedding else { return TableIterator::empty() };
    TableIterator::new(match parse(&text(provenance)) {
        Ok(provenance) => replay(provenance, &embedding),
        Err(why) => vec![(false, "provenance", None, Some(why))],
    })
}

/// One row for the MAC and one for each value the search made again gives.
fn replay(was: Provenance, embedding: &Array<f32>) -> Vec<SearchReplayRow> {
    let signature = was.signature(&keys().or_raise());
    let mut rows = vec![(signature == "ok", "mac", was.mac.clone(), Some(signature.to_owned()))];
    let now = match elements(embedding).and_then(|embedding| search_again(&was, embedding)) {
        Ok(now) => now,
        Err(error) => {
            let why = format!("{}: {}", error.word(), error.message());
            rows.push((false, "search", None, Some(why)));
            return rows;
        }
    };
    for ((field, was), (_, now)) in was.replayed().into_iter().zip(now.replayed()) {
        rows.push((was == now, field, Some(was), Some(now)));
    }
    rows
}

fn text(provenance: Option<JsonbText>) -> String {
    provenance.map(|json| json.0).unwrap_or_default()
}
