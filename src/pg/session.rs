//! The calling role, and what a session is told once a transaction.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use crate::pg::error::{SqlError, Word};
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

/// As long as it lives, another role is the current one, in a security-restricted operation: what is called meanwhile,
/// such as the input function of a type, runs with that role's rights.
pub struct ActingAs {
    role: pg_sys::Oid,
    context: std::ffi::c_int,
}

impl ActingAs {
    /// Becomes that role.
    pub fn begin(role: pg_sys::Oid) -> Self {
        let mut before = ActingAs { role: pg_sys::InvalidOid, context: 0 };
        let restricted =
            pg_sys::SECURITY_RESTRICTED_OPERATION | pg_sys::SECURITY_LOCAL_USERID_CHANGE;
        // SAFETY: reads and sets the session's state, which an abort of the (sub)transaction resets as well.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&raw mut before.role, &raw mut before.context);
            pg_sys::SetUserIdAndSecContext(role, before.context | restricted as std::ffi::c_int);
        }
        before
    }
}

impl Drop for ActingAs {
    fn drop(&mut self) {
        // SAFETY: as in `begin`.
        unsafe { pg_sys::SetUserIdAndSecContext(self.role, self.context) };
    }
}

/// The name of a role that exists.
pub fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: the current role has a name; it comes NUL-terminated.
    shared_name(unsafe { CStr::from_ptr(pg_sys::GetUserNameFromId(role, false)) })
}

/// Has the transaction's end wait until it is on disk, whatever `synchronous_commit` is.
pub fn commit_durably() {
    // SAFETY: sets a flag of the transaction's.
    unsafe { pg_sys::ForceSyncCommit() };
}

/// The error where the role, or what it may do, is another one than when the call began.
pub fn rights_changed() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the role or its rights changed while the tables were read",
    )
    .word(Word::RightsChanged)
    .hint("A function of a row security policy must not set the role.")
}

thread_local! {
    /// The transaction that was last given the notice about uncommitted state.
    static NOTICED: Cell<Option<pg_sys::LocalTransactionId>> = const { Cell::new(None) };
}

/// Why what is read is not attested.
#[derive(Clone, Copy)]
pub enum Unattested {
    /// This transaction holds a lock that who changes it takes.
    Changed,
    /// This transaction has written something, and what may have changed takes no lock that lasts.
    MayHaveChanged,
    /// What the catalog says of the tables, or their binding, is newer than the snapshot.
    NewerCatalog,
    /// Citus reads the tables, from servers that have no snapshot in common.
    Distributed,
}

/// The number of this transaction in this session. Unlike an XID, each has one.
fn transaction() -> pg_sys::LocalTransactionId {
    // SAFETY: called within a transaction of a backend, which has an entry.
    unsafe {
        let process = &*pg_sys::MyProc;
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return process.lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return process.vxid.lxid;
    }
}

/// Says, once a transaction, that what was taken is not attested, and why.
pub fn notice_unattested(why: Unattested) {
    let transaction = Some(transaction());
    if !guc::notice_uncommitted() || NOTICED.replace(transaction) == transaction {
        return;
    }
    let word = match why {
        Unattested::Distributed => Word::Distributed,
        _ => Word::Uncommitted,
    };
    let (why, hint) = match why {
        Unattested::Changed => {
            ("this transaction has changed what the slice is read from", COMMIT_FIRST)
        }
        Unattested::MayHaveChanged => {
            ("this transaction may have changed what the slice is read from", COMMIT_FIRST)
        }
        Unattested::NewerCatalog => (
            "another transaction has changed the tables or their binding after the snapshot was taken",
            "Call the function again; in REPEATABLE READ and SERIALIZABLE, in the next transaction.",
        ),
        Unattested::Distributed => (
            "Citus reads the tables, from servers that have no snapshot in common",
            NOT_DISTRIBUTED,
        ),
    };
    SqlError::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("no token is issued: {why}"),
    )
    .word(word)
    .hint(hint)
    .report(PgLogLevel::NOTICE);
}

/// What to do about an export or a search that has no token because Citus reads the tables.
pub const NOT_DISTRIBUTED: &str = "Slice or search tables that Citus does not distribute where a \
    token is needed: what it reads is never attested.";

/// What to do about an export or a search that has no token because of its transaction.
pub const COMMIT_FIRST: &str = "Run COMMIT first, and slice or search in the next \
    transaction: only committed state is attested.";
