//! Why an expression is not taken.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::catalog::functions::is_server_own;
use crate::pg::catalog::names;

/// Why an expression is not taken.
pub struct ExpressionRefusal {
    /// SQLSTATE.
    pub code: PgSqlErrorCode,
    /// What is wrong with it, for a message.
    pub what: String,
    /// What to do, where more can be said than of any expression.
    pub hint: Option<&'static str>,
}

impl ExpressionRefusal {
    /// 0A000: it is not a plain expression.
    pub fn not_supported(what: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, what.into())
    }

    /// 42P17: its value may follow something else than the row.
    pub fn invalid(what: String) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION, what)
    }

    /// 42P17: it calls a function of this extension that a mapping must not call.
    pub fn changing(function: &str) -> Self {
        Self::invalid(format!(
            "it calls function {function}, whose values may change with the version of the extension"
        ))
    }

    /// An error of this SQLSTATE.
    pub fn new(code: PgSqlErrorCode, what: String) -> Self {
        ExpressionRefusal { code, what, hint: None }
    }
}

/// Why an expression must not use a type; `None` for one of the server's own.
pub fn foreign_type(type_oid: pg_sys::Oid) -> Option<ExpressionRefusal> {
    (!is_server_own(type_oid)).then(|| {
        let name = names::type_name(type_oid);
        ExpressionRefusal::invalid(format!("it uses type {name}, which is not the server's own"))
    })
}

/// Why an expression must not use a type, where it is a pseudo-type, such as cstring and unknown: their values are
/// bytes in an encoding that is not said, or take another type.
pub fn pseudo_type(type_oid: pg_sys::Oid) -> Option<ExpressionRefusal> {
    // SAFETY: a syscache look-up.
    let kind = unsafe { pg_sys::get_typtype(type_oid) } as u8;
    (kind == pg_sys::TYPTYPE_PSEUDO).then(|| {
        let name = names::type_name(type_oid);
        ExpressionRefusal::invalid(format!("it uses pseudo-type {name}"))
    })
}
