//! The bound graphs: which tables, where they have which values, which statements.

mod advice;
mod current;
mod description;
mod findings;
mod follows;
mod indexes;
mod mapping;
mod rights;
mod statements;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use kernel::graph::edge::EdgeType;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

pub use self::advice::Advice;
use self::follows::Follows;
pub use self::mapping::{GraphTables, MappingReading, OWNER, VALID_UNTIL, edges_by_child};
use self::mapping::{PAYLOAD, binding_query};
use self::statements::KeptBy;
use crate::pg::catalog::names::{self, literal_of};
use crate::pg::catalog::privileges::{Use, check_binder};
use crate::pg::catalog::relation::{self, TableColumn};
use crate::pg::catalog::writers::CatalogWriters;
use crate::pg::error::{SqlError, Word};
use crate::pg::guc::DEFAULT_GRAPH;
use crate::pg::private::private_table::{BINDING, RowPlace};
use crate::pg::query::{Statement, partitions_changed};
use crate::pg::tables::bound_table::{BoundColumn, BoundTable, ColumnSource, TableText};
use crate::pg::tables::embedding::EmbeddingColumn;
use crate::pg::tables::place::{GraphPlace, Place};
use crate::pg::tables::words::WordsColumn;

/// The graph as its tables are named now.
pub struct Graph {
    /// Its name in attestations.
    pub name: String,
    /// The name that its tables are bound under.
    binding: String,
    /// Statements that were filled in.
    kept: RefCell<HashMap<KeptBy, Rc<Statement>>>,
    turns: BoundTable,
    /// The edges table, where there is one.
    edges: Option<BoundTable>,
    /// The table of the same edges that is asked for those into a turn.
    edges_by_child: Option<BoundTable>,
    /// Edges that the turns table stores.
    parents: Vec<ParentColumn>,
    /// Edges that follow from the order of turns.
    follows: Option<Follows>,
    turns_text: TableText,
    /// What edges are read from: the edges table, and the turns table once for each of `parents` and for `follows`.
    sources: Vec<TableText>,
    /// The mapping of `embedding`, as given to `bind_tables`.
    embedding: Option<Value>,
    /// The mapping of `words`, as given to `bind_tables`.
    words: Option<Value>,
    /// The role that bound the tables; `None` of the default ones.
    binder: Option<pg_sys::Oid>,
    /// The same with a column of embeddings to be named.
    embedding_command: String,
    /// The same with a column of words to be named.
    words_command: String,
    /// The transactions that decided that these tables have the name, where they are not frozen.
    writers: Vec<pg_sys::TransactionId>,
    /// Where their binding is stored, if they are bound.
    bound_at: RowPlace,
    catalog_writers: CatalogWriters,
}

/// An edge that each row of the turns table may store: from the turn of this id to the row's turn.
struct ParentColumn {
    parent: BoundColumn,
    edge_type: EdgeType,
}

impl Graph {
    /// The query that shows the binding.
    fn binding_query(&self) -> String {
        binding_query(&self.binding)
    }

    /// Whether payloads are of type json; else they are of type jsonb, or there are none.
    pub fn has_json_payloads(&self) -> bool {
        self.turns.columns[PAYLOAD].base_type() == Some(pg_sys::JSONOID)
    }

    /// The tables.
    pub fn tables(&self) -> impl Iterator<Item = pg_sys::Oid> {
        self.bound_tables().map(|bound| bound.table.oid)
    }

    /// Whether Citus reads a table of it: then what is read is of no one snapshot.
    pub fn is_distributed(&self) -> bool {
        self.bound_tables().any(|bound| bound.is_distributed)
    }

    /// The turns table.
    pub fn turns_table(&self) -> pg_sys::Oid {
        self.turns.table.oid
    }

    /// The turns table as it stands in a statement.
    pub fn turns_name(&self) -> String {
        self.turns.table.qualified_name()
    }

