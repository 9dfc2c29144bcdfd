//! What is simulated besides the policy: when jobs are released, how long they execute, what
//! happens to overruns, how long the simulation lasts.

use crate::chance::{Chance, MOST};
use crate::random::{self, Stream};
use model::{CpuId, Duration, Enforcement, Error, Ratio, Result, TaskId, TaskSet};

/// When jobs are released. The first job of a task comes at its phase, but for [`Releases::Given`].
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Releases {
    /// Exactly one period apart.
    #[default]
    Periodic,
    /// One period and a random gap apart, uniform from zero to this part of the period.
    Sporadic(Ratio),
    /// One period and a random gap apart, a part of the period from this distribution.
    SporadicBy(Chance),
    /// At these instants, in nanoseconds since the start, ascending, for each task.
    Given(Vec<Vec<u64>>),
}

/// How long jobs execute, without overheads.
#[derive(Clone, PartialEq, Debug)]
pub enum Execution {
    /// This part of the WCET, rounded up to a nanosecond; above one it is an overrun.
    Fraction(Ratio),
    /// Uniform between these parts of the WCET.
    Uniform(Ratio, Ratio),
    /// A part of the WCET from this distribution, rounded up.
    Drawn(Chance),
    /// One of these parts of the WCET, rounded up, each as likely as its weight says.
    Discrete(Vec<(Ratio, u64)>),
    /// These times in nanoseconds, for each task, job by job, and from the beginning again.
    Given(Vec<Vec<u64>>),
    /// One of these times in nanoseconds, for each task, each as likely as its weight says: a
    /// histogram of what was measured.
    Sampled(Vec<Vec<(u64, u64)>>),
}

impl Default for Execution {
    /// At WCET.
    fn default() -> Self {
        Execution::Fraction(Ratio::ONE)
    }
}

/// How long after their arrivals jobs are released; deadlines count from the arrivals. By task, at
/// most its period.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Lateness {
    /// At once.
    #[default]
    None,
    /// After a random time up to this, in nanoseconds.
    Random(Vec<u64>),
    /// The first job after this time, all others at once: as dense as releases can be.
    First(Vec<u64>),
}

impl Lateness {
    /// The jitter of every task of a set, at most its period: jobs are released in order.
    pub fn most(set: &TaskSet) -> Vec<u64> {
        let both = set.timings().iter().zip(set.extras());
        both.map(|(t, x)| x.jitter.min(t.period).nanos()).collect()
    }
}

/// Everything about a run but the policy and the costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// When jobs are released.
    pub releases: Releases,
    /// How long after that they are released: by then they arrive. Not for given releases.
    pub lateness: Lateness,
    /// How long they execute.
    pub execution: Execution,
    /// What happens to overruns. The rest of a job that is cut short is added to the task's next
    /// job.
    pub enforcement: Enforcement,
    /// The quantum of [`Enforcement::PerQuantum`], and the period of the tick where the costs have
    /// none.
    pub quantum: Duration,
    /// How long: jobs released before this instant count, and completions up to and at it.
    pub horizon: Duration,
    /// End as soon as a deadline miss is known.
    pub stop_at_miss: bool,
    /// The seed of gaps and execution times.
    pub seed: u64,
    /// By task, the processor whose timer releases its jobs, where that is not one of its own (002
    /// Fig. 2.7: T4); empty: none. It matters where releases cost something: that processor is
    /// interrupted, and calls the one that is to run the job.
    pub release_on: Vec<Option<CpuId>>,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            releases: Releases::default(),
            lateness: Lateness::default(),
            execution: Execution::default(),
            enforcement: Enforcement::default(),
            quantum: Duration::from_millis(1),
            horizon: Duration::from_secs(60),
            stop_at_miss: false,
            seed: 1,
            release_on: Vec::new(),
        }
    }
}

/// No time of a simulation may be longer.
pub(crate) const LONGEST: u64 = job::LONGEST.nanos();

