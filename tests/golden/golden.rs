//! Published values: the kernel must compute the same bytes from the same input.

mod atlas;
mod attestation;
mod chunks;
mod drawing;
mod messages;
mod policy_v2;
mod proof;
mod recorded_slices;
mod reference;
mod small_graphs;
mod sufficiency;

use std::path::{Path, PathBuf};

/// The path of a file of the repository.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data").join(name)
}
