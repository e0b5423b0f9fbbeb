use kernel::graph::edge::Edge;
use kernel::graph::turn::TurnId;
use kernel::insight::diff::{Difference, HeadDifference};
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::{JsonArg, to_sql_uuid};
use crate::service::compare;

type DiffRow = (
    &'static str,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
    Option<String>,
    Option<String>,
    Option<String>,
);

#[pg_extern(immutable, parallel_safe)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_diff(
    a: JsonArg,
    b: JsonArg,
) -> TableIterator<
    'static,
    (
        name!(kind, &'static str),
        name!(turn_id, Option<Uuid>),
        name!(parent, Option<Uuid>),
        name!(child, Option<Uuid>),
        name!(field, Option<String>),
        name!(was, Option<String>),
        name!(now, Option<String>),
    ),
> {
    let (heads, content) = compare::diff(a.0, b.0).or_raise();
    TableIterator::new(heads.into_iter().map(head_row).chain(content.into_iter().map(diff_row)))
}

fn head_row(head: HeadDifference) -> DiffRow {
    ("export", None, None, None, Some(head.field), Some(head.was), Some(head.now))
}

fn diff_row(difference: Difference) -> DiffRow {
    let turn = |kind, id: TurnId| (kind, Some(to_sql_uuid(id)), None, None, None, None, None);
    let edge = |kind, edge: Edge, was: Option<String>, now: Option<String>| {
        let (parent, child) = (Some(to_sql_uuid(edge.parent)), Some(to_sql_uuid(edge.child)));
        (kind, None, parent, child, Some("edge_type".to_owned()), was, now)
    };
    match difference {
        Difference::TurnGone(id) => turn("turn_gone", id),
        Difference::TurnNew(id) => turn("turn_new", id),
        Difference::TurnField { id, field, was, now } => {
            let id = Some(to_sql_uuid(id));
            ("turn", id, None, None, Some(field.to_owned()), Some(was), Some(now))
        }
        Difference::EdgeGone(e) => edge("edge_gone", e, Some(e.edge_type.name().to_owned()), None),
        Difference::EdgeNew(e) => edge("edge_new", e, None, Some(e.edge_type.name().to_owned())),
    }
}

#[pg_extern(immutable, parallel_safe)]
fn graph_slice_dot(slice: JsonArg) -> String {
    compare::dot(slice.0).or_raise()
}

#[pg_extern(immutable, parallel_safe)]
fn graph_slice_mermaid(slice: JsonArg) -> String {
    compare::mermaid(slice.0).or_raise()
}
