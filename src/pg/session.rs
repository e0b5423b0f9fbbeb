//! Who asks, and under what circumstances.

use kernel::attestation::Circumstances;
use pgrx::pg_sys;
use std::ffi::CStr;

use super::graph::Graph;
use super::relation;

/// The circumstances of a slice taken now.
pub fn circumstances(graph: &Graph) -> Circumstances {
    Circumstances {
        graph: graph.name.clone(),
        role: current_role(),
        rls: row_security_applies(graph),
        uncommitted: wrote_graph(graph),
    }
}

/// The role whose rights apply.
fn current_role() -> String {
    // SAFETY: the current role has a name; GetUserNameFromId returns it NUL-terminated.
    unsafe { CStr::from_ptr(pg_sys::GetUserNameFromId(pg_sys::GetUserId(), false)) }
        .to_string_lossy()
        .into_owned()
}

/// Whether row security applies to the current role on either table.
pub fn row_security_applies(graph: &Graph) -> bool {
    graph.tables().into_iter().any(|table| {
        // SAFETY: a look-up; InvalidOid means the current role, and no error is raised.
        let status = unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) };
        status == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    })
}

/// Whether this transaction may have changed what the graph is: its tables, a partition of them,
/// or the binding. Writers and DDL hold their locks to the end, a rolled back savepoint gives them
/// back with the changes.
fn wrote_graph(graph: &Graph) -> bool {
    // SAFETY: reads the transaction's state. Without an XID nothing was written.
    let xid = unsafe { pg_sys::GetTopTransactionIdIfAny() };
    xid != pg_sys::InvalidTransactionId
        && graph.relations().into_iter().any(relation::is_locked_for_writing)
}
