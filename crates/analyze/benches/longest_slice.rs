//! The longest slice of EDF-WM that a processor holds beside its tasks, found three ways, in pairs
//! over the same inputs:
//!
//! - `climbing`: [`longest_last`], upwards through the first deadlines, then downwards;
//! - `downwards`: one pass of quick processor-demand analysis that cuts the slice (Zhang, Burns,
//!   Baruah 2011), as it was done before the first deadlines were looked at on their own;
//! - `bisection`: the exact test, asked for ever closer WCETs.
//!
//! All three find the same slice; that is asserted before anything is timed. The inputs are
//! processors as worst fit leaves them, with heavy tasks (few) and light ones (many), and a further
//! task cut into two to six windows.

use analyze::uniprocessor::{Work, edf, longest_last};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use model::{Duration, Timing};
use std::hint::black_box;
use testing::random::Random;

/// Inputs of a group.
const COUNT: u64 = 200;

/// Tasks of a processor, the slice last.
type Input = Vec<Timing>;

/// A way to find the longest slice.
type Way = fn(&[Timing]) -> u64;

/// Tasks of this utilization in thousandths until no further one fits, and a slice of the one that
/// did not. Periods are 10 to 100 ms in whole milliseconds, and WCETs in nanoseconds.
fn inputs(utilizations: (u64, u64)) -> Vec<Input> {
    let mut random = Random::new(utilizations.0);
    let mut input = || {
        let mut tasks: Input = Vec::new();
        let mut free = 1_000;
        loop {
            let share = random.among(utilizations.0, utilizations.1);
            let period = random.among(10, 100) * 1_000_000;
            // Some nanoseconds less: hyperperiods are as long as with measured costs.
            let wcet = share * period / 1_000 - random.below(1_000);
            if share < free {
                free -= share;
                tasks.push(timing(wcet, period, period));
                continue;
            }
            let window = period / random.among(2, 6);
            let most = wcet.min(window).min((free - 1) * period / 1_000);
            tasks.push(timing(most, period, window));
            return tasks;
        }
    };
    (0..COUNT).map(|_| input()).collect()
}

fn timing(wcet: u64, period: u64, deadline: u64) -> Timing {
    let ns = Duration::from_nanos;
    Timing {
        wcet: ns(wcet),
        period: ns(period),
        deadline: ns(deadline),
    }
}

fn climbing(input: &[Timing]) -> u64 {
    let mut tasks = input.to_vec();
    let found = longest_last(&mut tasks, Duration::from_nanos(1), &mut Work::new());
    found.expect("the work is within its limit").nanos()
}

fn bisection(input: &[Timing]) -> u64 {
    let mut tasks = input.to_vec();
    let last = tasks.len() - 1;
    let (mut low, mut high) = (0, tasks[last].wcet.nanos());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        tasks[last].wcet = Duration::from_nanos(middle);
        match edf::decide(&tasks) {
            Ok(true) => low = middle,
            _ => high = middle - 1,
        }
    }
    low
}

fn downwards(input: &[Timing]) -> u64 {
    let mut tasks = input.to_vec();
    let last = tasks.len() - 1;
    let slice = tasks[last];
    let mut next = before(&tasks, bound(&tasks) + 1);
    while let Some(t) = next {
        let others = edf::demand(&tasks[..last], t);
        let jobs = jobs(&slice, t);
        let mut demand = others + jobs * u128::from(tasks[last].wcet.nanos());
        if demand > t {
            let admitted = u64::try_from((t - others) / jobs).unwrap_or(u64::MAX);
            tasks[last].wcet = Duration::from_nanos(admitted);
            if admitted == 0 {
                break;
            }
            demand = others + jobs * u128::from(admitted);
            let end = bound(&tasks);
            if end < t {
                next = before(&tasks, end + 1);
                continue;
            }
        }
        next = if demand < t {
            Some(demand)
        } else {
            before(&tasks, t)
        };
        next = next.filter(|t| *t > 0);
    }
    tasks[last].wcet.nanos()
}

fn jobs(task: &Timing, by: u128) -> u128 {
    let beyond = by.checked_sub(u128::from(task.deadline.nanos()));
    beyond.map_or(0, |beyond| beyond / u128::from(task.period.nanos()) + 1)
}

/// The last deadline before `end`.
fn before(tasks: &[Timing], end: u128) -> Option<u128> {
    let of = |task: &Timing| {
        let (deadline, period) = (task.deadline.nanos().into(), task.period.nanos().into());
        let jobs: u128 = jobs(task, end.checked_sub(1)?).checked_sub(1)?;
        let last: u128 = deadline;
        Some(last + jobs * u128::max(period, 1))
    };
    tasks.iter().filter_map(of).max()
}

/// No deadline after this one is the first that is missed (Zhang and Burns 2009, L_a), in whole
/// nanoseconds rounded up.
fn bound(tasks: &[Timing]) -> u128 {
    let share = |t: &Timing| t.wcet.nanos() as f64 / t.period.nanos() as f64;
    let idle = 1.0 - tasks.iter().map(share).sum::<f64>();
    let early = |t: &Timing| (t.period.nanos() - t.deadline.nanos()) as f64 * share(t);
    let end = tasks.iter().map(early).sum::<f64>() / idle * (1.0 + 1e-6) + 1.0;
    let longest = tasks.iter().map(|t| t.deadline.nanos()).max().unwrap_or(0);
    (end as u128).max(u128::from(longest))
}

fn slices(c: &mut Criterion) {
    let mut group = c.benchmark_group("longest slice");
    group
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(3))
        .throughput(Throughput::Elements(COUNT));
    for (name, utilizations) in [
        ("heavy", (500, 900)),
        ("medium", (100, 400)),
        ("light", (10, 100)),
    ] {
        let inputs = inputs(utilizations);
        for input in &inputs {
            let found = climbing(input);
            assert_eq!(found, bisection(input), "{input:?}");
            assert_eq!(found, downwards(input), "{input:?}");
        }
        let ways: [(&str, Way); 3] = [
            ("climbing", climbing),
            ("downwards", downwards),
            ("bisection", bisection),
        ];
        for (way, find) in ways {
            group.bench_function(BenchmarkId::new(way, name), |b| {
                b.iter(|| {
                    inputs
                        .iter()
                        .map(|input| find(black_box(input)))
                        .sum::<u64>()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, slices);
criterion_main!(benches);
