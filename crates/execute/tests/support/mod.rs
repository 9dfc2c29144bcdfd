//! What live tests share: one run at a time, on two processors, checked by the checker and added
//! up.
//!
//! A file of live tests has a `main` of its own ([`live_tests`]): what cannot be run here is
//! reported as ignored, with the reason.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod guard;

use analyze::assign::{How, assign};
use execute::{Outcome, Settings};
use libtest_mimic::{Arguments, Completion, Trial};
use model::watch::Silent;
use model::{
    Assignment, Bytes, CpuSet, Details, Duration, Error, Platform, Provenance, TaskId, TaskSet,
    Timing,
};
use policy::{Decisions, Event, Job, Place, Setup, Spec};
use std::process::ExitCode;
use trace::check::Options;
use trace::{Checker, Header, Origin, Sink, Stage, Statistics, Summary, VecSink, Verdict};
use workload::Work;

pub use testing::sets::set_ms as set_of;
pub use testing::times::ms;

/// A noisy machine with two processors may be so late with a decision, besides the time in which it
/// stood still. Less than most jobs take: what runs out of order is found.
pub const TOLERANCE: Duration = ms(5);

/// The processors that runs have.
pub struct Live {
    pub platform: Platform,
}

/// Why nothing can be run for real here, if so.
pub fn live() -> Result<Live, String> {
    // On a thread of its own, which takes its rights with it.
    let tried =
        std::thread::spawn(|| machine::realtime::raise(machine::realtime::WATCHDOG).map(drop));
    tried.join().unwrap().map_err(|e| e.to_string())?;
    let mut platform = machine::this_machine().map_err(|e| e.to_string())?.platform;
    if platform.usable().len() < 2 {
        return Err("two processors are needed".to_owned());
    }
    // Two are enough, and the others stay free for whoever else is at work.
    let two: CpuSet = platform.in_cache_order().into_iter().take(2).collect();
    for processor in &mut platform.processors {
        processor.online &= two.contains(processor.id);
    }
    Ok(Live { platform })
}

/// A test that asserts what it has to, or says why this machine cannot tell today.
pub type Test = fn(&Live) -> Completion;

