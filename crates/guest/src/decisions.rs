//! The decisions of a real run and those of the simulator, held against each other.
//!
//! The simulator gets the times that the jobs of the run executed. What is compared is the life of
//! each job: on how many processors' turns it ran, one after the other (on which, where each task
//! has its own), until its completion. Jobs are taken in the order of their releases, up to a
//! number of decisions.
//!
//! Where two moments that decide are closer than the run can tell, it may decide one way or the
//! other, and both are right: a job that is released just when another one ends either interrupts
//! it or does not. Differences of such jobs are counted apart: those within whose turns in either
//! schedule, of the same cluster, a moment of one kind is within [`CLOSE`] of one of the other
//! kind. A job that only one of both schedules completes is a difference, unless that is as close
//! to the end as moments may be apart.

use model::watch::Silent;
use model::{Duration, Error, Instant, Result};
use policy::Setup;
use simulate::{Execution, Scenario, Traced};
use std::collections::BTreeMap;
use trace::{Event, EventKind, Header, VecSink};

/// Moments that are as close are not told apart.
pub const CLOSE: Duration = Duration::from_micros(500);

/// A job that comes back to its processor so soon has not left it.
const BREAK: Duration = Duration::from_micros(100);

/// A job, by task and number.
pub(crate) type Name = (u32, u64);

/// A job's time on a processor without a break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// On which.
    pub cpu: u32,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
}

/// A job that completes.
#[derive(Clone, Default)]
struct Life {
    turns: Vec<Turn>,
    /// When the schedule took it off a processor for so short a time that its turn went on.
    breaks: Vec<Instant>,
    /// How long its turns are together.
    executed: Duration,
}

impl Life {
    /// Its turns, where those are one that lie about a break which the job has in another schedule,
    /// too: a timetable's. How long such a break takes in a run is how late two decisions are.
    fn turns_as(&self, other: &Life) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::with_capacity(self.turns.len());
        for turn in &self.turns {
            let is_break = |last: &Turn| {
                let near = |at: &Instant| at.since(last.to).max(last.to.since(*at)) <= CLOSE;
                last.cpu == turn.cpu
                    && turn.from.since(last.to) <= CLOSE
                    && other.breaks.iter().any(near)
            };
            match turns.last_mut() {
                Some(last) if is_break(last) => last.to = turn.to,
                _ => turns.push(*turn),
            }
        }
        turns
    }
}

/// What came of the comparison.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Compared {
    /// Decisions that were compared.
    pub decisions: usize,
    /// Jobs, or quanta.
    pub jobs: usize,
    /// Which of both.
    pub what: &'static str,
    /// Jobs whose turns are not the same, without those that are too close to tell.
    pub different: Vec<String>,
    /// Jobs whose turns are not the same, and too close to tell.
    pub close: usize,
}

/// The life of each job that completes. Where a processor had no
/// other job in between, two turns are one: the kernel itself or an ordinary program was there,
/// which is nobody's decision, and to the schedule the job executed. Where it was idle, or its
/// server ended, the schedule left the job without a processor, unless for so short a time that the
/// job has hardly left it: timetables of servers have such breaks.
fn lives(events: &[Event]) -> BTreeMap<Name, Life> {
    let mut open: BTreeMap<Name, Life> = BTreeMap::new();
    let mut lives = BTreeMap::new();
    // By processor, the job that it had last, and whether the schedule has left it without one
    // since.
    let mut latest: BTreeMap<u32, (Name, bool)> = BTreeMap::new();
    for event in events {
        let name = (event.task.0, event.job);
        let cpu = event.cpu().map_or(0, |cpu| cpu.0);
        match event.kind {
            kind if kind.puts_on() => {
                let life = open.entry(name).or_default();
                let goes_on = |turn: &Turn| match latest.get(&cpu) {
                    Some((last, left)) if *last == name && turn.cpu == cpu => {
                        !left || event.time.since(turn.to) <= BREAK
                    }
                    _ => false,
                };
                let before = life.turns.last().filter(|turn| goes_on(turn));
                let before = before.map(|turn| turn.to);
                let had_left = latest.insert(cpu, (name, false)).is_some_and(|had| had.1);
                if let Some(at) = before {
                    life.breaks.extend(had_left.then_some(at));
                    continue;
                }
                life.turns.push(Turn {
                    cpu,
                    from: event.time,
                    to: event.time,
                });
            }
            EventKind::Preemption | EventKind::Completion => {
                let Some(life) = open.get_mut(&name) else {
                    continue;
                };
                if let Some(last) = life.turns.last_mut() {
                    last.to = event.time;
                }
                if event.kind == EventKind::Completion {
                    let mut life = open.remove(&name).unwrap_or_default();
                    let lengths = life.turns.iter().map(|turn| turn.to.since(turn.from));
                    life.executed = lengths.fold(Duration::ZERO, Duration::saturating_add);
                    lives.insert(name, life);
                }
            }
            EventKind::Idle | EventKind::ServerEnd => {
                if let Some((_, left)) = latest.get_mut(&cpu) {
                    *left = true;
                }
            }
            _ => {}
        }
    }
    lives
}

