//! Heaps by color, as collections use them: colors, alignment, sizes, limits.

mod common;

use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec as ColoredVec;
use heap::{Heap, Options};
use std::alloc::Layout;
use std::sync::{Mutex, OnceLock, PoisonError};

const COLORS: u16 = 3;

/// A process attaches once: all tests share the server, which a process of its own ends with this
/// one.
fn attached() -> std::sync::MutexGuard<'static, ()> {
    static SERVER: OnceLock<()> = OnceLock::new();
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    SERVER.get_or_init(|| {
        let server = common::serve(COLORS, 64);
        let e = heap::attach(&Options {
            socket: Some(server.socket.clone()),
            colors: Some("7".parse().unwrap()),
            ..Options::default()
        })
        .unwrap_err()
        .to_string();
        assert!(e.contains("colors 7 are not granted"), "{e}");
        heap::attach(&Options {
            socket: Some(server.socket.clone()),
            ..Options::default()
        })
        .unwrap();
        std::mem::forget(server);
    });
    guard
}

/// 004 §III-D: color 0 is always there, one beyond the last is refused with a message.
#[test]
fn a_color_beyond_the_last_is_refused() {
    let _one = attached();
    assert!(Heap::color(0).is_ok());
    let e = Heap::color(COLORS).unwrap_err().to_string();
    assert!(
        e.contains("color 3 is beyond the last one: there are 3 colors"),
        "{e}"
    );
}

#[test]
fn collections_lie_in_the_color_of_their_heap() {
    let _one = attached();
    for color in 0..COLORS {
        let mut numbers = ColoredVec::new_in(Heap::color(color).unwrap());
        for i in 0..100_000_u32 {
            numbers.push(i);
        }
        assert_eq!(
            Heap::of(numbers.as_ptr()).map(|(h, p)| (h, p.0)),
            Some((color, color))
        );
        assert!(numbers.iter().copied().eq(0..100_000));
        numbers.truncate(10);
        numbers.shrink_to_fit();
        assert_eq!(Heap::of(numbers.as_ptr()).map(|(h, _)| h), Some(color));
    }
}

#[test]
fn every_size_and_alignment_is_held_and_disjoint() {
    let _one = attached();
    let heap = Heap::color(1).unwrap();
    let mut held: Vec<(usize, Layout)> = Vec::new();
    for align in [1, 8, 16, 32, 64, 128, 256, 4096, 16_384, 65_536, 131_072] {
        for size in [
            0, 1, 15, 16, 100, 128, 1000, 5000, 30_000, 33_000, 65_536, 100_000,
        ] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let Some(at) = heap.alloc(layout) else {
                panic!("{layout:?} was refused");
            };
            assert_eq!(at.as_ptr() as usize % align, 0, "{layout:?}");
            // SAFETY: memory of this size.
            unsafe { at.as_ptr().write_bytes(held.len() as u8, size) };
            held.push((at.as_ptr() as usize, layout));
            if held.len() == 24 {
                give_back(heap, &mut held);
            }
        }
    }
    give_back(heap, &mut held);
}

fn give_back(heap: Heap, held: &mut Vec<(usize, Layout)>) {
    for (i, (at, layout)) in held.iter().enumerate() {
        // SAFETY: memory of this size, that this test took.
        let bytes = unsafe { std::slice::from_raw_parts(*at as *const u8, layout.size()) };
        assert!(
            bytes.iter().all(|b| *b == i as u8),
            "{layout:?} was overwritten"
        );
    }
    for (at, _) in held.drain(..) {
        // SAFETY: as above; nobody uses it any more.
        unsafe { heap.dealloc(std::ptr::NonNull::new(at as *mut u8).unwrap()) };
    }
}

#[test]
fn zeroed_memory_is_zero_also_where_it_was_used_before() {
    let _one = attached();
    let heap = Heap::color(2).unwrap();
    for size in [10, 500, 20_000, 200_000] {
        let layout = Layout::from_size_align(size, 8).unwrap();
        for _ in 0..3 {
            let at = heap.allocate_zeroed(layout).unwrap();
            // SAFETY: memory of this size, that this test took and gives back.
            unsafe {
                assert!(at.as_ref().iter().all(|b| *b == 0), "{size}");
                at.cast::<u8>().as_ptr().write_bytes(0xff, size);
                heap.deallocate(at.cast(), layout);
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_refused_and_the_rest_goes_on() {
    let _one = attached();
    let heap = Heap::color(0).unwrap();
    for size in [1 << 30, 1 << 40, isize::MAX as usize - 4096] {
        assert!(
            heap.alloc(Layout::from_size_align(size, 16).unwrap())
                .is_none(),
            "{size}"
        );
    }
    let layout = Layout::from_size_align(1 << 20, 16).unwrap();
    for _ in 0..20 {
        let at = heap.alloc(layout).unwrap();
        // SAFETY: taken above.
        unsafe { heap.dealloc(at) };
    }
}

/// What is wrong ends the program with a sentence, and not later in obscure ways.
#[test]
fn wrong_pointers_and_double_frees_end_the_program() {
    let _one = attached();
    let heap = Heap::color(0).unwrap();
    let layout = Layout::from_size_align(48, 16).unwrap();
    let at = heap.alloc(layout).unwrap().as_ptr();
    // SAFETY: the children are ended by what they do.
    unsafe {
        assert_eq!(
            ended(|| {
                heap::raw::release(at.add(8));
            }),
            libc::SIGABRT
        );
        assert_eq!(
            ended(|| {
                heap::raw::release(at);
                heap::raw::release(at);
            }),
            libc::SIGABRT
        );
        let large = heap
            .alloc(Layout::from_size_align(1 << 18, 16).unwrap())
            .unwrap()
            .as_ptr();
        assert_eq!(
            ended(|| {
                heap::raw::release(large.add(64));
            }),
            libc::SIGABRT
        );
        assert!(
            !heap::raw::release((&raw const layout).cast_mut().cast()),
            "a foreign one is told"
        );
        heap::raw::release(large);
        heap::raw::release(at);
    }
}

/// Forks, runs something in the child, and gives the signal that ended it.
fn ended(body: impl FnOnce()) -> i32 {
    // SAFETY: the child does nothing but the body.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            body();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        if libc::WIFSIGNALED(status) {
            libc::WTERMSIG(status)
        } else {
            0
        }
    }
}