/// Runs tests one after the other.
pub fn main(tests: impl IntoIterator<Item = (String, Test)>) -> ExitCode {
    let trial = |(name, test): (String, Test)| {
        Trial::ignorable_test(name, move || {
            Ok(match live() {
                Ok(live) => test(&live),
                Err(why) => Completion::ignored_with(why),
            })
        })
    };
    let trials = tests.into_iter().map(trial).collect();
    let arguments = Arguments {
        test_threads: Some(1),
        ..Arguments::from_args()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Live tests by their names, for [`main`]: each is a `fn(&Live)` that returns nothing or a
/// [`testing::Outcome`].
#[macro_export]
macro_rules! by_name {
    ($($name:ident),+ $(,)?) => {
        [$((
            stringify!($name).to_owned(),
            (|live| testing::Report::completion($name(live))) as support::Test,
        )),+]
    };
}

/// The `main` of a file of live tests, each a `fn(&Live)`.
#[macro_export]
macro_rules! live_tests {
    ($($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            support::main(by_name!($($name),+))
        }
    };
}

/// What a policy of one processor's own knows of its jobs.
#[derive(Clone, Default)]
pub struct Ready {
    pub jobs: Vec<Job>,
    pub running: Option<TaskId>,
}

impl Ready {
    pub fn happen(&mut self, event: Event) {
        match event {
            Event::Ready(job) => self.jobs.push(job),
            Event::Done(task) => {
                self.jobs.retain(|j| j.task != task);
                self.running = self.running.filter(|t| *t != task);
            }
            Event::Exhausted(_) | Event::Timer => {}
        }
    }

    /// From now on this one runs, or nobody.
    pub fn run(&mut self, task: Option<TaskId>, out: &mut impl Decisions) {
        if task != std::mem::replace(&mut self.running, task) {
            match task {
                Some(task) => out.run(Place(0), task),
                None => out.idle(Place(0)),
            }
        }
    }
}

/// What came of a run.
pub struct Ran {
    pub outcome: Outcome,
    pub verdict: Verdict,
    pub statistics: Summary,
    pub events: Vec<trace::Event>,
}

impl Ran {
    /// No rule broken, nothing lost, nobody stuck.
    pub fn is_sound(&self) {
        assert_eq!(self.outcome.lost, 0);
        assert!(self.outcome.stuck.is_empty());
        let at = self.verdict.first.first().map_or(0, |v| v.time_ns);
        let near = |e: &&trace::Event| {
            e.time.nanos() + 60_000_000 > at && e.time.nanos() < at + 10_000_000
        };
        let first: Vec<String> = self
            .events
            .iter()
            .filter(near)
            .map(ToString::to_string)
            .collect();
        let broken: Vec<_> = self
            .verdict
            .first
            .iter()
            .map(|v| (v.rule, &v.text))
            .collect();
        assert!(self.verdict.is_clean(), "{broken:#?}\n{first:#?}");
        let recorded = self.statistics.recorded.as_ref();
        assert_eq!(recorded.map(|r| r.senseless_events), Some(0));
    }
}

impl Ran {
    /// By task and job, the processors on which the job ran, ascending.
    pub fn processors_by_job(&self) -> Vec<Vec<Vec<u32>>> {
        let mut all: Vec<Vec<Vec<u32>>> = vec![Vec::new(); self.statistics.tasks.len()];
        for event in self.events.iter().filter(|e| e.kind.puts_on()) {
            let jobs = &mut all[event.task.index()];
            jobs.resize(jobs.len().max(event.job as usize + 1), Vec::new());
            let on = &mut jobs[event.job as usize];
            on.extend(event.cpu().map(|cpu| cpu.0));
            on.sort_unstable();
            on.dedup();
        }
        all
    }

    /// How often each job of a task that was completed went on on another processor.
    pub fn moves_by_job(&self, task: TaskId) -> Vec<u64> {
        let (mut all, mut moves, mut last) = (Vec::new(), 0, None);
        for event in self.events.iter().filter(|e| e.task == task) {
            if event.kind.puts_on() {
                let here = event.cpu();
                moves += u64::from(last.is_some_and(|last| last != here));
                last = Some(here);
            } else if event.kind == trace::EventKind::Completion {
                all.push(std::mem::take(&mut moves));
                last = None;
            }
        }
        all
    }
}

/// Spins for so much processor time: as exact as the clock, whatever else the machine does.
pub struct SpinFor(pub Duration);

impl Work for SpinFor {
    fn job(&mut self, _: u64, stop: &std::sync::atomic::AtomicBool) {
        let end = machine::clock::thread_time().nanos() + self.0.nanos();
        while machine::clock::thread_time().nanos() < end
            && !stop.load(std::sync::atomic::Ordering::Relaxed)
        {}
    }
}

/// A set of (WCET, period, phase) in milliseconds, with working sets of 64 KiB.
pub fn phased(tasks: &[(u64, u64, u64)]) -> TaskSet {
    let tasks = tasks.iter().enumerate().map(|(index, (e, p, phase))| {
        let details = Details {
            phase: ms(*phase),
            wss: Some(Bytes::from_kib(64)),
            ..Details::named(format!("T{}", index + 1))
        };
        (Timing::implicit(ms(*e), ms(*p)), details)
    });
    TaskSet::new(tasks.collect()).unwrap()
}

impl Live {
    /// The assignment that a policy needs.
    pub fn assign(&self, spec: &Spec, set: &TaskSet) -> Option<Assignment> {
        let made = assign(spec, set, &self.platform, &How::default());
        made.unwrap().unwrap()
    }

    /// Runs a set of (WCET, period) in milliseconds at half of the WCETs.
    pub fn run(&self, policy: &str, tasks: &[(u64, u64)], length: Duration) -> Ran {
        let set = set_of(tasks);
        let assignment = self.assign(&policy.parse().unwrap(), &set);
        self.run_set(policy, &set, assignment, length, 50)
    }

    /// Runs a set under an assignment, at `percent` of the WCETs.
    pub fn run_set(
        &self,
        policy: &str,
        set: &TaskSet,
        assignment: Option<Assignment>,
        length: Duration,
        percent: u64,
    ) -> Ran {
        let works = set
            .timings()
            .iter()
            .map(|t| {
                let time = Duration::from_nanos(t.wcet.nanos() * percent / 100);
                Box::new(SpinFor(time)) as Box<dyn Work>
            })
            .collect();
        let settings = Settings {
            horizon: length,
            ..Settings::default()
        };
        self.run_works(policy, set, assignment, works, &settings)
            .unwrap()
    }

    /// The head of the trace of a run.
    pub fn header(
        &self,
        policy: &str,
        set: &TaskSet,
        assignment: Option<Assignment>,
    ) -> Result<Header, Error> {
        let spec: Spec = policy.parse()?;
        let stage = Stage {
            policy: policy.to_owned(),
            assignment,
            quantum: spec.quantum(ms(1))?,
        };
        Ok(Header {
            origin: Origin::Real,
            ..Header::simulated(
                set.clone(),
                self.platform.clone(),
                stage,
                Provenance::default(),
            )
        })
    }

    /// Runs anything.
    pub fn run_works(
        &self,
        policy: &str,
        set: &TaskSet,
        assignment: Option<Assignment>,
        works: Vec<impl Into<execute::Performer>>,
        settings: &Settings,
    ) -> Result<Ran, Error> {
        self.run_in_turn(&[(policy, assignment)], None, set, works, settings)
    }

    /// Runs anything under several policies in turn.
    pub fn run_in_turn(
        &self,
        policies: &[(&str, Option<Assignment>)],
        turn: Option<Duration>,
        set: &TaskSet,
        works: Vec<impl Into<execute::Performer>>,
        settings: &Settings,
    ) -> Result<Ran, Error> {
        let (mut stages, mut plans) = (Vec::new(), Vec::new());
        for (policy, assignment) in policies {
            let spec: Spec = policy.parse()?;
            plans.push(spec.plan(&Setup {
                set,
                platform: &self.platform,
                assignment: assignment.as_ref(),
                quantum: ms(1),
            })?);
            stages.push(Stage {
                policy: (*policy).to_owned(),
                assignment: assignment.clone(),
                quantum: spec.quantum(ms(1))?,
            });
        }
        let header = Header {
            stages,
            ..self.header(policies[0].0, set, policies[0].1.clone())?
        };
        let mut sink = VecSink::default();
        // A hypervisor that stops the machine for a while is not what is tested.
        let settings = Settings {
            standstills: true,
            ..settings.clone()
        };
        let outcome = execute::run_in_turn(
            &plans,
            turn,
            set,
            works,
            &settings,
            &Silent,
            &mut sink,
            |_| (),
        )?;
        // A dispatcher is above all others: that it wakes up late is the machine's doing.
        let options = Options {
            tolerance: TOLERANCE.max(outcome.latest.saturating_add(ms(1))),
            ..Options::for_trace(&header)
        };
        let mut sinks = (
            Checker::new(header.clone(), options)?,
            Statistics::new(&header, false),
        );
        for event in &sink.events {
            sinks.record(*event);
        }
        let (checker, statistics) = sinks;
        if outcome.gaps > 0 {
            eprintln!("{} gaps, up to {}", outcome.gaps, outcome.latest);
        }
        Ok(Ran {
            outcome,
            verdict: checker.finish(),
            statistics: statistics.summary(),
            events: sink.events,
        })
    }
}
