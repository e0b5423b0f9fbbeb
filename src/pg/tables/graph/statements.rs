//! The statements that read a graph, with its names filled in.

use std::collections::BTreeMap;

use kernel::policy::needs::Needs;

use super::{Graph, ParentColumn};
use crate::pg::query::{ColumnType, Planning, Statement, Template};
use crate::pg::tables::bound_table::{BoundColumn, BoundTable, TableText, fill};

const SCORED_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/scored.sql"),
    &[
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Number,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Integer,
    ],
    Planning::Probing,
);

const NEIGHBOURS_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/neighbours.sql"),
    &[ColumnType::Id, ColumnType::Boolean, ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

const CHILDREN_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/children.sql"),
    &[
        ColumnType::Integer,
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Number,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Integer,
        ColumnType::Text,
    ],
    Planning::Probing,
);

const MISSING_CHILDREN_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/missing_children.sql"),
    &[ColumnType::Integer, ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

const TURNS_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/turns.sql"),
    &[
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Number,
        ColumnType::Integer,
        ColumnType::Integer,
        ColumnType::Number,
        ColumnType::Number,
        ColumnType::Number,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Integer,
    ],
    Planning::Probing,
);

pub(super) const EDGES_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/edges.sql"),
    &[ColumnType::Id, ColumnType::Id],
    Planning::Once,
);

pub(super) const CONTENT_CHARS_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/content_chars.sql"),
    &[ColumnType::Integer],
    Planning::Probing,
);

const PROMPT_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/prompt.sql"),
    &[ColumnType::Id, ColumnType::Text, ColumnType::Time, ColumnType::Integer, ColumnType::Integer],
    Planning::Probing,
);

pub(super) const TURN_IDS_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/turn_ids.sql"),
    &[ColumnType::Id, ColumnType::Time],
    Planning::Once,
);

pub(super) const EDGE_PAIRS_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/edge_pairs.sql"),
    &[ColumnType::Id, ColumnType::Id],
    Planning::Once,
);

const ROLE_NAMES_QUERY: Template = Template::new(
    include_str!("../../../../sql/queries/role_names.sql"),
    &[ColumnType::Text],
    Planning::Once,
);

/// Compute an expression for graph_check.
const EVALUATE: &str = include_str!("../../../../sql/queries/evaluate.sql");

const EVALUATE_ROW: &str = include_str!("../../../../sql/queries/evaluate_row.sql");

/// The counts of graph_check, by the name of the finding.
const COUNTS: [(&str, &str); 17] = [
    ("turns", include_str!("../../../../sql/queries/count/turns.sql")),
    ("duplicate_turns", include_str!("../../../../sql/queries/count/duplicate_turns.sql")),
    ("dangling_edges", include_str!("../../../../sql/queries/count/dangling_edges.sql")),
    (
        "shared_missing_parents",
        include_str!("../../../../sql/queries/count/shared_missing_parents.sql"),
    ),
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

/// The statements of a slice, with the graph's names filled in.
pub struct SliceStatements {
    /// sql/queries/scored.sql
    pub scored: Statement,
    /// sql/queries/neighbours.sql
    pub neighbours: Statement,
    /// sql/queries/children.sql
    pub children: Statement,
    /// sql/queries/missing_children.sql
    pub missing_children: Statement,
    /// sql/queries/turns.sql
    pub turns: Statement,
}

/// The other statements that read a graph, with its names filled in.
pub struct GraphStatements {
    /// sql/queries/edges.sql
    pub edges: Statement,
    /// sql/queries/content_chars.sql
    pub content_chars: Statement,
    /// sql/queries/turn_ids.sql
    pub turn_ids: Statement,
    /// sql/queries/edge_pairs.sql
    pub edge_pairs: Statement,
}

impl Graph {
    /// A statement of sql/queries with the graph's names filled in, and `extra` placeholders.
    pub fn statement(&self, template: &Template, extra: &[(&str, &str)]) -> Statement {
        fill(template, extra, &[&self.turns_text], &self.sources, false)
    }

    /// The statements of slices by policies that need so much.
    pub fn slicing(&self, needs: Needs) -> &SliceStatements {
        let (facts, tokens) = (needs.facts, needs.tokens);
        self.slicing[usize::from(facts) + 2 * usize::from(tokens)].get_or_init(|| {
            let count =
                if tokens { self.token_count() } else { "NULL::pg_catalog.int8".to_owned() };
            let extra = [("tokens", count.as_str())];
            let tables = [&self.turns_text];
            let fill = |template| fill(template, &extra, &tables, &self.sources, facts);
            SliceStatements {
                scored: fill(&SCORED_QUERY),
                neighbours: fill(&NEIGHBOURS_QUERY),
                children: fill(&CHILDREN_QUERY),
                missing_children: fill(&MISSING_CHILDREN_QUERY),
                turns: fill(&TURNS_QUERY),
            }
        })
    }

    /// The tokens of a turn (POLICY-V2.md, Tokens): those that are counted, else a quarter of the bytes of its text. Of a
    /// text that is stored out of line, PostgreSQL reads only how long it is.
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

    /// The statement that reads contents, times and tokens of turns.
    pub fn prompt(&self) -> Statement {
        self.statement(&PROMPT_QUERY, &[("tokens", &self.token_count())])
    }

    /// The statement that counts what graph_check reports under this name, if there is one.
    pub fn count(&self, what: &str) -> Option<Statement> {
        let (_, text) = COUNTS.iter().find(|(name, _)| *name == what)?;
        let template = Template { text, columns: &[ColumnType::Integer], planning: Planning::Once };
        let content = &self.turns.columns["content_text"];
        let has_content = match content.stored {
            Some(_) => format!("{} IS NOT NULL", content.expression("t")),
            None => "true".to_owned(),
        };
        Some(self.statement(&template, &[("has_content", &has_content)]))
    }

    /// The statement that computes what the mapping has at this place, for each row or for one. `None` for a place that
    /// has no expression.
    pub fn evaluation(&self, place: &str, one_row: bool) -> Option<Statement> {
        let (_, column) = self.keys().find(|(at, column)| at == place && column.is_expression())?;
        let bound = self.bound_of(place)?;
        let text = if one_row { EVALUATE_ROW } else { EVALUATE };
        let template = Template { text, columns: &[ColumnType::Integer], planning: Planning::Once };
        let table = bound.in_statements("table", "t");
        Some(fill(&template, &[("value", &column.expression("t"))], &[&table], &[], false))
    }

    /// The table that a place in the mapping is about.
    fn bound_of(&self, place: &str) -> Option<&BoundTable> {
        if place.starts_with("edges.") { self.edges.as_ref() } else { Some(&self.turns) }
    }

    /// A part of a statement with the graph's names filled in.
    pub fn statement_text(&self, text: &'static str) -> String {
        let template = Template { text, columns: &[], planning: Planning::Once };
        self.statement(&template, &[]).into_text()
    }

    /// The statement that reads names of roles; `None` where none are stored.
    pub fn role_names(&self) -> Option<Statement> {
        let stored = self.turns.columns["role"].stored.is_some();
        stored.then(|| self.statement(&ROLE_NAMES_QUERY, &[]))
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
        let computes = self.parent.is_expression() || turns.columns["id"].is_expression();
        turns.in_statements_with("edges", "e", BTreeMap::from(columns), computes)
    }
}
