//! Small sets against a search of its own over all placements, which shares nothing with the code:
//! demand is added up deadline by deadline over a hyperperiod, and fixed priorities are simulated
//! tick by tick, in every order.

use advise::{Asked, Options, Outcome, Pace, advise};
use analyze::Guarantee;
use analyze::policies::Costs;
use model::watch::Silent;
use model::{Platform, TaskSet, Timing};
use testing::random::Random;
use testing::sets::task_ms;

/// A task in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Task {
    wcet: u64,
    period: u64,
    deadline: u64,
}

fn set_of(tasks: &[Task]) -> TaskSet {
    let timings: Vec<Timing> = tasks
        .iter()
        .map(|t| task_ms(t.wcet, t.period, t.deadline))
        .collect();
    TaskSet::from_timings(timings).expect("a set")
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// EDF on one processor with WCETs in thousandths, in nanoseconds: no more than t is due within any
/// t up to a hyperperiod and the longest deadline, and U is at most one.
fn edf_holds(tasks: &[Task], thousandths: u64) -> bool {
    const MS: u64 = 1_000_000;
    let wcet = |t: &Task| (t.wcet * MS * thousandths).div_ceil(1_000);
    let hyperperiod = tasks.iter().fold(1, |all, t| lcm(all, t.period));
    let of_all: u64 = tasks.iter().map(|t| hyperperiod / t.period * wcet(t)).sum();
    if of_all > hyperperiod * MS {
        return false;
    }
    let longest = tasks.iter().map(|t| t.deadline).max().unwrap_or(0);
    (1..=hyperperiod + longest).all(|time| {
        let due = tasks.iter().filter(|t| t.deadline <= time);
        due.map(|t| ((time - t.deadline) / t.period + 1) * wcet(t))
            .sum::<u64>()
            <= time * MS
    })
}

/// Fixed priorities on one processor, the first task the most urgent: all are released together,
/// and a busy period is simulated tick by tick.
fn fixed_holds(tasks: &[Task]) -> bool {
    let hyperperiod = tasks.iter().fold(1, |all, t| lcm(all, t.period));
    let work: u64 = tasks.iter().map(|t| hyperperiod / t.period * t.wcet).sum();
    if work > hyperperiod {
        return false;
    }
    // By task, jobs as (release, left).
    let mut jobs: Vec<Vec<(u64, u64)>> = vec![Vec::new(); tasks.len()];
    for now in 0..2 * hyperperiod {
        for (task, queue) in tasks.iter().zip(&mut jobs) {
            if now % task.period == 0 {
                queue.push((now, task.wcet));
            }
            if queue
                .iter()
                .any(|(release, _)| release + task.deadline <= now)
            {
                return false;
            }
        }
        if let Some(queue) = jobs.iter_mut().find(|queue| !queue.is_empty()) {
            queue[0].1 -= 1;
            if queue[0].1 == 0 {
                queue.remove(0);
            }
        }
    }
    true
}

/// Is there a placement whose processors all hold their tasks?
fn some_placement(tasks: &[Task], m: usize, holds: &dyn Fn(&[Task]) -> bool) -> bool {
    let all = (m as u64).pow(tasks.len() as u32);
    (0..all).any(|mut code| {
        let mut inside: Vec<Vec<Task>> = vec![Vec::new(); m];
        for task in tasks {
            inside[(code % m as u64) as usize].push(*task);
            code /= m as u64;
        }
        inside.iter().all(|tasks| tasks.is_empty() || holds(tasks))
    })
}

/// Is there an order of these tasks by which fixed priorities hold them?
fn some_order(tasks: &[Task]) -> bool {
    fn extend(chosen: &mut Vec<Task>, left: &[Task]) -> bool {
        if left.is_empty() {
            return fixed_holds(chosen);
        }
        (0..left.len()).any(|at| {
            let mut rest = left.to_vec();
            chosen.push(rest.remove(at));
            let found = extend(chosen, &rest);
            chosen.pop();
            found
        })
    }
    extend(&mut Vec::new(), tasks)
}

const PERIODS: [u64; 6] = [4, 5, 6, 8, 10, 12];

/// A set of up to `most` tasks that asks for most of `m` processors.
fn draw(random: &mut Random, most: u64, m: u64, longest: impl Fn(u64) -> u64) -> Vec<Task> {
    loop {
        let count = random.among(m + 1, most);
        let tasks: Vec<Task> = (0..count)
            .map(|_| {
                let period = PERIODS[random.below(PERIODS.len() as u64) as usize];
                let wcet = random.among(1, period * 3 / 4);
                let deadline = random.among(wcet, longest(period));
                Task {
                    wcet,
                    period,
                    deadline,
                }
            })
            .collect();
        let u: f64 = tasks.iter().map(|t| t.wcet as f64 / t.period as f64).sum();
        if (m as f64 * 0.6..=m as f64 * 1.05).contains(&u) {
            return tasks;
        }
    }
}

fn considered(set: &TaskSet, m: u32, policy: Option<&str>) -> advise::Advice {
    let platform = Platform::symmetric(m);
    let asked = Asked {
        set,
        platform: &platform,
        guarantee: Guarantee::Hard,
        costs: Costs::NONE,
    };
    let options = Options {
        policies: policy.map(ToOwned::to_owned),
        ..Options::default()
    };
    let never = || false;
    advise(&asked, &options, &Pace::new(&Silent, &never)).expect("an answer")
}

#[test]
fn partitioned_edf_is_found_wherever_a_placement_holds_and_grows_as_far_as_any() {
    let mut random = Random::new(24);
    let (mut held, mut failed) = (0, 0);
    for round in 0..150 {
        let m = random.among(2, 3);
        let tasks = draw(&mut random, 6, m, |period| period);
        let set = set_of(&tasks);
        let advice = considered(&set, m as u32, Some("p-edf"));
        let found = &advice.policies[0];
        assert!(found.searched.is_exact, "{round}: {tasks:?}");
        let m = m as usize;
        let expected = some_placement(&tasks, m, &|here| edf_holds(here, 1_000));
        assert_eq!(
            found.outcome == Outcome::Holds,
            expected,
            "{round}: {tasks:?}"
        );
        if !expected {
            failed += 1;
            continue;
        }
        held += 1;
        let growth = found.growth.expect("measured");
        assert!(growth.exact);
        let at = |k: u64| some_placement(&tasks, m, &|here| edf_holds(here, k));
        let k = growth.thousandths;
        assert!(at(k) && !at(k + 1), "{round}: {k} of {tasks:?}");
    }
    assert!(held > 30 && failed > 30, "{held} held, {failed} failed");
}

#[test]
fn fixed_priorities_are_found_wherever_a_placement_and_orders_hold() {
    let mut random = Random::new(42);
    let (mut held, mut failed) = (0, 0);
    for round in 0..60 {
        // Deadlines beyond periods, where no simple order is best.
        let tasks = draw(&mut random, 5, 2, |period| period * 3 / 2);
        if tasks.iter().all(|t| t.deadline <= t.period) {
            continue;
        }
        let set = set_of(&tasks);
        let advice = considered(&set, 2, None);
        let found = advice
            .policies
            .iter()
            .find(|p| p.policy == "p-fp")
            .expect("looked at");
        let expected = some_placement(&tasks, 2, &|here| some_order(here));
        assert_eq!(
            found.outcome == Outcome::Holds,
            expected,
            "{round}: {tasks:?}"
        );
        match expected {
            true => held += 1,
            false => failed += 1,
        }
    }
    assert!(held > 8 && failed > 8, "{held} held, {failed} failed");
}
