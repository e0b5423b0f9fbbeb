//! From one version of the extension to the next, in a copy of the server's files.

#[path = "../keys/cluster.rs"]
#[allow(dead_code)]
mod cluster;
#[path = "../server/common/mod.rs"]
mod common;
#[path = "../keys/graph.rs"]
#[allow(dead_code)]
mod graph;
#[path = "../keys/secret_file.rs"]
#[allow(dead_code)]
mod secret_file;

mod catalog;
mod contents;
mod documents;
mod installation;
mod next_version;
mod released;
mod versions;
