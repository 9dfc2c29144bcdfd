//! `warmset run`, end to end: for a second or two each, one at a time; reported as ignored, with
//! the reason, where there are no rights.

use assert_cmd::Command;
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};
use testing::{NotRun, Outcome};

#[allow(dead_code, reason = "a part of it is for runs that are killed")]
#[path = "../../execute/tests/support/guard.rs"]
mod guard;

use guard::Guard;

const TASKS: &str = r#"
[[task]]
name = "camera"
wcet = "4ms"
period = "20ms"
[[task]]
name = "filter"
wcet = "6ms"
period = "40ms"
wss = "64KiB"
workload = { kind = "walk", write_ratio = 0.25, pattern = "chase" }
"#;

fn warmset(dir: &Path, tasks: &str, args: &[&str]) -> assert_cmd::assert::Assert {
    std::fs::write(dir.join("tasks.toml"), tasks).unwrap();
    Command::cargo_bin("warmset")
        .unwrap()
        .current_dir(dir)
        .args(args)
        .assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Can anything be run for real here?
fn permitted() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let looked = warmset(
        dir.path(),
        TASKS,
        &["run", "tasks.toml", "--preflight", "--format", "json"],
    );
    let found: serde_json::Value = serde_json::from_slice(&looked.get_output().stdout).unwrap();
    let refused = found["preflight"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["level"] == "refuse");
    refused.map_or(Ok(()), |finding| Err(NotRun::because(&finding["seen"])))
}

fn main() -> ExitCode {
    macro_rules! live {
        ($($name:ident),+ $(,)?) => {
            vec![
                testing::trial(
                    "what_cannot_be_run_is_refused_before_anything_begins",
                    what_cannot_be_run_is_refused_before_anything_begins,
                ),
                $(testing::trial(stringify!($name), || -> Outcome {
                    permitted()?;
                    $name();
                    Ok(())
                })),+
            ]
        };
    }
    testing::run_alone(live!(
        a_set_runs_for_real_and_its_trace_is_checked,
        an_interrupted_run_shows_what_there_is,
        a_killed_run_leaves_nobody_behind_and_a_trace_that_can_be_read,
        a_run_without_its_watchdog_ends,
        a_preflight_knows_another_run_by_its_process,
        policies_triggers_and_best_effort_work_are_told_of,
        programs_run_with_the_rights_that_are_asked_for,
        a_run_that_is_ended_at_any_moment_of_its_start_leaves_nothing,
        what_is_left_where_the_watchdog_was_killed_too_is_taken_away_by_the_next_run,
        without_threads_memory_or_stack_one_sentence_is_said,
    ))
}

/// By default without a capability; as another user, who is refused where there is none of that
/// name; or as they were.
fn programs_run_with_the_rights_that_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = |more: &str| {
        format!(
            "[[task]]\nname = \"teller\"\nwcet = \"5ms\"\nperiod = \"20ms\"\nworkload = {{ exec = [\"sh\", \"-c\", \
             \"id -u; grep CapEff /proc/self/status; sleep 60\"]{more} }}\n"
        )
    };
    let told = |more: &str, args: &[&str]| {
        let run = [
            "run",
            "tasks.toml",
            "--for",
            "500ms",
            "--programs-to",
            "logs",
        ];
        warmset(dir.path(), &tasks(more), &[&run[..], args].concat());
        let log = std::fs::read_to_string(dir.path().join("logs/teller.log")).unwrap();
        let capabilities = log
            .lines()
            .find_map(|l| l.strip_prefix("CapEff:"))
            .unwrap_or_default();
        let user = log.lines().find_map(|l| l.parse::<u32>().ok());
        (user, u64::from_str_radix(capabilities.trim(), 16).ok())
    };
    // SAFETY: takes no argument.
    let own = unsafe { libc::getuid() };
    assert_eq!(told("", &[]), (Some(own), Some(0)));
    assert_eq!(
        told(", rights = \"drop\"", &["--keep-rights"]),
        (Some(own), Some(0))
    );
    let refused = warmset(
        dir.path(),
        &tasks(""),
        &["run", "tasks.toml", "--user", "nobody-of-that-name"],
    );
    let refused = refused.code(2);
    let said = text(&refused.get_output().stderr);
    assert!(
        said.contains("--user") && said.contains("there is no user `nobody-of-that-name`"),
        "{said}"
    );
    if own == 0 {
        assert_eq!(told("", &["--user", "nobody"]), (Some(65_534), Some(0)));
        assert_eq!(told(", user = \"nobody\"", &[]), (Some(65_534), Some(0)));
        assert!(told(", rights = \"keep\"", &[]).1.unwrap() > 0);
    }
}

