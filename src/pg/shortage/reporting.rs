//! The server's functions that pgrx calls to pass errors in both directions. Without memory for that, pgrx aborts the
//! process or loops forever, and the server then ends all sessions. The linker replaces the calls by these functions
//! (`build.rs`).

use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::Relaxed;

use pgrx::{PgLogLevel, pg_sys};

use super::memory::{IS_REPORTING, release_reserve};
use crate::pg::error::end_session;

unsafe extern "C-unwind" {
    fn __real_CopyErrorData() -> *mut pg_sys::ErrorData;
    fn __real_errstart(level: c_int, domain: *const c_char) -> bool;
    fn __real_errfinish(file: *const c_char, line: c_int, function: *const c_char);
}

/// Begins a report. pgrx allocates next, and would abort the process if that failed. So the reserve is freed here.
#[unsafe(export_name = "graph_kernel_errstart")]
unsafe extern "C-unwind" fn errstart(level: c_int, domain: *const c_char) -> bool {
    if level >= PgLogLevel::ERROR as c_int {
        release_reserve();
        IS_REPORTING.store(true, Relaxed);
    }
    // SAFETY: called as the server's own function is.
    unsafe { __real_errstart(level, domain) }
}

/// Ends a report.
#[unsafe(export_name = "graph_kernel_errfinish")]
unsafe extern "C-unwind" fn errfinish(file: *const c_char, line: c_int, function: *const c_char) {
    IS_REPORTING.store(false, Relaxed);
    // SAFETY: called as the server's own function is.
    unsafe { __real_errfinish(file, line, function) }
}

/// Copies an error of the server that pgrx has caught. If the copy failed without memory, pgrx would copy that error,
/// and so on. So the reserve is freed here, and the next check allocates it again. If it is too small, this session
/// ends.
#[unsafe(export_name = "graph_kernel_copy_error_data")]
unsafe extern "C-unwind" fn copy_error_data() -> *mut pg_sys::ErrorData {
    release_reserve();
    if IS_REPORTING.swap(false, Relaxed) {
        // An allocation within a report has failed. No handler would catch that error.
        end_session();
    }
    // SAFETY: an error is in progress, and the current context is not that of errors, as the server requires. The
    // function only allocates and copies. An error within it finds no handler, so the server ends the process as it
    // ends any session. The callbacks that add context are not called: their stack frames no longer exist after pgrx
    // has caught the error.
    unsafe {
        let before = (pg_sys::PG_exception_stack, pg_sys::error_context_stack);
        pg_sys::PG_exception_stack = null_mut();
        pg_sys::error_context_stack = null_mut();
        let copy = __real_CopyErrorData();
        (pg_sys::PG_exception_stack, pg_sys::error_context_stack) = before;
        // pgrx would pass it on in memory that is never freed. For null the server takes its own.
        (*copy).domain = null();
        copy
    }
}
