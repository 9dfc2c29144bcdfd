//! Simulated jobs a second on one core, next to the peers' figures. Sets as in the comparison: m = 4, n = 20, U = 3.04.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model::watch::Silent;
use model::{Duration, Platform, TaskSet, Timing};
use policy::{Setup, Spec};
use simulate::Scenario;
use std::hint::black_box;

/// `n` tasks of total utilization `percent` / 100, periods 10 to 100 ms.
fn tasks(n: u64, percent: u64) -> TaskSet {
    let timings = (0..n)
        .map(|i| {
            let period = Duration::from_millis(10 + (i * 37) % 91);
            // Shares 1 : 2 : 3 in turn, which sum to 2 n in every three tasks.
            let wcet = period.nanos() * percent * (1 + i % 3) / (100 * 2 * n);
            Timing::implicit(Duration::from_nanos(wcet), period)
        })
        .collect();
    TaskSet::from_timings(timings).unwrap()
}

fn speed(c: &mut Criterion) {
    let mut group = c.benchmark_group("jobs");
    for (m, n, percent) in [(4, 20, 304), (24, 72, 1824)] {
        let set = tasks(n, percent);
        let platform = Platform::symmetric(m);
        let scenario = Scenario {
            horizon: Duration::from_secs(100),
            ..Scenario::default()
        };
        let run = || {
            let setup = Setup {
                set: &set,
                platform: &platform,
                assignment: None,
                quantum: Duration::from_millis(1),
            };
            let plan = "g-edf".parse::<Spec>().unwrap().plan(&setup).unwrap();
            simulate::simulate(plan, &set, &platform, &scenario, None, &Silent, ())
                .unwrap()
                .0
        };
        group.throughput(Throughput::Elements(run().completed()));
        group.bench_function(format!("g-edf m={m} n={n} ideal"), |b| {
            b.iter(|| black_box(run()))
        });
    }
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
