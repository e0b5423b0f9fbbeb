use kernel::export::parse::ParsedExport;
use kernel::graph::edge::Edge;
use kernel::graph::turn::TurnId;
use kernel::insight::diff::{Difference, differences, head_differences};
use kernel::insight::draw::{dot, mermaid};
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::session::check_interrupts;
use crate::pg::sql::types::{JsonArg, to_sql_uuid};

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
    let (was, now) = (read("first", a).or_raise(), read("second", b).or_raise());
    let mut rows: Vec<DiffRow> = head_differences(&was, &now)
        .into_iter()
        .map(|head| ("export", None, None, None, Some(head.field), Some(head.was), Some(head.now)))
        .collect();
    let (was, now) =
        ((&was.turn_refs()[..], &was.edges[..]), (&now.turn_refs()[..], &now.edges[..]));
    differences(was, now, &check_interrupts, &mut |difference| rows.push(diff_row(difference)));
    TableIterator::new(rows)
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
    dot(&read("given", slice).or_raise(), &check_interrupts)
}

#[pg_extern(immutable, parallel_safe)]
fn graph_slice_mermaid(slice: JsonArg) -> String {
    mermaid(&read("given", slice).or_raise(), &check_interrupts)
}

fn read(which: &str, slice: JsonArg) -> Result<ParsedExport, SqlError> {
    ParsedExport::parse_whole(slice.0, &check_interrupts).map_err(|why| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("the {which} document is no slice export: {why}"),
        )
        .detail("INVALID_EXPORT")
        .hint("Give what graph_slice returned.")
    })
}
