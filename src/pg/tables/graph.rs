//! The bound graphs: which tables, where they have which values, which statements.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use kernel::graph::edge::EdgeType;
use kernel::graph::turn::Role;
use kernel::json::quoted;
use kernel::policy::needs::Needs;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use crate::pg::catalog::privileges::{Use, check_binder};
use crate::pg::catalog::relation::{self, literal_of};
use crate::pg::catalog::role_writers;
use crate::pg::catalog::writers::{CatalogWriters, writers_of_enum};
use crate::pg::error::{SqlError, Word};
use crate::pg::fixed_settings;
use crate::pg::guc::DEFAULT_GRAPH;
use crate::pg::private::binding::{Binding, mapping};
use crate::pg::private::private_table::BINDING;
use crate::pg::private::session_cache::SessionCache;
use crate::pg::query::{ColumnType, Planning, Statement, Template, partitions_changed};
use crate::pg::shortage::memory;
use crate::pg::tables::bound_table::{
    BoundColumn, BoundTable, ColumnRule, ColumnSource, Mapping, TableRules, TableText, ValueKind,
    fill, literal, optional, rule, with_value,
};
use crate::pg::tables::embedding::{self, EmbeddingColumn};
use crate::pg::text::replaced;

const TURN_COLUMNS: &[ColumnRule] = &[
    rule("id", &["id"], ValueKind::Id),
    rule("session_id", &["session_id", "conversation_id"], ValueKind::Text),
    rule("role", &["role"], ValueKind::Text),
    rule("phase", &["trajectory_phase", "phase"], ValueKind::Text),
    rule("salience", &["salience_score", "salience"], ValueKind::Number),
    rule("trajectory_depth", &["trajectory_depth"], ValueKind::Integer),
    rule("trajectory_sibling_order", &["trajectory_sibling_order"], ValueKind::Integer),
    rule("trajectory_homogeneity", &["trajectory_homogeneity"], ValueKind::Number),
    rule("trajectory_temporal", &["trajectory_temporal"], ValueKind::Number),
    rule("trajectory_complexity", &["trajectory_complexity"], ValueKind::Number),
    rule("created_at", &["created_at"], ValueKind::Time),
    optional("content_hash", &["content_hash"], ValueKind::Text),
    optional("content_text", &["content_text"], ValueKind::Text),
    optional("token_count", &["token_count"], ValueKind::Integer),
];

/// The longest name of a binding, which `bind_tables` enforces.
const MAX_NAME_BYTES: usize = 63;

/// The tables of [`DEFAULT_GRAPH`] while nothing is bound, in the schema public.
const DEFAULT_TABLES: [&std::ffi::CStr; 2] = [c"memory_turns", c"memory_turn_edges"];

/// The key of edges that the turns table itself stores, and what its elements have.
const PARENTS: &str = "parents";
const PARENT_COLUMN: ColumnRule = rule("parent", &[], ValueKind::Id);
const EDGE_TYPE: &str = "edge_type";

/// How many of them a table may have: each is one more part of every statement that reads edges.
const MAX_PARENTS: usize = 16;

/// The key of names of roles that the kernel does not know, and what each means.
const ROLES: &str = "roles";

/// How many of them a mapping may have, and how long each may be.
const MAX_ROLES: usize = 64;
const MAX_ROLE_BYTES: usize = 63;

const EDGE_COLUMNS: &[ColumnRule] = &[
    rule("parent", &["parent_turn_id"], ValueKind::Id),
    rule("child", &["child_turn_id"], ValueKind::Id),
    rule("edge_type", &["edge_type"], ValueKind::Text),
];

const SCORED_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/scored.sql"),
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
    include_str!("../../../sql/queries/neighbours.sql"),
    &[ColumnType::Id, ColumnType::Boolean, ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

const CHILDREN_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/children.sql"),
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
    include_str!("../../../sql/queries/missing_children.sql"),
    &[ColumnType::Integer, ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

const TURNS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/turns.sql"),
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

const EDGES_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/edges.sql"),
    &[ColumnType::Id, ColumnType::Id],
    Planning::Once,
);

const CONTENT_CHARS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/content_chars.sql"),
    &[ColumnType::Integer],
    Planning::Probing,
);

const PROMPT_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/prompt.sql"),
    &[ColumnType::Id, ColumnType::Text, ColumnType::Time, ColumnType::Integer, ColumnType::Integer],
    Planning::Probing,
);

const TURN_IDS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/turn_ids.sql"),
    &[ColumnType::Id, ColumnType::Time],
    Planning::Once,
);

const EDGE_PAIRS_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/edge_pairs.sql"),
    &[ColumnType::Id, ColumnType::Id],
    Planning::Once,
);

const ROLE_NAMES_QUERY: Template = Template::new(
    include_str!("../../../sql/queries/role_names.sql"),
    &[ColumnType::Text],
    Planning::Once,
);

/// The keys whose absence is worth a notice, and what every turn then reads as.
const ABSENT: [(&str, &str); 6] = [
    ("session_id", "one session"),
    ("role", "role user"),
    ("phase", "phase exploration"),
    ("salience", "salience 0.5"),
    ("created_at", "no time"),
    ("content_text", "no content"),
];

/// Names of roles that applications use, and what each means.
const USUAL_ROLES: [(&str, Role); 6] = [
    ("ai", Role::Assistant),
    ("bot", Role::Assistant),
    ("developer", Role::System),
    ("function", Role::Tool),
    ("human", Role::User),
    ("model", Role::Assistant),
];

/// Unknown names of roles that a notice lists.
const LISTED_ROLES: usize = 16;

