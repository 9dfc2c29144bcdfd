//! Recipes for task sets: how many tasks, with which utilizations, periods and deadlines (000 §5;
//! 002 §6.2.1).
//!
//! WCETs are whole microseconds: the utilization drawn times the period, rounded to the nearest,
//! but never out of the range of the distribution and never to zero. Whether a set has reached its
//! cap is decided on the rounded values, exactly.

use crate::deadline::Deadlines;
use crate::fixed_sum::{self, FixedSum};
use crate::period::Periods;
use crate::random::Random;
use crate::utilization::{Range, Utilizations};
use model::error::nearest;
use model::taskfile::MAX_PROCESSORS;
use model::{Duration, Error, Ratio, Result, TaskSet, Timing, exact};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// How task sets are made.
#[derive(Clone, PartialEq, Debug)]
pub struct Recipe {
    /// How many tasks, and with which utilizations.
    pub amount: Amount,
    /// The distribution of periods.
    pub periods: Periods,
    /// The kind of deadlines.
    pub deadlines: Deadlines,
}

/// How many tasks, and with which utilizations.
#[derive(Clone, PartialEq, Debug)]
pub enum Amount {
    /// Tasks are added until the total utilization would exceed the cap (000 §5).
    Cap {
        /// The distribution of each task's utilization.
        utilizations: Utilizations,
        /// The cap U on the total utilization.
        cap: Ratio,
        /// What becomes of the task that would exceed it.
        fill: Fill,
    },
    /// So many tasks, drawn independently.
    Tasks {
        /// The distribution of each task's utilization.
        utilizations: Utilizations,
        /// How many.
        tasks: u32,
    },
    /// So many tasks whose utilizations add up to a total.
    Total {
        /// How the total is split.
        method: Method,
        /// How many tasks.
        tasks: u32,
        /// The total utilization: never exceeded, and missed by less than 2 µs over the shortest
        /// period.
        total: Ratio,
        /// The range of each utilization; UUniFast-Discard knows only [`Range::ALL`].
        range: Range,
    },
    /// Tasks are added until a test refuses the set, and the last one is dropped (004 §IV-A); see
    /// [`Generator::draw_until`].
    UntilRefused {
        /// The distribution of each task's utilization.
        utilizations: Utilizations,
    },
}

/// What becomes of the task that would exceed the cap (000 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fill {
    /// It is dropped: all parameters stem from their distributions, the total stays below the cap.
    #[default]
    Drop,
    /// Its WCET is shortened so that the cap is reached: to the microsecond, never above.
    Scale,
}

/// How a total utilization is split among tasks; see [`crate::fixed_sum`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// UUniFast-Discard.
    UunifastDiscard,
    /// RandFixedSum.
    #[default]
    RandFixedSum,
}

/// Reads and writes an enum by a table of names.
macro_rules! named {
    ($type:ty, $what:literal, $($name:literal => $value:path),*) => {
        impl FromStr for $type {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                match text.trim() {
                    $($name => Ok($value),)*
                    other => Err(Error::new(format!(concat!("unknown ", $what, " `{}`"), other)).remedy(
                        match nearest(other, [$($name),*]) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => format!("write {}", [$(concat!("`", $name, "`")),*].join(" or ")),
                        },
                    )),
                }
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($value => $name),* })
            }
        }
    };
}
named!(Fill, "way to fill up to the cap", "drop" => Fill::Drop, "scale" => Fill::Scale);
named!(Method, "method", "uunifast-discard" => Method::UunifastDiscard, "randfixedsum" => Method::RandFixedSum);

/// A recipe that was found sound, with what it needs to draw fast.
#[derive(Clone, Debug)]
pub struct Generator {
    recipe: Recipe,
    fixed_sum: Option<FixedSum>,
}

impl Recipe {
    /// Checks the recipe and prepares what can be prepared.
    ///
    /// # Errors
    /// A cap that a single task may exceed, a total that so many tasks cannot have, no tasks or too
    /// many.
    pub fn prepare(&self) -> Result<Generator> {
        let mut fixed_sum = None;
        match &self.amount {
            Amount::Cap {
                utilizations,
                cap,
                fill,
            } => {
                check_total(*cap)?;
                // Rounding never lifts a WCET above its range: a cap at the upper end leaves room
                // for one task.
                if *fill == Fill::Drop && cap.to_f64() < utilizations.largest() {
                    return Err(Error::new(format!(
                        "a single task of `{utilizations}` may exceed the cap {}, and a set be left without tasks",
                        decimal(*cap)
                    ))
                    .remedy(format!(
                        "raise the cap to at least {}, or choose `scale` instead of `drop`",
                        utilizations.largest()
                    )));
                }
            }
            Amount::Tasks { tasks, .. } => check_tasks(*tasks)?,
            Amount::Total {
                method,
                tasks,
                total,
                range,
            } => {
                check_tasks(*tasks)?;
                check_total(*total)?;
                match method {
                    Method::RandFixedSum => {
                        fixed_sum = Some(FixedSum::new(*tasks, total.to_f64(), *range)?);
                    }
                    Method::UunifastDiscard if *range != Range::ALL => {
                        return Err(Error::new(
                            "`uunifast-discard` knows no range of utilizations",
                        )
                        .remedy("leave the range out, or choose `randfixedsum`"));
                    }
                    Method::UunifastDiscard if *total > Ratio::whole(u64::from(*tasks)) => {
                        return Err(Error::new(format!(
                            "{tasks} tasks cannot have a total utilization of {}",
                            decimal(*total)
                        ))
                        .remedy("give more tasks, or a lower total"));
                    }
                    Method::UunifastDiscard => {}
                }
            }
            Amount::UntilRefused { .. } => {}
        }
        Ok(Generator {
            recipe: self.clone(),
            fixed_sum,
        })
    }
}

