//! Memory sorted by color within this process, mapped again in pieces: what an experiment gives its own tasks.
//!
//! A file in memory is mapped once, locked and sorted. A [`View`] maps some of its pages a second time, one after the
//! other, so that a task sees ordinary memory of the colors that were asked for. Frames stay where they are as long as the pool lives. Assumes, as everything
//! about colors, that nobody moves them; [`Pool::moved`] tells.

use crate::colors::{Color, Colors};
use crate::frame::{FrameNumbers, Page};
use crate::geometry::PAGE;
use crate::holder::Access;
use crate::memory::Reserved;
use crate::palette::Palette;
use model::watch::Watch;
use model::{Bytes, CpuSet, Error, Result};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A mapping, unmapped in the end.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    size: usize,
}

// SAFETY: the mapping is owned by this value alone; reading and writing go through its owner's borrows.
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared mapping is only read.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by this value's maker, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

fn last_error(doing: &str) -> Error {
    Error::new(format!("cannot {doing}: {}", std::io::Error::last_os_error()))
}

/// What a pool and its views share: frames live as long as somebody may use them.
#[derive(Debug)]
struct Shared {
    file: OwnedFd,
    /// Pages that nobody has, by color; the next one last.
    free: Mutex<Vec<Vec<u32>>>,
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Vec<Vec<u32>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory sorted by color, of which pages are taken. They return when a view is dropped.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    whole: Mapping,
    /// The frames behind the pages at first, where the system tells.
    frames: Vec<Option<u64>>,
}

impl Pool {
    /// Of so much memory, sorted on these processors.
    ///
    /// # Errors
    /// There is not as much memory; sorting fails as [`Palette::sort`] does.
    pub fn make(palette: &Palette, size: Bytes, on: &CpuSet, watch: &dyn Watch) -> Result<Self> {
        let pages = usize::try_from(size.get()).unwrap_or(usize::MAX) / PAGE;
        machine::memory::check_free(size)?;
        // SAFETY: the name is a C string, and the flag asks for no further argument.
        let fd = unsafe { libc::memfd_create(c"warmset-pool".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(last_error("make a file in memory"));
        }
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a call with plain numbers on an open file.
        if pages == 0 || unsafe { libc::ftruncate(fd, (pages * PAGE) as libc::off_t) } != 0 {
            return Err(last_error(&format!("make a pool of {size}")).remedy("ask for less"));
        }
        // SAFETY: a new shared mapping of the file, whose result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                pages * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(last_error(&format!("map a pool of {size}")).remedy("ask for less"));
        }
        let whole = Mapping {
            base: base.cast(),
            size: pages * PAGE,
        };
        // SAFETY: advice about the mapping that was just made. A kernel without huge pages refuses, which changes nothing.
        unsafe { libc::madvise(base, whole.size, libc::MADV_NOHUGEPAGE) };
        for page in 0..pages {
            // SAFETY: within the mapping. Writing allocates the frame.
            unsafe { whole.base.add(page * PAGE).write_volatile(0) };
        }
        // SAFETY: the mapping that was just made. Where locking is refused, moved pages are noticed instead.
        unsafe { libc::mlock(base, whole.size) };
        let all = pages_of(&whole);
        let sorted = palette.sort(&all, on, watch)?;
        let mut free: Vec<Vec<u32>> = vec![Vec::new(); usize::from(palette.colors())];
        for (page, color) in sorted.iter().enumerate().rev() {
            if let Some(color) = color {
                free[color.index()].push(page as u32);
            }
        }
        let frames = FrameNumbers::of_this_process().map_or_else(Vec::new, |n| n.of(&all));
        drop(all);
        Ok(Pool {
            shared: Arc::new(Shared {
                file,
                free: Mutex::new(free),
            }),
            whole,
            frames,
        })
    }

    /// How many pages of a color nobody has.
    pub fn free(&self, color: Color) -> usize {
        self.shared.free().get(color.index()).map_or(0, Vec::len)
    }

    /// How many pages have other frames than when they were sorted; `None` where the system tells no frames.
    pub fn moved(&self) -> Option<usize> {
        let numbers = FrameNumbers::of_this_process()?;
        let now = numbers.of(&pages_of(&self.whole));
        Some(now.iter().zip(&self.frames).filter(|(a, b)| a != b).count())
    }

    /// Takes so many pages of these colors in turn, and maps them one after the other. They are zero at first.
    ///
    /// # Errors
    /// A color has too few pages left; no room in the address space.
    pub fn take(&self, colors: &Colors, pages: usize) -> Result<View> {
        let colors: Vec<Color> = colors.iter().collect();
        let mut taken: Vec<(Color, u32)> = Vec::with_capacity(pages);
        let mut free = self.shared.free();
        for place in 0..if colors.is_empty() { 0 } else { pages } {
            let color = colors[place % colors.len()];
            match free.get_mut(color.index()).and_then(Vec::pop) {
                Some(page) => taken.push((color, page)),
                None => {
                    put(&mut free, &taken);
                    return Err(Error::new(format!(
                        "color {color} has too few pages: {} of {pages} were found",
                        taken.len()
                    ))
                    .remedy("ask for less memory or more colors"));
                }
            }
        }
        drop(free);
        View::of(&self.shared, taken)
    }

