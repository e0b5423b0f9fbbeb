use kernel::graph::turn::TurnId;
use kernel::retrieval::provenance::Provenance;
use pgrx::prelude::*;
use pgrx::{Uuid, pg_sys};

use super::retrieval::Asked;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::graph::Graph;
use crate::pg::keys::Keys;
use crate::pg::session::check_interrupts;
use crate::pg::text_type::{JsonbText, from_sql_uuid, to_sql_uuid};
use crate::pg::trace::{self, Trace};

#[pg_extern(stable, parallel_safe)]
fn graph_is_admissible_result(provenance: Option<JsonbText>) -> bool {
    admissible(provenance).is_some()
}

#[pg_extern(stable, parallel_safe)]
fn graph_can_promote(provenance: Option<JsonbText>, turn: Option<Uuid>) -> bool {
    let (Some(retrieved), Some(turn)) = (admissible(provenance), turn) else { return false };
    retrieved.contains(&from_sql_uuid(turn))
}

// Declared in sql/retrieval.sql, in the private schema.
#[pg_extern(sql = false)]
fn provenance_reason(provenance: Option<JsonbText>) -> &'static str {
    match parse(provenance) {
        Ok(provenance) => provenance.admissibility(&keys()),
        Err(_) => "malformed",
    }
}

#[pg_extern(sql = false)]
fn write_trace(traces: Option<pg_sys::Oid>, provenance: Option<JsonbText>) -> Uuid {
    let text = provenance.as_ref().map_or("", |json| &json.0).to_owned();
    let parsed = parse(provenance).map_err(|_| malformed()).or_raise();
    let slice = parsed.slice.as_ref();
    let trace = Trace {
        id: parsed.query_id,
        retrieval_mode: if slice.is_some() { "slice" } else { "global" },
        is_admissible: parsed.admissibility(&keys()) == "ok",
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

type ReplayRow = (bool, &'static str, Option<String>, Option<String>);

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
    TableIterator::new(match parse(provenance) {
        Ok(provenance) => replay(provenance, &embedding),
        Err(why) => vec![(false, "provenance", None, Some(why))],
    })
}

/// One row for the MAC and one for each value the search made again gives.
fn replay(was: Provenance, embedding: &Array<f32>) -> Vec<ReplayRow> {
    let signature = was.signature(&keys());
    let mut rows = vec![(signature == "ok", "mac", was.mac.clone(), Some(signature.to_owned()))];
    let now = match again(&was, embedding) {
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

fn again(was: &Provenance, embedding: &Array<f32>) -> Result<Provenance, SqlError> {
    let limit = i32::try_from(was.limit_requested).unwrap_or(i32::MAX);
    let asked = Asked::new(embedding, limit, was.filters, None)?;
    let answer = match &was.slice {
        Some(slice) => asked.in_slice(to_sql_uuid(slice.anchor), &slice.attestation.policy),
        None => asked.anywhere(),
    };
    answer.map(|answer| answer.provenance)
}

/// The turns that were retrieved, if what was retrieved may be promoted.
fn admissible(provenance: Option<JsonbText>) -> Option<Vec<TurnId>> {
    let provenance = parse(provenance).ok()?;
    (provenance.admissibility(&keys()) == "ok").then_some(provenance.retrieved_turn_ids)
}

fn parse(provenance: Option<JsonbText>) -> Result<Provenance, String> {
    let text = provenance.map(|json| json.0).unwrap_or_default();
    Provenance::parse(&text, &check_interrupts)
}

fn keys() -> Keys {
    Keys::load(Graph::current_name()).or_raise()
}
