//! What goes wrong ends the run, and the machine lives: a shell answers throughout, afterwards no
//! thread is at real-time priority, and the events up to that moment are there.

#[path = "safety/programs.rs"]
mod programs;
mod support;

use execute::watchdog::Patience;
use execute::{Ending, Performer, Settings};
use model::{Duration, Instant};
use policy::{Decisions, DomainId, Event, Job, Place, Plan, Policy, Route};
use programs::{
    a_program_has_no_rights_of_the_engine_unless_it_is_told_to,
    a_program_that_cuts_off_its_pages_harms_nobody, a_stranger_at_the_door_is_sent_away, sleeper,
    what_best_effort_programs_start_ends_with_the_run,
};
use std::sync::atomic::{AtomicBool, Ordering};
use support::guard::Guard;
use support::{Live, SpinFor, ms, set_of};
use testing::watching::StopAfterLooks;
use trace::{EventKind, VecSink};
use workload::Work;

fn settings() -> Settings {
    Settings {
        horizon: ms(1000),
        patience: Patience {
            dispatcher: ms(300),
            ..Patience::default()
        },
        ..Settings::default()
    }
}

struct Panics;
impl Work for Panics {
    fn job(&mut self, number: u64, _: &AtomicBool) {
        assert!(number < 3, "on purpose");
    }
}

/// Panics when the run is over.
struct PanicsAtTheEnd;
impl Work for PanicsAtTheEnd {
    fn job(&mut self, number: u64, stop: &AtomicBool) {
        while number == 2 && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        assert!(number < 2, "on purpose");
    }
}

/// Never comes back, whatever it is told.
struct NeverYields;
impl Work for NeverYields {
    fn job(&mut self, number: u64, _: &AtomicBool) {
        // Ends at last where nobody stops it, so that a broken test does not stay on the machine.
        let end = machine::clock::thread_time().nanos() + 4_000_000_000;
        while number >= 2 && machine::clock::thread_time().nanos() < end {
            std::hint::spin_loop();
        }
    }
}

fn spin(percent: u64) -> Box<dyn Work> {
    Box::new(SpinFor(Duration::from_micros(20 * percent)))
}

fn a_panic_in_a_workload_ends_the_run_and_names_the_task(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(2, 20), (2, 20)]);
    let e = live
        .run_works(
            "g-edf",
            &set,
            None,
            vec![spin(50), Box::new(Panics)],
            &settings(),
        )
        .err()
        .unwrap()
        .to_string();
    assert!(e.contains("task T2") && e.contains("job 4 panicked"), "{e}");
    guard.all_is_quiet();
}

fn a_panic_behind_the_last_look_at_a_run_is_told_too(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(2, 20)]);
    let settings = Settings {
        horizon: ms(200),
        ..settings()
    };
    let works: Vec<Box<dyn Work>> = vec![Box::new(PanicsAtTheEnd)];
    let e = live.run_works("g-edf", &set, None, works, &settings).err();
    let e = e.unwrap().to_string();
    assert!(e.contains("task T1") && e.contains("job 3 panicked"), "{e}");
    guard.all_is_quiet();
}

fn a_task_that_never_yields_does_not_keep_others_from_running_and_is_put_away(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(2, 20), (2, 20)]);
    let assignment = live.assign(&"p-edf".parse().unwrap(), &set);
    let ran = live
        .run_works(
            "p-edf",
            &set,
            assignment,
            vec![spin(50), Box::new(NeverYields)],
            // Before a kernel that keeps time for ordinary programs stops the dispatcher for them.
            &Settings {
                horizon: ms(900),
                ..settings()
            },
        )
        .unwrap();
    assert_eq!(ran.outcome.stuck, [model::TaskId(1)]);
    assert!(ran.verdict.is_clean(), "{:?}", ran.verdict);
    let done = |task: usize| ran.statistics.tasks[task].jobs;
    assert_eq!((done(0), done(1)), (45, 2));
    assert!(
        ran.statistics.tasks[1].misses > 35,
        "the jobs behind it are late"
    );
    guard.all_is_quiet();
}

