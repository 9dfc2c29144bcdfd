//! Random task sets of some milliseconds, and the simulator that the tests of this crate are held
//! against.

use model::assignment::Clustered;
use model::watch::Silent;
use model::{Assignment, CpuSet, Details, Duration, Platform, Ratio, TaskSet, Timing};
use policy::{Setup, Spec};
use simulate::{Releases, Scenario, Summary};
use testing::random::Random;
use testing::sets::task_ns as timing;

/// A set with phases and working sets, on some processors, with a way in which its jobs come.
#[derive(Debug)]
pub struct Case {
    pub set: TaskSet,
    pub m: u32,
    /// Are all times and releases whole milliseconds?
    pub whole: bool,
    pub scenario: Scenario,
}

const MS: u64 = 1_000_000;

impl Case {
    /// The case of this seed: from light to full, deadlines often equal to periods, phases and gaps
    /// of all kinds.
    pub fn random(seed: u64) -> Case {
        Case::make(seed, Random::new(!seed).one_in(8))
    }

    /// The same of tasks of more than half a processor, which do not pack well.
    pub fn heavy(seed: u64) -> Case {
        Case::make(seed, true)
    }

    fn make(seed: u64, heavy: bool) -> Case {
        let r = &mut Random::new(seed);
        let m = 1 + r.below(4) as u32;
        let whole = r.one_in(2);
        let implicit = heavy || r.one_in(2);
        let step = if whole { MS } else { MS / 10 };
        let periods: &[u64] = match r.below(3) {
            0 => &[4, 6, 12],
            1 => &[3, 4, 5, 6, 8, 10, 15, 20],
            _ => &[5, 7, 9, 11, 13, 16, 17],
        };
        // Up to this many hundredths of m processors.
        let most = (40 + r.below(61)) * u64::from(m);
        // Tasks of more than half a processor do not pack well.
        let (lightest, heaviest) = if r.one_in(4) {
            (50, 75)
        } else {
            (0, 1 + r.below(100))
        };
        let (mut total, mut timings) = (0, Vec::new());
        for _ in 0..1 + r.below(12) {
            let odd = if whole { 0 } else { r.below(10) * step };
            let period = periods[r.below(periods.len() as u64) as usize] * MS + odd;
            let deadline = match (implicit, r.below(6)) {
                (true, _) => period,
                (_, 0) => step * (1 + r.below(2 * period / step)),
                _ => step * (1 + r.below(period / step)),
            };
            let part = |percent: u64| deadline.min(period) * percent / 100 / step;
            let shortest = part(lightest).max(1);
            let wcet = step * (shortest + r.below(part(heaviest).saturating_sub(shortest).max(1)));
            let share = wcet * 100 / period + 1;
            if total + share <= most {
                total += share;
                timings.push(timing(wcet, period, deadline));
            }
        }
        if timings.is_empty() {
            timings.push(timing(step, 4 * MS, 4 * MS));
        }
        let (late, unaligned) = (r.one_in(2), !whole && r.one_in(2));
        let details = |(i, t): (usize, &Timing)| {
            let phase = match (late, unaligned) {
                (false, _) => 0,
                (true, false) => r.below(t.period.nanos() / MS + 1) * MS,
                (true, true) => r.below(t.period.nanos()),
            };
            let mut details = Details::named(format!("T{i}"));
            details.phase = Duration::from_nanos(phase);
            details.wss = format!("{}KiB", 64 + 64 * r.below(16)).parse().ok();
            details
        };
        let details: Vec<Details> = timings.iter().enumerate().map(details).collect();
        let horizon = Duration::from_millis(120 + r.below(120));
        let releases = match (r.below(3), whole) {
            (0, _) => Releases::Periodic,
            (_, true) => Releases::Given(releases(r, &timings, &details, horizon)),
            (_, false) => Releases::Sporadic(Ratio::new(r.below(100), 100).unwrap()),
        };
        Case {
            set: TaskSet::from_timings(timings)
                .unwrap()
                .with_details(details)
                .unwrap(),
            m,
            whole,
            scenario: Scenario {
                releases,
                horizon,
                seed,
                ..Scenario::default()
            },
        }
    }

    pub fn timings(&self) -> &[Timing] {
        self.set.timings()
    }

    pub fn is_implicit(&self) -> bool {
        self.timings().iter().all(Timing::has_implicit_deadline)
    }

    /// Runs the case under a policy.
    pub fn run(&self, policy: &str, assignment: Option<&Assignment>) -> Summary {
        let spec: Spec = policy.parse().unwrap();
        let platform = Platform::builtin(&format!("symmetric:m={}", self.m)).unwrap();
        let setup = Setup {
            set: &self.set,
            platform: &platform,
            assignment,
            quantum: Duration::from_millis(1),
        };
        let plan = spec.plan(&setup).unwrap();
        let (summary, ()) = simulate::simulate(
            plan,
            &self.set,
            &platform,
            &self.scenario,
            None,
            &Silent,
            (),
        )
        .unwrap();
        summary
    }

    /// Asserts that no deadline is missed.
    pub fn assert_no_miss(&self, test: &str, policy: &str, assignment: Option<&Assignment>) {
        let summary = self.run(policy, assignment);
        assert_eq!(
            summary.misses(),
            0,
            "{test}, {policy}: {self:?} {assignment:?}"
        );
    }

    /// Asserts that no job responds later than its task's bound.
    pub fn assert_responses(&self, summary: &Summary, bounds: &[Duration], test: &str) {
        for (task, bound) in summary.tasks.iter().zip(bounds) {
            let worst = task.response_max;
            assert!(worst <= *bound, "{test}: {worst} after {bound}, {self:?}");
        }
    }

    /// Asserts that no job is later than its task's bound; how close it came.
    pub fn assert_tardiness(&self, summary: &Summary, bounds: &[Duration], test: &str) -> f64 {
        let mut closest = 0.0_f64;
        for (task, bound) in summary.tasks.iter().zip(bounds) {
            let worst = task.tardiness_max;
            assert!(worst <= *bound, "{test}: {worst} after {bound}, {self:?}");
            closest = closest.max(worst.nanos() as f64 / bound.nanos().max(1) as f64);
        }
        closest
    }

    /// An assignment of tasks to processors.
    pub fn partition(&self, processor_of: &[u32]) -> Assignment {
        Assignment::Clustered(Clustered {
            clusters: analyze::semi::processors(self.m)
                .into_iter()
                .map(|cpu| CpuSet::from_iter([cpu]))
                .collect(),
            cluster_of: processor_of.to_vec(),
        })
    }
}

/// Sporadic releases on whole milliseconds.
fn releases(
    r: &mut Random,
    timings: &[Timing],
    details: &[Details],
    horizon: Duration,
) -> Vec<Vec<u64>> {
    let one = |(t, d): (&Timing, &Details)| {
        let mut at = d.phase.nanos();
        let mut all = Vec::new();
        while at < horizon.nanos() {
            all.push(at);
            let gap = if r.one_in(3) { r.below(8) * MS } else { 0 };
            at += t.period.nanos() + gap;
        }
        all
    };
    timings.iter().zip(details).map(one).collect()
}
