//! Programs that are written for it: come from outside and go on as they were, leave early, wait
//! for something within a job.
//!
//! The programs are this test itself, started with the name of one of its own programs.

mod support;

use execute::kernel::{Processors, Thread};
use execute::{How, JoinSocket, Launch, Manner, Performer, Rights, Settings};
use model::assignment::Clustered;
use model::{Assignment, CpuSet, Duration, TaskId};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use support::guard::Guard;
use support::{Live, SpinFor, ms, set_of};
use trace::EventKind;
use workload::Work;

const ORDINARY: (i32, i32) = (libc::SCHED_OTHER, 0);

fn spin(time: Duration) {
    SpinFor(time).job(0, &AtomicBool::new(false));
}

fn sleep(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}

/// Waits until something is so.
fn waited(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + std::time::Duration::from_secs(20);
    while !what() && Instant::now() < end {
        sleep(2);
    }
    what()
}

/// `guest SOCKET NAME`: does its jobs with a child beside it, and stays.
fn guest(arguments: &[String]) {
    let mut task = warmset_task::Task::join_at(Path::new(&arguments[0]), &arguments[1]).unwrap();
    let mut child = None;
    while task.wait().is_some() {
        // It is born to a raised process.
        child.get_or_insert_with(|| Command::new("sleep").arg("60").spawn().unwrap());
        spin(ms(2));
    }
    drop(task);
    println!("the run is over");
    // It is told to go by its input.
    let _ = std::io::stdin().read_line(&mut String::new());
    if let Some(mut child) = child {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// `leaver SOCKET NAME`: leaves in the middle of its fifth job, and computes on for a while, at
/// least until it is let go. That may take long: whoever lets it go is an ordinary thread.
fn leaver(arguments: &[String]) {
    let mut task = warmset_task::Task::join_at(Path::new(&arguments[0]), &arguments[1]).unwrap();
    for _ in 0..5 {
        task.wait().unwrap();
        spin(ms(1));
    }
    drop(task);
    let begun = Instant::now();
    let lasted = |ms| begun.elapsed() >= std::time::Duration::from_millis(ms);
    let mut ordinary = false;
    while !lasted(600) || (!ordinary && !lasted(20_000)) {
        spin(ms(1));
        ordinary |= Thread::current().scheduling().unwrap() == ORDINARY;
    }
    assert!(ordinary, "it never became an ordinary program");
}

/// `waiter`: waits for 8 ms within each job, between a millisecond before and another one after.
fn waiter() {
    let mut task = warmset_task::Task::join().unwrap();
    while task.wait().is_some() {
        spin(ms(1));
        sleep(8);
        spin(ms(1));
    }
}

fn this() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

/// A program that comes to the door of a run as its task T1.
fn come(program: &str, socket: &Path) -> Child {
    Command::new(this())
        .args(["program", program, socket.to_str().unwrap(), "T1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// All processes that a process has started, and itself.
fn family(process: i32) -> Vec<i32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let text = std::fs::read_to_string(children).unwrap_or_default();
    let of_child = text
        .split_whitespace()
        .flat_map(|child| family(child.parse().unwrap()));
    std::iter::once(process).chain(of_child).collect()
}

/// Ordinary, where it might run before, and not stopped.
fn is_as_before(process: i32, home: &Processors) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let state = state.rsplit(") ").next().unwrap().chars().next();
    let thread = Thread(process);
    thread.scheduling().unwrap() == ORDINARY
        && thread.processors().unwrap() == *home
        && matches!(state, Some('S' | 'R' | 'D'))
}

/// A guest and its child are as they were; then they go.
fn goes_on_as_it_was(mut guest: Child, home: &Processors) {
    let process = guest.id() as i32;
    assert!(waited(|| family(process)
        .iter()
        .all(|p| is_as_before(*p, home))));
    assert_eq!(family(process).len(), 2, "it and its child");
    let mut told = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(guest.stdout.take().unwrap()),
        &mut told,
    )
    .unwrap();
    assert_eq!(told, "the run is over\n");
    drop(guest.stdin.take());
    assert!(guest.wait().unwrap().success());
}

fn a_guest_goes_on_as_it_was_before_it_came(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("door");
    let home = Thread::current().processors().unwrap();
    let set = set_of(&[(5, 25), (2, 20)]);
    let works = vec![
        Performer::Outside(Arc::new(JoinSocket::open(&socket).unwrap())),
        Performer::Work(Box::new(SpinFor(ms(1)))),
    ];
    let guest = come("guest", &socket);
    let settings = Settings {
        horizon: ms(500),
        ..Settings::default()
    };
    let ran = live
        .run_works("g-edf", &set, None, works, &settings)
        .unwrap();
    ran.is_sound();
    assert_eq!(ran.statistics.tasks[0].jobs, 20);
    goes_on_as_it_was(guest, &home);
}

fn a_guest_that_leaves_within_a_job_is_let_go_and_the_run_goes_on(live: &Live) {
    let guard = Guard::new();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("door");
    let set = set_of(&[(15, 25), (2, 20), (20, 100)]);
    let works = vec![
        Performer::Outside(Arc::new(JoinSocket::open(&socket).unwrap())),
        Performer::Work(Box::new(SpinFor(ms(1)))),
        Performer::Work(Box::new(SpinFor(ms(10)))),
    ];
    let mut leaver = come("leaver", &socket);
    let settings = Settings {
        horizon: ms(1500),
        ..Settings::default()
    };
    let ran = live
        .run_works("g-edf", &set, None, works, &settings)
        .unwrap();
    ran.is_sound();
    assert_eq!(ran.outcome.programs[0].how, How::Left);
    // It has nothing to do in the jobs behind that, and no job of the others is lost.
    let jobs: Vec<u64> = ran.statistics.tasks.iter().map(|t| t.jobs).collect();
    assert_eq!(jobs, [60, 75, 15]);
    assert!(leaver.wait().unwrap().success());
    guard.all_is_quiet();
}

/// A run of a minute in a process of its own, killed while a guest is there.
fn a_guest_goes_on_when_its_engine_is_killed(_: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("door");
    let home = Thread::current().processors().unwrap();
    let mut engine = Command::new(this())
        .args(["program", "engine", socket.to_str().unwrap()])
        .process_group(0)
        .spawn()
        .unwrap();
    assert!(waited(|| socket.exists()));
    let guest = come("guest", &socket);
    let process = guest.id() as i32;
    // It has done jobs.
    assert!(waited(|| family(process).len() == 2));
    sleep(200);
    let group = -(engine.id() as i32);
    // SAFETY: a group of our own making, whose first process nobody has waited for.
    assert_eq!(unsafe { libc::kill(group, libc::SIGKILL) }, 0);
    engine.wait().unwrap();
    goes_on_as_it_was(guest, &home);
    assert!(
        waited(|| !socket.exists()),
        "the watchdog takes away what the run has made"
    );
}

fn engine(socket: &Path) {
    let live = support::live().unwrap();
    let set = set_of(&[(5, 25), (2, 20)]);
    let works = vec![
        Performer::Outside(Arc::new(JoinSocket::open(socket).unwrap())),
        Performer::Work(Box::new(SpinFor(ms(1)))),
    ];
    let settings = Settings {
        horizon: Duration::from_secs(60),
        ..Settings::default()
    };
    live.run_works("g-edf", &set, None, works, &settings)
        .unwrap();
}

/// Spins, and notes for how long it was off its processor.
struct Notes {
    time: Duration,
    gaps: Arc<Mutex<Vec<u64>>>,
}

impl Work for Notes {
    fn job(&mut self, _: u64, stop: &AtomicBool) {
        let mut gaps = Vec::with_capacity(1000);
        let end = machine::clock::thread_time().nanos() + self.time.nanos();
        let mut last = execute::kernel::monotonic();
        while machine::clock::thread_time().nanos() < end && !stop.load(Ordering::Relaxed) {
            let now = execute::kernel::monotonic();
            if now - last > 2_000_000 {
                gaps.push(now - last);
            }
            last = now;
        }
        self.gaps.lock().unwrap().extend(gaps);
    }
}

/// A job that waits for something keeps its processor: whoever it has preempted goes on when it is
/// done, as the trace says.
fn who_is_preempted_does_not_run_while_a_program_waits_within_its_job(live: &Live) {
    let set = set_of(&[(12, 50), (200, 400)]);
    // Both on one processor.
    let cpus = live.platform.in_cache_order();
    let assignment = Some(Assignment::Clustered(Clustered {
        clusters: cpus.iter().map(|cpu| CpuSet::from_iter([*cpu])).collect(),
        cluster_of: vec![1, 1],
    }));
    let gaps = Arc::new(Mutex::new(Vec::new()));
    let works = vec![
        Performer::Program(Launch {
            command: [this().to_str().unwrap(), "program", "waiter"]
                .map(str::to_owned)
                .to_vec(),
            manner: Manner::Written,
            rights: Rights::default(),
            output: None,
        }),
        Performer::Work(Box::new(Notes {
            time: ms(100),
            gaps: Arc::clone(&gaps),
        })),
    ];
    let settings = Settings {
        horizon: ms(1600),
        ..Settings::default()
    };
    let ran = live
        .run_works("p-edf", &set, assignment, works, &settings)
        .unwrap();
    ran.is_sound();
    let preempted = ran
        .events
        .iter()
        .filter(|e| e.kind == EventKind::Preemption && e.task == TaskId(1));
    let preempted = preempted.count();
    let gaps = gaps.lock().unwrap();
    // From the millisecond before the wait to the one after it in one piece; two would be shorter.
    let whole = gaps.iter().filter(|gap| **gap > 9_000_000).count();
    assert!(
        preempted >= 4 && whole + 1 >= preempted,
        "{preempted} preemptions, off for {gaps:?}"
    );
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "program") {
        match arguments[2].as_str() {
            "guest" => guest(&arguments[3..]),
            "leaver" => leaver(&arguments[3..]),
            "waiter" => waiter(),
            "engine" => engine(Path::new(&arguments[3])),
            other => panic!("{other}"),
        }
        return ExitCode::SUCCESS;
    }
    support::main(by_name!(
        a_guest_goes_on_as_it_was_before_it_came,
        a_guest_that_leaves_within_a_job_is_let_go_and_the_run_goes_on,
        a_guest_goes_on_when_its_engine_is_killed,
        who_is_preempted_does_not_run_while_a_program_waits_within_its_job,
    ))
}
