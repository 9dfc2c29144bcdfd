//! What is simulated besides the policy: when jobs are released, how long they execute, what happens to overruns, how long
//! the simulation lasts.

use crate::random::{self, Stream};
use model::{Duration, Error, Ratio, Result, TaskSet};

/// When jobs are released. The first job of a task comes at its phase, but for [`Releases::Given`].
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Releases {
    /// Exactly one period apart.
    #[default]
    Periodic,
    /// One period and a random gap apart, uniform from zero to this part of the period.
    Sporadic(Ratio),
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
    /// These times in nanoseconds, for each task, job by job, and from the beginning again.
    Given(Vec<Vec<u64>>),
}

impl Default for Execution {
    /// At WCET.
    fn default() -> Self {
        Execution::Fraction(Ratio::ONE)
    }
}

/// What happens to a job that has executed for its WCET and is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enforcement {
    /// It goes on.
    #[default]
    Off,
    /// It is cut short at the next multiple of the quantum.
    PerQuantum,
    /// It is cut short at once.
    Exact,
}

/// Everything about a run but the policy and the costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// When jobs are released.
    pub releases: Releases,
    /// How long they execute.
    pub execution: Execution,
    /// What happens to overruns. The rest of a job that is cut short is added to the task's next job.
    pub enforcement: Enforcement,
    /// The quantum of [`Enforcement::PerQuantum`] and the period of the tick.
    pub quantum: Duration,
    /// How long: jobs released before this instant count, and completions up to and at it.
    pub horizon: Duration,
    /// End as soon as a deadline miss is known.
    pub stop_at_miss: bool,
    /// The seed of gaps and execution times.
    pub seed: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            releases: Releases::default(),
            execution: Execution::default(),
            enforcement: Enforcement::default(),
            quantum: Duration::from_millis(1),
            horizon: Duration::from_secs(60),
            stop_at_miss: false,
            seed: 1,
        }
    }
}

/// No time of a simulation may be longer: sums of two still fit with room to spare.
pub(crate) const LONGEST: u64 = 1 << 61;

impl Scenario {
    /// Is everything in range for this set?
    ///
    /// # Errors
    /// A time beyond 73 years, a zero quantum, lists that do not fit the set.
    pub fn check(&self, set: &TaskSet) -> Result<()> {
        let long = |what: String, d: Duration| match d.nanos() {
            ns if ns > LONGEST => {
                Err(Error::new(format!("{what} {d} is too long to simulate")).remedy("stay below 73 years"))
            }
            _ => Ok(()),
        };
        long("the horizon".to_owned(), self.horizon)?;
        for id in set.ids() {
            let t = set.timings()[id.index()];
            let phase = set.details(id).map_or(Duration::ZERO, |d| d.phase);
            for (what, d) in [("period", t.period), ("deadline", t.deadline), ("phase", phase)] {
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
        match &self.releases {
            Releases::Sporadic(part) if *part > Ratio::whole(1000) => {
                return Err(
                    Error::new("the gaps are longer than a thousand periods").remedy("give a smaller part")
                );
            }
            Releases::Given(lists) => {
                fits(set, lists, "releases")?;
                if let Some((task, _)) = lists
                    .iter()
                    .enumerate()
                    .find(|(_, list)| !list.is_sorted() || list.last().is_some_and(|t| *t > LONGEST))
                {
                    return Err(Error::new("the releases do not ascend, or go beyond 73 years")
                        .at(format!("task {}", task + 1))
                        .remedy("sort them"));
                }
            }
            _ => {}
        }
        if let Execution::Given(lists) = &self.execution {
            fits(set, lists, "execution times")?;
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
            Execution::Given(lists) => Ok(lists.get(task).and_then(|l| l.iter().max()).copied().unwrap_or(0)),
        }
    }

    /// The release that follows that of job `number` (from 0) of a task; `u64::MAX`: there is none.
    #[inline]
    pub(crate) fn release_after(&self, task: u32, number: u64, release: u64, period: u64) -> u64 {
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
            Releases::Given(lists) => usize::try_from(number + 1)
                .ok()
                .and_then(|n| lists[task as usize].get(n))
                .copied()
                .unwrap_or(u64::MAX),
        }
    }

    /// The first release of a task.
    pub(crate) fn first_release(&self, task: u32, phase: Duration) -> u64 {
        match &self.releases {
            Releases::Given(lists) => lists[task as usize].first().copied().unwrap_or(u64::MAX),
            _ => phase.nanos(),
        }
    }

    /// How long job `number` of a task executes.
    #[inline]
    pub(crate) fn demand(&self, task: u32, number: u64, wcet: u64) -> u64 {
        match &self.execution {
            Execution::Fraction(part) => part_of(wcet, *part),
            Execution::Uniform(low, high) => {
                let (low, high) = (part_of(wcet, *low), part_of(wcet, *high));
                let bits = random::draw(self.seed, Stream::Execution, task, number);
                low + random::up_to(bits, high - low)
            }
            Execution::Given(lists) => {
                let list = &lists[task as usize];
                list[(number % list.len() as u64) as usize]
            }
        }
    }

    /// May a job execute for longer than its WCET?
    pub fn may_overrun(&self) -> bool {
        match &self.execution {
            Execution::Fraction(part) | Execution::Uniform(_, part) => *part > Ratio::ONE,
            Execution::Given(_) => true,
        }
    }

    /// Do all jobs of a task execute equally long?
    pub(crate) const fn has_constant_demand(&self) -> bool {
        matches!(self.execution, Execution::Fraction(_))
    }
}

fn fits(set: &TaskSet, lists: &[Vec<u64>], what: &str) -> Result<()> {
    if lists.len() == set.len() {
        return Ok(());
    }
    Err(Error::new(format!(
        "there are {what} for {} tasks, and {} tasks",
        lists.len(),
        set.len()
    ))
    .remedy("give one line for each task"))
}

/// A part of a time, rounded up, at least 1 ns; saturates.
pub(crate) fn part_of(time: u64, part: Ratio) -> u64 {
    let exact = (u128::from(time) * u128::from(part.num())).div_ceil(u128::from(part.den()));
    u64::try_from(exact).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_round_up() {
        assert_eq!(part_of(10, Ratio::new(1, 3).unwrap()), 4);
        assert_eq!(part_of(10, Ratio::ONE), 10);
        assert_eq!(part_of(1, Ratio::new(1, 1000).unwrap()), 1);
    }
}
