//! How a mapping is read: its columns, its edges in the turns table, its names of roles; and the command that binds
//! with another one.

use kernel::graph::edge::EdgeType;
use kernel::graph::turn::Role;
use kernel::json::quoted;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use super::follows::Follows;
use super::{Graph, ParentColumn};
use crate::pg::catalog::names::{self, literal_of};
use crate::pg::catalog::relation;
use crate::pg::catalog::writers::CatalogWriters;
use crate::pg::error::{SqlError, Word};
use crate::pg::guc::DEFAULT_GRAPH;
use crate::pg::private::binding::Binding;
use crate::pg::session::current_role;
use crate::pg::tables::bound_table::{
    BoundColumn, BoundTable, ColumnRule, Mapping, MappingChange, TableRules, TableText, ValueKind,
    by_type, literal, optional, required, rule,
};
use crate::pg::tables::place::Place;
use crate::pg::tables::{embedding, words};

pub(super) const TURN_COLUMNS: &[ColumnRule] = &[
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
    by_type(PAYLOAD, &[PAYLOAD], ValueKind::Json),
    by_type(OWNER, &[OWNER], ValueKind::Owner),
    by_type(VALID_UNTIL, &[VALID_UNTIL], ValueKind::Time),
];

/// The key of the message as its application sends it.
pub(super) const PAYLOAD: &str = "payload";

/// The key of whose turn it is.
pub const OWNER: &str = "owner";

/// The key of the last moment at which a search finds the turn.
pub const VALID_UNTIL: &str = "valid_until";

/// The key of edges that the turns table itself stores, and what its elements have.
pub(super) const PARENTS: &str = "parents";

const PARENT_COLUMN: ColumnRule = rule("parent", &[], ValueKind::Id);

pub(super) const EDGE_TYPE: &str = "edge_type";

/// How many of them a table may have: each is one more part of every statement that reads edges.
const MAX_PARENTS: usize = 16;

/// The key of edges of tables whose turns follow each other, and what it has.
pub(super) const FOLLOWS: &str = "follows";
pub(super) const SESSION: &str = "session";
pub(super) const ORDER: &str = "order";

const SESSION_COLUMN: ColumnRule = required(SESSION, &[], ValueKind::Session);

const ORDER_COLUMN: ColumnRule = required(ORDER, &[], ValueKind::Order);

/// How many keys it may have.
const MAX_ORDER: usize = 2;

/// The key of names of roles that the kernel does not know, and what each means.
pub(super) const ROLES: &str = "roles";

/// How many of them a mapping may have, and how long each may be.
pub(super) const MAX_ROLES: usize = 64;

pub(super) const MAX_ROLE_BYTES: usize = 63;

pub(super) const EDGE_COLUMNS: &[ColumnRule] = &[
    rule("parent", &["parent_turn_id"], ValueKind::Id),
    rule("child", &["child_turn_id"], ValueKind::Id),
    rule("edge_type", &["edge_type"], ValueKind::Text),
];

/// The key of a table of the same edges, which is asked for those into a turn.
pub(super) const EDGES_BY_CHILD: &str = "edges_by_child";

/// What a graph is resolved from.
pub struct GraphTables<'a> {
    /// The name of the binding.
    pub binding: &'a str,
    /// The turns table.
    pub turns: pg_sys::Oid,
    /// The edges table; without one, edges are in the turns table.
    pub edges: Option<pg_sys::Oid>,
    /// The table of the same edges that is asked for those into a turn, where it is not the edges table.
    pub edges_by_child: Option<pg_sys::Oid>,
    /// The mapping of the columns of both, as given to `bind_tables`.
    pub columns: &'a Value,
    /// What the columns are resolved by.
    pub reading: MappingReading<'a>,
    /// The role that binds or bound them; `None` of the default tables, which nobody binds.
    pub binder: Option<pg_sys::Oid>,
}