/// Simulates what ran, with the execution times of the run.
///
/// # Errors
/// The trace does not say what it needs.
pub fn simulated(header: &Header, events: &[Event]) -> Result<Vec<Event>> {
    let mut executed: Vec<Vec<u64>> = vec![Vec::new(); header.tasks.len()];
    for ((task, _), life) in lives(events) {
        executed[task as usize].push(life.executed.nanos());
    }
    simulated_with(header, events, executed)
}

/// Simulates what ran. `executed`: by task, the times of the jobs that the run completed, in order;
/// what comes behind them does not complete.
///
/// # Errors
/// The trace does not say what it needs.
pub(crate) fn simulated_with(
    header: &Header,
    events: &[Event],
    mut executed: Vec<Vec<u64>>,
) -> Result<Vec<Event>> {
    if executed.iter().any(Vec::is_empty) {
        return Err(Error::new("a task has no complete job").remedy("run it for longer"));
    }
    let end = events.last().map_or(Instant::ZERO, |event| event.time);
    for times in &mut executed {
        times.push(2 * end.nanos());
    }
    let scenario = Scenario {
        execution: Execution::Given(executed),
        horizon: end.since(Instant::ZERO),
        ..Scenario::default()
    };
    events_of(header, &scenario)
}

/// What the simulator makes of the tasks of a trace under its first policy, without overheads.
///
/// # Errors
/// The trace does not say what it needs.
pub(crate) fn events_of(header: &Header, scenario: &Scenario) -> Result<Vec<Event>> {
    let stage = &header.stages[0];
    let setup = Setup {
        set: &header.tasks,
        platform: &header.platform,
        assignment: stage.assignment.as_ref(),
        quantum: stage.quantum.unwrap_or(Duration::from_millis(1)),
    };
    let plan = stage.policy.parse::<policy::Spec>()?.plan(&setup)?;
    let run = simulate::Run {
        set: &header.tasks,
        platform: &header.platform,
        scenario,
        costs: None,
        watch: &Silent,
    };
    let mut sink = VecSink::default();
    run.watched(plan, &mut Traced(&mut sink))?;
    Ok(sink.events)
}

/// Holds the first decisions of a run against those of the simulator.
pub fn compare(header: &Header, real: &[Event], simulated: &[Event], most: usize) -> Compared {
    let (run, virtual_run) = (lives(real), lives(simulated));
    // Those of semi-partitioned policies say where each slice, or each server, runs.
    let is_partitioned = match &header.stages[0].assignment {
        Some(model::Assignment::Clustered(c)) => c.clusters.iter().all(|set| set.len() == 1),
        assignment => assignment.is_some(),
    };
    let clusters = match &header.stages[0].assignment {
        Some(model::Assignment::Clustered(c)) => Some(c),
        _ => None,
    };
    let cluster_of = |task: u32| match clusters {
        Some(c) => c.cluster_of[task as usize] as usize,
        None => 0,
    };
    let count = clusters.map_or(1, |c| c.clusters.len());
    let moments: Vec<Moments> = (0..count)
        .map(|cluster| {
            // A server is no task's: only policies without clusters have any.
            let of_cluster =
                |e: &&Event| e.task == Event::NO_TASK || cluster_of(e.task.0) == cluster;
            Moments::of(simulated.iter().filter(of_cluster))
        })
        .collect();
    let ends = |events: &[Event]| events.last().map_or(Instant::ZERO, |event| event.time);
    let end = ends(real).min(ends(simulated));
    let mut compared = Compared {
        what: "jobs",
        ..Compared::default()
    };
    for release in real.iter().filter(|e| e.kind == EventKind::Release) {
        let name = (release.task.0, release.job);
        let moments = &moments[cluster_of(name.0)];
        if compared.decisions >= most {
            break;
        }
        let both = (run.get(&name), virtual_run.get(&name));
        let (real, simulated, differs) = match both {
            (Some(real), Some(simulated)) => {
                let (real, simulated) = (real.turns_as(simulated), simulated.turns.clone());
                let cpus = |turns: &[Turn]| match is_partitioned {
                    true => turns.iter().map(|turn| turn.cpu).collect(),
                    false => vec![0; turns.len()],
                };
                let differs = cpus(&real) != cpus(&simulated) || apart(&real, &simulated);
                (real, simulated, differs)
            }
            (None, None) => continue,
            // Only one of both completes it.
            (real, simulated) => {
                let turns = |life: Option<&Life>| life.map_or_else(Vec::new, |l| l.turns.clone());
                let (real, simulated) = (turns(real), turns(simulated));
                let last = real.iter().chain(&simulated).map(|turn| turn.to).max();
                if last.is_none_or(|to| far(to, end)) {
                    compared.note(name, &real, &simulated, moments);
                }
                continue;
            }
        };
        // Each turn begins and ends by a decision.
        compared.decisions += real.len() + 1;
        match differs {
            true => compared.note(name, &real, &simulated, moments),
            false => compared.jobs += 1,
        }
    }
    compared
}

