//! The library for C as it is installed: programs that are built as `docs/programs.md` says start,
//! wherever it lies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testing::{NotRun, Outcome};

/// The programs that a test needs are there, or the reason why it cannot run.
fn needs(programs: &[&str]) -> Outcome {
    for program in programs {
        if let Err(e) = Command::new(program).arg("--version").output() {
            return Err(NotRun::because(format!("no `{program}`: {e}")));
        }
    }
    Ok(())
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

/// Builds the example with these flags and starts it. Outside of a run it says that it cannot join:
/// so it was loaded, and its library too.
fn starts(dir: &Path, flags: &str) {
    let example = root().join("examples/counter.c");
    let built = shell(
        dir,
        &format!("cc -O2 -o counter {} {flags}", example.display()),
    );
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

fn programs_start_with_what_the_page_says() -> Outcome {
    needs(&["make", "cc"])?;
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
    Ok(())
}

fn programs_start_with_the_flags_of_pkg_config() -> Outcome {
    needs(&["make", "cc", "pkg-config"])?;
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("prefix");
    install(&prefix);
    let p = prefix.display();
    let line = format!("PKG_CONFIG_PATH={p}/lib/pkgconfig pkg-config --cflags --libs warmset");
    let flags = shell(dir.path(), &line);
    assert!(flags.status.success());
    starts(dir.path(), String::from_utf8_lossy(&flags.stdout).trim());
    Ok(())
}

/// Without a name of its own, a program would ask for the file that the linker happened to read;
/// and `ldconfig` would make no link for the name that programs ask for.
fn the_library_has_a_name_with_its_version() -> Outcome {
    needs(&["make", "readelf"])?;
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
    Ok(())
}

testing::tests!(
    programs_start_with_what_the_page_says,
    programs_start_with_the_flags_of_pkg_config,
    the_library_has_a_name_with_its_version,
);
