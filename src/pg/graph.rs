//! The bound graph: which tables, which columns, which statements.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use super::binding::{self, Binding};
use super::embedding::{self, EmbeddingColumn};
use super::error::SqlError;
use super::private_table;
use super::relation::{self, Table, catalog_generation, quote};

/// What a column holds.
#[derive(Clone, Copy)]
enum Kind {
    Id,
    Text,
    Integer,
    Number,
    Time,
}

/// A column of the graph: the key it has in `bind_tables`, the names it is recognised by, what it
/// holds, whether a table may lack it.
struct ColumnRule {
    key: &'static str,
    names: &'static [&'static str],
    kind: Kind,
    optional: bool,
}

const fn rule(key: &'static str, names: &'static [&'static str], kind: Kind) -> ColumnRule {
    ColumnRule { key, names, kind, optional: false }
}

const fn optional(key: &'static str, names: &'static [&'static str], kind: Kind) -> ColumnRule {
    ColumnRule { key, names, kind, optional: true }
}

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

/// The statements of a slice, with the graph's names filled in.
pub struct Statements {
    /// sql/queries/scored.sql
    pub scored: String,
    /// sql/queries/neighbours.sql
    pub neighbours: String,
    /// sql/queries/nearby.sql
    pub nearby: String,
    /// sql/queries/parents.sql
    pub parents: String,
    /// sql/queries/children.sql
    pub children: String,
    /// sql/queries/turns.sql
    pub turns: String,
    /// sql/queries/edges.sql
    pub edges: String,
}

/// One of the graph's two tables, checked.
struct BoundTable {
    table: Table,
    partitions: Vec<pg_sys::Oid>,
    columns: BTreeMap<&'static str, BoundColumn>,
}

struct BoundColumn {
    /// The column's name and type, or `None` where the table has no such column.
    stored: Option<(String, pg_sys::Oid)>,
    kind: Kind,
}

/// The graph as its tables are named now.
pub struct Graph {
    /// Its name in attestations.
    pub name: String,
    turns: BoundTable,
    edges: BoundTable,
    /// What a slice asks.
    pub statements: Statements,
    /// The mapping of `embedding`, as given to `bind_tables`.
    embedding: Option<Value>,
}

/// The name in attestations of the graph in the default tables.
const DEFAULT_GRAPH: &str = "default";

struct Kept {
    generation: u64,
    name: String,
    turns: pg_sys::Oid,
    edges: pg_sys::Oid,
    columns: Value,
    graph: Rc<Graph>,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

impl Graph {
    /// The bound graph, or the default tables while nothing is bound. Both tables stay locked
    /// AccessShare to the transaction's end.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when the tables are not what a graph needs.
    pub fn current() -> Result<Rc<Self>, SqlError> {
        let (name, turns, edges, columns) = match Binding::current() {
            Some(binding) => {
                relation::lock_shared(binding.turns);
                relation::lock_shared(binding.edges);
                (binding.graph.to_string(), binding.turns, binding.edges, binding.columns)
            }
            None => (
                DEFAULT_GRAPH.to_owned(),
                default_table(c"memory_turns")?,
                default_table(c"memory_turn_edges")?,
                Value::Null,
            ),
        };
        let kept = KEPT.with_borrow(|kept| {
            let kept = kept.as_ref()?;
            let same = kept.generation == catalog_generation()
                && kept.name == name
                && kept.turns == turns
                && kept.edges == edges
                && kept.columns == columns;
            same.then(|| Rc::clone(&kept.graph))
        });
        if let Some(graph) = kept {
            return Ok(graph);
        }
        let generation = catalog_generation();
        let graph = Rc::new(Self::resolve(name.clone(), turns, edges, &columns)?);
        let kept = Kept { generation, name, turns, edges, columns, graph: Rc::clone(&graph) };
        KEPT.set(Some(kept));
        Ok(graph)
    }

    /// The name of the bound graph, without looking at its tables.
    pub fn current_name() -> String {
        Binding::current().map_or_else(|| DEFAULT_GRAPH.to_owned(), |b| b.graph.to_string())
    }

    /// The two tables.
    pub fn tables(&self) -> [pg_sys::Oid; 2] {
        [self.turns.table.oid, self.edges.table.oid]
    }

    /// Everything whose change changes the graph: the tables, their partitions, the binding, and
    /// the schemas, by whose names the default tables are found.
    pub fn relations(&self) -> Vec<pg_sys::Oid> {
        let mut relations = vec![private_table::oid(binding::TABLE), pg_sys::NamespaceRelationId];
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
        let turns = BoundTable::resolve(turns, "turns", TURN_COLUMNS, mapping.get("turns"))?;
        let edges = BoundTable::resolve(edges, "edges", EDGE_COLUMNS, mapping.get("edges"))?;
        let embedding = mapping.get("turns").and_then(|turns| turns.get(embedding::KEY)).cloned();
        let fill = |template| fill(template, &[], &turns, &edges);
        let statements = Statements {
            scored: fill(include_str!("../../sql/queries/scored.sql")),
            neighbours: fill(include_str!("../../sql/queries/neighbours.sql")),
            nearby: fill(include_str!("../../sql/queries/nearby.sql")),
            parents: fill(include_str!("../../sql/queries/parents.sql")),
            children: fill(include_str!("../../sql/queries/children.sql")),
            turns: fill(include_str!("../../sql/queries/turns.sql")),
            edges: fill(include_str!("../../sql/queries/edges.sql")),
        };
        Ok(Graph { name, turns, edges, statements, embedding })
    }

    /// The embedding column as it is now: types and operators come and go without a word to the
    /// tables.
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
    pub fn statement(&self, template: &str, extra: &[(&str, &str)]) -> String {
        fill(template, extra, &self.turns, &self.edges)
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
        let table = |bound: &BoundTable, alias: &str| {
            let (mut columns, mut expressions) = (Map::new(), Map::new());
            for (key, column) in &bound.columns {
                let name = column.stored.as_ref().map(|(name, _)| name.clone());
                columns.insert(key.to_string(), name.into());
                expressions.insert(key.to_string(), column.expression(alias).into());
            }
            json!({
                "oid": bound.table.oid.to_u32(),
                "from": bound.from(),
                "columns": columns,
                "expressions": expressions,
            })
        };
        json!({ "turns": table(&self.turns, "t"), "edges": table(&self.edges, "e") })
    }
}

impl BoundTable {
    fn resolve(
        oid: pg_sys::Oid,
        part: &'static str,
        rules: &[ColumnRule],
        mapping: Option<&Value>,
    ) -> Result<Self, SqlError> {
        let table = Table::lock(oid).ok_or_else(|| {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("the bound {part} table was dropped"),
            )
            .detail("GRAPH_TABLES")
            .hint("Run SELECT graph_kernel.bind_tables('turns', 'edges').")
        })?;
        let partitions = check_storage(&table)?;
        let mut columns = BTreeMap::new();
        for rule in rules {
            columns.insert(rule.key, rule.resolve(&table, mapping.and_then(|m| m.get(rule.key)))?);
        }
        Ok(BoundTable { table, partitions, columns })
    }

    /// The table in a FROM clause. ONLY keeps inheritance children out, which are not checked.
    fn from(&self) -> String {
        let only = if self.table.kind == pg_sys::RELKIND_RELATION { "ONLY " } else { "" };
        format!("{only}{}", self.table.qualified_name())
    }
}

impl ColumnRule {
    fn resolve(&self, table: &Table, mapped: Option<&Value>) -> Result<BoundColumn, SqlError> {
        let named = |name: &str| table.columns.iter().find(|column| column.name == name);
        let (found, wanted) = match mapped {
            Some(Value::Null) if !matches!(self.kind, Kind::Id) => return Ok(self.absent()),
            Some(Value::String(name)) => (named(name), quote(name)),
            Some(_) => return Err(self.bad_mapping()),
            None => {
                let names: Vec<String> = self.names.iter().map(|name| quote(name)).collect();
                (self.names.iter().find_map(|name| named(name)), names.join(" or "))
            }
        };
        match found {
            None if self.optional && mapped.is_none() => Ok(self.absent()),
            None => Err(graph_error(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("table {} has no column {wanted}", table.qualified_name()),
                self,
            )),
            Some(column) if !self.kind.accepts(column.base_type) => Err(graph_error(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "column {} of table {} has type {}, not {}",
                    quote(&column.name),
                    table.qualified_name(),
                    relation::type_name(column.base_type),
                    self.kind.wanted(),
                ),
                self,
            )),
            Some(column) => Ok(BoundColumn {
                stored: Some((column.name.clone(), column.base_type)),
                kind: self.kind,
            }),
        }
    }

    fn absent(&self) -> BoundColumn {
        BoundColumn { stored: None, kind: self.kind }
    }

    fn bad_mapping(&self) -> SqlError {
        let null = if matches!(self.kind, Kind::Id) { "" } else { " or null" };
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("column mapping of \"{}\" must be a column name{null}", self.key),
        )
        .detail("INVALID_BINDING")
    }
}