/// Compute an expression for graph_check.
const EVALUATE: &str = include_str!("../../../sql/queries/evaluate.sql");
const EVALUATE_ROW: &str = include_str!("../../../sql/queries/evaluate_row.sql");

/// The counts of graph_check, by the name of the finding.
const COUNTS: [(&str, &str); 17] = [
    ("turns", include_str!("../../../sql/queries/count/turns.sql")),
    ("duplicate_turns", include_str!("../../../sql/queries/count/duplicate_turns.sql")),
    ("dangling_edges", include_str!("../../../sql/queries/count/dangling_edges.sql")),
    (
        "shared_missing_parents",
        include_str!("../../../sql/queries/count/shared_missing_parents.sql"),
    ),
    ("self_loops", include_str!("../../../sql/queries/count/self_loops.sql")),
    ("unknown_edge_types", include_str!("../../../sql/queries/count/unknown_edge_types.sql")),
    ("unknown_phases", include_str!("../../../sql/queries/count/unknown_phases.sql")),
    ("unknown_roles", include_str!("../../../sql/queries/count/unknown_roles.sql")),
    ("odd_saliences", include_str!("../../../sql/queries/count/odd_saliences.sql")),
    (
        "malformed_content_hashes",
        include_str!("../../../sql/queries/count/malformed_content_hashes.sql"),
    ),
    ("contents_not_text", include_str!("../../../sql/queries/count/contents_not_text.sql")),
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

/// The graph as its tables are named now.
pub struct Graph {
    /// Its name in attestations.
    pub name: String,
    /// What a slice reads by.
    pub statements: GraphStatements,
    /// The statements of slices: without and with facts, then the same with tokens.
    slicing: [OnceCell<SliceStatements>; 4],
    turns: BoundTable,
    /// The edges table, where there is one.
    edges: Option<BoundTable>,
    /// Edges that the turns table stores.
    parents: Vec<ParentColumn>,
    turns_text: TableText,
    /// What edges are read from: the edges table, and the turns table once for each of `parents`.
    sources: Vec<TableText>,
    /// The mapping of `embedding`, as given to `bind_tables`.
    embedding: Option<Value>,
    /// The role that bound the tables; `None` of the default ones.
    binder: Option<pg_sys::Oid>,
    /// The call of `bind_tables` that binds them again.
    command: String,
    /// The transaction that wrote the binding; `None` of the default tables.
    writer: Option<pg_sys::TransactionId>,
    catalog_writers: CatalogWriters,
}

/// An edge that each row of the turns table may store: from the turn of this id to the row's turn.
struct ParentColumn {
    parent: BoundColumn,
    edge_type: EdgeType,
}

/// What a graph is resolved from.
pub struct GraphTables<'a> {
    /// The name of the binding.
    pub binding: &'a str,
    /// The turns table.
    pub turns: pg_sys::Oid,
    /// The edges table; without one, edges are in the turns table.
    pub edges: Option<pg_sys::Oid>,
    /// The mapping of the columns of both, as given to `bind_tables`.
    pub columns: &'a Value,
    /// What the columns are resolved by.
    pub reading: MappingReading<'a>,
    /// The role that binds or bound them; `None` of the default tables, which nobody binds.
    pub binder: Option<pg_sys::Oid>,
}

