//! What a test answers: schedulable or not by this test, or the precondition that fails.

use model::{Duration, Timing};
use serde::Serialize;
use std::fmt;

/// The answer of a test: `Ok(true)` guaranteed, `Ok(false)` not shown by this test, `Err` the test
/// does not apply.
pub type Decision = Result<bool, NotApplicable>;

/// What an accepting test promises (002 §2.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// No deadline is ever missed.
    Hard,
    /// Deadlines may be missed, by a bounded amount.
    Soft,
}

/// What a rejecting test says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Exactness {
    /// A rejected set may still be schedulable.
    Sufficient,
    /// A rejected set is not schedulable.
    Exact,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Guarantee::Hard => "hard",
            Guarantee::Soft => "soft",
        })
    }
}
impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Exactness::Sufficient => "sufficient",
            Exactness::Exact => "exact",
        })
    }
}

/// The precondition that a set breaks, or the limit that it exceeds. Displays as a clause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotApplicable {
    /// The test wants D = p for every task; the first that breaks it, from 0.
    ImplicitDeadlines(usize),
    /// The test wants D ≤ p for every task; the first that breaks it, from 0.
    ConstrainedDeadlines(usize),
    /// The test wants more processors.
    TooFewProcessors {
        /// How many it wants.
        needed: u32,
        /// How many there are.
        given: u32,
    },
    /// Another precondition, as a clause such as "every utilization is at most 1/2".
    Precondition(&'static str),
    /// The set has what the test does not take, such as "release jitter".
    NotTaken(&'static str),
    /// The set is beyond what the test decides in a bounded time or memory: names the limit.
    Limit(&'static str),
}

impl fmt::Display for NotApplicable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotApplicable::ImplicitDeadlines(task) => {
                write!(
                    f,
                    "needs deadlines equal to periods, and task {} has another",
                    task + 1
                )
            }
            NotApplicable::ConstrainedDeadlines(task) => {
                write!(
                    f,
                    "needs deadlines within periods, and task {} has a longer one",
                    task + 1
                )
            }
            NotApplicable::TooFewProcessors { needed, given } => {
                write!(
                    f,
                    "needs at least {needed} processors, and there are {given}"
                )
            }
            NotApplicable::Precondition(clause) => write!(f, "needs that {clause}"),
            NotApplicable::NotTaken(what) => write!(f, "does not take {what}"),
            NotApplicable::Limit(limit) => write!(f, "beyond a limit of this test: {limit}"),
        }
    }
}
impl std::error::Error for NotApplicable {}

/// Checks that D = p everywhere.
pub fn implicit_deadlines(tasks: &[Timing]) -> Result<(), NotApplicable> {
    match tasks.iter().position(|t| !t.has_implicit_deadline()) {
        Some(task) => Err(NotApplicable::ImplicitDeadlines(task)),
        None => Ok(()),
    }
}

/// Checks that D ≤ p everywhere.
pub fn constrained_deadlines(tasks: &[Timing]) -> Result<(), NotApplicable> {
    match tasks.iter().position(|t| !t.has_constrained_deadline()) {
        Some(task) => Err(NotApplicable::ConstrainedDeadlines(task)),
        None => Ok(()),
    }
}

/// Checks that every time is a multiple of `grid`, which is not zero.
pub fn on_grid(tasks: &[Timing], grid: Duration) -> Result<(), NotApplicable> {
    let fits = |d: Duration| !grid.is_zero() && d.nanos().is_multiple_of(grid.nanos());
    if tasks
        .iter()
        .all(|t| fits(t.wcet) && fits(t.period) && fits(t.deadline))
    {
        return Ok(());
    }
    Err(NotApplicable::Precondition(
        "every time is a multiple of the grid",
    ))
}

/// Checks that there are at least `needed` processors.
pub fn processors(needed: u32, given: u32) -> Result<(), NotApplicable> {
    if given < needed {
        return Err(NotApplicable::TooFewProcessors { needed, given });
    }
    Ok(())
}

/// Can every job alone meet its deadline, and every task alone keep up? Overheads may have made it
/// otherwise.
pub fn tasks_are_feasible(tasks: &[Timing]) -> bool {
    tasks
        .iter()
        .all(|t| t.wcet <= t.deadline && t.wcet <= t.period && !t.period.is_zero())
}
