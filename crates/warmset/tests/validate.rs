//! `warmset validate` from outside: what was predicted stands beside what was seen, what is kept of
//! an interrupted validation, and refusals.
//!
//! Reported as ignored, with the reason, where tasks cannot run in real time. Whether this machine
//! keeps the bounds is what the command finds out, and no test's business.

use model::{Profile, Provenance};
use std::path::Path;
use std::process::ExitCode;
use testing::command::Called;
use testing::{NotRun, Outcome, schemas, warmset};

fn main() -> ExitCode {
    // Commands see it as well. Where it cannot be, the test that needs it says so.
    let _ = testing::tracefs::mounted();
    testing::run_alone(vec![
        testing::trial(
            "sets_are_run_and_compared_task_by_task",
            sets_are_run_and_compared_task_by_task,
        ),
        testing::trial(
            "what_was_seen_is_kept_and_gone_on_with",
            what_was_seen_is_kept_and_gone_on_with,
        ),
        testing::trial(
            "the_kernel_is_heard_on_every_job_beyond_its_bound",
            the_kernel_is_heard_on_every_job_beyond_its_bound,
        ),
        testing::trial(
            "plans_are_run_with_wcets_as_long_as_they_bear",
            plans_are_run_with_wcets_as_long_as_they_bear,
        ),
        testing::trial(
            "a_plan_in_a_file_is_run_as_it_is",
            a_plan_in_a_file_is_run_as_it_is,
        ),
        testing::trial("wrong_inputs_are_refused", wrong_inputs_are_refused),
    ])
}

fn call(dir: &Path, arguments: &str) -> Called {
    Called::within(warmset!(), dir, arguments)
}

/// A directory with a profile of this machine; of delays that are as good as any.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut profile = Profile {
        platform: "this-machine".to_owned(),
        provenance: Provenance::default(),
        ..Profile::builtin("xeon-l7455").unwrap()
    };
    // A processor with two threads has one more way to resume.
    let more = profile.cpmd.clone().into_iter().filter_map(|mut curve| {
        let is_second = curve.resumption == model::Resumption::Migration(2);
        curve.resumption = model::Resumption::Migration(1);
        is_second.then_some(curve)
    });
    profile.cpmd.extend(more.collect::<Vec<_>>());
    let text = model::profilefile::to_toml(&profile);
    std::fs::write(dir.path().join("profile.toml"), text).unwrap();
    dir
}

/// Can anything be run for real here?
fn permitted(dir: &Path) -> Outcome {
    let task = "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\n";
    std::fs::write(dir.join("one.toml"), task).unwrap();
    let found = call(dir, "run one.toml --preflight --format json").json();
    let findings = found["preflight"].as_array().unwrap();
    let refused = findings.iter().find(|f| f["level"] == "refuse");
    refused.map_or(Ok(()), |finding| Err(NotRun::because(&finding["seen"])))
}

const SMALL: &str = "validate -o out --profile profile.toml --policy p-edf,edf-wm --for 300ms";

fn sets_are_run_and_compared_task_by_task() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    permitted(dir)?;
    let validated = call(dir, &format!("{SMALL} --sets 2 --format json"));
    assert!(matches!(validated.status, 0 | 1), "{}", validated.err);
    let found = validated.json();
    schemas::hold("validate", &found);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    let mut beyond = 0;
    for cell in cells {
        assert_eq!(cell["verdict"], "accepted", "{cell}");
        assert!(cell["not_run"].is_null(), "{cell}");
        assert!(cell["part"].as_f64().unwrap() < 1.0);
        for task in cell["tasks"].as_array().unwrap() {
            let number = |name: &str| task[name].as_u64().unwrap();
            assert!(number("jobs") > 0, "{cell}");
            // No job is done before it has executed what it was calibrated to, about.
            assert!(number("observed_ns") >= number("executed_ns"));
            assert!(2 * number("executed_ns") > number("wcet_ns"));
            // What the simulator does is within what analysis says.
            assert!(number("simulated_ns") <= number("bound_ns"), "{cell}");
            assert!(number("simulated_ns") >= number("wcet_ns"));
        }
        let unexcused = cell["beyond"].as_array().unwrap().iter().filter(|beyond| {
            let number = |name: &str| beyond[name].as_u64().unwrap();
            number("response_ns") - number("bound_ns") > number("stood_still_ns")
        });
        beyond += u64::from(unexcused.count() > 0);
    }
    let sum = |name: &str| {
        let of = |kind: &str| found[kind][name].as_u64().unwrap();
        of("accepted_hard") + of("accepted_soft")
    };
    assert_eq!(sum("sets"), 2);
    assert_eq!(sum("sets_beyond"), beyond);
    assert_eq!(validated.status, i32::from(beyond > 0));
    for file in [
        "validation.svg",
        "validation.json",
        "sets/000.toml",
        "sets/000.json",
    ] {
        assert!(dir.join("out").join(file).exists(), "{file}");
    }
    // A set of it is judged as it was.
    let again = "check out/sets/000.toml --profile profile.toml --hard --policy p-edf";
    assert_eq!(call(dir, again).status, 0);

    let refused = call(dir, &format!("{SMALL} --sets 2")).refusal();
    assert!(refused.contains("finished validation"), "{refused}");
    Ok(())
}

