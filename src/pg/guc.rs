//! Settings.

use kernel::policy::{MAX_NODES_LIMIT, SlicePolicy};
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgSqlErrorCode};

use super::error::SqlError;

static MAX_NODES: GucSetting<i32> = GucSetting::<i32>::new(MAX_NODES_LIMIT as i32);

/// Registers the settings; called once when the library is loaded.
pub fn register() {
    GucRegistry::define_int_guc(
        c"graph_kernel.max_nodes_limit",
        c"Sets the largest max_nodes a slice may be taken with.",
        c"A policy above the limit is refused when slicing (54000); no slice changes its content. \
          Range 1 to 10000.",
        &MAX_NODES,
        1,
        MAX_NODES_LIMIT as i32,
        GucContext::Suset,
        GucFlags::default(),
    );
}

/// Refuses policies whose budget is above the server's limit.
///
/// # Errors
/// 54000.
pub fn check_budget(policy: &SlicePolicy) -> Result<(), SqlError> {
    let limit = MAX_NODES.get();
    if policy.max_nodes() <= limit as usize {
        return Ok(());
    }
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "policy asks for {} turns, this server allows {limit}",
            policy.max_nodes()
        ),
    )
    .detail("BUDGET_ABOVE_LIMIT")
    .hint("Lower max_nodes, or have a superuser raise graph_kernel.max_nodes_limit."))
}
