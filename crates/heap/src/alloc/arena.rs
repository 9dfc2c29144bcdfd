//! Where heaps lie: one stretch of addresses, a region of it for each heap, divided into slots that
//! tiles are mapped to.
//!
//! A heap is a super color (004 §III-C, eq. 1): of the colors that the process was granted, counted
//! from 0, those whose number modulo the number of heaps is its own. Which color a slot has follows
//! from its place: the colors of the heap in turn.

use super::class::SLOT;
use super::lock::Lock;
use super::sys;
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod slots;
pub use slots::{Books, INHERITED, NO_TILE, Region, Slot, Use, is_tile};

mod mapping;

/// The most heaps of a process.
pub const MOST_HEAPS: usize = 256;
/// The most colors of a process.
pub const MOST_COLORS: usize = 4096;

/// Maps tiles of these colors one after the other, at an address where nothing else is needed.
/// Writes their numbers and gives how many there are: fewer where no more can be had, which it has
/// said.
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

// SAFETY: books are touched under the lock of their region only; the setup is written once, before
// `ready` is set.
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
    /// There are no heaps, more than [`MOST_HEAPS`], more than colors, or more colors than
    /// [`MOST_COLORS`].
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
        (at as usize).wrapping_sub(self.base.load(Ordering::Relaxed))
            < self.size.load(Ordering::Relaxed)
    }

    /// The heap and the slot of an address in a heap.
    pub fn place(&self, at: *const u8) -> (usize, usize) {
        let shift = self.shift.load(Ordering::Relaxed);
        let offset = at as usize - self.base.load(Ordering::Relaxed);
        (offset >> shift, (offset & ((1 << shift) - 1)) / SLOT)
    }

    /// Where a slot is.
    pub fn address(&self, heap: usize, slot: usize) -> *mut u8 {
        (self.base.load(Ordering::Relaxed)
            + (heap << self.shift.load(Ordering::Relaxed))
            + slot * SLOT) as *mut u8
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
        region
            .lock
            .with(|| body(unsafe { &mut *region.books.get() }))
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
                let (at, length) = (self.address(heap, first), (s - first) * SLOT);
                // SAFETY: private memory of slots that nobody uses any more.
                if drop && !unsafe { sys::drop_pages(at, length) } {
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
}
