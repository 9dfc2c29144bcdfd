//! The library does what the command line does: the example program is compiled and run here.

#[allow(dead_code, reason = "its main is that of the example")]
#[path = "../examples/judge_and_run.rs"]
mod judge_and_run;

use app::{On, Tasks, check, run, scheduling::Scheduling, simulate};
use model::watch::Silent;
use model::{Duration, TaskSet, Timing, document};
use testing::{NotRun, Outcome};

testing::tests!(
    the_example_judges_and_simulates,
    the_example_runs_for_real,
    a_set_that_a_program_made_needs_no_file,
    what_cannot_be_is_an_error_that_names_its_place,
);

const LIGHT: &str = "[[task]]\nname = \"light\"\nwcet = \"2ms\"\nperiod = \"50ms\"\n";

/// The three lines of the example.
fn lines() -> [String; 3] {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("light.toml");
    std::fs::write(&path, LIGHT).expect("written");
    let told = judge_and_run::judge_and_run(&path).expect("judged and simulated");
    let lines: Vec<String> = told.lines().map(str::to_owned).collect();
    lines.try_into().expect("three lines")
}

fn the_example_judges_and_simulates() {
    let [judged, simulated, _] = lines();
    assert!(judged.starts_with("judged: "), "{judged}");
    // One hyperperiod is one job.
    assert_eq!(simulated, "simulated: 1 jobs, 0 misses");
}

fn the_example_runs_for_real() -> Outcome {
    let [_, _, ran] = lines();
    if let Some(why) = ran.strip_prefix("not run: ") {
        return Err(NotRun::because(why));
    }
    let jobs = ran
        .strip_prefix("for real: ")
        .and_then(|r| r.split(' ').next());
    let jobs: u64 = jobs.and_then(|j| j.parse().ok()).expect("a number of jobs");
    // A second has twenty periods; a machine that stands still may miss some.
    assert!((1..=21).contains(&jobs), "{ran}");
    Ok(())
}

fn tasks() -> Tasks {
    let ms = Duration::from_millis;
    let timings = vec![Timing::implicit(ms(6), ms(10)); 2];
    TaskSet::from_timings(timings).expect("a set").into()
}

fn a_set_that_a_program_made_needs_no_file() {
    let checked = check::Options {
        on: On::Identical(1),
        policies: Some("g-edf".to_owned()),
        ..check::Options::default()
    };
    let checked = check::check(&tasks(), &checked, &Silent).expect("judged");
    assert!(!checked.judgment.is_schedulable());
    let options = simulate::Options {
        on: On::Identical(1),
        horizon: Some(Duration::from_millis(100)),
        ..simulate::Options::default()
    };
    let simulated = simulate::simulate(&tasks(), &options, &Silent).expect("simulated");
    assert!(simulated.missed && simulated.complete().is_ok());
    let text = document::pretty(&simulated).expect("a document");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["policy"], "g-edf");
    assert_eq!(json["platform"], "symmetric:m=1");
    assert!(json["misses"].as_u64() > Some(0), "{json}");
}

fn what_cannot_be_is_an_error_that_names_its_place() {
    let simulated = simulate::Options {
        on: On::Identical(0),
        ..simulate::Options::default()
    };
    let e = simulate::simulate(&tasks(), &simulated, &Silent).expect_err("no processors");
    assert_eq!((e.place(), e.cause()), ("-m", "0 processors"));
    // A set that is too much for one processor has no place in a partition.
    let simulated = simulate::Options {
        scheduling: Scheduling::of("p-edf").expect("a policy"),
        on: On::Identical(1),
        ..simulate::Options::default()
    };
    let e = simulate::simulate(&tasks(), &simulated, &Silent).expect_err("no room");
    assert_eq!(e.place(), "the task set");
    let several = run::Options {
        scheduling: Scheduling::of("g-edf,p-edf").expect("policies"),
        ..run::Options::default()
    };
    let e = run::plan(&tasks(), &several)
        .err()
        .expect("nothing says how long each");
    assert_eq!(e.place(), "--policy");
}
