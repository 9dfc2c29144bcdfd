//! Before a tile goes to another user, its frames are given up, and taken again if they are free.
//!
//! A lease tells that nobody has the file open or mapped. But a page may outlive its mapping: in a
//! pipe (splice(2), vmsplice(2)), in buffers that were registered with io_uring(7), in transfers
//! that go past the page cache. The kernel counts these references and tells nobody. So no frame
//! stays in the file: a hole is punched over each page. A frame that somebody still refers to stays
//! with him, with what it held then. A frame that nobody refers to is free, and the last one freed
//! on a processor is the next one that it hands out, cleared. Whoever kept a reference therefore
//! keeps the frame and never sees another byte of the file; the tile has lost it, which the frame
//! numbers show.

use super::{TILE_PAGES, Tile};
use crate::frame::{FrameNumbers, PageMap};
use crate::geometry::PAGE;
use machine::clock::current_cpu;
use machine::memory::Area;
use machine::realtime::{self, Raised};
use model::{Bytes, CpuId, CpuSet};
use rustix::mm::{Advice, madvise};
use std::collections::BTreeSet;

/// What became of a tile's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renewed {
    /// They are those that were sorted.
    Same,
    /// The system does not tell which they are. Mostly those of before.
    Unknown,
    /// Some are others: the system took them, or had moved the page.
    Others,
    /// Some did not come back: somebody still refers to them, most likely the last holder. Seldom
    /// it is the system, which looks at pages now and then.
    Missing,
    /// The last holder exchanged some by a hole in the file.
    Exchanged,
}

/// A thread that nothing ordinary interrupts, on one processor: what it frees it gets again.
pub(crate) struct Undisturbed {
    before: Option<CpuSet>,
    raised: Option<Raised>,
    here: Option<CpuId>,
}

impl Undisturbed {
    /// The calling thread, until this is dropped. Where that is not permitted, frames are lost now
    /// and then.
    pub(crate) fn begin() -> Self {
        let here = Some(current_cpu());
        let before = realtime::affinity().ok();
        if let (Some(_), Some(here)) = (&before, here) {
            // Refused only where the processor has just gone: then the scheduler moved the thread
            // already.
            let _ = realtime::pin_to(here);
        }
        Undisturbed {
            before,
            raised: realtime::raise(realtime::LOWEST).ok(),
            here,
        }
    }

    /// Some processors of this thread, beginning with the one where it is: each has free frames of
    /// its own.
    fn processors(&self) -> impl Iterator<Item = CpuId> {
        const MOST: usize = 4;
        let others = self.before.iter().flat_map(CpuSet::iter);
        let others = others.filter(|cpu| Some(*cpu) != self.here);
        self.here.into_iter().chain(others).take(MOST)
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        self.raised = None;
        if let Some(before) = &self.before {
            // The thread may stay where it is; it works there as well.
            let _ = realtime::pin(before);
        }
    }
}

impl Tile {
    /// Is a page of it gone from our own mapping? Locked pages are taken out of it only where
    /// somebody punches a hole into the file, which takes the right to write.
    pub(super) fn is_holed(&self) -> bool {
        self.locked
            && PageMap::of_this_process().is_some_and(|map| {
                (0..TILE_PAGES).any(|page| map.is_empty(self.base() as usize + page * PAGE))
            })
    }

    /// Gives all frames up and takes new ones, which are zero. Only for tiles that nobody else has
    /// open or mapped.
    pub(crate) fn renew(&mut self, numbers: Option<&FrameNumbers>, now: &Undisturbed) -> Renewed {
        let was_holed = self.holed || self.is_holed();
        let was_moved = !self.is_intact(numbers);
        // A locked page is freed with a delay.
        self.map.0.unlock();
        for page in 0..TILE_PAGES {
            if !self.untouch(page) {
                // Without a hole the old frame would stay: the tile cannot be used again.
                return Renewed::Others;
            }
            self.touch(page);
        }
        let renewed = match numbers {
            _ if was_holed => Renewed::Exchanged,
            Some(_) if was_moved => Renewed::Others,
            Some(numbers) if !self.frames.is_empty() => self.regain(numbers, now),
            _ => Renewed::Unknown,
        };
        self.lock();
        self.frames.clear();
        self.note_frames(numbers);
        renewed
    }

    /// Looks for frames of before that did not come back at once among those that are free on some
    /// processors.
    fn regain(&mut self, numbers: &FrameNumbers, now: &Undisturbed) -> Renewed {
        let mut missing: BTreeSet<u64> = self.frames.iter().flatten().copied().collect();
        let mut wrong = Vec::new();
        for page in 0..TILE_PAGES {
            match numbers.of_address(self.base() as usize + page * PAGE) {
                Some(frame) if missing.remove(&frame) => {}
                _ => wrong.push(page),
            }
        }
        for cpu in now.processors() {
            if wrong.is_empty() {
                break;
            }
            // One that has gone has no free frames either.
            if realtime::pin_to(cpu).is_ok() {
                self.look_for(&mut missing, &mut wrong, numbers);
            }
        }
        match (wrong.is_empty(), &now.raised) {
            (true, _) => Renewed::Same,
            (false, Some(_)) => Renewed::Missing,
            // Something else may have run in between.
            (false, None) => Renewed::Others,
        }
    }

