//! How far a set can go until its verdict turns: the largest cache delay, and the growth of WCETs.
//!
//! Where tasks stay in clusters, an assignment is followed. Definition: the largest x such that for
//! every x′ ≤ x (from where the search began) some assignment that the heuristics find on the way
//! there holds, and that they find one at x itself, so that whoever asks for the verdict with x
//! gets a yes. Packing is not monotone in x, so it is not searched: an assignment found at one x is
//! kept and its own largest x found by bisection, which its tests allow (all are monotone in WCETs
//! and delays; and where a sufficient test were not, EDF is predictable, so that what is guaranteed
//! for longer execution is for shorter). One step beyond it the set is packed again, until that
//! fails. Where the heuristics do not find, at the end, what they found on the way, the place
//! between the two where they begin to fail is the answer.
//!
//! Turns, slices and slots are made for one x: the processors that they fill are full, and the same
//! assignment fails right behind it. There is nothing to follow. The set is assigned anew at values
//! that are spread evenly up to the ceiling and at doubling ones between zero and the first of
//! these; from the largest x that passes, bisection goes on towards the next value that was tried.
//! What is found at x holds for all less, since an assignment with its budgets and reserves holds
//! with shorter WCETs and delays. That no larger x passes is not shown, as the heuristics may
//! succeed again between two values: the answer says how many were tried.
//!
//! Work is bounded by the number of assignments that are tried, so that the answer is the same
//! everywhere.

use super::charged::{Case, Point, STEPS};
use super::costs::Rule;
use super::find::Found;
use super::question::Question;
use crate::verdict::Guarantee;
use model::{Duration, Timing};
use serde::Serialize;

/// The largest cache delay a set bears.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Margin {
    /// With this delay a job, the same for every task, the set still passes.
    #[serde(rename = "cpmd_ns", serialize_with = "model::time::ns::serialize")]
    pub cpmd: Duration,
    /// Does it fail one nanosecond beyond? If not, the search ended before it found out.
    pub exact: bool,
    /// How many delays were tried, where each is assigned anew: a longer one between two of them
    /// may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<u64>,
}

/// How much longer (or shorter) WCETs may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Growth {
    /// With all WCETs in this many thousandths of those given, rounded up to nanoseconds, the set
    /// passes.
    pub thousandths: u64,
    /// Does it fail with one thousandth more? If not, the search ended before it found out.
    pub exact: bool,
    /// How many factors were tried, where each is assigned anew: a larger one between two of them
    /// may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<u64>,
}

impl Growth {
    /// As a factor of the WCETs.
    pub fn factor(self) -> f64 {
        self.thousandths as f64 / STEPS as f64
    }
}

/// How many different assignments are followed.
const PACKINGS: usize = 64;

