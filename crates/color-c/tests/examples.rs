//! The examples in C and C++ are compiled and run: against the shared library, and one against the static one.

#[path = "../../heap/tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Cargo put the libraries.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().to_owned()
}

/// Compiles an example; none where there is no compiler, which is said.
fn compiled(compiler: &str, source: &str, to: &Path, fixed: bool) -> bool {
    if Command::new(compiler).arg("--version").output().is_err() {
        eprintln!("skipped: no compiler `{compiler}` here");
        return false;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(to)
        .arg(here.join("../../examples/color").join(source))
        .arg("-I")
        .arg(here.join("include"));
    if fixed {
        command
            .arg(libraries().join("libwarmset_color.a"))
            .args(["-lpthread", "-ldl", "-lm"]);
    } else {
        command.arg("-L").arg(libraries()).arg("-lwarmset_color");
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

fn run(program: &Path, server: &common::Served) -> (bool, String, String) {
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", libraries())
        .env("WARMSET_COLOR_SOCKET", &server.socket)
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn the_examples_in_c_and_cpp_have_the_colors_that_they_name() {
    let dir = tempfile::tempdir().unwrap();
    let server = common::serve(3, 16);
    let refused = "refused: color 3 is beyond the last one: there are 3 colors\n";
    for fixed in [false, true] {
        let filter = dir.path().join("filter");
        if compiled("cc", "filter.c", &filter, fixed) {
            let (fine, said, errors) = run(&filter, &server);
            assert!(fine, "{said}{errors}");
            assert_eq!(said, format!("color 0 and 2: 2.0\n{refused}"));
            assert!(errors.contains("color 3 is beyond"), "{errors}");
        }
    }
    let matrix = dir.path().join("matrix");
    if compiled("c++", "matrix.cpp", &matrix, false) {
        let (fine, said, errors) = run(&matrix, &server);
        assert!(fine, "{said}{errors}");
        assert_eq!(said, format!("colors 0, 2, 2, 2: 6\n{refused}"));
    }
}

#[test]
fn without_a_server_the_reason_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let filter = dir.path().join("filter");
    if !compiled("cc", "filter.c", &filter, false) {
        return;
    }
    let output = Command::new(&filter)
        .env("LD_LIBRARY_PATH", libraries())
        .env("WARMSET_COLOR_SOCKET", dir.path().join("nobody.sock"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("memory server") && errors.contains("color serve"),
        "{errors}"
    );
}
