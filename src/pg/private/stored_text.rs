//! What the private tables ask of the texts that they store.

use std::ffi::CString;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError, Word};
use crate::pg::text::{StoredText, TextArg, checked};

// Declared in sql/bootstrap.sql, in the private schema.
/// True for a text. Raises 22021 for bytes that are not UTF-8.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn require_text(_content: TextArg<'_>) -> bool {
    true // It was checked when it was taken.
}

/// True for a name of a role that is text. Raises 22021 for another one, with the command that renames the role.
#[pg_extern(stable, parallel_safe, sql = false)]
fn require_role_name(name: StoredText) -> bool {
    name.with_bytes(|bytes| checked(bytes).map_or_else(|_| Err(role_of(bytes)), |_| Ok(())))
        .map_err(|role| {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
                "the name of the role is not UTF-8",
            )
            .word(Word::InvalidText)
            .hint(match role {
                Some(role) => format!(
                    "DO $$ BEGIN EXECUTE pg_catalog.format('ALTER ROLE %I RENAME TO new_name', \
                     pg_catalog.pg_get_userbyid({role})); END $$;"
                ),
                None => "Give the name of a role in UTF-8.".to_owned(),
            })
        })
        .or_raise();
    true
}

/// The role that has these bytes as its name.
fn role_of(name: &[u8]) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a look-up by a NUL-terminated name.
    let role = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (role != pg_sys::InvalidOid).then(|| role.to_u32())
}
