//! A next version made here, to show that an upgrade is compared with a new installation in every part.

use crate::catalog::{assert_same, difference, schema};
use crate::cluster::Cluster;
use crate::contents::{ROLES, answers, keep_documents, make_objects};
use crate::graph::text;
use crate::installation::{CURRENT, Installation, next_version};

/// What the next version adds: statements of its own script and of that of the upgrade.
const ADDED: [&str; 5] = [
    "CREATE FUNCTION graph_kernel.loaded_version() RETURNS text
         AS 'MODULE_PATHNAME', 'graph_kernel_version_wrapper' LANGUAGE c IMMUTABLE PARALLEL SAFE;",
    "COMMENT ON FUNCTION graph_kernel.loaded_version() IS 'version of the loaded library';",
    "REVOKE ALL ON FUNCTION graph_kernel.loaded_version() FROM PUBLIC;",
    "COMMENT ON COLUMN graph_kernel.policies.purpose IS 'what the policy is for';",
    "GRANT SELECT ON graph_kernel.root_keys TO pg_monitor;",
];

/// A column at the end of a table: where the script of the next version has it, and how the upgrade adds it.
const COLUMN: [&str; 3] = [
    "    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now(),\n",
    "    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now(),\n    purpose text NOT NULL DEFAULT '',\n",
    "ALTER TABLE graph_kernel.policies ADD COLUMN purpose text NOT NULL DEFAULT '';",
];

/// A sentence in the body of a function, and what the next version makes of it.
const CHANGED: [&str; 2] = ["RAISE NOTICE 'there is no %'", "RAISE NOTICE 'there is still no %'"];

/// The function with that body.
const CHANGED_FUNCTION: &str =
    "graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, oid)";

struct NextVersion {
    // Stopped before its programs are removed.
    cluster: Cluster,
    installation: Installation,
    version: String,
    /// What the new function of the next version is created by.
    changed_body: String,
}

impl NextVersion {
    /// With a database `fresh` of the next version.
    fn new() -> Self {
        let installation = Installation::new();
        let version = next_version();
        let script = installation.script(CURRENT);
        assert_eq!(script.matches(CHANGED[0]).count(), 1);
        assert_eq!(script.matches(COLUMN[0]).count(), 1);
        let script = script.replace(CHANGED[0], CHANGED[1]).replace(COLUMN[0], COLUMN[1]);
        let script = script + &ADDED.join("\n");
        installation.add_script(&version, &script);
        installation.use_library(&version);
        let cluster = Cluster::start_with(&installation.programs);
        cluster.client().batch_execute(ROLES).unwrap();
        let mut next = NextVersion { cluster, installation, version, changed_body: String::new() };
        next.create("fresh", &next.version);
        let definition = format!("SELECT pg_get_functiondef('{CHANGED_FUNCTION}'::regprocedure)");
        next.changed_body = text(&mut next.cluster.client_of("postgres", "fresh"), &definition);
        next
    }

    /// A database with a version of the extension and objects that use it.
    fn create(&self, database: &str, version: &str) {
        self.cluster.client().batch_execute(&format!("CREATE DATABASE {database}")).unwrap();
        let mut client = self.cluster.client_of("postgres", database);
        client
            .batch_execute(&format!("CREATE EXTENSION graph_kernel VERSION '{version}'"))
            .unwrap();
        make_objects(&mut client);
    }

    /// A database of this tree's version that was upgraded by these statements, and what it answered before.
    fn upgraded(&self, database: &str, statements: &[&str]) -> Vec<String> {
        self.installation.use_library(CURRENT);
        self.create(database, CURRENT);
        let mut client = self.cluster.client_of("postgres", database);
        keep_documents(&mut client);
        let before = answers(&mut client);
        self.installation.use_library(&self.version);
        let script = format!("SELECT graph_kernel.require_library();\n{}", statements.join("\n"));
        self.installation.add_script(&format!("{CURRENT}--{}", self.version), &script);
        let update = format!("ALTER EXTENSION graph_kernel UPDATE TO '{}'", self.version);
        self.cluster.client_of("postgres", database).batch_execute(&update).unwrap();
        before
    }
}

#[test]
fn an_upgraded_database_is_as_a_new_one_and_says_what_it_said() {
    let next = NextVersion::new();
    let changed_body = format!("{};", next.changed_body);
    // The column first: one of the others comments on it.
    let statements = [&[COLUMN[2]], &ADDED[..], &[changed_body.as_str()]].concat();
    let before = next.upgraded("upgraded", &statements);
    assert_same(&schema(&next.cluster, "upgraded"), &schema(&next.cluster, "fresh"));
    let mut client = next.cluster.client_of("postgres", "upgraded");
    crate::contents::assert_same(&answers(&mut client), &before);
    assert_eq!(text(&mut client, "SELECT graph_kernel.loaded_version()"), next.version);

    // What an upgrade forgets is found. The new objects themselves cannot be forgotten: their comments would fail.
    for forgotten in 2..statements.len() {
        let mut statements = statements.clone();
        statements.remove(forgotten);
        let database = format!("forgotten{forgotten}");
        next.upgraded(&database, &statements);
        let difference =
            difference(&schema(&next.cluster, &database), &schema(&next.cluster, "fresh"));
        assert!(difference.is_some(), "nothing was missed without {forgotten}");
    }
}
