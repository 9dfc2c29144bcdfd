//! Four ways to release jobs: at once, out of phase, sporadically, and where it hurts most.

use super::sets::{Case, QUANTUM};
use model::watch::Silent;
use model::{Duration, Instant, TaskId, TaskSet};
use simulate::{Costs, Execution, Observer, Releases, Scenario, Summary};
use testing::random::Random;
use testing::times::us;
use trace::{Event, EventKind, Overhead};

/// How jobs are released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// All tasks at zero, then periodically.
    Synchronous,
    /// Periodically, with random phases in nanoseconds.
    Phased,
    /// With random phases and gaps.
    Sporadic,
    /// As soon as allowed after a job with a large working set has started or has just loaded it.
    Adverse,
}

impl Pattern {
    pub const ALL: [Pattern; 4] = [
        Pattern::Synchronous,
        Pattern::Phased,
        Pattern::Sporadic,
        Pattern::Adverse,
    ];
}

/// An accepted set with all that a run of it needs.
pub struct Run<'a> {
    pub case: &'a Case,
    pub set: &'a TaskSet,
    /// The policy with what it was built for.
    pub plan: &'a dyn Fn() -> policy::AnyPlan,
    pub costs: &'a Costs,
    /// Are releases at multiples of the quantum only?
    pub in_quanta: bool,
}

/// Jobs of the adversary's choice; the others come periodically.
const CHOSEN: usize = 40;

impl Run<'_> {
    /// The summary of a run, and its releases.
    pub fn simulate(&self, pattern: Pattern) -> (Summary, Vec<Vec<u64>>) {
        let mut random = Random::new(self.case.seed ^ 0x5eed);
        let periods: Vec<Duration> = self.set.timings().iter().map(|t| t.period).collect();
        let longest = periods.iter().copied().max().unwrap_or_default();
        let horizon = longest.nanos() * 4 + us(100_000).nanos();
        let spread = [us(3), us(400), longest][random.below(3) as usize].nanos();
        let mut releases: Vec<Vec<u64>> = Vec::new();
        for period in &periods {
            let first = match pattern {
                Pattern::Synchronous => 0,
                Pattern::Phased | Pattern::Sporadic => self.grid(random.below(spread + 1)),
                Pattern::Adverse => self.grid(random.below(2_000)),
            };
            releases.push(vec![first]);
            if pattern == Pattern::Adverse {
                continue;
            }
            let gaps = match pattern {
                Pattern::Sporadic => period.nanos() / random.among(3, 20),
                _ => 0,
            };
            let list = releases.last_mut().unwrap();
            let mut next = first;
            loop {
                next = self.grid(next + period.nanos() + random.below(gaps + 1));
                if next >= horizon {
                    break;
                }
                list.push(next);
            }
        }
        if pattern == Pattern::Adverse {
            self.choose(&mut releases, &periods, horizon, &mut random);
        }
        let execution = match random.one_in(4) {
            true => Execution::Uniform(model::Ratio::new(1, 2).unwrap(), model::Ratio::ONE),
            false => Execution::default(),
        };
        let summary = self.run(&releases, horizon, execution, ()).0;
        (summary, releases)
    }

    /// Up to the next instant at which jobs may be released.
    fn grid(&self, time: u64) -> u64 {
        match self.in_quanta {
            true => time.next_multiple_of(QUANTUM.nanos()),
            false => time,
        }
    }

    /// Release after release: of the task that may come next, at the first instant that hurts, or
    /// at once.
    fn choose(
        &self,
        releases: &mut [Vec<u64>],
        periods: &[Duration],
        horizon: u64,
        random: &mut Random,
    ) {
        let delay = |task: usize| {
            self.costs
                .cpmd
                .get(task)
                .and_then(|row| row.first())
                .copied()
                .unwrap_or(0)
        };
        // Runs are looked at up to where the next release may be.
        let mut hurts: Vec<(u64, TaskId)> = Vec::new();
        for chosen in 0.. {
            let eligible = |task: &usize| releases[*task].last().unwrap() + periods[*task].nanos();
            let task = (0..periods.len()).min_by_key(eligible).unwrap();
            let from = eligible(&task);
            if from >= horizon {
                return;
            }
            if chosen >= CHOSEN || random.one_in(6) {
                releases[task].push(self.grid(from));
                continue;
            }
            let until = from + periods[task].nanos() / 2;
            let (_, seen) = self.run(
                releases,
                until + 1,
                Execution::default(),
                Victims::default(),
            );
            hurts.clear();
            hurts.extend(seen.0.into_iter().filter(|(at, victim)| {
                *at >= from
                    && *at <= until
                    && victim.index() != task
                    && delay(victim.index()) > delay(task)
            }));
            let best = hurts
                .iter()
                .max_by_key(|(at, victim)| (delay(victim.index()), std::cmp::Reverse(*at)));
            let at = best.map_or(from, |(at, _)| at + random.among(1, 50));
            releases[task].push(self.grid(at));
        }
    }

    fn run<O: Observer>(
        &self,
        releases: &[Vec<u64>],
        horizon: u64,
        execution: Execution,
        observer: O,
    ) -> (Summary, O) {
        let scenario = Scenario {
            releases: Releases::Given(releases.to_vec()),
            execution,
            horizon: Duration::from_nanos(horizon),
            seed: self.case.seed,
            ..Scenario::default()
        };
        let (plan, platform) = ((self.plan)(), &self.case.platform);
        simulate::simulate(
            plan,
            self.set,
            platform,
            &scenario,
            Some(self.costs),
            &Silent,
            observer,
        )
        .unwrap()
    }
}

/// When jobs have started, or have loaded their working set again: whoever preempts them now costs
/// them most.
#[derive(Default)]
struct Victims(Vec<(u64, TaskId)>);

impl Observer for Victims {
    const EVENTS: bool = true;
    fn event(&mut self, event: Event) {
        let hurts = match event.kind {
            EventKind::Start => true,
            EventKind::OverheadEnd => event.overhead_kind() == Some(Overhead::Cpmd),
            _ => false,
        };
        if hurts {
            self.0.push((Instant::nanos(event.time), event.task));
        }
    }
}
