//! The bound graph: which tables, which columns, which statements.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use super::binding::Binding;
use super::error::SqlError;
use super::relation::{self, Table, catalog_generation, quote};
use super::spi::{self, Param};

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
    ColumnRule {
        key,
        names,
        kind,
        optional: false,
    }
}

const fn optional(key: &'static str, names: &'static [&'static str], kind: Kind) -> ColumnRule {
    ColumnRule {
        key,
        names,
        kind,
        optional: true,
    }
}

const TURN_COLUMNS: &[ColumnRule] = &[
    rule("id", &["id"], Kind::Id),
    rule("session_id", &["session_id", "conversation_id"], Kind::Text),
    rule("role", &["role"], Kind::Text),
    rule("phase", &["trajectory_phase", "phase"], Kind::Text),
    rule("salience", &["salience_score", "salience"], Kind::Number),
    rule("trajectory_depth", &["trajectory_depth"], Kind::Integer),
    rule(
        "trajectory_sibling_order",
        &["trajectory_sibling_order"],
        Kind::Integer,
    ),
    rule(
        "trajectory_homogeneity",
        &["trajectory_homogeneity"],
        Kind::Number,
    ),
    rule(
        "trajectory_temporal",
        &["trajectory_temporal"],
        Kind::Number,
    ),
    rule(
        "trajectory_complexity",
        &["trajectory_complexity"],
        Kind::Number,
    ),
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
    columns: BTreeMap<&'static str, Option<BoundColumn>>,
}

struct BoundColumn {
    name: String,
    base_type: pg_sys::Oid,
    kind: Kind,
}

/// The graph as its tables are named now.
pub struct Graph {
    turns: BoundTable,
    edges: BoundTable,
    /// What a slice asks.
    pub statements: Statements,
}

struct Kept {
    generation: u64,
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
        let (turns, edges, columns) = match Binding::current() {
            Some(binding) => {
                relation::lock_shared(binding.turns);
                relation::lock_shared(binding.edges);
                (binding.turns, binding.edges, binding.columns)
            }
            None => (
                default_table(c"memory_turns")?,
                default_table(c"memory_turn_edges")?,
                Value::Null,
            ),
        };
        let kept = KEPT.with_borrow(|kept| {
            let kept = kept.as_ref()?;
            let same = kept.generation == catalog_generation()
                && kept.turns == turns
                && kept.edges == edges
                && kept.columns == columns;
            same.then(|| Rc::clone(&kept.graph))
        });
        if let Some(graph) = kept {
            return Ok(graph);
        }
        let generation = catalog_generation();
        let graph = Rc::new(Self::resolve(turns, edges, &columns)?);
        KEPT.set(Some(Kept {
            generation,
            turns,
            edges,
            columns,
            graph: Rc::clone(&graph),
        }));
        Ok(graph)
    }

    /// The graph these tables make, with this column mapping.
    ///
    /// # Errors
    /// As [`Graph::current`]; 22023 for a bad mapping.
    pub fn resolve(
        turns: pg_sys::Oid,
        edges: pg_sys::Oid,
        mapping: &Value,
    ) -> Result<Self, SqlError> {
        let mapping = tables_mapping(mapping)?;
        let turns = BoundTable::resolve(turns, "turns", TURN_COLUMNS, mapping.get("turns"))?;
        let edges = BoundTable::resolve(edges, "edges", EDGE_COLUMNS, mapping.get("edges"))?;
        let fill = |template| fill(template, &turns, &edges);
        let statements = Statements {
            scored: fill(include_str!("../../sql/queries/scored.sql")),
            parents: fill(include_str!("../../sql/queries/parents.sql")),
            children: fill(include_str!("../../sql/queries/children.sql")),
            turns: fill(include_str!("../../sql/queries/turns.sql")),
            edges: fill(include_str!("../../sql/queries/edges.sql")),
        };
        Ok(Graph {
            turns,
            edges,
            statements,
        })
    }

    /// What SQL code needs to query the graph: each table's OID, its name as it stands in a FROM
    /// clause, and the name of each column, or null.
    pub fn description(&self) -> Value {
        let table = |bound: &BoundTable| {
            let columns: Map<String, Value> = bound
                .columns
                .iter()
                .map(|(key, column)| {
                    (
                        key.to_string(),
                        column.as_ref().map(|c| c.name.clone()).into(),
                    )
                })
                .collect();
            json!({ "oid": bound.table.oid.to_u32(), "from": bound.from(), "columns": columns })
        };
        json!({ "turns": table(&self.turns), "edges": table(&self.edges) })
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
            graph_error(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("the bound {part} table was dropped"),
            )
        })?;
        check_storage(&table)?;
        let mut columns = BTreeMap::new();
        for rule in rules {
            columns.insert(
                rule.key,
                rule.resolve(&table, mapping.and_then(|m| m.get(rule.key)))?,
            );
        }
        Ok(BoundTable { table, columns })
    }

    /// The table in a FROM clause. ONLY keeps inheritance children out, which are not checked.
    fn from(&self) -> String {
        let only = if self.table.kind == pg_sys::RELKIND_RELATION {
            "ONLY "
        } else {
            ""
        };
        format!("{only}{}", self.table.qualified_name())
    }

    /// The column as an expression of the type that the store reads.
    fn expression(&self, key: &str, alias: &str) -> String {
        match &self.columns[key] {
            Some(column) => column.expression(alias),
            None => "NULL::pg_catalog.text".to_owned(),
        }
    }
}