/// Whether there are such jobs is the machine's business; what is told of one has to add up.
fn the_kernel_is_heard_on_every_job_beyond_its_bound() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    permitted(dir)?;
    testing::tracefs::mounted().map_err(NotRun::because)?;
    let few = format!("{SMALL} --sets 4 --format json");
    let found = call(dir, &few).json();
    assert!(!found["not_modeled"].as_array().unwrap().is_empty());
    for cell in found["cells"].as_array().unwrap() {
        let kernel = &cell["kernel"];
        assert!(kernel["missing"].is_null(), "{kernel}");
        let number = |name: &str| kernel[name].as_u64().unwrap();
        // Ticks alone are more.
        assert!(number("timers") > 50, "{kernel}");
        assert!(number("late_timers") <= number("timers"));
        assert_eq!(number("latest_ns") >= 50_000, number("late_timers") > 0);
        for beyond in cell["beyond"].as_array().unwrap() {
            job_adds_up(beyond);
        }
    }
    let without = format!("{few} --no-kernel-record").replace("-o out", "-o without");
    let found = call(dir, &without).json();
    let missing = found["cells"][0]["kernel"]["missing"].as_str().unwrap();
    assert!(missing.contains("--no-kernel-record"), "{missing}");
    let named = found["not_modeled"].as_array().unwrap().last().unwrap();
    assert!(named.as_str().unwrap().contains("is not known"), "{named}");
    Ok(())
}

/// The record of a job beyond its bound.
fn job_adds_up(beyond: &serde_json::Value) {
    let number = |name: &str| beyond[name].as_u64().unwrap();
    let window = &beyond["kernel"];
    let had = window["had_ns"].as_u64().unwrap();
    assert!(had <= number("response_ns"), "{beyond}");
    assert!(
        window["interrupted_ns"].as_u64().unwrap() <= had,
        "{beyond}"
    );
    let processors = window["processors"].as_array().unwrap();
    assert!(!processors.is_empty(), "{beyond}");
    if window["whole"] != true {
        return;
    }
    // What each processor did is as long as the job took; the engine's clock and the kernel's differ
    // by little.
    for did in processors {
        let sum = |name: &str| -> u64 {
            let all = did[name].as_array().unwrap().iter();
            all.map(|one| one["total_ns"].as_u64().unwrap()).sum()
        };
        let all = sum("ran") + sum("interrupts");
        assert!(all.abs_diff(number("response_ns")) < 1_000_000, "{beyond}");
    }
    // A job is done when its thread has executed for its WCET.
    if beyond["unfinished"] != true {
        assert!(had + 1_000_000 > number("executed_ns"), "{beyond}");
    }
}

fn what_was_seen_is_kept_and_gone_on_with() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    permitted(dir)?;
    let mut command = warmset!();
    command
        .current_dir(dir)
        .args(SMALL.split_whitespace())
        .args(["--sets", "3"]);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let journal = dir.join("out/validation.part");
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(
        said.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let other = call(dir, &format!("{SMALL} --sets 3 --resume --seed 9")).refusal();
    assert!(other.contains("another seed"), "{other}");
    let rest = call(dir, &format!("{SMALL} --sets 3 --resume --format json"));
    assert!(matches!(rest.status, 0 | 1), "{}", rest.err);
    let found = rest.json();
    schemas::hold("validate", &found);
    assert_eq!(found["cells"].as_array().map(Vec::len), Some(3));
    assert!(found["interrupted"].is_null());
    assert!(!journal.exists());
    Ok(())
}

/// No job exceeded its bound, or the status says so.
fn status_tells_what_was_found(validated: &Called, found: &serde_json::Value) {
    let beyond = found["accepted_hard"]["sets_beyond"].as_u64().unwrap();
    assert_eq!(validated.status, i32::from(beyond > 0), "{}", validated.err);
}

