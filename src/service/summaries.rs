//! The summaries of slices at many anchors.

use std::ops::ControlFlow;

use kernel::export::parse::MAX_EXPORT_BYTES;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use pgrx::PgSqlErrorCode;

use super::slices::{FetchedBefore, check_ready, export_each};
use crate::pg::error::{SqlError, Word};
use crate::pg::guc;
use crate::pg::private::keys::Keys;
use crate::pg::tables::graph::Graph;

/// Passes the summary of the slice at each of these anchors, as JSON, or the error at it to `each`. Without anchors a
/// role that has no right to the tables asks for the keys alone.
///
/// # Errors
/// As [`export_each`]. Raises 54000 when the summaries are too large together.
pub fn summarise_each(
    anchors: &[Option<String>],
    policy: &SlicePolicy,
    mut each: impl FnMut(&Option<String>, Result<String, SqlError>),
) -> Result<(), SqlError> {
    if anchors.is_empty() && !Graph::has_rights(&guc::graph()) {
        return Keys::load(Graph::attested_name(&guc::graph())?)?.active().map(drop);
    }
    check_ready(policy)?;
    let mut bytes = 0;
    export_each(policy, &mut FetchedBefore::nothing(), anchors, &[], turn_id, |anchor, export| {
        let summary = export.map(|export| export.summary_json());
        bytes += summary.as_ref().map_or(0, String::len);
        if bytes > MAX_EXPORT_BYTES {
            too_large().raise();
        }
        each(anchor, summary);
        ControlFlow::Continue(())
    })
}

fn turn_id(anchor: &Option<String>) -> Result<TurnId, SqlError> {
    let anchor = anchor.as_ref().ok_or_else(|| invalid_turn_id("anchor is null".to_owned()))?;
    anchor.parse().map_err(|error| invalid_turn_id(format!("invalid turn id: {error}")))
}

fn invalid_turn_id(message: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, message)
        .word(Word::InvalidTurnId)
}

fn too_large() -> SqlError {
    let message = format!("slices of more than {MAX_EXPORT_BYTES} bytes");
    SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
        .word(Word::SliceTooLarge)
        .hint("Ask for fewer anchors, or use a policy with fewer max_nodes.")
}
