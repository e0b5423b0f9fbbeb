use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::{JsonText, Policy, Text, to_sql_uuid, turn_ids};
use crate::service::slices::{ExportResult, ExportStream};

type SliceRow = (Option<Uuid>, Option<JsonText>, Option<&'static str>, Option<Text>);

#[pg_extern(stable, parallel_restricted, cost = 100000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slices(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<Uuid>),
        name!(slice, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<Text>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchors) = anchors else { return TableIterator::empty() };
    let anchors = turn_ids(&anchors).or_raise();
    // An error of the graph, the keys or the policy concerns every anchor: it is raised, not a row.
    let mut exports = ExportStream::new(policy, anchors).or_raise();
    TableIterator::new(std::iter::from_fn(move || exports.next().or_raise().map(slice_row)))
}

fn slice_row((anchor, export): ExportResult) -> SliceRow {
    let anchor = anchor.map(to_sql_uuid);
    match export {
        Ok(text) => (anchor, Some(JsonText(text)), None, None),
        Err(error) => {
            (anchor, None, Some(error.word_name()), Some(Text(error.message().to_owned())))
        }
    }
}

extension_sql!(
    r"
ALTER FUNCTION graph_slices(uuid[], slice_policy) ROWS 10;
COMMENT ON FUNCTION graph_slices(uuid[], slice_policy) IS
    'the slices at many anchor turns, in order; a bad anchor gives a row with an error';
",
    name = "batch_comments",
    requires = [graph_slices]
);
