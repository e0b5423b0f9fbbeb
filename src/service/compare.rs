//! Exports without a graph: compared and drawn.

use kernel::drawing::export;
use kernel::explain::diff::{Difference, HeadDifference, differences, head_differences};
use kernel::export::parse::ParsedExport;
use pgrx::PgSqlErrorCode;

use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;

/// What differs between two exports: their heads, then their turns and edges.
///
/// # Errors
/// 22023 when one is no export.
pub fn diff(first: &str, second: &str) -> Result<(Vec<HeadDifference>, Vec<Difference>), SqlError> {
    let (was, now) = (read("first", first)?, read("second", second)?);
    let mut content = Vec::new();
    differences(
        (&was.turn_refs()[..], &was.edges[..]),
        (&now.turn_refs()[..], &now.edges[..]),
        &check_interrupts,
        &mut |difference| content.push(difference),
    );
    Ok((head_differences(&was, &now), content))
}

/// An export drawn in Graphviz's language.
///
/// # Errors
/// 22023 when it is no export.
pub fn dot(export: &str) -> Result<String, SqlError> {
    Ok(export::dot(&read("given", export)?, &check_interrupts))
}

/// An export drawn in Mermaid's language.
///
/// # Errors
/// 22023 when it is no export.
pub fn mermaid(export: &str) -> Result<String, SqlError> {
    Ok(export::mermaid(&read("given", export)?, &check_interrupts))
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
