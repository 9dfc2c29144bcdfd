//! Sporadic tasks for real: what becomes readable releases their jobs, a period apart at least.

#[path = "support/noter.rs"]
mod noter;
mod support;

use execute::{Launch, Manner, Performer, Rights, Settings, Triggers};
use model::{Assignment, Beyond, Details, Duration, TaskSet, Timing, Trigger};
use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Live, Ran, SpinFor, ms};
use trace::EventKind;
use workload::Work;

/// Tasks of 2 ms a job, the first ones with these triggers; and one that is periodic.
fn sporadic(triggers: &[(Trigger, u64)], periodic: u64) -> TaskSet {
    let task = |name: String, period: u64, trigger: Option<Trigger>| {
        let details = Details {
            trigger,
            ..Details::named(name)
        };
        (Timing::implicit(ms(4), ms(period)), details)
    };
    let with_number = triggers.iter().enumerate();
    let mut tasks: Vec<_> = with_number
        .map(|(index, (trigger, period))| task(format!("S{index}"), *period, Some(trigger.clone())))
        .collect();
    tasks.push(task("P".to_owned(), periodic, None));
    TaskSet::new(tasks).unwrap()
}

fn spins(set: &TaskSet) -> Vec<Performer> {
    set.ids()
        .map(|_| Performer::Work(Box::new(SpinFor(ms(2))) as Box<dyn Work>))
        .collect()
}

/// When the jobs of a task were released, nominally, in milliseconds of the run.
fn releases(ran: &Ran, set: &TaskSet, task: u32) -> Vec<u64> {
    let deadline = set.timings()[task as usize].deadline.nanos();
    let of = ran
        .events
        .iter()
        .filter(|e| e.kind == EventKind::Release && e.task.0 == task);
    of.map(|e| (e.deadline().nanos() - deadline) / 1_000_000)
        .collect()
}

fn run(
    live: &Live,
    policies: &[&str],
    set: &TaskSet,
    works: Vec<Performer>,
    length: Duration,
) -> Ran {
    let settings = Settings {
        horizon: length,
        triggers: Triggers::open(set).unwrap(),
        ..Settings::default()
    };
    let with: Vec<_> = policies
        .iter()
        .map(|p| (*p, live.assign(&p.parse().unwrap(), set)))
        .collect();
    let turn = (policies.len() > 1).then_some(ms(500));
    live.run_in_turn(&with, turn, set, works, &settings)
        .unwrap()
}

fn apart(releases: &[u64]) -> u64 {
    releases
        .windows(2)
        .map(|w| w[1] - w[0])
        .min()
        .unwrap_or(u64::MAX)
}

/// An `eventfd` as it is passed to a run, and to write to.
fn counter() -> (Trigger, File) {
    // SAFETY: a new descriptor that nobody else owns; it is left open for the run, as a child would
    // inherit it.
    let counter = unsafe { File::from_raw_fd(libc::eventfd(0, 0)) };
    let ours = counter.try_clone().unwrap();
    (Trigger::Descriptor(counter.into_raw_fd()), ours)
}

/// Bursts, which are spread out, and single ones with time in between, which are not; beside a
/// periodic task, under each kind of policy that lets tasks be released at any time.
fn bursts_are_spread_out_and_single_ones_are_not(live: &Live) {
    for policy in ["g-edf", "p-edf", "p-rm", "edf-fm", "edf-wm", "nps-f"] {
        let (trigger, mut counter) = counter();
        let set = sporadic(&[(trigger, 20)], 25);
        let writer = std::thread::spawn(move || {
            let mut ask = |count: u64, then: u64| {
                counter.write_all(&count.to_ne_bytes()).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(then));
            };
            // Before the first release of all: at its phase, and one a period later.
            ask(2, 300);
            ask(5, 200);
            ask(1, 60);
            ask(1, 60);
            ask(1, 0);
        });
        let ran = run(live, &[policy], &set, spins(&set), ms(900));
        writer.join().unwrap();
        ran.is_sound();
        let sporadic = releases(&ran, &set, 0);
        assert_eq!(sporadic.len(), 10, "{policy}: {sporadic:?}");
        assert!(apart(&sporadic) >= 20, "{policy}: {sporadic:?}");
        assert_eq!(ran.statistics.tasks[0].jobs, 10, "{policy}");
        assert_eq!(ran.statistics.tasks[1].released, 36, "{policy}");
        let t = ran.outcome.triggers[0];
        // One of the first two and four of the five had to wait. A machine that stops for a while
        // may let more of them wait.
        assert_eq!((t.events, t.left, t.ended), (10, 0, false), "{policy}");
        assert!((5..10).contains(&t.deferred), "{policy}: {t:?}");
    }
}

