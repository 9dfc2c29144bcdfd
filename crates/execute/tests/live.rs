//! Runs for real: order and invariants, never times. Without rights they are reported as ignored,
//! with the reason.
//!
//! One at a time, each for a second or two, with little for the processors to do.

mod support;

use execute::{Effort, Efforts, How, Rights, Settings};
use model::assignment::{Clustered, Serve, Slice, Slices, Slots, Timetable};
use model::watch::Silent;
use model::{Assignment, CpuSet, Duration, Instant, TaskId};
use policy::{Decisions, Domain, DomainId, Event, Plan, Policy, Route};
use support::{Live, Ready, SpinFor, ms, phased, set_of};
use trace::{Checker, EventKind, Sink, VecSink};
use workload::Work;

fn partitioned_edf_keeps_its_rules_and_every_job_is_done(live: &Live) {
    let run = live.run("p-edf", &[(4, 20), (6, 30), (3, 15), (8, 40)], ms(1500));
    run.is_sound();
    assert_eq!(run.statistics.migrations, 0);
    let released: u64 = run.statistics.tasks.iter().map(|t| t.released).sum();
    assert_eq!(released, 75 + 50 + 100 + 38);
}

fn global_edf_keeps_its_rules(live: &Live) {
    let run = live.run(
        "g-edf",
        &[(4, 20), (6, 30), (3, 15), (8, 40), (10, 60)],
        ms(1500),
    );
    run.is_sound();
    assert!(run.statistics.jobs > 200);
}

/// What every job says that it executed is within what the trace leaves room for, and a lie is
/// found out.
fn jobs_execute_for_no_longer_than_the_trace_leaves_room_for(live: &Live) {
    let set = set_of(&[(4, 20), (6, 30), (30, 100), (60, 200)]);
    for policy in ["g-edf", "p-edf"] {
        let assignment = live.assign(&policy.parse().unwrap(), &set);
        let run = live.run_set(policy, &set, assignment.clone(), ms(1000), 70);
        run.is_sound();
        // Every job completes with an amount that was compared.
        let completed = run
            .events
            .iter()
            .filter(|e| e.kind == EventKind::Completion);
        assert!(completed.clone().all(|e| e.argument > 0));
        assert_eq!(run.verdict.unseen.count, completed.count() as u64);
        println!("{policy}: {:?}", run.verdict.unseen);
        let header = live.header(policy, &set, assignment).unwrap();
        let options = trace::check::Options {
            tolerance: support::TOLERANCE,
            ..trace::check::Options::for_trace(&header)
        };
        let mut checker = Checker::new(header, options).unwrap();
        let mut lies = 0;
        for event in &run.events {
            let mut words = event.to_words();
            if event.kind == EventKind::Completion && event.task.0 < 2 {
                // More than any of its jobs was pending.
                words[2] += ms(200).nanos();
                lies += 1;
            }
            checker.record(trace::Event::from_words(words).unwrap());
        }
        let verdict = checker.finish();
        assert!(lies > 50);
        assert_eq!(verdict.violations, lies, "{:?}", verdict.first.first());
        assert!(verdict.first.iter().all(|v| v.rule == "execution"));
    }
}

