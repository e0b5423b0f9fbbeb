//! The types of values that columns hold.

use pgrx::pg_sys;

use crate::pg::catalog::{names, relation};

/// The type of value that a column holds.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // types of SQL
pub enum ValueKind {
    Id,
    Text,
    Integer,
    Number,
    Time,
    Boolean,
    /// JSON, as its text.
    Json,
    Bytes,
    /// Ids of turns.
    Ids,
    /// What may name turns: looked through as a text.
    Named,
    /// What rows are sought by, by an operator that is leakproof: never an expression.
    Owner,
    /// What rows are compared by, each value as the type that it has; ids of sessions.
    Session,
    /// What rows are ordered by, each value as the type that it has.
    Order,
}

impl ValueKind {
    /// Whether a column of this type holds such values.
    pub fn accepts(self, oid: pg_sys::Oid) -> bool {
        let integer = matches!(oid, pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID);
        match self {
            ValueKind::Id => oid == pg_sys::UUIDOID,
            ValueKind::Text => {
                matches!(
                    oid,
                    pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::UUIDOID
                ) || relation::is_enum(oid)
            }
            ValueKind::Integer => integer,
            ValueKind::Number => integer || matches!(oid, pg_sys::FLOAT4OID | pg_sys::FLOAT8OID),
            ValueKind::Boolean => oid == pg_sys::BOOLOID,
            ValueKind::Json => matches!(oid, pg_sys::JSONOID | pg_sys::JSONBOID),
            ValueKind::Bytes => oid == pg_sys::BYTEAOID,
            ValueKind::Ids => oid == pg_sys::UUIDARRAYOID,
            ValueKind::Named => matches!(
                oid,
                pg_sys::JSONOID
                    | pg_sys::JSONBOID
                    | pg_sys::TEXTOID
                    | pg_sys::VARCHAROID
                    | pg_sys::UUIDOID
                    | pg_sys::UUIDARRAYOID
            ),
            ValueKind::Owner => {
                matches!(oid, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::UUIDOID)
            }
            ValueKind::Time => matches!(oid, pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID),
            ValueKind::Session => {
                integer || matches!(oid, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::UUIDOID)
            }
            ValueKind::Order => own_cast(oid).is_some(),
        }
    }

    /// An expression of a type that is accepted, of a column that has another one, where a common one is known.
    pub(super) fn conversion(self, oid: pg_sys::Oid, column: &str) -> Option<String> {
        let column = in_conversion(column);
        match (self, oid) {
            (
                ValueKind::Id,
                pg_sys::TEXTOID
                | pg_sys::VARCHAROID
                | pg_sys::INT2OID
                | pg_sys::INT4OID
                | pg_sys::INT8OID,
            ) => Some(format!("graph_turn_id({column})")),
            // Equal numbers have one text only without the zeros at their end.
            (ValueKind::Id, pg_sys::NUMERICOID) => {
                Some(format!("graph_turn_id(trim_scale({column})::text)"))
            }
            (ValueKind::Session, pg_sys::NUMERICOID) => Some(format!("trim_scale({column})::text")),
            (ValueKind::Session | ValueKind::Order, pg_sys::BPCHAROID) => {
                Some(format!("({column})::text"))
            }
            (ValueKind::Time, pg_sys::DATEOID) => Some(format!("({column})::timestamp")),
            (ValueKind::Number, pg_sys::NUMERICOID) => Some(format!("({column})::float8")),
            (ValueKind::Integer, pg_sys::NUMERICOID) => Some(format!("({column})::bigint")),
            (
                ValueKind::Time,
                pg_sys::INT4OID | pg_sys::INT8OID | pg_sys::FLOAT8OID | pg_sys::NUMERICOID,
            ) => Some(format!("to_timestamp({column})")),
            (ValueKind::Text, pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID) => {
                Some(format!("({column})::text"))
            }
            (ValueKind::Text, pg_sys::JSONOID | pg_sys::JSONBOID) => {
                // A json value may hold an escaped NUL, which no text can.
                let is_json = oid == pg_sys::JSONOID;
                Some(if is_json {
                    format!("({column})::text")
                } else {
                    format!("({column} #>> '{{}}')")
                })
            }
            _ => None,
        }
    }

    pub(super) fn cast(self) -> &'static str {
        match self {
            ValueKind::Id => "::pg_catalog.uuid",
            ValueKind::Text | ValueKind::Json | ValueKind::Owner | ValueKind::Named => {
                "::pg_catalog.text"
            }
            ValueKind::Integer => "::pg_catalog.int8",
            ValueKind::Number => "::pg_catalog.float8",
            ValueKind::Boolean => "::pg_catalog.bool",
            ValueKind::Bytes => "::pg_catalog.bytea",
            ValueKind::Ids => "::pg_catalog.uuid[]",
            ValueKind::Time => "::pg_catalog.timestamptz",
            ValueKind::Session | ValueKind::Order => "",
        }
    }

    pub(super) fn wanted(self) -> &'static str {
        match self {
            ValueKind::Id => "uuid",
            ValueKind::Text => "text, varchar, uuid or an enum",
            ValueKind::Integer => "an integer type",
            ValueKind::Number => "real, double precision or an integer type",
            ValueKind::Boolean => "boolean",
            ValueKind::Json => "jsonb or json",
            ValueKind::Bytes => "bytea",
            ValueKind::Ids => "uuid[]",
            ValueKind::Named => "jsonb, json, text, varchar, uuid or uuid[]",
            ValueKind::Owner => "text, varchar or uuid",
            ValueKind::Time => "timestamp or timestamptz",
            ValueKind::Session => "text, varchar, uuid or an integer type",
            ValueKind::Order => "a type of numbers, dates and times, text, varchar or uuid",
        }
    }
}

/// The cast to a type that values are compared as; `None` for a type whose values have no order that is used.
pub(super) fn own_cast(oid: pg_sys::Oid) -> Option<&'static str> {
    Some(match oid {
        // An index on a varchar compares texts.
        pg_sys::TEXTOID | pg_sys::VARCHAROID => "::pg_catalog.text",
        pg_sys::UUIDOID => "::pg_catalog.uuid",
        pg_sys::INT2OID => "::pg_catalog.int2",
        pg_sys::INT4OID => "::pg_catalog.int4",
        pg_sys::INT8OID => "::pg_catalog.int8",
        pg_sys::FLOAT4OID => "::pg_catalog.float4",
        pg_sys::FLOAT8OID => "::pg_catalog.float8",
        pg_sys::NUMERICOID => "::pg_catalog.numeric",
        pg_sys::DATEOID => "::pg_catalog.date",
        pg_sys::TIMESTAMPOID => "::pg_catalog.timestamp",
        pg_sys::TIMESTAMPTZOID => "::pg_catalog.timestamptz",
        _ => return None,
    })
}

/// A column in an expression that is proposed; `...` stands for any.
pub(super) fn in_conversion(column: &str) -> String {
    if column == "..." { column.to_owned() } else { names::quote_as_needed(column) }
}
