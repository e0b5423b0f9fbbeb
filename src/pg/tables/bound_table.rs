//! A table that an admin has bound, checked: how it is stored, which column holds what.

use std::collections::BTreeMap;
use std::rc::Rc;

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use crate::pg::error::SqlError;
use crate::pg::query::{NamedTable, Statement, Template};
use crate::pg::tables::relation::{self, Table, quote};

/// The type of value that a column holds.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // types of SQL
pub enum Kind {
    Id,
    Text,
    Integer,
    Number,
    Time,
    Boolean,
}

/// A column of a bound table: its key in a mapping, the names it is recognised by, the values it holds, whether
/// the table may lack it, whether it may be mapped to null.
pub struct ColumnRule {
    /// The key.
    pub key: &'static str,
    names: &'static [&'static str],
    kind: Kind,
    optional: bool,
    may_be_unmapped: bool,
}

/// A column that the table must have unless it is mapped to null; ids cannot be.
pub const fn rule(key: &'static str, names: &'static [&'static str], kind: Kind) -> ColumnRule {
    ColumnRule { key, names, kind, optional: false, may_be_unmapped: !matches!(kind, Kind::Id) }
}

/// A column that a table may lack.
pub const fn optional(key: &'static str, names: &'static [&'static str], kind: Kind) -> ColumnRule {
    ColumnRule { key, names, kind, optional: true, may_be_unmapped: true }
}

/// A column that the table must have, and that cannot be mapped to null.
pub const fn required(key: &'static str, names: &'static [&'static str], kind: Kind) -> ColumnRule {
    ColumnRule { key, names, kind, optional: false, may_be_unmapped: false }
}

/// The requirements on a table that is bound.
pub struct TableRules {
    /// Its name in messages: `turns`, `edges`, `events`.
    pub part: &'static str,
    /// The stable word in the DETAIL of its errors.
    pub word: &'static str,
    /// Its columns.
    pub columns: &'static [ColumnRule],
    /// The command that binds it, with a mapping filled in where one is given.
    pub command: fn(mapping: Option<&str>) -> String,
}

/// A bound table as it is now.
pub struct BoundTable {
    /// The table.
    pub table: Table,
    /// The relations below a partitioned table.
    pub partitions: Vec<pg_sys::Oid>,
    /// Its columns by key.
    pub columns: BTreeMap<&'static str, BoundColumn>,
}

/// A column of a bound table.
pub struct BoundColumn {
    /// The column's name and type, or `None` where the table has no such column.
    pub stored: Option<(String, pg_sys::Oid)>,
    kind: Kind,
}

impl BoundTable {
    /// The table of this OID with this mapping of columns, locked AccessShare.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when it is not what the rules ask for; 22023 for a bad mapping.
    pub fn resolve(
        oid: pg_sys::Oid,
        rules: &TableRules,
        mapping: Option<&Value>,
    ) -> Result<Self, SqlError> {
        let table = Table::lock(oid).ok_or_else(|| {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("the bound {} table was dropped", rules.part),
            )
            .detail(rules.word)
            .hint(format!("Run {}.", (rules.command)(None)))
        })?;
        let partitions = relation::check_storage(oid)
            .map_err(|error| error.into_sql_error().detail(rules.word))?;
        let mut columns = BTreeMap::new();
        for rule in rules.columns {
            let mapped = mapping.and_then(|m| m.get(rule.key));
            columns.insert(rule.key, rule.resolve(&table, rules, mapped)?);
        }
        Ok(BoundTable { table, partitions, columns })
    }

    /// The table in a FROM clause. ONLY keeps inheritance children out, which are not checked.
    pub fn from(&self) -> String {
        let only = if self.table.kind == pg_sys::RELKIND_RELATION { "ONLY " } else { "" };
        format!("{only}{}", self.table.qualified_name())
    }

    /// What SQL code needs to query the table: its OID, its name as it stands in a FROM clause, the
    /// name of each column or null, and the column as an expression over this alias.
    pub fn description(&self, alias: &str) -> Value {
        let (mut columns, mut expressions) = (Map::new(), Map::new());
        for (key, column) in &self.columns {
            let name = column.stored.as_ref().map(|(name, _)| name.clone());
            columns.insert((*key).to_owned(), name.into());
            expressions.insert((*key).to_owned(), column.expression(alias).into());
        }
        json!({
            "oid": self.table.oid.to_u32(),
            "from": self.from(),
            "columns": columns,
            "expressions": expressions,
        })
    }
}

impl ColumnRule {
    fn resolve(
        &self,
        table: &Table,
        rules: &TableRules,
        mapped: Option<&Value>,
    ) -> Result<BoundColumn, SqlError> {
        let named = |name: &str| table.columns.iter().find(|column| column.name == name);
        let (found, wanted) = match mapped {
            Some(Value::Null) if self.may_be_unmapped => return Ok(self.absent()),
            Some(Value::String(name)) => (named(name), quote(name)),
            Some(_) => return Err(self.bad_mapping()),
            None => {
                let names: Vec<String> = self.names.iter().map(|name| quote(name)).collect();
                (self.names.iter().find_map(|name| named(name)), names.join(" or "))
            }
        };
        match found {
            None if self.optional && mapped.is_none() => Ok(self.absent()),
            None => Err(self.error(
                rules,
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("table {} has no column {wanted}", table.qualified_name()),
            )),
            Some(column) if !self.kind.accepts(column.base_type) => Err(self.error(
                rules,
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "column {} of table {} has type {}, not {}",
                    quote(&column.name),
                    table.qualified_name(),
                    relation::type_name(column.base_type),
                    self.kind.wanted(),
                ),
            )),
            Some(column) => Ok(BoundColumn {
                stored: Some((column.name.clone(), column.base_type)),
                kind: self.kind,
            }),
        }
    }

    fn absent(&self) -> BoundColumn {
        BoundColumn { stored: None, kind: self.kind }
    }

    fn bad_mapping(&self) -> SqlError {
        let null = if self.may_be_unmapped { " or null" } else { "" };
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("column mapping of \"{}\" must be a column name{null}", self.key),
        )
        .detail("INVALID_BINDING")
    }

    fn error(&self, rules: &TableRules, code: PgSqlErrorCode, message: String) -> SqlError {
        let mapping = format!("{{\"{}\": \"my_column\"}}", self.key);
        SqlError::new(code, message).detail(rules.word).hint(format!(
            "Run {} with the names your tables use.",
            (rules.command)(Some(&mapping))
        ))
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
            Kind::Boolean => oid == pg_sys::BOOLOID,
            Kind::Time => matches!(oid, pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID),
        }
    }

    fn cast(self) -> &'static str {
        match self {
            Kind::Id => "::pg_catalog.uuid",
            Kind::Text => "::pg_catalog.text",
            Kind::Integer => "::pg_catalog.int8",
            Kind::Number => "::pg_catalog.float8",
            Kind::Boolean => "::pg_catalog.bool",
            Kind::Time => "::pg_catalog.timestamptz",
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Kind::Id => "uuid",
            Kind::Text => "text, varchar, uuid or an enum",
            Kind::Integer => "an integer type",
            Kind::Number => "real, double precision or an integer type",
            Kind::Boolean => "boolean",
            Kind::Time => "timestamp or timestamptz",
        }
    }
}

