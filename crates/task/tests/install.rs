//! The library for C as it is installed: programs that are built as `docs/programs.md` says start, wherever it lies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Is a program there? Says so where it is not.
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: no `{program}` here");
    }
    there
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a line of the shell, without what would help the loader.
fn shell(dir: &Path, line: &str) -> Output {
    Command::new("sh")
        .args(["-ec", line])
        .current_dir(dir)
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap()
}

/// Installs the library that Cargo built into a new prefix.
fn install(prefix: &Path) {
    // Cargo puts the libraries beside the tests.
    let own = std::env::current_exe().unwrap();
    let output = Command::new("make")
        .args(["--no-print-directory", "-C"])
        .arg(root())
        .arg("install-task")
        .arg(format!("FROM={}", own.parent().unwrap().display()))
        .arg(format!("PREFIX={}", prefix.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Builds the example with these flags and starts it. Outside of a run it says that it cannot join: so
/// it was loaded, and its library too.
fn starts(dir: &Path, flags: &str) {
    let example = root().join("examples/counter.c");
    let built = shell(dir, &format!("cc -O2 -o counter {} {flags}", example.display()));
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{flags}: {said}");
    let ran = Command::new(dir.join("counter"))
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("WARMSET_TASK")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{flags}: {said}");
    assert!(said.starts_with("cannot join"), "{flags}: {said}");
}

#[test]
fn programs_start_with_what_the_page_says() {
    if !has("make") || !has("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("prefix");
    install(&prefix);
    let p = prefix.display();
    starts(
        dir.path(),
        &format!("-I{p}/include -L{p}/lib -Wl,-rpath,{p}/lib -lwarmset"),
    );
    starts(
        dir.path(),
        &format!("-I{p}/include {p}/lib/libwarmset.a -lpthread -ldl -lm"),
    );
    if has("pkg-config") {
        let line = format!("PKG_CONFIG_PATH={p}/lib/pkgconfig pkg-config --cflags --libs warmset");
        let flags = shell(dir.path(), &line);
        assert!(flags.status.success());
        starts(dir.path(), String::from_utf8_lossy(&flags.stdout).trim());
    }
}

/// Without a name of its own, a program would ask for the file that the linker happened to read; and
/// `ldconfig` would make no link for the name that programs ask for.
#[test]
fn the_library_has_a_name_with_its_version() {
    if !has("make") || !has("readelf") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    install(dir.path());
    let lib = dir.path().join("lib");
    let read = shell(&lib, "readelf -d libwarmset.so");
    let text = String::from_utf8_lossy(&read.stdout);
    let name = format!("libwarmset.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    assert!(text.contains(&format!("soname: [{name}]")), "{text}");
    // The link that `ldconfig` would make is there.
    let file = std::fs::canonicalize(lib.join(&name)).unwrap();
    let expected = format!("libwarmset.so.{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(file.file_name().unwrap().to_str(), Some(expected.as_str()));
}
