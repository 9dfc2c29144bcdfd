//! A program whose global allocator is colored, from its first line to its last, through threads
//! and a fork.

mod common;

use heap::{Choice, Colored, Heap, Options};
use std::collections::BTreeMap;
use std::sync::mpsc;

#[global_allocator]
static HEAP: Colored = Colored;

const COLORS: u16 = 4;
/// Tiles of each color.
const EACH: usize = 96;

fn main() {
    // Before anything is colored, and while there is one thread only.
    let server = common::serve(COLORS, EACH);
    let before = String::from("the system's");
    assert_eq!(Heap::of(before.as_ptr()), None);
    assert!(
        Heap::color(0)
            .unwrap_err()
            .to_string()
            .contains("no colored heaps")
    );
    let attached = heap::attach(&Options {
        socket: Some(server.socket.clone()),
        heaps: Some(4),
        choice: Choice::ByTask,
        ..Options::default()
    })
    .unwrap();
    assert_eq!((attached.heaps, attached.colors.len()), (4, 4));
    assert!(
        heap::attach(&Options::default())
            .unwrap_err()
            .to_string()
            .contains("already")
    );
    drop(before);
    tasks_have_their_color();
    threads_exchange_memory();
    a_child_has_memory_of_its_own();
    memory_runs_out_with_an_error();
    println!("global: 4 passed, 0 failed");
}

/// 004 §III-E: the color is the number of the task modulo the number of colors.
fn tasks_have_their_color() {
    for task in 0..10_usize {
        std::thread::spawn(move || {
            heap::set_task(task).unwrap();
            let color = (task % usize::from(COLORS)) as u16;
            let sizes = [
                1,
                16,
                17,
                128,
                129,
                1000,
                4096,
                20_000,
                32_704,
                32_705,
                70_000,
                1 << 20,
            ];
            let own: Vec<Vec<u8>> = sizes.iter().map(|size| vec![task as u8; *size]).collect();
            for block in &own {
                let (heap, page) = Heap::of(block.as_ptr()).unwrap();
                assert_eq!((heap, page.0), (color, color));
                assert!(block.iter().all(|b| *b == task as u8));
            }
        })
        .join()
        .unwrap();
    }
}

/// Blocks are freed by other threads than those that took them; tables grow and shrink; threads end
/// and their spans are taken up. Everything that was written is there.
fn threads_exchange_memory() {
    let rounds = 40_000_u64;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..4)
        .map(|_| mpsc::sync_channel::<(u64, Vec<u8>)>(64))
        .unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(me, receiver)| {
            let next = senders[(me + 1) % 4].clone();
            std::thread::spawn(move || {
                let mut state = me as u64 + 1;
                let mut table: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
                for round in 0..rounds / 4 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let size = match state >> 60 {
                        0 => (state >> 30 & 0xffff) as usize,
                        _ => (state >> 30 & 0x1ff) as usize,
                    };
                    let mut block = vec![(round & 0xff) as u8; size + 1];
                    if round % 3 == 0 {
                        block.extend_from_slice(&[0xee; 100]);
                        block.truncate(size + 1);
                        block.shrink_to_fit();
                    }
                    if round % 2 == 0 {
                        // The receiver may have ended, or be behind: then the block comes back and
                        // is freed here.
                        let _ = next.try_send((round, block));
                    } else {
                        table.insert(state >> 32, block);
                    }
                    while let Ok((round, block)) = receiver.try_recv() {
                        assert!(
                            block.iter().all(|b| *b == (round & 0xff) as u8),
                            "a block was overwritten"
                        );
                    }
                    if table.len() > 300 {
                        while table.len() > 150 {
                            table.pop_first();
                        }
                    }
                }
            })
        })
        .collect();
    drop(senders);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// What a child writes does not show in its parent, and the other way round; both go on to
/// allocate.
fn a_child_has_memory_of_its_own() {
    let mut shared = vec![1_u8; 100_000];
    let small: Vec<String> = (0..500).map(|i| i.to_string()).collect();
    let mut pipe = [0; 2];
    // SAFETY: two descriptors are written to the array.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = 0_u8;
        // SAFETY: one byte is read into `byte`; the parent writes it after it changed its memory.
        let read = unsafe { libc::read(pipe[0], (&raw mut byte).cast(), 1) };
        let kept = read == 1
            && shared.iter().all(|b| *b == 1)
            && small.iter().enumerate().all(|(i, s)| *s == i.to_string());
        shared.fill(2);
        let more: Vec<Vec<u8>> = (0..1000).map(|i| vec![i as u8; i]).collect();
        drop(small);
        let fine = kept
            && more
                .iter()
                .enumerate()
                .all(|(i, m)| m.iter().all(|b| *b == i as u8));
        // SAFETY: ends the child without running what the parent will run.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    shared.fill(3);
    drop(small);
    let more: Vec<Vec<u8>> = (0..1000).map(|i| vec![7; i]).collect();
    let mut status = 0;
    // SAFETY: a byte is written, and the child is waited for.
    unsafe {
        assert_eq!(libc::write(pipe[1], [1_u8].as_ptr().cast(), 1), 1);
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
    }
    assert_eq!(status, 0, "the child found its memory changed");
    assert!(shared.iter().all(|b| *b == 3));
    assert!(more.iter().all(|m| m.iter().all(|b| *b == 7)));
    assert!(Heap::of(shared.as_ptr()).is_some());
}

/// The error comes as an error, and memory that is given back can be used again.
fn memory_runs_out_with_an_error() {
    let mut most: Vec<Vec<u8>> = Vec::new();
    let failed = loop {
        let mut block: Vec<u8> = Vec::new();
        match block.try_reserve_exact(256 * 1024) {
            Ok(()) => most.push(block),
            Err(e) => break e,
        }
        assert!(most.len() <= EACH * 4);
    };
    assert!(!failed.to_string().is_empty());
    assert!(most.len() >= 4, "{} blocks", most.len());
    let number = most.len();
    drop(most);
    let again: Vec<Vec<u8>> = (0..number)
        .map(|_| Vec::with_capacity(256 * 1024))
        .collect();
    drop(again);
    assert!(heap::trim() > 0);
}
