//! Sets judged per second: each drawn once, then judged at 21 delays under four policies, on all
//! processors.
//!
//! Then one part each, ten sets of one cap or by brute force one set, of what the studies of 002 ask:
//! §6.3 with overheads as the paper counts them, hard and soft, §6.4, and brute force.
//!
//! Peer: SchedCAT judges 28,000 to 42,000 sets a second by GFB, its fastest test, on one core and
//! at one delay.

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use model::watch::Silent;
use model::{Platform, Profile};
use std::time::Duration;
use study::{Study, Work, file, presets};

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

/// A study of the papers' machine that differs in these lines.
fn written(text: &str) -> Study {
    let text = format!("based_on = \"bastoni11-fig6.2a\"\nname = \"part\"\n{text}");
    file::from_toml(&text, Platform::find, Profile::find).unwrap()
}

fn parts(c: &mut Criterion) {
    let mut group = c.benchmark_group("parts");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(3))
        .sampling_mode(SamplingMode::Flat);
    let paper = "profile = \"xeon-l7455\"\naccounting = \"paper\"\n";
    let sizes =
        "working_sets = [\"0KiB\", \"64KiB\", \"256KiB\", \"512KiB\", \"1MiB\", \"3MiB\"]\n";
    let split = "policies = [\"p-edf\", \"edf-wm\", \"nps-f:delta=1\", \"c-nps-f:l3,delta=4\"]\n";
    for (kind, more) in [
        ("6.3 hard", paper.to_owned()),
        ("6.3 soft", format!("{paper}guarantee = \"soft\"\n")),
        ("6.4 hard", format!("{paper}{sizes}{split}")),
        (
            "brute force",
            "policies = [\"brute-force:g-edf\"]\n".to_owned(),
        ),
    ] {
        for weight in ["light", "medium", "heavy"] {
            let study = written(&format!("{more}utilizations = \"uniform-{weight}\"\n"));
            let work = Work::new(&study).unwrap();
            // In the midst of the caps, where most is to be decided.
            let part = work.parts()[work.parts().len() * 2 / 3];
            group.throughput(Throughput::Elements(u64::from(part.sets)));
            group.bench_function(BenchmarkId::new(kind, weight), |b| {
                b.iter(|| work.judge(part).unwrap());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, studies, parts);
criterion_main!(benches);
