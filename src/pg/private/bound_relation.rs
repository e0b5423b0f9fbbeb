//! The SQL type `graph_kernel.bound_relation`: a relation by its OID, which follows it through renames, as `regclass`
//! does. But a dump with one that is gone, and a restore without one, lose nothing else.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::catalog::relation;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::text::{CStringArg, checked};

// Declared in sql/bootstrap.sql, in the private schema. The results are data: pgrx takes the OID 0 for NULL.
/// The relation of a name; 0, with a WARNING, where there is none. A number is none: it could be another relation's by
/// now. Where the name cannot be read the server's error is raised.
#[pg_extern(stable, parallel_safe, sql = false)]
fn bound_relation_in(name: CStringArg) -> pgrx::Internal {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let found = match name.as_bytes() {
        b"-" => Some(pg_sys::InvalidOid),
        _ if is_number => None,
        _ => relation::find_typed(&name).or_raise(),
    };
    let relation = found.unwrap_or_else(|| {
        let message = format!("there is no table {}", &*name);
        SqlError::new(PgSqlErrorCode::ERRCODE_WARNING, message).report(PgLogLevel::WARNING);
        pg_sys::InvalidOid
    });
    pgrx::Internal::from(Some(pg_sys::Datum::from(relation)))
}

/// The name of a relation as a `regclass` has it. It is `-` where the relation is gone, or where its name is not text,
/// which no restore could read.
#[pg_extern(stable, parallel_safe, sql = false)]
fn bound_relation_out(relation: pg_sys::Oid) -> CString {
    // SAFETY: regclassout takes an OID, of a relation or not; its result is a C string of this memory context.
    let name = unsafe {
        let relation = Some(pg_sys::Datum::from(relation));
        pgrx::direct_function_call::<&CStr>(pg_sys::regclassout, &[relation])
            .expect("regclassout returns a string")
    };
    // A name of digits alone is quoted.
    let is_number = name.to_bytes().iter().all(u8::is_ascii_digit);
    if is_number || checked(name.to_bytes()).is_err() { c"-" } else { name }.to_owned()
}
