//! The statements that read a graph, with its names filled in.

use std::collections::BTreeMap;
use std::rc::Rc;

use kernel::policy::needs::Needs;

use super::{Graph, ParentColumn};
use crate::pg::query::{Planning, Statement, Template};
use crate::pg::tables::bound_table::{BoundColumn, BoundTable, TableText, fill};

/// What a statement is kept by: its template's address, and whether facts and tokens are read.
pub(super) type KeptBy = (*const Template, bool, bool);

impl Graph {
    /// A statement of sql/queries with the graph's names filled in, and `extra` placeholders.
    pub fn statement(&self, template: &Template, extra: &[(&str, &str)]) -> Statement {
        fill(template, extra, &[&self.turns_text], &self.sources, false)
    }

    /// The same for who needs so much, filled in once; what is not needed is NULL.
    pub fn kept(&self, template: &'static Template, needs: Needs) -> Rc<Statement> {
        let Needs { facts, tokens, .. } = needs;
        let mut kept = self.kept.borrow_mut();
        let statement = kept.entry((template, facts, tokens)).or_insert_with(|| {
            let count =
                if tokens { self.token_count() } else { "NULL::pg_catalog.int8".to_owned() };
            let extra = [("tokens", count.as_str())];
            Rc::new(fill(template, &extra, &[&self.turns_text], &self.sources, facts))
        });
        Rc::clone(statement)
    }

    /// The tokens of a turn (POLICY-V2.md, Tokens): those that are counted, else a quarter of the bytes of its text. Of
    /// a text that is stored out of line, PostgreSQL reads only how long it is.
    fn token_count(&self) -> String {
        let [counted, content] =
            ["token_count", "content_text"].map(|key| &self.turns.columns[key]);
        let is_null = |column: &BoundColumn| column.base_type().is_none();
        let count = counted.expression("t");
        let bound = format!(
            "CASE WHEN {count} OPERATOR(pg_catalog.>=) 0 THEN LEAST({count}, {}) END",
            i32::MAX
        );
        if is_null(content) {
            return format!("COALESCE({bound}, 0)");
        }
        let bytes = format!("pg_catalog.octet_length({})", content.expression("t"));
        format!("COALESCE({bound}, ({bytes} OPERATOR(pg_catalog.+) 3) OPERATOR(pg_catalog./) 4, 0)")
    }

    /// The statement over each source of edges by itself, with what is read for policies that need so much.
    pub fn of_each_source(&self, template: &Template, needs: Needs) -> Vec<Statement> {
        let over = |source| {
            fill(template, &[], &[&self.turns_text], std::slice::from_ref(source), needs.facts)
        };
        self.sources.iter().map(over).collect()
    }

    /// A part of a statement with the graph's names filled in.
    pub fn statement_text(&self, text: &'static str) -> String {
        let template = Template { text, columns: &[], planning: Planning::Once };
        self.statement(&template, &[]).into_text()
    }
}

impl ParentColumn {
    /// The turns table as a source of these edges.
    pub(super) fn source(&self, turns: &BoundTable) -> TableText {
        let columns = [
            ("parent", self.parent.expression("e")),
            ("child", turns.columns["id"].expression("e")),
            ("edge_type", format!("'{}'::pg_catalog.text", self.edge_type.name())),
        ];
        turns.in_statements_with("edges", "e", BTreeMap::from(columns))
    }
}
