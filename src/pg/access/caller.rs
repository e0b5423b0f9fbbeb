//! Who calls, and what an attestation states about the call.

use kernel::trust::attestation::{Circumstances, Status};
use pgrx::pg_sys;

use crate::pg::catalog::relation::{self, row_security_applies_to};
use crate::pg::error::{Reads, SqlError};
use crate::pg::private::private_table;
use crate::pg::session::{self, Unattested, current_role, rights_changed, role_name};
use crate::pg::tables::graph::Graph;

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
            status: match unattested(graph, self.role) {
                None => Status::Attested,
                Some(Unattested::Distributed) => Status::Distributed,
                Some(_) => Status::Uncommitted,
            },
        })
    }

    /// Says once a transaction why the graph as it is read now is not attested, where it is not.
    pub fn notice_unattested(&self, graph: &Graph) {
        if let Some(why) = unattested(graph, self.role) {
            session::notice_unattested(why);
        }
    }

    /// What errors of the graph's tables need a hint for.
    pub fn reads(&self, graph: &Graph) -> Reads {
        Reads {
            row_security: self.rls,
            expressions: graph.has_expressions(),
            distributed: graph.is_distributed(),
        }
    }

    /// Checks that the role is still the same.
    ///
    /// # Errors
    /// 55000.
    pub fn check_role(&self) -> Result<(), SqlError> {
        if current_role() == self.role { Ok(()) } else { Err(rights_changed()) }
    }
}

fn row_security_applies(graph: &Graph) -> bool {
    graph.tables().any(row_security_applies_to)
}

/// pg_authid, pg_auth_members and pg_database: an attestation contains the role's name, and its attributes and
/// memberships decide whether row security applies to it. A database's owner is a member of pg_database_owner.
const ROLES: [pg_sys::Oid; 3] = [
    pg_sys::AuthIdRelationId,
    pg_sys::Oid::from_u32(1261), // AuthMemRelationId
    pg_sys::Oid::from_u32(1262), // DatabaseRelationId
];

/// Why the graph as it is read now is not attested, if so. Writers and DDL hold their locks to their transaction's end;
/// rolling back a savepoint releases them together with the changes.
fn unattested(graph: &Graph, role: pg_sys::Oid) -> Option<Unattested> {
    if graph.is_distributed() {
        return Some(Unattested::Distributed);
    }
    // SAFETY: reads the transaction's state. Without an XID nothing was written.
    let (xid, worker) =
        unsafe { (pg_sys::GetTopTransactionIdIfAny(), pg_sys::ParallelWorkerNumber >= 0) };
    if xid == pg_sys::InvalidTransactionId {
        return graph.catalog_is_newer(role).then_some(Unattested::NewerCatalog);
    }
    // Under a key file an epoch that is rolled back has the key of one that comes.
    if private_table::may_be_changing()
        || ROLES.into_iter().any(relation::is_locked_for_writing)
        || graph.relations().into_iter().any(relation::is_locked_for_writing)
    {
        return Some(Unattested::Changed);
    }
    // A parallel worker has the leader's XID but not its locks. Renaming an enum's label takes no lock on the tables,
    // and GRANT takes one that does not last.
    (worker || graph.has_enum() || graph.catalog_is_newer(role))
        .then_some(Unattested::MayHaveChanged)
}
