//! A table that an admin has bound, checked: how it is stored, and where it has which values.

mod column;
mod kind;
mod rules;
mod text;

use std::collections::BTreeMap;

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

pub use self::column::{BoundColumn, ColumnSource};
pub use self::kind::ValueKind;
pub use self::rules::{
    ColumnRule, Mapping, MappingChange, TableRules, by_type, literal, optional, required, rule,
};
pub use self::text::{TableText, fill};
use crate::pg::catalog::citus;
use crate::pg::catalog::index::{Indexed, default_family};
use crate::pg::catalog::relation::{self, Table};
use crate::pg::catalog::writers;
use crate::pg::error::SqlError;
use crate::pg::query::{is_detaching, tables_are_newer};
use crate::pg::tables::place::Place;

/// A bound table as it is now.
pub struct BoundTable {
    /// The table.
    pub table: Table,
    /// The relations below a partitioned table.
    pub partitions: Vec<pg_sys::Oid>,
    /// Whether Citus reads it, or one of its partitions.
    pub is_distributed: bool,
    /// Its columns by key.
    pub columns: BTreeMap<&'static str, BoundColumn>,
}

impl BoundTable {
    /// The table of this OID with this mapping of columns, locked AccessShare.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when it is not what the rules ask for; 22023, 42P17, 0A000 for a bad mapping.
    pub fn resolve(
        oid: pg_sys::Oid,
        rules: &TableRules<'_>,
        mapping: Mapping<'_>,
    ) -> Result<Self, SqlError> {
        let table = Table::lock(oid).ok_or_else(|| {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("the bound {} table was dropped", rules.part),
            )
            .word(rules.word)
            .hint(format!("Run {}.", (rules.command)(None)))
        })?;
        let partitions = relation::check_storage(oid)
            .map_err(|error| error.into_sql_error().word(rules.word))?;
        relation::check_is_users(oid, &partitions)
            .map_err(|error| error.into_sql_error().word(rules.word))?;
        if relation::is_detaching(oid, &partitions) {
            return Err(is_detaching());
        }
        let mut columns = BTreeMap::new();
        for rule in rules.columns {
            let mapped = mapping.columns.and_then(|columns| columns.get(rule.key));
            columns.insert(
                rule.key,
                rule.resolve(&table, rules, mapping, mapped, Place::Key(rule.key))?,
            );
        }
        let is_distributed = citus::reads_any(&[&[oid], &partitions[..]].concat());
        Ok(BoundTable { table, partitions, is_distributed, columns })
    }

    /// The table, and the relations below it.
    pub fn relations(&self) -> impl Iterator<Item = pg_sys::Oid> {
        self.partitions.iter().copied().chain([self.table.oid])
    }

    /// Checks that what the catalog says of the table was not written by others after the snapshot was taken: else rows
    /// that were there may not be found.
    ///
    /// # Errors
    /// 40001.
    pub fn check_settled(&self) -> Result<(), SqlError> {
        let labels = self.enums().flat_map(writers::writers_of_enum).collect();
        match writers::are_unseen(self.relations()) || writers::any_unseen(labels) {
            true => Err(tables_are_newer()),
            false => Ok(()),
        }
    }

    /// The types of the columns that are enums.
    pub fn enums(&self) -> impl Iterator<Item = pg_sys::Oid> {
        let raw = self.columns.values().flat_map(|column| self.raw_columns(column));
        raw.map(|raw| raw.base_type).filter(|base_type| relation::is_enum(*base_type))
    }

    /// The table in a FROM clause. ONLY keeps inheritance children out, which are not checked.
    pub fn from(&self) -> String {
        let only = if self.table.kind == pg_sys::RELKIND_RELATION { "ONLY " } else { "" };
        format!("{only}{}", self.table.qualified_name())
    }

    /// What SQL code needs to query the table: its OID and its name as it stands in a FROM clause. Of each column the
    /// name, its expression or null, and the column as an expression over this alias.
    pub fn description(&self, alias: &str) -> Value {
        let (mut columns, mut expressions) = (Map::new(), Map::new());
        for (key, column) in &self.columns {
            columns.insert((*key).to_owned(), column.name_or_text().into());
            expressions.insert((*key).to_owned(), column.expression(alias).into());
        }
        json!({
            "oid": self.table.oid.to_u32(),
            "from": self.from(),
            "columns": columns,
            "expressions": expressions,
        })
    }

    /// The mapping that names what each key was resolved to.
    pub fn resolved_mapping(&self) -> Map<String, Value> {
        self.columns.iter().map(|(key, column)| ((*key).to_owned(), column.mapped())).collect()
    }

    /// What an index by a key holds, its collation and the family of its operators; `None` where it is not stored.
    pub fn indexed(&self, column: &BoundColumn) -> Option<(Indexed, pg_sys::Oid, pg_sys::Oid)> {
        let (of, collation) = match column.stored.as_ref()? {
            ColumnSource::Column { .. } => {
                let raw = *self.raw_columns(column).first()?;
                (Indexed::Column(raw.number), raw.collation)
            }
            ColumnSource::Expression(expression) => expression.indexed(&self.table),
        };
        Some((of, collation, default_family(column.base_type()?)))
    }

    /// The columns of the table that a key is read from.
    pub fn raw_columns(&self, column: &BoundColumn) -> Vec<&relation::TableColumn> {
        let all = self.table.columns.iter();
        match &column.stored {
            None => Vec::new(),
            Some(ColumnSource::Column { name, .. }) => {
                all.filter(|raw| raw.name == *name).collect()
            }
            Some(ColumnSource::Expression(expression)) => {
                all.filter(|raw| expression.columns.contains(&raw.number)).collect()
            }
        }
    }
}
