//! Exports without a graph: compared and drawn; what drawings take.

use kernel::drawing::slice::Options;
use kernel::drawing::{Format, export};
use kernel::explain::diff::{Difference, HeadDifference, export_differences, head_differences};
use kernel::export::parse::ParsedExport;
use kernel::json::quoted;
use pgrx::PgSqlErrorCode;

use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;

/// What differs between two exports: their heads, then their turns and edges.
///
/// # Errors
/// 22023 when one is not an export.
pub fn diff(first: &str, second: &str) -> Result<(Vec<HeadDifference>, Vec<Difference>), SqlError> {
    let (was, now) = (read("first", first)?, read("second", second)?);
    let mut content = Vec::new();
    export_differences(&was, &now, &check_interrupts, &mut |difference| content.push(difference));
    Ok((head_differences(&was, &now), content))
}

/// An export as a drawing.
///
/// # Errors
/// 22023 when it is not an export.
pub fn draw(export: &str, format: Format) -> Result<String, SqlError> {
    Ok(export::text(&read("given", export)?, format, &check_interrupts))
}

/// The format of drawings that has this name.
///
/// # Errors
/// 22023 when there is none.
pub fn drawing_format(name: &str) -> Result<Format, SqlError> {
    Format::from_name(name).ok_or_else(|| {
        let message = format!("there is no drawing format {}", quoted(name));
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .word(Word::InvalidFormat)
            .hint("Give mermaid or dot.")
    })
}

/// The options of drawings that a JSON object says.
///
/// # Errors
/// 22023 when it has other keys or values.
pub fn drawing_options(json: &str) -> Result<Options, SqlError> {
    json.parse().map_err(|why: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, why)
            .word(Word::InvalidOptions)
            .hint("Give options such as '{\"max_turns\": 60, \"chars\": 48, \"frontier\": false}'.")
    })
}

fn read(which: &str, export: &str) -> Result<ParsedExport, SqlError> {
    ParsedExport::parse_whole(export, &check_interrupts).map_err(|why| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("the {which} document is not a slice export: {why}"),
        )
        .word(Word::InvalidExport)
        .hint("Give what graph_slice returned.")
    })
}
