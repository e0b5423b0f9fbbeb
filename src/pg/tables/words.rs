//! The column that holds the turns' words: a `tsvector`, and the text search configuration that made it.

use std::ops::ControlFlow;

use kernel::json::quoted;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::catalog::names::{self, literal_of, quote};
use crate::pg::catalog::relation::{Table, TableColumn};
use crate::pg::error::{SqlError, Word};
use crate::pg::fixed_settings::{self, Level};
use crate::pg::query::{Argument, ColumnType, Planning, Statement, Template, query};

/// The column's key in `bind_tables`, and the name it is recognised by.
pub const KEY: &str = "words";

/// How the words of turns are compared with those of a question.
pub struct WordsColumn {
    /// The number of the column.
    pub number: i16,
    /// Its name.
    pub name: String,
    /// The column over the alias t.
    pub expression: String,
    /// The name of the configuration, one of the server's own.
    pub configuration: String,
}

/// A mapping of words.
#[derive(Default)]
struct Given<'v> {
    column: Option<&'v str>,
    configuration: Option<&'v str>,
}

impl WordsColumn {
    /// The column of this table that the mapping names, or the recognised one; `None` where there is none. A mapping is
    /// a name, `{"column": name, "configuration": name}` or null. A generated column says its configuration itself.
    /// `command` binds the table with another mapping.
    ///
    /// # Errors
    /// 42703, 42804, 42704 where what is named is not there or not such a column; 22023 for a bad mapping.
    pub fn resolve(
        table: &Table,
        mapping: Option<&Value>,
        command: &str,
    ) -> Result<Option<Self>, SqlError> {
        let Some(given) = parse_mapping(mapping, command)? else { return Ok(None) };
        let is_named = mapping.is_some();
        let name = given.column.unwrap_or(KEY);
        let unusable = |code, message: String| {
            SqlError::new(code, message).word(Word::GraphTables).hint(format!("Run {command};"))
        };
        let is_words = |column: &&TableColumn| column.base_type == pg_sys::TSVECTOROID;
        let stored = table.columns.iter().find(|column| column.name == name);
        let stored = match stored {
            Some(stored) if is_words(&stored) => stored,
            _ if !is_named => return Ok(None),
            None => {
                let message =
                    format!("table {} has no column {}", table.qualified_name(), quote(name));
                return Err(unusable(PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN, message));
            }
            Some(stored) => {
                let message = format!(
                    "column {} of table {} has type {}, not tsvector",
                    quote(name),
                    table.qualified_name(),
                    names::type_name(stored.base_type),
                );
                return Err(unusable(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message));
            }
        };
        let generated = generated_with(table.oid, stored.number);
        let configuration = match (given.configuration, generated) {
            (Some(given), Some(made)) if given != made => {
                let message = format!(
                    "column {} of table {} is made with the configuration {}, not {}",
                    quote(name),
                    table.qualified_name(),
                    quoted(&made),
                    quoted(given),
                );
                return Err(unusable(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message));
            }
            (Some(given), _) => given.to_owned(),
            (None, Some(made)) => made,
            (None, None) if !is_named => return Ok(None),
            (None, None) => {
                let message = format!(
                    "column {} of table {} does not say its text search configuration",
                    quote(name),
                    table.qualified_name(),
                );
                return Err(unusable(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message));
            }
        };
        match is_own_configuration(&configuration) {
            Some(true) => {}
            _ if !is_named => return Ok(None),
            own => {
                let what = match own {
                    None => "is not one of the server's own",
                    Some(_) => "has a dictionary that is not the server's own",
                };
                let message =
                    format!("text search configuration {} {what}", quoted(&configuration));
                return Err(unusable(PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT, message));
            }
        }
        Ok(Some(WordsColumn {
            number: stored.number,
            name: stored.name.clone(),
            expression: format!("t.{}::pg_catalog.tsvector", quote(&stored.name)),
            configuration,
        }))
    }

    /// The configuration as a literal.
    pub fn configuration_literal(&self) -> String {
        literal_of(&format!("pg_catalog.{}", names::quote_as_needed(&self.configuration)))
    }
}

/// What a mapping says; `None` for none.
fn parse_mapping<'v>(
    mapping: Option<&'v Value>,
    command: &str,
) -> Result<Option<Given<'v>>, SqlError> {
    let bad = || {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "column mapping of \"words\" must be a column name, an object or null",
        )
        .word(Word::InvalidBinding)
        .hint(format!("Run {command};"))
    };
    match mapping {
        None => Ok(Some(Given::default())),
        Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(Given { column: Some(name), configuration: None })),
        Some(Value::Object(given)) => {
            let text = |key| match given.get(key) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text.as_str())),
                Some(_) => Err(bad()),
            };
            if given.keys().any(|key| key != "column" && key != "configuration") {
                return Err(bad());
            }
            Ok(Some(Given { column: text("column")?, configuration: text("configuration")? }))
        }
        Some(_) => Err(bad()),
    }
}

const GENERATED_BY: Template = Template::new(
    include_str!("../../../sql/queries/generated_by.sql"),
    &[ColumnType::Text],
    Planning::Once,
);

const CONFIGURATION: Template = Template::new(
    include_str!("../../../sql/queries/text_search_configuration.sql"),
    &[ColumnType::Boolean],
    Planning::Once,
);

/// The configuration that a generated column names. The server writes it without a schema where it is in pg_catalog,
/// which is alone in the search_path.
fn generated_with(table: pg_sys::Oid, number: i16) -> Option<String> {
    let mut expression = None;
    let oid = table.to_u32().to_string();
    let arguments = [Argument::Text(Some(&oid)), Argument::Number(number.into())];
    // Which names are quoted is a setting of the session's.
    let level = Level::begin();
    fixed_settings::fix(&fixed_settings::PARSING);
    query(&statement(&GENERATED_BY), &arguments, |row| {
        expression = row.text(0, |text| text.map(str::to_owned));
        ControlFlow::Break(())
    });
    level.end();
    let expression = expression?;
    let (before, _) = expression.split_once("'::regconfig")?;
    let (_, name) = before.rsplit_once('\'')?;
    Some(name.to_owned())
}

/// Whether a configuration of the server's own has dictionaries of its own alone; `None` where there is none of this
/// name.
fn is_own_configuration(name: &str) -> Option<bool> {
    let mut found = None;
    query(&statement(&CONFIGURATION), &[Argument::Text(Some(name))], |row| {
        found = row.bool(0);
        ControlFlow::Break(())
    });
    found
}

fn statement(template: &Template) -> Statement {
    Statement::new(template, template.text.to_owned(), Vec::new())
}
