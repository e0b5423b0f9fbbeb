//! Directs calls of some of the server's functions through `src/pg/shortage/reporting.rs`, and lists the functions that
//! the scripts in `sql` make.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    list_functions();
    // Options of the linkers of ELF files.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        for (function, ours) in [
            ("CopyErrorData", "graph_kernel_copy_error_data"),
            ("errstart", "graph_kernel_errstart"),
            ("errfinish", "graph_kernel_errfinish"),
        ] {
            println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap={function}");
            // Under a name of its own: another library in the process may have the name that --wrap looks for.
            println!("cargo:rustc-link-arg-cdylib=-Wl,--defsym=__wrap_{function}={ours}");
        }
    }
}

/// Writes the names of the functions and procedures that the scripts make into `functions.txt`, one a line, in
/// ascending order.
fn list_functions() {
    println!("cargo:rerun-if-changed=sql");
    let mut names = Vec::new();
    for script in fs::read_dir("sql").expect("the scripts are in sql") {
        let path = script.expect("the folder is read").path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let script = fs::read_to_string(&path).expect("a script is text");
            names.extend(script.lines().filter_map(|line| {
                let kinds = ["CREATE FUNCTION ", "CREATE PROCEDURE "];
                let function = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
                let function = function.split('(').next()?;
                Some(function.rsplit('.').next()?.to_owned())
            }));
        }
    }
    names.sort_unstable();
    names.dedup();
    let folder = env::var_os("OUT_DIR").expect("Cargo names the folder");
    fs::write(Path::new(&folder).join("functions.txt"), names.join("\n")).expect("it is written");
}
