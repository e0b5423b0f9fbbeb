//! What happens where memory ends. Rust would end the process there, and the server all sessions.
//!
//! [`memory`] gives what Rust allocates, keeps a reserve for errors and raises them; `reporting` makes room where pgrx
//! passes errors between the server and Rust. docs/reliability.md says what was tried, and docs/operating.md where the
//! limits of this are.

pub mod memory;
// The server's own functions: the program of the unit tests has none.
#[cfg(all(target_os = "linux", not(test)))]
mod reporting;
