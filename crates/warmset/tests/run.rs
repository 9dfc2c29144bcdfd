//! `warmset run`, end to end: for a second or two each, one at a time; reported as ignored, with
//! the reason, where there are no rights.

use assert_cmd::Command;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use testing::{NotRun, Outcome, Report, schemas};

#[allow(dead_code, reason = "a part of it is for runs that are killed")]
#[path = "../../execute/tests/support/guard.rs"]
mod guard;

#[path = "run/ended.rs"]
mod ended;

#[path = "run/profiled.rs"]
mod profiled;

use ended::{
    a_killed_run_leaves_nobody_behind_and_a_trace_that_can_be_read,
    a_run_that_is_ended_at_any_moment_of_its_start_leaves_nothing, a_run_without_its_watchdog_ends,
    an_interrupted_run_shows_what_there_is, begun,
    what_is_left_where_the_watchdog_was_killed_too_is_taken_away_by_the_next_run,
};

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

use profiled::{what_cannot_be_counted_is_refused, working_sets_are_found_while_jobs_run_for_real};

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
    schemas::hold("preflight", &found);
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
                    $name().outcome()
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
        working_sets_are_found_while_jobs_run_for_real,
        what_cannot_be_counted_is_refused,
        programs_run_with_the_rights_that_are_asked_for,
        a_run_that_is_ended_at_any_moment_of_its_start_leaves_nothing,
        what_is_left_where_the_watchdog_was_killed_too_is_taken_away_by_the_next_run,
        without_threads_memory_or_stack_one_sentence_is_said,
    ))
}

/// By default without a capability; as another user, who is refused where there is none of that
/// name; or as they were. Only root becomes another user.
fn programs_run_with_the_rights_that_are_asked_for() -> Outcome {
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
    if own != 0 {
        return Err(NotRun::because(format!(
            "user {own} cannot have programs run as another user: run the tests as root"
        )));
    }
    assert_eq!(told("", &["--user", "nobody"]), (Some(65_534), Some(0)));
    assert_eq!(told(", user = \"nobody\"", &[]), (Some(65_534), Some(0)));
    assert!(told(", rights = \"keep\"", &[]).1.unwrap() > 0);
    Ok(())
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
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("may disturb"))
        .collect();
    // Alone, or among others that somebody else has started.
    let number = other.id().to_string();
    let named = |line: &str| {
        let runs = line.split("another Warmset run (process ").nth(1);
        let runs = runs.or(line.split("other Warmset runs (processes ").nth(1));
        let numbers = runs.and_then(|rest| rest.split(')').next());
        numbers.is_some_and(|numbers| numbers.split(", ").any(|one| one == number))
    };
    assert!(lines.len() == 1 && named(lines[0]), "{said}");
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
    // A second has so many releases. What stands still at the end, or has jobs to catch up with, as
    // when somebody else runs in real time, has fewer.
    const DUE: [u64; 2] = [50, 25];
    let run = || {
        let ran = warmset(dir.path(), TASKS, &args);
        let document: serde_json::Value = serde_json::from_slice(&ran.get_output().stdout).unwrap();
        schemas::hold("run", &document);
        assert_eq!(document["clean"], true, "{document:#}");
        assert_eq!(document["lost_events"], 0);
        let tasks = document["tasks"].as_array().unwrap();
        let released = tasks.iter().map(|t| t["released"].as_u64().unwrap());
        let jobs: Vec<u64> = released.collect();
        assert_eq!(jobs.len(), DUE.len());
        assert!(
            jobs.iter()
                .zip(DUE)
                .all(|(jobs, due)| (1..=due).contains(jobs)),
            "{jobs:?}"
        );
        (jobs == DUE).then_some(document).ok_or(jobs)
    };
    let document = run().or_else(|_| run()).or_else(|_| run()).unwrap();
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
    schemas::hold("run", &document);
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

/// A limit on this command, as a user who has the right to real-time priorities and no other.
fn limited(dir: &Path, limit: &str, args: &[&str]) -> std::process::Output {
    std::process::Command::new("setpriv")
        .current_dir(dir)
        .args(["--reuid=54321", "--regid=54321", "--clear-groups"])
        .args(["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"])
        .args(["prlimit", limit])
        .arg(assert_cmd::cargo::cargo_bin("warmset"))
        .args(args)
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
        let ran = limited(dir.path(), &limit, &["run", "tasks.toml", "--for", "50ms"]);
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
    // Less memory than the program's own text takes is the loader's affair.
    let limits = (16..=128u64).step_by(2);
    let limits = limits.map(|mib| format!("--as={}", mib << 20));
    let starts = |limit: &String| {
        let told = limited(dir.path(), limit, &["--version"]);
        told.status.code() == Some(0)
    };
    let Some(least) = limits.clone().find(starts) else {
        panic!("the command does not start in 128 MiB");
    };
    assert!(tried(least));
    assert!(refused > 4, "{refused}");
}
