//! Builds the library that is loaded into programs (`preload/`), so that it can be carried inside
//! whatever uses this crate.
//!
//! Cargo cannot yet hand a library of one crate to another as a file. So the compiler that builds
//! this crate is called once more: the library needs nothing but `core` and the files named here,
//! and neither a C compiler nor the network.
//!
//! Programs that it is loaded into use the C library of GNU, whose functions it calls by name. So
//! it is built for that one even where the rest is linked statically with musl.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    for path in ["preload", "src/alloc", "src/message.rs", "build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let target = variable("TARGET").replace("-linux-musl", "-linux-gnu");
    let library = PathBuf::from(variable("OUT_DIR")).join("libwarmset-preload.so");
    let mut compiler = Command::new(variable("RUSTC"));
    compiler
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "--crate-name",
            "warmset_preload",
        ])
        .args([
            "-O",
            "-C",
            "panic=abort",
            "-C",
            "lto=fat",
            "-C",
            "strip=symbols",
            "--cfg",
            "warmset_preload",
        ])
        .args([
            "--target",
            &target,
            "preload/lib.rs",
            "-C",
            "link-arg=-Wl,--no-undefined",
            "-o",
        ])
        .arg(&library);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.args(["-C", &format!("linker={linker}")]);
    }
    let built = compiler.status();
    assert!(
        built.as_ref().is_ok_and(std::process::ExitStatus::success),
        "the library that is loaded into programs could not be built for {target}: {built:?}"
    );
}
