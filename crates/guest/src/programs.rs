//! Programs as tasks in a guest: this program itself, called so that it does little but take
//! processor time. What they have used is held against what the trace says that their jobs
//! executed.

use crate::case::Case;
use execute::{Launch, Manner, Performer, Rights};
use model::{Beyond, Duration, Error, Result, TaskId, TaskSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use workload::Work;

/// The word by which this program becomes one.
pub const WORD: &str = "program";
/// What they do, in turn.
const KINDS: [&str; 3] = ["crowd", "naps", "ends"];
/// How long one that naps works, and sleeps.
const WORKS: Duration = Duration::from_micros(700);
const SLEEPS: std::time::Duration = std::time::Duration::from_millis(3);
/// After so much processor time one comes to its end.
const ENDS: Duration = Duration::from_millis(20);
/// How long a watchdog has for them.
const TO_BE_KILLED: std::time::Duration = std::time::Duration::from_secs(2);
/// What they use before the run, and what clocks of hundredths of a second leave out.
const SLACK: Duration = Duration::from_millis(100);

/// Who does the jobs of a task: a program, if it is one of the first so many, or this work.
pub(crate) fn performer(case: &Case, task: TaskId, work: Box<dyn Work>) -> Performer {
    if task.0 >= case.programs {
        return Performer::Work(work);
    }
    let kind = KINDS[task.index() % KINDS.len()];
    let command = ["/init", WORD, kind].map(str::to_owned).to_vec();
    Performer::Program(Launch {
        command,
        manner: Manner::Unmodified(Beyond::Hold),
        rights: Rights::Kept,
        output: None,
    })
}

/// Is what this is called to be.
///
/// # Errors
/// There is no such program.
pub fn be(kind: &str) -> Result<()> {
    match kind {
        // Three threads of two processes want all the time that there is.
        "crowd" => {
            std::thread::spawn(|| work(Duration::MAX));
            let child = Command::new("/init").args([WORD, "alone"]).spawn();
            child.map_err(|e| Error::io("/init", "start it", &e))?;
            work(Duration::MAX);
        }
        "alone" => work(Duration::MAX),
        "naps" => loop {
            work(WORKS);
            std::thread::sleep(SLEEPS);
        },
        "ends" => work(ENDS),
        _ => return Err(Error::new(format!("there is no program `{kind}`"))),
    }
    Ok(())
}

/// Takes so much processor time.
fn work(length: Duration) {
    let end = machine::clock::thread_time().saturating_add(length);
    while machine::clock::thread_time() < end {
        (0..1000u64).for_each(|n| {
            std::hint::black_box(n);
        });
    }
}

/// The run has ended, or was killed, and its watchdog kills what is left of it: is nobody left
/// then?
///
/// # Errors
/// Somebody is.
pub(crate) fn none_left() -> Result<()> {
    let late = Instant::now() + TO_BE_KILLED;
    while let Some(path) = one_left() {
        if Instant::now() > late {
            return Err(Error::new(format!("a program is left: {}", path.display())));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(())
}

fn one_left() -> Option<PathBuf> {
    let words = format!("/init\0{WORD}\0");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all = entries.map(|entry| entry.path());
    all.find(|path| {
        fs::read(path.join("cmdline")).is_ok_and(|line| line.starts_with(words.as_bytes()))
    })
}

/// The run is over, and its programs have been waited for: they have executed what the trace says
/// of their jobs, by task, and nothing besides, but at most all that there was in the time since
/// its end. What had no job had no processor.
///
/// # Errors
/// They have not.
pub(crate) fn agree(
    case: &Case,
    set: &TaskSet,
    executed: &[u64],
    since: Duration,
    cpus: u64,
) -> Result<()> {
    if case.programs == 0 {
        return Ok(());
    }
    // What of their last jobs is not told.
    let timings = &set.timings()[..case.programs as usize];
    let last: u64 = timings.iter().map(|timing| timing.wcet.nanos()).sum();
    let slack = SLACK.saturating_add(Duration::from_nanos(last));
    let used = of_children()?;
    let told = Duration::from_nanos(executed[..case.programs as usize].iter().sum());
    println!(
        "guest: {}: programs used {used}, their jobs executed {told}; it ended {since} ago",
        case.name
    );
    let after = Duration::from_nanos(since.nanos() * cpus).saturating_add(slack);
    if told.is_zero() || used > told.saturating_add(after) || used.saturating_add(slack) < told {
        return Err(Error::new(format!(
            "programs used {used} of processors, and their jobs executed {told}"
        )));
    }
    Ok(())
}

/// The processor time of all children that have been waited for, in hundredths of a second.
fn of_children() -> Result<Duration> {
    let path = "/proc/self/stat";
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read it", &e))?;
    // The name, in parentheses, is the second field; these are the 16th and 17th.
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(10 * ticks))
}
