//! The examples in C and C++ are compiled and run: against the shared library, and one against the
//! static one.

#[path = "../../heap/tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use testing::{NotRun, Outcome};

/// A directory with the libraries that Cargo built, under the names that `make install` gives them.
fn libraries() -> PathBuf {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("color-c");
    INSTALLED.call_once(|| {
        // Cargo puts the libraries beside the tests.
        let own = std::env::current_exe().unwrap();
        let output = Command::new("make")
            .args(["--no-print-directory", "-C"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .arg("install-color")
            .arg(format!("FROM={}", own.parent().unwrap().display()))
            .arg(format!("PREFIX={}", prefix.display()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    });
    prefix.join("lib")
}

/// Compiles an example, where there is a compiler.
fn compiled(compiler: &str, source: &str, to: &Path, fixed: bool) -> Outcome {
    compiled_with(compiler, source, to, fixed, &[])
}

/// The same with more words behind the source, such as libraries.
fn compiled_with(compiler: &str, source: &str, to: &Path, fixed: bool, more: &[&str]) -> Outcome {
    if let Err(e) = Command::new(compiler).arg("--version").output() {
        return Err(NotRun::because(format!("no compiler `{compiler}`: {e}")));
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(to)
        .arg(here.join("../../examples/color").join(source))
        .args(more)
        .arg("-I")
        .arg(here.join("include"));
    if fixed {
        command
            .arg(libraries().join("libwarmset_color.a"))
            .args(["-lpthread", "-ldl", "-lm"]);
    } else {
        // What `pkg-config` gives.
        let path = format!("-Wl,-rpath,{}", libraries().display());
        command
            .arg("-L")
            .arg(libraries())
            .arg(path)
            .arg("-lwarmset_color");
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn run(program: &Path, server: &common::Served) -> (bool, String, String) {
    run_by(program, server, "caller")
}

/// The same where somebody else may choose colors.
fn run_by(program: &Path, server: &common::Served, by: &str) -> (bool, String, String) {
    let output = Command::new(program)
        .env_remove("LD_LIBRARY_PATH")
        .env("WARMSET_COLOR_SOCKET", &server.socket)
        .env("WARMSET_COLOR_BY", by)
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const REFUSED: &str = "refused: color 3 is beyond the last one: there are 3 colors\n";

fn the_example_in_c_has_the_colors_that_it_names() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let server = common::serve(3, 16);
    for fixed in [false, true] {
        let filter = dir.path().join("filter");
        compiled("cc", "filter.c", &filter, fixed)?;
        let (fine, said, errors) = run(&filter, &server);
        assert!(fine, "{said}{errors}");
        assert_eq!(said, format!("color 0 and 2: 2.0\n{REFUSED}"));
        assert!(errors.contains("color 3 is beyond"), "{errors}");
    }
    Ok(())
}

/// What is installed names the library, and where it lies.
fn the_library_has_a_name_with_its_version_and_pkg_config_says_where_it_is() -> Outcome {
    let lib = libraries();
    let name = format!("libwarmset_color.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    assert!(lib.join(&name).exists());
    let told = std::fs::read_to_string(lib.join("pkgconfig/warmset-color.pc")).unwrap();
    assert!(
        told.contains(&format!("prefix={}", lib.parent().unwrap().display())),
        "{told}"
    );
    assert!(told.contains("-Wl,-rpath,${libdir}"), "{told}");
    let read = Command::new("readelf")
        .arg("-d")
        .arg(lib.join(&name))
        .output();
    let read = read.map_err(|e| NotRun::because(format!("no `readelf`: {e}")))?;
    let text = String::from_utf8_lossy(&read.stdout);
    assert!(text.contains(&format!("soname: [{name}]")), "{text}");
    Ok(())
}

fn the_example_in_cpp_has_the_colors_that_it_names() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let server = common::serve(3, 16);
    let matrix = dir.path().join("matrix");
    compiled("c++", "matrix.cpp", &matrix, false)?;
    let (fine, said, errors) = run(&matrix, &server);
    assert!(fine, "{said}{errors}");
    assert_eq!(said, format!("colors 0, 2, 2, 2: 6\n{REFUSED}"));
    Ok(())
}

/// 004 Fig. 8, and across the border of a library: both include the header.
fn new_and_delete_are_as_in_the_paper_and_work_across_libraries() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libshared.so");
    compiled_with("c++", "shared.cpp", &library, false, &["-shared", "-fPIC"])?;
    let program = dir.path().join("new");
    let path = library.to_str().unwrap();
    compiled_with("c++", "new.cpp", &program, false, &[path])?;
    let server = common::serve(3, 16);
    let (fine, said, errors) = run(&program, &server);
    assert!(fine, "{said}{errors}");
    assert_eq!(said, "colors 1, 2, 1, 2, -1, 2\nalive: 0\n");
    assert_eq!(errors, "");
    // Tasks choose: all of it is that of this thread, which is said once.
    let (fine, said, errors) = run_by(&program, &server, "task");
    assert!(fine, "{said}{errors}");
    assert_eq!(said, "colors 0, 0, 0, 0, -1, 0\nalive: 0\n");
    assert_eq!(errors, format!("{IGNORED}task\n"));
    // Nobody does: the memory is ordinary, and no server is needed.
    let output = Command::new(&program)
        .env_remove("LD_LIBRARY_PATH")
        .env("WARMSET_COLOR_SOCKET", dir.path().join("nobody.sock"))
        .env("WARMSET_COLOR_BY", "none")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (said, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    assert_eq!(said, "colors -1, -1, -1, -1, -1, -1\nalive: 0\n");
    assert_eq!(errors, format!("{IGNORED}none\n"));
    Ok(())
}

/// The C functions where nobody chooses colors.
fn a_program_in_c_runs_without_colors_and_is_told_so() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let server = common::serve(3, 16);
    let filter = dir.path().join("filter");
    compiled("cc", "filter.c", &filter, false)?;
    let (_, said, errors) = run_by(&filter, &server, "none");
    // Its last color, which would be refused, is ignored as all others: nothing is refused.
    assert_eq!(said, "color -1 and -1: 2.0\n");
    assert_eq!(errors, format!("{IGNORED}none\n"));
    Ok(())
}

const IGNORED: &str = "warmset: colors that the program names are ignored: WARMSET_COLOR_BY=";

fn without_a_server_the_reason_is_said() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let filter = dir.path().join("filter");
    compiled("cc", "filter.c", &filter, false)?;
    let output = Command::new(&filter)
        .env_remove("LD_LIBRARY_PATH")
        .env("WARMSET_COLOR_SOCKET", dir.path().join("nobody.sock"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("memory server") && errors.contains("color serve"),
        "{errors}"
    );
    Ok(())
}

testing::tests!(
    the_example_in_c_has_the_colors_that_it_names,
    the_example_in_cpp_has_the_colors_that_it_names,
    new_and_delete_are_as_in_the_paper_and_work_across_libraries,
    a_program_in_c_runs_without_colors_and_is_told_so,
    the_library_has_a_name_with_its_version_and_pkg_config_says_where_it_is,
    without_a_server_the_reason_is_said,
);
