//! The task sets of 004 §IV-A: periods of 25 to 200 ms, utilizations of 0.1 to 0.7, tasks added
//! until a test fails.
//!
//! For G-EDF the test is GFB, for P-EDF best fit in decreasing utilization. The paper's sets all
//! have a task with the longest period, so sets without one are passed over, and those of fewer
//! than three tasks: the best-effort task is to have neighbors.

use analyze::global::gfb;
use analyze::partition::pack::Scratch;
use analyze::partition::{Fit, Order};
use generate::{Amount, Recipe};
use model::{Bytes, Duration, Error, Pattern, Result, TaskId, TaskSet, Timing, Workload};
use serde::{Deserialize, Serialize};

/// The schedulers of 004.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Global EDF.
    GEdf,
    /// Partitioned EDF.
    PEdf,
}

impl Scheduler {
    /// Both.
    pub const ALL: [Scheduler; 2] = [Scheduler::GEdf, Scheduler::PEdf];

    /// The name of the policy.
    pub fn policy(self) -> &'static str {
        match self {
            Scheduler::GEdf => "g-edf",
            Scheduler::PEdf => "p-edf",
        }
    }

    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::GEdf => "G-EDF",
            Scheduler::PEdf => "P-EDF",
        }
    }

    fn accepts(self, tasks: &[Timing], processors: u32) -> bool {
        match self {
            Scheduler::GEdf => gfb::is_schedulable(tasks, processors).is_ok_and(|yes| yes),
            Scheduler::PEdf => {
                let bins = vec![1; processors as usize];
                Scratch::new()
                    .pack(tasks, &bins, Order::DecreasingUtilization, Fit::Best)
                    .is_ok()
            }
        }
    }
}

/// The longest period of 004.
const LONGEST: Duration = Duration::from_millis(200);
/// The fewest tasks.
const FEWEST: usize = 3;
/// So many sets are drawn for one that is taken, before none is expected any more.
const PATIENCE: u64 = 1000;

/// A task set as it was drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Drawn {
    /// For which scheduler.
    pub scheduler: Scheduler,
    /// Its number among all that are drawn.
    pub number: u64,
    /// Its tasks.
    pub timings: Vec<Timing>,
    /// The one of lowest priority, which is best-effort: the last one of those with the longest
    /// period.
    pub best_effort: TaskId,
}

/// The first `count` sets for a scheduler, their times divided by `hasten`.
///
/// # Errors
/// No set like these can be drawn for so many processors; `hasten` leaves less than a microsecond
/// of a WCET.
pub fn draw(
    scheduler: Scheduler,
    processors: u32,
    seed: u64,
    count: usize,
    hasten: u64,
) -> Result<Vec<Drawn>> {
    let generator = Recipe {
        amount: Amount::UntilRefused {
            utilizations: "rtcsa13".parse()?,
        },
        periods: "rtcsa13".parse()?,
        deadlines: "implicit".parse()?,
    }
    .prepare()?;
    let mut sets = Vec::new();
    for number in 0.. {
        if sets.len() == count {
            break;
        }
        if number >= PATIENCE * count.max(1) as u64 {
            return Err(Error::new(format!(
                "hardly any set for {processors} processors has {FEWEST} tasks and a period of {LONGEST}"
            ))
            .remedy("give two processors at least"));
        }
        let set =
            generator.draw_until(seed, number, |tasks| scheduler.accepts(tasks, processors))?;
        let timings = set.timings();
        let last = timings.iter().rposition(|t| t.period == LONGEST);
        if let (Some(last), true) = (last, timings.len() >= FEWEST) {
            sets.push(Drawn {
                scheduler,
                number,
                timings: timings
                    .iter()
                    .map(|t| hastened(t, hasten))
                    .collect::<Result<_>>()?,
                best_effort: TaskId(last as u32),
            });
        }
    }
    Ok(sets)
}

fn hastened(timing: &Timing, by: u64) -> Result<Timing> {
    let shorter = |d: Duration| Duration::from_nanos(d.nanos() / by.max(1));
    match shorter(timing.wcet) {
        wcet if wcet >= Duration::from_micros(100) => {
            Ok(Timing::implicit(wcet, shorter(timing.period)))
        }
        wcet => Err(
            Error::new(format!("a job of {wcet} is too short to be run"))
                .at("--hasten")
                .remedy("give a smaller number"),
        ),
    }
}

