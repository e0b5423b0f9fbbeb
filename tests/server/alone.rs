//! Tests that have the running server for themselves, one at a time: they copy the whole server, or count the
//! allocations of a build for tests.

mod common;

#[cfg(feature = "allocations")]
mod allocations;
mod standby;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this program runs, and holds the others back until it goes out of scope.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
