//! Storing conversations: each is copied into a temporary table in batches, and from there, in the same transaction,
//! into the tables of the graph, what is not there yet. The temporary tables end with the transaction.

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::{ToSql, Type};
use serde_json::Value;

use super::statements::{
    COUNT_TURNS, DEDUPLICATE, Ids, InsertStatements, MAX_SKIPS, SKIP, STAGES, Stages,
};
use crate::Failure;
use crate::database::{Database, Parameters, count, server_error};

/// How many rows, and how many bytes of them, are held before they are sent.
const MAX_BATCH_ROWS: usize = 5_000;
const MAX_BATCH_BYTES: usize = 2 << 20;

/// Above this number of rows the planner needs statistics of the temporary table.
const ANALYZE_MIN_ROWS: i64 = 2_000;

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
    /// Edges whose child is neither in the file nor in the tables.
    pub(super) without_child: u64,
}

/// Why a conversation was not stored.
pub(super) enum StoreError {
    /// The server refuses its values; nothing of it is stored.
    Values(String),
    Failed(Failure),
}

impl From<postgres::Error> for StoreError {
    /// Everything but what the next conversation would meet as well: a lost connection, a server without resources, a
    /// statement that is wrong.
    fn from(error: postgres::Error) -> Self {
        let is_about_all = error.code().is_none_or(|code| {
            let class = code.code().get(..2).unwrap_or_default();
            ["08", "25", "42", "53", "57", "58", "XX", ""].contains(&class)
        });
        if is_about_all {
            StoreError::Failed(server_error(&error))
        } else {
            StoreError::Values(server_error(&error))
        }
    }
}

pub(super) struct Store {
    database: Database,
    stages: Stages,
    statements: InsertStatements,
    ids: Ids,
    batch: Vec<StagedRow>,
    batch_bytes: usize,
    /// Rows of the conversation so far.
    rows: i64,
    is_open: bool,
}

impl Store {
    pub(super) fn new(mut database: Database, ids: Ids) -> Result<Self, Failure> {
        database.begin("").map_err(|error| server_error(&error))?;
        let stages = Stages::new();
        let statements = InsertStatements::new(&mut database, ids, &stages)?;
        database.commit().map_err(|error| server_error(&error))?;
        Ok(Store {
            database,
            stages,
            statements,
            ids,
            batch: Vec::new(),
            batch_bytes: 0,
            rows: 0,
            is_open: false,
        })
    }

    /// Adds a row to the conversation.
    pub(super) fn add(&mut self, row: StagedRow) -> Result<(), StoreError> {
        let ids = row.message.len() + row.parent.as_ref().map_or(0, String::len);
        self.batch_bytes += ids + size_of_json(&row.turn);
        self.batch.push(row);
        if self.batch.len() >= MAX_BATCH_ROWS || self.batch_bytes >= MAX_BATCH_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), postgres::Error> {
        if !std::mem::replace(&mut self.is_open, true) {
            self.database.begin(&self.stages.named(STAGES))?;
        }
        let types = [Type::INT8, Type::CHAR, Type::TEXT, Type::TEXT, Type::TEXT, Type::JSONB];
        let copy = self.stages.named("COPY pg_temp.{rows} FROM STDIN (FORMAT binary)");
        let copy = self.database.copy_in(&copy)?;
        let mut writer = BinaryCopyInWriter::new(copy, &types);
        for row in self.batch.drain(..) {
            self.rows += 1;
            let kind = match row.kind {
                RowKind::Turn => b't',
                RowKind::Skipped => b's',
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
            self.database.commit()?;
        } else {
            self.abandon().map_err(StoreError::Failed)?;
        }
        counts
    }

    fn insert(&mut self, conversation: Conversation) -> Result<Counts, StoreError> {
        self.send()?;
        if self.rows >= ANALYZE_MIN_ROWS {
            self.database.run(&self.stages.named("ANALYZE pg_temp.{rows}"))?;
        }
        let Conversation { format, account, id } = conversation;
        let InsertStatements {
            graph,
            link,
            turns: insert_turns,
            edges,
            without_parent,
            without_child,
        } = &self.statements;
        let database = &mut self.database;
        let failed = StoreError::Failed;
        let key: Parameters = &[(&format, Type::TEXT), (&account, Type::TEXT), (&id, Type::TEXT)];
        let (key, lock) = match self.ids {
            Ids::Derived => (key, format!("{graph}:{format}:{account}:{id}")),
            Ids::Given => (&key[..0], graph.clone()),
        };
        // Two imports of one conversation wait for each other, so that each sees what the other has stored.
        let wait = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        database.execute(wait, &[(&lock, Type::TEXT)])?;
        database.execute(&self.stages.named(DEDUPLICATE), &[])?;
        let turns =
            count(&database.query_one(&self.stages.named(COUNT_TURNS), &[])?, 0).map_err(failed)?;
        let is_large = self.rows >= ANALYZE_MIN_ROWS;
        if is_large {
            // The planner expects too few rows of conditions on several columns.
            database.run("SET LOCAL enable_nestloop = off")?;
        }
        let skip = self.stages.named(SKIP);
        for _ in 0..MAX_SKIPS {
            if database.execute(&skip, &[])? == 0 {
                break;
            }
        }
        database.execute(link, key)?;
        if is_large {
            let analyze = "SET LOCAL enable_nestloop TO DEFAULT; ANALYZE pg_temp.{links}";
            database.run(&self.stages.named(analyze))?;
        }
        let stored = database.query_one(insert_turns, key)?;
        let new_turns = count(&stored, 0).map_err(failed)?;
        let new_parents = count(&stored, 1).map_err(failed)?;
        let new_edges = match edges {
            Some(edges) => database.execute(edges, &[])?,
            None => new_parents,
        };
        let without_parent = database.query_one(without_parent, &[])?;
        let without_parent = count(&without_parent, 0).map_err(failed)?;
        let without_child = database.query_one(without_child, &[])?;
        let without_child = count(&without_child, 0).map_err(failed)?;
        Ok(Counts { turns, new_turns, new_edges, without_parent, without_child })
    }

    /// Leaves the conversation out.
    pub(super) fn abandon(&mut self) -> Result<(), Failure> {
        self.batch.clear();
        self.batch_bytes = 0;
        self.rows = 0;
        self.is_open = false;
        self.database.roll_back().map_err(|error| server_error(&error))
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
