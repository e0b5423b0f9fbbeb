//! The requirements on a table that is bound, and what its mapping says of each column.

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use super::column::{BoundColumn, ColumnSource};
use super::kind::{ValueKind, in_conversion};
use crate::pg::catalog::index::{BtreeIndex, IndexKey, Indexed, btree_indexes, primary_key};
use crate::pg::catalog::names::{self, literal_of, quote};
use crate::pg::catalog::relation::{self, Table};
use crate::pg::error::{SqlError, Word};
use crate::pg::tables::expression::Expression;
use crate::pg::tables::place::Place;

/// A column of a bound table: its key in a mapping, the names it is recognised by, the values it holds. Whether the
/// table may lack it, it may be mapped to null, and a column of another type is not recognised.
pub struct ColumnRule {
    /// The key.
    pub key: &'static str,
    names: &'static [&'static str],
    kind: ValueKind,
    optional: bool,
    may_be_unmapped: bool,
    by_type: bool,
}

/// A column that the table must have unless it is mapped to null; ids cannot be.
pub const fn rule(
    key: &'static str,
    names: &'static [&'static str],
    kind: ValueKind,
) -> ColumnRule {
    ColumnRule {
        key,
        names,
        kind,
        optional: false,
        may_be_unmapped: !matches!(kind, ValueKind::Id),
        by_type: false,
    }
}

/// A column that a table may lack.
pub const fn optional(
    key: &'static str,
    names: &'static [&'static str],
    kind: ValueKind,
) -> ColumnRule {
    ColumnRule { key, names, kind, optional: true, may_be_unmapped: true, by_type: false }
}

/// A column that a table may lack, of a name that tables use for other things as well: one of another type is not it.
pub const fn by_type(
    key: &'static str,
    names: &'static [&'static str],
    kind: ValueKind,
) -> ColumnRule {
    ColumnRule { by_type: true, ..optional(key, names, kind) }
}

/// A column that the table must have, and that cannot be mapped to null.
pub const fn required(
    key: &'static str,
    names: &'static [&'static str],
    kind: ValueKind,
) -> ColumnRule {
    ColumnRule { key, names, kind, optional: false, may_be_unmapped: false, by_type: false }
}

/// What a binding says of a table's columns.
#[derive(Clone, Copy)]
pub struct Mapping<'a> {
    /// A column's name, null or an expression, by key.
    pub(super) columns: Option<&'a Map<String, Value>>,
    /// What a key means that is not among them.
    unmapped: Unmapped,
    /// The schema that the names in expressions are looked up in after pg_catalog.
    schema: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unmapped {
    /// The column of a recognised name; without one, an error unless the rule says that the table may lack it.
    Required,
    /// The column of a recognised name, where the table has one.
    Recognised,
    /// It is not stored.
    Absent,
}

impl<'a> Mapping<'a> {
    /// That of a table with the columns that the rules ask for, but for those that are given other names.
    pub fn of_columns(columns: Option<&'a Map<String, Value>>) -> Self {
        Mapping { columns, unmapped: Unmapped::Required, schema: None }
    }

    /// That of an argument of `bind_tables`: what it does not name is looked for. The extension is in `schema`.
    pub fn given(columns: Option<&'a Map<String, Value>>, schema: &'a str) -> Self {
        Mapping { columns, unmapped: Unmapped::Recognised, schema: Some(schema) }
    }

    /// That of a binding as it was resolved when it was made: a column that was renamed since is missing, and never
    /// counts as not stored.
    pub fn resolved(columns: Option<&'a Map<String, Value>>) -> Self {
        Mapping { columns, unmapped: Unmapped::Absent, schema: None }
    }
}

/// The requirements on a table that is bound.
pub struct TableRules<'a> {
    /// Its name in messages: `turns`, `edges`, `events`.
    pub part: &'static str,
    /// The stable word in the DETAIL of its errors.
    pub word: Word,
    /// Its columns.
    pub columns: &'static [ColumnRule],
    /// The role with whose rights expressions are analysed; `None` where a mapping must not hold any.
    pub expressions: Option<pg_sys::Oid>,
    /// The command that binds it, with this value at this place of its mapping.
    pub command: &'a dyn Fn(MappingChange) -> String,
}

/// A value for a place of a mapping, where one is proposed.
pub type MappingChange = Option<(Place, Value)>;

