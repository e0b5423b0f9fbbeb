use pgrx::prelude::*;

use crate::service::statistics::version;

#[pg_extern(immutable, parallel_safe)]
fn graph_kernel_version() -> &'static str {
    version()
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_kernel_version() IS 'version of the loaded library';
",
    name = "version_comments",
    requires = [graph_kernel_version]
);
