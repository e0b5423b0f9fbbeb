//! What happens when memory is exhausted. By default Rust aborts the process, and the server then ends all sessions.
//!
//! [`memory`] is the allocator: it keeps a reserve for errors, and raises the error. `reporting` frees the reserve when
//! pgrx passes errors between the server and Rust. docs/reliability.md describes the tests, docs/operating.md the
//! limits.

pub mod memory;
// The server's own functions: the program of the unit tests has none.
#[cfg(all(target_os = "linux", not(test)))]
mod reporting;
