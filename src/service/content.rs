//! Contents and their hashes.

use kernel::graph::turn::TurnId;
use pgrx::pg_sys;

use super::reader::GraphReader;
use crate::pg::access::content::{Contents, Page};
use crate::pg::error::SqlError;

/// Hands turn, stored hash and computed hash to `put` where they disagree, by ascending id.
///
/// # Errors
/// 42703 when the turns table has no column for the content or its hash.
pub fn audit(
    limit: Option<i64>,
    put: impl FnMut(TurnId, Option<String>, String),
) -> Result<(), SqlError> {
    let reader = GraphReader::current()?;
    let contents = Contents::new(reader.graph())?;
    reader.hinting(|| contents.audit(limit, put));
    Ok(())
}

/// The turns after this one, at most so many, of the turns table with this OID.
///
/// # Errors
/// As [`audit`]; 55000 where other tables are bound by now.
pub fn page(table: pg_sys::Oid, after: Option<TurnId>, most: i32) -> Result<Page, SqlError> {
    with_contents_of(table, |contents| contents.page(after, most))
}

/// Writes the hashes of these turns, without those that another transaction has locked. Returns how many changed, and
/// the locked turns.
///
/// # Errors
/// As [`page`].
pub fn rehash_free(table: pg_sys::Oid, turns: &[TurnId]) -> Result<(i64, Vec<TurnId>), SqlError> {
    with_contents_of(table, |contents| contents.rehash_free(turns))
}

/// Writes the hash of this turn, waiting for a lock. Returns how many changed.
///
/// # Errors
/// As [`page`].
pub fn rehash(table: pg_sys::Oid, turn: TurnId) -> Result<i64, SqlError> {
    with_contents_of(table, |contents| contents.rehash(&[turn]))
}

fn with_contents_of<T>(
    table: pg_sys::Oid,
    act: impl FnOnce(&Contents<'_>) -> T,
) -> Result<T, SqlError> {
    let reader = GraphReader::current()?;
    let contents = Contents::new(reader.graph())?;
    contents.expect_turns(table)?;
    Ok(act(&contents))
}
