use pgrx::prelude::*;

#[pg_extern(immutable, parallel_safe)]
fn graph_kernel_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
