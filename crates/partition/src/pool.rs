//! Memory sorted by color within this process, mapped again in pieces: what an experiment gives its
//! own tasks.
//!
//! A file in memory is mapped once, locked and sorted. A [`View`] maps some of its pages a second
//! time, one after the other, so that a task sees ordinary memory of the colors that were asked
//! for. Frames stay where they are as long as the pool lives. Assumes, as everything about colors,
//! that nobody moves them; [`Pool::moved`] tells.

use crate::colors::{Color, Colors};
use crate::frame::{FrameNumbers, Page};
use crate::geometry::PAGE;
use crate::holder::Access;
use crate::memory::Reserved;
use crate::palette::Palette;
use model::watch::Watch;
use model::{Bytes, CpuSet, Error, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sys::memory::{Mapping, Use};

fn failed(doing: &str, e: impl std::fmt::Display) -> Error {
    Error::new(format!("cannot {doing}: {e}"))
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
        let file = memfd_create(c"warmset-pool", MemfdFlags::CLOEXEC)
            .map_err(|e| failed("make a file in memory", e))?;
        let bytes = pages * PAGE;
        let sized = match pages {
            0 => Err(Errno::INVAL),
            _ => rustix::fs::ftruncate(&file, bytes as u64),
        };
        sized.map_err(|e| failed(&format!("make a pool of {size}"), e).remedy("ask for less"))?;
        let whole = Mapping::file(&file, bytes, Use::Write, false)
            .map_err(|e| failed(&format!("map a pool of {size}"), e).remedy("ask for less"))?;
        whole.prefer_large_pages(false);
        for page in 0..pages {
            // Writing allocates the frame.
            whole.store(page * PAGE, 0);
        }
        // Where locking is refused, moved pages are noticed instead.
        let _ = whole.lock();
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

    /// How many pages have other frames than when they were sorted; `None` where the system tells
    /// no frames.
    pub fn moved(&self) -> Option<usize> {
        let numbers = FrameNumbers::of_this_process()?;
        let now = numbers.of(&pages_of(&self.whole));
        Some(now.iter().zip(&self.frames).filter(|(a, b)| a != b).count())
    }

    /// Takes so many pages of these colors in turn, and maps them one after the other. They are
    /// zero at first.
    ///
    /// # Errors
    /// A color has too few pages left; no room in the address space.
    pub fn take(&self, colors: &Colors, pages: usize) -> Result<View> {
        self.take_parts(&[(colors, pages)])
    }

    /// The same part by part: so many pages of these colors, then so many of those.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_parts(&self, parts: &[(&Colors, usize)]) -> Result<View> {
        let all = parts.iter().map(|(_, pages)| *pages).sum();
        let mut taken: Vec<(Color, u32)> = Vec::with_capacity(all);
        let mut free = self.shared.free();
        for (colors, pages) in parts {
            let colors: Vec<Color> = colors.iter().collect();
            if colors.is_empty() && *pages > 0 {
                put(&mut free, &taken);
                drop(free);
                return View::of(&self.shared, Vec::new());
            }
            for color in colors.iter().copied().cycle().take(*pages) {
                let Some(page) = free.get_mut(color.index()).and_then(Vec::pop) else {
                    put(&mut free, &taken);
                    return Err(Error::new(format!(
                        "color {color} has too few pages: {} of {all} were found",
                        taken.len()
                    ))
                    .remedy("ask for less memory or more colors"));
                };
                taken.push((color, page));
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
    (0..mapping.size() / PAGE)
        // SAFETY: within the mapping, which lives as long as the borrow.
        .map(|i| unsafe { Page::at(mapping.base().add(i * PAGE)) })
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
        let mut reserved = Reserved::new(size)?;
        for (place, (_, page)) in pages.iter().enumerate() {
            reserved.put(place * PAGE, 1, &shared.file, *page as usize, Access::Full)?;
        }
        let mapping = reserved.keep();
        // SAFETY: all of the mapping is readable and writable, and nobody else has these pages.
        unsafe { std::ptr::write_bytes(mapping.base(), 0, size) };
        Ok(View { mapping, taken })
    }

    /// The memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: all of the mapping; the pages are this view's alone, and the view is borrowed for
        // as long.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.base(), self.mapping.size()) }
    }

    /// Its size.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.mapping.size() as u64)
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
        let file = memfd_create(c"test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, (pages * PAGE) as u64).unwrap();
        let whole = Mapping::file(&file, pages * PAGE, Use::Write, false).unwrap();
        let mut free = vec![Vec::new(); colors];
        for page in (0..pages).rev() {
            free[page % colors].push(page as u32);
        }
        Pool {
            shared: Arc::new(Shared {
                file,
                free: Mutex::new(free),
            }),
            whole,
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
    fn a_view_has_its_parts_one_after_the_other() {
        let pool = pool(32, 4);
        let (first, second) = ("2".parse().unwrap(), "0,3".parse().unwrap());
        let view = pool.take_parts(&[(&first, 2), (&second, 3)]).unwrap();
        let colors: Vec<u16> = view.colors().map(|c| c.0).collect();
        assert_eq!(colors, [2, 2, 0, 3, 0]);
        assert!(
            pool.take_parts(&[(&first, 1), (&Colors::new(), 1)])
                .is_err()
        );
        assert!(pool.take_parts(&[(&first, 1), (&second, 40)]).is_err());
        assert_eq!((pool.free(Color(2)), pool.free(Color(0))), (6, 6));
    }

    #[test]
    fn what_is_not_there_is_refused_and_nothing_is_lost() {
        let pool = pool(32, 4);
        let e = pool
            .take(&"0-1".parse().unwrap(), 17)
            .unwrap_err()
            .to_string();
        assert!(e.contains("too few pages"), "{e}");
        assert!(pool.take(&Colors::new(), 1).is_err());
        assert!(pool.take(&"9".parse().unwrap(), 1).is_err());
        assert_eq!((pool.free(Color(0)), pool.free(Color(1))), (8, 8));
        let rest = pool.take_all(&"0-1".parse().unwrap(), 5).unwrap();
        assert_eq!(rest.size(), Bytes::new((10 * PAGE) as u64));
        assert_eq!(pool.free(Color(0)), 3);
    }
}
