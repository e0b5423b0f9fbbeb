//! Storing conversations: each is copied into a temporary table in batches, and from there, in the same transaction,
//! into the tables of the graph, what is not there yet.

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::{ToSql, Type};
use postgres::{Client, Statement};
use serde_json::Value;

use crate::Failure;
use crate::database::{Database, in_words};

/// How many rows, and how many bytes of them, are held before they are sent.
const BATCH_MAX_ROWS: usize = 5_000;
const BATCH_MAX_BYTES: usize = 2 << 20;

/// Above this number of rows the planner needs statistics of the temporary table.
const ANALYZE_MIN_ROWS: i64 = 2_000;

const STAGE: &str = "CREATE TEMPORARY TABLE graph_kernel_import (n bigint, kind \"char\", message text, parent text, \
                     edge_type text, turn jsonb) ON COMMIT DELETE ROWS";

/// What a row in the temporary table is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RowKind {
    /// A turn, with the edge from its parent if it has one.
    Turn,
    /// A message that is not stored: what follows it follows its parent instead.
    Skipped,
    /// An edge alone: the message is the child.
    Edge,
}

pub(super) struct StagedRow {
    pub(super) kind: RowKind,
    pub(super) message: String,
    pub(super) parent: Option<String>,
    pub(super) edge_type: String,
    /// The columns of the turn, by the names of `graph_kernel.create_tables`.
    pub(super) turn: Value,
}

/// How messages get their turn ids.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ids {
    /// `graph_turn_id` of format, account, conversation and message.
    Derived,
    /// The ids of the file.
    Given,
}

/// Whose messages these are.
#[derive(Clone, Copy)]
pub(super) struct Conversation<'a> {
    pub(super) format: &'a str,
    pub(super) account: &'a str,
    pub(super) id: &'a str,
}

/// What was stored.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) turns: u64,
    pub(super) new_turns: u64,
    pub(super) new_edges: u64,
    /// Turns whose parent is neither in the file nor in the tables.
    pub(super) without_parent: u64,
}

/// Why a conversation was not stored.
pub(super) enum StoreError {
    /// The server refuses its values; nothing of it is stored.
    Values(String),
    Failed(Failure),
}

impl From<postgres::Error> for StoreError {
    fn from(error: postgres::Error) -> Self {
        // Data exceptions and violated constraints.
        let is_about_values = |code: &str| code.starts_with("22") || code.starts_with("23");
        if error.code().is_some_and(|code| is_about_values(code.code())) {
            StoreError::Values(in_words(&error))
        } else {
            StoreError::Failed(in_words(&error))
        }
    }
}

pub(super) struct Store {
    client: Client,
    statements: InsertStatements<Statement>,
    ids: Ids,
    batch: Vec<StagedRow>,
    batch_bytes: usize,
    /// Rows of the conversation so far.
    rows: i64,
    is_open: bool,
}

impl Store {
    pub(super) fn new(mut database: Database, ids: Ids) -> Result<Self, Failure> {
        let statements = InsertStatements::new(&mut database, ids)?;
        let mut client = database.client;
        let statements = client
            .batch_execute(STAGE)
            .and_then(|()| client.batch_execute("SET plan_cache_mode = force_custom_plan"))
            .and_then(|()| {
                Ok(InsertStatements {
                    turns: client.prepare(&statements.turns)?,
                    edges: statements.edges.map(|edges| client.prepare(&edges)).transpose()?,
                    without_parent: client.prepare(&statements.without_parent)?,
                })
            })
            .map_err(|error| in_words(&error))?;
        Ok(Store {
            client,
            statements,
            ids,
            batch: Vec::new(),
            batch_bytes: 0,
            rows: 0,
            is_open: false,
        })
    }

