//! Random sets of multithreaded tasks as 003 §4.1 has them.
//!
//! The tasks of a multithreaded task (MTT) have one period and one execution cost. A utilization is
//! that of each task: so the numbers of MTTs are those of the paper (2,700 in 500 sets). Tasks are
//! added until their utilization is between 55 % and 65 % of the processors; a set that goes beyond
//! is drawn anew.

use generate::Random;
use model::{Bytes, Details, Duration, Error, Pattern, Result, TaskSet, Timing, Workload};
use std::fmt;
use std::str::FromStr;

/// From what utilizations are drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Distribution {
    /// Uniform in [0.01, 0.1].
    Light,
    /// Uniform in [0.1, 0.4].
    Medium,
    /// Uniform in [0.5, 0.9].
    Heavy,
    /// Uniform in [0.01, 0.9].
    Wide,
    /// Half of the MTTs in [0.01, 0.1], half in [0.5, 0.9], at least one in each.
    Bimodal,
}

impl Distribution {
    /// All of them, in the order of the paper.
    pub const ALL: [Distribution; 5] = [
        Distribution::Light,
        Distribution::Medium,
        Distribution::Heavy,
        Distribution::Wide,
        Distribution::Bimodal,
    ];

    /// As options and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Distribution::Light => "light",
            Distribution::Medium => "medium",
            Distribution::Heavy => "heavy",
            Distribution::Wide => "wide",
            Distribution::Bimodal => "bimodal",
        }
    }

    /// As the paper writes it.
    pub const fn range(self) -> &'static str {
        match self {
            Distribution::Light => "[0.01, 0.1]",
            Distribution::Medium => "[0.1, 0.4]",
            Distribution::Heavy => "[0.5, 0.9]",
            Distribution::Wide => "[0.01, 0.9]",
            Distribution::Bimodal => "bimodal",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Distribution {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Distribution::ALL.into_iter().find(|d| d.name() == text);
        found.ok_or_else(|| {
            Error::new(format!("unknown distribution `{text}`"))
                .remedy("known are `light`, `medium`, `heavy`, `wide` and `bimodal`")
        })
    }
}

/// Utilization as parts of the processors.
const LEAST: f64 = 0.55;
const MOST: f64 = 0.65;
/// Periods in milliseconds.
const PERIODS: (u64, u64) = (20, 2400);
/// No job executes for less.
const LEAST_COST: Duration = Duration::from_millis(3);
/// Tasks of an MTT.
const MOST_THREADS: u64 = 4;
/// A working set has this for each [`LEAST_COST`] of a job, and no more than that.
const WSS_STEP: u64 = 128 << 10;
const MOST_WSS: u64 = 15 << 19;

/// The set of this number: by itself, whichever others are drawn.
///
/// # Errors
/// A platform of which a single task is more than 65 %: no set is found.
pub fn draw(
    distribution: Distribution,
    pattern: Pattern,
    processors: u64,
    seed: u64,
    number: u64,
) -> Result<TaskSet> {
    let kind = Distribution::ALL.iter().position(|d| *d == distribution);
    let mut random = Random::new(seed, (number << 3) | kind.unwrap_or(0) as u64);
    for _ in 0..100_000 {
        if let Some(mtts) = try_once(distribution, processors, &mut random) {
            return task_set(&mtts, pattern);
        }
    }
    Err(Error::new(format!(
        "no set of distribution `{distribution}` was found for {processors} processors"
    ))
    .remedy("choose a platform with more processors, or another distribution"))
}

/// An MTT: period, execution cost of each task, tasks.
type Mtt = (Duration, Duration, u64);

fn try_once(distribution: Distribution, processors: u64, random: &mut Random) -> Option<Vec<Mtt>> {
    let mut mtts = Vec::new();
    let mut sum = 0.0;
    let (mut light, mut heavy) = (false, false);
    while sum < LEAST * processors as f64 {
        let (low, high) = match distribution {
            Distribution::Light => (0.01, 0.1),
            Distribution::Medium => (0.1, 0.4),
            Distribution::Heavy => (0.5, 0.9),
            Distribution::Wide => (0.01, 0.9),
            Distribution::Bimodal if random.below(2) == 0 => (0.01, 0.1),
            Distribution::Bimodal => (0.5, 0.9),
        };
        (light, heavy) = (light || high == 0.1, heavy || low == 0.5);
        let utilization = random.between(low, high);
        let threads = (1 + random.below(MOST_THREADS)).min(processors);
        // Periods that leave enough for the least cost.
        let shortest = (LEAST_COST.nanos() as f64 / 1e6 / utilization).ceil() as u64;
        let shortest = shortest.max(PERIODS.0);
        let period = shortest + random.below(PERIODS.1 + 1 - shortest);
        let cost = Duration::from_micros((utilization * period as f64 * 1e3) as u64);
        mtts.push((Duration::from_millis(period), cost.max(LEAST_COST), threads));
        sum += utilization * threads as f64;
    }
    let both = distribution != Distribution::Bimodal || (light && heavy);
    (sum <= MOST * processors as f64 && both).then_some(mtts)
}

fn task_set(mtts: &[Mtt], pattern: Pattern) -> Result<TaskSet> {
    let mut tasks = Vec::new();
    for (mtt, (period, cost, threads)) in mtts.iter().enumerate() {
        let steps = cost.nanos().div_ceil(LEAST_COST.nanos());
        let wss = Bytes::new((steps * WSS_STEP).min(MOST_WSS));
        for thread in 0..*threads {
            tasks.push((
                Timing::implicit(*cost, *period),
                Details {
                    wss: Some(wss),
                    group: Some(format!("M{}", mtt + 1)),
                    workload: Some(Workload::Walk {
                        write_ratio: 0.0,
                        pattern,
                    }),
                    ..Details::named(format!("M{}-{}", mtt + 1, thread + 1))
                },
            ));
        }
    }
    TaskSet::new(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// 003 §4.1, set by set; and about 2,700 MTTs in 500 sets.
    #[test]
    fn sets_are_as_the_paper_says() {
        let mut count = 0;
        for distribution in Distribution::ALL {
            for number in 0..100 {
                let set = draw(distribution, Pattern::Random, 4, 1, number).unwrap();
                assert!((2.2 - 1e-3..=2.6).contains(&set.utilization_f64()));
                let mut mtts: BTreeMap<String, Vec<(Timing, Bytes)>> = BTreeMap::new();
                for id in set.ids() {
                    let details = set.details(id).unwrap();
                    let own = (set.timings()[id.index()], set.wss(id).unwrap());
                    mtts.entry(details.group.clone().unwrap())
                        .or_default()
                        .push(own);
                }
                count += mtts.len();
                for tasks in mtts.values() {
                    assert!(tasks.iter().all(|t| *t == tasks[0]) && tasks.len() <= 4);
                    let (timing, wss) = tasks[0];
                    let (cost, period) = (timing.wcet.nanos(), timing.period.nanos());
                    assert!(cost >= 3_000_000 && (20..=2400).contains(&(period / 1_000_000)));
                    let wanted = (cost.div_ceil(3_000_000) * 128).min(7680) << 10;
                    assert_eq!(wss.get(), wanted);
                }
            }
        }
        assert!((2_400..=3_000).contains(&count), "{count} MTTs");
    }

    #[test]
    fn a_set_is_known_by_its_number() {
        let of = |number| draw(Distribution::Wide, Pattern::Random, 4, 1, number).unwrap();
        assert_eq!(of(7).timings(), of(7).timings());
        assert_ne!(of(7).timings(), of(8).timings());
    }
}