/// The largest x from `from` up to `ceiling`, and whether the next fails; `None` where `from`
/// itself fails.
fn climb<A>(
    (from, ceiling): (u64, u64),
    probes: u64,
    find: impl Fn(u64) -> Option<A>,
    holds: impl Fn(u64, &A) -> bool,
) -> Option<(u64, bool)> {
    let mut left = probes;
    // Where the last assignment was found, and how far it holds.
    let mut way: Option<(u64, u64)> = None;
    let mut exact = false;
    for _ in 0..PACKINGS {
        let next = match way {
            None => from,
            Some((_, x)) => {
                exact = x >= ceiling;
                if exact || left == 0 {
                    break;
                }
                x + 1
            }
        };
        let Some(found) = find(next) else {
            exact = true;
            break;
        };
        left = left.saturating_sub(1);
        let (mut low, mut high) = (next, ceiling.max(next));
        while low < high && left > 0 {
            left -= 1;
            let middle = low + (high - low).div_ceil(2);
            if holds(middle, &found) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        way = Some((next, low));
    }
    let (passes, reached) = way?;
    if passes == reached || find(reached).is_some() {
        return Some((reached, exact));
    }
    Some(turn((passes, reached), probes, |x| find(x).is_some()))
}

/// By bisection, an x that passes, and whether the next fails, between one that passes and one that
/// does not.
fn turn((mut low, mut high): (u64, u64), probes: u64, passes: impl Fn(u64) -> bool) -> (u64, bool) {
    for _ in 0..probes {
        if high - low <= 1 {
            break;
        }
        let middle = low + (high - low) / 2;
        if passes(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high - low == 1)
}

/// The largest x from `from` up to `ceiling` that a search by samples finds to pass, whether the
/// next one fails, and how many were tried; `None` where `from` itself fails. At least half of the
/// probes are for bisection.
fn sample(
    (from, ceiling): (u64, u64),
    probes: u64,
    passes: impl Fn(u64) -> bool,
) -> Option<(u64, bool, u64)> {
    let spread = (probes / 4).clamp(1, MOST_SPREAD);
    let length = ceiling.saturating_sub(from);
    let mut values: Vec<u64> = (1..=spread)
        .map(|i| from + (u128::from(length) * u128::from(i) / u128::from(spread)) as u64)
        .collect();
    // Delays of microseconds matter where the ceiling is a second.
    let mut step = length / spread / 2;
    for _ in 0..probes / 4 {
        if step == 0 {
            break;
        }
        values.push(from + step);
        step /= 2;
    }
    values.sort_unstable();
    values.dedup();
    values.retain(|x| *x > from);
    let mut tried = 1;
    if !passes(from) {
        return None;
    }
    let (mut low, mut high) = (from, ceiling.saturating_add(1));
    for x in values.into_iter().rev() {
        tried += 1;
        if passes(x) {
            low = x;
            break;
        }
        high = x;
    }
    while high - low > 1 && tried < probes {
        tried += 1;
        let middle = low + (high - low) / 2;
        if passes(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((low, high - low == 1, tried))
}

/// The most values that are spread evenly.
const MOST_SPREAD: u64 = 32;

/// How far a search got.
struct Reached {
    x: u64,
    exact: bool,
    tried: Option<u64>,
}

/// The largest x from `from` up to `ceiling`, by the search that fits the policy; `None` where
/// `from` itself fails.
fn farthest(
    question: &Question<'_>,
    range: (u64, u64),
    at: impl Fn(u64) -> Case,
) -> Option<Reached> {
    // Assignments of split tasks are made anew at each point.
    if question.policy.is_split() {
        let (x, exact, tried) = sample(range, question.probes(), |x| {
            question.find(&at(x)).is_some()
        })?;
        return Some(Reached {
            x,
            exact,
            tried: Some(tried),
        });
    }
    let (x, exact) = climb(
        range,
        question.probes(),
        |x| question.find(&at(x)),
        |x, found: &Found| question.holds(&at(x), &found.assignment),
    )?;
    Some(Reached {
        x,
        exact,
        tried: None,
    })
}

/// Beyond this a single job is too long, whoever it shares with.
fn room(t: &Timing, guarantee: Guarantee) -> Duration {
    match guarantee {
        Guarantee::Hard => t.deadline.min(t.period),
        Guarantee::Soft => t.period,
    }
}

/// The largest delay, or `None` where the set fails without any.
pub(super) fn largest_cpmd(question: &Question<'_>) -> Option<Margin> {
    let room = |t: &Timing| room(t, question.guarantee).saturating_sub(t.wcet);
    let rooms = question.set.timings().iter().map(room);
    // By piece some tasks may cause no delay. Beyond the largest room a delay that any job is
    // charged fails.
    let ceiling = match question.bill.rule {
        Rule::ByPiece => rooms.max()?.nanos(),
        Rule::OneDelay | Rule::AllOverheads | Rule::Paper => rooms.min()?.nanos(),
    };
    let at = |d: u64| {
        question.case(Point {
            cpmd: Some(Duration::from_nanos(d)),
            ..Point::GIVEN
        })
    };
    let reached = farthest(question, (0, ceiling), at)?;
    let cpmd = reached.x;
    // Where no job can be delayed, no delay is the largest.
    let is_endless = question.bill.rule == Rule::ByPiece
        && cpmd == ceiling
        && question.find(&at(cpmd + 1)).is_some();
    Some(Margin {
        cpmd: Duration::from_nanos(cpmd),
        exact: reached.exact && !is_endless,
        tried: reached.tried,
    })
}

/// The growth until a yes turns into a no, or the cut until a no turns into a yes; `None` where no
/// cut helps.
pub(super) fn growth(question: &Question<'_>, holds_now: bool) -> Option<Growth> {
    let at = |thousandths: u64| {
        question.case(Point {
            thousandths,
            ..Point::GIVEN
        })
    };
    if !holds_now {
        return cut(question, &|k| question.find(&at(k)).is_some());
    }
    // No job beyond its deadline, and no more work than there are processors.
    let of_task = |t: &Timing| {
        let room = u128::from(room(t, question.guarantee).nanos()) * u128::from(STEPS);
        u64::try_from(room / u128::from(t.wcet.nanos().max(1))).unwrap_or(u64::MAX)
    };
    let by_task = question.set.timings().iter().map(of_task).min()?;
    let total = question.set.utilization_f64();
    let by_all = (question.site.cpus.len() as f64 / total.max(1e-12) * STEPS as f64).ceil();
    // A float beyond 64 bits becomes the largest integer; rounding up leaves the ceiling safe by
    // one step.
    let ceiling = by_task.min((by_all as u64).saturating_add(1)).max(STEPS);
    let reached = farthest(question, (STEPS, ceiling), at)?;
    Some(Growth {
        thousandths: reached.x,
        exact: reached.exact,
        tried: reached.tried,
    })
}

/// By bisection, a factor below one with which the set passes, and with one step more it does not.
fn cut(question: &Question<'_>, passes: &dyn Fn(u64) -> bool) -> Option<Growth> {
    let (thousandths, exact) = turn((0, STEPS), question.probes(), passes);
    (thousandths > 0).then_some(Growth {
        thousandths,
        exact,
        tried: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assignments of the name of where they were found, which hold up to somewhere.
    fn climbed(
        ceiling: u64,
        probes: u64,
        find: &dyn Fn(u64) -> bool,
        end: &dyn Fn(u64) -> u64,
    ) -> Option<(u64, bool)> {
        climb(
            (0, ceiling),
            probes,
            |x| find(x).then_some(x),
            |x, found| x <= end(*found),
        )
    }

    #[test]
    fn the_answer_passes_when_it_is_asked_for_and_the_next_fails() {
        // One assignment for all, up to its end or to the ceiling.
        assert_eq!(
            climbed(1000, 99, &|x| x <= 700, &|_| 700),
            Some((700, true))
        );
        assert_eq!(climbed(500, 99, &|_| true, &|_| 700), Some((500, true)));
        assert_eq!(climbed(500, 99, &|_| false, &|_| 700), None);
        // Three, one behind the other.
        assert_eq!(
            climbed(1000, 99, &|x| x <= 300, &|x| (x / 100 + 1) * 100),
            Some((300, true))
        );
        // What is found at first holds further than the heuristics find anything.
        assert_eq!(climbed(1000, 99, &|x| x < 40, &|_| 700), Some((39, true)));
        assert_eq!(climbed(500, 99, &|x| x < 40, &|_| 700), Some((39, true)));
        // They find something again behind a gap, on the way or at the end.
        assert_eq!(
            climbed(1000, 99, &|x| x < 40 || x == 700, &|_| 700),
            Some((700, true))
        );
        assert_eq!(
            climbed(1000, 99, &|x| x < 40 || x == 101, &|x| if x == 0 {
                100
            } else {
                700
            }),
            Some((101, true))
        );
    }

    #[test]
    fn samples_find_what_passes_beyond_a_gap_and_leave_nothing_at_the_first_failure() {
        // It fails here and there: following it from below ends at the first gap.
        let passes = |x: u64| x <= 612_345 && (x % 1_000 != 17 || x == 0);
        let (x, exact, tried) = sample((0, 1_000_000), 400, passes).unwrap();
        assert!(
            x >= 600_000 && passes(x) && exact && tried <= 400,
            "{x} {tried}"
        );
        // Small answers below a high ceiling.
        for end in [0, 1, 16, 5_000] {
            let (x, exact, tried) = sample((0, 1 << 40), 400, |x| x <= end).unwrap();
            assert_eq!((x, exact), (end, true), "{tried} tried");
        }
        assert_eq!(sample((5, 9), 400, |x| x > 5), None);
        assert_eq!(sample((5, 9), 400, |_| true).unwrap().0, 9);
        assert_eq!(
            sample((5, 5), 8, |_| true).map(|(x, exact, _)| (x, exact)),
            Some((5, true))
        );
        // With few probes the answer is within a part of the ceiling.
        let (x, exact, tried) = sample((0, 1_000_000), 8, |x| x <= 700_000).unwrap();
        assert!(
            (500_000..=700_000).contains(&x) && !exact && tried <= 8,
            "{x}"
        );
    }

    #[test]
    fn a_search_that_ends_early_says_so_and_its_answer_passes() {
        for probes in 1..20 {
            let (x, exact) = climbed(1_000_000, probes, &|x| x < 40_000, &|_| 700_000).unwrap();
            assert!(
                x < 40_000 && exact == (x == 39_999),
                "{probes}: {x} {exact}"
            );
        }
    }
}
