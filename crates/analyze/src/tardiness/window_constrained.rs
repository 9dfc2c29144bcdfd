//! A tardiness bound for global scheduling by priorities that move within windows.
//!
//! At every instant each ready job has a priority point, no earlier than its release less φ_i and
//! no later than its deadline plus ψ_i; the m jobs with the earliest points run. Points may move at
//! any time. Global EDF is the case that the point stays on the deadline, first in, first out that
//! it stays on the release.
//!
//! Source: Leontyev, Anderson, "Generalized tardiness bounds for global multiprocessor scheduling",
//! RTSS 2007 and Real-Time Systems 44 (2010), show that tardiness is bounded then, if the set is
//! not over-utilized. The bound here is derived in `docs/tardiness.md` in the manner of theirs, and
//! need not be the same number: Λ = ⌈U⌉ − 1, A_k = (m − 1)·ρ_k − e_k + Σ_{i≠k} (⌈(C_k + φ_i)/p_i⌉ +
//! 1)·e_i, ρ_k = ψ_k + max_{i≠k} φ_i, C_k = max_{i≠k} (ψ_k + φ_i + p_i + ψ_i); from there on as in
//! `lag`.
//!
//! Assumes: sporadic tasks, D = p, U ≤ m, u ≤ 1; full preemption, no processor idle while a job
//! waits.

use super::{is_bounded, lag, whole_below_utilization};
use crate::columns::Budget;
use crate::verdict::{NotApplicable, implicit_deadlines};
use model::{Duration, Timing};
use std::collections::BTreeMap;

/// How far a priority point may lie outside the time from release to deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// φ: before the release.
    pub before: Duration,
    /// ψ: after the deadline.
    pub after: Duration,
}

/// A bound of the tardiness of every task, rounded up to a nanosecond; none if it is unbounded. A
/// task without a window keeps its points between release and deadline.
///
/// # Errors
/// A deadline other than the period; too many different windows.
pub fn tardiness_bounds(
    tasks: &[Timing],
    m: u32,
    windows: &[Window],
) -> Result<Option<Vec<Duration>>, NotApplicable> {
    implicit_deadlines(tasks)?;
    if !is_bounded(tasks, m) || m == 0 {
        return Ok(tasks.is_empty().then(Vec::new));
    }
    let rows: Vec<Row> = tasks
        .iter()
        .enumerate()
        .map(|(i, t)| Row::new(t, windows.get(i).copied().unwrap_or_default()))
        .collect();
    let earliest = Largest::of(rows.iter().map(|r| r.before));
    let latest = Largest::of(rows.iter().map(|r| r.before + r.period + r.after));
    let mut budget = Budget::new(tasks.len());
    // The work of all tasks by C_k, of which there are few as long as windows are alike.
    let mut work: BTreeMap<u128, u128> = BTreeMap::new();
    let mut allowances = Vec::with_capacity(rows.len());
    for (k, row) in rows.iter().enumerate() {
        let (Some(before), Some(end)) = (earliest.without(k), latest.without(k)) else {
            // Nobody else.
            allowances.push(-(row.wcet as i128));
            continue;
        };
        let reach = row.after + end;
        let all = match work.get(&reach) {
            Some(all) => *all,
            None => {
                budget.spend(8 * rows.len() as u64)?;
                let all = rows.iter().map(|r| r.work(reach)).sum();
                work.insert(reach, all);
                all
            }
        };
        let others = all - row.work(reach);
        let spread = u128::from(m - 1) * (row.after + before);
        // Each below 2^100: a million tasks, times below 2^66.
        allowances.push((spread + others) as i128 - row.wcet as i128);
    }
    let pairs: Vec<(u64, u64)> = tasks
        .iter()
        .map(|t| (t.wcet.nanos(), t.period.nanos()))
        .collect();
    // Less than U, which is at most m.
    let lambda = whole_below_utilization(tasks) as usize;
    let bounds = lag::tardiness_bounds(&pairs, m, lambda, &allowances);
    Ok(Some(bounds.into_iter().map(Duration::from_nanos).collect()))
}

/// A task with its window, wide enough to add.
struct Row {
    wcet: u128,
    period: u128,
    before: u128,
    after: u128,
}

impl Row {
    fn new(task: &Timing, window: Window) -> Self {
        Row {
            wcet: u128::from(task.wcet.nanos()),
            period: u128::from(task.period.nanos().max(1)),
            before: u128::from(window.before.nanos()),
            after: u128::from(window.after.nanos()),
        }
    }
    /// (⌈(C + φ)/p⌉ + 1)·e: at most C + φ + 2·e, as e ≤ p.
    fn work(&self, reach: u128) -> u128 {
        ((reach + self.before).div_ceil(self.period) + 1) * self.wcet
    }
}

/// The largest of some values, and the largest without any one of them.
struct Largest {
    first: Option<(usize, u128)>,
    second: Option<u128>,
}

impl Largest {
    fn of(values: impl Iterator<Item = u128>) -> Self {
        let mut largest = Largest {
            first: None,
            second: None,
        };
        for (i, value) in values.enumerate() {
            match largest.first {
                Some((_, first)) if value <= first => {
                    largest.second = largest.second.max(Some(value))
                }
                _ => {
                    largest.second = largest.first.map(|(_, first)| first);
                    largest.first = Some((i, value));
                }
            }
        }
        largest
    }
    fn without(&self, k: usize) -> Option<u128> {
        match self.first {
            Some((i, _)) if i == k => self.second,
            first => first.map(|(_, value)| value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(wcet: u64, period: u64) -> Timing {
        Timing::implicit(Duration::from_nanos(wcet), Duration::from_nanos(period))
    }

    #[test]
    fn three_equal_tasks_on_two_processors() {
        // Λ = 1, C = 3, A = 0 − 2 + 2·(⌈3/3⌉ + 1)·2 = 6, x = (2 + 6)/(2 − 2/3) = 6; (2 + 4 + 6)/2 +
        // 2.
        let bounds = tardiness_bounds(&[task(2, 3); 3], 2, &[]).unwrap().unwrap();
        assert_eq!(bounds, [Duration::from_nanos(8); 3]);
    }

    #[test]
    fn wider_windows_mean_more_tardiness_and_an_overfull_system_has_no_bound() {
        let tasks = [task(2, 3); 3];
        let wide = [Window {
            before: Duration::from_nanos(1),
            after: Duration::from_nanos(4),
        }; 3];
        let bounds = tardiness_bounds(&tasks, 2, &wide).unwrap().unwrap();
        // ρ = 5, C = 4 + 1 + 3 + 4 = 12, A = 5 − 2 + 2·(⌈13/3⌉ + 1)·2 = 27, x = 29/(4/3) = 21.75;
        // (2 + 14.5 + 27)/2 + 2.
        assert_eq!(bounds, [Duration::from_nanos(24); 3]);
        assert_eq!(tardiness_bounds(&[task(2, 3); 4], 2, &wide), Ok(None));
    }

    #[test]
    fn a_task_alone_is_never_tardy() {
        assert_eq!(
            tardiness_bounds(&[task(3, 3)], 1, &[]),
            Ok(Some(vec![Duration::ZERO]))
        );
        assert_eq!(tardiness_bounds(&[], 0, &[]), Ok(Some(Vec::new())));
    }
}
