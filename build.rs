//! Directs the library's calls of the server's `CopyErrorData` through `copy_error_data` in `src/pg/memory.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Options of the linkers of ELF files. The second keeps the first's name within the library: another that is loaded
    // may have the same.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap=CopyErrorData");
        println!(
            "cargo:rustc-link-arg-cdylib=-Wl,--defsym=__wrap_CopyErrorData=graph_kernel_copy_error_data"
        );
    }
}
