//! What `graph_check` counts and computes.

use std::ops::ControlFlow;

use pgrx::pg_sys;

use super::Graph;
use crate::pg::catalog::names;
use crate::pg::query::{Argument, ColumnType, Planning, Statement, Template, query};
use crate::pg::subtransaction::guarded;
use crate::pg::tables::bound_table::fill;

/// Compute an expression for graph_check.
const EVALUATE: &str = include_str!("../../../../sql/queries/evaluate.sql");

const ROWS: &str = include_str!("../../../../sql/queries/rows.sql");

const EVALUATE_ROW: &str = include_str!("../../../../sql/queries/evaluate_row.sql");

/// The counts of graph_check, by the name of the finding.
const COUNTS: [(&str, &str); 20] = [
    ("turns", include_str!("../../../../sql/queries/count/turns.sql")),
    ("duplicate_turns", include_str!("../../../../sql/queries/count/duplicate_turns.sql")),
    ("dangling_edges", include_str!("../../../../sql/queries/count/dangling_edges.sql")),
    ("differing_edges", include_str!("../../../../sql/queries/count/differing_edges.sql")),
    (
        "shared_missing_parents",
        include_str!("../../../../sql/queries/count/shared_missing_parents.sql"),
    ),
    (
        "replies_between_sessions",
        include_str!("../../../../sql/queries/count/replies_between_sessions.sql"),
    ),
    ("shared_latest_times", include_str!("../../../../sql/queries/count/shared_latest_times.sql")),
    ("self_loops", include_str!("../../../../sql/queries/count/self_loops.sql")),
    ("unknown_edge_types", include_str!("../../../../sql/queries/count/unknown_edge_types.sql")),
    ("unknown_phases", include_str!("../../../../sql/queries/count/unknown_phases.sql")),
    ("unknown_roles", include_str!("../../../../sql/queries/count/unknown_roles.sql")),
    ("odd_saliences", include_str!("../../../../sql/queries/count/odd_saliences.sql")),
    (
        "malformed_content_hashes",
        include_str!("../../../../sql/queries/count/malformed_content_hashes.sql"),
    ),
    ("contents_not_text", include_str!("../../../../sql/queries/count/contents_not_text.sql")),
    (
        "stale_content_hashes",
        include_str!("../../../../sql/queries/count/stale_content_hashes.sql"),
    ),
    ("edges_without_type", include_str!("../../../../sql/queries/count/edges_without_type.sql")),
    ("turns_without_phase", include_str!("../../../../sql/queries/count/turns_without_phase.sql")),
    ("turns_without_role", include_str!("../../../../sql/queries/count/turns_without_role.sql")),
    (
        "turns_without_salience",
        include_str!("../../../../sql/queries/count/turns_without_salience.sql"),
    ),
    (
        "turns_without_content_hash",
        include_str!("../../../../sql/queries/count/turns_without_content_hash.sql"),
    ),
];

/// Those that join tables, where Citus reads them: it joins those alone whose rows it has put in the same places.
const DISTRIBUTED_COUNTS: [(&str, &str); 3] = [
    ("dangling_edges", include_str!("../../../../sql/queries/distributed/dangling_edges.sql")),
    (
        "shared_missing_parents",
        include_str!("../../../../sql/queries/distributed/shared_missing_parents.sql"),
    ),
    (
        "replies_between_sessions",
        include_str!("../../../../sql/queries/distributed/replies_between_sessions.sql"),
    ),
];

impl Graph {
    /// How many rows the finding of this name has; `None` where it has no such finding.
    pub fn count(&self, finding: &str) -> Option<i64> {
        let is_it = |(name, _): &&(&str, &str)| *name == finding;
        let apart = DISTRIBUTED_COUNTS.iter().filter(|_| self.is_distributed()).find(is_it);
        let (_, text) = apart.or_else(|| COUNTS.iter().find(is_it))?;
        let template = Template { text, columns: &[ColumnType::Integer], planning: Planning::Once };
        let content = &self.turns.columns["content_text"];
        let has_content = match content.stored {
            Some(_) => format!("{} IS NOT NULL", content.expression("t")),
            None => "true".to_owned(),
        };
        let statement = match finding {
            // Of both edges tables alone.
            "differing_edges" => {
                self.edges_by_child.as_ref()?;
                fill(&template, &[], &[self.sources.first()?], &[], false)
            }
            _ => self.statement(&template, &[("has_content", &has_content)]),
        };
        let mut count = None;
        query(&statement, &[], |row| {
            count = row.i64(0);
            ControlFlow::Continue(())
        });
        count
    }

    /// Computes what the mapping has at this place for each row of its table, and raises what that raises. Nothing for
    /// a place that has no expression.
    pub fn evaluate(&self, place: &str) {
        if let Some(statement) = self.over_expression(place, EVALUATE, &[ColumnType::Integer]) {
            query(&statement, &[], |_| ControlFlow::Continue(()));
        }
    }

    /// The first row for which that raises an error: the name of its table, or partition, and its ctid.
    pub fn raising_row(&self, place: &str) -> Option<(String, String)> {
        let rows = self.over_expression(place, ROWS, &[ColumnType::Integer, ColumnType::Text])?;
        let evaluated = self.over_expression(place, EVALUATE_ROW, &[ColumnType::Integer])?;
        let mut raising = None;
        query(&rows, &[], |row| {
            let table = row.i64(0).and_then(|oid| u32::try_from(oid).ok()).map(pg_sys::Oid::from);
            let id = row.text(1, |id| id.map(str::to_owned));
            let (Some(table), Some(id)) = (table, id) else { return ControlFlow::Continue(()) };
            let of_row = table.to_u32().to_string();
            let arguments = [of_row.as_str(), &id].map(|text| Argument::Text(Some(text)));
            let evaluate = || query(&evaluated, &arguments, |_| ControlFlow::Continue(()));
            match guarded(evaluate) {
                Some(()) => ControlFlow::Continue(()),
                None => {
                    raising = Some((table, id));
                    ControlFlow::Break(())
                }
            }
        });
        let (table, id): (pg_sys::Oid, String) = raising?;
        Some((names::typed_name(table)?, id))
    }

    /// This statement over the table of the expression at this place; `None` where there is none.
    fn over_expression(
        &self,
        place: &str,
        text: &'static str,
        columns: &'static [ColumnType],
    ) -> Option<Statement> {
        let mut expressions = self.keys().filter(|(_, column)| column.is_expression());
        let (place, column) = expressions.find(|(at, _)| at.to_string() == place)?;
        let bound = if place.is_of_turns() { Some(&self.turns) } else { self.edges.as_ref() }?;
        let template = Template { text, columns, planning: Planning::Once };
        let table = bound.in_statements("table", "t");
        let value = [("value", column.expression("t"))];
        let value = value.each_ref().map(|(name, text)| (*name, text.as_str()));
        Some(fill(&template, &value, &[&table], &[], false))
    }
}