/// What the columns of a graph are resolved by.
#[derive(Clone, Copy)]
pub enum MappingReading<'a> {
    /// The recognised names: the tables have every column.
    Default,
    /// The mapping as given; the extension is in this schema.
    Given(&'a str),
    /// The mapping as it was resolved when it was bound.
    Resolved(&'a Value),
}

impl<'a> MappingReading<'a> {
    fn of(self, columns: Option<&'a Map<String, Value>>) -> Mapping<'a> {
        match self {
            MappingReading::Default => Mapping::of_columns(columns),
            MappingReading::Given(schema) => Mapping::given(columns, schema),
            MappingReading::Resolved(_) => Mapping::resolved(columns),
        }
    }
}

/// What a notice of `bind_tables` says: the fact, and the command that does better.
pub struct Advice {
    /// The message.
    pub message: String,
    /// The hint.
    pub hint: String,
}

impl GraphTables<'_> {
    /// The call of `bind_tables` that binds them, with this value at a place of the mapping of `part`.
    fn command(&self, part: &str, change: Option<(&str, Value)>) -> String {
        self.command_with(part, change)
    }

    /// As [`GraphTables::command`], with any number of values.
    fn command_with<'a>(
        &self,
        part: &str,
        changes: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> String {
        let mut columns = self.columns.as_object().cloned().unwrap_or_default();
        for (place, value) in changes {
            let part = columns.entry(part).or_insert_with(|| Value::Object(Map::new()));
            if let Some(part) = part.as_object_mut() {
                with_value(part, place, value);
            }
        }
        let table =
            |oid, word: &str| literal_of(&relation::typed_name(oid).unwrap_or(word.to_owned()));
        let mut arguments = vec![table(self.turns, "turns")];
        arguments.extend(self.edges.map(|edges| table(edges, "edges")));
        // Without a mapping it is another graph than with an empty one.
        if !(columns.is_empty() && self.columns.is_null()) {
            arguments.push(format!("columns => {}", literal(&Value::Object(columns))));
        }
        if self.binding != DEFAULT_GRAPH {
            arguments.push(format!("name => {}", literal_of(self.binding)));
        }
        format!("SELECT graph_kernel.bind_tables({})", arguments.join(", "))
    }

    /// The same for tables whose edges are in a column of the turns table.
    fn command_with_parents(&self) -> String {
        let id = self.columns.get("turns").and_then(|turns| turns.get("id"));
        let parent = match id {
            Some(Value::Object(_)) => json!({ "expression": "graph_turn_id(my_column)" }),
            _ => "my_column".into(),
        };
        let parents = json!([{ "parent": parent, "edge_type": "reply" }]);
        let command = self.command("turns", Some((PARENTS, parents)));
        format!("{command} with the column that names the parent")
    }
}

thread_local! {
    /// The graphs that were read, by the name of their binding.
    static CURRENT: RefCell<HashMap<String, Rc<SessionCache<Graph>>>> = RefCell::default();
}

impl Graph {
    /// The graph that is bound under this name; under [`DEFAULT_GRAPH`] the default tables while nothing is bound. Its
    /// tables stay locked AccessShare to the transaction's end. Raises 42501 before that where the current role has no
    /// right to one of them.
    ///
    /// # Errors
    /// 42704 when there is none; 42P01, 42703, 42804, 42809 when the tables are not what a graph needs.
    pub fn named(binding: &str) -> Result<Rc<Self>, SqlError> {
        memory::check();
        if binding.len() > MAX_NAME_BYTES {
            return Err(not_found(binding));
        }
        let cache = CURRENT.with_borrow_mut(|graphs| {
            if !graphs.contains_key(binding) {
                graphs.insert(binding.to_owned(), Rc::new(SessionCache::new()));
            }
            Rc::clone(&graphs[binding])
        });
        if let Some(graph) = cache.get() {
            graph.tables().for_each(relation::check_rights);
            graph.tables().for_each(relation::lock_shared);
        }
        // Taking the locks accepts the invalidations of changes that were committed before.
        let graph = cache.get_or_compute(|| Self::resolve_bound(binding));
        match &graph {
            // Roles gain and lose rights without an invalidation of the tables.
            Ok(graph) if let Err(error) = graph.check_binder() => return Err(error),
            Ok(graph) if graph.has_expressions() => fixed_settings::fix(&fixed_settings::COMPUTING),
            Ok(_) => {}
            Err(_) => {
                CURRENT.with_borrow_mut(|graphs| graphs.remove(binding));
            }
        }
        graph
    }

    /// Whether the current role has a right to each table that is bound under this name, as [`Graph::named`] asks for;
    /// also where there is none.
    pub fn has_rights(binding: &str) -> bool {
        let tables = match Binding::named(binding) {
            Some(Binding { turns, edges, .. }) => [Some(turns), edges],
            None => DEFAULT_TABLES.map(|name| relation::find(c"public", name)),
        };
        tables.into_iter().flatten().all(relation::has_rights)
    }

    fn resolve_bound(binding: &str) -> Result<Self, SqlError> {
        match Self::binding(binding)? {
            Some(Binding { graph, turns, edges, columns, resolved, binder, writer, .. }) => {
                let tables = [turns].into_iter().chain(edges);
                tables.clone().for_each(relation::check_rights);
                tables.for_each(relation::lock_shared);
                let (columns, resolved) = (&mapping(columns.as_ref())?, &mapping(Some(&resolved))?);
                let reading = MappingReading::Resolved(resolved);
                let binder = Some(binder);
                let tables = GraphTables { binding, turns, edges, columns, reading, binder };
                let graph = Self::resolve(graph.to_string(), &tables)?;
                Ok(Graph { writer, ..graph })
            }
            None => {
                let turns = default_table(DEFAULT_TABLES[0])?;
                let edges = Some(default_table(DEFAULT_TABLES[1])?);
                let (columns, reading) = (&Value::Null, MappingReading::Default);
                let binder = None;
                let tables = GraphTables { binding, turns, edges, columns, reading, binder };
                Self::resolve(DEFAULT_GRAPH.to_owned(), &tables)
            }
        }
    }

    /// The binding of this name; `None` for the default tables.
    ///
    /// # Errors
    /// 42704 when there is none; 55000 when it was bound in a database that this one is a copy of.
    fn binding(name: &str) -> Result<Option<Binding>, SqlError> {
        let binding = Binding::named(name);
        match &binding {
            None if name != DEFAULT_GRAPH => Err(not_found(name)),
            Some(copied) if copied.is_copied => Err(bound_elsewhere(name, copied)?),
            _ => Ok(binding),
        }
    }

    /// The name in attestations of the graph that is bound under this name, without looking at its tables.
    ///
    /// # Errors
    /// 42704 when there is none; 55000 when it was bound in a database that this one is a copy of.
    pub fn attested_name(binding: &str) -> Result<String, SqlError> {
        let binding = Self::binding(binding)?;
        Ok(binding.map_or_else(|| DEFAULT_GRAPH.to_owned(), |binding| binding.graph.to_string()))
    }

    /// The tables.
    pub fn tables(&self) -> impl Iterator<Item = pg_sys::Oid> {
        self.bound_tables().map(|bound| bound.table.oid)
    }

    /// The turns table.
    pub fn turns_table(&self) -> pg_sys::Oid {
        self.turns.table.oid
    }

    fn bound_tables(&self) -> impl Iterator<Item = &BoundTable> {
        [&self.turns].into_iter().chain(&self.edges)
    }

    /// The relations whose change changes the graph: the tables, their partitions, the table of the binding, and
    /// pg_namespace, since the default tables are found by name.
    pub fn relations(&self) -> Vec<pg_sys::Oid> {
        let mut relations = vec![BINDING.oid(), pg_sys::NamespaceRelationId];
        for bound in self.bound_tables() {
            relations.push(bound.table.oid);
            relations.extend(&bound.partitions);
        }
        relations
    }

    /// Checks that the tables have the partitions that they had when the graph was looked up. Attaching one takes no lock
    /// that a reader's conflicts with, so a statement that is planned later reads more than one that was planned before.
    ///
    /// # Errors
    /// 55000.
    pub fn check_partitions(&self) -> Result<(), SqlError> {
        let has_changed =
            |bound: &BoundTable| relation::partitions(bound.table.oid) != bound.partitions;
        if self.bound_tables().any(has_changed) { Err(partitions_changed()) } else { Ok(()) }
    }

    /// The graph these tables make, with this name in attestations.
    ///
    /// # Errors
    /// As [`Graph::named`]; 22023, 42P17, 0A000 for a bad mapping.
    pub fn resolve(name: String, tables: &GraphTables<'_>) -> Result<Self, SqlError> {
        let mut given = tables_mapping(tables.columns)?;
        let embedding = turns_part(&mut given).remove(embedding::KEY);
        let columns = match tables.reading {
            MappingReading::Resolved(resolved) => resolved,
            _ => tables.columns,
        };
        let columns = tables_mapping(columns)?;
        let part = |part: &str| tables.reading.of(columns.get(part).and_then(Value::as_object));
        let turns_command = |change: Option<(&str, Value)>| tables.command("turns", change);
        let edges_command = |change: Option<(&str, Value)>| tables.command("edges", change);
        let rules = TableRules {
            part: "turns",
            word: Word::GraphTables,
            columns: TURN_COLUMNS,
            expressions: true,
            command: &turns_command,
        };
        let mut turns = BoundTable::resolve(tables.turns, &rules, part("turns"))?;
        let given = |key| columns.get("turns").and_then(|turns| turns.get(key));
        let parents = resolve_parents(&turns, tables, &rules, part("turns"), given(PARENTS))?;
        let roles = resolve_roles(tables, given(ROLES))?;
        if let Some(role) = turns.columns.get_mut("role") {
            if role.stored.is_none() && !roles.is_empty() {
                return Err(bad_mapping(
                    &format!("\"{ROLES}\" needs a column, or an expression, for \"role\""),
                    &tables.command("turns", Some(("role", "my_column".into()))),
                ));
            }
            role.read_as = roles.into_iter().map(|(name, role)| (name, role.name())).collect();
        }
        let rules =
            TableRules { part: "edges", columns: EDGE_COLUMNS, command: &edges_command, ..rules };
        let edges = tables.edges.map(|edges| BoundTable::resolve(edges, &rules, part("edges")));
        let edges = edges.transpose()?;
        if edges.is_none() && (parents.is_empty() || columns.contains_key("edges")) {
            return Err(bad_mapping(
                "there is neither an edges table nor parents",
                &tables.command_with_parents(),
            ));
        }
        let turns_text = turns.in_statements("turns", "t");
        let sources = edges.iter().map(|edges| edges.in_statements("edges", "e"));
        let sources: Vec<TableText> =
            sources.chain(parents.iter().map(|parent| parent.source(&turns))).collect();
        let fill = |template| fill(template, &[], &[&turns_text], &sources, false);
        let statements = GraphStatements {
            edges: fill(&EDGES_QUERY),
            content_chars: fill(&CONTENT_CHARS_QUERY),
            turn_ids: fill(&TURN_IDS_QUERY),
            edge_pairs: fill(&EDGE_PAIRS_QUERY),
        };
        let slicing = Default::default();
        Ok(Graph {
            name,
            statements,
            slicing,
            turns,
            edges,
            parents,
            turns_text,
            sources,
            embedding,
            binder: tables.binder,
            command: tables.command("turns", None),
            writer: None,
            catalog_writers: CatalogWriters::default(),
        })
    }

    /// What the mapping leaves out without saying so, as graph of these tables whose turns have these names of roles; the
    /// hint is one command that says all of it. `None` where nothing is left out.
    pub fn advice(&self, names: &BTreeSet<String>, tables: &GraphTables<'_>) -> Option<Advice> {
        let given = tables.columns.get("turns");
        let is_absent = |key: &str| {
            let says = given.is_some_and(|given| given.get(key).is_some());
            self.turns.columns[key].stored.is_none() && !says
        };
        let (mut messages, mut tasks, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        let absent: Vec<_> = ABSENT.into_iter().filter(|(key, _)| is_absent(key)).collect();
        if !absent.is_empty() {
            let (keys, read): (Vec<&str>, Vec<&str>) = absent.into_iter().unzip();
            messages.push(format!(
                "no column was found for {}: every turn reads as {}",
                keys.join(", "),
                read.join(", ")
            ));
            tasks.push("Name a column or an expression for each, or null where there is none");
            changes.extend(keys.into_iter().map(|key| (key, Value::Null)));
        }
        let content = &self.turns.columns["content_text"];
        if let (true, Some(content)) = (is_absent("content_hash"), content.index_key()) {
            messages.push("no content hash is stored: an edit of a content is not noticed".into());
            let expression = format!("graph_content_hash({content})");
            changes.push(("content_hash", json!({ "expression": expression })));
        }
        if let Some((message, roles)) = self.unknown_roles(names) {
            messages.push(message);
            tasks.push("Say what the names of roles mean");
            changes.push((ROLES, Value::Object(roles)));
        }
        let command = tables.command_with("turns", changes);
        (!messages.is_empty()).then(|| Advice {
            message: messages.join("; "),
            hint: match tasks.is_empty() {
                true => format!("{command};"),
                false => format!("{}: {command};", tasks.join(". ")),
            },
        })
    }

    /// The statement that reads names of roles; `None` where none are stored.
    pub fn role_names(&self) -> Option<Statement> {
        let stored = self.turns.columns["role"].stored.is_some();
        stored.then(|| self.statement(&ROLE_NAMES_QUERY, &[]))
    }

    /// What to say of those of these names of roles that are not known, and a mapping that says what they mean; `None`
    /// where all are known.
    fn unknown_roles(&self, names: &BTreeSet<String>) -> Option<(String, Map<String, Value>)> {
        let is_known =
            |name: &str| Role::ALL.iter().any(|role| role.name().eq_ignore_ascii_case(name));
        let unknown: Vec<&String> = names.iter().filter(|name| !is_known(name)).collect();
        if unknown.is_empty() {
            return None;
        }
        let mut listed: Vec<String> =
            unknown.iter().take(LISTED_ROLES).map(|name| quoted(name)).collect();
        if unknown.len() > LISTED_ROLES {
            listed.push("…".to_owned());
        }
        let role = &self.turns.columns["role"];
        let mut roles: Map<String, Value> =
            role.read_as.iter().map(|(name, role)| (name.clone(), Value::from(*role))).collect();
        let before = roles.len();
        roles.extend(USUAL_ROLES.into_iter().filter_map(|(name, role)| {
            let is_stored = unknown.iter().any(|stored| stored.eq_ignore_ascii_case(name));
            is_stored.then(|| (name.to_owned(), role.name().into()))
        }));
        if roles.len() == before {
            roles.insert("my_name".to_owned(), Role::User.name().into());
        }
        let listed = listed.join(", ");
        Some((format!("names of roles that are not known are read as user: {listed}"), roles))
    }

    /// Whether the binding, what the catalog says of the tables, or the rights of `role` and of the binder were written by a
    /// transaction that is not over for the active snapshot, or by this one: then the rows that are read, the names and
    /// types that they are read by, and whoever may read them may be of states that never were one.
    pub fn catalog_is_newer(&self, role: pg_sys::Oid) -> bool {
        let tables = self
            .bound_tables()
            .flat_map(|bound| bound.partitions.iter().copied().chain([bound.table.oid]));
        let enums = self.enums().flat_map(writers_of_enum);
        self.catalog_writers.are_newer(tables, enums.chain(self.writer))
            || role_writers::are_newer(&[role, self.binder.unwrap_or(role)])
    }

    /// Checks that the role that bound the tables may read all that is read of them.
    ///
    /// # Errors
    /// 42501.
    pub fn check_binder(&self) -> Result<(), SqlError> {
        let Some(binder) = self.binder else { return Ok(()) };
        for bound in self.bound_tables() {
            let is_turns = bound.table.oid == self.turns.table.oid;
            let read = || {
                let parents = self.parents.iter().map(|parent| &parent.parent);
                let columns = bound.columns.values().chain(parents.filter(|_| is_turns));
                columns.flat_map(|column| bound.raw_columns(column)).map(|raw| raw.number).collect()
            };
            check_binder(binder, bound.table.oid, Use::Read, read, || self.command.clone())?;
        }
        Ok(())
    }

    /// Checks that a column of the turns table may be written as this key: no other key is read from it, and the role
    /// that bound the tables may write it.
    ///
    /// # Errors
    /// 42809, 42501.
    pub fn check_written(&self, key: &str) -> Result<(), SqlError> {
        let written = self.turns.raw_columns(&self.turns.columns[key]);
        let numbers: Vec<i16> = written.iter().map(|raw| raw.number).collect();
        let reads = |column: &BoundColumn| {
            self.turns.raw_columns(column).iter().any(|raw| numbers.contains(&raw.number))
        };
        let parents = self.parents.iter().map(|parent| ("parents", &parent.parent));
        let others = self.turns.columns.iter().map(|(other, column)| (*other, column));
        let other = others.chain(parents).find(|(other, column)| *other != key && reads(column));
        if let Some((other, _)) = other {
            return Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!(
                    "{key} is bound to a column that {other} is read from, and cannot be written"
                ),
            )
            .word(Word::GraphTables)
            .hint(format!(
                "Bind \"{key}\" to a column of its own with graph_kernel.bind_tables."
            )));
        }
        let Some(binder) = self.binder else { return Ok(()) };
        check_binder(binder, self.turns.table.oid, Use::Update, || numbers, || self.command.clone())
    }

    /// The embedding column as it is now: types and operators can be created and dropped without an
    /// invalidation of the tables.
    ///
    /// # Errors
    /// 42703, 42804, 42883 when there is none that can be searched; 22023 for a bad mapping.
    pub fn embedding(&self) -> Result<EmbeddingColumn, SqlError> {
        let embedding = EmbeddingColumn::resolve(&self.turns.table, self.embedding.as_ref())?;
        if let Some(binder) = self.binder {
            let read = || vec![embedding.number];
            check_binder(binder, self.turns.table.oid, Use::Read, read, || self.command.clone())?;
        }
        Ok(embedding)
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

    /// A key of the turns table as an expression over the alias t.
    ///
    /// # Errors
    /// 42703 when it is not stored.
    pub fn stored_expression(&self, key: &str) -> Result<String, SqlError> {
        let column = &self.turns.columns[key];
        match column.stored {
            Some(_) => Ok(column.expression("t")),
            None => Err(self.not_stored(key)),
        }
    }

    /// The name of a column of the turns table that can be written.
    ///
    /// # Errors
    /// 42703 when there is none; 55000 where an expression stands for it.
    pub fn turn_column(&self, key: &str) -> Result<&str, SqlError> {
        match &self.turns.columns[key].stored {
            Some(ColumnSource::Column { name, .. }) => Ok(name),
            None => Err(self.not_stored(key)),
            Some(ColumnSource::Expression(expression)) => Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "{key} is bound to the expression {}, and cannot be written",
                    expression.text
                ),
            )
            .word(Word::GraphTables)
            .hint(format!(
                "To store it, bind \"{key}\" to a column of its own with graph_kernel.bind_tables."
            ))),
        }
    }

    fn not_stored(&self, key: &str) -> SqlError {
        let table = self.turns.table.qualified_name();
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!("table {table} has no column for {key}"),
        )
        .word(Word::GraphTables)
        .hint(match self.name.as_str() {
            DEFAULT_GRAPH => format!("ALTER TABLE {table} ADD COLUMN {key} text;"),
            _ => format!(
                "ALTER TABLE {table} ADD COLUMN {key} text; then bind the tables again, or name what holds it, with \
                 graph_kernel.bind_tables."
            ),
        })
    }

    /// The session of a turn over the alias t, as it is stored, and its type; `None` where none is.
    pub fn session(&self) -> Option<(String, pg_sys::Oid)> {
        let column = &self.turns.columns["session_id"];
        let base_type = column.base_type()?;
        // As text, a uuid could not be found by an index.
        let stored = column.expression("t");
        let stored = match base_type {
            pg_sys::UUIDOID => {
                stored.trim_end_matches("::pg_catalog.text").to_owned() + "::pg_catalog.uuid"
            }
            _ => stored,
        };
        Some((stored, base_type))
    }

    /// Whether a value is computed by an expression, which may raise an error on a row.
    pub fn has_expressions(&self) -> bool {
        self.keys().any(|(_, column)| column.is_expression())
    }

    /// Whether a column is an enum, whose labels can be renamed without touching the tables.
    pub fn has_enum(&self) -> bool {
        self.enums().next().is_some()
    }

    /// The types of the columns that are enums.
    fn enums(&self) -> impl Iterator<Item = pg_sys::Oid> {
        let raw = self.bound_tables().flat_map(|bound| {
            let columns = bound.columns.values();
            columns.flat_map(|column| bound.raw_columns(column))
        });
        raw.map(|raw| raw.base_type).filter(|base_type| relation::is_enum(*base_type))
    }

    /// Every value that is read of a row, by its place in a mapping.
    fn keys(&self) -> impl Iterator<Item = (String, &BoundColumn)> {
        let parents = self.parents.iter().enumerate();
        let parents = parents.map(|(number, parent)| (parent_place(number), &parent.parent));
        let tables = [("turns", Some(&self.turns)), ("edges", self.edges.as_ref())].into_iter();
        let columns = tables.flat_map(|(part, bound)| {
            let columns = bound.into_iter().flat_map(|bound| &bound.columns);
            columns.map(move |(key, column)| (format!("{part}.{key}"), column))
        });
        columns.chain(parents)
    }

    /// What SQL code needs to query the graph: each table's OID, its name as it stands in a FROM clause, the columns,
    /// and the columns as expressions over the alias t (turns) or e (edges). With edges in the turns table, `edges`
    /// stands for a subquery that has all of them. Also the indexes that the graph is read by, the mapping as it was
    /// resolved, and the places in it that hold expressions.
    pub fn description(&self) -> Value {
        let mut turns = self.turns.resolved_mapping();
        if !self.parents.is_empty() {
            turns.insert(
                PARENTS.to_owned(),
                self.parents.iter().map(ParentColumn::mapped).collect(),
            );
        }
        let roles = &self.turns.columns["role"].read_as;
        if !roles.is_empty() {
            let roles = roles.iter().map(|(name, role)| (name.clone(), Value::from(*role)));
            turns.insert(ROLES.to_owned(), Value::Object(roles.collect()));
        }
        let mut resolved = json!({ "turns": turns });
        if let Some(edges) = &self.edges {
            resolved["edges"] = edges.resolved_mapping().into();
        }
        let expressions = self.keys().filter(|(_, column)| column.is_expression());
        json!({
            "turns": self.turns.description("t"),
            "edges": match (&self.edges, self.parents.as_slice()) {
                (Some(edges), []) => edges.description("e"),
                _ => self.description_of_sources(),
            },
            "tables": self.tables().map(pg_sys::Oid::to_u32).collect::<Vec<_>>(),
            "indexes": self.indexes(),
            "expressions": expressions.map(|(place, _)| place).collect::<Vec<_>>(),
            "resolved": resolved,
        })
    }

    fn description_of_sources(&self) -> Value {
        let template = Template {
            text: "[[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e]]",
            columns: &[],
            planning: Planning::Once,
        };
        let from = self.statement(&template, &[]).into_text();
        let columns = json!({ "parent": "parent", "child": "child", "edge_type": "edge_type" });
        let expressions =
            json!({ "parent": "e.parent", "child": "e.child", "edge_type": "e.edge_type" });
        json!({ "from": format!("({from})"), "columns": columns, "expressions": expressions })
    }

    /// The indexes that the graph is read by: by the id, by each end of an edge, by session and time.
    fn indexes(&self) -> Vec<Value> {
        let key = |column: &BoundColumn| column.index_key();
        let turns = &self.turns;
        let index = |name: &str,
                     bound: &BoundTable,
                     unique: bool,
                     keys: Vec<Option<String>>,
                     include: BTreeSet<&str>| {
            let keys: Vec<String> = keys.into_iter().flatten().collect();
            let include: Vec<String> = include.into_iter().map(relation::quote_as_needed).collect();
            let include: Vec<&String> =
                include.iter().filter(|column| !keys.contains(column)).collect();
            json!({
                "name": name, "rel": bound.table.oid.to_u32(), "is_unique": unique, "keys": keys, "include": include,
                "typed": keys.iter().map(|key| relation::with_escapes(key)).collect::<Vec<_>>(),
            })
        };
        let id = &turns.columns["id"];
        let by_id = index("index_turn_id", turns, true, vec![key(id)], self.read_with_ids());
        let mut indexes = vec![by_id];
        if let Some(edges) = &self.edges {
            let [parent, child, edge_type] =
                ["parent", "child", "edge_type"].map(|name| &edges.columns[name]);
            for (name, ends) in
                [("index_edge_parent", [parent, child]), ("index_edge_child", [child, parent])]
            {
                let include = raw_columns_of_expressions(edges, &ends);
                let keys =
                    vec![key(ends[0]), key(ends[1]), edge_type.column_name().and(key(edge_type))];
                indexes.push(index(name, edges, false, keys, include));
            }
        }
        // The child of such an edge is the row's turn, found by its id.
        for ParentColumn { parent, .. } in &self.parents {
            let include = raw_columns_of_expressions(turns, &[parent, id]);
            indexes.push(index(
                "index_edge_parent",
                turns,
                false,
                vec![key(parent), key(id)],
                include,
            ));
        }
        let [session, time] = ["session_id", "created_at"].map(|name| &turns.columns[name]);
        if session.stored.is_some() && time.stored.is_some() {
            indexes.push(index(
                "index_session",
                turns,
                false,
                vec![key(session), key(time)],
                BTreeSet::new(),
            ));
        }
        indexes
    }

    /// The columns that the index by ids should hold too, so that finding a turn's parents and scoring it read the
    /// index alone. A text or JSON value inside an expression may be too long for an index.
    fn read_with_ids(&self) -> BTreeSet<&str> {
        let turns = &self.turns;
        let parents = self.parents.iter().map(|parent| &parent.parent);
        let id = &turns.columns["id"];
        let ids: Vec<&BoundColumn> = [id].into_iter().chain(parents.clone()).collect();
        let mut columns = raw_columns_of_expressions(turns, &ids);
        columns.extend(parents.filter_map(BoundColumn::column_name));
        let scored = ["phase", "salience"].map(|name| &turns.columns[name]);
        let raw = |column| turns.raw_columns(column).into_iter();
        // Without all ids in it, the index alone is never enough.
        let all_ids = ids
            .iter()
            .all(|c| !c.is_expression() || raw(c).all(|raw| columns.contains(raw.name.as_str())));
        if !all_ids {
            return BTreeSet::new();
        }
        if scored
            .iter()
            .all(|c| !c.is_expression() || raw(c).all(|raw| relation::is_short(raw.type_oid)))
        {
            columns.extend(scored.into_iter().flat_map(raw).map(|raw| raw.name.as_str()));
        }
        columns
    }
}

