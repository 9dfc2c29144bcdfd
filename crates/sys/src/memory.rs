//! Mappings that a value owns: nothing else maps, moves or unmaps these addresses while it lives.
//!
//! A mapping gives out an address and never a reference, so that mapping, locking and unmapping are
//! safe; whoever reads or writes through the address promises that the value lives. Contents of
//! files may change at any time by other processes.

use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A mapping of this process, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: an address and a size. Every access in this file is an atomic one, and others are made by
// those who hold the address and answer for them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// What may be done with the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Nothing: addresses alone.
    Reserve,
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

impl Use {
    fn protection(self) -> ProtFlags {
        match self {
            Use::Reserve => ProtFlags::empty(),
            Use::Read => ProtFlags::READ,
            Use::Write => ProtFlags::READ | ProtFlags::WRITE,
        }
    }
}

impl Mapping {
    fn of(base: *mut std::ffi::c_void, size: usize) -> io::Result<Self> {
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, size })
    }

    fn new(size: usize, what: Use, flags: MapFlags) -> io::Result<Self> {
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nobody uses.
        let base =
            unsafe { rustix::mm::mmap_anonymous(null_mut(), size, what.protection(), flags) }?;
        Self::of(base, size)
    }

    /// Memory of this process alone, all zero, or addresses without memory. The kernel sets none
    /// aside before it is written. `size` in bytes.
    ///
    /// # Errors
    /// No such addresses to be had (`ENOMEM`), or a size of 0 (`EINVAL`).
    pub fn private(size: usize, what: Use) -> io::Result<Self> {
        Self::new(size, what, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    /// As [`Mapping::private`], to be written, at a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// As [`Mapping::private`].
    pub fn aligned(size: usize, alignment: usize) -> io::Result<Self> {
        let whole = Self::private(size.saturating_add(alignment), Use::Write)?;
        let before = whole.base.as_ptr().align_offset(alignment);
        let (base, behind) = (whole.into_raw(), alignment.saturating_sub(before));
        // SAFETY: the parts lie in the mapping that was just made, before and behind what is kept.
        unsafe {
            if before > 0 {
                rustix::mm::munmap(base.cast(), before)?;
            }
            let kept = base.add(before);
            if behind > 0 {
                rustix::mm::munmap(kept.add(size).cast(), behind)?;
            }
            Self::of(kept.cast(), size)
        }
    }

    /// Memory that this process shares with the children that it forks, all zero and present.
    ///
    /// # Errors
    /// As [`Mapping::private`].
    pub fn shared(size: usize) -> io::Result<Self> {
        Self::new(size, Use::Write, MapFlags::SHARED | MapFlags::POPULATE)
    }

    /// The first bytes of a file, shared with whoever else has it; `present`: at once, not when
    /// they are first used. Beyond the end of the file an access ends the process by `SIGBUS`.
    ///
    /// # Errors
    /// It is not open for this use (`EACCES`), cannot be mapped (`ENODEV`), or is sealed against it
    /// (`EPERM`); there are too many mappings (`ENOMEM`); a size of 0 (`EINVAL`).
    pub fn file(file: impl AsFd, size: usize, what: Use, present: bool) -> io::Result<Self> {
        let mut flags = MapFlags::SHARED;
        flags.set(MapFlags::POPULATE, present);
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nobody uses.
        let base =
            unsafe { rustix::mm::mmap(null_mut(), size, what.protection(), flags, file, 0) }?;
        Self::of(base, size)
    }

    /// Puts a part of a file in the place of a part of this mapping, present at once. All in bytes,
    /// in whole pages.
    ///
    /// # Errors
    /// The part is not within this mapping (`EINVAL`), or as [`Mapping::file`].
    pub fn put(
        &mut self,
        at: usize,
        size: usize,
        file: impl AsFd,
        offset: u64,
        what: Use,
    ) -> io::Result<()> {
        if at.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
        // SAFETY: only addresses of this mapping are replaced, which this value owns.
        unsafe {
            let place = self.base.as_ptr().add(at).cast();
            rustix::mm::mmap(place, size, what.protection(), flags, file, offset)?;
        }
        Ok(())
    }

    /// Its first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its addresses, which are the caller's to unmap from now on.
    pub fn into_raw(self) -> *mut u8 {
        std::mem::ManuallyDrop::new(self).base.as_ptr()
    }

    /// The owner of such addresses.
    ///
    /// # Safety
    /// They are mapped, and nobody else unmaps, replaces or moves them.
    pub unsafe fn from_raw(base: NonNull<u8>, size: usize) -> Self {
        Mapping { base, size }
    }

    /// Moves its first bytes, in whole pages, to other addresses in one step, in the place of what
    /// is mapped there; they are no longer this mapping's, which begins behind them.
    ///
    /// # Safety
    /// Addresses from `to` on belong to the caller, and nobody needs what they hold; nobody uses
    /// the old addresses.
    ///
    /// # Errors
    /// The part is larger than this mapping (`EINVAL`), is made of several mappings (`EFAULT`), or
    /// no more mappings can be had (`ENOMEM`): nothing is moved.
    pub unsafe fn move_front(&mut self, size: usize, to: *mut u8) -> io::Result<()> {
        let rest = self
            .size
            .checked_sub(size)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let from = self.base.as_ptr().cast();
        // SAFETY: the old addresses are this value's, the new ones the caller's.
        unsafe {
            rustix::mm::mremap_fixed(from, size, size, MremapFlags::MAYMOVE, to.cast())?;
            // Still within the range that was mapped, or one behind it.
            self.base = self.base.add(size);
        }
        self.size = rest;
        Ok(())
    }

    /// Keeps its pages in memory, those that are not there yet as well.
    ///
    /// # Errors
    /// The limit to locked memory is reached (`ENOMEM`, `EPERM`).
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: the whole of a mapping that lives through the call; contents stay.
        Ok(unsafe { rustix::mm::mlock(self.base.as_ptr().cast(), self.size) }?)
    }

    /// Lets the system move and swap its pages again.
    pub fn unlock(&self) {
        // SAFETY: as in `lock`. It fails for a mapping that is not there, which this one is.
        let _ = unsafe { rustix::mm::munlock(self.base.as_ptr().cast(), self.size) };
    }

    /// Takes the right to write away.
    ///
    /// # Errors
    /// The kernel would have to split mappings and has none left (`ENOMEM`).
    pub fn protect(&mut self) -> io::Result<()> {
        // SAFETY: the whole of a mapping that this value owns; contents stay.
        Ok(unsafe {
            rustix::mm::mprotect(self.base.as_ptr().cast(), self.size, MprotectFlags::READ)
        }?)
    }

    /// Addresses without memory, below those of the program, of its heap and of all other mappings
    /// where they are free: what the kernel tells of mappings begins with the lowest.
    fn low(size: usize) -> io::Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 44);
        let at = NEXT.fetch_add(size, Ordering::Relaxed) as *mut std::ffi::c_void;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nobody uses, these if it can.
        let base = unsafe { rustix::mm::mmap_anonymous(at, size, ProtFlags::empty(), flags) }?;
        Self::of(base, size)
    }

    /// Permits reading and writing a part of it, in bytes, in whole pages.
    fn permit(&mut self, at: usize, size: usize) -> io::Result<()> {
        assert!(at.checked_add(size).is_some_and(|end| end <= self.size));
        let rights = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: within a mapping that this value owns; contents stay.
        Ok(unsafe { rustix::mm::mprotect(self.base.as_ptr().add(at).cast(), size, rights) }?)
    }

    /// Children made by fork(2) do not get it, so that its pages stay where they are: of a page
    /// that both have, who writes first gets a copy.
    pub fn keep_from_children(&self) {
        // SAFETY: the whole of a mapping that lives through the call; this advice changes no
        // contents, and no child of this process uses the mapping. The kernel never refuses it for
        // a private one.
        let _ = unsafe {
            rustix::mm::madvise(self.base.as_ptr().cast(), self.size, Advice::LinuxDontFork)
        };
    }

    /// Asks for large pages, or for none. A kernel without them refuses, which changes nothing.
    pub fn prefer_large_pages(&self, large: bool) {
        let advice = match large {
            true => Advice::LinuxHugepage,
            false => Advice::LinuxNoHugepage,
        };
        // SAFETY: the whole of a mapping that lives through the call; this advice changes no
        // contents.
        let _ = unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.size, advice) };
    }

    /// Writes a word, which lets the kernel provide the page.
    ///
    /// # Panics
    /// The word is not within the mapping, or `at`, in bytes, is no multiple of its size.
    pub fn store(&self, at: usize, word: u64) {
        self.word(at).store(word, Ordering::Relaxed);
    }

    /// A word that others may read and write at the same time.
    ///
    /// # Panics
    /// As [`Mapping::store`].
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at.checked_add(8).is_some_and(|end| end <= self.size));
        // SAFETY: within the mapping, aligned as it begins at a page, and alive as `self` is. Other
        // accesses at the same time are atomic, or their makers answer for them.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }
}

