//! Why a slice is as it is.

use kernel::explain::explanation::{Explanation, Stats, explain, stats};
use kernel::explain::why::{Why, why};
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::SliceError;
use pgrx::PgSqlErrorCode;

use super::limits::limits;
use super::reader::GraphReader;
use crate::pg::error::{SqlError, Word};
use crate::pg::guc;
use crate::pg::interrupts::check_interrupts;

/// Every turn that slicing at an anchor read, with its outcome.
///
/// # Errors
/// As for the slice; 54000 also where a turn has very many children.
pub fn explanation(anchor: TurnId, policy: &SlicePolicy) -> Result<Explanation, SqlError> {
    GraphReader::for_policy(policy)?.ask_settled(policy.needs(), |store| {
        explain(store, policy, anchor, limits(), &check_interrupts).map_err(all_children)
    })
}

/// Why a turn is in the slice at an anchor, or what would bring it in.
///
/// # Errors
/// As for the slice.
pub fn reason_for(anchor: TurnId, turn: TurnId, policy: &SlicePolicy) -> Result<Why, SqlError> {
    let most_nodes = guc::max_nodes_limit();
    GraphReader::for_policy(policy)?
        .ask_settled(policy.needs(), |store| why(store, policy, anchor, turn, most_nodes, limits()))
}

/// Figures of the slice at an anchor, and how many characters its contents have.
///
/// # Errors
/// As [`explanation`]; the caller needs SELECT on the content's column.
pub fn statistics(anchor: TurnId, policy: &SlicePolicy) -> Result<(Stats, Option<i64>), SqlError> {
    GraphReader::for_policy(policy)?.ask_settled(policy.needs(), |store| {
        let stats = stats(store, policy, anchor, limits()).map_err(all_children)?;
        let ids: Vec<_> = stats.slice.turns.iter().map(|selected| selected.turn.id).collect();
        let chars = store.content_chars(&ids)?;
        Ok::<_, SqlError>((stats, chars))
    })
}

/// Unlike a slice, an explanation holds every child of a turn with very many.
fn all_children(error: SliceError<SqlError>) -> SqlError {
    match error {
        SliceError::TooManyIds(limit) => SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("explanation would hold more than {limit} turns in memory"),
        )
        .word(Word::SliceTooLarge)
        .hint("graph_slice_turns does not hold every child of a turn with very many, and graph_why neither."),
        other => other.into(),
    }
}
