//! Directs calls of some of the server's functions through `src/pg/reporting.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
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
