//! Lists of the sessions and the turns of a graph, for people and for programs that show them.

use kernel::graph::edge::EdgeType;
use kernel::graph::turn::{TurnId, bounded_name};
use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use super::search::require_short;
pub use crate::pg::access::lists::Listed;
use crate::pg::access::lists::{Extent, ListedTurn, Session};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;

/// How many items a list has at most.
pub const MAX_LISTED: i32 = 100_000;

/// How many characters of a text a list shows at most.
const MAX_LENGTH: i32 = 10_000;

/// A part of a list.
///
/// # Errors
/// 22023 where it is not one that is shown.
pub fn extent(limit: i32, skip: i32, length: i32) -> Result<Extent, SqlError> {
    let within = |name: &str, number: i32, least: i32, most: i32| match number {
        number if (least..=most).contains(&number) => Ok(number.unsigned_abs()),
        _ => Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("{name} must be {least} to {most}, not {number}"),
        )
        .word(Word::InvalidLimit)),
    };
    Ok(Extent {
        limit: within("limit_count", limit, 1, MAX_LISTED)?,
        skip: within("skip_count", skip, 0, i32::MAX)?,
        length: within("length", length, 0, MAX_LENGTH)?,
    })
}

/// Hands the sessions to `put`, the latest first; where an end is given those whose names end with it.
///
/// # Errors
/// As any reading.
pub fn sessions(
    extent: Extent,
    name_end: Option<&str>,
    put: impl FnMut(Session),
) -> Result<(), SqlError> {
    let reader = GraphReader::current()?;
    reader.searcher().list_sessions(extent, name_end, put)?;
    reader.check_settled()
}

/// Hands turns to `put`, the latest first.
///
/// # Errors
/// As any reading; 54000 where the text that is sought is too long.
pub fn turns(
    extent: Extent,
    listed: Listed<'_>,
    put: impl FnMut(ListedTurn),
) -> Result<(), SqlError> {
    require_short("has_text", listed.text)?;
    let session = listed.session.map(|name| bounded_name(name, &check_interrupts));
    let listed = Listed { session: session.as_deref(), ..listed };
    let reader = GraphReader::current()?;
    reader.searcher().list_turns(extent, &listed, put)?;
    reader.check_settled()
}

/// Hands edges that lead to these turns to `put`, so many at most.
///
/// # Errors
/// As any reading; 22023 for a limit that is not one.
pub fn edges(
    turns: &[TurnId],
    limit: i32,
    put: impl FnMut(TurnId, TurnId, EdgeType),
) -> Result<(), SqlError> {
    let limit = extent(limit, 0, 0)?.limit;
    let reader = GraphReader::current()?;
    reader.searcher().list_edges(turns, limit, put)?;
    reader.check_settled()
}
