//! Runs that are ended before their time: interrupted, killed, without their watchdog, at any
//! moment of their start.

use super::guard::Guard;
use super::{TASKS, text, warmset};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A run of a minute, begun, with its process.
pub fn begun(dir: &Path) -> Child {
    std::fs::write(dir.join("tasks.toml"), TASKS).unwrap();
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("warmset"))
        .current_dir(dir)
        .args([
            "run",
            "tasks.toml",
            "--for",
            "60s",
            "--trace",
            "run.wtrace",
            "--tolerance",
            "10s",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun when its first second is in the trace.
    let until = Instant::now() + Duration::from_secs(120);
    let size = || std::fs::metadata(dir.join("run.wtrace")).map_or(0, |m| m.len());
    while size() < 20_000 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// The child processes of a run: its watchdog.
fn children(child: &Child) -> Vec<i32> {
    let pid = child.id();
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap()
        .split_whitespace()
        .map(|p| p.parse().unwrap())
        .collect()
}

/// The child of this name.
fn named(child: &Child, name: &str) -> i32 {
    let is_it = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let found = children(child).into_iter().find(is_it);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

fn send(pid: i32, signal: &str) {
    let done = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(done.unwrap().success());
}

/// The trace can be read as far as it goes.
fn is_readable(dir: &Path) -> String {
    let stats = warmset(
        dir,
        TASKS,
        &["trace", "stats", "run.wtrace", "--format", "json"],
    )
    .success();
    text(&stats.get_output().stdout)
}

pub fn an_interrupted_run_shows_what_there_is() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let guard = Guard::new();
        let dir = tempfile::tempdir().unwrap();
        let child = begun(dir.path());
        let dogs = children(&child);
        send(child.id() as i32, signal);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(status));
        assert!(
            text(&ended.stdout).contains("for real: interrupted after"),
            "{ended:?}"
        );
        assert!(
            text(&ended.stderr).contains("the run was interrupted"),
            "{ended:?}"
        );
        is_readable(dir.path());
        // The shell has answered throughout, settings are as before, and nobody is left.
        guard.all_is_quiet();
        for dog in dogs {
            assert!(!Path::new(&format!("/proc/{dog}")).exists());
        }
    }
}

pub fn a_killed_run_leaves_nobody_behind_and_a_trace_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = begun(dir.path());
    let both = ["warmset-dog", "warmset-heir"].map(|name| named(&child, name));
    send(child.id() as i32, "-KILL");
    child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    for process in both {
        let state = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // Whoever inherits it may take its time to bury it.
        let has_ended = || state().is_empty() || state().contains(") Z ");
        while !has_ended() {
            assert!(Instant::now() < until, "it lives on: {}", state());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert!(is_readable(dir.path()).contains("camera"));
}

pub fn a_run_without_its_watchdog_ends() {
    let dir = tempfile::tempdir().unwrap();
    let child = begun(dir.path());
    send(named(&child, "warmset-dog"), "-KILL");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        text(&ended.stderr).contains("the watchdog was killed or stopped"),
        "{ended:?}"
    );
    is_readable(dir.path());
}

/// Tasks that a FIFO and a socket of this directory release.
const TRIGGERED: &str = r#"
[[task]]
name = "by-fifo"
wcet = "1ms"
period = "20ms"
trigger = { fifo = "fifo" }
[[task]]
name = "by-socket"
wcet = "1ms"
period = "20ms"
trigger = { socket = "socket" }
"#;

/// Where kernels keep the buffers of recordings.
const INSTANCES: &str = "/sys/kernel/tracing/instances";

fn triggered(dir: &Path, length: &str) -> std::process::Command {
    std::fs::write(dir.join("tasks.toml"), TRIGGERED).unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("warmset"));
    command
        .current_dir(dir)
        .args(["run", "tasks.toml", "--for", length])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if Path::new(INSTANCES).exists() {
        command.arg("--witness");
    }
    command
}

/// What a run of this process has left: in its directory, in the records, and of the kernel's
/// buffers.
fn left(dir: &Path, process: u32) -> Vec<String> {
    let of_process = |name: &String| name.contains(&format!("-{process}-"));
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned())
    };
    let elsewhere = ["/run/warmset", INSTANCES].map(Path::new);
    let mut found: Vec<String> = elsewhere
        .iter()
        .flat_map(|dir| names(dir).filter(of_process))
        .collect();
    found.extend(names(dir).filter(|name| name != "tasks.toml"));
    found
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// It runs, whatever a busy machine makes of its deadlines.
fn runs(dir: &Path) {
    let ran = triggered(dir, "100ms").output().unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 1)), "{ran:?}");
    let entries = std::fs::read_dir(dir).unwrap();
    assert_eq!(entries.count(), 1, "all but the tasks is taken away");
}

pub fn a_run_that_is_ended_at_any_moment_of_its_start_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // How long a start takes here and now.
    let begun = Instant::now();
    let mut child = triggered(dir.path(), "60s").spawn().unwrap();
    wait_until("nothing is made", || dir.path().join("socket").exists());
    let start = begun.elapsed() + Duration::from_millis(100);
    send(child.id() as i32, "-KILL");
    child.wait().unwrap();
    wait_until("a FIFO or a socket is left", || {
        left(dir.path(), child.id()).is_empty()
    });
    const MOMENTS: u32 = 12;
    for signal in ["-KILL", "-TERM"] {
        for moment in 0..=MOMENTS {
            let mut child = triggered(dir.path(), "60s").spawn().unwrap();
            std::thread::sleep(Duration::from_millis(1) + start * moment / MOMENTS);
            send(child.id() as i32, signal);
            let ended = child.wait().unwrap();
            assert!(!ended.success());
            let at = format!("{signal} at {moment}/{MOMENTS} of {start:?}");
            wait_until(&at, || left(dir.path(), child.id()).is_empty());
        }
        // As soon as they are there, and before much else is.
        for thing in ["fifo", "socket"] {
            let mut child = triggered(dir.path(), "60s").spawn().unwrap();
            wait_until("nothing is made", || dir.path().join(thing).exists());
            send(child.id() as i32, signal);
            child.wait().unwrap();
            wait_until(&format!("{signal} at {thing}"), || {
                left(dir.path(), child.id()).is_empty()
            });
        }
        runs(dir.path());
    }
}

pub fn what_is_left_where_the_watchdog_was_killed_too_is_taken_away_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = triggered(dir.path(), "60s").spawn().unwrap();
    wait_until("nothing is made", || dir.path().join("socket").exists());
    // Nobody has time to notice that the other one has gone.
    let signal = |process: i32, signal| {
        // SAFETY: a process that was started here, or its child; nobody has waited for it.
        unsafe { libc::kill(process, signal) };
    };
    signal(child.id() as i32, libc::SIGSTOP);
    for process in children(&child) {
        signal(process, libc::SIGKILL);
    }
    signal(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    assert!(dir.path().join("socket").exists());
    runs(dir.path());
    assert_eq!(left(dir.path(), child.id()), [""; 0]);
}