fn plans_are_run_with_wcets_as_long_as_they_bear() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    permitted(dir)?;
    let validated = call(dir, &format!("{SMALL} --advised --sets 2 --format json"));
    let found = validated.json();
    schemas::hold("validate", &found);
    status_tells_what_was_found(&validated, &found);
    assert_eq!(found["source"], "advised");
    let cells = found["cells"].as_array().unwrap();
    let policies: Vec<_> = cells
        .iter()
        .map(|c| c["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies, ["p-edf", "edf-wm"]);
    for (number, cell) in cells.iter().enumerate() {
        assert!(cell["not_run"].is_null(), "{cell}");
        assert_eq!(cell["guarantee"], "hard");
        let jobs = cell["tasks"].as_array().unwrap().iter();
        assert!(jobs.map(|t| t["jobs"].as_u64().unwrap()).sum::<u64>() > 0);
        // What ran is kept, and `check` says yes to it; the plan bears no more than what is left.
        let plan = format!(
            "check out/sets/{number:03}.toml --plan out/sets/{number:03}.json \
             --profile profile.toml --statistic untrimmed --format json"
        );
        let verdict = &call(dir, &plan).json()["policies"][0];
        assert_eq!(verdict["schedulable"], true, "{verdict}");
        assert_eq!(verdict["policy"], cell["policy"]);
    }
    let text = call(dir, "check out/sets/000.toml --plan out/sets/000.json --profile profile.toml --statistic untrimmed --format json").json();
    let growth = text["policies"][0]["growth"]["thousandths"]
        .as_u64()
        .unwrap();
    // Another placement bears more only where this one was not the best: P-EDF's is searched.
    assert!((1_000..1_100).contains(&growth), "{growth}");
    let soft = call(
        dir,
        "validate -o soft --profile profile.toml --policy edf-fm --advised",
    );
    assert!(soft.refusal().contains("promises no deadline"));
    Ok(())
}

fn a_plan_in_a_file_is_run_as_it_is() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    permitted(dir)?;
    let tasks = "[[task]]\nname = \"camera\"\nwcet = \"2ms\"\nperiod = \"40ms\"\nwss = \"64KiB\"\n\
                 [[task]]\nname = \"control\"\nwcet = \"1ms\"\nperiod = \"20ms\"\nwss = \"64KiB\"\n";
    std::fs::write(dir.join("tasks.toml"), tasks).unwrap();
    let charged = "--profile profile.toml --statistic untrimmed";
    let advised = format!("advise tasks.toml {charged} --policy p-edf -o plan.json");
    call(dir, &advised).with_status(0);
    let run = "validate tasks.toml --plan plan.json --profile profile.toml --for 300ms";
    let validated = call(dir, &format!("{run} -o out --format json"));
    let found = validated.json();
    schemas::hold("validate", &found);
    status_tells_what_was_found(&validated, &found);
    assert_eq!(found["source"], "given");
    let [cell] = found["cells"].as_array().unwrap().as_slice() else {
        panic!("{found}")
    };
    assert_eq!(cell["policy"], "p-edf");
    let names: Vec<_> = cell["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["task"])
        .collect();
    assert_eq!(names, ["camera", "control"]);
    assert_eq!(
        std::fs::read(dir.join("out/sets/000.json")).unwrap(),
        std::fs::read(dir.join("plan.json")).unwrap()
    );
    // A plan that does not hold with the costs of this machine is not run.
    // All of a processor, and one task preempts the other.
    let half = |name: &str, wcet: u64| {
        format!(
            "[[task]]\nname = \"{name}\"\nwcet = \"{wcet}ms\"\nperiod = \"{}ms\"\nwss = \"64KiB\"\n\
             cpus = \"0\"\n",
            2 * wcet
        )
    };
    let full = half("short", 10) + &half("long", 20);
    std::fs::write(dir.join("tasks.toml"), full).unwrap();
    call(dir, "advise tasks.toml --policy p-edf -o full.json").with_status(0);
    let refused = call(
        dir,
        &format!("{} -o full", run.replace("plan.json", "full.json")),
    );
    let refused = refused.refusal();
    assert!(refused.contains("`check` refuses the plan"), "{refused}");
    assert!(!dir.join("full/validation.json").exists());
    Ok(())
}

fn wrong_inputs_are_refused() {
    let dir = directory();
    let dir = dir.path();
    let task = "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\n";
    std::fs::write(dir.join("one.toml"), task).unwrap();
    for (options, said) in [
        ("", "no profile of this machine is in use"),
        ("--profile xeon-l7455", "another machine"),
        ("--profile profile.toml --policy nonsense", "nonsense"),
        (
            "--profile profile.toml --for 1ms",
            "runs of 1ms show nothing",
        ),
        (
            "--profile profile.toml --resume",
            "no interrupted measurement",
        ),
        ("one.toml --profile profile.toml", "--plan"),
        ("--plan plan.json --profile profile.toml", "TASKS"),
        (
            "one.toml --plan none.json --profile profile.toml",
            "none.json",
        ),
        (
            "one.toml --plan one.toml --profile profile.toml",
            "no assignment",
        ),
        (
            "one.toml --plan none.json --advised --profile profile.toml",
            "--advised",
        ),
    ] {
        let refused = call(dir, &format!("validate -o out {options}")).refusal();
        assert!(refused.contains(said), "{options}: {refused}");
    }
}