impl ColumnRule {
    /// What a mapping has at `place` for this key, or what is recognised.
    ///
    /// # Errors
    /// As [`BoundTable::resolve`].
    pub fn resolve(
        &self,
        table: &Table,
        rules: &TableRules<'_>,
        mapping: Mapping<'_>,
        mapped: Option<&Value>,
        place: Place,
    ) -> Result<BoundColumn, SqlError> {
        let named = |name: &str| table.columns.iter().find(|column| column.name == name);
        let may_lack =
            self.optional || mapping.unmapped == Unmapped::Recognised && self.may_be_unmapped;
        let (found, wanted) = match mapped {
            Some(Value::Null) if self.may_be_unmapped => return Ok(self.absent()),
            Some(Value::String(name)) => (named(name), quote(name)),
            Some(Value::Object(given))
                if let Some(binder) = rules.expressions
                    && self.takes_expressions(rules)
                    && given.len() == 1 =>
            {
                let Some(Value::String(text)) = given.get("expression") else {
                    return Err(self.bad_mapping(rules, place));
                };
                let about = format!("\"{place}\" in {}", rules.part);
                let expression = Expression::parse(table, text, mapping.schema, binder, &about)?;
                return self.of_expression(expression, &about);
            }
            None if mapping.unmapped == Unmapped::Absent && self.may_be_unmapped => {
                return Ok(self.absent());
            }
            None | Some(Value::Bool(true))
                if mapped.is_none() || mapping.unmapped == Unmapped::Absent =>
            {
                let names: Vec<String> = self.names.iter().map(|name| quote(name)).collect();
                let found = self.names.iter().find_map(|name| named(name));
                let is_it = |column: &&relation::TableColumn| {
                    mapped.is_some() || !self.by_type || self.kind.accepts(column.base_type)
                };
                (found.filter(is_it), names.join(" or "))
            }
            _ => return Err(self.bad_mapping(rules, place)),
        };
        let recognised = !matches!(mapped, Some(Value::String(_)));
        match found {
            None if may_lack && mapped.is_none() => Ok(self.absent()),
            None if self.takes_expressions(rules)
                && let Some(text) = given_expression(mapping, mapped) =>
            {
                let message = format!("table {} has no column {wanted}", table.qualified_name());
                let value = json!({ "expression": text });
                let command = (rules.command)(Some((place, value)));
                Err(SqlError::new(PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN, message)
                    .word(rules.word)
                    .hint(format!("Give an expression as {{\"expression\": ...}}: {command};")))
            }
            None => Err(self.error(
                rules,
                place,
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("table {} has no column {wanted}", table.qualified_name()),
            )),
            Some(column) if !self.kind.accepts(column.base_type) => {
                let error = self.error(
                    rules,
                    place,
                    PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                    format!(
                        "column {} of table {} has type {}, not {}",
                        quote(&column.name),
                        table.qualified_name(),
                        names::type_name(column.base_type),
                        self.kind.wanted(),
                    ),
                );
                let command = |expression: String| {
                    (rules.command)(Some((place, json!({ "expression": expression }))))
                };
                let whole_key = match place {
                    Place::Key("id") if rules.expressions.is_some() => whole_key(table, column),
                    _ => None,
                };
                Err(match self.conversion(column.base_type, &column.name) {
                    Some(expression) if let Some(whole_key) = whole_key => error.hint(format!(
                        "If the whole primary key is the id, compute parents likewise: {}; if the column alone is \
                         unique: {}",
                        command(whole_key),
                        command(expression)
                    )),
                    Some(expression) if self.takes_expressions(rules) => {
                        let command = command(expression);
                        let milliseconds = match self.kind {
                            ValueKind::Time if column.base_type != pg_sys::DATEOID => {
                                "; milliseconds are divided by 1000.0 first"
                            }
                            _ => "",
                        };
                        error.hint(format!("Bind an expression{milliseconds}: {command}"))
                    }
                    _ => {
                        let value =
                            if self.may_be_unmapped { Value::Null } else { "my_column".into() };
                        let command = (rules.command)(Some((place, value)));
                        let or = if self.may_be_unmapped { ", or none" } else { "" };
                        let what =
                            if self.takes_expressions(rules) { " or an expression" } else { "" };
                        error.hint(format!("Bind a column{what} of that type{or}: {command}"))
                    }
                })
            }
            Some(column) => {
                let (name, base_type) = (column.name.clone(), column.base_type);
                let stored = Some(ColumnSource::Column { name, base_type });
                Ok(BoundColumn { stored, read_as: Vec::new(), recognised, kind: self.kind })
            }
        }
    }

    /// Whether an expression may stand for the column.
    fn takes_expressions(&self, rules: &TableRules<'_>) -> bool {
        rules.expressions.is_some() && !matches!(self.kind, ValueKind::Owner)
    }