/// The query that shows the binding of this name.
pub(super) fn binding_query(name: &str) -> String {
    let name = literal_of(name);
    format!(
        "SELECT turns, edges, edges_by_child, columns FROM graph_kernel.binding \
         WHERE is_current AND name OPERATOR(pg_catalog.=) {name}"
    )
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

impl GraphTables<'_> {
    /// The call of `bind_tables` that binds them, with this value at a place of the mapping of `part`.
    pub(super) fn command(&self, part: &str, change: MappingChange) -> String {
        self.command_with(part, change)
    }

    /// As [`GraphTables::command`], with any number of values. Of what another role has bound it is the query that
    /// shows the binding: the tables may be of an owner whose code whoever binds them would run.
    pub(super) fn command_with(
        &self,
        part: &str,
        changes: impl IntoIterator<Item = (Place, Value)>,
    ) -> String {
        let is_bound = !matches!(self.reading, MappingReading::Given(_));
        if is_bound && self.binder.is_some_and(|binder| binder != current_role()) {
            return binding_query(self.binding);
        }
        let mut columns = self.columns.as_object().cloned().unwrap_or_default();
        for (place, value) in changes {
            let part = columns.entry(part).or_insert_with(|| Value::Object(Map::new()));
            if let Some(part) = part.as_object_mut() {
                place.put(part, value);
            }
        }
        if let Some(name) = self.edges_by_child.and_then(names::typed_name) {
            columns.insert(EDGES_BY_CHILD.to_owned(), name.into());
        }
        let table =
            |oid, word: &str| literal_of(&names::typed_name(oid).unwrap_or(word.to_owned()));
        let mut arguments = vec![table(self.turns, "<turns table>")];
        arguments.extend(self.edges.map(|edges| table(edges, "<edges table>")));
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
    pub(super) fn command_with_parents(&self) -> String {
        let id = self.columns.get("turns").and_then(|turns| turns.get("id"));
        let parent = match id {
            Some(Value::Object(_)) => json!({ "expression": "graph_turn_id(my_column)" }),
            _ => "my_column".into(),
        };
        let parents = json!([{ "parent": parent, "edge_type": "reply" }]);
        let command = self.command("turns", Some((Place::Key(PARENTS), parents)));
        format!(
            "{command} with the column that names the parent; where none does and a turn follows the one before it, \
            give \"{FOLLOWS}\" in place of \"{PARENTS}\""
        )
    }
}

impl Graph {
    /// The graph these tables make, with this name in attestations.
    ///
    /// # Errors
    /// As [`Graph::named`]; 22023, 42P17, 0A000 for a bad mapping.
    pub fn resolve(name: String, tables: &GraphTables<'_>) -> Result<Self, SqlError> {
        let mut given = tables_mapping(tables.columns)?;
        let mut of_turns = turns_part(&mut given);
        let [embedding, words] = [embedding::KEY, words::KEY].map(|key| of_turns.remove(key));
        let columns = match tables.reading {
            MappingReading::Resolved(resolved) => resolved,
            _ => tables.columns,
        };
        let columns = tables_mapping(columns)?;
        let part = |part: &str| tables.reading.of(columns.get(part).and_then(Value::as_object));
        let turns_command = |change: MappingChange| tables.command("turns", change);
        let edges_command = |change: MappingChange| tables.command("edges", change);
        let rules = TableRules {
            part: "turns",
            word: Word::GraphTables,
            columns: TURN_COLUMNS,
            expressions: tables.binder,
            command: &turns_command,
        };
        let mut turns = BoundTable::resolve(tables.turns, &rules, part("turns"))?;
        let given = |key| columns.get("turns").and_then(|turns| turns.get(key));
        let parents = resolve_parents(&turns, tables, &rules, part("turns"), given(PARENTS))?;
        let follows = resolve_follows(&turns, tables, &rules, part("turns"), given(FOLLOWS))?;
        let roles = resolve_roles(tables, given(ROLES))?;
        if let Some(role) = turns.columns.get_mut("role") {
            if role.stored.is_none() && !roles.is_empty() {
                return Err(bad_mapping(
                    &format!("\"{ROLES}\" needs a column, or an expression, for \"role\""),
                    &tables.command("turns", Some((Place::Key("role"), "my_column".into()))),
                ));
            }
            role.read_as = roles.into_iter().map(|(name, role)| (name, role.name())).collect();
        }
        let rules =
            TableRules { part: "edges", columns: EDGE_COLUMNS, command: &edges_command, ..rules };
        let edges = tables.edges.map(|edges| BoundTable::resolve(edges, &rules, part("edges")));
        let edges = edges.transpose()?;
        let by_child =
            tables.edges_by_child.map(|edges| BoundTable::resolve(edges, &rules, part("edges")));
        let by_child = by_child.transpose()?;
        if let Some(by_child) = &by_child {
            check_same_columns(edges.as_ref(), by_child, tables)?;
        }
        let has_none = parents.is_empty() && follows.is_none();
        if edges.is_none() && (has_none || columns.contains_key("edges")) {
            return Err(bad_mapping(
                &format!("there is neither an edges table nor \"{PARENTS}\" nor \"{FOLLOWS}\""),
                &tables.command_with_parents(),
            ));
        }
        let turns_text = turns.in_statements("turns", "t");
        let sources = edges
            .iter()
            .map(|edges| edges.in_statements("edges", "e").with_by_child(by_child.as_ref()));
        let sources: Vec<TableText> =
            sources.chain(parents.iter().map(|parent| parent.source(&turns))).collect();
        let following = follows.iter().map(|follows| follows.source(&turns));
        let sources = sources.into_iter().chain(following).collect();
        let mapped = embedding::mapped_to("my_column", embedding.as_ref());
        let embedding_command = tables.command("turns", Some((Place::Key(embedding::KEY), mapped)));
        let mapped = json!({ "column": "my_column", "configuration": "english" });
        let words_command = tables.command("turns", Some((Place::Key(words::KEY), mapped)));
        Ok(Graph {
            name,
            binding: tables.binding.to_owned(),
            kept: Default::default(),
            turns,
            edges,
            edges_by_child: by_child,
            parents,
            follows,
            turns_text,
            sources,
            embedding,
            words,
            binder: tables.binder,
            embedding_command,
            words_command,
            writers: Vec::new(),
            bound_at: Binding::none(),
            catalog_writers: CatalogWriters::default(),
        })
    }
}

/// The table that a mapping as given names as that of the same edges.
///
/// # Errors
/// 22023 where the mapping is bad; 42P01 where there is no such table.
pub fn edges_by_child(binding: &str, columns: &Value) -> Result<Option<pg_sys::Oid>, SqlError> {
    let columns = tables_mapping(columns)?;
    let Some(name) = columns.get(EDGES_BY_CHILD).and_then(Value::as_str) else { return Ok(None) };
    let missing = || {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("relation {} does not exist", quoted(name)),
        )
        .word(Word::GraphTables)
        .hint(format!(
            "Give \"{EDGES_BY_CHILD}\" of the graph {} with its schema: \
             '{{\"{EDGES_BY_CHILD}\": \"my_schema.my_table\"}}'.",
            literal_of(binding)
        ))
    };
    relation::find_typed(name)?.map(Some).ok_or_else(missing)
}

