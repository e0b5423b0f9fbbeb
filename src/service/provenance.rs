//! Checking the signed records of searches, storing them, and searches made again.

use kernel::graph::turn::TurnId;
use kernel::retrieval::provenance::Provenance;
use pgrx::PgSqlErrorCode;

use super::refusals;
use super::search::Question;
use super::verify::keys;
use crate::pg::access::trace::{self, Trace};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;

/// Whether what was retrieved may be promoted: `ok`, or the word that says why not.
///
/// # Errors
/// As [`keys`].
pub fn admissibility(text: &str) -> Result<&'static str, SqlError> {
    let parsed = parse(text);
    let result = match &parsed {
        Ok(provenance) => provenance.admissibility(&keys()?),
        Err(_) => "malformed",
    };
    let slice = parsed.as_ref().ok().and_then(|provenance| provenance.slice.as_ref());
    refusals::note("search", result, slice.map(|slice| slice.slice_id.as_str()));
    Ok(result)
}

/// The turns that were retrieved, if what was retrieved may be promoted.
///
/// # Errors
/// As [`keys`].
pub fn admissible_turns(text: &str) -> Result<Option<Vec<TurnId>>, SqlError> {
    if admissibility(text)? != "ok" {
        return Ok(None);
    }
    Ok(parse(text).ok().map(|provenance| provenance.retrieved_turn_ids))
}

/// Stores a record in the bound table of traces, with the caller's rights. Returns its query_id.
///
/// # Errors
/// 22023 where it is not a record; as [`trace::insert`].
pub fn store_trace(text: &str) -> Result<TurnId, SqlError> {
    let provenance = parse(text).map_err(|_| malformed())?;
    let slice = provenance.slice.as_ref();
    let trace = Trace {
        id: provenance.query_id,
        retrieval_mode: if slice.is_some() { "slice" } else { "global" },
        is_admissible: provenance.admissibility(&keys()?) == "ok",
        slice_id: slice.map(|slice| slice.slice_id.as_str()),
        admissibility_token: slice.and_then(|slice| slice.admissibility_token.as_deref()),
        provenance: text,
    };
    trace::insert(&trace)?;
    Ok(provenance.query_id)
}

/// A value of a record beside that of the search made again.
pub struct ReplayedField {
    /// Whether the two are the same.
    pub matches: bool,
    /// Its key.
    pub field: &'static str,
    /// The value in the record.
    pub was: Option<String>,
    /// The value now, or the error.
    pub now: Option<String>,
}

/// Makes the search of a record again: one row for the MAC, and one for each value that the search gives. An error of
/// the search is a row.
///
/// # Errors
/// As [`keys`].
pub fn replay(
    text: &str,
    embedding: impl FnOnce() -> Result<Vec<Option<f32>>, SqlError>,
) -> Result<Vec<ReplayedField>, SqlError> {
    let failed = |field, why| ReplayedField { matches: false, field, was: None, now: Some(why) };
    let recorded = match parse(text) {
        Ok(recorded) => recorded,
        Err(why) => return Ok(vec![failed("provenance", why)]),
    };
    let signature = recorded.signature(&keys()?);
    let mut fields = vec![ReplayedField {
        matches: signature == "ok",
        field: "mac",
        was: recorded.mac.clone(),
        now: Some(signature.to_owned()),
    }];
    match embedding().and_then(|embedding| search_again(&recorded, embedding)) {
        Err(error) => {
            fields.push(failed("search", format!("{}: {}", error.word_name(), error.message())));
        }
        Ok(again) => {
            for ((field, was), (_, now)) in recorded.replayed().into_iter().zip(again.replayed()) {
                let (matches, was, now) = (was == now, Some(was), Some(now));
                fields.push(ReplayedField { matches, field, was, now });
            }
        }
    }
    Ok(fields)
}

fn search_again(was: &Provenance, embedding: Vec<Option<f32>>) -> Result<Provenance, SqlError> {
    let limit = i32::try_from(was.limit_requested).unwrap_or(i32::MAX);
    let (text, filter) = (was.query_text.as_deref(), was.filter.clone());
    // Of a question in words alone there is no embedding.
    let embedding = was.query_embedding_hash.is_some().then_some(embedding);
    let question = Question::new(embedding, text, limit, filter)?;
    // What was valid then is found again.
    let question = was.moment().into_iter().fold(question, Question::at);
    let answer = match &was.slice {
        Some(slice) => question.in_slice(slice.anchor, &slice.attestation.policy),
        None => question.in_graph(),
    };
    answer.map(|answer| answer.provenance)
}

fn parse(text: &str) -> Result<Provenance, String> {
    Provenance::parse(text, &check_interrupts)
}

fn malformed() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, "not a provenance of a search")
        .word(Word::InvalidProvenance)
        .hint("Give the column provenance of graph_search_slice or graph_search as it is.")
}
