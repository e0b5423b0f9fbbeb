//! The life of keys: restarts, crashes, moves, dumps, key files; and that they stay secret.

#[path = "../server/common/mod.rs"]
mod common;

mod cluster;
mod graph;
mod secret_file;

mod commits;
mod copies;
mod crash;
mod dump;
mod extension;
mod guards;
mod kept;
mod key_files;
mod moves;
mod parallel;
mod prompts;
mod proofs;
mod published_secret;
mod rotation;
mod secrecy;
mod settings;
mod standby;