impl Drawn {
    /// The set with working sets of this size, the best-effort task's of that.
    ///
    /// # Errors
    /// None that a set which was drawn could have.
    pub fn with_working_sets(&self, wss: Bytes, best_effort: Bytes) -> Result<TaskSet> {
        let details = (0..self.timings.len())
            .map(|place| {
                let lowest = place == self.best_effort.index();
                model::Details {
                    wss: Some(if lowest { best_effort } else { wss }),
                    workload: Some(Workload::Walk {
                        write_ratio: super::WRITES,
                        pattern: if lowest {
                            Pattern::Sequential
                        } else {
                            Pattern::Random
                        },
                    }),
                    ..model::Details::named(match lowest {
                        true => "best-effort".to_owned(),
                        false => format!("T{}", place + 1),
                    })
                }
            })
            .collect();
        TaskSet::from_timings(self.timings.clone())?.with_details(details)
    }
}

/// The cache of 004 (Table I), the processors that share it, and the super colors of a set of ten
/// tasks.
const PAPER: (u64, u64, u64) = (8 << 20, 8, 12);

/// The size that is as large a part of what each processor has of a super color as `wss` is in the
/// paper; whole pages.
///
/// In the paper, eight processors share 8 MiB in twelve super colors: 85 KiB of a super color for
/// each.
pub fn scaled(wss: Bytes, cache: Bytes, sharers: u32, supers: u64) -> Bytes {
    let page = partition::geometry::PAGE as u128;
    let (paper, sharing, colors) = PAPER;
    let here = u128::from(wss.get()) * u128::from(cache.get()) * u128::from(sharing * colors);
    let there = u128::from(paper) * u128::from(supers.max(1)) * u128::from(sharers.max(1));
    let pages = (here / there).div_ceil(page).max(1);
    Bytes::new(u64::try_from(pages * page).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 004 §IV-A.
    #[test]
    fn sets_are_as_the_paper_draws_them_and_close_to_what_their_test_takes() {
        for scheduler in Scheduler::ALL {
            let sets = draw(scheduler, 2, 1, 10, 1).unwrap();
            assert_eq!(sets.len(), 10);
            for set in &sets {
                assert!(scheduler.accepts(&set.timings, 2) && set.timings.len() >= FEWEST);
                for t in &set.timings {
                    assert!(
                        [25, 50, 100, 200]
                            .map(Duration::from_millis)
                            .contains(&t.period)
                    );
                    let u = t.utilization().to_f64();
                    assert!((0.0999..=0.7001).contains(&u), "{u}");
                }
                assert_eq!(set.timings[set.best_effort.index()].period, LONGEST);
                // One more task of the largest utilization is refused.
                let mut more = set.timings.clone();
                more.push(Timing::implicit(Duration::from_millis(140), LONGEST));
                assert!(!scheduler.accepts(&more, 2));
            }
            let fewer = draw(scheduler, 2, 1, 3, 1).unwrap();
            assert_eq!(fewer, sets[..3], "the same ones, however many");
        }
    }

    #[test]
    fn hastened_sets_have_the_same_utilizations() {
        let (slow, fast) = (
            draw(Scheduler::GEdf, 2, 1, 1, 1),
            draw(Scheduler::GEdf, 2, 1, 1, 10),
        );
        for (a, b) in slow.unwrap()[0]
            .timings
            .iter()
            .zip(&fast.unwrap()[0].timings)
        {
            assert_eq!(a.period.nanos(), 10 * b.period.nanos());
            assert_eq!(a.wcet.nanos(), 10 * b.wcet.nanos());
        }
        assert!(draw(Scheduler::GEdf, 2, 1, 1, 1000).is_err());
    }

    #[test]
    fn the_lowest_task_has_the_best_effort_array() {
        let drawn = &draw(Scheduler::PEdf, 2, 1, 1, 1).unwrap()[0];
        let set = drawn
            .with_working_sets(Bytes::from_kib(32), super::super::BEST_EFFORT)
            .unwrap();
        for id in set.ids() {
            let kib = if id == drawn.best_effort { 512 } else { 32 };
            assert_eq!(set.wss(id), Some(Bytes::from_kib(kib)));
        }
        assert_eq!(set.name(drawn.best_effort), "best-effort");
    }

    #[test]
    fn scaled_sizes_are_the_same_part_of_a_super_color() {
        let paper = scaled(Bytes::from_kib(64), Bytes::from_mib(8), 8, 12);
        assert_eq!(paper, Bytes::from_kib(64), "the paper's machine");
        // Private caches of 1 MiB in six super colors: 171 KiB for one processor, twice the paper's
        // 85.
        assert_eq!(
            scaled(Bytes::from_kib(64), Bytes::from_mib(1), 1, 6),
            Bytes::from_kib(128)
        );
        assert_eq!(
            scaled(Bytes::from_kib(1), Bytes::from_kib(64), 8, 40),
            Bytes::from_kib(4)
        );
    }
}
