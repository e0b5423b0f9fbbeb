//! Settings.

use std::ffi::CString;

use kernel::policy::{MAX_NODES_LIMIT, SlicePolicy};
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgSqlErrorCode};

use super::error::SqlError;

static ROOT_KEY_FILE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static V2_SECRET_FILE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
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
    GucRegistry::define_string_guc(
        c"graph_kernel.root_key_file",
        c"Names the file that holds the root of all keys.",
        c"Empty: each epoch's root is in the database. 32 to 4096 bytes that only the server's user \
          can read; changes which tokens are issued and verify, no slice.",
        &ROOT_KEY_FILE,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_string_guc(
        c"graph_kernel.v2_secret_file",
        c"Names the file that holds a secret for admissibility tokens shared with other verifiers.",
        c"Empty: the secret is derived from the active key. 32 to 4096 bytes that only the server's \
          user can read; changes which admissibility tokens are issued and verify, no slice.",
        &V2_SECRET_FILE,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    reserve_prefix();
}

/// Makes a misspelt setting an error instead of a setting of its own.
fn reserve_prefix() {
    let prefix = c"graph_kernel".as_ptr();
    // SAFETY: all settings of the prefix are defined by now; the name is NUL-terminated.
    unsafe {
        #[cfg(feature = "pg14")]
        pgrx::pg_sys::EmitWarningsOnPlaceholders(prefix);
        #[cfg(not(feature = "pg14"))]
        pgrx::pg_sys::MarkGUCPrefixReserved(prefix);
    }
}

/// The path of the root key, when one is set.
pub fn root_key_file() -> Option<String> {
    path(&ROOT_KEY_FILE)
}

/// The path of the shared secret, when one is set.
pub fn v2_secret_file() -> Option<String> {
    path(&V2_SECRET_FILE)
}

fn path(setting: &GucSetting<Option<CString>>) -> Option<String> {
    let path = setting.get()?.to_string_lossy().into_owned();
    (!path.is_empty()).then_some(path)
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
        format!("policy asks for {} turns, this server allows {limit}", policy.max_nodes()),
    )
    .detail("BUDGET_ABOVE_LIMIT")
    .hint("Lower max_nodes, or have a superuser raise graph_kernel.max_nodes_limit."))
}