    /// Looks for frames among those that are free on this processor, and takes them for pages that
    /// have wrong ones.
    fn look_for(
        &mut self,
        missing: &mut BTreeSet<u64>,
        wrong: &mut Vec<usize>,
        numbers: &FrameNumbers,
    ) {
        const LOOKED_AT: usize = 128;
        let Ok(mut others) = Area::map(Bytes::new((LOOKED_AT * PAGE) as u64)) else {
            return;
        };
        // A locked page is freed with a delay.
        others.unlock();
        for place in 0..LOOKED_AT {
            let address = others.base() as usize + place * PAGE;
            let frame = numbers.of_address(address);
            if !frame.is_some_and(|frame| missing.contains(&frame)) {
                continue;
            }
            let Some(page) = wrong.pop() else { return };
            let punched = self.untouch(page);
            // SAFETY: a page of the area, whose contents nobody needs; it stays mapped.
            let _ = unsafe {
                madvise(
                    address as *mut std::ffi::c_void,
                    PAGE,
                    Advice::LinuxDontNeed,
                )
            };
            self.touch(page);
            match numbers.of_address(self.base() as usize + page * PAGE) {
                Some(frame) if punched && missing.remove(&frame) => {}
                _ => wrong.push(page),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colors::Color;
    use crate::holder::Access;
    use crate::tile::TILE;
    use rustix::pipe::SpliceFlags;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::FileExt;

    /// A pipe that refers to the first pages of a file, by splice(2).
    fn pipe_with_pages(file: &File, pages: usize) -> (File, File) {
        let (reader, writer) = std::io::pipe().unwrap();
        let (length, flags) = (pages * PAGE, SpliceFlags::empty());
        let moved = rustix::pipe::splice(file, Some(&mut 0), &writer, None, length, flags);
        assert_eq!(moved, Ok(length));
        let file = |fd: std::os::fd::OwnedFd| File::from(fd);
        (file(reader.into()), file(writer.into()))
    }

    #[test]
    fn a_page_in_a_pipe_stays_with_who_put_it_there() {
        let numbers = FrameNumbers::of_this_process();
        let mut tile = Tile::fresh(Color(0)).unwrap();
        let theirs = tile.open(Access::Full).unwrap();
        theirs.write_all_at(&[0x5a; TILE], 0).unwrap();
        let (mut reader, writer) = pipe_with_pages(&theirs, TILE_PAGES);
        drop(theirs);
        assert!(tile.is_alone(), "a lease does not see the pipe");
        let renewed = tile.renew(numbers.as_ref(), &Undisturbed::begin());
        assert!(tile.is_zero());
        tile.fill(&[0xc3; TILE]);
        drop(writer);
        let mut seen = Vec::new();
        reader.read_to_end(&mut seen).unwrap();
        assert!(seen.iter().all(|b| *b == 0x5a) && seen.len() == TILE);
        match numbers {
            Some(_) => assert!(
                matches!(renewed, Renewed::Missing | Renewed::Others),
                "{renewed:?}"
            ),
            None => assert_eq!(renewed, Renewed::Unknown),
        }
    }

    #[test]
    fn a_hole_is_told_from_a_page_that_was_moved() {
        let mut tile = Tile::fresh(Color(0)).unwrap();
        assert!(!tile.is_holed());
        let theirs = tile.open(Access::Full).unwrap();
        rustix::fs::fallocate(
            &theirs,
            rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE,
            (3 * PAGE) as u64,
            PAGE as u64,
        )
        .unwrap();
        // That it is written again hides nothing.
        theirs.write_all_at(&[1; PAGE], (3 * PAGE) as u64).unwrap();
        drop(theirs);
        if tile.locked {
            assert!(tile.is_holed());
            // Nor does it that the server reads the page.
            let read = tile.mapping().pages()[3].read(0);
            assert!(read == 0x0101_0101_0101_0101 && !tile.is_holed());
            let numbers = FrameNumbers::of_this_process();
            let renewed = tile.renew(numbers.as_ref(), &Undisturbed::begin());
            assert_eq!(renewed, Renewed::Exchanged);
        }
        assert!(!tile.is_holed());
    }

    /// As far as the system lets it: what is freed is mostly what is allocated next.
    #[test]
    fn frames_that_nobody_refers_to_come_back() {
        let numbers = FrameNumbers::of_this_process();
        let mut tiles: Vec<Tile> = (0..64).map(|_| Tile::fresh(Color(0)).unwrap()).collect();
        let now = Undisturbed::begin();
        let renewed: Vec<Renewed> = tiles
            .iter_mut()
            .map(|tile| {
                tile.fill(&[7; TILE]);
                tile.renew(numbers.as_ref(), &now)
            })
            .collect();
        drop(now);
        assert!(tiles.iter().all(Tile::is_zero));
        let same = renewed.iter().filter(|r| **r == Renewed::Same).count();
        let unknown = renewed.iter().filter(|r| **r == Renewed::Unknown).count();
        assert!(same + unknown >= 48, "{renewed:?}");
    }
}
