//! P-EDF and one processor, held to the sample of established tools and to slow versions straight
//! from the formulas.
//!
//! `data/gedf_verdicts.jsonl`: 296 sets with the assignments of four heuristics and the verdicts of
//! an established QPA.

use analyze::partition::{Acceptance, Fit, Order, Scratch, partition};
use analyze::uniprocessor::fixed_priority::{
    Priority, Response, hyperbolic, liu_layland, response_times,
};
use analyze::uniprocessor::{edf, fixed_priority};
use model::{Duration, Timing};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};
use proptest::prelude::*;
use testing::sets::task_ns as task;

const SAMPLE: &str = include_str!("data/gedf_verdicts.jsonl");
const FITS: [(&str, Fit); 4] = [
    ("WFD", Fit::Worst),
    ("FFD", Fit::First),
    ("BFD", Fit::Best),
    ("NFD", Fit::Next),
];

#[test]
fn all_296_sets_have_the_assignments_and_verdicts_of_the_sample() {
    let mut compared = 0;
    for line in SAMPLE.lines() {
        // Read by hand: the sample holds sets with a WCET above its deadline, which task files must
        // not.
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        let (id, m) = (&expected["id"], expected["m"].as_u64().unwrap() as u32);
        let micros = |v: &serde_json::Value| v.as_u64().unwrap() * 1_000;
        let tasks: Vec<Timing> = expected["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| {
                task(
                    micros(&t["wcet"]),
                    micros(&t["period"]),
                    micros(&t["deadline"]),
                )
            })
            .collect();
        let sizes = vec![1; m as usize];
        for (name, fit) in FITS {
            let mut scratch = Scratch::new();
            let assigned = scratch.pack(&tasks, &sizes, Order::DecreasingUtilization, fit);
            let verdict =
                |suffix: &str| expected["verdicts"][format!("PEDF-{name}-{suffix}")].as_bool();
            assert_eq!(
                Some(assigned.is_ok()),
                verdict("fits"),
                "{name}, set {}",
                id
            );
            // -1 marks a task that found no place.
            let given: Vec<i64> =
                serde_json::from_value(expected["pedf"][name]["assign"].clone()).unwrap();
            match assigned {
                Ok(bins) => assert!(
                    bins.iter().map(|b| i64::from(*b)).eq(given.iter().copied()),
                    "{name}, set {}",
                    id
                ),
                Err(task) => assert_eq!(given[task as usize], -1, "{name}, set {}", id),
            }
            let test = analyze::registry::find(&format!("PEDF-{name}")).unwrap();
            assert_eq!(
                (test.run)(&tasks, m).ok(),
                verdict("QPA"),
                "{name}, set {}",
                id
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 296 * 4);
}

fn rational(num: u64, den: u64) -> BigRational {
    BigRational::new(BigInt::from(num), BigInt::from(den))
}
fn utilization(t: &Timing) -> BigRational {
    rational(t.wcet.nanos(), t.period.nanos())
}
fn total<'a>(tasks: impl IntoIterator<Item = &'a Timing>) -> BigRational {
    tasks
        .into_iter()
        .fold(BigRational::zero(), |sum, t| sum + utilization(t))
}

/// Small periods with a small hyperperiod, utilizations of all kinds, deadlines on both sides of
/// the period.
fn small_set(tasks: usize) -> impl Strategy<Value = Vec<Timing>> {
    let one = (
        prop::sample::select(vec![2u64, 3, 4, 5, 6, 8, 10, 12]),
        1..=100u64,
        30..=180u64,
    )
        .prop_map(|(p, share, stretch)| {
            let d = (p * stretch).div_ceil(100).max(1);
            let e = (p * share / 100).clamp(1, d);
            task(e, p, d)
        });
    prop::collection::vec(one, 1..=tasks)
}

/// U ≤ 1 and h(t) ≤ t at every t up to two hyperperiods and the longest deadline.
fn slow_edf(tasks: &[Timing]) -> bool {
    if total(tasks) > BigRational::one() {
        return false;
    }
    (1..=360u64).all(|t| {
        let demand: u64 = tasks
            .iter()
            .filter(|k| t >= k.deadline.nanos())
            .map(|k| ((t - k.deadline.nanos()) / k.period.nanos() + 1) * k.wcet.nanos())
            .sum();
        demand <= t
    })
}