impl Compared {
    /// A job whose turns are not the same.
    fn note(&mut self, name: Name, real: &[Turn], simulated: &[Turn], moments: &Moments) {
        self.jobs += 1;
        let are_close = |turns: &[Turn]| !turns.is_empty() && moments.are_close(turns);
        match are_close(real) || are_close(simulated) {
            true => self.close += 1,
            false => self.different.push(format!(
                "job {} of task {}: {real:?} in the run, {simulated:?} in the simulator",
                name.1 + 1,
                name.0 + 1
            )),
        }
    }
}

/// Are moments further apart than a run may be behind the simulator?
fn far(a: Instant, b: Instant) -> bool {
    a.since(b).max(b.since(a)).nanos() > 4 * CLOSE.nanos()
}

/// Do turns begin or end at moments that are [`far`] apart?
fn apart(real: &[Turn], simulated: &[Turn]) -> bool {
    let mut both = real.iter().zip(simulated);
    both.any(|(a, b)| far(a.from, b.from) || far(a.to, b.to))
}

/// Moments that decide.
struct Moments {
    /// Those that are the same in both schedules: releases, changes of servers, openings of
    /// windows.
    releases: Vec<Instant>,
    /// Those that depend on how long jobs executed: completions, ends of slices.
    completions: Vec<Instant>,
}

