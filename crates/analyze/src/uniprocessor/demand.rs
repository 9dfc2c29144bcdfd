//! The demand of a set by a time, many times over: what quick processor-demand analysis asks for
//! ([`super::edf`]), exactly, in floating point.

use super::edf;
use crate::columns::{LANES, max, round};
use model::Timing;

/// A set as columns of floating-point numbers, by which its demand is summed in a few vector
/// instructions a task. Times below 2^50 and sums below 2^52 are whole and exact; what is beyond
/// goes the way of [`edf::demand`], and so do a few tasks, which integers sum as fast.
pub(super) struct Columns {
    /// Empty where integers are to do it.
    rows: Vec<Lanes>,
    /// How many tasks, without the padding.
    count: usize,
}

/// Tasks that are summed at once; padding never executes.
#[derive(Clone, Copy)]
struct Lanes {
    wcet: [f64; LANES],
    period: [f64; LANES],
    inverse: [f64; LANES],
    /// D − p: a job is due once more each time that so much and a period have gone by.
    offset: [f64; LANES],
}

/// So many tasks are summed in integers.
const FEW: usize = 6;

/// Times from here on are.
const LONG: u64 = 1 << 50;

impl Columns {
    pub(super) fn of(tasks: &[Timing]) -> Self {
        let long = |t: &Timing| t.period.max(t.deadline).max(t.wcet).nanos() >= LONG;
        let rows = match tasks.len() <= FEW || tasks.iter().any(long) {
            true => Vec::new(),
            false => tasks.chunks(LANES).map(Lanes::of).collect(),
        };
        Columns {
            rows,
            count: tasks.len(),
        }
    }

    /// The WCET of the last task has changed.
    pub(super) fn set_last(&mut self, tasks: &[Timing]) {
        if let (Some(last), Some(row)) = (tasks.last(), self.rows.last_mut()) {
            row.wcet[(self.count - 1) % LANES] = last.wcet.nanos() as f64;
        }
    }

    /// [`edf::demand`] of the same tasks.
    pub(super) fn demand(&self, tasks: &[Timing], t: u128) -> u128 {
        if self.rows.is_empty() || t >= u128::from(LONG) {
            return edf::demand(tasks, t);
        }
        let now = t as u64 as f64;
        let mut sums = [0.0; LANES];
        for row in &self.rows {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let since = max(0.0, now - row.offset[lane]);
                // The quotient or the whole number above it, as it errs by far less than a half.
                let near = round(since * row.inverse[lane]);
                let above = near * row.period[lane] > since;
                *sum += (near - if above { 1.0 } else { 0.0 }) * row.wcet[lane];
            }
        }
        let sum: f64 = sums.iter().sum();
        match sum < (1_u64 << 52) as f64 {
            true => u128::from(sum as u64),
            false => edf::demand(tasks, t),
        }
    }
}

impl Lanes {
    fn of(tasks: &[Timing]) -> Self {
        let column = |padding: f64, value: fn(&Timing) -> f64| {
            std::array::from_fn(|lane| tasks.get(lane).map_or(padding, value))
        };
        let period = |t: &Timing| t.period.nanos().max(1) as f64;
        Lanes {
            wcet: column(0.0, |t| t.wcet.nanos() as f64),
            period: column(1.0, period),
            inverse: column(1.0, |t| 1.0 / t.period.nanos().max(1) as f64),
            offset: column(0.0, |t| {
                t.deadline.nanos() as f64 - t.period.nanos().max(1) as f64
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;
    use testing::sets::task_ns as task;

    /// In floating point as in integers, where a deadline or a period ends, just before and just
    /// after, and beyond what floating point holds.
    #[test]
    fn demand_is_the_same_in_columns() {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        for round in 0..2_000 {
            let longest = [50, 1 << 20, 1 << 49, 1 << 51][round % 4];
            let mut tasks: Vec<Timing> = (0..1 + below(20))
                .map(|_| {
                    let p = 1 + below(longest);
                    task(1 + below(p), p, 1 + below(2 * longest))
                })
                .collect();
            let mut columns = Columns::of(&tasks);
            for _ in 0..20 {
                let t = tasks[below(tasks.len() as u64) as usize];
                let jobs = below(1 + (1_u64 << 50) / t.period.nanos());
                let at = u128::from(t.deadline.nanos())
                    + u128::from(jobs) * u128::from(t.period.nanos());
                for at in [at.saturating_sub(1), at, at + 1, at * 3 / 2] {
                    assert_eq!(
                        columns.demand(&tasks, at),
                        edf::demand(&tasks, at),
                        "{at}: {tasks:?}"
                    );
                }
                if let Some(last) = tasks.last_mut() {
                    last.wcet = Duration::from_nanos(1 + last.wcet.nanos() / 2);
                }
                columns.set_last(&tasks);
            }
        }
    }
}
