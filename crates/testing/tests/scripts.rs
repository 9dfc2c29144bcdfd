//! The scripts behind `make test` and `make rounds`, with a stand-in for Cargo: what fails does not
//! stop the rest, and all of it is told.

use std::path::Path;
use std::process::{Command, Output};

/// Two programs of tests: libtest prints the reason behind a comma, the other harness in
/// parentheses, and what a test writes may stand within its line.
const LOG: &str = "\
     Running unittests src/lib.rs (target/debug/deps/model-00ff)

running 3 tests
test tests::adds_up ... ok
test tests::breaks ... FAILED
test tests::waits ... ignored, needs a day

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

error: test failed, to rerun pass `-p model --lib`
     Running tests/live.rs (target/debug/deps/live-12ab)

running 3 tests
test is_live     ... ok
test has_rights  ... ignored (no right to real-time priority)
test has_colors  ... what the test wrote
ignored (frame numbers are withheld)

test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s

   Doc-tests model

running 1 test
test crates/model/src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

/// A directory with the scripts, a smoke run that passes, and a Cargo that notes how it was called
/// and does as `cargo` says.
fn place(cargo: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let tests = dir.path().join("tests");
    std::fs::create_dir(&tests).unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    for script in ["all.sh", "summary.sh", "rounds.sh"] {
        std::fs::copy(ours.join(script), tests.join(script)).unwrap();
    }
    for part in ["smoke", "explorer", "static", "python"] {
        std::fs::write(
            tests.join(format!("{part}.sh")),
            format!("echo {part}: passed\n"),
        )
        .unwrap();
    }
    let guest = dir.path().join("crates/kernel/guest");
    std::fs::create_dir_all(&guest).unwrap();
    std::fs::write(guest.join("test.sh"), "echo kernel: passed\n").unwrap();
    std::fs::write(dir.path().join("log"), LOG).unwrap();
    let script = format!("#!/bin/sh\necho \"$*\" >>calls\n{cargo}\n");
    std::fs::write(dir.path().join("cargo"), script).unwrap();
    dir
}

fn run(dir: &Path, script: &str, argument: &str) -> (Output, String) {
    run_with(dir, script, argument, &[])
}