    /// Takes all pages of these colors that nobody has, up to `most` of each, color by color.
    ///
    /// # Errors
    /// There are none; no room in the address space.
    pub fn take_all(&self, colors: &Colors, most: usize) -> Result<View> {
        let mut taken = Vec::new();
        let mut free = self.shared.free();
        for color in colors.iter() {
            if let Some(own) = free.get_mut(color.index()) {
                let rest = own.len().saturating_sub(most);
                taken.extend(own.drain(rest..).rev().map(|page| (color, page)));
            }
        }
        drop(free);
        View::of(&self.shared, taken)
    }
}

fn put(free: &mut [Vec<u32>], pages: &[(Color, u32)]) {
    for (color, page) in pages.iter().rev() {
        if let Some(own) = free.get_mut(color.index()) {
            own.push(*page);
        }
    }
}

fn pages_of(mapping: &Mapping) -> Vec<Page<'_>> {
    (0..mapping.size / PAGE)
        // SAFETY: within the mapping, which lives as long as the borrow.
        .map(|i| unsafe { Page::at(mapping.base.add(i * PAGE)) })
        .collect()
}

/// Pages of chosen colors, one after the other in memory, which their holder reads and writes.
#[derive(Debug)]
pub struct View {
    mapping: Mapping,
    taken: Taken,
}

/// Pages that somebody has, until they return.
#[derive(Debug)]
struct Taken {
    pages: Vec<(Color, u32)>,
    shared: Arc<Shared>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        put(&mut self.shared.free(), &self.pages);
    }
}

impl View {
    fn of(shared: &Arc<Shared>, pages: Vec<(Color, u32)>) -> Result<Self> {
        // From here on the pages return whatever happens.
        let taken = Taken {
            pages,
            shared: Arc::clone(shared),
        };
        let pages = &taken.pages;
        if pages.is_empty() {
            return Err(
                Error::new("no pages of these colors are there, or none are asked for")
                    .remedy("name a size and colors"),
            );
        }
        let size = pages.len() * PAGE;
        let reserved = Reserved::new(size)?;
        for (place, (_, page)) in pages.iter().enumerate() {
            reserved.put(place * PAGE, 1, &shared.file, *page as usize, Access::Full)?;
        }
        let mapping = Mapping {
            base: reserved.keep(),
            size,
        };
        // SAFETY: all of the mapping is readable and writable, and nobody else has these pages.
        unsafe { std::ptr::write_bytes(mapping.base, 0, size) };
        Ok(View { mapping, taken })
    }

    /// The memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: all of the mapping; the pages are this view's alone, and the view is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.base, self.mapping.size) }
    }

    /// Its size.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.mapping.size as u64)
    }

    /// The color of each page, in their order.
    pub fn colors(&self) -> impl ExactSizeIterator<Item = Color> + '_ {
        self.taken.pages.iter().map(|(color, _)| *color)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool whose colors are made up: page modulo colors.
    fn pool(pages: usize, colors: usize) -> Pool {
        // SAFETY: as in `Pool::make`.
        let fd = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: the descriptor was made just now.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a call with plain numbers; then a mapping whose result is checked.
        let base = unsafe {
            libc::ftruncate(fd, (pages * PAGE) as libc::off_t);
            libc::mmap(
                std::ptr::null_mut(),
                pages * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let mut free = vec![Vec::new(); colors];
        for page in (0..pages).rev() {
            free[page % colors].push(page as u32);
        }
        Pool {
            shared: Arc::new(Shared {
                file,
                free: Mutex::new(free),
            }),
            whole: Mapping {
                base: base.cast(),
                size: pages * PAGE,
            },
            frames: Vec::new(),
        }
    }

    #[test]
    fn a_view_is_the_pages_of_its_colors_in_turn() {
        let pool = pool(32, 4);
        let mut view = pool.take(&"1,3".parse().unwrap(), 6).unwrap();
        let colors: Vec<u16> = view.colors().map(|c| c.0).collect();
        assert_eq!(colors, [1, 3, 1, 3, 1, 3]);
        view.bytes()[PAGE * 2..PAGE * 3].fill(7);
        // The third page of the view is the second one of color 1: page 5 of the pool.
        let whole = pages_of(&pool.whole);
        assert_eq!(whole[5].read(8), 0x0707_0707_0707_0707);
        assert_eq!(whole[1].read(8), 0);
        drop(whole);
        assert_eq!((pool.free(Color(1)), pool.free(Color(0))), (5, 8));
        drop(view);
        assert_eq!(pool.free(Color(1)), 8);
        let mut again = pool.take(&"1,3".parse().unwrap(), 6).unwrap();
        assert!(
            again.bytes().iter().all(|b| *b == 0),
            "cleared for the next holder"
        );
    }

    #[test]
    fn what_is_not_there_is_refused_and_nothing_is_lost() {
        let pool = pool(32, 4);
        let e = pool.take(&"0-1".parse().unwrap(), 17).unwrap_err().to_string();
        assert!(e.contains("too few pages"), "{e}");
        assert!(pool.take(&Colors::new(), 1).is_err());
        assert!(pool.take(&"9".parse().unwrap(), 1).is_err());
        assert_eq!((pool.free(Color(0)), pool.free(Color(1))), (8, 8));
        let rest = pool.take_all(&"0-1".parse().unwrap(), 5).unwrap();
        assert_eq!(rest.size(), Bytes::new((10 * PAGE) as u64));
        assert_eq!(pool.free(Color(0)), 3);
    }
}
