//! Subtransactions, for what may fail without failing the call.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

thread_local! {
    static ROLLED_BACK: Cell<u64> = const { Cell::new(0) };
}

/// How many subtransactions of this session were rolled back. What was read before the last of them may have been read
/// with rights that it has taken away again.
pub fn rolled_back() -> u64 {
    ROLLED_BACK.get()
}

/// Counts one that is being rolled back.
pub fn count_rolled_back() {
    ROLLED_BACK.set(ROLLED_BACK.get() + 1);
}

/// The result of `read`, or `None` where it raised an error: then what it did is rolled back, as by EXCEPTION WHEN
/// OTHERS of PL/pgSQL. A cancelled query stays an error.
pub fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: as PL/pgSQL runs a block with an EXCEPTION clause: the subtransaction ends in one of the two branches,
    // and the memory context and the resource owner of before are current again.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        let back = move || {
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
        };
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        PgTryBuilder::new(AssertUnwindSafe(|| {
            let result = read();
            pg_sys::ReleaseCurrentSubTransaction();
            back();
            Some(result)
        }))
        .catch_others(move |error| {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
            back();
            match &error {
                CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
                    if report.sql_error_code() != PgSqlErrorCode::ERRCODE_QUERY_CANCELED =>
                {
                    None
                }
                _ => error.rethrow(),
            }
        })
        .execute()
    }
}
