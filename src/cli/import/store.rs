//! Storing conversations: they are copied into a temporary table, and from there, many at a time, into the tables of
//! the graph, what is not there yet. A transaction stores whole conversations; where one of them is refused, each is
//! stored by itself. The temporary tables end with the transaction.

use std::collections::HashMap;
use std::io::Write;

use kernel::graph::turn_id::turn_id;
use postgres::error::SqlState;
use postgres::types::Type;

use super::columns::COLUMNS;
use super::statements::{
    CONVERSATIONS, DEDUPLICATE, EMPTY, Ids, InsertStatements, LEAVE_OUT, LOCK, MAX_SKIPS,
    SET_APART, SKIP, Stages, TAKE_ONE, stages,
};
use crate::Failure;
use crate::database::{Database, Parameters, count, server_error, value};

/// How many bytes of rows are held before they are sent.
const MAX_BUFFER_BYTES: usize = 2 << 20;

/// How many rows, how many bytes of them, and how many conversations a transaction stores, unless one conversation
/// alone has more.
const MAX_ROWS: u64 = 10_000;
const MAX_BYTES: usize = 5 << 20;
const MAX_CONVERSATIONS: usize = 128;

/// Above this number of rows the planner needs statistics of the temporary tables.
const ANALYZE_MIN_ROWS: u64 = 2_000;

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

/// The columns of a turn, as texts, in the order of [`COLUMNS`].
pub(super) type Columns = [Option<String>; COLUMNS.len()];

pub(super) struct StagedRow {
    pub(super) kind: RowKind,
    pub(super) message: String,
    pub(super) parent: Option<String>,
    pub(super) edge_type: String,
    pub(super) columns: Columns,
}

/// Whose messages are imported.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) format: &'static str,
    pub(super) account: String,
    pub(super) ids: Ids,
    /// Whether what is stored is committed; otherwise it is only counted.
    pub(super) commits: bool,
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
    /// Turns with the id of another one in the file, which has another text.
    pub(super) doubled: u64,
}

/// What became of conversations.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) counts: Counts,
    /// How many conversations brought something new, and how many did not.
    pub(super) stored: u64,
    pub(super) unchanged: u64,
    /// The places of those that the server has refused, and why.
    pub(super) refused: Vec<(String, String)>,
}

impl Stored {
    fn add(&mut self, other: Stored) {
        let (sum, counts) = (&mut self.counts, other.counts);
        sum.turns += counts.turns;
        sum.new_turns += counts.new_turns;
        sum.new_edges += counts.new_edges;
        sum.without_parent += counts.without_parent;
        sum.without_child += counts.without_child;
        sum.doubled += counts.doubled;
        self.stored += other.stored;
        self.unchanged += other.unchanged;
        self.refused.extend(other.refused);
    }
}

/// Why conversations were not stored.
enum StoreError {
    /// The server refuses their values.
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
        let why = server_error(&error);
        if is_about_all {
            StoreError::Failed(why)
        } else if error.code() == Some(&SqlState::UNIQUE_VIOLATION) {
            // Where row security hides a turn, it is found only by what its id is refused for.
            StoreError::Values(format!(
                "{why}; if another user has imported this conversation: --account NAME keeps yours apart"
            ))
        } else {
            StoreError::Values(why)
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        StoreError::Failed(failure)
    }
}

/// A conversation that was read to its end.
struct Complete {
    number: i64,
    id: String,
    /// Where it is in the files.
    place: String,
}

pub(super) struct Store {
    database: Database,
    stages: Stages,
    statements: InsertStatements,
    origin: Origin,
    /// Rows to be sent, in PostgreSQL's binary format.
    buffer: Vec<u8>,
    /// Where the rows of the conversation that is being read begin in the buffer.
    start: usize,
    /// Whether rows of it were sent.
    is_sent: bool,
    /// The number of the conversation that is being read.
    number: i64,
    /// The rows so far, in this transaction and those before.
    row: i64,
    /// In this transaction.
    rows: u64,
    bytes: usize,
    has_skipped: bool,
    complete: Vec<Complete>,
    left_out: Vec<i64>,
    is_open: bool,
}

