//! Accesses per second through three levels (64 sets of 8 ways, 1024 of 16, 16384 of 16; LRU; lines
//! of 64 bytes) on one core.
//!
//! Peer: pycachesim 0.3.1, whose figures were 74 M/s where all hit the first level, 21 M/s line by
//! line in 256 KiB, 11 M/s at random in 4 MiB. Where it is installed (`WARMSET_PYTHON` names the
//! interpreter that has it, `python3` by default) it is timed in the same run.

use cache::{Hierarchy, Kind, Pages, Rules, Shape, Simulation};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model::{Bytes, Cache, CacheKind, CpuId, CpuSet, Platform, Strategy};
use std::process::Command;
use std::time::{Duration, Instant};

fn shape() -> Shape {
    let mut platform = Platform::symmetric(1);
    let levels = [(1, 64, 8), (2, 1024, 16), (3, 16384, 16)];
    platform.caches = levels
        .map(|(level, sets, ways)| Cache {
            level,
            kind: CacheKind::Unified,
            size: Some(Bytes::new(u64::from(sets * ways * 64))),
            ways: Some(ways),
            line: Some(64),
            sets: Some(sets),
            shared_by: CpuSet::first(1),
            strategy: Strategy::default(),
        })
        .to_vec();
    Shape::of(&platform).unwrap()
}

/// A million addresses of each pattern; `benches/pycachesim.py` has the same.
fn patterns() -> [(&'static str, Vec<u64>); 3] {
    let all = || 0..1 << 20;
    let mut x = 1_u64;
    let mut random = || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % (4 << 20)
    };
    [
        ("all hit L1", all().map(|i| 8 * i % (16 << 10)).collect()),
        (
            "lines in 256 KiB",
            all().map(|i| 64 * i % (256 << 10)).collect(),
        ),
        ("random in 4 MiB", all().map(|_| random()).collect()),
    ]
}

/// Prints what pycachesim takes, where it is there.
fn peer() {
    let python = std::env::var("WARMSET_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/pycachesim.py");
    match Command::new(&python).arg(script).output() {
        Ok(out) if out.status.success() => print!("{}", String::from_utf8_lossy(&out.stdout)),
        _ => println!("pycachesim: not timed, `{python}` has none"),
    }
}

/// Prints what our own takes, timed as the peer's: other work on the machine makes means of little
/// use.
fn own() {
    for (name, addresses) in patterns() {
        let pages = Pages::as_traced(4096).unwrap();
        let mut caches = Hierarchy::new(&shape(), pages, 1).unwrap();
        let port = caches.port(CpuId(0), Kind::Read).unwrap();
        let mut round = || {
            let start = Instant::now();
            for address in &addresses {
                caches.access(port, Kind::Read, *address, 1).unwrap();
            }
            start.elapsed()
        };
        let best = (0..30).map(|_| round()).min().unwrap_or_default();
        let speed = addresses.len() as f64 / best.as_secs_f64() / 1e6;
        println!("warmset, {name}: {speed:.1} M accesses/s (best of 30)");
    }
}

fn accesses(c: &mut Criterion) {
    peer();
    own();
    let mut group = c.benchmark_group("loads");
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20);
    for (name, addresses) in patterns() {
        group.throughput(Throughput::Elements(addresses.len() as u64));
        let pages = Pages::as_traced(4096).unwrap();
        let mut caches = Hierarchy::new(&shape(), pages, 1).unwrap();
        let port = caches.port(CpuId(0), Kind::Read).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| {
                for address in &addresses {
                    caches.access(port, Kind::Read, *address, 1).unwrap();
                }
            });
        });
        let pages = Pages::as_traced(4096).unwrap();
        let mut whole = Simulation::new(shape(), Rules::Lines, pages, 1).unwrap();
        group.bench_function(format!("{name}, with windows and colors"), |b| {
            b.iter(|| {
                for address in &addresses {
                    let access = cache::Access {
                        cpu: CpuId(0),
                        kind: Kind::Read,
                        address: *address,
                        size: 1,
                    };
                    whole.access(&access).unwrap();
                }
            });
        });
    }
}

/// Lines of a trace per second.
fn trace(c: &mut Criterion) {
    let text: String = (0..100_000)
        .map(|n| format!(" L {:x},8\n", 0x1f_feff_0000_u64 + 8 * n))
        .collect();
    let mut group = c.benchmark_group("trace");
    group
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("read", |b| {
        b.iter(|| {
            let mut reader = cache::trace::Reader::new(text.as_bytes()).unwrap();
            let mut read = 0;
            while reader.read().unwrap().is_some() {
                read += 1;
            }
            read
        });
    });
}

criterion_group!(benches, accesses, trace);
criterion_main!(benches);
