use kernel::policy::SlicePolicy;
use pgrx::Uuid;
use pgrx::prelude::*;

use super::slice::TakenSlice;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::graph::Graph;
use crate::pg::guc;
use crate::pg::keys::Keys;
use crate::pg::text_type::{JsonText, Policy};

type SliceRow = (Option<Uuid>, Option<JsonText>, Option<&'static str>, Option<String>);

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slices(
    anchors: Vec<Option<Uuid>>,
    policy: default!(Policy, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<Uuid>),
        name!(slice, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<String>),
    ),
> {
    // What is wrong with the graph, the keys or the policy is wrong for every anchor: an error, not a row.
    guc::check_budget(&policy.0).or_raise();
    Graph::current().or_raise();
    Keys::load(Graph::current_name()).or_raise();
    TableIterator::new(anchors.into_iter().map(move |anchor| slice_row(anchor, &policy.0)))
}

fn slice_row(anchor: Option<Uuid>, policy: &SlicePolicy) -> SliceRow {
    let Some(id) = anchor else {
        return (None, None, Some("INVALID_TURN_ID"), Some("anchor is null".to_owned()));
    };
    match TakenSlice::new(id, policy).and_then(|taken| taken.export_text(policy)) {
        Ok(text) => (anchor, Some(text), None, None),
        Err(error) => failed(anchor, &error),
    }
}

fn failed(anchor: Option<Uuid>, error: &SqlError) -> SliceRow {
    (anchor, None, Some(error.word()), Some(error.message().to_owned()))
}