/// The columns that those of these that are expressions are computed from, where an index can hold them: a JSON value,
/// or a text that is not an id, may be too long for one, and then its row could not be inserted.
fn raw_columns_of_expressions<'a>(
    bound: &'a BoundTable,
    columns: &[&'a BoundColumn],
) -> BTreeSet<&'a str> {
    let expressions = columns.iter().filter(|column| column.is_expression());
    let raw = expressions
        .flat_map(|column| bound.raw_columns(column).into_iter().map(|raw| (*column, raw)));
    let raw: Vec<_> = raw.collect();
    let fits = raw.iter().all(|(column, raw)| {
        let is_text =
            matches!(raw.base_type, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID);
        let is_id = column.index_key().is_some_and(|key| key.contains("graph_turn_id("));
        relation::is_short(raw.base_type) || is_text && is_id
    });
    if !fits {
        return BTreeSet::new();
    }
    raw.iter().map(|(_, raw)| raw.name.as_str()).collect()
}

impl ParentColumn {
    /// The turns table as a source of these edges.
    fn source(&self, turns: &BoundTable) -> TableText {
        let columns = [
            ("parent", self.parent.expression("e")),
            ("child", turns.columns["id"].expression("e")),
            ("edge_type", format!("'{}'::pg_catalog.text", self.edge_type.name())),
        ];
        let computes = self.parent.is_expression() || turns.columns["id"].is_expression();
        turns.in_statements_with("edges", "e", BTreeMap::from(columns), computes)
    }