impl Store {
    pub(super) fn new(mut database: Database, origin: Origin) -> Result<Self, Failure> {
        database.begin("").map_err(|error| server_error(&error))?;
        let stages = Stages::new();
        let statements = InsertStatements::new(&mut database, origin.ids, &stages)?;
        database.commit().map_err(|error| server_error(&error))?;
        Ok(Store {
            database,
            stages,
            statements,
            origin,
            buffer: Vec::new(),
            start: 0,
            is_sent: false,
            number: 0,
            row: 0,
            rows: 0,
            bytes: 0,
            has_skipped: false,
            complete: Vec::new(),
            left_out: Vec::new(),
            is_open: false,
        })
    }

    /// Adds a row to the conversation.
    pub(super) fn add(&mut self, row: &StagedRow) -> Result<(), Failure> {
        let kind = match row.kind {
            RowKind::Turn => b't',
            RowKind::Skipped => b's',
            RowKind::Edge => b'e',
        };
        self.has_skipped |= row.kind == RowKind::Skipped;
        self.row += 1;
        self.rows += 1;
        let before = self.buffer.len();
        const FIELDS: usize = 6 + COLUMNS.len();
        self.buffer.extend((FIELDS as i16).to_be_bytes());
        let texts = [Some(&row.message), row.parent.as_ref(), Some(&row.edge_type)];
        let texts = texts.into_iter().chain(row.columns.iter().map(Option::as_ref));
        self.field(Some(&self.row.to_be_bytes()));
        self.field(Some(&self.number.to_be_bytes()));
        self.field(Some(&[kind]));
        texts.for_each(|text| self.field(text.map(String::as_bytes)));
        self.bytes += self.buffer.len() - before;
        if self.buffer.len() >= MAX_BUFFER_BYTES { self.send() } else { Ok(()) }
    }

    fn field(&mut self, value: Option<&[u8]>) {
        let length = value.map_or(-1, |value| value.len() as i32);
        self.buffer.extend(length.to_be_bytes());
        self.buffer.extend(value.unwrap_or_default());
    }

    /// Copies what is held into the temporary table.
    fn send(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.copy().map_err(|error| server_error(&error))?;
        self.buffer.clear();
        self.buffer.shrink_to(2 * MAX_BUFFER_BYTES);
        (self.start, self.is_sent) = (0, true);
        Ok(())
    }

    fn copy(&mut self) -> Result<(), postgres::Error> {
        if !std::mem::replace(&mut self.is_open, true) {
            self.database.begin(&self.stages.named(&stages()))?;
        }
        const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
        const END: [u8; 2] = (-1_i16).to_be_bytes();
        let copy = self.stages.named("COPY pg_temp.{rows} FROM STDIN (FORMAT binary)");
        let mut writer = self.database.copy_in(&copy)?;
        let written = writer
            .write_all(SIGNATURE)
            .and_then(|()| writer.write_all(&self.buffer))
            .and_then(|()| writer.write_all(&END));
        // What the server says is the reason why it takes no more.
        match (writer.finish(), written) {
            (Err(error), _) => Err(error),
            (Ok(_), Err(error)) => unreachable!("a COPY that ends well has taken all: {error}"),
            (Ok(_), Ok(())) => Ok(()),
        }
    }

    /// Takes the conversation as complete. It is stored with others, at the latest by [`Store::flush`]; what was stored
    /// now is returned.
    pub(super) fn finish(&mut self, id: String, place: String) -> Result<Stored, Failure> {
        self.complete.push(Complete { number: self.number, id, place });
        self.next();
        let is_full = self.rows >= MAX_ROWS
            || self.bytes >= MAX_BYTES
            || self.complete.len() >= MAX_CONVERSATIONS;
        if is_full { self.flush() } else { Ok(Stored::default()) }
    }

