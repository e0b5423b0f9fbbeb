//! The bound graph: which tables, which columns, which statements.

use std::rc::Rc;

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use crate::pg::error::SqlError;
use crate::pg::private::binding::{Binding, mapping};
use crate::pg::private::private_table::BINDING;
use crate::pg::private::session_cache::SessionCache;
use crate::pg::query::{Column, Planning, Statement, Template};
use crate::pg::tables::bound_table::{
    BoundTable, ColumnRule, Kind, TablePlaceholder, TableRules, fill, optional, rule,
};
use crate::pg::tables::embedding::{self, EmbeddingColumn};
use crate::pg::tables::relation;

const TURN_COLUMNS: &[ColumnRule] = &[
    rule("id", &["id"], Kind::Id),
    rule("session_id", &["session_id", "conversation_id"], Kind::Text),
    rule("role", &["role"], Kind::Text),
    rule("phase", &["trajectory_phase", "phase"], Kind::Text),
    rule("salience", &["salience_score", "salience"], Kind::Number),
    rule("trajectory_depth", &["trajectory_depth"], Kind::Integer),
    rule("trajectory_sibling_order", &["trajectory_sibling_order"], Kind::Integer),
    rule("trajectory_homogeneity", &["trajectory_homogeneity"], Kind::Number),
    rule("trajectory_temporal", &["trajectory_temporal"], Kind::Number),
    rule("trajectory_complexity", &["trajectory_complexity"], Kind::Number),
    rule("created_at", &["created_at"], Kind::Time),
    optional("content_hash", &["content_hash"], Kind::Text),
    optional("content_text", &["content_text"], Kind::Text),
];

const EDGE_COLUMNS: &[ColumnRule] = &[
    rule("parent", &["parent_turn_id"], Kind::Id),
    rule("child", &["child_turn_id"], Kind::Id),
    rule("edge_type", &["edge_type"], Kind::Text),
];

const TURNS: TableRules = TableRules {
    part: "turns",
    word: "GRAPH_TABLES",
    columns: TURN_COLUMNS,
    command: |mapping| bind_command("turns", mapping),
};

const EDGES: TableRules = TableRules {
    part: "edges",
    word: "GRAPH_TABLES",
    columns: EDGE_COLUMNS,
    command: |mapping| bind_command("edges", mapping),
};

fn bind_command(part: &str, mapping: Option<&str>) -> String {
    let mapping = mapping.map_or_else(String::new, |m| format!(", '{{\"{part}\": {m}}}'"));
    format!("SELECT graph_kernel.bind_tables('turns', 'edges'{mapping})")
}

const SCORED_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/scored.sql"),
    &[Column::Id, Column::Text, Column::Number],
    Planning::Probing,
);

const NEIGHBOURS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/neighbours.sql"),
    &[Column::Id, Column::Boolean, Column::Id, Column::Text],
    Planning::Probing,
);

const CHILDREN_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/children.sql"),
    &[Column::Integer, Column::Id, Column::Text, Column::Number],
    Planning::Probing,
);

const MISSING_CHILDREN_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/missing_children.sql"),
    &[Column::Integer, Column::Id],
    Planning::Probing,
);

const TURNS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/turns.sql"),
    &[
        Column::Id,
        Column::Text,
        Column::Text,
        Column::Text,
        Column::Number,
        Column::Integer,
        Column::Integer,
        Column::Number,
        Column::Number,
        Column::Number,
        Column::Time,
        Column::Text,
    ],
    Planning::Probing,
);

const EDGES_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/edges.sql"),
    &[Column::Id, Column::Id],
    Planning::Once,
);

const CONTENT_CHARS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/content_chars.sql"),
    &[Column::Integer],
    Planning::Probing,
);

const TURN_IDS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/turn_ids.sql"),
    &[Column::Id, Column::Time],
    Planning::Once,
);

const EDGE_PAIRS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/edge_pairs.sql"),
    &[Column::Id, Column::Id],
    Planning::Once,
);

/// The counts of graph_check, by the name of the finding.
const COUNTS: [(&str, &str); 15] = [
    ("turns", include_str!("../../../sql/queries/count/turns.sql")),
    ("duplicate_turns", include_str!("../../../sql/queries/count/duplicate_turns.sql")),
    ("dangling_edges", include_str!("../../../sql/queries/count/dangling_edges.sql")),
    ("self_loops", include_str!("../../../sql/queries/count/self_loops.sql")),
    ("unknown_edge_types", include_str!("../../../sql/queries/count/unknown_edge_types.sql")),
    ("unknown_phases", include_str!("../../../sql/queries/count/unknown_phases.sql")),
    ("unknown_roles", include_str!("../../../sql/queries/count/unknown_roles.sql")),
    ("odd_saliences", include_str!("../../../sql/queries/count/odd_saliences.sql")),
    (
        "malformed_content_hashes",
        include_str!("../../../sql/queries/count/malformed_content_hashes.sql"),
    ),
    ("stale_content_hashes", include_str!("../../../sql/queries/count/stale_content_hashes.sql")),
    ("edges_without_type", include_str!("../../../sql/queries/count/edges_without_type.sql")),
    ("turns_without_phase", include_str!("../../../sql/queries/count/turns_without_phase.sql")),
    ("turns_without_role", include_str!("../../../sql/queries/count/turns_without_role.sql")),
    (
        "turns_without_salience",
        include_str!("../../../sql/queries/count/turns_without_salience.sql"),
    ),
    (
        "turns_without_content_hash",
        include_str!("../../../sql/queries/count/turns_without_content_hash.sql"),
    ),
];