impl Kind {
    fn accepts(self, oid: pg_sys::Oid) -> bool {
        let integer = matches!(oid, pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID);
        match self {
            Kind::Id => oid == pg_sys::UUIDOID,
            Kind::Text => {
                matches!(
                    oid,
                    pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::UUIDOID
                ) || relation::is_enum(oid)
            }
            Kind::Integer => integer,
            Kind::Number => integer || matches!(oid, pg_sys::FLOAT4OID | pg_sys::FLOAT8OID),
            Kind::Time => matches!(oid, pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Kind::Id => "uuid",
            Kind::Text => "text, varchar, uuid or an enum",
            Kind::Integer => "an integer type",
            Kind::Number => "real, double precision or an integer type",
            Kind::Time => "timestamp or timestamptz",
        }
    }
}

impl BoundColumn {
    /// The column as an expression of the type that the store reads. None of the conversions can
    /// fail on a stored value, and none runs code of a user's: an enum's owner could give it a cast
    /// to text, so its own output function is called.
    fn expression(&self, alias: &str) -> String {
        let cast = match self.kind {
            Kind::Text => "::pg_catalog.text",
            Kind::Integer => "::pg_catalog.int8",
            Kind::Number => "::pg_catalog.float8",
            Kind::Id | Kind::Time => "",
        };
        match &self.stored {
            Some((name, base_type)) => {
                let column = format!("{alias}.{}", quote(name));
                match *base_type {
                    pg_sys::TEXTOID => column,
                    oid if relation::is_enum(oid) => {
                        format!("pg_catalog.textin(pg_catalog.enum_out({column}))")
                    }
                    _ => format!("{column}{cast}"),
                }
            }
            None if cast.is_empty() => "NULL::pg_catalog.timestamptz".to_owned(),
            None => format!("NULL{cast}"),
        }
    }
}

/// Fills the graph's names into a statement of sql/queries: `{turns}` and `{edges}` are the
/// tables, `{t.key}` and `{e.key}` columns of theirs. In one pass: what is filled in comes from
/// names that users choose and is not looked at again.
fn fill(template: &str, extra: &[(&str, &str)], turns: &BoundTable, edges: &BoundTable) -> String {
    let value = |placeholder: &str| match placeholder.split_once('.') {
        None if extra.iter().any(|(key, _)| *key == placeholder) => {
            let found = extra.iter().find(|(key, _)| *key == placeholder);
            found.map_or_else(String::new, |(_, text)| (*text).to_owned())
        }
        None if placeholder == "turns" => turns.from(),
        None => edges.from(),
        Some((alias, key)) => {
            let table = if alias == "t" { turns } else { edges };
            table.columns[key].expression(alias)
        }
    };
    let mut parts = template.split('{');
    let mut statement = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (placeholder, text) = part.split_once('}').expect("placeholders are closed");
        statement.push_str(&value(placeholder));
        statement.push_str(text);
    }
    statement
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

fn graph_error(code: PgSqlErrorCode, message: String, rule: &ColumnRule) -> SqlError {
    let part = if TURN_COLUMNS.iter().any(|r| std::ptr::eq(r, rule)) { "turns" } else { "edges" };
    SqlError::new(code, message).detail("GRAPH_TABLES").hint(format!(
        "Run SELECT graph_kernel.bind_tables('turns', 'edges', \
         '{{\"{part}\": {{\"{}\": \"my_column\"}}}}') with the names your tables use.",
        rule.key
    ))
}

/// Checks how a table is stored and returns what is below it. Temporary, unlogged and foreign data
/// can change or vanish without the snapshot knowing.
fn check_storage(table: &Table) -> Result<Vec<pg_sys::Oid>, SqlError> {
    let wrong = |what: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, what)
            .detail("GRAPH_TABLES")
            .hint("Bind permanent plain tables, or partitioned tables made of them.")
    };
    let name = table.qualified_name();
    match table.kind {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE if !table.permanent => {
            Err(wrong(format!("table {name} is not permanent")))
        }
        pg_sys::RELKIND_RELATION => Ok(Vec::new()),
        pg_sys::RELKIND_PARTITIONED_TABLE => relation::partitions(table.oid).map_err(|leaf| {
            wrong(format!("partition {leaf} of table {name} is not a permanent plain table"))
        }),
        _ => Err(wrong(format!("{name} is not a table"))),
    }
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