    /// Leaves the conversation out.
    pub(super) fn abandon(&mut self) -> Result<(), Failure> {
        self.buffer.truncate(self.start);
        if self.is_sent {
            self.left_out.push(self.number);
        }
        self.next();
        let is_full = self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES;
        // What was left out would otherwise fill the server's disk.
        if is_full && self.complete.is_empty() { self.end(false) } else { Ok(()) }
    }

    fn next(&mut self) {
        self.number += 1;
        (self.start, self.is_sent) = (self.buffer.len(), false);
    }

    /// Stores the conversations that are complete. None may be half read.
    pub(super) fn flush(&mut self) -> Result<Stored, Failure> {
        if self.complete.is_empty() {
            self.end(false)?;
            return Ok(Stored::default());
        }
        self.send()?;
        let stored = match self.store_all() {
            Ok(stored) => stored,
            Err(StoreError::Failed(failure)) => return Err(failure),
            Err(StoreError::Values(why)) => {
                let mut stored = Stored::default();
                let complete = std::mem::take(&mut self.complete);
                stored
                    .refused
                    .extend(complete.into_iter().map(|one| (one.described(), why.clone())));
                self.end(false)?;
                return Ok(stored);
            }
        };
        match self.end(self.origin.commits) {
            Ok(()) => Ok(stored),
            Err(failure) => Err(failure),
        }
    }

    /// Ends the transaction.
    fn end(&mut self, commits: bool) -> Result<(), Failure> {
        self.buffer.clear();
        (self.start, self.is_sent, self.rows, self.bytes) = (0, false, 0, 0);
        (self.has_skipped, self.is_open) = (false, false);
        self.complete.clear();
        self.left_out.clear();
        let ended = if commits { self.database.commit() } else { self.database.roll_back() };
        ended.map_err(|error| server_error(&error))
    }

