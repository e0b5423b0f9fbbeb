//! A table that an admin has bound, checked: how it is stored, and where it has which values.

use std::collections::BTreeMap;
use std::rc::Rc;

use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Map, Value, json};

use crate::pg::catalog::citus;
use crate::pg::catalog::index::{
    BtreeIndex, IndexKey, Indexed, btree_indexes, default_family, primary_key,
};
use crate::pg::catalog::names::{self, literal_of, quote};
use crate::pg::catalog::relation::{self, Table};
use crate::pg::error::{SqlError, Word};
use crate::pg::query::{NamedTable, Statement, Template, partitions_changed};
use crate::pg::tables::expression::Expression;
use crate::pg::tables::place::Place;

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
    columns: Option<&'a Map<String, Value>>,
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

/// A column of a bound table, or what stands for it.
pub struct BoundColumn {
    /// Where the values are; `None` where the table has none.
    pub stored: Option<ColumnSource>,
    /// Texts that are read as others: each in ASCII lower case, and what it is read as.
    pub read_as: Vec<(String, &'static str)>,
    /// Whether it was found by a recognised name, not by a mapping.
    recognised: bool,
    kind: ValueKind,
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
            return Err(partitions_changed());
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

    /// The table as it stands in statements that call it by this placeholder and alias.
    pub fn in_statements(&self, name: &'static str, alias: &'static str) -> TableText {
        let columns = self.columns.iter().map(|(key, column)| (*key, column.expression(alias)));
        self.in_statements_with(name, alias, columns.collect())
    }

    /// As [`BoundTable::in_statements`], with these texts for the placeholders of columns.
    pub fn in_statements_with(
        &self,
        name: &'static str,
        alias: &'static str,
        columns: BTreeMap<&'static str, String>,
    ) -> TableText {
        let Table { oid, columns: table_columns, .. } = &self.table;
        TableText {
            name,
            alias,
            from: self.from(),
            by_parent: None,
            by_child: None,
            times: 1,
            oid: *oid,
            is_distributed: self.is_distributed,
            table_columns: Rc::clone(table_columns),
            columns,
        }
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
                    .hint(format!("Give an expression as {{\"expression\": …}}: {command};")))
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
            self.conversion(expression.base_type, "…")
                .map_or_else(String::new, |example| format!(", such as {example}"))
        )))
    }

    /// As [`ValueKind::conversion`]. A content in JSON is a message, of which its text is wanted.
    fn conversion(&self, oid: pg_sys::Oid, column: &str) -> Option<String> {
        match (self.key, oid) {
            ("content_text", pg_sys::JSONOID | pg_sys::JSONBOID) => {
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
            may_be.push("{\"expression\": \"…\"}");
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
    let parts = key.iter().map(|number| {
        let part = table.columns.iter().find(|part| part.number == *number)?;
        let has_one_text = matches!(
            part.type_oid,
            pg_sys::TEXTOID
                | pg_sys::VARCHAROID
                | pg_sys::BPCHAROID
                | pg_sys::UUIDOID
                | pg_sys::INT2OID
                | pg_sys::INT4OID
                | pg_sys::INT8OID
        );
        has_one_text.then(|| format!("({})::text", names::quote_as_needed(&part.name)))
    });
    let parts: Vec<String> = parts.collect::<Option<_>>()?;
    Some(format!("graph_turn_id({})", parts.join(", '/', ")))
}

/// A column in an expression that is proposed; `…` stands for any.
fn in_conversion(column: &str) -> String {
    if column == "…" { column.to_owned() } else { names::quote_as_needed(column) }
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
    fn conversion(self, oid: pg_sys::Oid, column: &str) -> Option<String> {
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
            (ValueKind::Id, pg_sys::NUMERICOID) => Some(format!("graph_turn_id(({column})::text)")),
            (ValueKind::Session | ValueKind::Order, pg_sys::BPCHAROID | pg_sys::NUMERICOID) => {
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

    fn cast(self) -> &'static str {
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

    fn wanted(self) -> &'static str {
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
fn own_cast(oid: pg_sys::Oid) -> Option<&'static str> {
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
            pg_sys::JSONBOID if matches!(self.kind, ValueKind::Named) => {
                format!("graph_kernel.json_text({value})")
            }
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
    fn name_or_text(&self) -> Option<&str> {
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

/// A table as it stands in a statement's text.
pub struct TableText {
    /// The placeholder of the table itself.
    name: &'static str,
    /// Its alias in the statement, which begins the placeholders of columns.
    alias: &'static str,
    from: String,
    /// What stands for it where rows are found by their parent, where that is another text.
    by_parent: Option<String>,
    /// The table that is asked in its place where rows are found by their child.
    by_child: Option<(String, NamedTable)>,
    /// How often the table is named in each of them.
    times: usize,
    oid: pg_sys::Oid,
    is_distributed: bool,
    table_columns: Rc<[relation::TableColumn]>,
    /// The columns as expressions over the alias, by key.
    columns: BTreeMap<&'static str, String>,
}

impl TableText {
    /// The same, with a table that has the same rows in the same columns where they are found by their child.
    pub fn with_by_child(self, table: Option<&BoundTable>) -> Self {
        let named = |table: &BoundTable| NamedTable {
            oid: table.table.oid,
            columns: Rc::clone(&table.table.columns),
            is_distributed: table.is_distributed,
        };
        TableText { by_child: table.map(|table| (table.from(), named(table))), ..self }
    }

    /// The same with these texts in the place of the table, which name it so many times: where rows are found by their
    /// child, or in any order, and where they are found by their parent.
    pub fn in_place_of(self, times: usize, from: String, by_parent: String) -> Self {
        TableText { from, by_parent: Some(by_parent), times, ..self }
    }
}

/// Fills names into a statement of sql/queries: `{turns}` is a table, `{t.key}` a column of it; `extra`
/// are other placeholders and their texts, [`BY_IDS`] as well. `{edges_by_parent}` is `{edges}` where rows are found by
/// their parent, `{edges_by_child}` where by their child. `{t.key?}` is that column where a policy needs it, else NULL.
/// A part between `[[` and `]]` is repeated for each of `sources`, with UNION ALL between. In one pass: names that
/// users chose are never searched for placeholders.
pub fn fill(
    template: &Template,
    extra: &[(&str, &str)],
    tables: &[&TableText],
    sources: &[TableText],
    with_facts: bool,
) -> Statement {
    let mut filling = Filling { extra, with_facts, text: String::new(), named: Vec::new() };
    let mut parts = template.text.split("[[");
    filling.fill(parts.next().unwrap_or_default(), tables);
    for part in parts {
        let (repeated, rest) = part.split_once("]]").expect("repeated parts are closed");
        for (number, source) in sources.iter().enumerate() {
            if number > 0 {
                filling.text.push_str("\nUNION ALL\n");
            }
            let tables: Vec<&TableText> = tables.iter().copied().chain([source]).collect();
            filling.fill(repeated, &tables);
        }
        filling.fill(rest, tables);
    }
    Statement::new(template, filling.text, filling.named)
}

/// How turns are sought by the ids of `$1`: each by a probe of its own, or, where Citus reads the table, all by one
/// condition, of which it sees which servers to ask.
const BY_IDS: [(&str, [&str; 2]); 3] = [
    ("each_id", ["pg_catalog.unnest($1) AS k(id)\nCROSS JOIN LATERAL", ""]),
    ("that_id", ["k.id", "ANY ($1)"]),
    ("probed", ["OFFSET 0", ""]),
];

/// One of [`BY_IDS`].
fn by_ids(placeholder: &str, tables: &[&TableText]) -> Option<&'static str> {
    let (_, texts) = BY_IDS.into_iter().find(|(name, _)| *name == placeholder)?;
    let is_distributed = tables.iter().any(|table| table.is_distributed);
    Some(texts[usize::from(is_distributed)])
}

/// A statement that is being filled in.
struct Filling<'a> {
    extra: &'a [(&'a str, &'a str)],
    with_facts: bool,
    text: String,
    named: Vec<NamedTable>,
}

impl Filling<'_> {
    fn fill(&mut self, template: &str, tables: &[&TableText]) {
        let mut parts = template.split('{');
        self.text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (placeholder, rest) = part.split_once('}').expect("placeholders are closed");
            self.put(placeholder, tables);
            self.text.push_str(rest);
        }
    }

    fn put(&mut self, placeholder: &str, tables: &[&TableText]) {
        if let Some((_, text)) = self.extra.iter().find(|(name, _)| *name == placeholder) {
            self.text.push_str(text);
            return;
        }
        if let Some(text) = by_ids(placeholder, tables) {
            self.text.push_str(text);
            return;
        }
        let placeholder = match placeholder.strip_suffix('?') {
            Some("t.created_at") if !self.with_facts => {
                return self.text.push_str("NULL::pg_catalog.timestamptz");
            }
            Some(_) if !self.with_facts => return self.text.push_str("NULL::pg_catalog.text"),
            needed => needed.unwrap_or(placeholder),
        };
        let found = match placeholder.split_once('.') {
            None => {
                let sought = ["_by_parent", "_by_child"].into_iter();
                let name = sought.filter_map(|by| placeholder.strip_suffix(by)).next();
                let name = name.unwrap_or(placeholder);
                tables.iter().find(|t| t.name == name).map(|table| {
                    let by_child =
                        table.by_child.as_ref().filter(|_| placeholder.ends_with("_by_child"));
                    if let Some((from, named)) = by_child {
                        self.named.push(named.clone());
                        return from;
                    }
                    let named = || {
                        let columns = Rc::clone(&table.table_columns);
                        let TableText { oid, is_distributed, .. } = **table;
                        NamedTable { oid, columns, is_distributed }
                    };
                    self.named.extend(std::iter::repeat_with(named).take(table.times));
                    let by_parent =
                        table.by_parent.as_ref().filter(|_| placeholder.ends_with("_by_parent"));
                    by_parent.unwrap_or(&table.from)
                })
            }
            Some((alias, key)) => {
                tables.iter().find(|t| t.alias == alias).and_then(|table| table.columns.get(key))
            }
        };
        self.text.push_str(found.expect("placeholders name tables of the statement"));
    }
}
