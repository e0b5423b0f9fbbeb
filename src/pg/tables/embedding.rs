//! The column that holds the turns' embeddings: pgvector's `vector` or `halfvec`, or `real[]`.

use std::ops::ControlFlow;

use kernel::retrieval::similarity::{Distance, QueryEmbedding};
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Value, json};

use crate::pg::catalog::names::{self, quote};
use crate::pg::catalog::relation::Table;
use crate::pg::error::{SqlError, Word};
use crate::pg::fixed_settings;
use crate::pg::query::{Argument, ColumnType, Planning, Statement, Template, query};

/// The column's key in `bind_tables`, and the name it is recognised by.
pub const KEY: &str = "embedding";

/// How the turns of a graph are compared with a question.
pub struct EmbeddingColumn {
    /// The number of the column.
    pub number: i16,
    /// The column over the alias t.
    pub column: String,
    /// The same as `real[]`.
    pub expression: String,
    /// What similarity is computed from.
    pub distance: Distance,
    /// How an index is asked; `None` where none can serve: of `real[]`, and of vectors of any dimensions.
    pub indexed: Option<Indexed>,
    dimensions: Option<usize>,
    table: String,
}

/// pgvector's names as they stand in a statement.
pub struct Indexed {
    /// The type's OID.
    base_type: pg_sys::Oid,
    /// The type.
    pub type_name: String,
    /// The operator, as `OPERATOR(schema.name)`.
    pub operator: String,
}

/// From here on numbers are infinite in binary16, which pgvector refuses.
const HALF_INFINITY: f32 = 65_520.0;

impl Indexed {
    /// Whether the question can be written as a value of the type.
    pub fn has(&self, query: &QueryEmbedding) -> bool {
        let is_half = self.type_name.trim_end_matches('"').ends_with("halfvec");
        !is_half || query.values().iter().all(|value| value.abs() < HALF_INFINITY)
    }

    /// Lets the scan of an index find so many rows, until the function that is running returns.
    pub fn let_find(&self, rows: u32) {
        // SAFETY: look-ups in the catalog; looking a function of the library up loads it.
        unsafe {
            let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            pg_sys::getTypeInputInfo(self.base_type, &raw mut input, &raw mut parameter);
            let mut function = pg_sys::FmgrInfo::default();
            pg_sys::fmgr_info(input, &raw mut function);
        }
        fixed_settings::let_indexes_find(rows);
    }
}

impl EmbeddingColumn {
    /// The column of this table that the mapping names, or the recognised one. A mapping is a name
    /// or `{"column": name, "operator": name}`. `command` binds the table with another column.
    ///
    /// # Errors
    /// 42703, 42804, 42883 when it cannot be searched; 22023 for a bad mapping.
    pub fn resolve(
        table: &Table,
        mapping: Option<&Value>,
        command: &str,
    ) -> Result<Self, SqlError> {
        let unusable = |code, message: String| {
            let what = match mapping {
                None => "Add a column \"embedding\", or name yours",
                Some(_) => "Name a column of embeddings",
            };
            let error = SqlError::new(code, message).word(Word::NoEmbeddings);
            error.hint(format!("{what}: {command};"))
        };
        let (name, operator) = parse_mapping(mapping)?;
        let distance = Distance::from_name(operator).ok_or_else(|| bad_operator(operator))?;
        let stored = table.columns.iter().find(|column| Some(column.name.as_str()) == name);
        let Some(stored) = stored else {
            let message = match name {
                Some(name) => {
                    format!("table {} has no column {}", table.qualified_name(), quote(name))
                }
                None => format!("table {} is bound without embeddings", table.qualified_name()),
            };
            return Err(unusable(PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN, message));
        };
        let column = format!("t.{}", quote(&stored.name));
        let (expression, indexed) = if stored.base_type == pg_sys::FLOAT4ARRAYOID {
            (format!("{column}::pg_catalog.float4[]"), None)
        } else {
            let Some((type_name, found)) = vector_type(stored.base_type, operator) else {
                let message = format!(
                    "column {} of table {} has type {}, not pgvector's vector or halfvec, or real[]",
                    quote(&stored.name),
                    table.qualified_name(),
                    names::type_name(stored.base_type),
                );
                return Err(unusable(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message));
            };
            let Some(operator) = found else {
                let message = format!("pgvector has no operator {operator} for type {type_name}");
                return Err(unusable(PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION, message));
            };
            let base_type = stored.base_type;
            let indexed = Indexed { base_type, type_name, operator };
            // pgvector's operators compare none of other dimensions, and no index is over a column of any.
            let indexed = (stored.modifier >= 0).then_some(indexed);
            (format!("{column}::pg_catalog.float4[]"), indexed)
        };
        Ok(EmbeddingColumn {
            number: stored.number,
            column,
            expression,
            distance,
            // The modifier of pgvector's types is the number of dimensions.
            dimensions: indexed.as_ref().and_then(|_| usize::try_from(stored.modifier).ok()),
            indexed,
            table: table.qualified_name(),
        })
    }

