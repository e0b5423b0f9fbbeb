//! From each released version to that of this tree, and from one that is made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::catalog::{assert_same, schema};
use crate::cluster::Cluster;
use crate::common::variable;
use crate::contents::{ROLES, answers, keep_documents, make_objects};
use crate::graph::text;
use crate::installation::{CURRENT, Installation};

/// Versions and scripts, as they were released.
pub fn released() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/install");
    let mut scripts = Vec::new();
    // Before the first release there is no such folder.
    for file in fs::read_dir(folder).into_iter().flatten() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(version) =
            name.strip_prefix("graph_kernel--").and_then(|name| name.strip_suffix(".sql"))
        {
            scripts.push((version.to_owned(), fs::read_to_string(&path).unwrap()));
        }
    }
    scripts
}

/// A database of this version, with objects and documents of a user, is upgraded: it answers as before, and is as a
/// new one.
fn upgrade(installation: &Installation, version: &str, script: &str) {
    installation.add_script(version, script);
    installation.use_library(version);
    let cluster = Cluster::start_with(&installation.programs);
    let mut client = cluster.client();
    client.batch_execute(ROLES).unwrap();
    client.batch_execute(&format!("CREATE EXTENSION graph_kernel VERSION '{version}'")).unwrap();
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

#[test]
fn a_database_of_each_released_version_becomes_as_a_new_one() {
    for (version, script) in released() {
        let installation = Installation::new();
        if version == CURRENT {
            let same = installation.script(CURRENT) == script;
            assert!(same, "the script of {CURRENT} is not the one in sql/install");
            continue;
        }
        upgrade(&installation, &version, &script);
    }
}

#[test]
fn a_database_of_a_version_made_here_becomes_as_a_new_one() {
    let installation = Installation::new();
    let older = "0.0.9";
    let script = installation.script(CURRENT);
    installation
        .add_script(&format!("{older}--{CURRENT}"), "SELECT graph_kernel.require_library();");
    upgrade(&installation, older, &script);
}

/// Whether `make lint` takes the scripts in this folder for what was released.
fn frozen(folder: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let check = ". tests/harness/common.sh && check_frozen \"$1\"";
    let output = Command::new("bash")
        .args(["-c", check, "check_frozen"])
        .arg(folder)
        .current_dir(root)
        .output()
        .unwrap();
    output.status.success()
}

#[test]
fn scripts_of_released_versions_are_frozen() {
    let folder = PathBuf::from(variable("GRAPH_KERNEL_SCRATCH"))
        .join(format!("frozen.{}", std::process::id()));
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    fs::create_dir_all(folder.join("install")).unwrap();
    assert!(frozen(&folder), "nothing is released");
    write("graph_kernel--0.0.9--0.1.0.sql", "SELECT 1;\n");
    assert!(frozen(&folder), "0.1.0 is not released");

    write("install/graph_kernel--0.0.9.sql", "SELECT 9;\n");
    assert!(!frozen(&folder), "0.0.9 is not listed");
    let list = || {
        let sums = Command::new("bash")
            .args(["-c", "sha256sum install/*.sql graph_kernel--*.sql > released.sha256"])
            .current_dir(&folder)
            .status()
            .unwrap();
        assert!(sums.success());
    };
    list();
    assert!(frozen(&folder));

    write("install/graph_kernel--0.0.9.sql", "SELECT 10;\n");
    assert!(!frozen(&folder), "0.0.9 is another one");
    list();
    write("graph_kernel--0.0.8--0.0.9.sql", "SELECT 8;\n");
    assert!(!frozen(&folder), "the upgrade to 0.0.9 is not listed");
    list();
    assert!(frozen(&folder));
    fs::remove_dir_all(&folder).unwrap();
}
