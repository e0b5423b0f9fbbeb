//! Attacks by roles that may log in and own what they make: no role gains another's rights, no
//! server ends, nothing is read by a wrong type or signed that no committed state gives.

#[path = "../server/common/mod.rs"]
mod common;

mod setup;

mod bindings;
mod changes_during_calls;
mod domains;
mod foreign;
mod indexes;
mod literals;
mod mappings;
mod messages;
mod paths;
mod planted_tables;
mod portals;
mod private_schema;
mod roles;
mod schemas;
mod settings;
mod stack;
mod states;
