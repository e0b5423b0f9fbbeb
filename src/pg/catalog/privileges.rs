//! What the role that bound a table may do with it. A bound table is read with the rights of whoever calls: without
//! this its binder would see through others what he may not see himself.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::catalog::{names, relation};
use crate::pg::error::{SqlError, Word};
use crate::pg::session::current_role;

/// What is done with a bound table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Its rows are read.
    Read,
    /// Rows are inserted.
    Insert,
    /// A column is written.
    Update,
}

impl Use {
    fn mode(self) -> pg_sys::AclMode {
        match self {
            Use::Read => pg_sys::ACL_SELECT as pg_sys::AclMode,
            Use::Insert => pg_sys::ACL_INSERT as pg_sys::AclMode,
            Use::Update => pg_sys::ACL_UPDATE as pg_sys::AclMode,
        }
    }

    fn refusal(self) -> &'static str {
        match self {
            Use::Read => "may not read it whole",
            Use::Insert => "may not insert there",
            Use::Update => "may not write there",
        }
    }
}

/// Checks that the role that bound a table, which is locked, may use these columns of it. The table's owner may; row
/// security must not hide rows from another one. `binding` is the query that shows what it is bound as.
///
/// # Errors
/// 42501.
pub fn check_binder(
    binder: pg_sys::Oid,
    table: pg_sys::Oid,
    how: Use,
    columns: impl FnOnce() -> Vec<i16>,
    binding: impl FnOnce() -> String,
) -> Result<(), SqlError> {
    if may(binder, table, how, columns) {
        return Ok(());
    }
    let name = names::typed_name(table).unwrap_or_else(|| table.to_u32().to_string());
    let what = how.refusal();
    let role = names::role_name(binder).map(|role| names::quote_as_needed(&role));
    let message = match &role {
        Some(role) => format!("role {role} has bound table {name}, and {what}"),
        None if binder == pg_sys::InvalidOid => {
            format!("the role that bound table {name} was not found when its binding was restored")
        }
        None => format!("the role that bound table {name} does not exist"),
    };
    let error = SqlError::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message);
    // No GRANT to the binder: the owner may have taken the right on purpose, and a binding's row may name any table.
    // Nor the call that binds it so: the mapping may name a column that must not be read, or written, as what it says.
    Err(error.word(Word::GraphTables).hint(format!(
        "Let a role that may, such as the owner of the table, bind it again, if each column holds what the mapping \
         says: {};",
        binding()
    )))
}

/// The error of a table that another role has bound, with the query that shows the binding in place of a call that
/// binds it again: whoever makes that call runs code of the table's owner, and the mapping may be anything.
pub fn shown_to_others(
    error: SqlError,
    word: Word,
    binder: pg_sys::Oid,
    binding: &str,
) -> SqlError {
    // What the binder lacks is said by the error.
    let lacks_right = error.has_code(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE);
    match error.is(word) && !lacks_right && binder != current_role() {
        true => error.hint(format!("Let the role that has bound it see to it: {binding};")),
        false => error,
    }
}

fn may(
    binder: pg_sys::Oid,
    table: pg_sys::Oid,
    how: Use,
    columns: impl FnOnce() -> Vec<i16>,
) -> bool {
    if names::role_name(binder).is_none() {
        return false;
    }
    let is_granted = |result| result == pg_sys::AclResult::ACLCHECK_OK;
    // SAFETY: look-ups in the catalog; the table is locked, and none of them raises for a role that is not there.
    unsafe {
        if !relation::may_name(table, binder) {
            return false;
        }
        if owner(table).is_some_and(|owner| pg_sys::has_privs_of_role(binder, owner)) {
            return true;
        }
        let row_security = pg_sys::check_enable_rls(table, binder, true);
        if how == Use::Read && row_security == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32 {
            return false;
        }
        is_granted(pg_sys::pg_class_aclcheck(table, binder, how.mode()))
            || how != Use::Insert
                && columns().into_iter().all(|column| {
                    is_granted(pg_sys::pg_attribute_aclcheck(table, column, binder, how.mode()))
                })
    }
}

/// Whether the current role has the rights of the owner of this table.
pub fn is_owned(table: pg_sys::Oid) -> bool {
    // SAFETY: a look-up of roles.
    owner(table)
        .is_some_and(|owner| unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), owner) })
}

fn owner(table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
    // SAFETY: a syscache look-up; the tuple is released after it was read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, table.into());
        if tuple.is_null() {
            return None;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        Some(owner)
    }
}
