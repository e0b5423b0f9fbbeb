//! Files that hold secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cluster::{Cluster, give_to_server};

/// Random bytes.
pub fn random(length: usize) -> Vec<u8> {
    std::iter::repeat_with(|| fastrand::u8(..)).take(length).collect()
}

/// Writes a file that only the server's account can read.
pub fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    set_mode(path, 0o600);
    give_to_server(path);
}

/// Changes who may read a file.
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Gives a running cluster a root key file with these bytes.
pub fn use_root(cluster: &Cluster, bytes: &[u8]) -> PathBuf {
    let path = cluster.folder.join("root.key");
    write(&path, bytes);
    cluster.set("graph_kernel.root_key_file", path.to_str().unwrap());
    path
}