/// Another run is named by its process: in the preflight, and in the one line before a run.
fn a_preflight_knows_another_run_by_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = begun(dir.path());
    let looked = warmset(
        dir.path(),
        TASKS,
        &["run", "tasks.toml", "--preflight", "--format", "json"],
    );
    let found: serde_json::Value = serde_json::from_slice(&looked.get_output().stdout).unwrap();
    let ran = warmset(dir.path(), TASKS, &["run", "tasks.toml", "--for", "100ms"]);
    let said = text(&ran.get_output().stderr);
    // SAFETY: asks the process that was started above to end.
    unsafe { libc::kill(other.id() as i32, libc::SIGINT) };
    other.wait().unwrap();
    let named = format!("process {} is another Warmset run", other.id());
    let findings = found["preflight"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|f| f["level"] == "warn" && f["seen"].as_str().unwrap().starts_with(&named)),
        "{found}"
    );
    let named = format!("another Warmset run (process {})", other.id());
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("may disturb"))
        .collect();
    assert!(lines.len() == 1 && lines[0].contains(&named), "{said}");
}

/// A run of a minute, begun, with its process.
fn begun(dir: &Path) -> Child {
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

fn a_set_runs_for_real_and_its_trace_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "tasks.toml",
        "--policy",
        "p-edf",
        "--for",
        "1s",
        "--trace",
        "run.wtrace",
        "--tolerance",
        "500ms",
        "--format",
        "json",
    ];
    let ran = warmset(dir.path(), TASKS, &args);
    let document: serde_json::Value = serde_json::from_slice(&ran.get_output().stdout).unwrap();
    assert_eq!(document["clean"], true, "{document:#}");
    assert_eq!(document["lost_events"], 0);
    let jobs: Vec<u64> = document["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["released"].as_u64().unwrap())
        .collect();
    assert_eq!(jobs, [50, 25]);
    assert!(document["workloads"][1]["units_per_job"].as_u64().unwrap() > 0);
    let check = ["trace", "check", "run.wtrace", "--tolerance", "500ms"];
    let checked = warmset(dir.path(), TASKS, &check).success();
    let told = text(&checked.get_output().stdout);
    assert!(told.contains("real trace of 2 tasks under p-edf"), "{told}");
}

fn what_cannot_be_run_is_refused_before_anything_begins() -> Outcome {
    let rights = permitted();
    let mut unseen = 0;
    let dir = tempfile::tempdir().unwrap();
    let heavy = "[[task]]\nname = \"a\"\nwcet = \"99ms\"\nperiod = \"100ms\"\n";
    let program = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"100ms\"\nworkload = { exec = [\"/no/such/program\"] }\n";
    let triggered =
        "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"100ms\"\ntrigger = { fd = 987 }\n";
    let quantum = ["run", "tasks.toml", "--policy", "pd2", "--quantum", "50us"];
    let in_turn = ["run", "tasks.toml", "--switch-every", "1s", "--policy"];
    let heavy_later = [&in_turn[..], &["g-edf,p-edf", "--execution", "1"]].concat();
    let short_later = [&in_turn[..], &["g-edf,pd2:quantum=50us"]].concat();
    let enforced = [
        "run",
        "tasks.toml",
        "--enforcement=quantum",
        "--quantum=50us",
    ];
    for (tasks, args, cause) in [
        (
            heavy,
            &["run", "tasks.toml", "--policy", "p-edf", "--execution", "1"][..],
            "99.0 % of 1 processor",
        ),
        (
            program,
            &["run", "tasks.toml"],
            "task a: cannot start `/no/such/program`",
        ),
        (
            TASKS,
            &["run", "tasks.toml", "--cpus", "4000"],
            "--cpus: not all of the processors `4000`",
        ),
        (
            TASKS,
            &["run", "tasks.toml", "--execution", "much"],
            "--execution: `much` is not a part",
        ),
        (TASKS, &quantum, "a quantum lasts 50us"),
        (heavy, &heavy_later[..], "99.0 % of 1 processor"),
        (
            TASKS,
            &short_later[..],
            "a quantum lasts 50us under `pd2:quantum=50us`",
        ),
        (TASKS, &enforced, "the quantum of enforcement lasts 50us"),
        (
            TASKS,
            &["run", "tasks.toml", "--policy", "g-edf,p-edf"],
            "--policy: several policies are given",
        ),
        (
            TASKS,
            &["run", "tasks.toml", "--switch-every", "1s"],
            "--switch-every: there is only one policy",
        ),
        (
            TASKS,
            &["run", "tasks.toml", "--release-at", "2020-01-01T00:00:00Z"],
            "--release-at: the moment of release, 2020-01-01T00:00:00Z, is past",
        ),
        (
            triggered,
            &["run", "tasks.toml"],
            "task a: `trigger`: descriptor 987 was not passed to this program",
        ),
        (
            triggered,
            &["run", "tasks.toml", "--policy", "pd2"],
            "task a: `pd2` takes releases at multiples of the quantum alone",
        ),
    ] {
        let refused = warmset(dir.path(), tasks, args).code(2);
        let told = text(&refused.get_output().stderr);
        if rights.is_err() && told.contains("real-time priority") {
            unseen += 1;
            continue;
        }
        assert!(told.contains(cause), "{cause}: {told}");
    }
    match (rights, unseen) {
        (Err(why), 1..) => Err(NotRun::because(format!(
            "{unseen} refusals stand behind the one that there are no rights: {why}"
        ))),
        _ => Ok(()),
    }
}

