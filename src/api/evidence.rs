use kernel::evidence::diversity::Diversity;
use kernel::evidence::sufficiency::{SufficiencyPolicy, Violation};
use kernel::export::canonical::json_text;
use kernel::policy::PolicyError;
use pgrx::prelude::*;

use super::verify::verdict;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::sql::types::{JsonArg, JsonbText};
use crate::service::verify::not_admissible;

#[pg_extern(stable, parallel_safe)]
fn graph_diversity(slice: JsonArg) -> JsonbText {
    JsonbText(json_text(&diversity(Some(slice)).or_raise()))
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_sufficiency(
    slice: Option<JsonArg>,
    policy: default!(Option<JsonbText>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(sufficient, bool),
        name!(violation, Option<&'static str>),
        name!(required, Option<f32>),
        name!(actual, Option<f32>),
    ),
> {
    let policy = sufficiency_policy(policy).or_raise();
    let violations = policy.violations(&diversity(slice).or_raise());
    let sufficient = violations.is_empty().then_some((true, None, None, None));
    let violated = |v: Violation| (false, Some(v.key), Some(v.required), Some(v.actual));
    TableIterator::new(sufficient.into_iter().chain(violations.into_iter().map(violated)))
}

/// The diversity of a slice that verifies.
fn diversity(slice: Option<JsonArg>) -> Result<Diversity, SqlError> {
    let verdict = verdict(slice);
    let valid = verdict.valid().map(|export| Diversity::of(&export.turns));
    valid.ok_or_else(|| not_admissible(&verdict))
}

fn sufficiency_policy(policy: Option<JsonbText>) -> Result<SufficiencyPolicy, SqlError> {
    let Some(JsonbText(json)) = policy else { return Ok(SufficiencyPolicy::default()) };
    json.parse().map_err(|error: PolicyError| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string())
        .detail("INVALID_SUFFICIENCY_POLICY")
        .hint(
            "Give a preset ('\"default\"', '\"lenient\"', '\"strict\"') or a JSON object such as \
             '{\"min_turns\": 5}'.",
        )
    })
}
