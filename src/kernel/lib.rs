//! The pure kernel.
