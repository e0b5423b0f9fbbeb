//! Contents and their hashes.

use std::borrow::Cow;

use kernel::graph::content;
use kernel::graph::turn::TurnId;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::reader::GraphReader;
use crate::pg::access::content::{Contents, TurnPage};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::members::call_trigger;
use crate::pg::shortage::memory;
use crate::pg::trigger::{HashedRow, TriggerCall};

/// A text normalised as contents are before they are hashed.
pub fn normalised(content: &str) -> Cow<'_, str> {
    memory::assure(content.len());
    content::normalize(content, &check_interrupts)
}

/// The hash of a content.
pub fn hash(content: &str) -> String {
    memory::assure(content.len());
    content::content_hash(content, &check_interrupts)
}

/// Keeps the hash of a row that is about to be written that of its content; the trigger's result.
///
/// # Errors
/// 22021 where the content is not UTF-8. Raises what `content_hash_trigger_internal` does.
pub fn hash_written(call: &TriggerCall) -> Result<pgrx::Internal, SqlError> {
    match HashedRow::of(call) {
        Some(row) => row.with_hash(hash),
        None => Ok(call_trigger(call, c"content_hash_trigger_internal")),
    }
}

/// As [`Contents::audit`].
///
/// # Errors
/// 42703 when the turns table has no column for the content or its hash, 22023 for a limit below 0.
pub fn audit(
    limit: Option<i64>,
    put: impl FnMut(TurnId, Option<String>, Option<String>),
) -> Result<(), SqlError> {
    expect_count(limit.unwrap_or(0))?;
    let reader = GraphReader::current()?;
    let contents = Contents::new(reader.graph())?;
    reader.hinting(|| contents.audit(limit, put));
    reader.check_settled()
}

fn expect_count(limit: i64) -> Result<(), SqlError> {
    if limit >= 0 {
        return Ok(());
    }
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("limit_count must not be negative, as {limit} is"),
    )
    .word(Word::InvalidLimit)
    .hint("Leave it out for all turns."))
}

/// The turns table of a graph that is backfilled: the name of its binding, and the table.
#[derive(Clone, Copy)]
pub struct Backfilled<'a> {
    /// The binding.
    pub graph: &'a str,
    /// The table.
    pub turns: pg_sys::Oid,
}

/// The turns after this one, at most so many.
///
/// # Errors
/// As [`audit`]; 55000 where other tables are bound by now, or an expression computes the hash.
pub fn page(table: Backfilled<'_>, after: Option<TurnId>, most: i32) -> Result<TurnPage, SqlError> {
    expect_count(most.into())?;
    with_contents_of(table, |contents| Ok(contents.page(after, most)))
}

/// Writes the hashes of these turns, without those that another transaction has locked. Returns how many changed, and
/// the locked turns.
///
/// # Errors
/// As [`page`].
pub fn rehash_free(
    table: Backfilled<'_>,
    turns: &[TurnId],
) -> Result<(i64, Vec<TurnId>), SqlError> {
    with_contents_of(table, |contents| contents.rehash_free(turns))
}

/// Writes the hash of this turn, waiting for a lock. Returns how many changed.
///
/// # Errors
/// As [`page`].
pub fn rehash(table: Backfilled<'_>, turn: TurnId) -> Result<i64, SqlError> {
    with_contents_of(table, |contents| contents.rehash(&[turn]))
}

fn with_contents_of<T>(
    table: Backfilled<'_>,
    act: impl FnOnce(&Contents<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let reader = GraphReader::of(table.graph)?;
    let contents = Contents::to_write(reader.graph())?;
    contents.expect_turns(table.turns)?;
    let result = reader.hinting(|| act(&contents))?;
    reader.check_settled()?;
    Ok(result)
}
