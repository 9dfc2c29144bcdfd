//! Where heaps lie: one stretch of addresses, a region of it for each heap, divided into slots that tiles are mapped to.
//!
//! A heap is a super color (004 §III-C, eq. 1): of the colors that the process was granted, counted from 0, those whose
//! number modulo the number of heaps is its own. Which color a slot has follows from its place: the colors of the heap
//! in turn.

use super::class::SLOT;
use super::local::Local;
use super::lock::Lock;
use super::sys;
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most heaps of a process.
pub const MOST_HEAPS: usize = 256;
/// The most colors of a process.
pub const MOST_COLORS: usize = 4096;

/// Maps tiles of these colors one after the other, at an address where nothing else is needed. Writes their numbers and
/// gives how many there are: fewer where no more can be had, which it has said.
pub type Fetch = fn(at: *mut u8, colors: &[u16], tiles: &mut [u32]) -> usize;
/// Gives tiles back that are not mapped any more.
pub type GiveBack = fn(tiles: &[u32]);

/// Where tiles come from.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub fetch: Fetch,
    pub give_back: GiveBack,
    /// Where tiles run out, slots get ordinary memory ([`NO_TILE`]) instead of nothing.
    pub ordinary: bool,
}

/// What a slot is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Use {
    /// No memory is there.
    Nothing = 0,
    /// Memory that is free.
    Idle = 1,
    /// A span of small blocks, or the books of threads.
    Span = 2,
    /// Part of a large block.
    Large = 3,
    /// What the program mapped.
    Mapping = 4,
    /// Something that the program put there itself. The slot is never used again.
    Foreign = 5,
}

/// A slot in the books.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The tile that is mapped there; [`NO_TILE`] or [`INHERITED`] for ordinary memory.
    pub tile: u32,
    pub usage: Use,
    /// Is it all zero?
    pub zero: bool,
    /// Pages that a mapping still has.
    pub pages: u16,
    /// Did the program change what may be done with some of them?
    pub restricted: bool,
}

/// Ordinary memory, because tiles had run out.
pub const NO_TILE: u32 = u32::MAX;
/// Ordinary memory of a forked child, in the place of its parent's tile.
pub const INHERITED: u32 = u32::MAX - 1;

/// After a request that tiles were wanting for, so many slots get ordinary memory before the source
/// is asked again. The number doubles from the first to the last with each request in vain: a
/// request takes a connection to another process.
const PAUSES: (usize, usize) = (16, 4096);

/// The books of a region. Whoever touches them has the lock of the region.
pub struct Books {
    slots: *mut Slot,
    /// Slots from here on were never used.
    pub high: usize,
    /// No slot before this one is free.
    hint: usize,
    /// Heaps of threads that ended.
    pub orphans: *mut Local,
    /// Parts of heaps that have no spans.
    pub spare: *mut Local,
    /// Room for the books of threads.
    meta: *mut u8,
    meta_left: usize,
    /// So many slots get ordinary memory before tiles are asked for again; see [`PAUSES`].
    wait: usize,
    /// What `wait` was after the last request.
    pause: usize,
}

/// A region: a lock and what it guards.
pub struct Region {
    pub lock: Lock,
    books: UnsafeCell<Books>,
}

/// All heaps of this process.
pub struct Arena {
    base: AtomicUsize,
    size: AtomicUsize,
    /// Slots in use that have ordinary memory because tiles had run out: now, and at most so far.
    ordinary: AtomicUsize,
    most_ordinary: AtomicUsize,
    /// Bytes of a region, as a power of two.
    shift: AtomicUsize,
    heaps: AtomicUsize,
    ready: AtomicBool,
    setup: UnsafeCell<Setup>,
    regions: [Region; MOST_HEAPS],
}

struct Setup {
    source: Option<Source>,
    colors: [u16; MOST_COLORS],
    number: usize,
}

// SAFETY: books are touched under the lock of their region only; the setup is written once, before `ready` is set.
unsafe impl Sync for Arena {}

/// The one of this process.
pub static ARENA: Arena = Arena::new();

impl Arena {
    const fn new() -> Self {
        Arena {
            base: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            ordinary: AtomicUsize::new(0),
            most_ordinary: AtomicUsize::new(0),
            shift: AtomicUsize::new(0),
            heaps: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
            setup: UnsafeCell::new(Setup {
                source: None,
                colors: [0; MOST_COLORS],
                number: 0,
            }),
            regions: [const {
                Region {
                    lock: Lock::new(),
                    books: UnsafeCell::new(Books {
                        slots: null_mut(),
                        high: 0,
                        hint: 0,
                        orphans: null_mut(),
                        spare: null_mut(),
                        meta: null_mut(),
                        meta_left: 0,
                        wait: 0,
                        pause: 0,
                    }),
                }
            }; MOST_HEAPS],
        }
    }