    fn mapped(&self) -> Value {
        json!({ "parent": self.parent.mapped(), EDGE_TYPE: self.edge_type.name() })
    }
}

/// The place of an element of `parents` in a mapping.
fn parent_place(number: usize) -> String {
    format!("turns.{PARENTS}[{number}].parent")
}

fn resolve_parents(
    turns: &BoundTable,
    tables: &GraphTables<'_>,
    rules: &TableRules<'_>,
    mapping: Mapping<'_>,
    given: Option<&Value>,
) -> Result<Vec<ParentColumn>, SqlError> {
    let bad = || {
        let types: Vec<String> =
            EdgeType::ALL.iter().map(|t| format!("\"{}\"", t.name())).collect();
        bad_mapping(
            &format!(
                "\"{PARENTS}\" must be an array of at most {MAX_PARENTS} objects {{\"parent\": …, \"edge_type\": …}}, \
                 the type one of {}",
                types.join(", ")
            ),
            &tables.command_with_parents(),
        )
    };
    let given = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(given) => {
            given.as_array().filter(|parents| parents.len() <= MAX_PARENTS).ok_or_else(bad)?
        }
    };
    let resolve = |(number, element): (usize, &Value)| {
        let element = element.as_object().filter(|element| element.len() == 2).ok_or_else(bad)?;
        let edge_type =
            element.get(EDGE_TYPE).and_then(Value::as_str).and_then(EdgeType::from_name);
        let (Some(mapped), Some(edge_type)) = (element.get("parent"), edge_type) else {
            return Err(bad());
        };
        let place = format!("{PARENTS}[{number}].parent");
        let parent = PARENT_COLUMN.resolve(&turns.table, rules, mapping, Some(mapped), &place)?;
        Ok(ParentColumn { parent, edge_type })
    };
    given.iter().enumerate().map(resolve).collect()
}