fn run_with(
    dir: &Path,
    script: &str,
    argument: &str,
    settings: &[(&str, &str)],
) -> (Output, String) {
    let output = Command::new("sh")
        .arg(format!("tests/{script}"))
        .arg(argument)
        .env("CARGO", "./run-cargo")
        .envs(settings.iter().copied())
        .current_dir(dir)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

/// What git answers in a directory.
fn git(dir: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Puts all that is not made by a run under version control.
fn under_git(dir: &Path) {
    std::fs::write(dir.join(".gitignore"), "target\ncalls\n").unwrap();
    git(dir, &["init", "-q"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-q", "-m", "all"]);
}

/// The stand-in is started by a shell: a file that was just written may be busy while another
/// thread forks.
fn prepared(cargo: &str) -> tempfile::TempDir {
    let dir = place(cargo);
    let made = Command::new("sh")
        .args([
            "-c",
            "printf '#!/bin/sh\\nexec sh ./cargo \"$@\"\\n' >run-cargo && chmod +x run-cargo",
        ])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(made.success());
    dir
}

/// What is told at the end, from what could not run on.
fn end_of(text: &str) -> Vec<&str> {
    let is_before = |line: &&str| !line.starts_with("== could not run");
    text.lines().skip_while(is_before).collect()
}

#[test]
fn after_a_failure_all_the_rest_runs_and_the_end_tells_everything() {
    let dir = prepared("case $* in fmt*) exit 1 ;; *no-fail-fast) cat log; exit 101 ;; esac");
    let guests = dir.path().join("crates/kernel/guest/test.sh");
    std::fs::write(guests, "echo kernel: not run: no network\n").unwrap();
    let (output, text) = run(dir.path(), "all.sh", "logs");
    assert_eq!(output.status.code(), Some(1), "{text}");
    let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
    let verbs: Vec<&str> = calls.lines().filter_map(|c| c.split(' ').next()).collect();
    assert_eq!(verbs, ["fmt", "clippy", "test", "test"]);
    assert!(text.contains("smoke: passed"), "{text}");
    assert_eq!(
        end_of(&text),
        [
            "== could not run here: 4",
            "  model (src/lib.rs): tests::waits: needs a day",
            "  live (tests/live.rs): has_rights: no right to real-time priority",
            "  live (tests/live.rs): has_colors: frame numbers are withheld",
            "  kernel: no network",
            "== failed",
            "  model (src/lib.rs): tests::breaks",
            "  fmt: ./run-cargo fmt --check -- crates/policy/src/catalog/*.rs",
            "  unit: ./run-cargo test --locked --workspace --no-fail-fast",
            "== 3 passed, 1 failed, 4 could not run; logs in logs",
        ]
    );
}

/// A part that passes for the rest says what it left out.
#[test]
fn what_a_part_could_not_run_is_listed_and_counted() {
    let dir = prepared("exit 0");
    for part in ["smoke", "explorer", "static", "python"] {
        std::fs::write(
            dir.path().join(format!("tests/{part}.sh")),
            format!("echo '{part}: not run: no reason: a test'\necho '{part}: passed'\n"),
        )
        .unwrap();
    }
    let (output, text) = run(dir.path(), "all.sh", "logs");
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(
        end_of(&text),
        [
            "== could not run here: 4",
            "  smoke: no reason: a test",
            "  explorer: no reason: a test",
            "  python: no reason: a test",
            "  static: no reason: a test",
            "== 0 passed, 0 failed, 4 could not run; logs in logs",
        ]
    );
}

/// In another form it would not be counted.
#[test]
fn every_script_says_in_one_form_what_it_could_not_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (part, file) in [
        ("smoke", "tests/smoke.sh"),
        ("explorer", "tests/explorer.sh"),
        ("static", "tests/static.sh"),
        ("python", "tests/python.sh"),
        ("kernel", "crates/kernel/guest/test.sh"),
    ] {
        let script = std::fs::read_to_string(root.join(file)).unwrap();
        let told: Vec<&str> = script
            .lines()
            .filter(|line| line.contains(&format!("echo \"{part}: not run")))
            .collect();
        assert!(!told.is_empty(), "{file}");
        for line in told {
            assert!(
                line.contains(&format!("echo \"{part}: not run: ")),
                "{file}: {line}"
            );
        }
    }
}

/// The script for the Python package, with a stand-in for Python whose pytest ends with this status
/// after these lines.
fn tested_in_python(status: u8, lines: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = [
        "tests",
        "bin",
        "target/python/venv/bin",
        "site",
        "crates/python/python/warmset",
    ];
    for folder in made {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    std::fs::copy(
        root.join("tests/python.sh"),
        dir.path().join("tests/python.sh"),
    )
    .unwrap();
    for file in ["warmset", "library"] {
        std::fs::write(dir.path().join(file), "").unwrap();
    }
    std::fs::write(dir.path().join("lines"), lines).unwrap();
    let python = format!(
        "#!/bin/sh\ncase $* in *pytest*) cat ../../lines; exit {status} ;; \
         *sysconfig*) echo site ;; esac\n"
    );
    std::fs::write(dir.path().join("python"), python).unwrap();
    let ran = Command::new("sh")
        .args([
            "-c",
            "for to in bin/python3 target/python/venv/bin/python target/python/venv/bin/pip; do
                 cp python $to && chmod +x $to || exit 2
             done
             PATH=$PWD/bin:$PATH exec sh tests/python.sh warmset library",
        ])
        .current_dir(dir.path())
        .output()
        .unwrap();
    (
        ran.status.code(),
        String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap(),
    )
}

#[test]
fn a_test_that_pytest_skips_is_told_as_not_run() {
    let lines = "\
...s.F
=========================== short test summary info ============================
SKIPPED tests/test_pages.py::test_a_notebook_runs[live] - Skipped: no rights: none
FAILED tests/test_sets.py::test_a_set - assert 1 == 2
1 failed, 4 passed, 1 skipped in 0.05s
";
    for status in [0, 1, 5] {
        let (code, said) = tested_in_python(status, lines);
        assert_eq!(code, Some(i32::from(status)), "{said}");
        let told: Vec<&str> = said.lines().filter(|l| l.contains("not run")).collect();
        assert_eq!(
            told,
            ["python: not run: tests/test_pages.py::test_a_notebook_runs[live]: no rights: none"],
            "{said}"
        );
        assert!(said.contains(lines), "{said}");
    }
}

#[test]
fn a_run_in_which_nothing_fails_passes_and_begins_with_an_empty_list() {
    let dir = prepared("case $* in *no-fail-fast) tail -5 log ;; esac; exit 0");
    std::fs::create_dir(dir.path().join("logs")).unwrap();
    for stale in ["failed", "failing", "not-run"] {
        std::fs::write(dir.path().join("logs").join(stale), "of an earlier run\n").unwrap();
    }
    let (output, text) = run(dir.path(), "all.sh", "logs");
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.ends_with("== 1 passed, 0 failed, 0 could not run; logs in logs\n"),
        "{text}"
    );
}

#[test]
fn rounds_count_what_failed_and_end_the_programs_that_they_started() {
    let dir = prepared(
        "case $* in *no-fail-fast) n=$(grep -c no-fail-fast calls)
         ps -eo pid,args | grep 'while :; do :; done' | grep -v grep >\"busy-$n\"
         if [ \"$n\" -eq 2 ]; then cat log; exit 101; fi
         sed 's/FAILED/ok/; s/1 failed/0 failed/' log ;; esac; exit 0",
    );
    let (output, text) = run(dir.path(), "rounds.sh", "3");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("failed in 1 of 3 rounds"), "{text}");
    assert!(
        text.contains("1 model (src/lib.rs): tests::breaks\n"),
        "{text}"
    );
    assert!(
        text.contains("3 live (tests/live.rs): has_rights: no right"),
        "{text}"
    );
    assert!(
        text.ends_with("== 2 of 3 rounds passed; logs in target/rounds\n"),
        "{text}"
    );
    // Those of the second round ran in it, and are gone.
    let seen = std::fs::read_to_string(dir.path().join("busy-2")).unwrap();
    let seen: Vec<&str> = seen.split_whitespace().collect();
    let started = std::fs::read_to_string(dir.path().join("target/rounds/2/busy")).unwrap();
    assert!(!started.is_empty(), "no program kept a processor busy");
    for pid in started.lines() {
        assert!(seen.contains(&pid), "{pid}: {seen:?}");
        let inside = std::fs::read_link(format!("/proc/{pid}/cwd"));
        assert!(inside.is_err() || inside.unwrap() != dir.path(), "{pid}");
    }
    let (output, _) = run(dir.path(), "rounds.sh", "many");
    assert_eq!(output.status.code(), Some(2));
}

/// A round may be over before its busy programs have begun, and they may lose a signal then: here
/// they mind none that can be ignored.
#[test]
fn rounds_end_busy_programs_whatever_signals_they_mind() {
    let dir =
        prepared("case $* in *no-fail-fast) sed 's/FAILED/ok/; s/1 failed/0 failed/' log ;; esac");
    let path = std::env::var("PATH").unwrap();
    let script = r#"mkdir bin && cd bin &&
        printf '%s\n' '#!/bin/sh' "trap '' INT TERM" 'exec /bin/sh "$@"' >sh &&
        chmod +x sh"#;
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(made.success());
    let output = Command::new("timeout")
        .args(["--signal=KILL", "120", "/bin/sh", "tests/rounds.sh", "2"])
        .env("CARGO", "./run-cargo")
        .env(
            "PATH",
            format!("{}:{path}", dir.path().join("bin").display()),
        )
        .current_dir(dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let started = std::fs::read_to_string(dir.path().join("target/rounds/2/busy")).unwrap();
    assert!(!started.is_empty(), "no program kept a processor busy");
}

/// Rounds that were completed count when the script is called again, as long as the files are the
/// same; a round that was cut short does not.
#[test]
fn rounds_go_on_where_they_were_ended() {
    let dir = prepared("case $* in *no-fail-fast) cat log; exit 101 ;; esac; exit 0");
    under_git(dir.path());
    let rounds_run = || {
        let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
        calls.matches("no-fail-fast").count()
    };
    let (_, text) = run(dir.path(), "rounds.sh", "2");
    assert!(text.contains("failed in 2 of 2 rounds"), "{text}");
    std::fs::remove_file(dir.path().join("target/rounds/2/done")).unwrap();
    let (output, text) = run(dir.path(), "rounds.sh", "3");
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("failed in 3 of 3 rounds"), "{text}");
    assert!(
        text.contains("3 model (src/lib.rs): tests::breaks\n"),
        "{text}"
    );
    assert_eq!(rounds_run(), 4, "{text}");
    std::fs::write(dir.path().join("log"), "").unwrap();
    let (_, text) = run(dir.path(), "rounds.sh", "1");
    assert_eq!(rounds_run(), 5, "{text}");
}

/// With `ACROSS=yes` rounds that passed stay when a file changes, and those that failed are done
/// again; each says of which commit it is.
#[test]
fn rounds_of_several_commits_are_kept_on_request() {
    let dir = prepared(
        "case $* in *no-fail-fast) n=$(grep -c no-fail-fast calls)
         if [ \"$n\" -eq 2 ]; then cat log; exit 101; fi
         sed 's/FAILED/ok/; s/1 failed/0 failed/' log ;; esac; exit 0",
    );
    under_git(dir.path());
    let rounds = |count: &str| {
        let (output, text) = run_with(dir.path(), "rounds.sh", count, &[("ACROSS", "yes")]);
        (output.status.code(), text)
    };
    let commit = || git(dir.path(), &["rev-parse", "--short", "HEAD"]);
    let first = commit();
    let (status, text) = rounds("3");
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains(&format!("round 3 of {first}, alone, passed")),
        "{text}"
    );
    std::fs::write(dir.path().join("more"), "").unwrap();
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-q", "-m", "more"]);
    let second = commit();
    let (status, text) = rounds("3");
    assert_eq!(status, Some(0), "{text}");
    let of = |round, commit: &str| format!("round {round} of {commit}, ");
    for line in [of(1, &first), of(2, &second), of(3, &first)] {
        assert!(text.contains(&line), "{line}: {text}");
    }
    let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
    assert_eq!(calls.matches("no-fail-fast").count(), 4, "{text}");
}
