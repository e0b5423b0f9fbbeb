//! Settings.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use kernel::policy::{MAX_NODES_LIMIT, SlicePolicy};
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

use crate::pg::error::{OrRaise, SqlError, Word};
use crate::pg::text::{checked, replaced};

static ROOT_KEY_FILE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static V2_SECRET_FILE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static GRAPH: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"default"));
static LOG_REFUSALS: GucSetting<bool> = GucSetting::<bool>::new(false);
static NOTICE_UNCOMMITTED: GucSetting<bool> = GucSetting::<bool>::new(true);
static MAX_NODES: GucSetting<i32> = GucSetting::<i32>::new(MAX_NODES_LIMIT as i32);

/// The name of the binding that is read where a session sets no other one.
pub const DEFAULT_GRAPH: &str = "default";

/// Set by a check hook: the server accepted a value that is not the built-in default.
static VALUE_ACCEPTED: AtomicBool = AtomicBool::new(false);

/// Replaces a path that a session tried to set: no file has this name.
const REFUSED_PATH: &CStr = c"refused: this session tried to set it";

/// Registers the settings; called once when the library is loaded.
pub fn register() {
    define(c"graph_kernel.max_nodes_limit", c"1", |name| {
        // SAFETY: the hook has the type the server calls it with.
        unsafe {
            GucRegistry::define_int_guc_with_hooks(
                name,
                c"Sets the largest max_nodes a slice may be taken with.",
                c"A policy above the limit is refused when slicing (54000); no slice changes its \
                  content. Range 1 to 10000.",
                &MAX_NODES,
                1,
                MAX_NODES_LIMIT as i32,
                GucContext::Suset,
                in_parallel(GucFlags::default()),
                Some(note_int),
                None,
                None,
            );
        }
    });
    define_path(
        c"graph_kernel.root_key_file",
        c"Names the file that holds the root of all keys.",
        c"The file has 32 to 4096 bytes, and only the server's user can read it. If this is empty, each epoch's root \
          is in the database.",
        &ROOT_KEY_FILE,
    );
    define_path(
        c"graph_kernel.v2_secret_file",
        c"Names the file that holds a secret for admissibility tokens shared with other verifiers.",
        c"The file has 32 to 4096 bytes, and only the server's user can read it. If this is empty, the secret is \
          derived from the active key.",
        &V2_SECRET_FILE,
    );
    GucRegistry::define_string_guc(
        c"graph_kernel.graph",
        c"Names the graph that calls read.",
        c"The name of a binding, as given to graph_kernel.bind_tables. A call reads it once, at its beginning; \
          promotion triggers ignore it.",
        &GRAPH,
        GucContext::Userset,
        in_parallel(GucFlags::default()),
    );
    GucRegistry::define_bool_guc(
        c"graph_kernel.notice_uncommitted",
        c"Gives a notice where a slice is not attested because its transaction has changed what it reads.",
        c"Once a transaction; changes no slice.",
        &NOTICE_UNCOMMITTED,
        GucContext::Userset,
        in_parallel(GucFlags::default()),
    );
    // Where the configured value is lost, more is logged than was asked for, not less.
    define(c"graph_kernel.log_refusals", c"on", |name| {
        // SAFETY: the hook has the type the server calls it with.
        unsafe {
            GucRegistry::define_bool_guc_with_hooks(
                name,
                c"Logs each promotion and each verification that is refused.",
                c"One line at level LOG with the reason, the role and the slice_id; no content.",
                &LOG_REFUSALS,
                GucContext::Suset,
                in_parallel(GucFlags::default()),
                Some(note_bool),
                None,
                None,
            );
        }
    });
    #[cfg(feature = "failing_allocations")]
    super::shortage::memory::faults::register();
    reserve_prefix();
}

fn define_path(
    name: &'static CStr,
    short: &'static CStr,
    long: &'static CStr,
    setting: &'static GucSetting<Option<CString>>,
) {
    define(name, REFUSED_PATH, |name| {
        // SAFETY: the hook has the type the server calls it with.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(
                name,
                short,
                long,
                setting,
                GucContext::Sighup,
                in_parallel(GucFlags::SUPERUSER_ONLY),
                Some(note_string),
                None,
                None,
            );
        }
    });
}

/// The library may be loaded within a parallel plan. There, only settings with this flag take their configured value.
fn in_parallel(flags: GucFlags) -> GucFlags {
    GucFlags::from_bits_retain(flags.bits() | pg_sys::GUC_ALLOW_IN_PARALLEL as i32)
}

