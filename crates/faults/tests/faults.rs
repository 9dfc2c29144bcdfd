//! A part of the trials of `make faults`, every kind of fault once or twice; and that the harness
//! finds what is left over, by commands that leave it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use testing::{NotRun, Outcome};

const FAULTS: &str = env!("CARGO_BIN_EXE_faults");

/// Trials, and a word of what their end must look like: that the fault has reached the command.
const SIGNALS: &[&str] = &[
    "run:g-edf:plain: signal 2 engine 400000us",
    "run:p-edf:plain: signal 15 engine 1000us",
    "run:edf-fm:programs: signal 9 engine 450000us",
    "run:c-edf:programs: signal 9 group 450000us",
    "run:g-fp:written: signal 11 engine 400000us",
    "run:p-rm:plain: signal 9 watchdog +100000us",
    "run:g-edf:effort: signal 15 other0 +50000us",
    "run:nps-f:joined: signal 9 outsider 500000us",
    "run:edf-wm:triggers: signal 3 engine 450000us",
    "run:g-edf:programs: signal 19 engine 400000us and signal 18 engine 450000us",
    "run:g-edf:plain: signal 19 watchdog +50000us",
    "study: signal 9 engine 50000us",
    "measure: signal 2 engine 100000us",
];

const CALLS: &[&str] = &[
    "run:g-edf:plain: call memory 40 ENOMEM",
    "run:g-edf:programs: call descriptor 200 EMFILE",
    "run:pd2:plain: call thread 3 EAGAIN",
    "run:g-edf:plain: call write 2 ENOSPC onwards",
    "run:ca-edf:plain: call priority 3 EPERM",
    "run:g-edf:plain: call affinity 4 EINVAL",
    "run:c-nps-f:plain: call read 30 EIO",
    "run:p-edf:programs: call trace 1 EPERM",
    "check: call write 1 EDQUOT",
    "color-serve: call connect 2 ENOBUFS",
    // Programs from outside are let go of though nothing can be looked up any more.
    "run:nps-f:joined: call descriptor 700 EMFILE onwards",
    // The heir is not killed at the end of the run, and must not take that for its beginning.
    "run:g-edf:plain: call kill 2 EPERM",
    "measure: call thread 2 EAGAIN",
    "measure: call thread 3 ENOMEM",
    "study: call name 2 ENOSPC",
];

const LIMITS: &[&str] = &[
    "run:g-edf:plain: limit descriptors 12",
    "run:g-edf:plain: limit address-space 60000000",
    "run:g-edf:plain: disk 4096",
    "run:g-edf:plain: device",
];

fn main() -> ExitCode {
    testing::run_alone(vec![
        testing::trial("signals_leave_nothing", || nothing_is_left(SIGNALS)),
        testing::trial("failing_calls_leave_nothing", || nothing_is_left(CALLS)),
        testing::trial("limits_and_full_disks_leave_nothing", || {
            nothing_is_left(LIMITS)
        }),
        testing::trial("a_run_to_which_nothing_is_done_is_found_sound", sound),
        testing::trial("a_call_fails_where_it_was_asked_to", a_call_fails),
        testing::trial("what_a_command_leaves_is_found", what_is_left_is_found),
        testing::trial("what_a_command_owes_is_asked_for", what_is_owed),
        testing::trial("trials_go_on_where_they_were", trials_go_on),
    ])
}

/// The command that is tried: the tests of the whole workspace build it.
fn warmset() -> PathBuf {
    Path::new(FAULTS).with_file_name("warmset")
}

/// Can trials be carried out here?
fn permitted() -> Outcome {
    let warmset = warmset();
    assert!(
        warmset.is_file(),
        "build it first: cargo build --locked -p warmset"
    );
    let dir = tempfile::tempdir().unwrap();
    let tasks = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n";
    std::fs::write(dir.path().join("tasks.toml"), tasks).unwrap();
    let mut looks = Command::new(&warmset);
    looks
        .args(["run", "tasks.toml", "--preflight"])
        .current_dir(dir.path());
    let looked = looks.output().unwrap();
    if !looked.status.success() {
        return Err(NotRun::because(String::from_utf8_lossy(&looked.stdout)));
    }
    let tried = faults(dir.path(), &warmset, &["run:g-edf:plain: none"]);
    match tried.status.code() {
        Some(2) => Err(NotRun::because(String::from_utf8_lossy(&tried.stderr))),
        _ => Ok(()),
    }
}

