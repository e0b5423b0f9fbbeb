//! Published values: whatever the kernel computes of the same input must be these bytes.

mod atlas;
mod attestation;
mod chunks;
mod drawing;
mod recorded_slices;
mod reference;
mod small_graphs;
mod sufficiency;

use std::path::{Path, PathBuf};

/// A committed file.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data").join(name)
}
