//! Graphs in tables that Citus distributes, on a coordinator and two workers: `make citus-test` starts them.

mod cluster;
#[path = "../server/common/mod.rs"]
mod common;

mod attestation;
mod layouts;