fn check_tasks(tasks: u32) -> Result<()> {
    match tasks as usize {
        0 => Err(Error::new("a set of no tasks was asked for").remedy("give at least one task")),
        n if n > TaskSet::MAX_TASKS => Err(Error::new(format!(
            "{n} tasks are more than a set may have"
        ))
        .remedy(format!("give at most {}", TaskSet::MAX_TASKS))),
        _ => Ok(()),
    }
}

fn check_total(total: Ratio) -> Result<()> {
    if total.num() == 0 {
        return Err(
            Error::new("a total utilization of zero was asked for").remedy("give a positive one")
        );
    }
    if total > Ratio::whole(u64::from(MAX_PROCESSORS)) {
        return Err(Error::new(format!(
            "a total utilization of {} was asked for",
            decimal(total)
        ))
        .remedy(format!("give at most {MAX_PROCESSORS}")));
    }
    Ok(())
}

/// A ratio for people.
fn decimal(ratio: Ratio) -> String {
    ratio.to_f64().to_string()
}

impl Generator {
    /// What it was made from.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The task set of this number under this seed: always the same one.
    ///
    /// # Errors
    /// UUniFast-Discard or RandFixedSum cannot reach the total in whole microseconds; the cap needs
    /// more tasks than a set may have; the recipe is [`Amount::UntilRefused`].
    pub fn draw(&self, seed: u64, number: u64) -> Result<TaskSet> {
        let mut timings = Vec::new();
        self.draw_into(&mut Random::new(seed, number), &mut timings)?;
        TaskSet::from_timings(timings)
    }

    /// Draws the tasks of one set into `timings`, whatever it held before.
    ///
    /// # Errors
    /// As [`Generator::draw`].
    pub fn draw_into(&self, random: &mut Random, timings: &mut Vec<Timing>) -> Result<()> {
        timings.clear();
        match &self.recipe.amount {
            Amount::Cap {
                utilizations,
                cap,
                fill,
            } => self.until_cap(random, timings, utilizations, *cap, *fill),
            Amount::Tasks {
                utilizations,
                tasks,
            } => {
                timings.extend((0..*tasks).map(|_| self.task(random, utilizations)));
                Ok(())
            }
            Amount::Total {
                method,
                tasks,
                total,
                ..
            } => self.with_total(random, timings, *method, *tasks as usize, *total),
            Amount::UntilRefused { .. } => Err(Error::new(
                "this recipe adds tasks until a test refuses them",
            )
            .remedy("name the test")),
        }
    }

    /// The task set of this number: tasks are added as long as `accepts` takes the set, the first
    /// one refused is dropped (004 §IV-A).
    ///
    /// # Errors
    /// The recipe is not [`Amount::UntilRefused`]; a first task was refused already; none was
    /// refused among as many as a set may have.
    pub fn draw_until(
        &self,
        seed: u64,
        number: u64,
        mut accepts: impl FnMut(&[Timing]) -> bool,
    ) -> Result<TaskSet> {
        let Amount::UntilRefused { utilizations } = &self.recipe.amount else {
            return Err(Error::new("this recipe ends by itself, not by a test")
                .remedy("leave out the test, or the cap and the number of tasks"));
        };
        let mut random = Random::new(seed, number);
        let mut timings = Vec::new();
        while timings.len() < LIMIT_UNTIL_REFUSED {
            timings.push(self.task(&mut random, utilizations));
            if !accepts(&timings) {
                timings.pop();
                return TaskSet::from_timings(timings).map_err(|_| {
                    Error::new(format!(
                        "the test refuses a first task of `{utilizations}` already"
                    ))
                    .remedy("lower the utilizations, or choose another test")
                });
            }
        }
        Err(Error::new(format!(
            "the test has not refused {LIMIT_UNTIL_REFUSED} tasks of `{utilizations}`"
        ))
        .remedy("raise the utilizations, or choose another test"))
    }

    /// One task, utilization and period drawn independently.
    fn task(&self, random: &mut Random, utilizations: &Utilizations) -> Timing {
        let (utilization, range) = utilizations.draw(random);
        let period = self.recipe.periods.draw(random);
        let wcet = wcet_of(utilization, range, period);
        self.with_deadline(random, wcet, period)
    }