/// A task whose jobs take turns on two processors, asked for by somebody who hardly lets a moment
/// pass: the duty to release them goes from domain to domain, and what is asked for is released
/// once.
fn the_duty_to_release_goes_with_the_jobs_of_a_split_task(live: &Live) {
    // A task of utilization 0.6 on each of two processors leaves no room for a third one.
    let timings = [(12, 20), (18, 30), (6, 10)];
    let policy = "edf-fm".parse().unwrap();
    let Some(Assignment::Turns(turns)) = live.assign(&policy, &support::set_of(&timings)) else {
        panic!("no turns")
    };
    let split = turns
        .tasks
        .iter()
        .position(|t| t.first != t.second)
        .unwrap();
    let (trigger, mut counter) = counter();
    let tasks = timings.iter().enumerate().map(|(index, (wcet, period))| {
        let details = Details {
            trigger: (index == split).then(|| trigger.clone()),
            ..Details::named(format!("T{index}"))
        };
        (Timing::implicit(ms(*wcet), ms(*period)), details)
    });
    let set = TaskSet::new(tasks.collect()).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let writer = std::thread::spawn(move || {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            counter.write_all(&1u64.to_ne_bytes()).unwrap();
            count += 1;
            std::thread::sleep(std::time::Duration::from_micros(700));
        }
        count
    });
    let ran = run(live, &["edf-fm"], &set, spins(&set), ms(2500));
    over.store(true, Ordering::Relaxed);
    let asked: u64 = writer.join().unwrap();
    ran.is_sound();
    let all = releases(&ran, &set, split as u32);
    assert!(apart(&all) >= timings[split].1 && all.len() > 40, "{all:?}");
    let t = ran.outcome.triggers[0];
    assert_eq!(t.events - t.left, all.len() as u64, "{t:?}");
    assert!(t.events <= asked, "{t:?} of {asked}");
    let jobs = &ran.processors_by_job()[split];
    let on = |cpu: u32| jobs.iter().filter(|j| **j == [cpu]).count();
    assert!(on(0) > 10 && on(1) > 10, "{jobs:?}");
}

/// What is asked for goes on being done when another policy takes over, and comes no closer by
/// that.
fn triggers_go_on_across_policies(live: &Live) {
    let (trigger, mut counter) = counter();
    let set = sporadic(&[(trigger, 20)], 25);
    counter.write_all(&1000u64.to_ne_bytes()).unwrap();
    let ran = run(
        live,
        &["g-edf", "p-edf", "edf-wm"],
        &set,
        spins(&set),
        ms(1600),
    );
    ran.is_sound();
    let sporadic = releases(&ran, &set, 0);
    let expected: Vec<u64> = (0..80).map(|n| 20 * n).collect();
    assert_eq!(sporadic, expected);
    let t = ran.outcome.triggers[0];
    assert_eq!((t.events, t.deferred, t.left), (1000, 79, 920));
}

/// A FIFO releases a program with a budget, a socket one that asks for its jobs, a timer a thread.
fn all_kinds_of_tasks_can_be_triggered(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    // SAFETY: a new descriptor; the times live through the call.
    let timer = unsafe {
        let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
        let every = libc::timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        let times = libc::itimerspec {
            it_interval: every,
            it_value: every,
        };
        assert_eq!(
            libc::timerfd_settime(timer, 0, &times, std::ptr::null_mut()),
            0
        );
        timer
    };
    let set = sporadic(
        &[
            (Trigger::Fifo(path("fifo")), 20),
            (Trigger::Socket(path("socket")), 20),
            (Trigger::Descriptor(timer), 20),
        ],
        25,
    );
    let this = std::env::current_exe().unwrap();
    let launch = |command: &[&str], manner: Manner| {
        Performer::Program(Launch {
            command: command.iter().map(|w| (*w).to_owned()).collect(),
            manner,
            rights: Rights::default(),
            output: None,
        })
    };
    let notes = dir.path().join("notes");
    let mut works = spins(&set);
    works[0] = launch(
        &["sh", "-c", "while :; do :; done"],
        Manner::Unmodified(Beyond::Hold),
    );
    works[1] = launch(
        &[
            this.to_str().unwrap(),
            "program",
            "noter",
            notes.to_str().unwrap(),
        ],
        Manner::Written,
    );
    let (fifo, socket) = (path("fifo"), path("socket"));
    let writer = std::thread::spawn(move || {
        let there = |path: &str| std::path::Path::new(path).exists();
        while !there(&fifo) || !there(&socket) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mut fifo = File::options().write(true).open(fifo).unwrap();
        let letters = std::os::unix::net::UnixDatagram::unbound().unwrap();
        for _ in 0..8 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            fifo.write_all(b".").unwrap();
            letters.send_to(b"now", &socket).unwrap();
        }
    });
    let ran = run(live, &["g-edf"], &set, works, ms(2000));
    writer.join().unwrap();
    ran.is_sound();
    for task in 0..2 {
        let all = releases(&ran, &set, task);
        assert_eq!(all.len(), 8, "{all:?}");
        assert!(apart(&all) >= 20, "{all:?}");
    }
    let by_timer = releases(&ran, &set, 2);
    assert!(
        apart(&by_timer) >= 20 && by_timer.len() >= 35,
        "{by_timer:?}"
    );
    assert_eq!(noter::read(&notes).len(), 8);
    // A program with a budget has a job for each, cut when the budget is used up. The first may end
    // by waiting for the disk that the shell comes from.
    let cut = ran.statistics.tasks[0].recorded.map(|r| r.budget_exhausted);
    assert_eq!(ran.statistics.tasks[0].jobs, 8);
    assert!(cut.is_some_and(|cut| (6..=8).contains(&cut)), "{cut:?}");
    assert!(!std::path::Path::new(&path("fifo")).exists());
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "program") {
        noter::main(&arguments[3..]);
        return ExitCode::SUCCESS;
    }
    support::main(by_name!(
        bursts_are_spread_out_and_single_ones_are_not,
        the_duty_to_release_goes_with_the_jobs_of_a_split_task,
        triggers_go_on_across_policies,
        all_kinds_of_tasks_can_be_triggered,
    ))
}