/// Its third job holds a lock and lets go of it only long after the run is over.
struct HoldsALock;
static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
impl Work for HoldsALock {
    fn job(&mut self, number: u64, stop: &AtomicBool) {
        if number == 2 {
            let _held = LOCK.lock();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
    }
}

/// As the lock may be that of the memory allocator, nobody is stopped for good while it is held.
fn a_task_that_does_not_come_back_lets_go_of_what_it_holds(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(2, 20)]);
    let settings = Settings {
        horizon: ms(200),
        ..settings()
    };
    let works: Vec<Box<dyn Work>> = vec![Box::new(HoldsALock)];
    let ran = live
        .run_works("g-edf", &set, None, works, &settings)
        .unwrap();
    assert_eq!(ran.outcome.stuck, [model::TaskId(0)]);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while LOCK.try_lock().is_err() {
        assert!(
            std::time::Instant::now() < until,
            "the lock is held for good"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    guard.all_is_quiet();
}

/// Decides once, then never comes back from the second decision while it is wanted.
#[derive(Clone)]
struct Stuck {
    decisions: u32,
}
static WANTED: AtomicBool = AtomicBool::new(true);
impl Policy for Stuck {
    fn happen(&mut self, _: Event, _: Instant) {}
    fn decide(&mut self, _: Instant, out: &mut impl Decisions) {
        self.decisions += 1;
        out.wake(Instant::from_nanos(u64::from(self.decisions) * 50_000_000));
        while self.decisions == 4 && WANTED.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
    fn slice(&self, _: &Job) -> Option<Duration> {
        None
    }
}

/// Whose work it was to be makes no difference: a program that the watchdog kills is not blamed.
fn a_dispatcher_that_stands_still_ends_the_run(live: &Live) {
    let set = set_of(&[(2, 20)]);
    for work in [Performer::Work(spin(50)), sleeper()] {
        let guard = Guard::new();
        WANTED.store(true, Ordering::Relaxed);
        let cpus = vec![live.platform.in_cache_order()[1]];
        let plan = Plan {
            domains: vec![policy::Domain {
                cpus,
                policy: Stuck { decisions: 0 },
            }],
            route: Route::Fixed(vec![DomainId(0)]),
        };
        let mut sink = VecSink::default();
        let watch = model::watch::Silent;
        let works = vec![work];
        let run = execute::run_plan(plan, &set, works, &settings(), &watch, &mut sink, |_| ());
        WANTED.store(false, Ordering::Relaxed);
        let e = run.err().unwrap().to_string();
        assert!(
            e.contains("the watchdog ended the run: the dispatcher of processor"),
            "{e}"
        );
        assert!(
            sink.events.iter().any(|e| e.kind == EventKind::Release),
            "events up to then"
        );
        guard.all_is_quiet();
    }
}

/// A dispatcher that is at work across the horizon, with a watchdog that would wait for it: the
/// supervisor alone ends the run.
fn a_run_is_over_soon_after_its_horizon_whatever_happens(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(2, 20)]);
    let cpus = vec![live.platform.in_cache_order()[1]];
    let plan = Plan {
        domains: vec![policy::Domain {
            cpus,
            policy: AtWork { decisions: 0 },
        }],
        route: Route::Fixed(vec![DomainId(0)]),
    };
    let minute = Duration::from_secs(60);
    let settings = Settings {
        horizon: ms(400),
        patience: Patience {
            dispatcher: minute,
            ordinary: minute,
            end: minute,
            late: ms(300),
        },
        ..settings()
    };
    let (mut sink, watch) = (VecSink::default(), model::watch::Silent);
    let run = execute::run_plan(
        plan,
        &set,
        vec![spin(50)],
        &settings,
        &watch,
        &mut sink,
        |_| (),
    );
    ENDED.store(true, Ordering::Relaxed);
    let e = run.err().unwrap().to_string();
    assert!(e.contains("was not over 300ms after its horizon"), "{e}");
    assert!(sink.events.iter().any(|e| e.kind == EventKind::Release));
    guard.all_is_quiet();
}

/// Is at work from its second decision on, until it is told that the run has ended; for some
/// seconds at most, so that a broken test does not stay on the machine.
#[derive(Clone)]
struct AtWork {
    decisions: u32,
}
static ENDED: AtomicBool = AtomicBool::new(false);
impl Policy for AtWork {
    fn happen(&mut self, _: Event, _: Instant) {}
    fn decide(&mut self, _: Instant, out: &mut impl Decisions) {
        self.decisions += 1;
        out.wake(Instant::from_nanos(u64::from(self.decisions) * 50_000_000));
        let end = machine::clock::thread_time().nanos() + 6_000_000_000;
        while self.decisions == 2
            && !ENDED.load(Ordering::Relaxed)
            && machine::clock::thread_time().nanos() < end
        {
            std::hint::spin_loop();
        }
    }
    fn slice(&self, _: &Job) -> Option<Duration> {
        None
    }
}

/// Jobs that never end on all processors: the kernel keeps some time for ordinary programs, so that
/// none of them stands still for long, and they hardly get on.
fn jobs_that_leave_ordinary_programs_no_time_end_the_run(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(10, 20), (10, 20)]);
    let settings = Settings {
        horizon: Duration::from_secs(12),
        ..settings()
    };
    let endless = || Box::new(SpinFor(Duration::from_secs(3600))) as Box<dyn Work>;
    let run = live.run_works("g-edf", &set, None, vec![endless(), endless()], &settings);
    let e = run.err().unwrap().to_string();
    assert!(
        e.contains("its jobs left ordinary programs nothing but what the kernel keeps"),
        "{e}"
    );
    guard.all_is_quiet();
}

