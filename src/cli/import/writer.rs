//! The thread that stores conversations: they are copied into temporary tables, and from there, many at a time, into
//! the tables of the graph, what is not there yet. A transaction stores whole conversations; where one of them is
//! refused, each is stored by itself. The temporary tables end with the transaction.

use std::collections::HashMap;
use std::io::{Write, stderr};
use std::sync::mpsc::{Receiver, Sender};

use kernel::graph::turn_id::turn_id;
use postgres::error::SqlState;
use postgres::types::Type;

use super::statements::{
    CONVERSATIONS, DEDUPLICATE, EMPTY, HAS_DOUBLES, Ids, InsertStatements, LEAVE_OUT, LOCK,
    LOCK_HOLDER, MAX_SKIPS, SET_APART, SKIP, Stages, TAKE_ONE, UNKNOWN_ENDS, stages,
};
use crate::Failure;
use crate::database::{Database, Parameters, READ_COMMITTED, count, server_error, value};
use crate::output::escaped;

/// Above this number of rows the planner needs statistics of the temporary tables.
const ANALYZE_MIN_ROWS: u64 = 2_000;

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
    /// Turns that were there already in another session, and stay as they are.
    pub(super) elsewhere: u64,
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
    pub(super) fn add(&mut self, other: Stored) {
        let (sum, counts) = (&mut self.counts, other.counts);
        sum.turns += counts.turns;
        sum.new_turns += counts.new_turns;
        sum.new_edges += counts.new_edges;
        sum.without_parent += counts.without_parent;
        sum.without_child += counts.without_child;
        sum.elsewhere += counts.elsewhere;
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
        // A row that a policy refuses is not what a role may not do at all.
        let routine = error.as_db_error().and_then(|error| error.routine());
        let is_about_row = routine == Some("ExecWithCheckOptions");
        let is_about_all = error.code().is_none_or(|code| {
            let class = code.code().get(..2).unwrap_or_default();
            class == "42" && !is_about_row
                || ["08", "25", "53", "57", "58", "XX", ""].contains(&class)
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
pub(super) struct Complete {
    pub(super) number: i64,
    pub(super) id: String,
    /// Where it is in the files.
    pub(super) place: String,
}

/// A part of what was read, in the order of the files.
#[derive(Default)]
pub(super) struct Part {
    /// Rows of `{rows}` and of `{values}`, in PostgreSQL's binary format.
    pub(super) rows: Vec<u8>,
    pub(super) values: Vec<u8>,
    /// How many of `{rows}` there are.
    pub(super) count: u64,
    pub(super) has_skipped: bool,
    /// Conversations of which this has the last row.
    pub(super) complete: Vec<Complete>,
    /// Conversations of which rows were in earlier parts, and which are not stored.
    pub(super) left_out: Vec<i64>,
    /// The transaction ends here, if there is one: what is complete is stored. No conversation is then half read.
    pub(super) end: Option<End>,
}

/// The end of a batch. It is stored after the one before, which another writer may have: what comes first in the files
/// counts, and transactions of an import never wait for each other.
pub(super) struct End {
    /// Tells that the batch before has ended; None for the first one.
    pub(super) before: Option<Receiver<()>>,
    /// Is told when this one was stored. Where it was not, the next batch learns it when this is dropped, after the
    /// reason was reported.
    pub(super) done: Sender<()>,
}

impl Part {
    /// How many bytes of rows it has.
    pub(super) fn bytes(&self) -> usize {
        self.rows.len() + self.values.len()
    }
}

/// Stores what it is given.
pub(super) struct Writer {
    /// As [`Database::server`].
    pub(super) server: String,
    database: Database,
    stages: Stages,
    statements: InsertStatements,
    origin: Origin,
    /// In this transaction.
    rows: u64,
    has_skipped: bool,
    complete: Vec<Complete>,
    left_out: Vec<i64>,
    is_open: bool,
}

impl Writer {
    pub(super) fn new(mut database: Database, origin: Origin) -> Result<Self, Failure> {
        database.begin_writing(READ_COMMITTED, "").map_err(|error| server_error(&error))?;
        let server = database.server()?;
        let stages = Stages::new();
        let statements = InsertStatements::new(&mut database, origin.ids, &stages)?;
        database.commit().map_err(|error| server_error(&error))?;
        Ok(Writer {
            server,
            database,
            stages,
            statements,
            origin,
            rows: 0,
            has_skipped: false,
            complete: Vec::new(),
            left_out: Vec::new(),
            is_open: false,
        })
    }

    /// Takes a part, and stores what is complete where the transaction ends with it and the one before has ended.
    pub(super) fn take(&mut self, part: &mut Part) -> Result<Stored, Failure> {
        self.copy(part).map_err(|error| server_error(&error))?;
        self.rows += part.count;
        self.has_skipped |= part.has_skipped;
        self.complete.append(&mut part.complete);
        self.left_out.append(&mut part.left_out);
        let Some(End { before, done }) = &part.end else { return Ok(Stored::default()) };
        if before.as_ref().is_some_and(|before| before.recv().is_err()) {
            return Err("the batch before was not stored".to_owned());
        }
        let stored = self.flush()?;
        // None waits after the last batch.
        _ = done.send(());
        Ok(stored)
    }

    /// Copies rows into the temporary tables.
    fn copy(&mut self, part: &Part) -> Result<(), postgres::Error> {
        const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
        const END: [u8; 2] = (-1_i16).to_be_bytes();
        const PIECE_BYTES: usize = 64 << 10;
        for (table, bytes) in [("{rows}", &part.rows), ("{values}", &part.values)] {
            if bytes.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut self.is_open, true) {
                self.database.begin_writing(READ_COMMITTED, &self.stages.named(&stages()))?;
            }
            let copy = format!("COPY pg_temp.{table} FROM STDIN (FORMAT binary)");
            let mut writer = self.database.copy_in(&self.stages.named(&copy))?;
            // The driver copies each piece, more than once.
            let written = writer
                .write(SIGNATURE)
                .and_then(|()| bytes.chunks(PIECE_BYTES).try_for_each(|piece| writer.write(piece)))
                .and_then(|()| writer.write(&END));
            // What the server says is the reason why it takes no more.
            match (writer.finish(), written) {
                (Err(error), _) => return Err(error),
                (Ok(_), Err(error)) => {
                    unreachable!("a COPY that ends well has taken all: {error}")
                }
                (Ok(_), Ok(())) => {}
            }
        }
        Ok(())
    }

    /// Stores the conversations that are complete.
    fn flush(&mut self) -> Result<Stored, Failure> {
        if self.complete.is_empty() {
            self.end(false)?;
            return Ok(Stored::default());
        }
        let schema = self.database.schema().map_err(|fault| fault.text)?;
        if schema != self.statements.schema {
            return Err(
                "the extension has another schema than when the import began: begin it again"
                    .to_owned(),
            );
        }
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
        self.end(self.origin.commits).map(|()| stored)
    }

    /// Ends the transaction.
    fn end(&mut self, commits: bool) -> Result<(), Failure> {
        (self.rows, self.has_skipped, self.is_open) = (0, false, false);
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
        let turns = &self.statements.turns_oid;
        let locks: Parameters = &[(&locks, Type::TEXT_ARRAY), (turns, Type::INT8)];
        if let Some(holder) = database.query(LOCK_HOLDER, locks)?.first() {
            let (process, role): (Option<i32>, String) = (value(holder, 0)?, value(holder, 1)?);
            let prepared: Option<String> = value(holder, 2)?;
            let what = match (process, prepared) {
                (Some(process), _) => format!("process {process}"),
                (None, Some(name)) => format!("the prepared transaction {}", escaped(&name)),
                (None, None) => "a transaction".to_owned(),
            };
            let role = escaped(&role);
            // A stream that cannot be written to is not a reason to stop.
            _ = writeln!(
                stderr(),
                "waiting for {what} of role {role}, which imports the same, or has the lock of it"
            );
        }
        database.execute(LOCK, locks)?;
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
            self.database.run(&self.stages.named(EMPTY))?;
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

    /// Stores what is in the temporary tables.
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
        let mut stored = Stored::default();
        let has_doubles = database.query_one(&stages.named(HAS_DOUBLES), &[])?;
        if value(&has_doubles, 0)? {
            let doubled = database.query_one(&stages.named(DEDUPLICATE), &[])?;
            stored.counts.doubled = count(&doubled, 0)?;
        }
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
        let (mut news, mut expected): (HashMap<i64, u64>, u64) = Default::default();
        let turns = "SELECT conversation, count(*), count(*) FILTER (WHERE is_new) FROM pg_temp.{turns} \
                     GROUP BY conversation";
        for row in database.query(&stages.named(turns), &[])? {
            stored.counts.turns += count(&row, 1)?;
            let new = count(&row, 2)?;
            expected += new;
            *news.entry(value(&row, 0)?).or_default() += new;
        }
        let inserted = database.query_one(&statements.turns, &[])?;
        stored.counts.new_turns = count(&inserted, 0)?;
        stored.counts.new_edges = count(&inserted, 1)?;
        if stored.counts.new_turns != expected {
            // A trigger or a rule of the table has left some out.
            database.run(&stages.named(UNKNOWN_ENDS))?;
        }
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
        if let Some(elsewhere) = &statements.elsewhere {
            stored.counts.elsewhere = count(&database.query_one(elsewhere, &[])?, 0)?;
        }
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
