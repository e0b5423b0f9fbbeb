//! Graphs in tables that Citus distributes, on a coordinator and two workers: `make citus-test` starts them.

mod cluster;
#[path = "../server/common/mod.rs"]
mod common;
#[path = "../server/snapshot/subtrees.rs"]
#[allow(dead_code)]
mod subtrees;

mod attestation;
mod layouts;
mod snapshots;