    fn of_expression(&self, expression: Expression, about: &str) -> Result<BoundColumn, SqlError> {
        if self.kind.accepts(expression.base_type) {
            return Ok(self.bound(Some(ColumnSource::Expression(expression))));
        }
        Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            format!(
                "expression of {about} has type {}, not {}",
                names::type_name(expression.base_type),
                self.kind.wanted(),
            ),
        )
        .word(Word::InvalidBinding)
        .hint(format!(
            "Convert it in the expression{}.",
            self.conversion(expression.base_type, "...")
                .map_or_else(String::new, |example| format!(", such as {example}"))
        )))
    }

    /// As [`ValueKind::conversion`]. A content in JSON is a message, of which its text is wanted.
    fn conversion(&self, oid: pg_sys::Oid, column: &str) -> Option<String> {
        match (self.key, oid) {
            ("content_text", pg_sys::JSONBOID) => {
                Some(format!("graph_message_text({})", in_conversion(column)))
            }
            ("content_text", pg_sys::JSONOID) => {
                Some(format!("graph_message_text(({})::text)", in_conversion(column)))
            }
            _ => self.kind.conversion(oid, column),
        }
    }

    fn absent(&self) -> BoundColumn {
        self.bound(None)
    }

    fn bound(&self, stored: Option<ColumnSource>) -> BoundColumn {
        BoundColumn { stored, read_as: Vec::new(), recognised: false, kind: self.kind }
    }

    fn bad_mapping(&self, rules: &TableRules<'_>, place: Place) -> SqlError {
        let mut may_be = vec!["a column name"];
        if self.may_be_unmapped {
            may_be.push("null");
        }
        if self.takes_expressions(rules) {
            may_be.push("{\"expression\": \"...\"}");
        }
        let last = may_be.pop().unwrap_or_default();
        let before = may_be.join(", ");
        let or = if before.is_empty() { "" } else { " or " };
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("column mapping of \"{place}\" must be {before}{or}{last}"),
        )
        .word(Word::InvalidBinding)
        .hint(format!(
            "Run {} with the name that your table uses.",
            (rules.command)(Some((place, "my_column".into())))
        ))
    }

    fn error(
        &self,
        rules: &TableRules<'_>,
        place: Place,
        code: PgSqlErrorCode,
        message: String,
    ) -> SqlError {
        SqlError::new(code, message).word(rules.word).hint(format!(
            "Run {} with the name that your table uses.",
            (rules.command)(Some((place, "my_column".into())))
        ))
    }
}

/// The id that the primary key makes as a whole. This column is one of several in it and not unique alone, and each has
/// one text; else `None`. A partitioned table has such keys because of its partitions.
fn whole_key(table: &Table, column: &relation::TableColumn) -> Option<String> {
    let key = primary_key(table.oid);
    let is_part =
        table.kind == pg_sys::RELKIND_RELATION && key.len() > 1 && key.contains(&column.number);
    let is_alone = |index: &BtreeIndex| {
        index.is_unique
            && matches!(index.keys.as_slice(),
                [IndexKey { of: Indexed::Column(number), .. }] if *number == column.number)
    };
    if !is_part || btree_indexes(table.oid).iter().any(is_alone) {
        return None;
    }
    let parts = key.iter().map(|number| table.columns.iter().find(|part| part.number == *number));
    let parts: Vec<&relation::TableColumn> = parts.collect::<Option<_>>()?;
    let is_text = |part: &relation::TableColumn| {
        matches!(part.type_oid, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID)
    };
    let has_one_text = |part: &relation::TableColumn| {
        let others = [pg_sys::UUIDOID, pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID];
        is_text(part) || others.contains(&part.type_oid)
    };
    if !parts.iter().all(|part| has_one_text(part)) {
        return None;
    }
    let last_text = parts.iter().rposition(|part| is_text(part));
    let texts = parts.iter().enumerate().map(|(place, part)| {
        let text = format!("({})::text", names::quote_as_needed(&part.name));
        // Of two texts, each may have the slash that divides them.
        match is_text(part) && Some(place) != last_text {
            true => format!("graph_turn_id({text})::text"),
            false => text,
        }
    });
    Some(format!("graph_turn_id({})", texts.collect::<Vec<_>>().join(", '/', ")))
}

/// What a mapping as it was given has in the place of a column's name where it looks like an expression.
fn given_expression<'a>(mapping: Mapping<'_>, mapped: Option<&'a Value>) -> Option<&'a str> {
    let is_given = mapping.unmapped == Unmapped::Recognised;
    let text = mapped.and_then(Value::as_str).filter(|_| is_given)?;
    ["(", "::", "->"].into_iter().any(|part| text.contains(part)).then_some(text)
}

/// A value as a literal of type jsonb in a statement.
pub fn literal(value: &Value) -> String {
    literal_of(&value.to_string())
}