/// The statements that read a graph, with its names filled in.
pub struct Statements {
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
    /// sql/queries/edges.sql
    pub edges: Statement,
    /// sql/queries/content_chars.sql
    pub content_chars: Statement,
    /// sql/queries/turn_ids.sql
    pub turn_ids: Statement,
    /// sql/queries/edge_pairs.sql
    pub edge_pairs: Statement,
}

/// The graph as its tables are named now.
pub struct Graph {
    /// Its name in attestations.
    pub name: String,
    turns: BoundTable,
    edges: BoundTable,
    /// What a slice reads by.
    pub statements: Statements,
    /// The mapping of `embedding`, as given to `bind_tables`.
    embedding: Option<Value>,
}

/// The name in attestations of the graph in the default tables.
const DEFAULT_GRAPH: &str = "default";

thread_local! {
    static CURRENT: SessionCache<Graph> = const { SessionCache::new() };
}

impl Graph {
    /// The bound graph, or the default tables while nothing is bound. Both tables stay locked
    /// AccessShare to the transaction's end.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when the tables are not what a graph needs.
    pub fn current() -> Result<Rc<Self>, SqlError> {
        CURRENT.with(|cache| {
            if let Some(graph) = cache.get() {
                graph.tables().into_iter().for_each(relation::lock_shared);
            }
            // Taking the locks accepts the invalidations of changes that were committed before.
            cache.get_or_compute(Self::resolve_bound)
        })
    }

    fn resolve_bound() -> Result<Self, SqlError> {
        match Binding::current() {
            Some(Binding { graph, turns, edges, columns }) => {
                relation::lock_shared(turns);
                relation::lock_shared(edges);
                Self::resolve(graph.to_string(), turns, edges, &mapping(columns.as_ref())?)
            }
            None => {
                let turns = default_table(c"memory_turns")?;
                let edges = default_table(c"memory_turn_edges")?;
                Self::resolve(DEFAULT_GRAPH.to_owned(), turns, edges, &Value::Null)
            }
        }
    }

    /// The name of the bound graph, without looking at its tables.
    pub fn current_name() -> String {
        Binding::current().map_or_else(|| DEFAULT_GRAPH.to_owned(), |b| b.graph.to_string())
    }

    /// The two tables.
    pub fn tables(&self) -> [pg_sys::Oid; 2] {
        [self.turns.table.oid, self.edges.table.oid]
    }

    /// The relations whose change changes the graph: the tables, their partitions, the table of the binding, and
    /// pg_namespace, since the default tables are found by name.
    pub fn relations(&self) -> Vec<pg_sys::Oid> {
        let mut relations = vec![BINDING.oid(), pg_sys::NamespaceRelationId];
        for bound in [&self.turns, &self.edges] {
            relations.push(bound.table.oid);
            relations.extend(&bound.partitions);
        }
        relations
    }

    /// The graph these tables make, with this column mapping.
    ///
    /// # Errors
    /// As [`Graph::current`]; 22023 for a bad mapping.
    pub fn resolve(
        name: String,
        turns: pg_sys::Oid,
        edges: pg_sys::Oid,
        mapping: &Value,
    ) -> Result<Self, SqlError> {
        let mapping = tables_mapping(mapping)?;
        let turns = BoundTable::resolve(turns, &TURNS, mapping.get("turns"))?;
        let edges = BoundTable::resolve(edges, &EDGES, mapping.get("edges"))?;
        let embedding = mapping.get("turns").and_then(|turns| turns.get(embedding::KEY)).cloned();
        let tables = named(&turns, &edges);
        let fill = |template| fill(template, &[], &tables);
        let statements = Statements {
            scored: fill(&SCORED_QUERY),
            neighbours: fill(&NEIGHBOURS_QUERY),
            children: fill(&CHILDREN_QUERY),
            missing_children: fill(&MISSING_CHILDREN_QUERY),
            turns: fill(&TURNS_QUERY),
            edges: fill(&EDGES_QUERY),
            content_chars: fill(&CONTENT_CHARS_QUERY),
            turn_ids: fill(&TURN_IDS_QUERY),
            edge_pairs: fill(&EDGE_PAIRS_QUERY),
        };
        Ok(Graph { name, turns, edges, statements, embedding })
    }

    /// The embedding column as it is now: types and operators can be created and dropped without an
    /// invalidation of the tables.
    ///
    /// # Errors
    /// 42703, 42804, 42883 when there is none that can be searched; 22023 for a bad mapping.
    pub fn embedding(&self) -> Result<EmbeddingColumn, SqlError> {
        EmbeddingColumn::resolve(&self.turns.table, self.embedding.as_ref())
    }

