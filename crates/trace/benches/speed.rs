//! Events a second: recording to memory, recording into a file's blocks, checking, adding up. No
//! peer publishes a figure.
//!
//! `cargo bench -p warmset-trace`; the schedule is G-EDF on four processors, twenty tasks,
//! utilization near three.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use support::{at_wcet, header, ms, schedule, tasks};
use trace::check::Options;
use trace::{Checker, Event, FileSink, Header, Reader, Sink, Statistics, VecSink};

fn sample() -> (Header, Vec<Event>) {
    let pairs: Vec<(u64, u64)> = (0..20).map(|i| (1 + i % 3, 11 + 2 * (i % 7))).collect();
    let header = header(tasks(&pairs), "g-edf", &[4], &[0; 20]);
    let events = schedule(&header, ms(20_000), at_wcet(&header));
    (header, events)
}

fn into<S: Sink>(mut sink: S, events: &[Event]) -> S {
    for event in events {
        sink.record(*event);
    }
    sink
}

fn speed(c: &mut Criterion) {
    let (header, events) = sample();
    let path = Path::new("bench");
    let bytes = into(FileSink::new(Vec::new(), path, &header).unwrap(), &events)
        .finish()
        .unwrap();
    let mut group = c.benchmark_group("trace");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(events.len() as u64));
    group.bench_function("record in memory", |b| {
        b.iter(|| black_box(into(VecSink::default(), &events)));
    });
    group.bench_function("record in a file's blocks", |b| {
        b.iter(|| {
            let sink = FileSink::new(Vec::with_capacity(bytes.len()), path, &header).unwrap();
            into(sink, &events).finish().unwrap().len()
        });
    });
    group.bench_function("read a file", |b| {
        b.iter(|| {
            let mut reader = Reader::new(&bytes[..], path).unwrap();
            reader.replay(&mut VecSink::default()).unwrap()
        });
    });
    group.bench_function("check", |b| {
        b.iter(|| {
            let checker = Checker::new(header.clone(), Options::for_trace(&header)).unwrap();
            let verdict = into(checker, &events).finish();
            assert!(verdict.is_clean());
        });
    });
    group.bench_function("add up", |b| {
        b.iter(|| black_box(into(Statistics::new(&header, false), &events).summary()));
    });
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
