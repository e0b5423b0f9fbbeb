//! Who may read and write the tables, and whether what the catalog says of them is settled.

use pgrx::{PgSqlErrorCode, pg_sys};

use super::Graph;
use crate::pg::catalog::privileges::{Use, check_binder};
use crate::pg::catalog::role_writers;
use crate::pg::catalog::writers::writers_of_enum;
use crate::pg::error::{SqlError, Word};
use crate::pg::private::binding::Binding;
use crate::pg::private::private_table;
use crate::pg::query::tables_are_newer;
use crate::pg::tables::bound_table::{BoundColumn, BoundTable};
use crate::pg::tables::place::{GraphPlace, Place};

impl Graph {
    /// Whether the binding, what the catalog says of the tables, or the rights of `role` and of the binder were
    /// written. What counts is this transaction, and each that is not over for the active snapshot. Then the rows that
    /// are read, their names and types, and who may read them may be of states that never were one.
    pub fn catalog_is_newer(&self, role: pg_sys::Oid) -> bool {
        self.catalog_writers.are_newer(self.relations_of_tables(), self.other_writers())
            || !self.binding_is_seen()
            || role_writers::are_newer(&[role, self.binder.unwrap_or(role)])
    }

    /// Checks that what the catalog says of the tables, and their binding, was not written by others after the snapshot
    /// was taken. It is asked after reading: the tables and their partitions are locked then.
    ///
    /// # Errors
    /// 40001.
    pub fn check_settled(&self) -> Result<(), SqlError> {
        let are_newer =
            self.catalog_writers.are_unseen(self.relations_of_tables(), self.other_writers());
        if are_newer || !self.binding_is_seen() { Err(tables_are_newer()) } else { Ok(()) }
    }

    /// Whether the active snapshot sees the binding, or this transaction may have written it.
    fn binding_is_seen(&self) -> bool {
        private_table::may_be_changing() || Binding::is_seen(&self.binding, self.bound_at)
    }

    /// The tables and their partitions.
    fn relations_of_tables(&self) -> impl Iterator<Item = pg_sys::Oid> {
        self.bound_tables().flat_map(BoundTable::relations)
    }

    /// Checks that the role that bound the tables may read all that is read of them.
    ///
    /// # Errors
    /// 42501.
    pub fn check_binder(&self) -> Result<(), SqlError> {
        let Some(binder) = self.binder else { return Ok(()) };
        for bound in self.bound_tables() {
            // The edges may stand in the turns table.
            let is_turns = std::ptr::eq(bound, &self.turns);
            let is_second = self.edges_by_child.as_ref().is_some_and(|by| std::ptr::eq(by, bound));
            let read = || {
                let keys = self.keys().filter(|(place, _)| is_turns == place.is_of_turns());
                // A table of the same edges has them in columns of the same names, which may have other numbers.
                let columns: Vec<&BoundColumn> = match is_second {
                    true => bound.columns.values().collect(),
                    false => keys.map(|(_, column)| column).collect(),
                };
                let raw = columns.into_iter().flat_map(|column| bound.raw_columns(column));
                raw.map(|raw| raw.number).collect()
            };
            check_binder(binder, bound.table.oid, Use::Read, read, || self.binding_query())?;
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
        let is_own = |place| matches!(place, GraphPlace::Turns(Place::Key(own)) if own == key);
        let reads = |(place, column): &(GraphPlace, &BoundColumn)| {
            let bound = if place.is_of_turns() { Some(&self.turns) } else { self.edges.as_ref() };
            let bound = bound.filter(|bound| bound.table.oid == self.turns.table.oid);
            let mut raw = bound.into_iter().flat_map(|bound| bound.raw_columns(column));
            raw.any(|raw| numbers.contains(&raw.number))
        };
        let other = self.keys().find(|read| !is_own(read.0) && reads(read));
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
        check_binder(binder, self.turns.table.oid, Use::Update, || numbers, || self.binding_query())
    }

    /// Checks that the role that bound the tables may insert rows there, where this is their turns table: whoever
    /// appends does so with rights of his own.
    ///
    /// # Errors
    /// 42501.
    pub fn check_appended(&self, table: pg_sys::Oid) -> Result<(), SqlError> {
        let Some(binder) = self.binder.filter(|_| self.turns.table.oid == table) else {
            return Ok(());
        };
        self.bound_tables().into_iter().try_for_each(|bound| {
            let binding = || self.binding_query();
            check_binder(binder, bound.table.oid, Use::Insert, Vec::new, binding)
        })
    }

    /// Whether a column is an enum, whose labels can be renamed without touching the tables.
    pub fn has_enum(&self) -> bool {
        self.bound_tables().any(|bound| bound.enums().next().is_some())
    }

    /// The transactions that wrote the binding, and the labels of enums.
    fn other_writers(&self) -> impl Iterator<Item = pg_sys::TransactionId> {
        let enums = self.bound_tables().flat_map(BoundTable::enums);
        enums.flat_map(writers_of_enum).chain(self.writers.iter().copied())
    }
}
