//! What pgrx calls of the server to pass errors in both directions. Where there is no memory for it, pgrx would end the
//! process or never come to an end, and all sessions with it. The linker directs these calls of the library here
//! (`build.rs`); without that the library could not be loaded.

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

/// Begins a report. pgrx allocates next, and a failure would end the process: the reserve makes room.
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

/// Copies an error of the server, which pgrx has caught. Where the copy fails for want of memory, pgrx would copy that
/// error, and so on. The reserve makes room, and the next check takes it again; where it does not suffice, this session
/// ends.
#[unsafe(export_name = "graph_kernel_copy_error_data")]
unsafe extern "C-unwind" fn copy_error_data() -> *mut pg_sys::ErrorData {
    release_reserve();
    if IS_REPORTING.swap(false, Relaxed) {
        // It is an error of an allocation in a report, which nothing would catch.
        end_session();
    }
    // SAFETY: an error is in progress, and the current context is not that of errors, as the server asks. It allocates
    // and copies, and does nothing else. An error of it finds nobody who handles errors, so it ends the process in good
    // order; it does not call those who would add context, whose frames are gone where pgrx has just caught the error.
    unsafe {
        let before = (pg_sys::PG_exception_stack, pg_sys::error_context_stack);
        pg_sys::PG_exception_stack = null_mut();
        pg_sys::error_context_stack = null_mut();
        let copy = __real_CopyErrorData();
        (pg_sys::PG_exception_stack, pg_sys::error_context_stack) = before;
        // pgrx would pass it on in memory that nothing frees; the server takes its own where there is none.
        (*copy).domain = null();
        copy
    }
}