    /// Adds a row to the conversation.
    pub(super) fn add(&mut self, row: StagedRow) -> Result<(), Failure> {
        self.batch_bytes += row.message.len() + size_of_json(&row.turn);
        self.batch.push(row);
        if self.batch.len() >= BATCH_MAX_ROWS || self.batch_bytes >= BATCH_MAX_BYTES {
            self.send().map_err(|error| in_words(&error))?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), postgres::Error> {
        if !std::mem::replace(&mut self.is_open, true) {
            self.client.batch_execute("BEGIN")?;
        }
        let types = [Type::INT8, Type::CHAR, Type::TEXT, Type::TEXT, Type::TEXT, Type::JSONB];
        let copy =
            self.client.copy_in("COPY pg_temp.graph_kernel_import FROM STDIN (FORMAT binary)")?;
        let mut writer = BinaryCopyInWriter::new(copy, &types);
        for row in self.batch.drain(..) {
            self.rows += 1;
            let kind = match row.kind {
                RowKind::Turn => b't',
                RowKind::Skipped => b'p',
                RowKind::Edge => b'e',
            };
            let values: [&(dyn ToSql + Sync); 6] =
                [&self.rows, &(kind as i8), &row.message, &row.parent, &row.edge_type, &row.turn];
            writer.write(&values)?;
        }
        writer.finish()?;
        self.batch_bytes = 0;
        Ok(())
    }

    /// Stores the conversation, and commits unless this is only to be counted.
    pub(super) fn finish(
        &mut self,
        conversation: Conversation,
        commits: bool,
    ) -> Result<Counts, StoreError> {
        let counts = self.insert(conversation);
        if counts.is_ok() && commits {
            self.rows = 0;
            self.is_open = false;
            self.client.batch_execute("COMMIT")?;
        } else {
            self.abandon().map_err(StoreError::Failed)?;
        }
        counts
    }

    fn insert(&mut self, conversation: Conversation) -> Result<Counts, StoreError> {
        self.send()?;
        if self.rows >= ANALYZE_MIN_ROWS {
            self.client.batch_execute("ANALYZE pg_temp.graph_kernel_import")?;
        }
        let Conversation { format, account, id } = conversation;
        let session = format!("{format}:{account}:{id}");
        let key: [&(dyn ToSql + Sync); 3] = [&format, &account, &id];
        let key = match self.ids {
            Ids::Derived => &key[..],
            Ids::Given => &[],
        };
        // Two imports of one conversation wait for each other, so that each sees what the other has stored.
        self.client
            .execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&session])?;
        self.client.execute(DEDUPLICATE, &[])?;
        let statements = &self.statements;
        let turns = self.client.query_one(COUNT_TURNS, &[])?.get::<_, i64>(0) as u64;
        let stored = self.client.query_one(&statements.turns, key)?;
        let (new_turns, parents) = (stored.get::<_, i64>(0) as u64, stored.get::<_, i64>(1) as u64);
        let new_edges = match &statements.edges {
            Some(edges) => self.client.execute(edges, key)?,
            None => parents,
        };
        let without_parent =
            self.client.query_one(&statements.without_parent, key)?.get::<_, i64>(0) as u64;
        Ok(Counts { turns, new_turns, new_edges, without_parent })
    }

    /// Leaves the conversation out.
    pub(super) fn abandon(&mut self) -> Result<(), Failure> {
        self.batch.clear();
        self.batch_bytes = 0;
        self.rows = 0;
        if std::mem::take(&mut self.is_open) {
            self.client.batch_execute("ROLLBACK").map_err(|error| in_words(&error))?;
        }
        Ok(())
    }
}

/// About how long a value is in memory, in bytes.
fn size_of_json(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Object(object) => {
                object.iter().map(|(key, value)| key.len() + size_of_json(value)).sum()
            }
            _ => 0,
        }
}

/// Of messages with one id the first counts.
const DEDUPLICATE: &str = "DELETE FROM pg_temp.graph_kernel_import AS s USING pg_temp.graph_kernel_import AS f \
                           WHERE s.kind = 't' AND f.kind = 't' AND f.message = s.message AND f.n < s.n";

const COUNT_TURNS: &str = "SELECT count(*) FROM pg_temp.graph_kernel_import WHERE kind = 't'";

/// The statements that fill the tables of a graph, as texts or prepared. Their parameters are format, account and
/// conversation where ids are derived from them. The names in them are those of the catalog, quoted by the server.
struct InsertStatements<T> {
    /// Returns how many turns were stored, and how many of their parents.
    turns: T,
    /// None where the table of turns stores the edges.
    edges: Option<T>,
    without_parent: T,
}

/// A column of a bound table.
struct TargetColumn {
    name: String,
    /// Its type, and the type below that where it is a domain.
    type_name: String,
    base_type: String,
}

/// The keys of a binding with their names in `graph_kernel.create_tables`.
const KEYS: [(&str, &str); 13] = [
    ("session_id", "session_id"),
    ("role", "role"),
    ("phase", "trajectory_phase"),
    ("salience", "salience_score"),
    ("trajectory_depth", "trajectory_depth"),
    ("trajectory_sibling_order", "trajectory_sibling_order"),
    ("trajectory_homogeneity", "trajectory_homogeneity"),
    ("trajectory_temporal", "trajectory_temporal"),
    ("trajectory_complexity", "trajectory_complexity"),
    ("created_at", "created_at"),
    ("content_text", "content_text"),
    ("content_hash", "content_hash"),
    ("token_count", "token_count"),
];

const COLUMN: &str = "SELECT quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), \
                             format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL) \
                        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid \
                       WHERE a.attrelid = $1::bigint::oid AND a.attname = $2 AND NOT a.attisdropped";

