//! Names the shared library for the loader (SONAME).
//!
//! Without a name of its own the loader would ask for whatever file the linker happened to read.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwarmset_color.so.{major}");
}
