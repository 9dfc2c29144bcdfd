//! Accesses per second through three levels (64 sets of 8 ways, 1024 of 16, 16384 of 16; LRU; lines
//! of 64 bytes) on one core.
//!
//! Peer: pycachesim 0.3.1, whose figures were 74 M/s where all hit the first level, 21 M/s line by
//! line in 256 KiB, 11 M/s at random in 4 MiB. Where it is installed (`WARMSET_PYTHON` names the
//! interpreter that has it, `python3` by default) it is timed in the same run.

use cache::{Hierarchy, Kind, Pages, Rules, Shape, Simulation};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model::{Bytes, Cache, CacheKind, CpuId, CpuSet, Platform, Strategy};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
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

/// pycachesim, which waits for the name of a pattern and answers the time that it took.
struct Peer {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// `None`: it is not installed.
    fn start() -> Option<Self> {
        let python = std::env::var("WARMSET_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/pycachesim.py");
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let answers = BufReader::new(process.stdout.take()?);
        let mut peer = Peer { process, answers };
        // The first round fills the caches, and tells whether anybody is there.
        peer.round("all hit L1").map(|_| peer)
    }

    /// Seconds of a round.
    fn round(&mut self, pattern: &str) -> Option<f64> {
        let mut questions = self.process.stdin.as_ref()?;
        writeln!(questions, "{pattern}").ok()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints what loads take here, in a list and one by one, and what they take the peer. Other work on
/// the machine makes single figures of little use, so that all take turns, and of the quotients of
/// each turn the median is told.
fn pairs() {
    const TURNS: usize = 101;
    let mut peer = Peer::start();
    if peer.is_none() {
        println!("pycachesim: not timed, `WARMSET_PYTHON` names no interpreter that has it");
    }
    for (name, addresses) in patterns() {
        let pages = Pages::as_traced(4096).unwrap();
        let mut caches = Hierarchy::new(&shape(), pages, 1).unwrap();
        let port = caches.port(CpuId(0), Kind::Read).unwrap();
        let mut times = [const { Vec::new() }; 3];
        for turn in 0..=TURNS {
            let start = Instant::now();
            caches.load(port, &addresses).unwrap();
            let listed = start.elapsed().as_secs_f64();
            let start = Instant::now();
            for address in &addresses {
                caches.access(port, Kind::Read, *address, 1).unwrap();
            }
            let single = start.elapsed().as_secs_f64();
            let peers = peer.as_mut().and_then(|peer| peer.round(name));
            // The first turn fills the caches.
            if turn > 0 {
                times[0].push(listed);
                times[1].push(single);
                times[2].extend(peers);
            }
        }
        let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        let speed = |times: &[f64]| addresses.len() as f64 / best(times) / 1e6;
        let [listed, single, peers] = &times;
        print!(
            "{name}: {:.1} M accesses/s in a list, {:.1} one by one",
            speed(listed),
            speed(single)
        );
        if !peers.is_empty() {
            let times_faster = |own: &[f64]| {
                median(
                    peers
                        .iter()
                        .zip(own)
                        .map(|(peer, own)| peer / own)
                        .collect(),
                )
            };
            print!(
                "; pycachesim {:.1}; median of quotients {:.2}, {:.2}",
                speed(peers),
                times_faster(listed),
                times_faster(single)
            );
        }
        println!(" ({TURNS} turns, best speeds)");
    }
}

fn accesses(c: &mut Criterion) {
    pairs();
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
