//! From one version of the extension to the next, in a copy of the server's files.

#[path = "../keys/cluster.rs"]
#[allow(dead_code)]
mod cluster;
#[path = "../server/common/mod.rs"]
mod common;
#[path = "../keys/graph.rs"]
#[allow(dead_code)]
mod graph;

mod catalog;
mod contents;
mod installation;
mod next_version;
mod released;
mod versions;