impl Scenario {
    /// Is everything in range for this set?
    ///
    /// # Errors
    /// A time beyond 73 years, a zero quantum, lists that do not fit the set.
    pub fn check(&self, set: &TaskSet) -> Result<()> {
        let long = |what: String, d: Duration| match d.nanos() {
            ns if ns > LONGEST => Err(Error::new(format!("{what} {d} is too long to simulate"))
                .remedy("stay below 73 years")),
            _ => Ok(()),
        };
        long("the horizon".to_owned(), self.horizon)?;
        for id in set.ids() {
            let t = set.timings()[id.index()];
            let phase = set.details(id).map_or(Duration::ZERO, |d| d.phase);
            for (what, d) in [
                ("period", t.period),
                ("deadline", t.deadline),
                ("phase", phase),
            ] {
                long(format!("the {what} of {}", set.name(id)), d)?;
            }
            long(
                format!("an execution time of {}", set.name(id)),
                Duration::from_nanos(self.longest_execution(id.index(), t.wcet)?),
            )?;
        }
        if self.horizon.is_zero() {
            return Err(Error::new("the simulation lasts no time").remedy("give a positive time"));
        }
        if self.quantum.is_zero() {
            return Err(Error::new("the quantum is zero").remedy("give a positive quantum"));
        }
        self.check_lateness(set)?;
        if !self.release_on.is_empty() {
            fits(set, self.release_on.len(), "processors that release")?;
        }
        self.check_releases(set)?;
        self.check_execution(set)
    }

    fn check_lateness(&self, set: &TaskSet) -> Result<()> {
        if let Lateness::Random(most) | Lateness::First(most) = &self.lateness {
            fits(set, most.len(), "release jitters")?;
            if matches!(self.releases, Releases::Given(_)) {
                return Err(Error::new(
                    "the releases are given, and jitter is to be added to them",
                )
                .remedy("give release times without jitter"));
            }
            let both = most.iter().zip(set.timings());
            if let Some(id) = both.clone().position(|(most, t)| *most > t.period.nanos()) {
                return Err(
                    Error::new("the jitter to simulate is longer than the period")
                        .at(format!("task {}", id + 1))
                        .remedy("give at most a period"),
                );
            }
        }
        Ok(())
    }

