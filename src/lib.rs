//! graph_kernel: context slices of conversation DAGs inside PostgreSQL.

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

#[pg_extern(immutable, parallel_safe)]
fn graph_kernel_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// What `cargo pgrx test` asks of the crate root.
#[cfg(test)]
pub mod pg_test {
    /// One-off initialisation when the test framework starts.
    pub fn setup(_options: Vec<&str>) {}

    /// Settings the test server needs.
    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![]
    }
}
