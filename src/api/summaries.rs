use std::ops::ControlFlow;

use kernel::export::parse::EXPORT_MAX_BYTES;
use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonText, Policy};
use crate::service::slices::{FetchedBefore, check_ready, export_each};

type SummaryRow = (Option<String>, Option<JsonText>, Option<&'static str>, Option<String>);

// Declared in sql/api.sql, in the private schema. An error that concerns every anchor is one row
// without an anchor: only PL/pgSQL can raise the SQLSTATEs that PostgREST turns into a status.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn slice_summaries(
    anchors: Option<Vec<Option<String>>>,
    policy: Option<Policy>,
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<String>),
        name!(summary, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<String>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let anchors = anchors.unwrap_or_default();
    TableIterator::new(move |put| {
        if let Err(error) = summaries(&anchors, &policy, put) {
            put(failed(None, &error));
        }
    })
}

fn summaries(
    anchors: &[Option<String>],
    policy: &SlicePolicy,
    put: &mut dyn FnMut(SummaryRow),
) -> Result<(), SqlError> {
    check_ready(policy)?;
    let mut bytes = 0;
    export_each(policy, &mut FetchedBefore::nothing(), anchors, &[], turn_id, |anchor, export| {
        put(match export {
            Ok(export) => {
                let text = export.summary_json();
                bytes += text.len();
                if bytes > EXPORT_MAX_BYTES {
                    too_large().raise();
                }
                (anchor.clone(), Some(JsonText(text)), None, None)
            }
            Err(error) => failed(anchor.clone(), &error),
        });
        ControlFlow::Continue(())
    })
}

fn turn_id(anchor: &Option<String>) -> Result<TurnId, SqlError> {
    let anchor = anchor.as_ref().ok_or_else(|| invalid_turn_id("anchor is null".to_owned()))?;
    anchor.parse().map_err(|error| invalid_turn_id(format!("invalid turn id: {error}")))
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