/// Edges of the conversation as `links`, with turn ids; `{id:x}` is the turn id of the message x. Messages that are not
/// stored are skipped: what follows them follows their parents.
const LINKS: &str = "WITH RECURSIVE up AS ( \
        SELECT s.message, s.parent, s.edge_type, s.n FROM pg_temp.graph_kernel_import AS s \
         WHERE s.kind <> 'p' AND s.parent IS NOT NULL \
        UNION \
        SELECT up.message, p.parent, up.edge_type, up.n FROM up \
          JOIN pg_temp.graph_kernel_import AS p ON p.message = up.parent \
         WHERE p.kind = 'p' AND p.parent IS NOT NULL \
    ), links AS ( \
        SELECT {id:up.message} AS child, {id:up.parent} AS parent, up.edge_type, up.n FROM up \
         WHERE up.parent <> up.message \
           AND NOT EXISTS (SELECT FROM pg_temp.graph_kernel_import AS p WHERE p.kind = 'p' AND p.message = up.parent) \
    ) ";

impl InsertStatements<String> {
    fn new(database: &mut Database, ids: Ids) -> Result<Self, Failure> {
        let client = &mut database.client;
        let row = client
            .query_one(
                "SELECT graph_kernel.describe_graph(name), name \
                 FROM coalesce(nullif(current_setting('graph_kernel.graph', true), ''), 'default') AS name",
                &[],
            )
            .map_err(|error| in_words(&error))?;
        let (graph, name): (Value, String) = (row.get(0), row.get(1));
        let mut target = TargetTables { client, graph: &graph, name: &name };
        let with_ids = |text: &str| with_turn_ids(text, &database.schema, ids);

        let turns = target.name_of("turns")?;
        let id = target.needed("turns", "id")?.name;
        let mut names = vec![id.clone()];
        let mut values = vec![with_ids("{id:s.message}")];
        for (key, column) in KEYS {
            let Some(bound) = target.column("turns", key)? else { continue };
            let text = match (key, ids) {
                ("session_id", Ids::Derived) if bound.base_type == "uuid" => {
                    let schema = &database.schema;
                    format!(
                        "{schema}.graph_turn_id(json_build_array($1::text, $2::text, $3::text)::text)"
                    )
                }
                ("session_id", Ids::Derived) => {
                    "($1::text || ':' || $2::text || ':' || $3::text)".to_owned()
                }
                _ => format!("(s.turn ->> '{column}')"),
            };
            values.push(match bound.base_type.as_str() {
                "timestamp without time zone" => {
                    format!("({text}::timestamptz AT TIME ZONE 'UTC')::{}", bound.type_name)
                }
                _ => format!("{text}::{}", bound.type_name),
            });
            names.push(bound.name);
        }
        let links = with_ids(LINKS);
        let exists =
            |id_of: &str| format!("EXISTS (SELECT FROM {turns} AS t WHERE t.{id} = {id_of})");
        let own_edges = graph["resolved"]["edges"].is_object();
        let (mut joins, mut stored_parents) = (String::new(), "0".to_owned());
        if !own_edges {
            // A type without a column takes the first one.
            let parents = target.parent_columns()?;
            let types: Vec<&str> =
                parents.iter().map(|(_, edge_type)| edge_type.as_str()).collect();
            for (n, (column, edge_type)) in parents.iter().enumerate() {
                let is_of_column = if n == 0 {
                    let others = types[1..]
                        .iter()
                        .map(|name| format!("'{name}'"))
                        .collect::<Vec<_>>()
                        .join(", ");
                    if others.is_empty() {
                        "true".to_owned()
                    } else {
                        format!("l.edge_type NOT IN ({others})")
                    }
                } else {
                    format!("l.edge_type = '{edge_type}'")
                };
                let staged = with_ids(
                    "EXISTS (SELECT FROM pg_temp.graph_kernel_import AS i WHERE i.kind = 't' AND {id:i.message} = l.parent)",
                );
                joins.push_str(&format!(
                    " LEFT JOIN (SELECT DISTINCT ON (l.child) l.child, l.parent FROM links AS l \
                       WHERE {is_of_column} AND ({staged} OR {}) ORDER BY l.child, l.n) AS p{n} ON p{n}.child = s.id",
                    exists("l.parent")
                ));
                names.push(column.name.clone());
                values.push(format!("p{n}.parent::{}", column.type_name));
                stored_parents.push_str(&format!(" + count({})", column.name));
            }
        }
        values[0] = "s.id".to_owned();
        let returned = if own_edges { "1" } else { "*" };
        let turns_statement = format!(
            "{links}, stored AS (INSERT INTO {turns} ({}) SELECT {} FROM (SELECT {} AS id, s.n, s.turn \
             FROM pg_temp.graph_kernel_import AS s WHERE s.kind = 't') AS s{joins} \
             WHERE NOT {} ORDER BY s.n RETURNING {returned}) SELECT count(*), ({stored_parents})::bigint FROM stored",
            names.join(", "),
            values.join(", "),
            with_ids("{id:s.message}"),
            exists("s.id"),
        );
        let edges = if own_edges {
            let edges = target.name_of("edges")?;
            let parent = target.needed("edges", "parent")?.name;
            let child = target.needed("edges", "child")?.name;
            let (mut names, mut values) =
                (vec![parent.clone(), child.clone()], vec!["l.parent", "l.child"]);
            let mut same = format!("e.{parent} = l.parent AND e.{child} = l.child");
            let edge_type = target.column("edges", "edge_type")?;
            let typed = edge_type.map(|column| {
                same.push_str(&format!(" AND e.{}::text = l.edge_type", column.name));
                names.push(column.name);
                format!("l.edge_type::{}", column.type_name)
            });
            values.extend(typed.as_deref());
            Some(format!(
                "{links}INSERT INTO {edges} ({}) SELECT DISTINCT {} FROM links AS l WHERE {} AND {} \
                 AND NOT EXISTS (SELECT FROM {edges} AS e WHERE {same})",
                names.join(", "),
                values.join(", "),
                exists("l.parent"),
                exists("l.child"),
            ))
        } else {
            None
        };
        let without_parent = format!(
            "{links}SELECT count(DISTINCT l.child) FROM links AS l WHERE NOT {}",
            exists("l.parent")
        );
        Ok(InsertStatements { turns: turns_statement, edges, without_parent })
    }
}

