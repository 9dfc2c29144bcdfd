//! EDF-WM (002 §4.2) against a slow version of its own: every deadline up to a hyperperiod is looked
//! at, every processor is asked for every slice, and nothing ends early.

use analyze::partition::{Fit, Order};
use analyze::semi::edf_wm::{self, Settings};
use analyze::semi::processors;
use analyze::uniprocessor::{Work, edf, longest_last};
use model::{Duration, Timing};
use proptest::prelude::*;
use testing::sets::task_ns as task;
use testing::times::ns;

fn nanos(t: &Timing) -> (u128, u128, u128) {
    let of = |d: Duration| u128::from(d.nanos());
    (of(t.wcet), of(t.period), of(t.deadline))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Every deadline up to a hyperperiod after the longest D − p: what comes after repeats.
fn deadlines(tasks: &[Timing]) -> Vec<u128> {
    let mut end = 1;
    let mut longest = 0;
    for (_, p, d) in tasks.iter().map(nanos) {
        end = end / gcd(end, p) * p;
        longest = longest.max(d.saturating_sub(p));
    }
    let mut all: Vec<u128> = tasks
        .iter()
        .map(nanos)
        .flat_map(|(_, p, d)| {
            (0..)
                .map(move |k| d + k * p)
                .take_while(move |t| *t <= end + longest)
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn jobs(t: &Timing, by: u128) -> u128 {
    let (_, p, d) = nanos(t);
    by.checked_sub(d).map_or(0, |beyond| beyond / p + 1)
}

fn demand(tasks: &[Timing], by: u128) -> u128 {
    tasks.iter().map(|t| jobs(t, by) * nanos(t).0).sum()
}

/// Σ e/p ≤ 1, over the common multiple of the periods.
fn is_within_one(tasks: &[Timing]) -> bool {
    let common = tasks
        .iter()
        .map(nanos)
        .fold(1, |end, (_, p, _)| end / gcd(end, p) * p);
    tasks
        .iter()
        .map(nanos)
        .map(|(e, p, _)| e * (common / p))
        .sum::<u128>()
        <= common
}

fn holds(tasks: &[Timing]) -> bool {
    is_within_one(tasks) && deadlines(tasks).iter().all(|t| demand(tasks, *t) <= *t)
}

/// The longest execution of `slice` beside others that hold.
fn longest(others: &[Timing], slice: Timing) -> u64 {
    let with = |wcet: u64| {
        [
            others,
            &[Timing {
                wcet: ns(wcet),
                ..slice
            }],
        ]
        .concat()
    };
    let (mut low, mut high) = (0, slice.wcet.nanos());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match is_within_one(&with(middle)) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    let admitted = deadlines(&with(low)).into_iter().filter_map(|t| {
        let own = jobs(&slice, t);
        (own > 0).then(|| (t - demand(others, t)) / own)
    });
    admitted
        .min()
        .map_or(low, |most| low.min(u64::try_from(most).unwrap_or(u64::MAX)))
}

/// Budgets and processors of each task, first fit in the order given. `None`: it cannot be placed.
fn assign(tasks: &[Timing], m: usize, shortest: u64) -> Option<Vec<Vec<(usize, u64)>>> {
    let mut on: Vec<Vec<Timing>> = vec![Vec::new(); m];
    let place = |t: &Timing| {
        let whole = (0..m).find(|p| holds(&[&on[*p][..], &[*t]].concat()));
        if let Some(p) = whole {
            on[p].push(*t);
            return Some(vec![(p, t.wcet.nanos())]);
        }
        for count in 2..=m {
            let window = ns(t.deadline.min(t.period).nanos() / count as u64);
            if window.nanos() < shortest.max(1) {
                return None;
            }
            let slice = Timing {
                wcet: t.wcet.min(window),
                deadline: window,
                ..*t
            };
            let mut parts: Vec<(usize, u64)> =
                (0..m).map(|p| (p, longest(&on[p], slice))).collect();
            parts.sort_by_key(|(p, budget)| (std::cmp::Reverse(*budget), *p));
            parts.truncate(count);
            let total: u64 = parts.iter().map(|part| part.1).sum();
            if total < t.wcet.nanos() || parts.iter().any(|part| part.1 < shortest.max(1)) {
                continue;
            }
            let before: u64 = parts[..count - 1].iter().map(|part| part.1).sum();
            let missing = t.wcet.nanos().saturating_sub(before);
            let last = missing.max(shortest).max(1);
            parts[count - 1].1 = last;
            let first = parts[0].1;
            parts[0].1 = first
                .saturating_sub(last - missing)
                .max(shortest.min(first));
            for (p, budget) in &parts {
                on[*p].push(Timing {
                    wcet: ns(*budget),
                    ..slice
                });
            }
            return Some(parts);
        }
        None
    };
    tasks.iter().map(place).collect()
}

fn compare(tasks: &[Timing], m: usize, shortest: u64) -> Result<usize, TestCaseError> {
    let settings = Settings {
        order: Order::Given,
        fit: Fit::First,
        shortest: ns(shortest),
        ..Settings::default()
    };
    let fast = edf_wm::assign(tasks, &processors(m as u32), &settings)
        .ok()
        .map(|slices| {
            let parts = |parts: Vec<model::assignment::Slice>| {
                parts
                    .iter()
                    .map(|s| (s.cpu.index(), s.budget.nanos()))
                    .collect::<Vec<_>>()
            };
            slices.tasks.into_iter().map(parts).collect::<Vec<_>>()
        });
    let slow = assign(tasks, m, shortest);
    prop_assert_eq!(&fast, &slow);
    Ok(slow
        .iter()
        .flatten()
        .filter(|parts| parts.len() > 1)
        .count())
}

/// Heavy tasks with periods that have much in common, so that hyperperiods stay short; in some sets
/// processors are full to the last unit.
fn heavy(tasks: usize) -> impl Strategy<Value = Vec<Timing>> {
    let period = prop::sample::select(vec![4u64, 6, 8, 9, 10, 12, 15, 18, 20, 24, 30]);
    let one = (period, 30u64..=95, 1u64..=6, 0u64..10).prop_map(|(p, share, unit, early)| {
        let p = p * unit;
        let wcet = (p * share).div_ceil(100);
        let deadline = if early < 3 {
            wcet + (p - wcet) * early / 3
        } else {
            p
        };
        task(wcet, p, deadline)
    });
    prop::collection::vec(one, 1..=tasks)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn slices_are_those_of_the_slow_version(
        set in heavy(9),
        m in 2usize..=5,
        shortest in 0u64..=3,
    ) {
        compare(&set, m, shortest)?;
    }

    /// Milliseconds, as in 002 §6.4, with WCETs to the nanosecond.
    #[test]
    fn long_hyperperiods_change_nothing(
        periods in prop::collection::vec(3u64..=33, 1..=3),
        shares in prop::collection::vec(1u64..1_000_000, 4),
        parts in 2u64..=4,
    ) {
        let total: u64 = shares[..periods.len()].iter().sum();
        let own = |(p, share): (&u64, &u64)| {
            let wcet = (u128::from(p * 1_000_000) * u128::from(*share) / u128::from(total)) as u64;
            task(wcet * 7 / 10, p * 1_000_000, p * 1_000_000)
        };
        let mut tasks: Vec<Timing> = periods.iter().zip(&shares).map(own).collect();
        let (period, window) = (periods[0] * 1_000_000, periods[0] * 1_000_000 / parts);
        // One of the others is a slice itself.
        let (wcet, own) = (tasks[0].wcet.nanos(), tasks[0].period.nanos());
        tasks[0].deadline = ns(wcet + (own - wcet) / parts);
        if !holds(&tasks) {
            return Ok(());
        }
        let mut slice = task(window.min(period * 3 / 10), period, window);
        let expected = longest(&tasks, slice);
        tasks.push(slice);
        while !is_within_one(&tasks) {
            slice.wcet = ns(slice.wcet.nanos() - 1);
            *tasks.last_mut().unwrap() = slice;
        }
        let found = longest_last(&mut tasks, Duration::ZERO, &mut Work::new());
        prop_assert_eq!(found, Ok(ns(expected)));
        prop_assert_eq!(edf::decide(&tasks), Ok(true));
        tasks.last_mut().unwrap().wcet = ns(expected + 1);
        let more = expected < slice.wcet.nanos();
        prop_assert_eq!(edf::decide(&tasks), Ok(holds(&tasks)));
        prop_assert!(!more || edf::decide(&tasks) == Ok(false));
    }
}

/// The sets of the comparison are cut into slices often enough that it compares something.
#[test]
fn many_sets_are_cut_into_slices() {
    let (mut cut, mut whole) = (0, 0);
    for (a, b) in [(7, 12), (8, 15), (13, 20), (11, 18)] {
        for m in 2..=4 {
            let tasks: Vec<Timing> = (0..=m as u64).map(|_| task(a, b, b)).collect();
            match compare(&tasks, m, 1).expect("the same") {
                0 => whole += 1,
                _ => cut += 1,
            }
        }
    }
    assert!(cut >= 6 && whole <= 6, "{cut} of {}", cut + whole);
}

/// A processor that is full to the last nanosecond is decided by its hyperperiod: the demand bound
/// alone ends nowhere.
#[test]
fn a_full_processor_is_decided_within_a_hyperperiod() {
    let ms = 1_000_000;
    let whole = task(20 * ms, 33 * ms, 33 * ms);
    let mut tasks = vec![whole, task(13 * 32 * ms / 33, 32 * ms, 16 * ms)];
    let expected = longest(&tasks[..1], tasks[1]);
    assert!(is_within_one(&tasks));
    let found = longest_last(&mut tasks, Duration::ZERO, &mut Work::of(10_000));
    assert_eq!(found, Ok(ns(expected)));
    assert_eq!(edf::decide(&tasks), Ok(true));
}
