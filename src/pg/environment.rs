//! The server process's environment.

/// With RUST_BACKTRACE set, errors would carry Rust backtraces into clients' DETAIL, where a
/// stable word belongs.
pub fn hide_backtraces() {
    // SAFETY: a backend is single-threaded, and this runs before the library does anything else.
    unsafe { std::env::set_var("RUST_BACKTRACE", "0") };
}