/// Checks that a table of the same edges has them in the same columns.
fn check_same_columns(
    edges: Option<&BoundTable>,
    by_child: &BoundTable,
    tables: &GraphTables<'_>,
) -> Result<(), SqlError> {
    let Some(edges) = edges else {
        return Err(bad_mapping(
            &format!("\"{EDGES_BY_CHILD}\" needs an edges table"),
            &tables.command_with_parents(),
        ));
    };
    let is_same = |(key, column): (&&str, &BoundColumn)| {
        by_child
            .columns
            .get(key)
            .is_some_and(|other| other.expression("e") == column.expression("e"))
    };
    if edges.columns.iter().all(is_same) {
        return Ok(());
    }
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        format!(
            "tables {} and {} have edges in different columns",
            edges.table.qualified_name(),
            by_child.table.qualified_name()
        ),
    )
    .word(Word::GraphTables)
    .hint("Give both tables the same columns, of the same types."))
}

fn resolve_parents(
    turns: &BoundTable,
    tables: &GraphTables<'_>,
    rules: &TableRules<'_>,
    mapping: Mapping<'_>,
    given: Option<&Value>,
) -> Result<Vec<ParentColumn>, SqlError> {
    let bad = || {
        bad_mapping(
            &format!(
                "\"{PARENTS}\" must be an array of at most {MAX_PARENTS} objects {{\"parent\": ..., \
                 \"edge_type\": ...}}, the type one of {}",
                edge_types()
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
        let place = Place::Parent(number);
        let parent = PARENT_COLUMN.resolve(&turns.table, rules, mapping, Some(mapped), place)?;
        Ok(ParentColumn { parent, edge_type })
    };
    given.iter().enumerate().map(resolve).collect()
}

fn resolve_follows(
    turns: &BoundTable,
    tables: &GraphTables<'_>,
    rules: &TableRules<'_>,
    mapping: Mapping<'_>,
    given: Option<&Value>,
) -> Result<Option<Follows>, SqlError> {
    let bad = || {
        let example = json!({ SESSION: "my_session", ORDER: ["my_column"], EDGE_TYPE: "reply" });
        bad_mapping(
            &format!(
                "\"{FOLLOWS}\" must be an object {{\"{SESSION}\": ..., \"{ORDER}\": [...], \"{EDGE_TYPE}\": ...}} \
                 with one or two keys of the order, the type one of {}",
                edge_types()
            ),
            &tables.command("turns", Some((Place::Key(FOLLOWS), example))),
        )
    };
    let given = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(given) => given.as_object().filter(|given| given.len() == 3).ok_or_else(bad)?,
    };
    let order = given.get(ORDER).and_then(Value::as_array);
    let order = order.filter(|order| (1..=MAX_ORDER).contains(&order.len())).ok_or_else(bad)?;
    let edge_type = given.get(EDGE_TYPE).and_then(Value::as_str).and_then(EdgeType::from_name);
    let (Some(session), Some(edge_type)) = (given.get(SESSION), edge_type) else {
        return Err(bad());
    };
    let resolve = |rule: &ColumnRule, mapped, place| {
        rule.resolve(&turns.table, rules, mapping, Some(mapped), place)
    };
    let session = resolve(&SESSION_COLUMN, session, Place::FollowsSession)?;
    let order = order.iter().enumerate();
    let order = order.map(|(number, key)| resolve(&ORDER_COLUMN, key, Place::FollowsOrder(number)));
    Ok(Some(Follows::new(session, order.collect::<Result<_, _>>()?, edge_type)))
}

/// The names of the types of edges, for messages.
fn edge_types() -> String {
    EdgeType::ALL.iter().map(|t| format!("\"{}\"", t.name())).collect::<Vec<_>>().join(", ")
}

/// The names of roles that a mapping adds, each in ASCII lower case, and what each means.
fn resolve_roles(
    tables: &GraphTables<'_>,
    given: Option<&Value>,
) -> Result<Vec<(String, Role)>, SqlError> {
    let bad = |what: &str| {
        let example = json!({ "human": "user", "ai": "assistant" });
        bad_mapping(what, &tables.command("turns", Some((Place::Key(ROLES), example))))
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

fn tables_mapping(mapping: &Value) -> Result<Map<String, Value>, SqlError> {
    let keys =
        |rules: &[ColumnRule]| rules.iter().map(|rule| rule.key).collect::<Vec<_>>().join(", ");
    let wrong = |message: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .word(Word::InvalidBinding)
            .hint(format!(
                "Give columns as '{{\"turns\": {{\"id\": \"...\"}}, \"edges\": {{\"parent\": \"...\"}}}}'. Keys of \
                 turns: {}, {}, {}, {PARENTS}, {FOLLOWS}, {ROLES}; of edges: {}. \"{EDGES_BY_CHILD}\" names a \
                 second table of edges.",
                keys(TURN_COLUMNS),
                embedding::KEY,
                words::KEY,
                keys(EDGE_COLUMNS)
            ))
    };
    let tables = match mapping {
        Value::Null => return Ok(Map::new()),
        Value::Object(tables) => tables,
        _ => return Err(wrong("column mapping must be a JSON object".to_owned())),
    };
    for (part, columns) in tables {
        if part == EDGES_BY_CHILD {
            if !matches!(columns, Value::Null | Value::String(_)) {
                return Err(wrong(format!("\"{EDGES_BY_CHILD}\" must be the name of a table")));
            }
            continue;
        }
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
                || (part == "turns"
                    && [embedding::KEY, words::KEY, PARENTS, FOLLOWS, ROLES].contains(&key))
        };
        if let Some(key) = columns.keys().find(|key| !known(key)) {
            return Err(wrong(format!("column mapping of \"{part}\" has no key \"{key}\"")));
        }
    }
    Ok(tables.clone())
}
