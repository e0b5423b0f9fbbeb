//! A copy of the server's files, in which the library and the scripts of other versions can be installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::process::{Programs, run};
use crate::common::variable;

/// The version that is built from this tree.
pub const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// A version after it, of the same length.
pub fn next_version() -> String {
    format!("9{}", &CURRENT[1..])
}

/// What precedes the version in the library's file.
const NAME: &str = "graph_kernel ";

/// Removed when it goes out of scope.
pub struct Installation {
    folder: PathBuf,
    pub programs: Programs,
    shared_library: PathBuf,
    scripts: PathBuf,
}

impl Installation {
    /// A copy of the server under test, with the extension as it was built.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("installation.{}.{count}", std::process::id());
        let folder = Path::new(&variable("GRAPH_KERNEL_SCRATCH")).join(name);
        let tree = variable("GRAPH_KERNEL_SERVER_TREE");
        // Links: what a test replaces it removes first.
        run(Command::new("cp").args(["-al", &tree]).arg(&folder));
        let bindir = variable("GRAPH_KERNEL_BINDIR");
        let below = Path::new(&bindir).strip_prefix(&tree).unwrap();
        let programs = Programs { folder: folder.join(below) };
        let path = |what: &str| {
            let output = programs.program("pg_config").arg(what).output().unwrap();
            PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
        };
        let shared_library = path("--pkglibdir").join("graph_kernel.so");
        let scripts = path("--sharedir").join("extension");
        assert!(shared_library.starts_with(&folder) && scripts.starts_with(&folder));
        Installation { folder, programs, shared_library, scripts }
    }

    /// The text of a script.
    pub fn script(&self, versions: &str) -> String {
        let path = self.script_path(versions);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Adds a script: of a version, or from one to another.
    pub fn add_script(&self, versions: &str, text: &str) {
        replace(&self.script_path(versions), text.as_bytes());
    }

    fn script_path(&self, versions: &str) -> PathBuf {
        self.scripts.join(format!("graph_kernel--{versions}.sql"))
    }

    /// Makes the library say that it is of this version. Sessions that begin from now on load it.
    pub fn use_library(&self, version: &str) {
        let mut bytes = fs::read(&self.shared_library).unwrap();
        let place = bytes
            .windows(NAME.len() + CURRENT.len())
            .enumerate()
            .filter(|(_, window)| {
                let text = window.strip_prefix(NAME.as_bytes());
                text.is_some_and(|version| {
                    version.iter().all(|byte| byte.is_ascii_digit() || b". ".contains(byte))
                        && version.contains(&b'.')
                })
            })
            .map(|(place, _)| place + NAME.len())
            .collect::<Vec<_>>();
        let [place] = place[..] else {
            panic!("the library says {} times its version", place.len())
        };
        let padded = format!("{version:<width$}", width = CURRENT.len());
        assert_eq!(padded.len(), CURRENT.len(), "{version} is longer than {CURRENT}");
        bytes[place..place + padded.len()].copy_from_slice(padded.as_bytes());
        replace(&self.shared_library, &bytes);
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.folder);
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}

/// Writes a new file: the old one is a link to that of the server under test, and running servers have it open.
fn replace(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}