/// Both processors are taken for 940 ms at a time: ordinary programs wait as long as where jobs
/// never let go, and get what they are due.
fn jobs_that_take_94_percent_are_left_alone(live: &Live) {
    let set = set_of(&[(940, 1000), (940, 1000)]);
    let settings = Settings {
        horizon: Duration::from_secs(6),
        ..settings()
    };
    let long = || Box::new(SpinFor(ms(940))) as Box<dyn Work>;
    let ran = live
        .run_works("g-edf", &set, None, vec![long(), long()], &settings)
        .unwrap();
    assert_eq!(ran.outcome.ending, Ending::Horizon);
}

/// Panics when a job is done; each task has a place of its own.
#[derive(Clone, Default)]
struct PanickingPolicy(Vec<model::TaskId>);
impl Policy for PanickingPolicy {
    fn happen(&mut self, event: Event, _: Instant) {
        match event {
            Event::Ready(job) => self.0.push(job.task),
            _ => panic!("on purpose"),
        }
    }
    fn decide(&mut self, _: Instant, out: &mut impl Decisions) {
        for task in self.0.drain(..) {
            out.run(Place(task.0), task);
        }
    }
}

fn a_policy_that_panics_ends_the_run(live: &Live) {
    let guard = Guard::new();
    let plan = Plan {
        domains: vec![policy::Domain {
            cpus: live.platform.in_cache_order(),
            policy: PanickingPolicy::default(),
        }],
        route: Route::Fixed(vec![DomainId(0); 2]),
    };
    let (mut sink, watch) = (VecSink::default(), model::watch::Silent);
    // On the other processor there is somebody who never sleeps.
    let set = set_of(&[(2, 20), (400, 500)]);
    let works = vec![spin(50), Box::new(SpinFor(ms(400))) as Box<dyn Work>];
    let run = execute::run_plan(plan, &set, works, &settings(), &watch, &mut sink, |_| ());
    let e = run.err().unwrap().to_string();
    assert!(e.contains("the policy panicked"), "{e}");
    assert!(sink.events.iter().any(|e| e.kind == EventKind::Release));
    guard.all_is_quiet();
}

fn who_interrupts_a_run_gets_what_there_is(live: &Live) {
    let guard = Guard::new();
    let set = set_of(&[(2, 20), (3, 30)]);
    let spec: policy::Spec = "g-edf".parse().unwrap();
    let plan = spec
        .plan(&policy::Setup {
            set: &set,
            platform: &live.platform,
            assignment: None,
            quantum: ms(1),
        })
        .unwrap();
    let long = Settings {
        horizon: Duration::from_secs(100),
        ..settings()
    };
    let (mut sink, watch) = (VecSink::default(), StopAfterLooks::new(11));
    let outcome = execute::run(
        plan,
        &set,
        vec![spin(50), spin(50)],
        &long,
        &watch,
        &mut sink,
        |_| (),
    )
    .unwrap();
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert!(outcome.end < Instant::ZERO + Duration::from_secs(50));
    assert_eq!(sink.events.last().map(|e| e.kind), Some(EventKind::End));
    guard.all_is_quiet();
}

fn without_works_for_all_tasks_or_without_time_nothing_begins(live: &Live) {
    let set = set_of(&[(2, 20), (2, 20)]);
    for (works, horizon) in [(vec![spin(1)], ms(10)), (vec![spin(1), spin(1)], ms(0))] {
        let settings = Settings {
            horizon,
            ..settings()
        };
        assert!(
            live.run_works("g-edf", &set, None, works, &settings)
                .is_err()
        );
    }
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "program") {
        return programs::main(&arguments[2], &arguments[3..]);
    }
    support::main(by_name!(
        a_panic_in_a_workload_ends_the_run_and_names_the_task,
        a_panic_behind_the_last_look_at_a_run_is_told_too,
        a_task_that_never_yields_does_not_keep_others_from_running_and_is_put_away,
        a_task_that_does_not_come_back_lets_go_of_what_it_holds,
        a_dispatcher_that_stands_still_ends_the_run,
        a_run_is_over_soon_after_its_horizon_whatever_happens,
        jobs_that_leave_ordinary_programs_no_time_end_the_run,
        jobs_that_take_94_percent_are_left_alone,
        a_policy_that_panics_ends_the_run,
        who_interrupts_a_run_gets_what_there_is,
        without_works_for_all_tasks_or_without_time_nothing_begins,
        a_program_that_cuts_off_its_pages_harms_nobody,
        a_program_has_no_rights_of_the_engine_unless_it_is_told_to,
        a_stranger_at_the_door_is_sent_away,
        what_best_effort_programs_start_ends_with_the_run
    ))
}
