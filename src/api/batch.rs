use std::collections::VecDeque;
use std::ops::ControlFlow;

use kernel::graph::turn::TurnId;
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::LOOKED_AHEAD;
use pgrx::Uuid;
use pgrx::prelude::*;

use super::slice::{Found, export_each, export_text, ready};
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::sql::types::{JsonText, Policy, to_sql_uuid, turn_ids};

type SliceRow = (Option<Uuid>, Option<JsonText>, Option<&'static str>, Option<String>);

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slices(
    anchors: Option<Array<Uuid>>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<Uuid>),
        name!(slice, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<String>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchors) = anchors else { return TableIterator::empty() };
    let anchors = turn_ids(&anchors).or_raise();
    // What is wrong with the graph, the keys or the policy is wrong for every anchor: an error, not a row.
    ready(&policy).or_raise();
    let (found, rows) = (Found::default(), VecDeque::new());
    TableIterator::new(Batch { policy, anchors, taken: 0, ahead: 1, found, rows })
}

/// At most so many slices are taken ahead of their rows, or those until their exports have so many bytes.
const AHEAD: usize = 128;
const AHEAD_BYTES: usize = 1 << 20;

/// The rows of many anchors, made as they are asked for, some of them together.
struct Batch {
    policy: SlicePolicy,
    anchors: Vec<Option<TurnId>>,
    /// How many anchors have had their slices taken.
    taken: usize,
    /// How many more to take next.
    ahead: usize,
    /// What their slices found.
    found: Found,
    /// Their rows that were not yet asked for.
    rows: VecDeque<SliceRow>,
}

impl Iterator for Batch {
    type Item = SliceRow;

    fn next(&mut self) -> Option<SliceRow> {
        if self.rows.is_empty() && self.taken < self.anchors.len() {
            self.take_some().or_raise();
        }
        self.rows.pop_front()
    }
}

impl Batch {
    fn take_some(&mut self) -> Result<(), SqlError> {
        let left = &self.anchors[self.taken..];
        let (anchors, next) = left.split_at(self.ahead.min(left.len()));
        let next = &next[..next.len().min(LOOKED_AHEAD)];
        let (rows, mut bytes) = (&mut self.rows, 0);
        let id = |anchor: &Option<TurnId>| anchor.ok_or_else(null_anchor);
        export_each(&self.policy, &mut self.found, anchors, next, id, |anchor, export| {
            rows.push_back(match export.and_then(|export| export_text(&export)) {
                Ok(text) => {
                    bytes += text.0.len();
                    (anchor.map(to_sql_uuid), Some(text), None, None)
                }
                Err(error) => (
                    anchor.map(to_sql_uuid),
                    None,
                    Some(error.word()),
                    Some(error.message().to_owned()),
                ),
            });
            if bytes < AHEAD_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        self.taken += self.rows.len();
        // Where row security applies, what is read for slices that are then not taken is read in vain.
        let fitting = self.rows.len() * AHEAD_BYTES / bytes.max(1);
        self.ahead = fitting.min(2 * self.ahead).clamp(1, AHEAD);
        Ok(())
    }
}

fn null_anchor() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, "anchor is null")
        .detail("INVALID_TURN_ID")
}
