//! Speed of colored heaps against general-purpose allocators, in one run on one machine: the C
//! library's (glibc) and mimalloc. Colored memory is to cost at most 1.5 times as much. The memory
//! server is a process of its own.

#[path = "../tests/common/mod.rs"]
mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use heap::{Colored, Options};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::time::Duration;

/// Steps of a linear congruential generator: the same sizes for all.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).unwrap()
}

/// Takes and gives one block, again and again.
fn pairs(of: &impl GlobalAlloc, size: usize) {
    for _ in 0..1000 {
        // SAFETY: what is taken is given back with the same layout.
        unsafe {
            let at = black_box(of.alloc(layout(size)));
            of.dealloc(at, layout(size));
        }
    }
}

/// Keeps a thousand blocks of 16 bytes to 1 KiB and replaces them at random; each is written to.
fn replace(of: &impl GlobalAlloc, held: &mut [(*mut u8, usize)], state: &mut u64) {
    for _ in 0..1000 {
        let place = next(state) as usize % held.len();
        let size = 16 + next(state) as usize % 1009;
        let (old, had) = held[place];
        // SAFETY: as above; blocks are as large as they say.
        unsafe {
            if !old.is_null() {
                of.dealloc(old, layout(had));
            }
            let at = of.alloc(layout(size));
            at.write(1);
            held[place] = (at, size);
        }
    }
}

/// Blocks that one thread takes and another gives back.
fn across<A: GlobalAlloc + Sync>(of: &A) {
    struct Sent(Vec<*mut u8>);
    // SAFETY: the blocks change hands with the list.
    unsafe impl Send for Sent {}
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Sent>(4);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for sent in receiver {
                for at in sent.0 {
                    // SAFETY: taken by the other thread with this layout.
                    unsafe { of.dealloc(at, layout(64)) };
                }
            }
        });
        for _ in 0..50 {
            // SAFETY: blocks of this layout.
            let batch = (0..1000).map(|_| unsafe { of.alloc(layout(64)) }).collect();
            sender.send(Sent(batch)).unwrap();
        }
        drop(sender);
    });
}

fn bench(criterion: &mut Criterion) {
    let server = common::serve(4, 256);
    heap::attach(&Options {
        socket: Some(server.socket.clone()),
        ..Options::default()
    })
    .unwrap();
    fn each<A: GlobalAlloc + Sync>(criterion: &mut Criterion, name: &str, of: &A) {
        let mut group = criterion.benchmark_group("allocate");
        group
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(1));
        group.throughput(Throughput::Elements(1000));
        for size in [16, 32, 48, 64, 80, 128, 1024] {
            group.bench_function(format!("pairs of {size} bytes/{name}"), |b| {
                b.iter(|| pairs(of, size))
            });
        }
        let mut held = vec![(std::ptr::null_mut(), 0); 1000];
        let mut state = 7;
        group.bench_function(format!("replace in 1000/{name}"), |b| {
            b.iter(|| replace(of, &mut held, &mut state));
        });
        group
            .throughput(Throughput::Elements(50_000))
            .sample_size(20);
        group.bench_function(format!("across threads/{name}"), |b| b.iter(|| across(of)));
        group.finish();
    }
    each(criterion, "colored", &Colored);
    each(criterion, "glibc", &System);
    each(criterion, "mimalloc", &MiMalloc);
}

criterion_group!(benches, bench);
criterion_main!(benches);
