//! The response-time bound of compliant vectors for global EDF, exact.
//!
//! Source: Erickson, Devi, Baruah, "Improved tardiness bounds for global EDF", ECRTS 2010; in the form of
//! Erickson, Anderson, "Fair lateness scheduling", ECRTS 2012: with Y_i = D_i − min D, S_i =
//! e_i·max(0, 1 − Y_i/p_i), and s the solution of Σ S_i + (the sum of the ⌈U⌉ − 1 largest of
//! e_i − e_i·u_i/m − S_i + u_i·s) = m·s, no response time of task i exceeds Y_i + s − e_i/m + e_i.
//! The left side is piecewise linear, convex and less steep than m·s, so Newton's method from below reaches s in finitely
//! many steps; it runs in rational arithmetic.
//!
//! Assumes: sporadic tasks, deadlines of any length, U ≤ m, u ≤ 1.

use crate::tardiness::{is_bounded, whole_below_utilization};
use crate::verdict::NotApplicable;
use model::{Duration, Timing};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

/// The most tasks of a set: the rational numbers grow with every different period.
pub const MAX_TASKS: usize = 2_000;

/// A bound of the response time of every task, rounded up to a nanosecond; none if it is unbounded.
///
/// # Errors
/// More than [`MAX_TASKS`] tasks.
pub fn response_bounds(tasks: &[Timing], m: u32) -> Result<Option<Vec<Duration>>, NotApplicable> {
    if !is_bounded(tasks, m) || m == 0 {
        return Ok(None);
    }
    if tasks.len() > MAX_TASKS {
        return Err(NotApplicable::Limit("2,000 tasks"));
    }
    if m == 1 && tasks.iter().all(Timing::has_implicit_deadline) {
        // EDF is optimal there.
        return Ok(Some(tasks.iter().map(|t| t.deadline).collect()));
    }
    let shortest = tasks.iter().map(|t| t.deadline).min().unwrap_or_default();
    let lines: Vec<Line> = tasks.iter().map(|t| Line::new(t, shortest, m)).collect();
    let s = solve(tasks, &lines, m);
    let bound = |t: &Timing| {
        let wcet = BigRational::from(BigInt::from(t.wcet.nanos()));
        let response = &s - &wcet / BigInt::from(m) + wcet;
        let response = response.ceil().to_integer() + (t.deadline.nanos() - shortest.nanos());
        // Never negative: s is at least e/m for every task that executes.
        Duration::from_nanos(response.to_u64().unwrap_or(u64::MAX))
    };
    Ok(Some(tasks.iter().map(bound).collect()))
}

/// What a task contributes as a function of s: `at_zero + slope·s`, and S_i apart.
struct Line {
    at_zero: BigRational,
    slope: BigRational,
}

impl Line {
    fn new(t: &Timing, shortest: Duration, m: u32) -> Self {
        let wcet = BigRational::from(BigInt::from(t.wcet.nanos()));
        let slope = t.utilization().to_big();
        let ahead = carried(t, shortest);
        Line {
            at_zero: &wcet - &wcet * &slope / BigInt::from(m) - ahead,
            slope,
        }
    }
    fn at(&self, s: &BigRational) -> BigRational {
        &self.at_zero + &self.slope * s
    }
}

/// S_i.
fn carried(t: &Timing, shortest: Duration) -> BigRational {
    let later = t.deadline.nanos() - shortest.nanos();
    let part = t.period.nanos().saturating_sub(later);
    t.utilization().to_big() * BigInt::from(part)
}

/// The s at which the lines and the carried work meet m·s.
fn solve(tasks: &[Timing], lines: &[Line], m: u32) -> BigRational {
    let shortest = tasks.iter().map(|t| t.deadline).min().unwrap_or_default();
    let chosen = usize::try_from(whole_below_utilization(tasks)).unwrap_or(usize::MAX);
    let carried: BigRational = sum(tasks.iter().map(|t| carried(t, shortest)));
    let mut s = BigRational::zero();
    loop {
        let mut order: Vec<(BigRational, usize)> = lines
            .iter()
            .enumerate()
            .map(|(i, line)| (line.at(&s), i))
            .collect();
        // Where two lines meet, the steeper one counts from there on.
        order.sort_by(|(a, i), (b, j)| b.cmp(a).then_with(|| lines[*j].slope.cmp(&lines[*i].slope)));
        let top = || order.iter().take(chosen).map(|(_, i)| &lines[*i]);
        let height = &carried + sum(top().map(|l| l.at_zero.clone()));
        let slope = sum(top().map(|l| l.slope.clone()));
        // At most m − 1 slopes of at most 1: the divisor is at least 1.
        let next = height / (BigRational::from(BigInt::from(m)) - slope);
        if next <= s {
            return if s.is_negative() { BigRational::zero() } else { s };
        }
        s = next;
    }
}

fn sum(terms: impl Iterator<Item = BigRational>) -> BigRational {
    terms.fold(BigRational::zero(), |total, t| total + t)
}

/// The tardiness that the response times leave beyond the deadlines.
///
/// # Errors
/// As [`response_bounds`].
pub fn tardiness_bounds(tasks: &[Timing], m: u32) -> Result<Option<Vec<Duration>>, NotApplicable> {
    let responses = response_bounds(tasks, m)?;
    Ok(responses.map(|responses| {
        let late = |(t, r): (&Timing, Duration)| r.saturating_sub(t.deadline);
        tasks.iter().zip(responses).map(late).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_equal_tasks_on_two_processors() {
        // Y = 0, S_i = 2, ⌈U⌉ − 1 = 1: 6 + (2 − 2·(2/3)/2 − 2 + 2/3·s) = 2·s, so s = (16/3)/(4/3) = 4 and R = 4 − 1 + 2.
        let t = Timing::implicit(Duration::from_nanos(2), Duration::from_nanos(3));
        assert_eq!(
            response_bounds(&[t; 3], 2),
            Ok(Some(vec![Duration::from_nanos(5); 3]))
        );
        assert_eq!(
            tardiness_bounds(&[t; 3], 2),
            Ok(Some(vec![Duration::from_nanos(2); 3]))
        );
    }
}
