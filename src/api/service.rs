use kernel::parse::EXPORT_MAX_BYTES;
use kernel::policy::SlicePolicy;
use kernel::turn::TurnId;
use pgrx::prelude::*;

use super::slice::TakenSlice;
use crate::pg::error::SqlError;
use crate::pg::graph::Graph;
use crate::pg::guc;
use crate::pg::keys::Keys;
use crate::pg::text_type::{JsonText, Policy, to_sql_uuid};

type SummaryRow = (Option<String>, Option<JsonText>, Option<&'static str>, Option<String>);

// Declared in sql/api.sql, in the private schema. What is wrong for every anchor is one row without
// an anchor: the SQLSTATEs that a status is made of can only be raised in PL/pgSQL.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn slice_summaries(
    anchors: Vec<Option<String>>,
    policy: Policy,
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<String>),
        name!(summary, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<String>),
    ),
> {
    if let Err(error) = ready(&policy.0) {
        return TableIterator::once(failed(None, &error));
    }
    let mut bytes = 0;
    TableIterator::new(anchors.into_iter().map(move |anchor| {
        match summary(anchor.as_deref(), &policy.0) {
            Ok(text) => {
                bytes += text.len();
                if bytes > EXPORT_MAX_BYTES {
                    too_large().raise();
                }
                (anchor, Some(JsonText(text)), None, None)
            }
            Err(error) => failed(anchor, &error),
        }
    }))
}

fn ready(policy: &SlicePolicy) -> Result<(), SqlError> {
    guc::check_budget(policy)?;
    let graph = Graph::current()?;
    Keys::load(graph.name.clone())?.active()?;
    Ok(())
}

fn summary(anchor: Option<&str>, policy: &SlicePolicy) -> Result<String, SqlError> {
    let anchor = anchor.ok_or_else(|| invalid_turn_id("anchor is null".to_owned()))?;
    let anchor: TurnId =
        anchor.parse().map_err(|error| invalid_turn_id(format!("invalid turn id: {error}")))?;
    let taken = TakenSlice::new(to_sql_uuid(anchor), policy)?;
    Ok(taken.export(policy)?.summary_json())
}

fn invalid_turn_id(message: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, message)
        .detail("INVALID_TURN_ID")
}

fn failed(anchor: Option<String>, error: &SqlError) -> SummaryRow {
    (anchor, None, Some(error.word()), Some(error.message().to_owned()))
}

fn too_large() -> SqlError {
    let message = format!("slices of more than {EXPORT_MAX_BYTES} bytes");
    SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
        .detail("SLICE_TOO_LARGE")
        .hint("Ask for fewer anchors, or use a policy with fewer max_nodes.")
}
