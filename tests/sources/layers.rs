//! The check of the layers finds what is planted: tests/harness/layers.sh on a copy of the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of the sources, removed when it goes out of scope.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_sources(&path, &target);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            fs::copy(&path, target).unwrap();
        }
    }
}

#[test]
fn a_use_against_the_layers_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let copy = Copy(std::env::temp_dir().join(format!("gk_layers_{}", std::process::id())));
    copy_sources(&root.join("src"), &copy.0.join("src"));
    let check = || {
        let mut command = Command::new(root.join("tests/harness/layers.sh"));
        let output = command.arg(&copy.0).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(check(), (true, String::new()));
    for (file, planted) in [
        ("src/kernel/json/mod.rs", "use crate::slicing::slicer;"),
        ("src/pg/text.rs", "use crate::pg::access::trace;"),
        ("src/pg/text.rs", "use crate::service::tables;"),
        ("src/pg/text.rs", "use crate::cli::output;"),
        ("src/service/tables.rs", "use crate::api::graph;"),
        ("src/api/graph.rs", "use crate::pg::private::members::call_for_caller;"),
        ("src/api/graph.rs", "use crate::pg::query::query;"),
        ("src/api/graph.rs", "use crate::pg::{error, guc};"),
        ("src/cli/input.rs", "use crate::pg::text;"),
    ] {
        let path = copy.0.join(file);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{planted}\n{before}")).unwrap();
        let (is_fine, said) = check();
        assert!(!is_fine && said.contains(file), "{file}: {planted}: {said}");
        fs::write(&path, before).unwrap();
    }
}