/// Lets the kernel forget which of these pages were used: from now on each counts as used when it
/// is used again (`MADV_COLD`, which clears that in page tables). Pages that were locked are not
/// any more: the kernel does it for no others.
///
/// # Errors
/// The kernel does not do it (`EINVAL`), or nothing is mapped there (`ENOMEM`).
pub fn forget_uses(pages: &std::ops::Range<usize>) -> io::Result<()> {
    let (at, size) = (pages.start as *mut std::ffi::c_void, pages.len());
    // SAFETY: neither call changes contents or mappings, wherever the addresses are.
    let cold = || unsafe { rustix::mm::madvise(at, size, Advice::LinuxCold) };
    if cold().is_err() {
        // SAFETY: as above.
        unsafe { rustix::mm::munlock(at, size) }?;
        cold()?;
    }
    Ok(())
}

/// Values in pages that have nothing else in them, and that are no neighbors of another mapping.
#[derive(Debug)]
pub struct Apart<T> {
    map: Mapping,
    /// Bytes in front of the first value: one page that nobody may use.
    before: usize,
    count: usize,
    values: std::marker::PhantomData<T>,
}

/// Keeps the calling thread on its processor. Returns where it was let run, if it was let run
/// elsewhere as well and is not any more.
fn stay_here() -> Option<CpuSet> {
    let mut one = CpuSet::new();
    one.set(rustix::thread::sched_getcpu());
    let all = sched_getaffinity(None).ok().filter(|all| *all != one)?;
    sched_setaffinity(None, &one).is_ok().then_some(all)
}