/// Response times by running the synchronous schedule one unit at a time until every task was idle
/// at once, or missed.
fn slow_responses(tasks: &[Timing], priority: Priority) -> Vec<Option<u64>> {
    let order = priority.order(tasks);
    let mut worst = vec![Some(0); tasks.len()];
    for (level, &index) in order.iter().enumerate() {
        // Only this task and the higher ones, from a synchronous release to the first idle instant.
        let ran = &order[..=level];
        let mut queue: Vec<Vec<(u64, u64)>> = vec![Vec::new(); tasks.len()];
        for now in 0u64.. {
            for &i in ran {
                if now.is_multiple_of(tasks[i].period.nanos()) {
                    queue[i].push((now, tasks[i].wcet.nanos()));
                }
            }
            let Some(&running) = ran.iter().find(|i| !queue[**i].is_empty()) else {
                break;
            };
            let job = &mut queue[running][0];
            job.1 -= 1;
            if job.1 == 0 {
                let (release, _) = queue[running].remove(0);
                if running == index {
                    worst[index] = worst[index].max(Some(now + 1 - release));
                }
            }
            let late = queue[index]
                .iter()
                .any(|(release, _)| now + 1 > release + tasks[index].deadline.nanos());
            if late || worst[index] > Some(tasks[index].deadline.nanos()) {
                worst[index] = None;
                break;
            }
            // Idle at the end of this unit, and no release before: the busy period is over.
            if queue.iter().all(Vec::is_empty) {
                break;
            }
        }
    }
    worst
}

