//! What a schedulability test says of itself: its row of the [registry](crate::registry).

use crate::carries::{self, Carries};
use crate::verdict::{Decision, Exactness, Guarantee};
use model::{Duration, Extras, TaskSet, Timing};

/// Decides a set on a number of processors whose releases and times are multiples of a grid.
pub type OnGrid = fn(&[Timing], u32, Duration) -> Decision;

/// A schedulability test: how it is called, what it promises, where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct TestInfo {
    /// Its name on the command line and in batch answers, such as `GFB`.
    pub name: &'static str,
    /// The policy that it is for, such as `g-edf`.
    pub policy: &'static str,
    /// What acceptance promises.
    pub guarantee: Guarantee,
    /// What rejection says.
    pub exactness: Exactness,
    /// Paper, theorem, equations.
    pub source: &'static str,
    /// What must hold of a set, as text.
    pub preconditions: &'static str,
    /// What it does, in a paragraph for the documentation.
    pub about: &'static str,
    /// Decides a set on `m` processors. `m` of zero schedules nothing.
    pub run: fn(&[Timing], u32) -> Decision,
    /// Decides a set that overheads have inflated, where that differs: a test that rounds times to
    /// whole units takes the unit of `run` from the set, but that of an inflated one is fixed, so
    /// that a longer overhead never helps by a change of unit.
    pub run_inflated: Option<fn(&[Timing], u32) -> Decision>,
    /// Decides a set whose releases fall on multiples of a grid, as do all its times, where that
    /// accepts more than `run`.
    pub on_grid: Option<OnGrid>,
    /// What it takes of blocking and release jitter, and how.
    pub carries: Carries,
}

impl TestInfo {
    /// Decides a set whose WCETs overheads have made longer.
    ///
    /// # Errors
    /// The test does not apply to the set.
    pub fn decide_inflated(&self, tasks: &[Timing], m: u32) -> Decision {
        self.run_inflated.unwrap_or(self.run)(tasks, m)
    }

    /// Decides a set whose jobs are released at multiples of `grid` only.
    ///
    /// # Errors
    /// The test does not apply to the set; it needs times that are multiples of `grid`.
    pub fn decide_on_grid(&self, tasks: &[Timing], m: u32, grid: Duration) -> Decision {
        match self.on_grid {
            Some(decide) => decide(tasks, m, grid),
            None => (self.run)(tasks, m),
        }
    }

    /// Decides a set with blocking and jitter, one entry a task, or none at all. WCETs may have
    /// been made longer by overheads.
    ///
    /// # Errors
    /// The test does not apply to the set, or does not take what it has of these.
    pub fn decide_with(&self, tasks: &[Timing], extras: &[Extras], m: u32) -> Decision {
        match self.carries {
            _ if extras.iter().all(Extras::is_none) => self.decide_inflated(tasks, m),
            Carries::Own(decide) => decide(tasks, extras, m),
            carries => match carries::reduced(carries, tasks, extras)? {
                Some(reduced) => self.decide_inflated(&reduced, m),
                None => Ok(false),
            },
        }
    }

    /// Decides a set as it is given: with blocking and jitter, and with its priorities where the
    /// test is for given ones.
    ///
    /// # Errors
    /// As [`TestInfo::decide_with`].
    pub fn decide_set(&self, set: &TaskSet, m: u32) -> Decision {
        let ordered =
            (self.policy == "g-fp" && set.has_priorities()).then(|| carries::by_priority(set));
        let (tasks, extras) = match &ordered {
            Some((tasks, extras)) => (&tasks[..], &extras[..]),
            None => (set.timings(), set.extras()),
        };
        match extras {
            [] => (self.run)(tasks, m),
            _ => self.decide_with(tasks, extras, m),
        }
    }
}