impl<T: Copy> Apart<T> {
    /// So many copies of a value, at the beginning of a page, in pages of the usual size.
    ///
    /// # Errors
    /// As [`Mapping::private`]; the thread cannot be let run again where it was (`EPERM`,
    /// `EINVAL`).
    pub fn new(count: usize, value: T) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let used = bytes.next_multiple_of(page).max(page);
        assert!(align_of::<T>() <= page);
        // A page on both sides: the kernel takes neighbors with the same rights for one mapping.
        let mut map = Mapping::low(used + 2 * page)?;
        map.permit(page, used)?;
        map.prefer_large_pages(false);
        let mut made = Self {
            map,
            before: page,
            count,
            values: std::marker::PhantomData,
        };
        let first = made.first();
        // The kernel has fresh pages in a list of the processor that has touched them first, until
        // that is full or somebody empties it there, and forgets no uses of pages in such lists.
        let elsewhere = stay_here();
        for at in 0..count {
            // SAFETY: within the part that may be written, which begins at a page: aligned. Nobody
            // else knows these addresses yet.
            unsafe { first.add(at).write(value) };
        }
        let front = made.map.base() as usize;
        // Empties the list of this processor. Where it cannot be done, neither can `forget_uses`.
        let _ = forget_uses(&(front..front + page));
        if let Some(all) = elsewhere {
            sched_setaffinity(None, &all)?;
        }
        Ok(made)
    }

    fn first(&mut self) -> *mut T {
        // SAFETY: within the mapping.
        unsafe { self.map.base().add(self.before).cast() }
    }

    /// The values.
    pub fn values(&mut self) -> &mut [T] {
        let (first, count) = (self.first(), self.count);
        // SAFETY: `count` values were written there when this was made, within a mapping that this
        // value owns, whose addresses nobody else is given to write to; it is borrowed.
        unsafe { std::slice::from_raw_parts_mut(first, count) }
    }

    /// Addresses of the pages, from the first byte to the one behind the last.
    pub fn addresses(&self) -> std::ops::Range<usize> {
        let first = self.map.base() as usize;
        first + self.before..first + self.map.size() - self.before
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.size == 0 {
            return;
        }
        // SAFETY: this value owns the addresses, and whoever was given them has promised that it
        // lives for as long as they are used. It fails only where the kernel would have to split a
        // mapping and has none left: then it stays.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;

    const PAGE: usize = 4096;

    fn word(mapping: &Mapping, at: usize) -> u64 {
        // SAFETY: within the mapping.
        unsafe { AtomicU64::from_ptr(mapping.base().add(at).cast()) }.load(Ordering::Relaxed)
    }

    fn is_mapped(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| {
            let (from, rest) = line.split_once('-').unwrap();
            let (to, _) = rest.split_once(' ').unwrap();
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(from)..number(to)).contains(&address)
        })
    }

    #[test]
    fn aligned_memory_is_there_and_nothing_around_it_stays() {
        const LARGE: usize = 1 << 21;
        let mapping = Mapping::aligned(LARGE, LARGE).unwrap();
        assert_eq!(mapping.base() as usize % LARGE, 0);
        mapping.prefer_large_pages(false);
        mapping.store(LARGE - 8, 7);
        assert_eq!((word(&mapping, 0), word(&mapping, LARGE - 8)), (0, 7));
        assert!(Mapping::private(0, Use::Write).is_err());
        assert!(Mapping::private(usize::MAX / 2, Use::Write).is_err());
    }

    #[test]
    fn parts_of_files_stand_where_they_are_put() {
        let file = rustix::fs::memfd_create(c"test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 2 * PAGE as u64).unwrap();
        let whole = Mapping::file(&file, 2 * PAGE, Use::Write, true).unwrap();
        whole.store(PAGE, 5);
        let mut parts = Mapping::private(2 * PAGE, Use::Reserve).unwrap();
        parts.put(0, PAGE, &file, PAGE as u64, Use::Read).unwrap();
        parts.put(PAGE, PAGE, &file, 0, Use::Write).unwrap();
        assert_eq!(word(&parts, 0), 5);
        parts.store(PAGE, 6);
        assert_eq!(word(&whole, 0), 6);
        assert!(parts.put(PAGE, 2 * PAGE, &file, 0, Use::Write).is_err());
        parts.protect().unwrap();
        assert_eq!(word(&parts, PAGE), 6);
    }

    #[test]
    fn what_is_dropped_is_unmapped_and_what_is_taken_out_is_not() {
        let mapping = Mapping::shared(PAGE).unwrap();
        let base = NonNull::new(mapping.into_raw()).unwrap();
        assert!(is_mapped(base.as_ptr() as usize));
        // SAFETY: taken out of its owner just now.
        drop(unsafe { Mapping::from_raw(base, PAGE) });
        // Another thread may have got these addresses meanwhile, but not the same kind of memory.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let start = format!(
            "{:x}-{:x} rw-s",
            base.as_ptr() as usize,
            base.as_ptr() as usize + PAGE
        );
        assert!(!maps.contains(&start), "{maps}");
    }

    #[test]
    fn what_is_moved_is_somewhere_else_and_the_rest_stays() {
        let mut from = Mapping::private(3 * PAGE, Use::Write).unwrap();
        for page in 0..3 {
            from.store(page * PAGE, page as u64 + 1);
        }
        let to = Mapping::private(3 * PAGE, Use::Reserve).unwrap();
        // SAFETY: into a mapping that nobody uses, from one that nobody uses.
        unsafe {
            from.move_front(PAGE, to.base()).unwrap();
            from.move_front(PAGE, to.base().add(PAGE)).unwrap();
        }
        assert_eq!((word(&to, 0), word(&to, PAGE)), (1, 2));
        assert_eq!((word(&from, 0), from.size()), (3, PAGE));
        // SAFETY: nothing is moved.
        assert!(unsafe { from.move_front(2 * PAGE, to.base()) }.is_err());
        // SAFETY: as above.
        unsafe { from.move_front(PAGE, to.base().add(2 * PAGE)) }.unwrap();
        assert_eq!(from.size(), 0);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_word_outside_is_refused() {
        Mapping::private(PAGE, Use::Write).unwrap().store(PAGE, 1);
    }
}