/// The heuristics with rationals, word by word.
fn slow_pack(tasks: &[Timing], sizes: &[u32], fit: Fit) -> Option<Vec<u32>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(utilization(&tasks[*i])));
    let mut load = vec![BigRational::zero(); sizes.len()];
    let mut bins = vec![0; tasks.len()];
    let mut next = 0;
    for i in order {
        let u = utilization(&tasks[i]);
        let left = |b: usize, load: &[BigRational]| rational(sizes[b].into(), 1) - &load[b];
        let room: Vec<usize> = (0..sizes.len())
            .filter(|b| u <= BigRational::one() && left(*b, &load) >= u)
            .collect();
        let bin = match fit {
            Fit::First => *room.first()?,
            Fit::Next => *room.iter().find(|b| **b >= next)?,
            Fit::Worst => *room.iter().rev().max_by_key(|b| left(**b, &load))?,
            Fit::Best => *room.iter().min_by_key(|b| left(**b, &load))?,
        };
        next = bin;
        load[bin] += u;
        bins[i] = bin as u32;
    }
    Some(bins)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn exact_edf_agrees_with_the_demand_bound_at_every_instant(set in small_set(5)) {
        prop_assert_eq!(edf::decide(&set), Ok(slow_edf(&set)));
    }

    #[test]
    fn response_times_agree_with_running_the_schedule(set in small_set(4)) {
        for priority in [
            Priority::RateMonotonic,
            Priority::DeadlineMonotonic,
            Priority::Given,
        ] {
            let fast = response_times(&set, priority);
            let slow = slow_responses(&set, priority);
            for (fast, slow) in fast.iter().zip(&slow) {
                let expected = slow.map_or(Response::Late, |r| {
                    Response::Within(Duration::from_nanos(r))
                });
                prop_assert_eq!(*fast, expected);
            }
            // Above U = 1 some task is late at last, in a busy period that never ends.
            prop_assert_eq!(
                fixed_priority::decide(&set, priority),
                Ok(slow.iter().all(Option::is_some))
            );
        }
    }

    #[test]
    fn fixed_priorities_accept_nothing_that_edf_refuses(set in small_set(6)) {
        if fixed_priority::decide(&set, Priority::DeadlineMonotonic) == Ok(true) {
            prop_assert_eq!(edf::decide(&set), Ok(true));
        }
    }

    #[test]
    fn bounds_agree_with_rationals_and_imply_response_times(set in small_set(5)) {
        let set: Vec<Timing> = set
            .iter()
            .map(|t| {
                task(
                    t.wcet.nanos().min(t.period.nanos()),
                    t.period.nanos(),
                    t.period.nanos(),
                )
            })
            .collect();
        let n = set.len();
        let two = rational(2, 1);
        let product = set.iter().fold(BigRational::one(), |p, t| {
            p * (utilization(t) + BigRational::one())
        });
        prop_assert_eq!(hyperbolic(&set), Ok(product <= two));
        let factor = total(&set) / rational(n as u64, 1) + BigRational::one();
        prop_assert_eq!(liu_layland(&set), Ok(num_traits::pow(factor, n) <= two));
        if liu_layland(&set) == Ok(true) {
            prop_assert_eq!(hyperbolic(&set), Ok(true));
        }
        if hyperbolic(&set) == Ok(true) {
            prop_assert_eq!(
                fixed_priority::decide(&set, Priority::RateMonotonic),
                Ok(true)
            );
        }
    }

    #[test]
    fn packing_agrees_with_rationals(
        set in small_set(12),
        sizes in prop::collection::vec(1u32..=3, 1..=5),
    ) {
        for (name, fit) in FITS {
            let mut scratch = Scratch::new();
            let fast = scratch
                .pack(&set, &sizes, Order::DecreasingUtilization, fit)
                .ok()
                .map(<[u32]>::to_vec);
            prop_assert_eq!(fast, slow_pack(&set, &sizes, fit), "{}", name);
        }
    }

    #[test]
    fn exact_acceptance_leaves_every_processor_schedulable_and_no_fitting_task_out(
        set in small_set(8),
        m in 1u32..=4,
    ) {
        for (_, fit) in FITS {
            for order in [
                Order::DecreasingUtilization,
                Order::DecreasingDensity,
                Order::Given,
            ] {
                match partition(&set, m, order, fit, Acceptance::Edf) {
                    Ok(bins) => {
                        for b in 0..m {
                            let inside: Vec<Timing> = set
                                .iter()
                                .zip(&bins)
                                .filter(|(_, x)| **x == b)
                                .map(|(t, _)| *t)
                                .collect();
                            prop_assert!(slow_edf(&inside));
                        }
                    }
                    // A task alone on a processor always fits if it is schedulable at all.
                    Err(task) => {
                        prop_assert!(set.len() > m as usize || !slow_edf(&[set[task as usize]]))
                    }
                }
            }
        }
    }

    #[test]
    fn a_longer_wcet_never_helps_one_processor(
        set in small_set(5),
        which in 0usize..5,
        extra in 1u64..4,
    ) {
        let mut longer = set.clone();
        let at = which % set.len();
        longer[at] = longer[at].inflated(Duration::from_nanos(extra));
        if edf::decide(&longer) == Ok(true) {
            prop_assert_eq!(edf::decide(&set), Ok(true));
        }
        if fixed_priority::decide(&longer, Priority::DeadlineMonotonic) == Ok(true) {
            prop_assert_eq!(
                fixed_priority::decide(&set, Priority::DeadlineMonotonic),
                Ok(true)
            );
        }
    }
}

#[test]
fn huge_sets_are_packed_and_decided() {
    let set: Vec<Timing> = (0..200_000u64)
        .map(|i| task(1 + i % 7, 10_000 + i % 1_013, 9_000 + i % 1_013))
        .collect();
    let worst_fit = analyze::registry::find("PEDF-WFD").unwrap();
    assert_eq!((worst_fit.run)(&set, 128), Ok(true));
    assert_eq!((worst_fit.run)(&set, 16), Ok(false));
}

#[test]
fn identical_tasks_fill_their_processors_exactly() {
    let set = vec![task(1, 1_000, 1_000); 100_000];
    for (name, fit) in FITS {
        let test = analyze::registry::find(&format!("PEDF-{name}")).unwrap();
        assert_eq!((test.run)(&set, 100), Ok(true), "{name}");
        let mut scratch = Scratch::new();
        assert_eq!(
            scratch.pack(&set, &[1; 99], Order::Given, fit),
            Err(99_000),
            "{name}"
        );
    }
}