impl BoundColumn {
    /// The column as an expression of the type that the store reads, whatever it is now: with another type
    /// the statement does not parse, or gives columns that are refused. None of the conversions can fail on a
    /// stored value, and none runs code of a user's: an enum's owner could give it a cast to text, so its own
    /// output function is called, by concat, which also takes a domain over it.
    pub fn expression(&self, alias: &str) -> String {
        let Some((name, base_type)) = &self.stored else {
            return format!("NULL{}", self.kind.cast());
        };
        let column = format!("{alias}.{}", quote(name));
        match *base_type {
            oid if relation::is_enum(oid) => {
                format!("CASE WHEN {column} IS NOT NULL THEN pg_catalog.concat({column}) END")
            }
            // A conversion into timestamptz would depend on the session's time zone.
            pg_sys::TIMESTAMPOID => format!("{column}::pg_catalog.timestamp"),
            _ => format!("{column}{}", self.kind.cast()),
        }
    }
}

/// A table as it stands in a statement's text.
pub struct TablePlaceholder<'a> {
    /// The placeholder of the table itself.
    pub name: &'static str,
    /// Its alias in the statement, which begins the placeholders of columns.
    pub alias: &'static str,
    /// The table.
    pub table: &'a BoundTable,
}

/// Fills names into a statement of sql/queries: `{turns}` is a table, `{t.key}` a column of it; `extra`
/// are other placeholders and their texts. In one pass: names that users chose are never searched for
/// placeholders.
pub fn fill(
    template: &Template,
    extra: &[(&str, &str)],
    tables: &[TablePlaceholder<'_>],
) -> Statement {
    let mut named = Vec::new();
    let mut value = |placeholder: &str| {
        if let Some((_, text)) = extra.iter().find(|(name, _)| *name == placeholder) {
            return (*text).to_owned();
        }
        let found = match placeholder.split_once('.') {
            None => tables.iter().find(|t| t.name == placeholder).map(|t| {
                let Table { oid, columns, .. } = &t.table.table;
                named.push(NamedTable { oid: *oid, columns: Rc::clone(columns) });
                t.table.from()
            }),
            Some((alias, key)) => tables
                .iter()
                .find(|t| t.alias == alias)
                .map(|t| t.table.columns[key].expression(alias)),
        };
        found.expect("placeholders name tables of the statement")
    };
    let mut parts = template.text.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (placeholder, rest) = part.split_once('}').expect("placeholders are closed");
        text.push_str(&value(placeholder));
        text.push_str(rest);
    }
    Statement::new(template, text, named)
}
