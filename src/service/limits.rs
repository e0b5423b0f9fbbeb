//! How much is read and made at a time. None of it changes a result.

use kernel::slicing::slicer::Limits;

/// How much of a graph is read at a time.
pub fn limits() -> Limits {
    drawn::limits(Limits::default())
}

/// Most slices that are taken ahead of their rows.
pub fn slices_ahead() -> usize {
    drawn::within(128)
}

#[cfg(not(feature = "random_limits"))]
mod drawn {
    use super::Limits;

    pub(super) fn limits(most: Limits) -> Limits {
        most
    }

    pub(super) fn within(most: usize) -> usize {
        most
    }
}

/// A build for tests: each backend draws its own, down to one.
#[cfg(feature = "random_limits")]
mod drawn {
    use std::hash::{BuildHasher, RandomState};

    use super::Limits;

    thread_local! {
        static STATE: RandomState = RandomState::new();
    }

    pub(super) fn limits(most: Limits) -> Limits {
        Limits {
            batch: within(most.batch),
            anchors: within(most.anchors),
            nearby: within(most.nearby),
            crowded: within(most.crowded),
            wide: within(most.wide),
            rows: within(most.rows),
            // Reaching it is an error.
            held: most.held,
        }
    }

    /// From 1 to this number, small as often as large; the same in one backend.
    pub(super) fn within(most: usize) -> usize {
        let drawn = STATE.with(|state| state.hash_one(most));
        let halvings = (drawn >> 32) as u32 % (usize::BITS - most.leading_zeros());
        1 + (drawn as u32 as usize) % (most >> halvings)
    }
}
