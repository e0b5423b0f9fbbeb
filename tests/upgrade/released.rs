//! From each released version to that of this tree.

use std::fs;
use std::path::Path;

use crate::catalog::{assert_same, schema};
use crate::cluster::Cluster;
use crate::contents::{ROLES, answers, keep_documents, make_objects};
use crate::graph::text;
use crate::installation::{CURRENT, Installation};

/// Versions and scripts, as they were released.
pub fn released() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/install");
    let mut scripts = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(version) =
            name.strip_prefix("graph_kernel--").and_then(|name| name.strip_suffix(".sql"))
        {
            scripts.push((version.to_owned(), fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!scripts.is_empty());
    scripts
}

#[test]
fn a_database_of_each_released_version_becomes_as_a_new_one() {
    for (version, script) in released() {
        let installation = Installation::new();
        if version == CURRENT {
            let same = installation.script(CURRENT) == script;
            assert!(same, "the script of {CURRENT} is not the one in sql/install");
            continue;
        }
        installation.add_script(&version, &script);
        installation.use_library(&version);
        let cluster = Cluster::start_with(&installation.programs);
        let mut client = cluster.client();
        client.batch_execute(ROLES).unwrap();
        client
            .batch_execute(&format!("CREATE EXTENSION graph_kernel VERSION '{version}'"))
            .unwrap();
        make_objects(&mut client);
        keep_documents(&mut client);
        let before = answers(&mut client);

        installation.use_library(CURRENT);
        let mut client = cluster.client();
        client.batch_execute("ALTER EXTENSION graph_kernel UPDATE").unwrap();
        let now = "SELECT extversion FROM pg_extension WHERE extname = 'graph_kernel'";
        assert_eq!(text(&mut client, now), CURRENT);
        crate::contents::assert_same(&answers(&mut client), &before);

        client.batch_execute("CREATE DATABASE fresh").unwrap();
        let mut fresh = cluster.client_of("postgres", "fresh");
        fresh.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
        make_objects(&mut fresh);
        assert_same(&schema(&cluster, "postgres"), &schema(&cluster, "fresh"));
    }
}
