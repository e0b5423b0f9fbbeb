//! Why an expression of a mapping is not taken.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::catalog::functions::is_server_own;
use crate::pg::catalog::names;

/// Why an expression is not taken.
pub(super) struct ExpressionRefusal {
    pub(super) code: PgSqlErrorCode,
    pub(super) what: String,
    /// What to do, where more can be said than of any expression.
    pub(super) hint: Option<&'static str>,
}

impl ExpressionRefusal {
    pub(super) fn not_supported(what: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, what.into())
    }

    pub(super) fn invalid(what: String) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION, what)
    }

    pub(super) fn new(code: PgSqlErrorCode, what: String) -> Self {
        ExpressionRefusal { code, what, hint: None }
    }
}

/// Why an expression must not use a type; `None` for one of the server's own.
pub(super) fn foreign_type(type_oid: pg_sys::Oid) -> Option<ExpressionRefusal> {
    (!is_server_own(type_oid)).then(|| {
        let name = names::type_name(type_oid);
        ExpressionRefusal::invalid(format!("it uses type {name}, which is not the server's own"))
    })
}