/// Carries trials out.
fn faults(keep: &Path, warmset: &Path, trials: &[&str]) -> Output {
    let mut command = Command::new(FAULTS);
    command
        .arg("one")
        .args(trials)
        .arg("--keep")
        .arg(keep)
        .arg("--warmset")
        .arg(warmset);
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn nothing_is_left(trials: &[&str]) -> Outcome {
    permitted()?;
    let dir = tempfile::tempdir().unwrap();
    let tried = faults(dir.path(), &warmset(), trials);
    assert!(tried.status.success(), "{}", text(&tried));
    Ok(())
}

fn sound() -> Outcome {
    permitted()?;
    let dir = tempfile::tempdir().unwrap();
    let all = [
        "run:g-edf:all: none",
        "run:p-rm:deaf: none",
        "run:p-edf:joined: none",
        "check: none",
        "study: none",
    ];
    let tried = faults(dir.path(), &warmset(), &all);
    assert!(tried.status.success(), "{}", text(&tried));
    let said = text(&tried);
    assert_eq!(
        said.matches("\tran, over before it").count(),
        all.len(),
        "{said}"
    );
    Ok(())
}

/// The words of the command show that the very call has failed, and that those before have not.
fn a_call_fails() -> Outcome {
    permitted()?;
    let dir = tempfile::tempdir().unwrap();
    let tried = faults(dir.path(), &warmset(), &["check: call name 1 ENOSPC"]);
    let said = text(&tried);
    assert!(
        said.contains("refused") && said.contains("no space left on device"),
        "{said}"
    );
    let none = faults(dir.path(), &warmset(), &["check: call name 1000 ENOSPC"]);
    assert!(
        text(&none).contains("\tran, over before it"),
        "{}",
        text(&none)
    );
    Ok(())
}

/// A command that does this, in the place of the one that is tried.
fn pretend(dir: &Path, script: &str) -> PathBuf {
    let path = dir.join("warmset");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn finds(script: &str, trial: &str, wrong: &str) {
    let dir = tempfile::tempdir().unwrap();
    let command = pretend(dir.path(), script);
    let tried = faults(&dir.path().join("kept"), &command, &[trial]);
    let said = text(&tried);
    assert_eq!(tried.status.code(), Some(1), "{script}: {said}");
    assert!(
        said.contains(&format!("    {wrong}")),
        "{script}: {wrong}: {said}"
    );
    assert!(
        said.contains("1 trials, 1 with something wrong"),
        "{script}: {said}"
    );
}

/// A setting that is put back, also by a test that fails.
struct Setting {
    path: &'static str,
    before: String,
}

impl Setting {
    fn keep(path: &'static str) -> Self {
        let before = std::fs::read_to_string(path).unwrap();
        Setting { path, before }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        std::fs::write(self.path, &self.before).unwrap();
    }
}

fn what_is_left_is_found() -> Outcome {
    permitted()?;
    let left = "process left: sleep";
    finds("sleep 1000 & exit 0", "study: none", left);
    finds("env -i setsid -f sleep 1000", "study: none", left);
    finds("touch core", "study: none", "file left: /tmp/work/core (f)");
    finds(
        "touch /dev/shm/x /run/y",
        "study: none",
        "file left: /run/y (f)",
    );
    finds(
        "mkfifo out/p",
        "study: none",
        "file left: /tmp/work/out/p (p)",
    );
    finds(
        "touch out/a.12.part",
        "study: none",
        "file left: /tmp/work/out/a.12.part (f)",
    );
    finds("rm -r out", "study: none", "file gone: /tmp/work/out");
    // A signal is taken when the process is next on a processor, which a busy machine puts off.
    let bystander = "p=$(cat /proc/$PPID/task/$PPID/children); p=${p%% *}; kill -9 $p\n\
                     while grep -q '^State:.[RSD]' /proc/$p/status 2>/dev/null; do sleep 0.01; done";
    finds(bystander, "study: none", "bystander changed");
    let setting = Setting::keep("/proc/sys/kernel/perf_event_paranoid");
    let path = setting.path;
    let changes = format!("echo $(($(cat {path}) + 1)) > {path}");
    finds(&changes, "study: none", &format!("setting left: {path}"));
    drop(setting);
    let stopped = bystander.replace("-9", "-STOP");
    finds(&stopped, "study: none", "bystander changed");
    Ok(())
}

fn what_is_owed() -> Outcome {
    permitted()?;
    let hit = "study: signal 1 engine 100000us";
    finds(
        "echo 'thread main panicked at here' >&2; exit 2",
        "study: none",
        "panic: ",
    );
    finds("trap 'exit 2' HUP; sleep 1", hit, "no sentence: ");
    finds(
        "trap 'exit 77' HUP; sleep 1",
        hit,
        "status: no status that is documented: 77",
    );
    finds(
        "trap 'kill -6 $$' HUP; sleep 1",
        hit,
        "status: it died of signal 6",
    );
    finds("echo no trace > out/run.wtrace", "study: none", "trace: ");
    finds(
        "echo 'warmset: no' >&2; exit 2",
        "study: none",
        "status: nothing was done to it",
    );
    Ok(())
}

/// What was tried is not tried again, and what is tried is told by its number.
fn trials_go_on() -> Outcome {
    permitted()?;
    let dir = tempfile::tempdir().unwrap();
    let command = pretend(dir.path(), "exit 0");
    let random = |count: &str| {
        let mut command_line = Command::new(FAULTS);
        command_line.args(["random", "--seed", "3", "--count", count, "--keep"]);
        let output = command_line
            .arg(dir.path().join("kept"))
            .arg("--warmset")
            .arg(&command);
        text(&output.output().unwrap())
    };
    assert!(random("2").contains("2 trials, "));
    let said = random("4");
    assert!(
        said.contains("4 trials, ") && !said.contains("3/1\t") && said.contains("3/2\t"),
        "{said}"
    );
    let shown = Command::new(FAULTS)
        .args(["show", "--seed", "3", "--number", "2"])
        .output()
        .unwrap();
    let line = text(&shown);
    let (_, trial) = line.trim().split_once('\t').unwrap();
    assert!(said.contains(trial), "{trial}: {said}");
    Ok(())
}