impl ColumnRule {
    fn resolve(
        &self,
        table: &Table,
        mapped: Option<&Value>,
    ) -> Result<Option<BoundColumn>, SqlError> {
        let found = match mapped {
            Some(Value::String(name)) => table.columns.iter().find(|column| column.name == *name),
            Some(_) => {
                return Err(SqlError::new(
                    PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                    format!("column mapping of \"{}\" must be a column name", self.key),
                )
                .detail("INVALID_BINDING"));
            }
            None => self
                .names
                .iter()
                .find_map(|name| table.columns.iter().find(|column| column.name == *name)),
        };
        let Some(column) = found else {
            if self.optional && mapped.is_none() {
                return Ok(None);
            }
            let wanted = match mapped {
                Some(Value::String(name)) => quote(name),
                _ => self
                    .names
                    .iter()
                    .map(|n| quote(n))
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            return Err(graph_error(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("table {} has no column {wanted}", table.qualified_name()),
            ));
        };
        if !self.kind.accepts(column.base_type) {
            return Err(graph_error(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "column {} of table {} has type {}, not {}",
                    quote(&column.name),
                    table.qualified_name(),
                    relation::type_name(column.base_type),
                    self.kind.wanted(),
                ),
            ));
        }
        Ok(Some(BoundColumn {
            name: column.name.clone(),
            base_type: column.base_type,
            kind: self.kind,
        }))
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
    /// Only widening casts: none of them can fail on a stored value.
    fn expression(&self, alias: &str) -> String {
        let column = format!("{alias}.{}", quote(&self.name));
        let cast = match (self.kind, self.base_type) {
            (Kind::Text, pg_sys::TEXTOID) | (Kind::Id | Kind::Time, _) => return column,
            (Kind::Text, _) => "text",
            (Kind::Integer, _) => "int8",
            (Kind::Number, _) => "float8",
        };
        format!("{column}::pg_catalog.{cast}")
    }
}

/// Fills the graph's names into a statement of sql/queries: `{turns}` and `{edges}` are the
/// tables, `{t.key}` and `{e.key}` columns of theirs.
fn fill(template: &str, turns: &BoundTable, edges: &BoundTable) -> String {
    let mut statement = template
        .replace("{turns}", &turns.from())
        .replace("{edges}", &edges.from());
    for (alias, bound) in [("t", turns), ("e", edges)] {
        for key in bound.columns.keys() {
            let placeholder = format!("{{{alias}.{key}}}");
            statement = statement.replace(&placeholder, &bound.expression(key, alias));
        }
    }
    statement
}

fn default_table(name: &'static std::ffi::CStr) -> Result<pg_sys::Oid, SqlError> {
    relation::lock_by_name(c"public", name).ok_or_else(|| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!(
                "relation \"public.{}\" does not exist",
                name.to_string_lossy()
            ),
        )
        .detail("GRAPH_TABLES")
        .hint(
            "Run SELECT graph_kernel.create_tables(), or bind tables of your own with \
             SELECT graph_kernel.bind_tables('turns', 'edges').",
        )
    })
}

fn graph_error(code: PgSqlErrorCode, message: String) -> SqlError {
    SqlError::new(code, message).detail("GRAPH_TABLES").hint(
        "Run SELECT graph_kernel.bind_tables('turns', 'edges', \
         '{\"turns\": {\"phase\": \"my_column\"}}') with the names your tables use.",
    )
}

/// Temporary, unlogged and foreign data can change or vanish without the snapshot knowing.
fn check_storage(table: &Table) -> Result<(), SqlError> {
    let wrong = |what: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, what)
            .detail("GRAPH_TABLES")
            .hint("Bind permanent plain tables, or partitioned tables made of them.")
    };
    match table.kind {
        _ if !table.permanent => Err(wrong(format!(
            "table {} is not permanent",
            table.qualified_name()
        ))),
        pg_sys::RELKIND_RELATION => Ok(()),
        pg_sys::RELKIND_PARTITIONED_TABLE => match odd_leaf(table.oid) {
            Some(leaf) => Err(wrong(format!(
                "partition {leaf} of table {} is not a permanent plain table",
                table.qualified_name()
            ))),
            None => Ok(()),
        },
        _ => Err(wrong(format!("{} is not a table", table.qualified_name()))),
    }
}

fn odd_leaf(root: pg_sys::Oid) -> Option<String> {
    let mut leaf = None;
    let statement = include_str!("../../sql/queries/odd_leaf.sql");
    spi::query(statement, &[Param::Oid(root)], |row| {
        leaf = row.text(0, |name| name.map(str::to_owned));
        ControlFlow::Break(())
    });
    leaf
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
        let columns = columns.as_object().ok_or_else(|| {
            wrong(format!(
                "column mapping of \"{part}\" must be a JSON object"
            ))
        })?;
        if let Some(key) = columns
            .keys()
            .find(|key| rules.iter().all(|rule| rule.key != **key))
        {
            return Err(wrong(format!(
                "column mapping of \"{part}\" has no key \"{key}\""
            )));
        }
    }
    Ok(tables.clone())
}
