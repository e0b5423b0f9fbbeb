//! The bound event table: which table, which columns.

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::catalog::names::{self, literal_of};
use crate::pg::catalog::privileges::{Use, check_binder, shown_to_others};
use crate::pg::catalog::relation::{self, row_security_applies_to};
use crate::pg::error::{Reads, SqlError, Word};
use crate::pg::private::binding::{RecorderBinding, mapping, recorder_writers};
use crate::pg::query::{Statement, Template, check_unseen};
use crate::pg::shortage::memory;
use crate::pg::tables::bound_table::{
    BoundTable, ColumnRule, Mapping, MappingChange, TableRules, TableText, ValueKind, fill,
    literal, optional, required,
};

const EVENT_COLUMNS: &[ColumnRule] = &[
    required("segment_id", &["segment_id"], ValueKind::Integer),
    required("ordinal", &["ordinal"], ValueKind::Integer),
    required("byte_offset", &["byte_offset"], ValueKind::Integer),
    required("event_id", &["event_id"], ValueKind::Text),
    required("pane_id", &["pane_id"], ValueKind::Integer),
    optional("session_id", &["session_id"], ValueKind::Text),
    required("occurred_at_ms", &["occurred_at_ms"], ValueKind::Integer),
    required("event_type", &["event_type"], ValueKind::Text),
    required("text", &["text"], ValueKind::Text),
    optional("is_gap", &["is_gap"], ValueKind::Boolean),
    optional("schema_version", &["schema_version"], ValueKind::Text),
];

/// The query that shows the binding.
const BINDING: &str = "SELECT events, columns FROM graph_kernel.recorder_binding";

/// The event table as it is named now.
pub struct RecorderTable {
    events: BoundTable,
    in_statements: TableText,
    rls: bool,
}

impl RecorderTable {
    /// The bound table, or the default one while nothing is bound. It stays locked AccessShare to the
    /// transaction's end. Raises 42501 before that where the current role has no right to it.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when the table is not what chunking needs; 42501 when its binder may not read it;
    /// 40001 where the snapshot is older than the table.
    pub fn current() -> Result<Self, SqlError> {
        let table = match Self::bound()? {
            Some(bound) => bound,
            None => {
                let default = relation::lock_by_name(c"public", c"recorder_events");
                Self::resolve(default.ok_or_else(no_default_table)?, &Value::Null, None)?
            }
        };
        table.check_settled()?;
        Ok(table)
    }

    /// The bound table alone.
    ///
    /// # Errors
    /// As [`RecorderTable::current`].
    pub fn bound() -> Result<Option<Self>, SqlError> {
        memory::check();
        let bound =
            RecorderBinding::current().map(|RecorderBinding { events, columns, binder }| {
                relation::check_rights(events);
                let table = Self::resolve(events, &mapping(columns.as_ref())?, Some(binder));
                table.map_err(|error| shown_to_others(error, Word::RecorderTable, binder, BINDING))
            });
        let bound = bound.transpose()?;
        // After it was found and waited for: another one may have been bound meanwhile.
        check_unseen(recorder_writers())?;
        Ok(bound)
    }

    /// The default table, which anybody may have made, not looked at.
    pub fn default_table() -> Option<pg_sys::Oid> {
        relation::find(c"public", c"recorder_events")
    }

    /// The table of this OID, with this column mapping, as this role binds or bound it.
    ///
    /// # Errors
    /// As [`RecorderTable::current`]; 22023 for a bad mapping.
    pub fn resolve(
        events: pg_sys::Oid,
        mapping: &Value,
        binder: Option<pg_sys::Oid>,
    ) -> Result<Self, SqlError> {
        check_mapping(mapping)?;
        let rules = TableRules {
            part: "events",
            word: Word::RecorderTable,
            columns: EVENT_COLUMNS,
            expressions: None,
            command: &|change| bind_command(events, mapping, change),
        };
        let events = BoundTable::resolve(events, &rules, Mapping::of_columns(mapping.as_object()))?;
        if let Some(binder) = binder {
            let read = || {
                let columns = events.columns.values();
                columns
                    .flat_map(|column| events.raw_columns(column))
                    .map(|raw| raw.number)
                    .collect()
            };
            check_binder(binder, events.table.oid, Use::Read, read, || BINDING.to_owned())
                .map_err(|error| error.word(Word::RecorderTable))?;
        }
        let rls = row_security_applies_to(events.table.oid);
        let in_statements = events.in_statements("events", "e");
        Ok(RecorderTable { events, in_statements, rls })
    }

    /// What SQL code needs to query the table.
    pub fn description(&self) -> Value {
        self.events.description("e")
    }

    /// The table.
    pub fn oid(&self) -> pg_sys::Oid {
        self.events.table.oid
    }

    /// As [`BoundTable::check_settled`].
    ///
    /// # Errors
    /// 40001.
    pub fn check_settled(&self) -> Result<(), SqlError> {
        self.events.check_settled()
    }

    /// What its errors need a hint for, as the current role reads it.
    pub fn reads(&self) -> Reads {
        Reads {
            row_security: self.rls,
            distributed: self.events.is_distributed,
            ..Reads::default()
        }
    }

    /// A statement of sql/queries with the table's names filled in.
    pub fn statement(&self, template: &Template) -> Statement {
        fill(template, &[], &[&self.in_statements], &[], false)
    }
}

/// The call that binds a table, with this value at a place of the mapping.
fn bind_command(events: pg_sys::Oid, mapping: &Value, change: MappingChange) -> String {
    let mut columns = mapping.as_object().cloned().unwrap_or_default();
    if let Some((place, value)) = change {
        place.put(&mut columns, value);
    }
    let table = names::typed_name(events).unwrap_or("<events table>".to_owned());
    let columns = match columns.is_empty() {
        true => String::new(),
        false => format!(", {}", literal(&Value::Object(columns))),
    };
    format!("SELECT graph_kernel.bind_recorder_table({}{columns})", literal_of(&table))
}

fn no_default_table() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        "relation \"public.recorder_events\" does not exist",
    )
    .word(Word::RecorderTable)
    .hint(
        "Run SELECT graph_kernel.create_recorder_table(), or bind a table of your own with \
         SELECT graph_kernel.bind_recorder_table('<events table>').",
    )
}

fn check_mapping(mapping: &Value) -> Result<(), SqlError> {
    let wrong = |message: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .word(Word::InvalidBinding)
            .hint("Give columns as '{\"ordinal\": \"my_column\"}'.")
    };
    let columns = match mapping {
        Value::Null => return Ok(()),
        Value::Object(columns) => columns,
        _ => return Err(wrong("column mapping must be a JSON object".to_owned())),
    };
    match columns.keys().find(|key| EVENT_COLUMNS.iter().all(|rule| rule.key != **key)) {
        Some(key) => Err(wrong(format!("column mapping has no key \"{key}\""))),
        None => Ok(()),
    }
}