    /// Opens heaps over colors, once in a process. Says whether there is room in the address space.
    ///
    /// # Panics
    /// There are no heaps, more than [`MOST_HEAPS`], more than colors, or more colors than [`MOST_COLORS`].
    pub fn open(&self, colors: &[u16], heaps: usize, source: Source) -> bool {
        assert!((1..=MOST_HEAPS.min(colors.len())).contains(&heaps) && colors.len() <= MOST_COLORS);
        let mut shift = 32;
        let base = loop {
            // One slot more, to align it.
            match sys::reserve((heaps << shift) + SLOT) {
                Some(base) => break (base as usize).next_multiple_of(SLOT),
                None if shift > 24 => shift -= 1,
                None => return false,
            }
        };
        let each = (1 << shift) / SLOT;
        let Some(slots) = sys::plain(heaps * each * size_of::<Slot>()) else {
            return false;
        };
        // SAFETY: nobody else looks before `ready`; callers open once.
        unsafe {
            let setup = &mut *self.setup.get();
            setup.source = Some(source);
            setup.colors[..colors.len()].copy_from_slice(colors);
            setup.number = colors.len();
            for (heap, region) in self.regions.iter().enumerate().take(heaps) {
                // All zero is a slot of which nothing is used.
                (*region.books.get()).slots = slots.cast::<Slot>().add(heap * each);
            }
        }
        self.shift.store(shift, Ordering::Relaxed);
        self.heaps.store(heaps, Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.size.store(heaps << shift, Ordering::Relaxed);
        self.ready.store(true, Ordering::Release);
        true
    }

    /// Are there heaps?
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// How many heaps there are.
    pub fn heaps(&self) -> usize {
        self.heaps.load(Ordering::Relaxed)
    }

    /// How many slots a region has.
    pub fn slots(&self) -> usize {
        (1 << self.shift.load(Ordering::Relaxed)) / SLOT
    }

    /// Does an address lie in a heap?
    #[inline(always)]
    pub fn owns(&self, at: *const u8) -> bool {
        (at as usize).wrapping_sub(self.base.load(Ordering::Relaxed)) < self.size.load(Ordering::Relaxed)
    }

    /// The heap and the slot of an address in a heap.
    pub fn place(&self, at: *const u8) -> (usize, usize) {
        let shift = self.shift.load(Ordering::Relaxed);
        let offset = at as usize - self.base.load(Ordering::Relaxed);
        (offset >> shift, (offset & ((1 << shift) - 1)) / SLOT)
    }

    /// Where a slot is.
    pub fn address(&self, heap: usize, slot: usize) -> *mut u8 {
        (self.base.load(Ordering::Relaxed) + (heap << self.shift.load(Ordering::Relaxed)) + slot * SLOT)
            as *mut u8
    }

    /// The region of a heap.
    pub fn region(&self, heap: usize) -> &Region {
        &self.regions[heap]
    }

    fn source(&self) -> Option<Source> {
        // SAFETY: written before `ready`, and never again.
        unsafe { (*self.setup.get()).source }
    }

    /// All colors of the process, in the order in which heaps divide them.
    pub fn colors(&self) -> &[u16] {
        // SAFETY: as above.
        let setup = unsafe { &*self.setup.get() };
        &setup.colors[..setup.number]
    }

    /// The color of a slot.
    pub fn color(&self, heap: usize, slot: usize) -> u16 {
        let (colors, heaps) = (self.colors(), self.heaps());
        let own = (colors.len() - heap).div_ceil(heaps);
        colors[heap + slot % own * heaps]
    }

    /// Runs a body with the books of a heap.
    pub fn with<T>(&self, heap: usize, body: impl FnOnce(&mut Books) -> T) -> T {
        let region = &self.regions[heap];
        // SAFETY: under the lock, which nobody takes twice.
        region.lock.with(|| body(unsafe { &mut *region.books.get() }))
    }

    /// Without taking the lock: for `fork`, which has it.
    ///
    /// # Safety
    /// The caller has the lock.
    #[expect(clippy::mut_from_ref, reason = "the lock is the caller's")]
    pub unsafe fn books(&self, heap: usize) -> &mut Books {
        // SAFETY: the caller's.
        unsafe { &mut *self.regions[heap].books.get() }
    }

    /// Takes so many slots of a heap that follow each other, and says whether all are zero.
    pub fn take(&self, heap: usize, number: usize, usage: Use) -> Option<(*mut u8, bool)> {
        let taken = self.with(heap, |books| {
            if let Some(slot) = self.find(books, heap, number) {
                return Some(self.mark(books, slot, number, usage));
            }
            // What lies idle in pieces may do in one.
            (self.trim_books(books, heap) > 0)
                .then(|| self.find(books, heap, number))
                .flatten()
                .map(|slot| self.mark(books, slot, number, usage))
        });
        taken.map(|(slot, zero)| (self.address(heap, slot), zero))
    }

    /// Takes the slots behind an address, if they are free: for a block that grows in its place.
    pub fn take_at(&self, at: *mut u8, number: usize, usage: Use) -> bool {
        let (heap, slot) = self.place(at);
        self.with(heap, |books| {
            let free = slot + number <= self.slots()
                && (slot..slot + number).all(|s| books.is_free(s))
                && self.map(books, heap, slot, number);
            if free {
                self.mark(books, slot, number, usage);
            }
            free
        })
    }

    /// Slots become free. Tiles stay with the process until it is trimmed; the ordinary memory of
    /// large blocks and mappings goes back to the system at once, as without this allocator.
    pub fn release(&self, at: *mut u8, number: usize) {
        let (heap, slot) = self.place(at);
        self.with(heap, |books| {
            let mut s = slot;
            while s < slot + number {
                let first = s;
                let drop = books.slot(first).drops();
                while s < slot + number && books.slot(s).drops() == drop {
                    let it = books.slot(s);
                    self.count_out(it);
                    it.usage = Use::Idle;
                    it.zero = drop;
                    s += 1;
                }
                // SAFETY: private memory of slots that nobody uses any more.
                if drop && !unsafe { sys::drop_pages(self.address(heap, first), (s - first) * SLOT) } {
                    (first..s).for_each(|s| books.slot(s).zero = false);
                }
            }
            books.hint = books.hint.min(slot);
        });
    }

    /// A slot that was in use is not any more. The caller has the lock of the region.
    pub fn count_out(&self, it: &Slot) {
        if it.tile == NO_TILE && !matches!(it.usage, Use::Nothing | Use::Idle) {
            self.ordinary.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The most bytes in use at a time that had ordinary memory because tiles had run out.
    pub fn most_ordinary(&self) -> usize {
        self.most_ordinary.load(Ordering::Relaxed) * SLOT
    }

    /// In a forked child: what its parent lacked does not count for it. The caller has all locks.
    pub fn forget_ordinary(&self) {
        self.ordinary.store(0, Ordering::Relaxed);
        self.most_ordinary.store(0, Ordering::Relaxed);
    }

    /// Gives back the tiles of free slots; says how many.
    pub fn trim(&self) -> usize {
        (0..self.heaps())
            .map(|heap| self.with(heap, |books| self.trim_books(books, heap)))
            .sum()
    }

    fn trim_books(&self, books: &mut Books, heap: usize) -> usize {
        let Some(source) = self.source() else { return 0 };
        let mut given = 0;
        let mut tiles = [0; 64];
        let mut number = 0;
        for slot in 0..books.high {
            let it = books.slot(slot);
            if it.usage != Use::Idle {
                continue;
            }
            // SAFETY: a free slot, which nobody uses.
            if !unsafe { sys::plain_at(self.address(heap, slot), SLOT, 0) } {
                continue;
            }
            let tile = it.tile;
            it.usage = Use::Nothing;
            if is_tile(tile) {
                tiles[number] = tile;
                number += 1;
                given += 1;
            }
            if number == tiles.len() {
                (source.give_back)(&tiles);
                number = 0;
            }
        }
        if number > 0 {
            (source.give_back)(&tiles[..number]);
        }
        if given > 0 {
            (books.wait, books.pause) = (0, 0);
        }
        given
    }

    /// The first free slots that follow each other, mapped.
    fn find(&self, books: &mut Books, heap: usize, number: usize) -> Option<usize> {
        let mut slot = books.hint;
        let mut run = 0;
        let all = self.slots();
        while slot < all {
            run = if books.is_free(slot) { run + 1 } else { 0 };
            slot += 1;
            if run == number {
                let first = slot - number;
                return self.map(books, heap, first, number).then_some(first);
            }
            // Beyond, all is free.
            if slot > books.high && run + (all - slot) < number {
                return None;
            }
        }
        None
    }

    /// Maps tiles to those of these slots that have none, or ordinary memory where that is allowed.
    fn map(&self, books: &mut Books, heap: usize, first: usize, number: usize) -> bool {
        const AT_ONCE: usize = 64;
        let Some(source) = self.source() else { return false };
        let mut slot = first;
        while slot < first + number {
            if books.slot(slot).usage != Use::Nothing {
                slot += 1;
                continue;
            }
            let mut colors = [0; AT_ONCE];
            let mut tiles = [0; AT_ONCE];
            let mut wanted = 0;
            while wanted < AT_ONCE
                && slot + wanted < first + number
                && books.slot(slot + wanted).usage == Use::Nothing
            {
                colors[wanted] = self.color(heap, slot + wanted);
                wanted += 1;
            }
            let at = self.address(heap, slot);
            let mut got = match source.ordinary && books.wait > 0 {
                true => 0,
                false => (source.fetch)(at, &colors[..wanted], &mut tiles[..wanted]),
            };
            if source.ordinary {
                let lacking = wanted - got;
                books.note_lack(lacking, got > 0);
                let rest = at.wrapping_add(got * SLOT);
                // SAFETY: slots of this region in which nothing is mapped.
                if lacking > 0 && unsafe { sys::plain_at(rest, lacking * SLOT, sys::READ | sys::WRITE) } {
                    tiles[got..wanted].fill(NO_TILE);
                    got = wanted;
                }
            }
            books.high = books.high.max(slot + got);
            for (i, tile) in tiles.iter().enumerate().take(got) {
                *books.slot(slot + i) = Slot {
                    tile: *tile,
                    usage: Use::Idle,
                    zero: true,
                    pages: 0,
                    restricted: false,
                };
            }
            if got < wanted {
                return false;
            }
            slot += got;
        }
        true
    }

    fn mark(&self, books: &mut Books, first: usize, number: usize, usage: Use) -> (usize, bool) {
        let mut zero = true;
        let mut ordinary = 0;
        for slot in first..first + number {
            let it = books.slot(slot);
            zero &= it.zero;
            ordinary += usize::from(it.tile == NO_TILE);
            it.usage = usage;
            it.zero = false;
            it.pages = u16::MAX;
        }
        if ordinary > 0 {
            let now = self.ordinary.fetch_add(ordinary, Ordering::Relaxed) + ordinary;
            self.most_ordinary.fetch_max(now, Ordering::Relaxed);
        }
        if first == books.hint {
            books.hint = first + number;
        }
        (first, zero)
    }

    /// Room for the books of a thread, in the color of the heap; aligned to cache lines, zeroed, never given back.
    pub fn room(&self, heap: usize, size: usize) -> Option<*mut u8> {
        let size = size.next_multiple_of(64);
        loop {
            let got = self.with(heap, |books| {
                (books.meta_left >= size).then(|| {
                    let got = books.meta;
                    // Within the slot.
                    books.meta = got.wrapping_add(size);
                    books.meta_left -= size;
                    got
                })
            });
            if got.is_some() {
                return got;
            }
            let (at, zero) = self.take(heap, 1, Use::Span)?;
            if !zero {
                // SAFETY: a slot that was just taken.
                unsafe { at.write_bytes(0, SLOT) };
            }
            self.with(heap, |books| {
                books.meta = at;
                books.meta_left = SLOT;
            });
        }
    }
}

/// Is this a tile of the server, and not ordinary memory?
pub fn is_tile(tile: u32) -> bool {
    tile < INHERITED
}

impl Slot {
    /// Does its memory go back to the system when it becomes free?
    fn drops(&self) -> bool {
        !is_tile(self.tile) && matches!(self.usage, Use::Large | Use::Mapping)
    }
}

impl Books {
    /// Takes note that so many tiles were wanting, and whether the request had brought some.
    fn note_lack(&mut self, lacking: usize, some: bool) {
        if lacking == 0 {
            (self.wait, self.pause) = (0, 0);
        } else if self.wait > 0 {
            self.wait = self.wait.saturating_sub(lacking);
        } else {
            let (least, most) = PAUSES;
            self.pause = if some {
                least
            } else {
                (self.pause * 2).clamp(least, most)
            };
            self.wait = self.pause;
        }
    }

    /// A slot of the region.
    pub fn slot(&mut self, slot: usize) -> &mut Slot {
        // SAFETY: slots of the region are counted by [`Arena::slots`]; callers stay below. All zero is a valid one.
        unsafe { &mut *self.slots.add(slot) }
    }
    fn is_free(&mut self, slot: usize) -> bool {
        matches!(self.slot(slot).usage, Use::Nothing | Use::Idle)
    }
}