    fn check_releases(&self, set: &TaskSet) -> Result<()> {
        match &self.releases {
            Releases::Sporadic(part) if *part > Ratio::whole(1000) => {
                return Err(Error::new("the gaps are longer than a thousand periods")
                    .remedy("give a smaller part"));
            }
            Releases::Given(lists) => {
                fits(set, lists.len(), "releases")?;
                if let Some((task, _)) = lists.iter().enumerate().find(|(_, list)| {
                    !list.is_sorted() || list.last().is_some_and(|t| *t > LONGEST)
                }) {
                    return Err(
                        Error::new("the releases do not ascend, or go beyond 73 years")
                            .at(format!("task {}", task + 1))
                            .remedy("sort them"),
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_execution(&self, set: &TaskSet) -> Result<()> {
        if let Execution::Discrete(parts) = &self.execution {
            weighed(parts.iter().map(|(_, weight)| *weight))?;
        }
        if let Execution::Sampled(lists) = &self.execution {
            fits(set, lists.len(), "execution times")?;
            for (task, list) in lists.iter().enumerate() {
                weighed(list.iter().map(|(_, weight)| *weight))
                    .map_err(|e| e.at(format!("task {}", task + 1)))?;
                if list.iter().any(|(time, _)| *time == 0) {
                    return Err(Error::new("an execution time is zero")
                        .at(format!("task {}", task + 1))
                        .remedy("give positive times"));
                }
            }
        }
        if let Execution::Given(lists) = &self.execution {
            fits(set, lists.len(), "execution times")?;
            if let Some((task, _)) = lists
                .iter()
                .enumerate()
                .find(|(_, list)| list.is_empty() || list.contains(&0))
            {
                return Err(Error::new("an execution time is missing or zero")
                    .at(format!("task {}", task + 1))
                    .remedy("give each task at least one positive time"));
            }
        }
        Ok(())
    }

    fn longest_execution(&self, task: usize, wcet: Duration) -> Result<u64> {
        match &self.execution {
            Execution::Fraction(part) => Ok(part_of(wcet.nanos(), *part)),
            Execution::Uniform(low, high) if low > high => Err(Error::new(format!(
                "execution times from {} to {} of the WCET are no range",
                low.to_f64(),
                high.to_f64()
            ))
            .remedy("give the smaller part first")),
            Execution::Uniform(_, high) => Ok(part_of(wcet.nanos(), *high)),
            Execution::Drawn(chance) => Ok(drawn_part(wcet.nanos(), chance.high(), MOST)),
            Execution::Discrete(parts) => Ok(parts
                .iter()
                .map(|(part, _)| part_of(wcet.nanos(), *part))
                .max()
                .unwrap_or(0)),
            Execution::Sampled(lists) => {
                let times = lists.get(task).into_iter().flatten();
                Ok(times.map(|(time, _)| *time).max().unwrap_or(0))
            }
            Execution::Given(lists) => Ok(lists
                .get(task)
                .and_then(|l| l.iter().max())
                .copied()
                .unwrap_or(0)),
        }
    }

    /// The release that follows that of job `number` (from 0) of a task; `u64::MAX`: there is none.
    #[inline(always)]
    pub(crate) fn release_after(
        &self,
        task: TaskId,
        number: u64,
        release: u64,
        period: u64,
    ) -> u64 {
        match self.releases {
            Releases::Periodic if matches!(self.lateness, Lateness::None) => release + period,
            _ => self.irregular_release_after(task, number, release, period),
        }
    }

    #[inline(never)]
    fn irregular_release_after(&self, task: TaskId, number: u64, release: u64, period: u64) -> u64 {
        let arrival = release - self.late(task, number);
        match self.arrival_after(task, number, arrival, period) {
            u64::MAX => u64::MAX,
            next => next + self.late(task, number + 1),
        }
    }

    /// How long after its arrival job `number` of a task is released.
    #[inline]
    pub(crate) fn late(&self, task: TaskId, number: u64) -> u64 {
        match &self.lateness {
            Lateness::None => 0,
            Lateness::First(most) if number == 0 => most[task.index()],
            Lateness::First(_) => 0,
            Lateness::Random(most) => {
                let bits = random::draw(self.seed, Stream::Jitter, task, number);
                random::up_to(bits, most[task.index()])
            }
        }
    }

    fn arrival_after(&self, task: TaskId, number: u64, release: u64, period: u64) -> u64 {
        match &self.releases {
            Releases::Periodic => release + period,
            Releases::Sporadic(part) => {
                let bits = random::draw(self.seed, Stream::Gap, task, number);
                let longest = if part.num() == 0 {
                    0
                } else {
                    part_of(period, *part).min(LONGEST)
                };
                release + period + random::up_to(bits, longest)
            }
            Releases::SporadicBy(chance) => {
                let part = chance.draw(random::draw(self.seed, Stream::Gap, task, number));
                release + period + ((part * period as f64) as u64).min(LONGEST)
            }
            Releases::Given(lists) => usize::try_from(number + 1)
                .ok()
                .and_then(|n| lists[task.index()].get(n))
                .copied()
                .unwrap_or(u64::MAX),
        }
    }

    /// The first release of a task.
    pub(crate) fn first_release(&self, task: TaskId, phase: Duration) -> u64 {
        match &self.releases {
            Releases::Given(lists) => lists[task.index()].first().copied().unwrap_or(u64::MAX),
            _ => phase.nanos() + self.late(task, 0),
        }
    }

    /// How long job `number` of a task executes.
    #[inline]
    pub(crate) fn demand(&self, task: TaskId, number: u64, wcet: u64) -> u64 {
        match &self.execution {
            Execution::Fraction(part) => part_of(wcet, *part),
            Execution::Uniform(low, high) => {
                let (low, high) = (part_of(wcet, *low), part_of(wcet, *high));
                let bits = random::draw(self.seed, Stream::Execution, task, number);
                low + random::up_to(bits, high - low)
            }
            Execution::Drawn(chance) => {
                let part = chance.draw(random::draw(self.seed, Stream::Execution, task, number));
                drawn_part(wcet, part, chance.high())
            }
            Execution::Discrete(parts) => {
                let bits = random::draw(self.seed, Stream::Execution, task, number);
                part_of(wcet, chosen(parts, bits, Ratio::ONE))
            }
            Execution::Sampled(lists) => {
                let bits = random::draw(self.seed, Stream::Execution, task, number);
                chosen(&lists[task.index()], bits, wcet).max(1)
            }
            Execution::Given(lists) => {
                let list = &lists[task.index()];
                list[(number % list.len() as u64) as usize]
            }
        }
    }

    /// Is every release one period behind the one before?
    pub(crate) fn is_strictly_periodic(&self) -> bool {
        self.releases == Releases::Periodic && self.lateness == Lateness::None
    }

    /// May a job execute for longer than its WCET?
    pub fn may_overrun(&self) -> bool {
        match &self.execution {
            Execution::Fraction(part) | Execution::Uniform(_, part) => *part > Ratio::ONE,
            Execution::Drawn(chance) => chance.high() > 1.0,
            Execution::Discrete(parts) => parts.iter().any(|(part, _)| *part > Ratio::ONE),
            Execution::Given(_) | Execution::Sampled(_) => true,
        }
    }

    /// Do all jobs of a task execute equally long?
    pub(crate) const fn has_constant_demand(&self) -> bool {
        matches!(self.execution, Execution::Fraction(_))
    }
}

fn fits(set: &TaskSet, lists: usize, what: &str) -> Result<()> {
    if lists == set.len() {
        return Ok(());
    }
    Err(Error::new(format!(
        "there are {what} for {lists} tasks, and {} tasks",
        set.len()
    ))
    .remedy("give one line for each task"))
}

/// Can one be chosen by these weights?
fn weighed(mut weights: impl Iterator<Item = u64>) -> Result<()> {
    match weights.try_fold(0_u64, u64::checked_add) {
        Some(1..) => Ok(()),
        _ => Err(
            Error::new("the weights add up to nothing, or to more than 2^64")
                .remedy("give each value a weight such as `1`, and at least one a positive one"),
        ),
    }
}

/// One of the values, by weight; random bits say which. `none` if there is none, which
/// [`Scenario::check`] refuses.
fn chosen<T: Copy>(values: &[(T, u64)], bits: u64, none: T) -> T {
    let all: u64 = values.iter().map(|(_, weight)| weight).sum();
    let mut left = random::up_to(bits, all.saturating_sub(1));
    for (value, weight) in values {
        if left < *weight {
            return *value;
        }
        left -= weight;
    }
    none
}

/// A part of a time, rounded up, at least 1 ns; the same on every machine.
fn drawn_part(time: u64, part: f64, most: f64) -> u64 {
    let whole = |part: f64| libm::ceil(part * time as f64) as u64;
    whole(part).min(whole(most)).max(1)
}

/// A part of a time, rounded up, at least 1 ns; saturates.
pub(crate) fn part_of(time: u64, part: Ratio) -> u64 {
    let exact = (u128::from(time) * u128::from(part.num())).div_ceil(u128::from(part.den()));
    u64::try_from(exact).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100,000 jobs, how many execute for each time.
    fn counts(execution: Execution, wcet: u64) -> std::collections::BTreeMap<u64, u32> {
        let scenario = Scenario {
            execution,
            ..Scenario::default()
        };
        let mut counts = std::collections::BTreeMap::new();
        for job in 0..100_000 {
            *counts
                .entry(scenario.demand(TaskId(0), job, wcet))
                .or_default() += 1;
        }
        counts
    }

    #[test]
    fn values_come_as_often_as_their_weights_say() {
        let part = |tenths| Ratio::new(tenths, 10).unwrap();
        let discrete = counts(
            Execution::Discrete(vec![(part(5), 90), (part(10), 9), (part(15), 1)]),
            1000,
        );
        let sampled = counts(
            Execution::Sampled(vec![vec![(500, 90), (1000, 9), (1500, 1)]]),
            1000,
        );
        assert_eq!(discrete, sampled);
        let found: Vec<(u64, u32)> = discrete.into_iter().collect();
        for ((time, count), (wanted, share)) in
            found.iter().zip([(500, 0.9), (1000, 0.09), (1500, 0.01)])
        {
            let expected: f64 = 100_000.0 * share;
            assert_eq!(*time, wanted);
            assert!(
                (f64::from(*count) - expected).abs() < 5.0 * expected.sqrt(),
                "{time}: {count}"
            );
        }
    }

    #[test]
    fn gaps_and_times_of_distributions_stay_within_their_ends() {
        let scenario = Scenario {
            releases: Releases::SporadicBy(Chance::parse("exponential:0.5", MOST).unwrap()),
            execution: Execution::Drawn("normal:0.7,0.2@0.4-1".parse().unwrap()),
            ..Scenario::default()
        };
        let (mut gaps, mut times) = (0, 0);
        for job in 0..20_000 {
            let time = scenario.demand(TaskId(0), job, 1_000);
            assert!((400..=1_000).contains(&time), "{time}");
            times += time;
            let next = scenario.release_after(TaskId(0), job, 5, 10_000);
            assert!(next >= 10_005);
            gaps += next - 10_005;
        }
        // Half a period, and the mean of what is left of the normal distribution.
        assert!((gaps / 20_000).abs_diff(5_000) < 200, "{gaps}");
        assert!((times / 20_000).abs_diff(700) < 20, "{times}");
    }

    #[test]
    fn parts_round_up() {
        assert_eq!(part_of(10, Ratio::new(1, 3).unwrap()), 4);
        assert_eq!(part_of(10, Ratio::ONE), 10);
        assert_eq!(part_of(1, Ratio::new(1, 1000).unwrap()), 1);
    }
}
