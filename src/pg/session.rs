//! The calling role, and what a session is told once a transaction.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use crate::pg::error::SqlError;
use crate::pg::guc;
use crate::pg::text::shared_name;

/// The current role.
pub fn current_role() -> pg_sys::Oid {
    // SAFETY: reads the session's state.
    unsafe { pg_sys::GetUserId() }
}

/// The name of the current role.
pub fn current_role_name() -> String {
    role_name(current_role())
}

/// The name of a role that exists.
pub fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: the current role has a name; it comes NUL-terminated.
    shared_name(unsafe { CStr::from_ptr(pg_sys::GetUserNameFromId(role, false)) })
}

thread_local! {
    /// The transaction that was last given the notice about uncommitted state.
    static NOTICED: Cell<u64> = const { Cell::new(0) };
}

/// Says, once a transaction, that what was taken is not attested, as this transaction has changed what it is read from.
pub fn notice_uncommitted() {
    // SAFETY: reads the transaction's state.
    let transaction = unsafe { pg_sys::GetTopFullTransactionIdIfAny() }.value;
    if !guc::notice_uncommitted() || NOTICED.replace(transaction) == transaction {
        return;
    }
    SqlError::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        "no token is issued: this transaction has changed what the slice is read from",
    )
    .detail("UNCOMMITTED")
    .hint(COMMIT_FIRST)
    .report(PgLogLevel::NOTICE);
}

/// What to do about an export or a search that has no token because of its transaction.
pub const COMMIT_FIRST: &str = "Run COMMIT first, and slice or search in the next transaction: only committed state is attested.";