    /// Stores all at once, or one after the other where something in them is refused.
    fn store_all(&mut self) -> Result<Stored, StoreError> {
        let complete = std::mem::take(&mut self.complete);
        let database = &mut self.database;
        if !self.left_out.is_empty() {
            let left_out = (&self.left_out as _, Type::INT8_ARRAY);
            database.execute(&self.stages.named(LEAVE_OUT), &[left_out])?;
        }
        let Origin { format, account, ids, .. } = &self.origin;
        let graph = &self.statements.graph;
        let locks: Vec<String> = match ids {
            Ids::Derived => complete
                .iter()
                .map(|one| format!("{graph}:{format}:{account}:{}", one.id))
                .collect(),
            Ids::Given => vec![graph.clone()],
        };
        database.execute(LOCK, &[(&locks, Type::TEXT_ARRAY)])?;
        database.run("SAVEPOINT conversations")?;
        let is_large = self.rows >= ANALYZE_MIN_ROWS;
        let (why, mut stored) = match self.insert(&complete, is_large) {
            Ok(stored) => return Ok(stored),
            Err(StoreError::Values(why)) => (why, Stored::default()),
            Err(error) => return Err(error),
        };
        self.database.run("ROLLBACK TO conversations")?;
        if let [one] = &complete[..] {
            stored.refused.push((one.described(), why));
            return Ok(stored);
        }
        self.database.run(&self.stages.named(SET_APART))?;
        for one in complete {
            self.database.run("SAVEPOINT conversation")?;
            let number: Parameters = &[(&one.number, Type::INT8)];
            self.database.execute(&self.stages.named(TAKE_ONE), number)?;
            match self.insert(std::slice::from_ref(&one), is_large) {
                Ok(added) => {
                    stored.add(added);
                    let empty = "TRUNCATE pg_temp.{rows}; RELEASE conversation";
                    self.database.run(&self.stages.named(empty))?;
                }
                Err(StoreError::Values(why)) => {
                    stored.refused.push((one.described(), why));
                    self.database.run("ROLLBACK TO conversation")?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(stored)
    }

    /// Stores what is in the temporary table.
    fn insert(&mut self, complete: &[Complete], is_large: bool) -> Result<Stored, StoreError> {
        let (database, stages, statements) = (&mut self.database, &self.stages, &self.statements);
        let Origin { format, account, ids, .. } = &self.origin;
        let numbers: Vec<i64> = complete.iter().map(|one| one.number).collect();
        let names: Vec<&str> = complete.iter().map(|one| one.id.as_str()).collect();
        let sessions: Vec<String> = complete
            .iter()
            .map(|one| match statements.has_uuid_sessions {
                true => uuid_session([format, account, &one.id]),
                false => format!("{format}:{account}:{}", one.id),
            })
            .collect();
        database.run(&stages.named(EMPTY))?;
        database.execute(
            &stages.named(CONVERSATIONS),
            &[
                (&numbers, Type::INT8_ARRAY),
                (&names, Type::TEXT_ARRAY),
                (&sessions, Type::TEXT_ARRAY),
            ],
        )?;
        if is_large {
            // The planner expects too few rows of conditions on several columns.
            let analyze = "ANALYZE pg_temp.{rows} (n, conversation, kind, message, parent); \
                           SET LOCAL enable_nestloop = off";
            database.run(&stages.named(analyze))?;
        }
        let doubled = database.query_one(&stages.named(DEDUPLICATE), &[])?;
        if self.has_skipped {
            let skip = stages.named(SKIP);
            for _ in 0..MAX_SKIPS {
                if database.execute(&skip, &[])? == 0 {
                    break;
                }
            }
        }
        let key: Parameters = match ids {
            Ids::Derived => &[(format, Type::TEXT), (account, Type::TEXT)],
            Ids::Given => &[],
        };
        database.execute(&statements.identify, key)?;
        database.execute(&statements.link, key)?;
        let mut stored = Stored::default();
        stored.counts.doubled = count(&doubled, 0)?;
        let mut news: HashMap<i64, u64> = HashMap::new();
        let turns = "SELECT conversation, count(*), count(*) FILTER (WHERE is_new) FROM pg_temp.{turns} \
                     GROUP BY conversation";
        for row in database.query(&stages.named(turns), &[])? {
            stored.counts.turns += count(&row, 1)?;
            *news.entry(value(&row, 0)?).or_default() += count(&row, 2)?;
        }
        let inserted = database.query_one(&statements.turns, &[])?;
        stored.counts.new_turns = count(&inserted, 0)?;
        stored.counts.new_edges = count(&inserted, 1)?;
        if is_large {
            let analyze = "SET LOCAL enable_nestloop TO DEFAULT; ANALYZE pg_temp.{links}";
            database.run(&stages.named(analyze))?;
        }
        if let Some(edges) = &statements.edges {
            for row in database.query(edges, &[])? {
                *news.entry(value(&row, 0)?).or_default() += count(&row, 1)?;
                stored.counts.new_edges = count(&row, 2)?;
            }
        }
        let without_parent = database.query_one(&statements.without_parent, &[])?;
        stored.counts.without_parent = count(&without_parent, 0)?;
        let without_child = database.query_one(&statements.without_child, &[])?;
        stored.counts.without_child = count(&without_child, 0)?;
        // What is checked at the end is checked here, where it is known whose it is.
        database.run("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")?;
        let is_new = |one: &&Complete| news.get(&one.number).is_some_and(|new| *new > 0);
        stored.stored = complete.iter().filter(is_new).count() as u64;
        stored.unchanged = complete.len() as u64 - stored.stored;
        Ok(stored)
    }
}

impl Complete {
    fn described(&self) -> String {
        format!("{}: conversation {}", self.place, self.id)
    }
}

/// The id of a session where the column takes uuids: `graph_turn_id` of the text that `json_build_array` makes.
fn uuid_session(parts: [&str; 3]) -> String {
    let parts: Vec<String> =
        parts.iter().map(|part| serde_json::Value::from(*part).to_string()).collect();
    turn_id(&format!("[{}]", parts.join(", "))).to_string()
}
