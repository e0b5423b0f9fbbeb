use pgrx::prelude::*;

use crate::pg::private::version;

#[pg_extern(immutable, parallel_safe)]
fn graph_kernel_version() -> &'static str {
    version::of_library()
}
