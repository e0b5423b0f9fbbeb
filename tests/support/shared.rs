//! The folder `shared` beside the repository: large data, published values.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Where `../shared` is, seen from the repository's root; `None` when it is absent.
#[must_use]
pub fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    path.is_dir().then_some(path)
}

/// [`shared`], reporting on standard output that `test` is skipped when the folder is absent.
#[must_use]
pub fn shared_or_skip(test: &str) -> Option<PathBuf> {
    let found = shared();
    if found.is_none() {
        skip(test, "../shared is absent");
    }
    found
}

/// Reports on standard output that `test` is skipped, and why.
pub fn skip(test: &str, reason: &str) {
    // Written past the capture of `print!`, on a line of its own, for the harness to count.
    let line = format!("\nSKIPPED: {test}: {reason}\n");
    std::io::stdout().write_all(line.as_bytes()).expect("standard output takes a line");
}
