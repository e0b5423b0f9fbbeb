use pgrx::prelude::*;

use crate::service::statistics::version;

#[pg_extern(immutable, parallel_safe)]
fn graph_kernel_version() -> &'static str {
    version()
}