impl Moments {
    fn of<'a>(events: impl Iterator<Item = &'a Event> + Clone) -> Self {
        let times = |kinds: &[EventKind]| {
            let found = events.clone().filter(|e| kinds.contains(&e.kind));
            found.map(|e| e.time).collect()
        };
        Moments {
            releases: times(&[
                EventKind::Release,
                EventKind::ServerBegin,
                EventKind::ServerEnd,
                EventKind::Window,
            ]),
            completions: times(&[EventKind::Completion, EventKind::BudgetExhausted]),
        }
    }

    /// Is a moment of the first kind so close to one of the second, within the life of such turns,
    /// that they might have come the other way round?
    fn are_close(&self, turns: &[Turn]) -> bool {
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else {
            return true;
        };
        let near = |a: &[Instant], at: Instant| {
            let from = a.partition_point(|t| *t + CLOSE < at);
            a.get(from).is_some_and(|t| *t <= at + CLOSE)
        };
        let within = |t: &&Instant| **t + CLOSE >= first.from && **t <= last.to + CLOSE;
        let completions = self.completions.iter().filter(within);
        let mut before: Option<Instant> = None;
        completions.into_iter().any(|at| {
            let twice = before.replace(*at).is_some_and(|b| at.since(b) <= CLOSE);
            twice || near(&self.releases, *at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Platform, Provenance, TaskId, TaskSet, Timing};
    use trace::Stage;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn header() -> Header {
        let timings = [(2, 10), (9, 20)].map(|(c, p)| Timing::implicit(ms(c), ms(p)));
        let stage = Stage {
            policy: "g-edf".to_owned(),
            assignment: None,
            quantum: None,
        };
        let set = TaskSet::from_timings(timings.to_vec()).unwrap();
        Header::simulated(set, Platform::symmetric(1), stage, Provenance::default())
    }

    fn run() -> (Header, Vec<Event>) {
        let header = header();
        let scenario = Scenario {
            horizon: ms(100),
            ..Scenario::default()
        };
        let events = events_of(&header, &scenario).unwrap();
        (header, events)
    }

    #[test]
    fn a_simulated_run_equals_itself() {
        let (header, events) = run();
        let again = simulated(&header, &events).unwrap();
        let compared = compare(&header, &events, &again, 500);
        assert_eq!((compared.different.len(), compared.close), (0, 0));
        assert!(compared.jobs >= 14, "{compared:?}");
    }

    #[test]
    fn a_job_that_the_kernel_interrupts_is_the_same() {
        let (header, mut events) = run();
        let again = simulated(&header, &events).unwrap();
        let place = events.iter().position(|e| e.kind == EventKind::Start);
        let start = events[place.unwrap()];
        let (cpu, later) = (
            start.cpu().unwrap(),
            start.time + Duration::from_micros(100),
        );
        let resumed = later + Duration::from_micros(50);
        let pair = [
            Event::preemption(later, cpu, start.task, start.job),
            Event::resumption(resumed, cpu, cpu, start.task, start.job),
        ];
        events.splice(place.unwrap() + 1..place.unwrap() + 1, pair);
        let compared = compare(&header, &events, &again, 500);
        assert_eq!((compared.different.len(), compared.close), (0, 0));
        // Where nobody had the processor for a while, it was taken away: two turns, and not one.
        let place = place.unwrap();
        events.insert(place + 2, Event::idle(later, cpu));
        let name = (start.task.0, start.job);
        let turns = |events: &[Event]| lives(events)[&name].turns.len();
        assert_eq!(turns(&events), turns(&again));
        events[place + 3].time = later + BREAK + BREAK;
        assert_eq!(turns(&events), turns(&again) + 1);
        // Where it is a break of a timetable, which the simulator has, too, it is one turn again.
        let shorter = |by: Duration| {
            let mut events = events.clone();
            events[place + 3].time = later + by;
            lives(&events)[&name].clone()
        };
        let (long, short) = (shorter(BREAK + BREAK), shorter(BREAK));
        assert_eq!(short.breaks, [later]);
        assert_eq!(long.turns_as(&short).len(), turns(&again));
        assert_eq!(
            long.turns_as(&lives(&again)[&name]).len(),
            turns(&again) + 1
        );
        assert_eq!(
            shorter(CLOSE + BREAK).turns_as(&short).len(),
            turns(&again) + 1
        );
    }

    #[test]
    fn a_job_that_runs_in_another_order_is_found() {
        let (header, mut events) = run();
        let again = simulated(&header, &events).unwrap();
        for event in &mut events {
            // The second job of the long task runs 5 ms later than it should.
            let moved =
                event.task == TaskId(1) && event.job == 1 && event.kind != EventKind::Release;
            if moved {
                event.time = event.time + ms(5);
            }
        }
        let compared = compare(&header, &events, &again, 500);
        assert_eq!(compared.different.len(), 1, "{compared:?}");
    }

    #[test]
    fn a_job_that_only_the_simulator_completes_is_found() {
        let (header, events) = run();
        let again = simulated(&header, &events).unwrap();
        let lacks = |events: &[Event], task: u32, job: u64| -> Vec<Event> {
            let is_of = |e: &&Event| e.task != TaskId(task) || e.job != job;
            let kept = events
                .iter()
                .filter(|e| e.kind == EventKind::Release || is_of(e));
            kept.copied().collect()
        };
        // In the middle of the run, and at its end, where it may be behind.
        let compared = compare(&header, &lacks(&events, 1, 1), &again, 500);
        assert_eq!(compared.different.len(), 1, "{compared:?}");
        let other = compare(&header, &events, &lacks(&again, 0, 3), 500);
        assert_eq!(other.different.len(), 1, "{other:?}");
    }

    #[test]
    fn ties_of_another_cluster_excuse_nothing() {
        let timings = [(2, 10), (9, 20), (4, 10)].map(|(c, p)| Timing::implicit(ms(c), ms(p)));
        let set = TaskSet::from_timings(timings.to_vec()).unwrap();
        let cluster = |cpu| std::iter::once(model::CpuId(cpu)).collect();
        let stage = Stage {
            policy: "p-edf".to_owned(),
            assignment: Some(model::Assignment::Clustered(model::assignment::Clustered {
                clusters: vec![cluster(0), cluster(1)],
                cluster_of: vec![0, 0, 1],
            })),
            quantum: None,
        };
        let platform = Platform::symmetric(2);
        let header = Header::simulated(set, platform, stage, Provenance::default());
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let cpus = [model::CpuId(0), model::CpuId(1)];
        // A job of the first cluster; in the second one a release comes as a job ends.
        let of = |ends: u64| {
            vec![
                Event::release(at(0), cpus[0], TaskId(1), 0, at(20_000)),
                Event::start(at(0), cpus[0], TaskId(1), 0),
                Event::release(at(0), cpus[1], TaskId(2), 0, at(10_000)),
                Event::start(at(0), cpus[1], TaskId(2), 0),
                Event::completion(at(4000), cpus[1], TaskId(2), 0, ms(4)),
                Event::release(at(4100), cpus[1], TaskId(2), 1, at(14_000)),
                Event::completion(at(ends), cpus[0], TaskId(1), 0, ms(9)),
                Event::end(at(30_000)),
            ]
        };
        let compared = compare(&header, &of(15_000), &of(9_000), 500);
        assert_eq!((compared.close, compared.different.len()), (0, 1));
    }
}