fn what_a_processor_could_not_do_while_it_stood_still_is_not_counted(live: &Live) {
    let set = set_of(&[(2, 10), (2, 10)]);
    let cpu = live.platform.in_cache_order()[1];
    let settings = Settings {
        horizon: ms(800),
        standstills: true,
        ..Settings::default()
    };
    let assignment = live.assign(&"p-edf".parse().unwrap(), &set);
    let ran = std::thread::scope(|scope| {
        // Above all that schedules, as a hypervisor is.
        scope.spawn(|| {
            machine::realtime::pin(&CpuSet::from_iter([cpu])).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(400));
            let thread = execute::kernel::Thread::current();
            thread.raise(99).unwrap();
            let until = std::time::Instant::now() + std::time::Duration::from_millis(90);
            while std::time::Instant::now() < until {}
            thread.lower().unwrap();
        });
        let works: Vec<Box<dyn Work>> = vec![Box::new(SpinFor(ms(1))), Box::new(SpinFor(ms(1)))];
        live.run_works("p-edf", &set, assignment.clone(), works, &settings)
            .unwrap()
    });
    let stood = |e: &&trace::Event| e.kind == EventKind::Standstill && e.cpu() == Some(cpu);
    let longest = ran
        .events
        .iter()
        .filter(stood)
        .map(trace::Event::length)
        .max();
    assert!(longest.is_some_and(|l| l >= ms(60)), "{longest:?}");
    // With the tolerance of all tests, and none for the gap.
    let header = live.header("p-edf", &set, assignment).unwrap();
    let options = trace::check::Options {
        tolerance: support::TOLERANCE,
        ..trace::check::Options::for_trace(&header)
    };
    let broken = |with: bool| {
        let mut checker = Checker::new(header.clone(), options).unwrap();
        for event in ran
            .events
            .iter()
            .filter(|e| with || e.kind != EventKind::Standstill)
        {
            checker.record(*event);
        }
        let verdict = checker.finish();
        verdict
            .first
            .iter()
            .map(|v| (v.rule, v.text.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(broken(true), []);
    assert!(!broken(false).is_empty());
}

/// Runs tasks of which none is heavy, so that nothing has to be split; short jobs and long ones,
/// which wait for them and which they must not wait for: a wrong order lasts for longer than is
/// tolerated.
fn keeps_its_rules(live: &Live, policy: &str) {
    let run = live.run(
        policy,
        &[(4, 20), (6, 30), (30, 100), (60, 200), (45, 150)],
        ms(800),
    );
    run.is_sound();
}

/// One processor, on which whoever has the latest deadline runs: what no policy here does.
#[derive(Clone, Default)]
struct LatestDeadline(Ready);

impl Policy for LatestDeadline {
    fn happen(&mut self, event: Event, _: Instant) {
        self.0.happen(event);
    }
    fn decide(&mut self, _: Instant, out: &mut impl Decisions) {
        let last = self.0.jobs.iter().max_by_key(|j| (j.deadline, j.task));
        self.0.run(last.map(|j| j.task), out);
    }
}

fn a_policy_that_does_not_keep_the_rules_is_found_out(live: &Live) {
    let set = set_of(&[(5, 20), (15, 60), (40, 200)]);
    let cpus = live.platform.in_cache_order();
    let cpu = cpus[1];
    let plan = Plan {
        domains: vec![Domain {
            cpus: vec![cpu],
            policy: LatestDeadline::default(),
        }],
        route: Route::Fixed(vec![DomainId(0); 3]),
    };
    let works = set
        .timings()
        .iter()
        .map(|t| SpinFor(Duration::from_nanos(t.wcet.nanos() / 2)));
    let works: Vec<Box<dyn Work>> = works.map(|w| Box::new(w) as _).collect();
    let settings = Settings {
        horizon: ms(600),
        standstills: true,
        ..Settings::default()
    };
    let mut sink = VecSink::default();
    execute::run_plan(plan, &set, works, &settings, &Silent, &mut sink, |_| ()).unwrap();
    // As if it were EDF on that processor.
    let assignment = Assignment::Clustered(Clustered {
        clusters: cpus.iter().map(|cpu| CpuSet::from_iter([*cpu])).collect(),
        cluster_of: vec![1; 3],
    });
    let header = live.header("p-edf", &set, Some(assignment)).unwrap();
    let options = trace::check::Options {
        tolerance: support::TOLERANCE,
        ..trace::check::Options::for_trace(&header)
    };
    let mut checker = Checker::new(header, options).unwrap();
    for event in &sink.events {
        checker.record(*event);
    }
    let verdict = checker.finish();
    assert!(verdict.violations > 5, "{verdict:?}");
}

fn c_edf_keeps_its_rules(live: &Live) {
    keeps_its_rules(live, "c-edf:l3");
}
fn cache_aware_edf_keeps_its_rules(live: &Live) {
    // Of their working sets, 64 KiB each, only one has room in the first one of these caches, and
    // all have in the second.
    let set = phased(&[(4, 20, 0), (6, 30, 0), (30, 100, 5), (60, 200, 0)]);
    for policy in ["ca-edf:cache=100KiB", "ca-edf:cache=8MiB"] {
        live.run_set(policy, &set, None, ms(800), 50).is_sound();
    }
}
fn fixed_priorities_keep_their_rules(live: &Live) {
    for policy in ["p-rm", "p-fp", "g-fp"] {
        keeps_its_rules(live, policy);
    }
}
fn policies_that_could_split_tasks_keep_their_rules(live: &Live) {
    for policy in ["edf-fm", "edf-wm", "nps-f", "c-nps-f"] {
        keeps_its_rules(live, policy);
    }
}
fn policies_by_quanta_keep_their_rules(live: &Live) {
    for policy in ["pd2", "g-edf:quantum=5ms"] {
        keeps_its_rules(live, policy);
    }
}

fn a_task_takes_turns_on_two_processors_under_edf_fm(live: &Live) {
    // A task of utilization 0.6 on each of two processors leaves no room for a third one: it is
    // split.
    let run = live.run("edf-fm", &[(12, 20), (18, 30), (24, 40)], ms(2000));
    run.is_sound();
    let split = run.processors_by_job();
    assert!(
        split
            .iter()
            .any(|jobs| jobs.iter().any(|j| *j == [0]) && jobs.iter().any(|j| *j == [1])),
        "{split:?}"
    );
}

fn jobs_go_through_two_processors_in_windows_under_edf_wm(live: &Live) {
    let set = set_of(&[(3, 20), (3, 20), (6, 20)]);
    let cpus = live.platform.in_cache_order();
    let slice = |place: usize, budget: u64, window: u64| Slice {
        cpu: cpus[place],
        budget: ms(budget),
        window: ms(window),
    };
    let assignment = Assignment::Slices(Slices {
        tasks: vec![
            vec![slice(0, 3, 20)],
            vec![slice(1, 3, 20)],
            vec![slice(0, 2, 10), slice(1, 4, 10)],
        ],
        cpus: cpus.clone(),
    });
    let run = live.run_set("edf-wm", &set, Some(assignment), ms(2000), 80);
    run.is_sound();
    let t3 = &run.statistics.tasks[2];
    let exhausted = t3.recorded.map(|r| r.budget_exhausted);
    assert_eq!((t3.jobs, exhausted), (100, Some(100)), "{}", run.statistics);
    assert_eq!(t3.migrations.values().sum::<u64>(), 100);
}

/// A server that is handed over from one processor to the other in the middle of every slot, and
/// back at its end.
fn a_server_changes_processors_in_every_slot_under_nps_f(live: &Live) {
    let set = set_of(&[(3, 20), (60, 200), (3, 20)]);
    let cpus = live.platform.in_cache_order();
    let serve = |start: u64, end: u64, server: u32| Serve {
        start: ms(start),
        end: ms(end),
        server,
    };
    let assignment = Assignment::Slots(Slots {
        slot: ms(20),
        server_of: vec![0, 1, 2],
        timetables: vec![
            Timetable {
                cpu: cpus[0],
                turns: vec![serve(0, 10, 0), serve(10, 20, 1)],
            },
            Timetable {
                cpu: cpus[1],
                turns: vec![serve(0, 10, 1), serve(10, 18, 2)],
            },
        ],
    });
    let run = live.run_set("nps-f", &set, Some(assignment), ms(2000), 80);
    run.is_sound();
    // 48 ms in pieces of 10 ms, each on the other processor.
    let mut moves: Vec<u64> = run.moves_by_job(TaskId(1));
    assert_eq!(moves.len(), 10, "{}", run.statistics);
    // Where the machine stands still for a piece and more, a job goes on where it was: two changes
    // fewer for each piece that has begun.
    let (gaps, longest) = (run.outcome.gaps, run.outcome.latest.nanos());
    let lost = gaps * 2 * (longest / ms(10).nanos() + 1);
    let sum: u64 = moves.iter().sum();
    assert!(sum + lost >= 40, "{moves:?}, {lost}\n{}", run.statistics);
    // Most jobs see nothing of that.
    moves.sort_unstable();
    assert!(moves[moves.len() / 2] >= 4, "{moves:?}\n{}", run.statistics);
}

/// All at one moment of the clock, each at its phase; a moment that has passed is refused.
fn tasks_are_released_at_the_moment_that_is_asked_for(live: &Live) {
    let set = phased(&[(2, 20, 0), (2, 20, 5), (2, 20, 7)]);
    let works =
        || -> Vec<Box<dyn Work>> { set.ids().map(|_| Box::new(SpinFor(ms(1))) as _).collect() };
    let at = execute::kernel::monotonic() + 1_000_000_000;
    let settings = |at: u64| Settings {
        horizon: ms(200),
        release_at: Some(at),
        ..Settings::default()
    };
    let run = live
        .run_works("g-edf", &set, None, works(), &settings(at))
        .unwrap();
    run.is_sound();
    assert_eq!(run.outcome.origin, at);
    let first = |task: u32| {
        let mut of = run.events.iter().filter(|e| e.task.0 == task);
        let release = of.find(|e| e.kind == EventKind::Release).unwrap();
        release.deadline().nanos() - ms(20).nanos()
    };
    assert_eq!(
        [first(0), first(1), first(2)],
        [0, ms(5).nanos(), ms(7).nanos()]
    );
    let past = live.run_works("g-edf", &set, None, works(), &settings(at));
    let e = past.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(e.contains("too late for the moment of release"), "{e}");
}

/// Spins for a millisecond, and says so where it is anything but an ordinary thread.
struct Ordinary(std::sync::Arc<std::sync::atomic::AtomicBool>);
impl Work for Ordinary {
    fn job(&mut self, number: u64, stop: &std::sync::atomic::AtomicBool) {
        SpinFor(ms(1)).job(number, stop);
        let is_ordinary = execute::kernel::Thread::current()
            .scheduling()
            .is_ok_and(|s| s == (libc::SCHED_OTHER, 0));
        if !is_ordinary {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// It does not disturb jobs, gets what they leave, and is counted; programs as well, one that ends
/// early and one that never does.
fn best_effort_work_fills_the_rest(live: &Live) {
    let set = phased(&[(4, 20, 0), (6, 30, 5)]);
    let works = set
        .ids()
        .map(|_| Box::new(SpinFor(ms(2))) as Box<dyn Work>)
        .collect();
    let raised = std::sync::Arc::default();
    let program = |script: &str| Effort::Program {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        rights: Rights::default(),
    };
    let settings = Settings {
        horizon: ms(1500),
        best_effort: Efforts::new(vec![
            (
                "c thread".to_owned(),
                Effort::Work(Box::new(Ordinary(std::sync::Arc::clone(&raised)))),
            ),
            ("a ends".to_owned(), program("exit 3")),
            (
                "b never ends".to_owned(),
                program("trap '' TERM; while :; do :; done"),
            ),
        ]),
        ..Settings::default()
    };
    let run = live
        .run_works("g-edf", &set, None, works, &settings)
        .unwrap();
    run.is_sound();
    assert_eq!(
        run.statistics.tasks.iter().map(|t| t.released).sum::<u64>(),
        75 + 50
    );
    let [ended, endless, thread] = &run.outcome.best_effort[..] else {
        panic!("{:?}", run.outcome.best_effort)
    };
    assert_eq!(
        (ended.name.as_str(), ended.ended),
        ("a ends", Some(How::Exited(3)))
    );
    assert_eq!(
        (endless.name.as_str(), endless.rounds, endless.ended),
        ("b never ends", 0, None)
    );
    assert!(thread.rounds > 10, "{thread:?}");
    // Each round takes a millisecond of processor time at least, and both had no more than there
    // is.
    assert!(
        thread.executed.nanos() >= ms(1).nanos() * thread.rounds,
        "{thread:?}"
    );
    assert!(endless.executed > ms(10), "{endless:?}");
    let there = 2 * run.outcome.end.nanos() + ms(1200).nanos();
    assert!(thread.executed.nanos() + endless.executed.nanos() < there);
    assert!(!raised.load(std::sync::atomic::Ordering::Relaxed));
}

/// A fork keeps the memory of its process, which jobs may wait for: programs are there before the
/// first release, and begin with it. One that cannot be started ends the run before it begins.
fn best_effort_programs_are_there_before_the_first_release(live: &Live) {
    let set = phased(&[(4, 20, 0)]);
    let works = || vec![Box::new(SpinFor(ms(2))) as Box<dyn Work>];
    let directory = tempfile::tempdir().unwrap();
    let (born, begun) = (
        directory.path().join("born"),
        directory.path().join("begun"),
    );
    let settings = |command: &[&str], at| Settings {
        horizon: ms(300),
        release_at: Some(at),
        best_effort: Efforts::new(vec![(
            "notes".to_owned(),
            Effort::Program {
                command: command.iter().map(|word| (*word).to_owned()).collect(),
                rights: Rights::default(),
            },
        )]),
        ..Settings::default()
    };
    // Since the machine was turned on, as births are counted, too.
    let up = || {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // A program takes its time to be there on a machine that is busy.
    let (at, release) = (execute::kernel::monotonic() + 2_000_000_000, up() + 2.0);
    let script = format!(
        "cat /proc/$$/stat > {}; cat /proc/uptime > {}",
        born.display(),
        begun.display()
    );
    let notes = settings(&["sh", "-c", &script], at);
    live.run_works("g-edf", &set, None, works(), &notes)
        .unwrap()
        .is_sound();
    let born = std::fs::read_to_string(born).unwrap();
    // The 22nd word, and the 20th behind the name in parentheses (proc(5)).
    let born = born
        .rsplit(") ")
        .next()
        .unwrap()
        .split(' ')
        .nth(19)
        .unwrap();
    let born = born.parse::<f64>().unwrap() / 100.0;
    let begun = std::fs::read_to_string(begun).unwrap();
    let begun = begun.split(' ').next().unwrap().parse::<f64>().unwrap();
    // Both are told in hundredths of a second.
    assert!(born < release - 0.02, "{born} {release}");
    assert!(begun > release - 0.03, "{begun} {release}");

    let at = execute::kernel::monotonic() + 60_000_000_000;
    let missing = settings(&["/no/such/program"], at);
    let e = live.run_works("g-edf", &set, None, works(), &missing);
    let e = e.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(e.contains("best effort notes: cannot start"), "{e}");
    assert!(
        execute::kernel::monotonic() < at,
        "it had waited for the release"
    );
}

live_tests!(
    jobs_execute_for_no_longer_than_the_trace_leaves_room_for,
    best_effort_work_fills_the_rest,
    best_effort_programs_are_there_before_the_first_release,
    tasks_are_released_at_the_moment_that_is_asked_for,
    partitioned_edf_keeps_its_rules_and_every_job_is_done,
    global_edf_keeps_its_rules,
    what_a_processor_could_not_do_while_it_stood_still_is_not_counted,
    a_policy_that_does_not_keep_the_rules_is_found_out,
    c_edf_keeps_its_rules,
    cache_aware_edf_keeps_its_rules,
    fixed_priorities_keep_their_rules,
    policies_that_could_split_tasks_keep_their_rules,
    policies_by_quanta_keep_their_rules,
    a_task_takes_turns_on_two_processors_under_edf_fm,
    jobs_go_through_two_processors_in_windows_under_edf_wm,
    a_server_changes_processors_in_every_slot_under_nps_f
);
