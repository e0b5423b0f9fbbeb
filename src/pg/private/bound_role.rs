//! The SQL type `graph_kernel.bound_role`: a role by its OID, and in a text by its name, as the OID may be another
//! role's where a dump is restored.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::text::{CStringArg, checked};

// Declared in sql/bootstrap.sql, in the private schema. The results are data: pgrx takes the OID 0 for NULL.
/// The role of a name; 0 where there is none.
#[pg_extern(stable, parallel_safe, sql = false)]
fn bound_role_in(name: CStringArg) -> pgrx::Internal {
    let name = CString::new(name.as_bytes()).expect("a cstring has no zero byte in it");
    // SAFETY: a syscache look-up by a NUL-terminated name; a missing role gives InvalidOid.
    let role = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    pgrx::Internal::from(Some(pg_sys::Datum::from(role)))
}

/// The name of a role. It is empty where the role is gone, or where its name is not text, which no restore could read.
#[pg_extern(stable, parallel_safe, sql = false)]
fn bound_role_out(role: pg_sys::Oid) -> CString {
    // SAFETY: a look-up that gives a NULL or a NUL-terminated name.
    let name = unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        (!name.is_null()).then(|| CStr::from_ptr(name))
    };
    name.filter(|name| checked(name.to_bytes()).is_ok()).unwrap_or(c"").to_owned()
}