/// Defines a setting that is not the user's. Until the library is loaded, any role can set the name for its session,
/// which hides the configured value. The server then rejects the session's value and would use the built-in default. In
/// place of that, the setting takes `refused`, a value with which calls fail.
fn define(name: &'static CStr, refused: &'static CStr, define: impl FnOnce(&'static CStr)) {
    // SAFETY: looks a setting up by name; a missing one gives NULL.
    let was_set = unsafe { !pg_sys::GetConfigOption(name.as_ptr(), true, false).is_null() };
    VALUE_ACCEPTED.store(false, Ordering::Relaxed);
    define(name);
    if was_set && !VALUE_ACCEPTED.load(Ordering::Relaxed) {
        // SAFETY: the setting exists by now and takes this value. An override outlasts reloads and
        // is passed to parallel workers.
        unsafe {
            pg_sys::SetConfigOption(
                name.as_ptr(),
                refused.as_ptr(),
                pg_sys::GucContext::PGC_SIGHUP,
                pg_sys::GucSource::PGC_S_OVERRIDE,
            );
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_int(
    _value: *mut c_int,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    note(source)
}

#[pg_guard]
unsafe extern "C-unwind" fn note_bool(
    _value: *mut bool,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    note(source)
}

#[pg_guard]
unsafe extern "C-unwind" fn note_string(
    _value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    note(source)
}

fn note(source: pg_sys::GucSource::Type) -> bool {
    if source != pg_sys::GucSource::PGC_S_DEFAULT {
        VALUE_ACCEPTED.store(true, Ordering::Relaxed);
    }
    true
}

/// Makes a misspelt setting an error instead of a setting of its own.
fn reserve_prefix() {
    let prefix = c"graph_kernel".as_ptr();
    // SAFETY: all settings of the prefix are defined by now; the name is NUL-terminated.
    unsafe { pg_sys::MarkGUCPrefixReserved(prefix) };
}

/// A setting that names a file.
pub struct PathSetting {
    /// The setting's name.
    pub name: &'static str,
    /// Its value.
    pub path: ConfiguredPath,
}

/// The value of a setting that names a file.
pub enum ConfiguredPath {
    /// No file is named.
    Unset,
    /// A file.
    File(String),
    /// The session tried to set it, which hides the configured value.
    Refused,
}

/// The file with the root key.
pub fn root_key_file() -> PathSetting {
    path("graph_kernel.root_key_file", &ROOT_KEY_FILE)
}

/// The file with the shared secret of published tokens.
pub fn v2_secret_file() -> PathSetting {
    path("graph_kernel.v2_secret_file", &V2_SECRET_FILE)
}

fn path(name: &'static str, setting: &GucSetting<Option<CString>>) -> PathSetting {
    let value = setting.get().unwrap_or_default();
    let path = match value.as_c_str() {
        value if value.is_empty() => ConfiguredPath::Unset,
        value if value == REFUSED_PATH => ConfiguredPath::Refused,
        value => ConfiguredPath::File(replaced(value.to_bytes()).into_owned()),
    };
    PathSetting { name, path }
}

/// The name of the binding that calls read.
///
/// Raises 22021 where the session has set what is not text.
pub fn graph() -> String {
    GRAPH.get().map_or_else(String::new, |name| checked(name.to_bytes()).or_raise().to_owned())
}

/// Whether refusals are logged.
pub fn log_refusals() -> bool {
    LOG_REFUSALS.get()
}

/// Whether slices of uncommitted state give a notice.
pub fn notice_uncommitted() -> bool {
    NOTICE_UNCOMMITTED.get()
}

/// The largest max_nodes that a slice may be taken with.
pub fn max_nodes_limit() -> u32 {
    MAX_NODES.get().unsigned_abs()
}

/// Refuses policies whose budget is above the server's limit.
///
/// # Errors
/// 54000.
pub fn check_budget(policy: &SlicePolicy) -> Result<(), SqlError> {
    let limit = max_nodes_limit();
    if policy.max_nodes() <= limit as usize {
        return Ok(());
    }
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("policy asks for {} turns, this server allows {limit}", policy.max_nodes()),
    )
    .word(Word::BudgetAboveLimit)
    .hint("Lower max_nodes, or have a superuser raise graph_kernel.max_nodes_limit."))
}
