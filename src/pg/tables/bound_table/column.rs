//! A column of a bound table, as statements read it.

use pgrx::pg_sys;
use serde_json::{Value, json};

use super::kind::{ValueKind, own_cast};
use crate::pg::catalog::names::{self, literal_of, quote};
use crate::pg::catalog::relation;
use crate::pg::tables::expression::Expression;

/// A column of a bound table, or what stands for it.
pub struct BoundColumn {
    /// Where the values are; `None` where the table has none.
    pub stored: Option<ColumnSource>,
    /// Texts that are read as others: each in ASCII lower case, and what it is read as.
    pub read_as: Vec<(String, &'static str)>,
    /// Whether it was found by a recognised name, not by a mapping.
    pub(super) recognised: bool,
    pub(super) kind: ValueKind,
}

/// Where the values of a key are.
pub enum ColumnSource {
    /// In a column.
    Column {
        /// Its name.
        name: String,
        /// Its type; of a domain, the type below it.
        base_type: pg_sys::Oid,
    },
    /// They are computed from the row.
    Expression(Expression),
}

impl BoundColumn {
    /// The column as an expression of the type that the store reads, whatever it is now: with another type
    /// the statement does not parse, or gives columns that are refused. None of the conversions can fail on a
    /// stored value, and none runs code of a user's. An enum's owner could give it a cast to text: its own
    /// output function is called, by concat, which also takes a domain over it.
    pub fn expression(&self, alias: &str) -> String {
        let (Some(value), Some(base_type)) = (self.value(alias), self.base_type()) else {
            return format!("NULL{}", self.kind.cast());
        };
        let value = match base_type {
            oid if matches!(self.kind, ValueKind::Session | ValueKind::Order) => {
                format!("{value}{}", own_cast(oid).unwrap_or_default())
            }
            oid if relation::is_enum(oid) => {
                format!("CASE WHEN {value} IS NOT NULL THEN pg_catalog.concat({value}) END")
            }
            // A conversion into timestamptz would depend on the session's time zone.
            pg_sys::TIMESTAMPOID => format!("{value}::pg_catalog.timestamp"),
            // Any row may be too long.
            pg_sys::JSONOID if matches!(self.kind, ValueKind::Named) => {
                format!("graph_kernel.json_text({value})")
            }
            pg_sys::JSONBOID if matches!(self.kind, ValueKind::Named) => {
                format!("graph_kernel.json_to_look_through({value})")
            }
            // No JSON is empty: what is too long is.
            pg_sys::JSONOID | pg_sys::JSONBOID => format!(
                "CASE WHEN {value} IS NOT NULL THEN COALESCE(graph_kernel.json_text({value}), '') END"
            ),
            _ => format!("{value}{}", self.kind.cast()),
        };
        if self.read_as.is_empty() { value } else { self.translated(&value) }
    }

    /// The value over an alias as it is stored, of its own type, which an index on it finds, and that type. `None`
    /// where it is not stored.
    pub fn stored_value(&self, alias: &str) -> Option<(String, pg_sys::Oid)> {
        let base_type = self.base_type()?;
        Some(match base_type {
            pg_sys::UUIDOID => (format!("{}::pg_catalog.uuid", self.value(alias)?), base_type),
            _ => (self.expression(alias), base_type),
        })
    }

    /// The column or the expression over an alias.
    fn value(&self, alias: &str) -> Option<String> {
        self.stored.as_ref().map(|stored| match stored {
            ColumnSource::Column { name, .. } => format!("{alias}.{}", quote(name)),
            ColumnSource::Expression(expression) => format!("({})", expression.over(alias)),
        })
    }

    /// A text, or what it is read as. With collation "C", `lower` changes ASCII letters alone, and what is around this
    /// expression has one collation, whatever the column's is.
    fn translated(&self, text: &str) -> String {
        let array = |items: Vec<&str>| {
            let items: Vec<String> = items.into_iter().map(literal_of).collect();
            format!("ARRAY[{}]::pg_catalog.text[]", items.join(", "))
        };
        let stored = array(self.read_as.iter().map(|(stored, _)| stored.as_str()).collect());
        let read = array(self.read_as.iter().map(|(_, read)| *read).collect());
        format!(
            "(COALESCE(({read})[pg_catalog.array_position({stored}, \
             pg_catalog.lower(({text}) COLLATE pg_catalog.\"C\"))], {text}) COLLATE pg_catalog.\"C\")"
        )
    }

    /// The name of the column, where it is one.
    pub fn column_name(&self) -> Option<&str> {
        match &self.stored {
            Some(ColumnSource::Column { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// The name of the column or the text of the expression; `None` where it is not stored.
    pub(super) fn name_or_text(&self) -> Option<&str> {
        self.stored.as_ref().map(|stored| match stored {
            ColumnSource::Column { name, .. } => name.as_str(),
            ColumnSource::Expression(expression) => &expression.text,
        })
    }

    /// Its text as an index definition has it; `None` where it is not stored.
    pub fn index_key(&self) -> Option<String> {
        self.stored.as_ref().map(|stored| match stored {
            ColumnSource::Column { name, .. } => names::quote_as_needed(name),
            ColumnSource::Expression(expression) => expression.index_key.clone(),
        })
    }

    /// Whether it is computed from the row.
    pub fn is_expression(&self) -> bool {
        matches!(self.stored, Some(ColumnSource::Expression(_)))
    }

    /// Whether an index definition of it means the same in every search_path that has pg_catalog first.
    pub fn is_exact(&self) -> bool {
        !matches!(&self.stored, Some(ColumnSource::Expression(expression)) if !expression.is_exact)
    }

    /// Whether it makes an id of the values of columns, which are then ids themselves.
    pub fn makes_id(&self) -> bool {
        matches!(&self.stored, Some(ColumnSource::Expression(expression)) if expression.makes_id)
    }

    /// The type of its values; of a domain, the type below it.
    pub fn base_type(&self) -> Option<pg_sys::Oid> {
        self.stored.as_ref().map(|stored| match stored {
            ColumnSource::Column { base_type, .. } => *base_type,
            ColumnSource::Expression(expression) => expression.base_type,
        })
    }

    /// What a resolved mapping has for it: true where it has a recognised name, by which it is found again.
    pub fn mapped(&self) -> Value {
        match &self.stored {
            None => Value::Null,
            Some(_) if self.recognised => true.into(),
            Some(ColumnSource::Column { name, .. }) => name.clone().into(),
            Some(ColumnSource::Expression(expression)) => json!({ "expression": expression.text }),
        }
    }
}