/// The names of roles that a mapping adds, each in ASCII lower case, and what each means.
fn resolve_roles(
    tables: &GraphTables<'_>,
    given: Option<&Value>,
) -> Result<Vec<(String, Role)>, SqlError> {
    let bad = |what: &str| {
        let example = json!({ "human": "user", "ai": "assistant" });
        bad_mapping(what, &tables.command("turns", Some((ROLES, example))))
    };
    let given = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(given) => given.as_object().filter(|roles| roles.len() <= MAX_ROLES),
    };
    let fits = |name: &String| name.len() <= MAX_ROLE_BYTES;
    let role = |(name, role): (&String, &Value)| {
        let role = Role::from_name(role.as_str()?)?;
        Some((name.to_ascii_lowercase(), role))
    };
    let roles = given.filter(|given| given.keys().all(fits));
    let roles = roles.and_then(|given| given.iter().map(role).collect::<Option<Vec<_>>>());
    let Some(mut roles) = roles else {
        let names: Vec<String> = Role::ALL.iter().map(|r| format!("\"{}\"", r.name())).collect();
        return Err(bad(&format!(
            "\"{ROLES}\" must be an object of at most {MAX_ROLES} names, each of at most {MAX_ROLE_BYTES} bytes, whose \
             values are {}",
            names.join(", ")
        )));
    };
    roles.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    match roles.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(bad(&format!("\"{ROLES}\" has {} twice", quoted(&pair[0].0)))),
        None => Ok(roles),
    }
}

