//! Cancels and timeouts.

use crate::pg::shortage::memory;

/// Processes a cancel or a timeout, and checks that memory is not short. To be called at least every 256 steps.
pub fn check_interrupts() {
    pgrx::check_for_interrupts!();
    memory::check();
}
