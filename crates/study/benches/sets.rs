//! Sets judged per second: each drawn once, then judged at 21 delays under four policies, on all
//! processors.
//!
//! Peer: SchedCAT judges 28,000 to 42,000 sets a second by GFB, its fastest test, on one core and
//! at one delay.

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use model::watch::Silent;
use std::time::Duration;
use study::presets;

fn studies(c: &mut Criterion) {
    let mut group = c.benchmark_group("sets");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(5))
        .sampling_mode(SamplingMode::Flat);
    for name in ["ospert10-fig5", "bastoni11-fig6.4b"] {
        let mut study = presets::find(name).unwrap();
        study.sets = 16;
        group.throughput(Throughput::Elements(93 * 16));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| study::run(&study, &Silent).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, studies);
criterion_main!(benches);