fn not_found(name: &str) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        format!("there is no graph {}", quoted(name)),
    )
    .word(Word::GraphNotFound)
    .hint("SELECT name FROM graph_kernel.bindings WHERE is_current; then SET graph_kernel.graph = '…'.")
}

/// The error for a binding that came with a copy of the database: its name is that of the original's graph.
fn bound_elsewhere(name: &str, copied: &Binding) -> Result<SqlError, SqlError> {
    let columns = &mapping(copied.columns.as_ref())?;
    let (turns, edges, binder) = (copied.turns, copied.edges, Some(copied.binder));
    let reading = MappingReading::Default;
    let tables = GraphTables { binding: name, turns, edges, columns, reading, binder };
    Ok(SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "the graph {} was bound in another database, of which this one is a copy",
            quoted(name)
        ),
    )
    .word(Word::GraphTables)
    .hint(format!("Run {}.", tables.command("turns", None))))
}

fn bad_mapping(what: &str, command: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, what)
        .word(Word::InvalidBinding)
        .hint(format!("Run {command}."))
}

/// The part of a mapping for the turns table.
fn turns_part(columns: &mut Map<String, Value>) -> Map<String, Value> {
    match columns.remove("turns") {
        Some(Value::Object(turns)) => turns,
        _ => Map::new(),
    }
}