    fn with_deadline(&self, random: &mut Random, wcet: Duration, period: Duration) -> Timing {
        Timing {
            wcet,
            period,
            deadline: self.recipe.deadlines.draw(wcet, period, random),
        }
    }

    fn until_cap(
        &self,
        random: &mut Random,
        timings: &mut Vec<Timing>,
        utilizations: &Utilizations,
        cap: Ratio,
        fill: Fill,
    ) -> Result<()> {
        let mut total = 0.0;
        while timings.len() < TaskSet::MAX_TASKS {
            let task = self.task(random, utilizations);
            timings.push(task);
            let with_task = total + task.utilization().to_f64();
            match compare(timings, with_task, cap) {
                Ordering::Less => total = with_task,
                Ordering::Equal => return Ok(()),
                Ordering::Greater => {
                    timings.pop();
                    if fill == Fill::Scale {
                        self.fill_up(random, timings, task, total, cap);
                    }
                    return Ok(());
                }
            }
        }
        Err(Error::new(format!(
            "{} tasks of `{utilizations}` do not reach the cap {}",
            TaskSet::MAX_TASKS,
            decimal(cap)
        ))
        .remedy("raise the utilizations, or lower the cap"))
    }

    /// Adds `task` with the longest WCET that keeps the total within the cap, if that is positive.
    fn fill_up(
        &self,
        random: &mut Random,
        timings: &mut Vec<Timing>,
        task: Timing,
        total: f64,
        cap: Ratio,
    ) {
        let within = |us: u64, timings: &mut Vec<Timing>| {
            timings.push(Timing::implicit(Duration::from_micros(us), task.period));
            let order = compare(
                timings,
                total + timings[timings.len() - 1].utilization().to_f64(),
                cap,
            );
            timings.pop();
            order.is_le()
        };
        let guess = (cap.to_f64() - total) * micros(task.period);
        let mut us = (guess.max(0.0) as u64).min(task.wcet.nanos() / 1_000);
        while us > 0 && !within(us, timings) {
            us -= 1;
        }
        while us < task.wcet.nanos() / 1_000 && within(us + 1, timings) {
            us += 1;
        }
        if us > 0 {
            timings.push(self.with_deadline(random, Duration::from_micros(us), task.period));
        }
    }

    fn with_total(
        &self,
        random: &mut Random,
        timings: &mut Vec<Timing>,
        method: Method,
        tasks: usize,
        total: Ratio,
    ) -> Result<()> {
        let mut utilizations = vec![0.0; tasks];
        match (method, &self.fixed_sum) {
            (Method::RandFixedSum, Some(prepared)) => prepared.draw(random, &mut utilizations),
            _ => fixed_sum::uunifast_discard(random, total.to_f64(), &mut utilizations)?,
        }
        // What rounding down takes from one task goes to the next, so that errors do not add up.
        let mut carry = 0.0;
        for u in utilizations {
            let period = self.recipe.periods.draw(random);
            let us = micros(period);
            let wcet = libm::floor((u + carry) * us).clamp(1.0, us);
            carry += u - wcet / us;
            timings.push(Timing::implicit(Duration::from_micros(wcet as u64), period));
        }
        // Tasks that had to be lifted to a microsecond, or the last bits of the sum, may have left
        // it above.
        while exact::cmp_sum(timings.iter().map(Timing::utilization), total).is_gt() {
            let longer = timings.iter_mut().rev().find(|t| t.wcet > MICROSECOND);
            let Some(task) = longer else {
                return Err(Error::new(format!(
                    "{tasks} tasks of 1us each exceed the total utilization {}",
                    decimal(total)
                ))
                .remedy("give fewer tasks, longer periods or a higher total"));
            };
            task.wcet = task.wcet - MICROSECOND;
        }
        for task in timings {
            *task = self.with_deadline(random, task.wcet, task.period);
        }
        Ok(())
    }
}

const MICROSECOND: Duration = Duration::from_micros(1);
/// The most tasks that [`Generator::draw_until`] tries: tests take longer the more tasks there are.
const LIMIT_UNTIL_REFUSED: usize = 10_000;

fn micros(d: Duration) -> f64 {
    (d.nanos() / 1_000) as f64
}

/// The WCET in whole microseconds that is nearest to the utilization, without leaving the range.
fn wcet_of(utilization: f64, range: Range, period: Duration) -> Duration {
    let us = micros(period);
    let (low, high) = (libm::ceil(range.low() * us), libm::floor(range.high() * us));
    let nearest = libm::round(utilization * us);
    let kept = if low <= high {
        nearest.clamp(low, high)
    } else {
        nearest
    };
    Duration::from_micros(kept.clamp(1.0, us) as u64)
}

/// Compares the total utilization with the cap; `approximate` is the total in floating point.
fn compare(timings: &[Timing], approximate: f64, cap: Ratio) -> Ordering {
    let cap_f64 = cap.to_f64();
    // A million additions err by less than 3e-10 of the total.
    if (approximate - cap_f64).abs() > 1e-8 * cap_f64 {
        return approximate.total_cmp(&cap_f64);
    }
    exact::cmp_sum(timings.iter().map(Timing::utilization), cap)
}
