//! Colored ranges outside of heaps: stacks and segments. Copied across `fork`, reported at the end.

use crate::alloc::arena::{ARENA, Use, is_tile};
use crate::alloc::class::SLOT;
use crate::alloc::fork::Copies;
use crate::alloc::lock::Lock;
use crate::alloc::sys;
use crate::message::{Entry, HEAP, LACK, MAPPING, MOST_ENTRIES, REPORT, SEGMENT};
use crate::setup;
use core::cell::UnsafeCell;

/// The most tiles of a stack.
pub const MOST_TILES: usize = 16;
const MOST: usize = 2048;

/// A range of tiles.
#[derive(Clone, Copy)]
pub struct Range {
    /// 0: this entry is free.
    pub start: usize,
    pub size: usize,
    pub kind: u32,
    /// Can it change? What cannot is shared with children.
    pub writable: bool,
    /// The tiles of a stack.
    pub tiles: [u32; MOST_TILES],
}

struct Ranges(UnsafeCell<([Range; MOST], usize)>);
// SAFETY: under the lock.
unsafe impl Sync for Ranges {}

const NONE: Range = Range {
    start: 0,
    size: 0,
    kind: 0,
    writable: false,
    tiles: [0; MOST_TILES],
};
static RANGES: Ranges = Ranges(UnsafeCell::new(([NONE; MOST], 0)));
static LOCK: Lock = Lock::new();

fn with<T>(body: impl FnOnce(&mut [Range; MOST], &mut usize) -> T) -> T {
    LOCK.with(|| {
        // SAFETY: under the lock, which nobody takes twice.
        let (list, used) = unsafe { &mut *RANGES.0.get() };
        body(list, used)
    })
}

/// Remembers a range; its number, or nothing where there are too many.
pub fn add(range: Range) -> Option<usize> {
    with(|list, used| {
        let place = (0..*used).find(|i| list[*i].start == 0).unwrap_or(*used);
        if place == MOST {
            return None;
        }
        *used = (*used).max(place + 1);
        list[place] = range;
        Some(place)
    })
}

/// Forgets a range, and gives it.
pub fn remove(place: usize) -> Range {
    with(|list, _| core::mem::replace(&mut list[place], NONE))
}

/// Does an address lie in a range that can change?
pub fn holds(at: usize) -> bool {
    with(|list, used| {
        list[..*used]
            .iter()
            .any(|r| r.start != 0 && r.writable && at.wrapping_sub(r.start) < r.size)
    })
}

/// Before a fork.
pub fn copy(copies: &mut Copies) {
    LOCK.take();
    // SAFETY: the lock was taken.
    let (list, used) = unsafe { &mut *RANGES.0.get() };
    let here = &raw const copies as usize;
    for range in &list[..*used] {
        if range.start == 0 || !range.writable {
            continue;
        }
        if here.wrapping_sub(range.start) < range.size {
            sys::end(b"this program forks in a way that cannot be had with a colored stack: leave stacks out of --parts");
        }
        // SAFETY: mapped, and readable.
        unsafe { copies.add(range.start as *mut u8, range.size, true) };
    }
}

/// After a fork.
pub fn done(child: bool) {
    if child {
        setup::forked();
        // SAFETY: the lock was taken before the fork.
        let (list, used) = unsafe { &mut *RANGES.0.get() };
        for range in &mut list[..*used] {
            if range.writable {
                // Ordinary memory now.
                *range = NONE;
            }
        }
    }
    LOCK.give();
}

/// Tells the supervisor what is colored, and waits until it has looked; once, at the end.
pub fn report() {
    if !setup::to_report() {
        return;
    }
    let Some(room) = sys::plain(4 + MOST_ENTRIES * size_of::<Entry>()) else {
        return;
    };
    let mut number = 0;
    let mut put = |start: usize, size: usize, (kind, ordinary): (u32, bool)| {
        if number < MOST_ENTRIES {
            let entry = Entry {
                start: start as u64,
                size: size as u64,
                kind,
                ordinary: u32::from(ordinary),
            };
            // SAFETY: within the room, behind the kind of the request.
            unsafe {
                room.add(4 + number * size_of::<Entry>())
                    .cast::<Entry>()
                    .write_unaligned(entry)
            };
            number += 1;
        }
    };
    // First, so that it is told even where there are too many ranges.
    put(0, ARENA.most_ordinary(), (LACK, true));
    with(|list, used| {
        for range in list[..*used].iter().filter(|r| r.start != 0) {
            put(range.start, range.size, (range.kind, false));
        }
    });
    for heap in 0..ARENA.heaps() {
        ARENA.with(heap, |books| {
            let mut slot = 0;
            let kind = |books: &mut crate::alloc::arena::Books, slot| {
                let it = books.slot(slot);
                let kind = match it.usage {
                    Use::Nothing | Use::Foreign => return None,
                    Use::Mapping => MAPPING,
                    _ => HEAP,
                };
                Some((kind, !is_tile(it.tile)))
            };
            while slot < books.high {
                let first = slot;
                let what = kind(books, first);
                while slot < books.high && kind(books, slot) == what {
                    slot += 1;
                }
                if let Some(what) = what {
                    put(ARENA.address(heap, first) as usize, (slot - first) * SLOT, what);
                }
            }
        });
    }
    // SAFETY: the room that was mapped above.
    let message = unsafe {
        room.cast::<u32>().write(REPORT);
        core::slice::from_raw_parts(room, 4 + number * size_of::<Entry>())
    };
    let _ = setup::ask(message, &mut [0; 4], &mut []);
}

/// Can the end be told now? Not where a signal came while this thread, or another one, keeps the
/// books.
pub fn is_quiet() -> bool {
    LOCK.is_free() && (0..ARENA.heaps()).all(|heap| ARENA.region(heap).lock.is_free())
}

const _: () = assert!(SEGMENT < 32);

/// A range by its number.
pub fn peek(place: usize) -> Range {
    with(|list, _| list[place])
}
