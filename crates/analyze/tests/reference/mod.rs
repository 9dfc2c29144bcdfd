//! Slow, independent versions of the tests, straight from the formulas, in rational arithmetic; and
//! a small simulator.
//!
//! Times are whole units in `i128`. Nothing here shares code with the tests, nor their
//! rearrangements of the conditions.

// Each test binary uses a part.
#![allow(dead_code)]

pub mod edf;
pub mod fixed_priority;
pub mod random;
pub mod semi;
pub mod simulator;
pub mod soft;
pub mod windows;

use model::{Duration, Timing};
use num_rational::Ratio;

/// A rational number.
pub type Q = Ratio<i128>;

/// A task: e, p, D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub e: i128,
    pub p: i128,
    pub d: i128,
}

impl Task {
    pub fn u(&self) -> Q {
        Q::new(self.e, self.p)
    }
    pub fn density(&self) -> Q {
        Q::new(self.e, self.d.min(self.p))
    }
    /// Jobs with release and deadline in an interval of length `t`, times e.
    pub fn dbf(&self, t: i128) -> i128 {
        if t < self.d {
            0
        } else {
            ((t - self.d) / self.p + 1) * self.e
        }
    }
    /// As the code under test wants it, with units of `unit` nanoseconds.
    pub fn timing(&self, unit: u64) -> Timing {
        let time = |t: i128| Duration::from_nanos(u64::try_from(t).unwrap() * unit);
        Timing {
            wcet: time(self.e),
            period: time(self.p),
            deadline: time(self.d),
        }
    }
}

pub fn whole(n: i128) -> Q {
    Q::from_integer(n)
}

pub fn total<'a>(tasks: &'a [Task], of: impl Fn(&'a Task) -> Q) -> Q {
    tasks.iter().map(of).sum()
}

pub fn is_constrained(tasks: &[Task]) -> bool {
    tasks.iter().all(|t| t.d <= t.p)
}

pub fn is_feasible(tasks: &[Task]) -> bool {
    tasks.iter().all(|t| t.e <= t.d && t.e <= t.p)
}