fn default_table(name: &'static std::ffi::CStr) -> Result<pg_sys::Oid, SqlError> {
    relation::lock_by_name(c"public", name).ok_or_else(|| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("relation \"public.{}\" does not exist", replaced(name.to_bytes())),
        )
        .word(Word::GraphTables)
        .hint(match Binding::names().first() {
            Some(graph) => format!(
                "No tables are bound as {}. For another graph run SET graph_kernel.graph = {};",
                literal_of(DEFAULT_GRAPH),
                literal_of(graph)
            ),
            None => "Run SELECT graph_kernel.create_tables(), or bind tables of your own with \
                     SELECT graph_kernel.bind_tables('turns', 'edges')."
                .to_owned(),
        })
    })
}

fn tables_mapping(mapping: &Value) -> Result<Map<String, Value>, SqlError> {
    let keys =
        |rules: &[ColumnRule]| rules.iter().map(|rule| rule.key).collect::<Vec<_>>().join(", ");
    let wrong = |message: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .word(Word::InvalidBinding)
            .hint(format!(
                "Give columns as '{{\"turns\": {{\"id\": \"…\"}}, \"edges\": {{\"parent\": \"…\"}}}}'. Keys of turns: \
                 {}, {}, {PARENTS}, {ROLES}; of edges: {}.",
                keys(TURN_COLUMNS),
                embedding::KEY,
                keys(EDGE_COLUMNS)
            ))
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
            rules.iter().any(|rule| rule.key == key)
                || (part == "turns" && [embedding::KEY, PARENTS, ROLES].contains(&key))
        };
        if let Some(key) = columns.keys().find(|key| !known(key)) {
            return Err(wrong(format!("column mapping of \"{part}\" has no key \"{key}\"")));
        }
    }
    Ok(tables.clone())
}
