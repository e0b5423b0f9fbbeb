//! Checking the signed records of searches, and searches made again.

use kernel::graph::turn::TurnId;
use kernel::retrieval::provenance::Provenance;

use super::search::Question;
use super::verify::keys;
use crate::pg::error::SqlError;
use crate::pg::session::check_interrupts;

/// A record as it was given.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<Provenance, String> {
    Provenance::parse(text, &check_interrupts)
}

/// Whether what was retrieved may be promoted: `ok`, or the word that says why not.
///
/// # Errors
/// As [`keys`].
pub fn admissibility(provenance: &Provenance) -> Result<&'static str, SqlError> {
    Ok(provenance.admissibility(&keys()?))
}

/// The turns that were retrieved, if what was retrieved may be promoted.
///
/// # Errors
/// As [`keys`].
pub fn admissible_turns(text: &str) -> Result<Option<Vec<TurnId>>, SqlError> {
    let Ok(provenance) = parse(text) else { return Ok(None) };
    let admissible = admissibility(&provenance)? == "ok";
    Ok(admissible.then_some(provenance.retrieved_turn_ids))
}

/// Makes the search of a record again.
///
/// # Errors
/// As for any search.
pub fn search_again(was: &Provenance, embedding: Vec<Option<f32>>) -> Result<Provenance, SqlError> {
    let limit = i32::try_from(was.limit_requested).unwrap_or(i32::MAX);
    let question = Question::new(embedding, limit, was.filters, None)?;
    let answer = match &was.slice {
        Some(slice) => question.in_slice(slice.anchor, &slice.attestation.policy),
        None => question.in_graph(),
    };
    answer.map(|answer| answer.provenance)
}
