//! The response-time bound of compliant vectors for global EDF, exact.
//!
//! Source: Erickson, Devi, Baruah, "Improved tardiness bounds for global EDF", ECRTS 2010; in the
//! form of Erickson, Anderson, "Fair lateness scheduling", ECRTS 2012: with Y_i = D_i − min D, S_i
//! = e_i·max(0, 1 − Y_i/p_i), and s the solution of Σ S_i + (the sum of the ⌈U⌉ − 1 largest of e_i
//! − e_i·u_i/m − S_i + u_i·s) = m·s, no response time of task i exceeds Y_i + s − e_i/m + e_i. The
//! left side is piecewise linear, convex and less steep than m·s, so Newton's method from below
//! reaches s in finitely many steps; it runs in exact fractions.
//!
//! Assumes: sporadic tasks, deadlines of any length, U ≤ m, u ≤ 1.

use crate::tardiness::{is_bounded, whole_below_utilization};
use crate::verdict::NotApplicable;
use model::{Duration, Timing};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

/// The most tasks of a set: the numbers grow with every different period.
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
    let chosen = usize::try_from(whole_below_utilization(tasks)).unwrap_or(usize::MAX);
    let s = solve(&lines, chosen, m);
    let wide = BigInt::from(m) * &s.den;
    let bound = |t: &Timing| {
        let ahead = &s.num * m - &s.den * t.wcet.nanos();
        let later = t.deadline.nanos() - shortest.nanos();
        // ⌈s − e/m⌉ may be negative; the response is at least e.
        let response = Integer::div_ceil(&ahead, &wide) + t.wcet.nanos() + later;
        Duration::from_nanos(response.to_u64().unwrap_or(u64::MAX))
    };
    Ok(Some(tasks.iter().map(bound).collect()))
}

/// A fraction that is not reduced: with many different periods, finding what its parts share takes
/// longer than all else.
struct Fraction {
    num: BigInt,
    den: BigInt,
}

impl Fraction {
    /// The sum of fractions, two by two: the long multiplications are few and balanced.
    fn sum(mut terms: Vec<(BigInt, u64)>) -> Fraction {
        terms.sort_unstable_by_key(|(_, den)| *den);
        let merged: Vec<(BigInt, u64)> = terms
            .chunk_by(|a, b| a.1 == b.1)
            .filter_map(|same| Some((same.iter().map(|(num, _)| num).sum(), same.first()?.1)))
            .collect();
        Fraction::tree(&merged)
    }

    fn tree(terms: &[(BigInt, u64)]) -> Fraction {
        match terms {
            [] => Fraction {
                num: BigInt::ZERO,
                den: BigInt::from(1),
            },
            [(num, den)] => Fraction {
                num: num.clone(),
                den: BigInt::from(*den),
            },
            _ => {
                let (left, right) = terms.split_at(terms.len() / 2);
                let (left, right) = (Fraction::tree(left), Fraction::tree(right));
                Fraction {
                    num: left.num * &right.den + right.num * &left.den,
                    den: left.den * right.den,
                }
            }
        }
    }

    fn to_f64(&self) -> f64 {
        const POINT: usize = 128;
        let fixed: BigInt = (&self.num << POINT) / &self.den;
        fixed.to_f64().unwrap_or(f64::INFINITY) / 2.0_f64.powi(POINT as i32)
    }
}

/// What a task contributes as a function of s, m·p_i times: `at_zero + m·e_i·s`, and p_i·S_i apart.
struct Line {
    wcet: u64,
    period: u64,
    at_zero: BigInt,
    carried: u128,
}

impl Line {
    fn new(t: &Timing, shortest: Duration, m: u32) -> Self {
        let (wcet, period) = (t.wcet.nanos(), t.period.nanos().max(1));
        let later = (t.deadline.nanos() - shortest.nanos()).min(period);
        // e − e²/(m·p) − S with S = e·(p − later)/p, times m·p.
        let at_zero = BigInt::from(wcet) * later * m - BigInt::from(wcet) * wcet;
        Line {
            wcet,
            period,
            at_zero,
            carried: u128::from(wcet) * u128::from(period - later),
        }
    }

