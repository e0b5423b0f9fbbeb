use kernel::explain::diff::{Difference, HeadDifference};
use kernel::graph::edge::Edge;
use kernel::graph::turn::TurnId;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::{Text, to_sql_uuid};
use crate::pg::text::{JsonArg, TextArg};
use crate::service::compare;

type DiffRow = (
    &'static str,
    Option<Uuid>,
    Option<Uuid>,
    Option<Uuid>,
    Option<Text>,
    Option<Text>,
    Option<Text>,
);

#[pg_extern(immutable, parallel_safe, cost = 4000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_diff(
    first: JsonArg,
    second: JsonArg,
) -> TableIterator<
    'static,
    (
        name!(kind, &'static str),
        name!(turn_id, Option<Uuid>),
        name!(parent, Option<Uuid>),
        name!(child, Option<Uuid>),
        name!(field, Option<Text>),
        name!(was, Option<Text>),
        name!(now, Option<Text>),
    ),
> {
    let (heads, content) = compare::diff(&first, &second).or_raise();
    TableIterator::new(heads.into_iter().map(head_row).chain(content.into_iter().map(diff_row)))
}

fn head_row(head: HeadDifference) -> DiffRow {
    ("export", None, None, None, Some(Text(head.field)), Some(Text(head.was)), Some(Text(head.now)))
}

fn diff_row(difference: Difference) -> DiffRow {
    let turn = |kind, id: TurnId| (kind, Some(to_sql_uuid(id)), None, None, None, None, None);
    let edge = |kind, edge: Edge, was: Option<String>, now: Option<String>| {
        let (parent, child) = (Some(to_sql_uuid(edge.parent)), Some(to_sql_uuid(edge.child)));
        (
            kind,
            None,
            parent,
            child,
            Some(Text("edge_type".to_owned())),
            was.map(Text),
            now.map(Text),
        )
    };
    match difference {
        Difference::TurnGone(id) => turn("turn_gone", id),
        Difference::TurnNew(id) => turn("turn_new", id),
        Difference::TurnField { id, field, was, now } => {
            let id = Some(to_sql_uuid(id));
            ("turn", id, None, None, Some(Text(field.to_owned())), Some(Text(was)), Some(Text(now)))
        }
        Difference::EdgeGone(e) => edge("edge_gone", e, Some(e.edge_type.name().to_owned()), None),
        Difference::EdgeNew(e) => edge("edge_new", e, None, Some(e.edge_type.name().to_owned())),
    }
}

#[pg_extern(immutable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_export_draw(slice: JsonArg, format: default!(TextArg, "'mermaid'")) -> Text {
    let format = compare::drawing_format(&format).or_raise();
    Text(compare::draw(&slice, format).or_raise())
}

extension_sql!(
    r"
ALTER FUNCTION graph_slice_diff(json, json) ROWS 50;
COMMENT ON FUNCTION graph_slice_diff(json, json) IS 'what differs between two slices';
COMMENT ON FUNCTION graph_export_draw(json, text) IS 'an export as a drawing for Mermaid or Graphviz';
",
    name = "compare_comments",
    requires = [graph_slice_diff, graph_export_draw]
);
