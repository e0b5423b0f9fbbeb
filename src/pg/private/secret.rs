//! The SQL type `graph_kernel.secret`: bytes that the library alone writes and reads.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::error::SqlError;
use crate::pg::text::CStringArg;

/// What stands for a secret in texts.
const HIDDEN: &CStr = c"hidden";

fn refused() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "no statement makes a value of type graph_kernel.secret",
    )
}

// Declared in sql/bootstrap.sql, in the private schema.
/// Raises 0A000.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn secret_in(_text: CStringArg) -> pgrx::Internal {
    refused().raise()
}

/// [`HIDDEN`], whatever it is.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn secret_out(_secret: pgrx::Internal) -> CString {
    HIDDEN.to_owned()
}

/// Raises 0A000.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn secret_recv(_message: pgrx::Internal) -> pgrx::Internal {
    refused().raise()
}

/// No bytes, whatever it is.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn secret_send(_secret: pgrx::Internal) -> pgrx::Internal {
    // SAFETY: copies nothing. A text of no bytes is stored as such a bytea.
    let empty = unsafe { pg_sys::cstring_to_text_with_len(c"".as_ptr(), 0) };
    pgrx::Internal::from(Some(pg_sys::Datum::from(empty)))
}