    /// A query for this column.
    ///
    /// # Errors
    /// 22023 when the array is not an embedding or cannot be one of this column's.
    pub fn query(&self, elements: &[Option<f32>]) -> Result<QueryEmbedding, SqlError> {
        let query = QueryEmbedding::new(elements, self.distance)?;
        match self.dimensions {
            Some(wanted) if wanted != elements.len() => Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!(
                    "query embedding has {} dimensions, column {} of table {} has {wanted}",
                    elements.len(),
                    self.column.trim_start_matches("t."),
                    self.table,
                ),
            )
            .word(Word::EmbeddingDimensions)
            .hint("Embed questions with the model that embedded the turns.")),
            _ => Ok(query),
        }
    }
}

/// A mapping as this one, to another column: the operator stays.
pub fn mapped_to(column: &str, mapping: Option<&Value>) -> Value {
    match mapping.and_then(|mapping| mapping.get("operator")) {
        Some(operator) => json!({ "column": column, "operator": operator }),
        None => column.into(),
    }
}

/// The column's name, `None` when the table is bound without one, and the operator.
fn parse_mapping(mapping: Option<&Value>) -> Result<(Option<&str>, &str), SqlError> {
    let default = Distance::Cosine.name();
    let bad = || {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "column mapping of \"embedding\" must be a column name, an object or null",
        )
        .word(Word::InvalidBinding)
        .hint("Give it as '{\"turns\": {\"embedding\": {\"column\": \"...\", \"operator\": \"<=>\"}}}'.")
    };
    match mapping {
        None => Ok((Some(KEY), default)),
        Some(Value::Null) => Ok((None, default)),
        Some(Value::String(name)) => Ok((Some(name), default)),
        Some(Value::Object(given)) => {
            let text = |key, or| match given.get(key) {
                None => Ok(or),
                Some(Value::String(text)) => Ok(text.as_str()),
                Some(_) => Err(bad()),
            };
            if given.keys().any(|key| key != "column" && key != "operator") {
                return Err(bad());
            }
            Ok((Some(text("column", KEY)?), text("operator", default)?))
        }
        Some(_) => Err(bad()),
    }
}

const EMBEDDING_TYPE: Template = Template::new(
    include_str!("../../../sql/queries/embedding_type.sql"),
    &[ColumnType::Text, ColumnType::Text],
    Planning::Once,
);

/// The names of one of pgvector's types and of its operator, as the catalog has them now.
fn vector_type(base_type: pg_sys::Oid, operator: &str) -> Option<(String, Option<String>)> {
    let mut found = None;
    let oid = base_type.to_u32().to_string();
    query(
        &Statement::new(&EMBEDDING_TYPE, EMBEDDING_TYPE.text.to_owned(), Vec::new()),
        &[Argument::Text(Some(&oid)), Argument::Text(Some(operator))],
        |row| {
            let text = |column| row.text(column, |text| text.map(str::to_owned));
            found = text(0).map(|type_name| (type_name, text(1)));
            ControlFlow::Break(())
        },
    );
    found
}

fn bad_operator(operator: &str) -> SqlError {
    let known: Vec<&str> = Distance::ALL.iter().map(|distance| distance.name()).collect();
    SqlError::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("\"{operator}\" is not a distance operator"),
    )
    .word(Word::InvalidBinding)
    .hint(format!("Use one of {}.", known.join(" ")))
}