fn an_interrupted_run_shows_what_there_is() {
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

fn a_killed_run_leaves_nobody_behind_and_a_trace_that_can_be_read() {
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

fn a_run_without_its_watchdog_ends() {
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

/// Policies that take turns, a moment of release, a task that a FIFO releases, and work that fills
/// the rest.
fn policies_triggers_and_best_effort_work_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    let tasks = format!(
        "{TASKS}[[task]]\nname = \"radio\"\nwcet = \"1ms\"\nperiod = \"20ms\"\ntrigger = {{ fifo = \"{}\" }}\n\
         [[best_effort]]\nname = \"log\"\nwss = \"64KiB\"\nworkload = {{ kind = \"walk\" }}\n",
        fifo.display()
    );
    let there = fifo.clone();
    let writer = std::thread::spawn(move || {
        while !there.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::write(there, "12345").unwrap();
    });
    let args = [
        "run",
        "tasks.toml",
        "--policy",
        "g-edf:ties=index,p-edf",
        "--switch-every",
        "500ms",
        "--for",
        "2s",
        "--release-at",
        "+4s",
        "--tolerance",
        "500ms",
        "--format",
        "json",
    ];
    let ran = warmset(dir.path(), &tasks, &args);
    writer.join().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&ran.get_output().stdout).unwrap();
    assert_eq!(document["clean"], true, "{document:#}");
    assert_eq!(document["policy"], "g-edf:ties=index,p-edf");
    let trigger = &document["triggers"][0];
    assert_eq!(
        (&trigger["task"], &trigger["events"]),
        (&"radio".into(), &5.into()),
        "{trigger}"
    );
    let work = &document["best_effort"][0];
    assert_eq!(work["name"], "log");
    let (time, units) = (
        work["executed_ns"].as_u64().unwrap(),
        work["units"].as_u64().unwrap(),
    );
    assert!(time > 0 && units > 0, "{work}");
    assert!(
        document["released_at"].as_str().unwrap().ends_with('Z'),
        "{document:#}"
    );
    assert!(!fifo.exists());
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

fn a_run_that_is_ended_at_any_moment_of_its_start_leaves_nothing() {
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

fn what_is_left_where_the_watchdog_was_killed_too_is_taken_away_by_the_next_run() {
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

/// A limit on this command, as a user who has the right to real-time priorities and no other.
fn limited(dir: &Path, limit: &str) -> std::process::Output {
    std::process::Command::new("setpriv")
        .current_dir(dir)
        .args(["--reuid=54321", "--regid=54321", "--clear-groups"])
        .args(["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"])
        .args(["prlimit", limit])
        .arg(assert_cmd::cargo::cargo_bin("warmset"))
        .args(["run", "tasks.toml", "--for", "50ms"])
        .output()
        .unwrap()
}

/// Whatever a run lacks, it works or says what it lacks, and never panics or aborts.
fn without_threads_memory_or_stack_one_sentence_is_said() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(dir.path().join("tasks.toml"), TASKS).unwrap();
    let mut refused = 0;
    let mut tried = |limit: String| {
        let ran = limited(dir.path(), &limit);
        let said = text(&ran.stderr);
        assert!(matches!(ran.status.code(), Some(0..=2)), "{limit}: {ran:?}");
        assert!(!said.contains("panicked"), "{limit}: {said}");
        if ran.status.code() == Some(2) {
            let last = said.lines().last().unwrap_or_default();
            assert!(last.starts_with("warmset: "), "{limit}: {said}");
            refused += 1;
        }
        ran.status.code() == Some(2)
    };
    // One process is the command itself; each thread more is missing somewhere else.
    for count in 1..=12 {
        tried(format!("--nproc={count}"));
    }
    assert!(tried("--stack=65536:65536".to_owned()));
    assert!(
        !tried("--stack=65536:8388608".to_owned()),
        "it may be raised"
    );
    assert!(tried("--as=33554432".to_owned()));
    assert!(refused > 4, "{refused}");
}