    /// Checks an embedding column that was named; a recognised one may be anything.
    ///
    /// # Errors
    /// As [`Graph::embedding`].
    pub fn check_embedding(&self) -> Result<(), SqlError> {
        match self.embedding {
            None | Some(Value::Null) => Ok(()),
            Some(_) => self.embedding().map(|_| ()),
        }
    }

    /// A statement of sql/queries with the graph's names filled in, and `extra` placeholders.
    pub fn statement(&self, template: &Template, extra: &[(&str, &str)]) -> Statement {
        fill(template, extra, &named(&self.turns, &self.edges))
    }

    /// The statement that counts what graph_check reports under this name, if there is one.
    pub fn count(&self, what: &str) -> Option<Statement> {
        let (_, text) = COUNTS.iter().find(|(name, _)| *name == what)?;
        let template = Template { text, columns: &[Column::Integer], planning: Planning::Once };
        Some(self.statement(&template, &[]))
    }

    /// A part of a statement with the graph's names filled in.
    pub fn statement_text(&self, text: &'static str) -> String {
        let template = Template { text, columns: &[], planning: Planning::Once };
        self.statement(&template, &[]).into_text()
    }

    /// The name of a column of the turns table.
    ///
    /// # Errors
    /// 42703 when there is none.
    pub fn turn_column(&self, key: &str) -> Result<&str, SqlError> {
        let stored = self.turns.columns[key].stored.as_ref();
        stored.map(|(name, _)| name.as_str()).ok_or_else(|| {
            let table = self.turns.table.qualified_name();
            SqlError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("table {table} has no column for {key}"),
            )
            .detail("GRAPH_TABLES")
            .hint(format!(
                "ALTER TABLE {table} ADD COLUMN {key} text; or name the column with \
                 graph_kernel.bind_tables."
            ))
        })
    }

    /// A column of the turns as an expression over the alias t.
    pub fn turn_expression(&self, key: &str) -> String {
        self.turns.columns[key].expression("t")
    }

    /// The column that names a turn's session, and its type.
    pub fn session_column(&self) -> Option<(&str, pg_sys::Oid)> {
        let (name, base_type) = self.turns.columns["session_id"].stored.as_ref()?;
        Some((name, *base_type))
    }

    /// Whether a column is an enum, whose labels can be renamed without touching the tables.
    pub fn has_enum(&self) -> bool {
        let columns = self.turns.columns.values().chain(self.edges.columns.values());
        columns
            .filter_map(|column| column.stored.as_ref())
            .any(|(_, base_type)| relation::is_enum(*base_type))
    }

    /// What SQL code needs to query the graph: each table's OID, its name as it stands in a FROM
    /// clause, the name of each column or null, and the column as an expression over the alias t
    /// (turns) or e (edges).
    pub fn description(&self) -> Value {
        json!({ "turns": self.turns.description("t"), "edges": self.edges.description("e") })
    }
}

/// The tables as statements of sql/queries name them.
fn named<'a>(turns: &'a BoundTable, edges: &'a BoundTable) -> [TablePlaceholder<'a>; 2] {
    [
        TablePlaceholder { name: "turns", alias: "t", table: turns },
        TablePlaceholder { name: "edges", alias: "e", table: edges },
    ]
}

fn default_table(name: &'static std::ffi::CStr) -> Result<pg_sys::Oid, SqlError> {
    relation::lock_by_name(c"public", name).ok_or_else(|| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("relation \"public.{}\" does not exist", name.to_string_lossy()),
        )
        .detail("GRAPH_TABLES")
        .hint(
            "Run SELECT graph_kernel.create_tables(), or bind tables of your own with \
             SELECT graph_kernel.bind_tables('turns', 'edges').",
        )
    })
}

fn tables_mapping(mapping: &Value) -> Result<Map<String, Value>, SqlError> {
    let wrong = |message: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .detail("INVALID_BINDING")
            .hint("Give columns as '{\"turns\": {\"id\": \"…\"}, \"edges\": {\"parent\": \"…\"}}'.")
    };
    let tables = match mapping {
        Value::Null => return Ok(Map::new()),
        Value::Object(tables) => tables,
        _ => return Err(wrong("column mapping must be a JSON object".to_owned())),
    };
    for (part, columns) in tables {
        let rules = match part.as_str() {
            "turns" => TURN_COLUMNS,
            "edges" => EDGE_COLUMNS,
            _ => return Err(wrong(format!("column mapping has no part \"{part}\""))),
        };
        let columns = columns
            .as_object()
            .ok_or_else(|| wrong(format!("column mapping of \"{part}\" must be a JSON object")))?;
        let known = |key: &str| {
            rules.iter().any(|rule| rule.key == key) || (part == "turns" && key == embedding::KEY)
        };
        if let Some(key) = columns.keys().find(|key| !known(key)) {
            return Err(wrong(format!("column mapping of \"{part}\" has no key \"{key}\"")));
        }
    }
    Ok(tables.clone())
}
