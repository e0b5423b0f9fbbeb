//! graph_kernel: deterministic, bounded, checkable context slices of conversation DAGs inside
//! PostgreSQL.

use pgrx::prelude::*;

mod api;
mod pg;
mod service;

::pgrx::pg_module_magic!(name, version);

extension_sql_file!("../sql/bootstrap.sql", name = "bootstrap", bootstrap);
extension_sql_file!("../sql/binding.sql", name = "binding");
extension_sql_file!("../sql/keys.sql", name = "keys", requires = ["binding"]);
extension_sql_file!("../sql/policies.sql", name = "policies", requires = [graph_policy_hash]);
extension_sql_file!("../sql/api.sql", name = "api", requires = ["policies", graph_kernel_version]);
extension_sql_file!("../sql/promotion.sql", name = "promotion");
extension_sql_file!("../sql/content.sql", name = "content");
extension_sql_file!(
    "../sql/create_tables.sql",
    name = "create_tables",
    requires = ["binding", "content"]
);
extension_sql_file!("../sql/store.sql", name = "store", requires = ["binding"]);
extension_sql_file!(
    "../sql/promoting.sql",
    name = "promoting",
    requires = ["binding", "promotion", "content", "store"]
);
extension_sql_file!("../sql/check_tables.sql", name = "check_tables", requires = ["promoting"]);
extension_sql_file!("../sql/check_code.sql", name = "check_code", requires = ["check_tables"]);
extension_sql_file!(
    "../sql/check_promotion.sql",
    name = "check_promotion",
    requires = ["promoting"]
);
extension_sql_file!("../sql/check_kept.sql", name = "check_kept", requires = ["promoting"]);
extension_sql_file!(
    "../sql/check_rows.sql",
    name = "check_rows",
    requires = ["check_tables", "promoting"]
);
extension_sql_file!(
    "../sql/check.sql",
    name = "check",
    requires = ["check_code", "check_promotion", "check_kept", "check_rows"]
);
extension_sql_file!("../sql/kept.sql", name = "kept", requires = ["store", "promoting"]);
extension_sql_file!("../sql/recorder.sql", name = "recorder");
extension_sql_file!("../sql/retrieval.sql", name = "retrieval");
extension_sql_file!("../sql/words.sql", name = "words", requires = ["binding"]);
extension_sql_file!("../sql/lists.sql", name = "lists", requires = ["bootstrap"]);
extension_sql_file!("../sql/statistics.sql", name = "statistics", requires = ["bootstrap"]);
extension_sql_file!("../sql/api_search.sql", name = "api_search", requires = ["retrieval"]);
extension_sql_file!(
    "../sql/finalize.sql",
    name = "finalize",
    requires = [
        "binding",
        "keys",
        "policies",
        "api",
        "promotion",
        "create_tables",
        "check",
        "store",
        "kept",
        "content",
        "recorder",
        "retrieval",
        "lists",
        "statistics",
        "api_search",
        "words"
    ],
    finalize
);

/// Runs once in each process that loads the library.
#[pg_guard]
#[allow(non_snake_case)]
pub extern "C-unwind" fn _PG_init() {
    // First: what fails later could not be registered again by the next call, which runs this again.
    pg::shortage::memory::expect_reserve();
    pg::environment::hide_backtraces();
    pg::guc::register();
    pg::catalog::relation::watch_catalog();
    pg::catalog::role_writers::watch_roles();
    pg::query::watch_savepoints();
    pg::query::watch_planner();
    pg::statistics::register();
    pg::shortage::memory::take_reserve();
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