/// The text with `{id:x}` replaced by the expression of x's turn id.
fn with_turn_ids(text: &str, schema: &str, ids: Ids) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{id:") {
        let (message, after) = after.split_once('}').expect("each {id: is closed");
        done.push_str(before);
        done.push_str(&match ids {
            Ids::Derived => format!(
                "{schema}.graph_turn_id(json_build_array($1::text, $2::text, $3::text, {message})::text)"
            ),
            Ids::Given => format!("{message}::uuid"),
        });
        rest = after;
    }
    done + rest
}

/// The tables of a graph.
struct TargetTables<'a> {
    client: &'a mut Client,
    graph: &'a Value,
    name: &'a str,
}

impl TargetTables<'_> {
    /// The table, with its schema, quoted.
    fn name_of(&mut self, part: &str) -> Result<String, Failure> {
        let oid = self.graph[part]["oid"].as_i64().unwrap_or_default();
        self.client
            .query_one("SELECT $1::bigint::oid::regclass::text", &[&oid])
            .map(|row| row.get(0))
            .map_err(|error| in_words(&error))
    }

    fn lookup(&mut self, part: &str, name: &str) -> Result<Option<TargetColumn>, Failure> {
        let oid = self.graph[part]["oid"].as_i64().unwrap_or_default();
        let row =
            self.client.query_opt(COLUMN, &[&oid, &name]).map_err(|error| in_words(&error))?;
        Ok(row.map(|row| TargetColumn {
            name: row.get(0),
            type_name: row.get(1),
            base_type: row.get(2),
        }))
    }

    /// The column of a key; None when it is not stored.
    fn column(&mut self, part: &str, key: &str) -> Result<Option<TargetColumn>, Failure> {
        let resolved = &self.graph["resolved"][part][key];
        if resolved["expression"].is_string() {
            return match key {
                // What can be computed, or is no part of a conversation, need not be written.
                "content_hash" | "phase" | "salience" | "token_count" => Ok(None),
                _ if key.starts_with("trajectory_") => Ok(None),
                _ => Err(self.refused(key)),
            };
        }
        match self.graph[part]["columns"][key].as_str() {
            Some(name) if !resolved.is_null() => self.lookup(part, name),
            _ => Ok(None),
        }
    }

    fn needed(&mut self, part: &str, key: &str) -> Result<TargetColumn, Failure> {
        self.column(part, key)?.ok_or_else(|| self.refused(key))
    }

    fn refused(&self, key: &str) -> Failure {
        format!(
            "graph {}: \"{key}\" is bound to an expression, so rows cannot be written; import into tables that store it \
             in a column, such as those of graph_kernel.create_tables",
            self.name
        )
    }

    /// The columns of the turns table that name a parent, with the type of the edge.
    fn parent_columns(&mut self) -> Result<Vec<(TargetColumn, String)>, Failure> {
        let mut columns = Vec::new();
        for parent in self.graph["resolved"]["turns"]["parents"].as_array().into_iter().flatten() {
            let name = parent["parent"].as_str().ok_or_else(|| self.refused("parents"))?;
            let column = self.lookup("turns", name)?.ok_or_else(|| self.refused("parents"))?;
            columns.push((column, parent["edge_type"].as_str().unwrap_or("default").to_owned()));
        }
        Ok(columns)
    }
}