    fn bound_tables(&self) -> impl Iterator<Item = &BoundTable> {
        [&self.turns].into_iter().chain(&self.edges).chain(&self.edges_by_child)
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

    /// Checks that the tables have the partitions that they had when the graph was looked up. Attaching one takes no
    /// lock that a reader's conflicts with, so a statement that is planned later reads more than one that was planned
    /// before.
    ///
    /// # Errors
    /// 55000.
    pub fn check_partitions(&self) -> Result<(), SqlError> {
        let has_changed =
            |bound: &BoundTable| relation::partitions(bound.table.oid) != bound.partitions;
        if self.bound_tables().any(has_changed) { Err(partitions_changed()) } else { Ok(()) }
    }

    /// The embedding column as it is now: types and operators can be created and dropped without an
    /// invalidation of the tables.
    ///
    /// # Errors
    /// 42703, 42804, 42883 when there is none that can be searched; 22023 for a bad mapping.
    pub fn embedding(&self) -> Result<EmbeddingColumn, SqlError> {
        let embedding = EmbeddingColumn::resolve(
            &self.turns.table,
            self.embedding.as_ref(),
            &self.embedding_command,
        )?;
        if let Some(binder) = self.binder {
            let read = || vec![embedding.number];
            check_binder(binder, self.turns.table.oid, Use::Read, read, || self.binding_query())?;
        }
        Ok(embedding)
    }

    /// The column of words as it is now; `None` where there is none.
    ///
    /// # Errors
    /// 42703, 42804, 42704 when the one that is named cannot be searched; 22023 for a bad mapping.
    pub fn words(&self) -> Result<Option<WordsColumn>, SqlError> {
        let (mapping, command) = (self.words.as_ref(), &self.words_command);
        let words = WordsColumn::resolve(&self.turns.table, mapping, command)?;
        if let (Some(words), Some(binder)) = (&words, self.binder) {
            let read = || vec![words.number];
            check_binder(binder, self.turns.table.oid, Use::Read, read, || self.binding_query())?;
        }
        Ok(words)
    }

    /// Whether a column of embeddings was named.
    pub fn names_embedding(&self) -> bool {
        !matches!(self.embedding, None | Some(Value::Null))
    }

    /// Checks a column of words that was named; a recognised one is the matter of whoever searches.
    ///
    /// # Errors
    /// As [`Graph::words`].
    pub fn check_words(&self) -> Result<(), SqlError> {
        match self.words {
            None | Some(Value::Null) => Ok(()),
            Some(_) => self.words().map(|_| ()),
        }
    }

    /// The error where the graph has no column of words.
    pub fn no_words(&self) -> SqlError {
        let table = self.turns.table.qualified_name();
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!("table {table} is bound without words"),
        )
        .word(Word::NoWords)
        .hint(match self.text_column() {
            Some(content) => format!(
                "Add a generated column \"words\", ALTER TABLE {table} ADD COLUMN words tsvector GENERATED ALWAYS AS \
                 (pg_catalog.to_tsvector('pg_catalog.english'::pg_catalog.regconfig, \
                 pg_catalog.\"left\"(({content})::pg_catalog.text, 100000))) STORED; or name yours in the mapping: {};",
                self.words_command
            ),
            None => format!("Add a column of type tsvector and name it in the mapping: {};", self.words_command),
        })
    }

    /// The column of contents, quoted, where it is a text: a cast of another type to text may be a user's.
    fn text_column(&self) -> Option<String> {
        let is_text =
            |raw: &&TableColumn| [pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&raw.type_oid);
        let content = &self.turns.columns["content_text"];
        let name = content.column_name()?;
        self.turns.raw_columns(content).into_iter().find(is_text)?;
        Some(names::with_escapes(&names::quote_as_needed(name)))
    }

    /// Checks an embedding column that was named; a recognised one may be anything.
    ///
    /// # Errors
    /// As [`Graph::embedding`].
    pub fn check_embedding(&self) -> Result<(), SqlError> {
        if self.names_embedding() { self.embedding().map(|_| ()) } else { Ok(()) }
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

    /// Why a turn may not be found in the graph, for a hint: what is hidden reads as what is missing.
    pub fn where_not_found(&self) -> String {
        format!(
            "turn is not in {}, the turns table of the graph {}, or row security hides it: see graph_check(). For \
             another graph run SET graph_kernel.graph = '...';",
            self.turns.table.qualified_name(),
            literal_of(&self.binding)
        )
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

    /// A key of a turn as an expression over the alias t; NULL where it is not stored.
    pub fn turn_expression(&self, key: &str) -> String {
        self.turns.columns[key].expression("t")
    }

    /// A key of a turn over the alias t, as it is stored, and its type; `None` where it is not.
    pub fn stored_value(&self, key: &str) -> Option<(String, pg_sys::Oid)> {
        self.turns.columns[key].stored_value("t")
    }

    /// Whether texts of a turn that differ are equal by their column's collation.
    pub fn takes_texts_as_equal(&self, key: &str) -> bool {
        let indexed = self.turns.columns.get(key).and_then(|column| self.turns.indexed(column));
        indexed.is_some_and(|(_, collation, _)| !relation::is_deterministic(collation))
    }

    /// The owner of a turn, as [`Graph::stored_value`].
    ///
    /// # Errors
    /// 42703 when it is not stored.
    pub fn owner(&self) -> Result<(String, pg_sys::Oid), SqlError> {
        self.stored_value(OWNER).ok_or_else(|| self.not_stored(OWNER))
    }

    /// Whether a value is computed by an expression, which may raise an error on a row.
    pub fn has_expressions(&self) -> bool {
        self.keys().any(|(_, column)| column.is_expression())
    }

    /// Every value that is read of a row, by its place in a mapping.
    fn keys(&self) -> impl Iterator<Item = (GraphPlace, &BoundColumn)> {
        let edges = self.edges.iter().flat_map(|edges| &edges.columns);
        let edges = edges.map(|(key, column)| (GraphPlace::Edges(Place::Key(key)), column));
        self.turn_values().map(|(place, column)| (GraphPlace::Turns(place), column)).chain(edges)
    }

    /// Every value that is read of a row of the turns table.
    fn turn_values(&self) -> impl Iterator<Item = (Place, &BoundColumn)> {
        let columns = self.turns.columns.iter().map(|(key, column)| (Place::Key(key), column));
        let parents = self.parents.iter().enumerate();
        let parents = parents.map(|(number, parent)| (Place::Parent(number), &parent.parent));
        let follows = self.follows.iter().flat_map(|follows| {
            let order = follows.order.iter().enumerate();
            let order = order.map(|(number, key)| (Place::FollowsOrder(number), key));
            [(Place::FollowsSession, &follows.session)].into_iter().chain(order)
        });
        columns.chain(parents).chain(follows)
    }
}
