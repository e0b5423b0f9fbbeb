//! The calling role, and what an attestation states about the call.

use std::cell::Cell;
use std::ffi::CStr;

use kernel::trust::attestation::Circumstances;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use super::error::SqlError;
use super::guc;
use super::memory;
use super::sql::text::shared_name;
use crate::pg::tables::graph::Graph;
use crate::pg::tables::relation;

/// Processes a cancel or a timeout, and checks that memory is not short. To be called at least every 256 steps.
pub fn check_interrupts() {
    pgrx::check_for_interrupts!();
    memory::check();
}

/// The role and the rights that a slice is begun with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    role: pg_sys::Oid,
    /// Whether row security applies to the graph's tables.
    pub rls: bool,
}

impl Caller {
    /// The current role's rights on the graph.
    pub fn current(graph: &Graph) -> Self {
        Caller { role: current_role(), rls: row_security_applies(graph) }
    }

    /// The circumstances of a slice that this caller began.
    ///
    /// # Errors
    /// 55000 when the rights are no longer those the slice was begun with: a function of a row
    /// security policy can switch roles.
    pub fn circumstances(&self, graph: &Graph) -> Result<Circumstances, SqlError> {
        self.check_role()?;
        if self.rls != row_security_applies(graph) {
            return Err(rights_changed());
        }
        Ok(Circumstances {
            graph: graph.name.clone(),
            role: role_name(self.role),
            rls: self.rls,
            uncommitted: may_have_changed(graph) || graph.catalog_is_newer(),
        })
    }

    /// Checks that the role is still the same.
    ///
    /// # Errors
    /// 55000.
    pub fn check_role(&self) -> Result<(), SqlError> {
        if current_role() == self.role { Ok(()) } else { Err(rights_changed()) }
    }
}

fn rights_changed() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the role or its rights changed while a slice was taken",
    )
    .detail("RIGHTS_CHANGED")
    .hint("A function of a row security policy must not set the role.")
}

fn current_role() -> pg_sys::Oid {
    // SAFETY: reads the session's state.
    unsafe { pg_sys::GetUserId() }
}

/// Runs `read` with the rights of this role, whatever the rights of the function that calls: user code that planning or
/// reading may run has no more than these.
pub fn with_rights_of<T>(role: pg_sys::Oid, read: impl FnOnce() -> T) -> T {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    // SAFETY: as the server does where it runs code of a table's owner. The end of a (sub)transaction by an error sets
    // both back.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let restricted =
            pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION;
        pg_sys::SetUserIdAndSecContext(role, context | restricted as i32);
    }
    let result = read();
    // SAFETY: pairs with the above.
    unsafe { pg_sys::SetUserIdAndSecContext(user, context) };
    result
}

/// The name of the current role.
pub fn current_role_name() -> String {
    role_name(current_role())
}

fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: the current role has a name; it comes NUL-terminated.
    shared_name(unsafe { CStr::from_ptr(pg_sys::GetUserNameFromId(role, false)) })
}

fn row_security_applies(graph: &Graph) -> bool {
    graph.tables().any(row_security_applies_to)
}

/// Whether row security applies to this table for the current role.
pub fn row_security_applies_to(table: pg_sys::Oid) -> bool {
    // SAFETY: a look-up; InvalidOid means the current role, and no error is raised.
    let status = unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) };
    status == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
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

/// What to do about an export that has no token because of its transaction.
pub const COMMIT_FIRST: &str = "Run COMMIT first, and take the slice in the next transaction: only committed state is attested.";

/// pg_authid, pg_auth_members and pg_database: an attestation contains the role's name, and its attributes and
/// memberships decide whether row security applies to it. A database's owner is a member of pg_database_owner.
const ROLES: [pg_sys::Oid; 3] = [
    pg_sys::AuthIdRelationId,
    pg_sys::Oid::from_u32(1261), // AuthMemRelationId
    pg_sys::Oid::from_u32(1262), // DatabaseRelationId
];

/// Whether this transaction may have changed what is signed: the graph, or roles. Writers and DDL hold their locks
/// to its end; rolling back a savepoint releases them together with the changes.
fn may_have_changed(graph: &Graph) -> bool {
    // SAFETY: reads the transaction's state. Without an XID nothing was written.
    let (xid, worker) =
        unsafe { (pg_sys::GetTopTransactionIdIfAny(), pg_sys::ParallelWorkerNumber >= 0) };
    if xid == pg_sys::InvalidTransactionId {
        return false;
    }
    // A parallel worker has the leader's XID but not its locks. Renaming an enum's label takes no lock on the
    // tables.
    worker
        || graph.has_enum()
        || ROLES.into_iter().any(relation::is_locked_for_writing)
        || graph.relations().into_iter().any(relation::is_locked_for_writing)
}
