use kernel::evidence::sufficiency::Violation;
use kernel::json::canonical::json_text;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::JsonbText;
use crate::pg::text::{JsonArg, text};
use crate::service::evidence::{diversity, insufficiencies};

#[pg_extern(stable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_diversity(slice: JsonArg) -> JsonbText {
    JsonbText(json_text(&diversity(&slice).or_raise()))
}

#[pg_extern(stable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
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
    let policy = policy.as_ref().map(|policy| policy.0.as_str());
    let violations = insufficiencies(text(slice), policy).or_raise();
    let sufficient = violations.is_empty().then_some((true, None, None, None));
    let violated = |v: Violation| (false, Some(v.key), Some(v.required), Some(v.actual));
    TableIterator::new(sufficient.into_iter().chain(violations.into_iter().map(violated)))
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_diversity(json) IS
    'how varied the turns of a slice that verifies are';
ALTER FUNCTION graph_sufficiency(json, jsonb) ROWS 1;
COMMENT ON FUNCTION graph_sufficiency(json, jsonb) IS
    'whether a slice that verifies is enough evidence; else a row for each thing it lacks';
",
    name = "evidence_comments",
    requires = [graph_diversity, graph_sufficiency]
);