    /// The contribution at s, m·p_i·`s.den` times.
    fn at(&self, s: &Fraction, m: u32) -> BigInt {
        &self.at_zero * &s.den + &s.num * self.wcet * m
    }

    /// The contribution at s, to about 16 digits of the size of its terms.
    fn about(&self, s: f64, m: u32) -> f64 {
        let (e, p) = (self.wcet as f64, self.period as f64);
        let at_zero = self.at_zero.to_f64().unwrap_or(0.0) / p / f64::from(m);
        at_zero + e / p * s
    }
}

/// The s at which the lines and the carried work meet m·s.
fn solve(lines: &[Line], chosen: usize, m: u32) -> Fraction {
    let mut s = Fraction {
        num: BigInt::ZERO,
        den: BigInt::from(1),
    };
    loop {
        let top = top(lines, chosen, m, &s);
        // m·(Σ S_i + what the top lines are at 0), over m·(m − the sum of their slopes).
        let carried = lines
            .iter()
            .map(|l| (BigInt::from(l.carried) * m, l.period));
        let at_zero = top
            .iter()
            .map(|i| (lines[*i].at_zero.clone(), lines[*i].period));
        let height = Fraction::sum(carried.chain(at_zero).collect());
        let slope = Fraction::sum(
            top.iter()
                .map(|i| (BigInt::from(lines[*i].wcet), lines[*i].period))
                .collect(),
        );
        // At most m − 1 slopes of at most 1: the divisor is positive.
        let next = Fraction {
            num: height.num * &slope.den,
            den: height.den * (slope.den * m - slope.num) * m,
        };
        if &next.num * &s.den <= &s.num * &next.den {
            return s;
        }
        s = next;
    }
}

/// The lines that are highest at s; where two meet, the steeper one, which counts from there on.
/// Floating point chooses where it is clear.
fn top(lines: &[Line], chosen: usize, m: u32, s: &Fraction) -> Vec<usize> {
    let about_s = s.to_f64();
    let mut order: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .map(|(i, line)| (line.about(about_s, m), i))
        .collect();
    if chosen >= order.len() {
        return (0..lines.len()).collect();
    }
    order.sort_unstable_by(|(a, _), (b, _)| b.total_cmp(a));
    let largest = lines
        .iter()
        .map(|l| l.wcet as f64 * (2.0 + about_s / l.period as f64))
        .fold(0.0, f64::max);
    // Some roundings of terms that are no larger.
    let error = 32.0 * f64::EPSILON * largest;
    let Some(last) = chosen.checked_sub(1).map(|i| order[i].0) else {
        return Vec::new();
    };
    let clear = order.partition_point(|(value, _)| *value > last + 2.0 * error);
    let close = order.partition_point(|(value, _)| *value >= last - 2.0 * error);
    let mut decided: Vec<usize> = order[..clear].iter().map(|(_, i)| *i).collect();
    if close > chosen {
        let mut exact: Vec<(BigInt, usize)> = order[clear..close]
            .iter()
            .map(|(_, i)| (lines[*i].at(s, m), *i))
            .collect();
        exact.sort_by(|(a, i), (b, j)| {
            let (i, j) = (&lines[*i], &lines[*j]);
            let slopes = || {
                (u128::from(j.wcet) * u128::from(i.period))
                    .cmp(&(u128::from(i.wcet) * u128::from(j.period)))
            };
            (b * i.period).cmp(&(a * j.period)).then_with(slopes)
        });
        decided.extend(exact.iter().take(chosen - clear).map(|(_, i)| *i));
    } else {
        decided.extend(order[clear..chosen].iter().map(|(_, i)| *i));
    }
    decided
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
        // Y = 0, S_i = 2, ⌈U⌉ − 1 = 1: 6 + (2 − 2·(2/3)/2 − 2 + 2/3·s) = 2·s, so s = (16/3)/(4/3) =
        // 4 and R = 4 − 1 + 2.
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
