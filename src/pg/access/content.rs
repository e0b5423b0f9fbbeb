//! Contents and their hashes: found where they disagree, and written.

use std::collections::HashSet;
use std::ops::ControlFlow;

use kernel::graph::turn::TurnId;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::catalog::names::{quote, quote_as_needed};
use crate::pg::error::{SqlError, Word};
use crate::pg::query::{Argument, ColumnType, Planning, Statement, Template, query};
use crate::pg::tables::graph::Graph;

/// Turns whose hash is missing or not that of their content. `{stale}` in the statements.
const STALE: &str = include_str!("../../../sql/queries/stale.sql");

const AUDIT: Template = Template::new(
    include_str!("../../../sql/queries/content_audit.sql"),
    &[ColumnType::Id, ColumnType::Text, ColumnType::Text],
    Planning::EachTime,
);

const PAGE: Template = Template::new(
    include_str!("../../../sql/queries/content_page.sql"),
    &[ColumnType::Id, ColumnType::Boolean, ColumnType::Boolean],
    Planning::EachTime,
);

const LOCK: Template = Template::new(
    include_str!("../../../sql/queries/content_lock.sql"),
    &[ColumnType::Id],
    Planning::Probing,
);

const REHASH: Template = Template::new(
    include_str!("../../../sql/queries/content_rehash.sql"),
    &[ColumnType::Id],
    Planning::Probing,
);

/// The contents of a graph, read and written with the caller's rights.
pub struct Contents<'a> {
    graph: &'a Graph,
    stale: String,
}

/// A page of turns, by ascending id.
pub struct TurnPage {
    /// How many there are.
    pub turns: i64,
    /// The last one; `None` when no turn follows.
    pub last: Option<TurnId>,
    /// Those whose hash is missing or not that of their content.
    pub stale: Vec<TurnId>,
    /// How many have a content that is not text.
    pub not_text: i64,
}

impl<'a> Contents<'a> {
    /// The contents of this graph.
    ///
    /// # Errors
    /// 42703 when the turns table has no content or no hash of it.
    pub fn new(graph: &'a Graph) -> Result<Self, SqlError> {
        graph.stored_expression("content_text")?;
        graph.stored_expression("content_hash")?;
        Ok(Contents { graph, stale: graph.statement_text(STALE) })
    }

    /// As [`Contents::new`], to write hashes. A mapping may name any column as the hash, by mistake or on purpose, and
    /// whoever follows hints may have bound it: only a column of that very name is written.
    ///
    /// # Errors
    /// Also 55000 where the hash is computed by an expression; 42809 where its column has another name; as
    /// [`Graph::check_written`].
    pub fn to_write(graph: &'a Graph) -> Result<Self, SqlError> {
        let column = graph.turn_column("content_hash")?;
        if column != "content_hash" {
            return Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("content_hash is bound to column {}, which may hold something else", quote_as_needed(column)),
            )
            .word(Word::GraphTables)
            .hint(
                "Write the hashes into it yourself, with graph_content_hash, or rename it to content_hash.",
            ));
        }
        graph.check_written("content_hash")?;
        Self::new(graph)
    }

    /// Checks that this is still the bound turns table.
    ///
    /// # Errors
    /// 55000.
    pub fn expect_turns(&self, table: pg_sys::Oid) -> Result<(), SqlError> {
        if self.graph.turns_table() == table {
            return Ok(());
        }
        Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "other tables were bound while content hashes were written",
        )
        .word(Word::GraphTables)
        .hint("CALL graph_kernel.backfill_content_hashes();"))
    }

    /// Hands turn, stored hash and computed hash to `put` where they disagree, by ascending id. A content that is not
    /// text has no hash.
    pub fn audit(
        &self,
        limit: Option<i64>,
        mut put: impl FnMut(TurnId, Option<String>, Option<String>),
    ) {
        let limit = Argument::Number(limit.unwrap_or(i64::MAX));
        query(&self.statement(&AUDIT), &[limit], |row| {
            let text = |column| row.text(column, |text| text.map(str::to_owned));
            if let Some(turn) = row.id(0) {
                put(turn, text(1), text(2));
            }
            ControlFlow::Continue(())
        });
    }

    /// The turns after this one, at most so many.
    pub fn page(&self, after: Option<TurnId>, most: i32) -> TurnPage {
        let after = after.map(|id| id.to_string());
        let arguments = [Argument::Text(after.as_deref()), Argument::Number(most.into())];
        let mut page = TurnPage { turns: 0, last: None, stale: Vec::new(), not_text: 0 };
        query(&self.statement(&PAGE), &arguments, |row| {
            page.turns += 1;
            page.last = row.id(0);
            page.stale.extend(row.id(0).filter(|_| row.bool(1) == Some(true)));
            page.not_text += i64::from(row.bool(2) == Some(true));
            ControlFlow::Continue(())
        });
        if page.turns < most.into() {
            page.last = None;
        }
        page
    }

    /// Writes the hashes of these turns, without those that another transaction has locked. Returns how many
    /// changed, and the locked turns.
    ///
    /// # Errors
    /// As [`Contents::rehash`].
    pub fn rehash_free(&self, ids: &[TurnId]) -> Result<(i64, Vec<TurnId>), SqlError> {
        let mut free = HashSet::new();
        query(&self.statement(&LOCK), &[Argument::Ids(ids)], |row| {
            free.extend(row.id(0));
            ControlFlow::Continue(())
        });
        let (free, held): (Vec<TurnId>, _) = ids.iter().partition(|id| free.contains(*id));
        Ok((self.rehash(&free)?, held))
    }

    /// Writes the hashes of these turns, waiting for locks. Returns how many changed.
    ///
    /// # Errors
    /// As [`Contents::to_write`].
    pub fn rehash(&self, ids: &[TurnId]) -> Result<i64, SqlError> {
        let hash_column = quote(self.graph.turn_column("content_hash")?);
        let names = [("stale", self.stale.as_str()), ("hash_column", &hash_column)];
        let mut changed = 0;
        query(&self.graph.statement(&REHASH, &names), &[Argument::Ids(ids)], |_| {
            changed += 1;
            ControlFlow::Continue(())
        });
        Ok(changed)
    }

    fn statement(&self, template: &Template) -> Statement {
        self.graph.statement(template, &[("stale", &self.stale)])
    }
}
