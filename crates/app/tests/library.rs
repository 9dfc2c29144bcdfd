//! The library does what the command line does: the example program is compiled and run here.

#[allow(dead_code, reason = "its main is that of the example")]
#[path = "../examples/judge_and_run.rs"]
mod judge_and_run;

use app::color::alone::Own;
use app::{On, Tasks, check, run, scheduling::Scheduling, simulate};
use heap::exec::{Part, Plan};
use model::watch::{Silent, Watch};
use model::{Bytes, Duration, TaskSet, Timing, document};
use partition::Colors;
use std::path::Path;
use std::sync::Mutex;
use testing::{NotRun, Outcome};

testing::tests!(alone:
    the_example_judges_and_simulates,
    the_example_runs_for_real,
    a_set_that_a_program_made_needs_no_file,
    what_cannot_be_is_an_error_that_names_its_place,
    sorting_memory_for_one_run_tells_how_far_it_is,
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

/// Keeps what a watch is told, a line each.
#[derive(Default)]
struct Record(Mutex<Vec<String>>);

impl Record {
    fn keep(&self, line: String) {
        self.0.lock().expect("nobody failed").push(line);
    }
}

impl Watch for Record {
    fn begin(&self, what: &str, _: u64) {
        self.keep(format!("begin {what}"));
    }
    fn advance(&self, _: u64) {}
    fn note(&self, text: &str) {
        self.keep(text.to_owned());
    }
    fn stopped(&self) -> bool {
        false
    }
    fn finish(&self) {
        self.keep("finish".to_owned());
    }
}

/// The search has a stage, sorting has one, and the remark stands between them: as `warmset color
/// exec` without a memory server.
fn sorting_memory_for_one_run_tells_how_far_it_is() -> Outcome {
    let plan = Plan {
        colors: Colors::first(1),
        by_task: false,
        parts: Part::ALL.to_vec(),
        stack: Bytes::from_kib(64),
        segments: Bytes::from_kib(64),
        strict: false,
    };
    let record = Record::default();
    let memory = Bytes::from_mib(65);
    let own = Own::sort(
        Some(memory),
        &plan,
        &plan.colors,
        Path::new("true"),
        true,
        &record,
    )
    .map_err(|e| {
        assert!(!e.to_string().contains("a defect of this program"), "{e}");
        NotRun::because(e)
    })?;
    assert_eq!(own.sorted.memory, memory);
    let told = record.0.into_inner().expect("nobody failed");
    let place = |line: &str| told.iter().rposition(|l| l.starts_with(line));
    let in_order = [
        place("sorting 65MiB by color for this run"),
        place("begin sorting by color"),
        place("finish"),
        place("no memory server at "),
    ];
    assert!(
        in_order.iter().all(Option::is_some) && in_order.is_sorted(),
        "{told:?}"
    );
    Ok(())
}
