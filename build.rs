//! Directs the library's calls of the server's `CopyErrorData` through `src/pg/memory.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // An option of the linkers of ELF files.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap=CopyErrorData");
    }
}
