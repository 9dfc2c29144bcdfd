//! The bound that both tardiness bounds for window-constrained priorities come down to: from what
//! one interval may leave undone.
//!
//! Source: `docs/tardiness.md`, where it is derived: if Λ tasks at most have work left over at the
//! start of the interval that leads to a tardy job, and A_k is the work that may stand in the way
//! of a job of task k in addition, then no job of task k is later than (E + V·x + A_k)/m + e_k with
//! x = max(0, (E + max A)/(m − V)); E is the sum of the Λ largest e, V that of the Λ largest u.
//!
//! Assumes: D = p, u ≤ 1, Λ < m.

use model::{Ratio, exact};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::ToPrimitive;

/// A bound of the tardiness of every task, rounded up, in the units of its arguments; at most 2^64
/// − 1.
///
/// `tasks` are pairs of e and p, `allowances` the A_k, which may be negative.
pub(super) fn tardiness_bounds(
    tasks: &[(u64, u64)],
    m: u32,
    lambda: usize,
    allowances: &[i128],
) -> Vec<u64> {
    let Some(most) = allowances.iter().max() else {
        return Vec::new();
    };
    let left_over = left_over(tasks, m, lambda, *most);
    let bound = |((wcet, _), allowance): (&(u64, u64), &i128)| {
        // ⌈(⌈a⌉ + b)/m⌉ = ⌈(a + b)/m⌉ for whole b.
        let delayed = Integer::div_ceil(&left_over.saturating_add(*allowance), &i128::from(m));
        let late = delayed.saturating_add(i128::from(*wcet)).max(0);
        u64::try_from(late).unwrap_or(u64::MAX)
    };
    tasks.iter().zip(allowances).map(bound).collect()
}

/// E + V·x, rounded up; at most 2^126.
fn left_over(tasks: &[(u64, u64)], m: u32, lambda: usize, most: i128) -> i128 {
    let mut wcets: Vec<u64> = tasks.iter().map(|(e, _)| *e).collect();
    wcets.sort_unstable_by(|a, b| b.cmp(a));
    let work: i128 = wcets.iter().take(lambda).map(|e| i128::from(*e)).sum();
    let needed = work.saturating_add(most).max(0);
    let mut shares: Vec<Ratio> = tasks
        .iter()
        .filter_map(|(e, p)| Ratio::new(*e, *p))
        .collect();
    shares.sort_unstable_by(|a, b| b.cmp(a));
    shares.truncate(lambda);
    // V = num/den, so that V·x = num·needed/(m·den − num); at most m − 1 shares of at most 1.
    let (num, den) = exact::sum_unreduced(shares);
    let capacity = BigUint::from(m) * den - &num;
    let carried = BigInt::from(num) * BigInt::from(needed);
    let carried = Integer::div_ceil(&carried, &BigInt::from(capacity));
    (BigInt::from(work) + carried)
        .to_i128()
        .unwrap_or(i128::MAX)
        .min(1 << 126)
}
