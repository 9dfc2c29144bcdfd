//! Tiles: small files in memory whose pages all have one color, the unit in which memory is given
//! out.
//!
//! A client maps a file, not frames. So frames are sorted once, when tiles are made: frames of one
//! color are freed, one by one, and at once allocated again for a file. The system hands out single
//! free frames again, last freed first, before it splits larger blocks; where something came
//! between, the frame numbers show it, and another page is tried; what they do not show, a second
//! sorting by time does. From then on a tile keeps its frames: it is locked, and its size is
//! sealed.
//!
//! A tile is one's own again when nobody else has it open or mapped. A lease (fcntl(2),
//! `F_SETLEASE`) tells exactly that, also of a mapping that a child inherited: it is granted only
//! where no other open file refers to it, and a mapping holds its open file. It does not tell of
//! references to single pages, such as those of a pipe: so a tile gives its frames up before others
//! get it (`renew`).

use crate::colors::Color;
use crate::frame::{FrameNumbers, Page};
use crate::geometry::PAGE;
use crate::holder::Access;
use model::{Error, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use rustix::mm::{Advice, madvise};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use sys::memory::Use;

mod renew;
pub use renew::Renewed;
pub(crate) use renew::Undisturbed;

mod make;
pub use make::{allow_files, complete, make, make_each};

/// Pages of a tile.
pub const TILE_PAGES: usize = 16;
/// Bytes of a tile.
pub const TILE: usize = TILE_PAGES * PAGE;

/// Frames of one color, as a file that can be mapped.
#[derive(Debug)]
pub struct Tile {
    /// Its color.
    pub color: Color,
    /// Our own open file: the only one when nobody holds the tile.
    file: File,
    /// Our own mapping, locked.
    map: Arc<Mapping>,
    /// The frames behind it, where the system tells.
    frames: Vec<Option<u64>>,
    /// Could its pages be locked?
    locked: bool,
    /// Was a page seen to be gone from our own mapping?
    holed: bool,
    /// Has it lost its color while somebody holds it?
    pub(crate) untrue: bool,
}

/// The server's mapping of a tile. Whoever asks its pages for their color holds it beside the tile,
/// so that no lock is held for as long as that takes.
#[derive(Debug)]
pub(crate) struct Mapping(sys::memory::Mapping);

impl Mapping {
    pub(crate) fn pages(&self) -> Vec<Page<'_>> {
        (0..TILE_PAGES)
            // SAFETY: mapped as long as this lives.
            .map(|i| unsafe { Page::at(self.0.base().add(i * PAGE)) })
            .collect()
    }
}

fn failed(doing: &str, e: impl std::fmt::Display) -> Error {
    Error::new(format!("cannot {doing}: {e}"))
}

/// A tile has its size for good, and stays without further seals.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

impl Tile {
    /// A file of fresh zeroed pages, all present. Its color is what the caller says: [`make`] makes
    /// it true.
    ///
    /// # Errors
    /// No more files or mappings can be had.
    pub fn fresh(color: Color) -> Result<Self> {
        let mut tile = Self::empty(color)?;
        for page in 0..TILE_PAGES {
            tile.touch(page);
        }
        tile.lock();
        tile.note_frames(FrameNumbers::of_this_process().as_ref());
        Ok(tile)
    }

    /// A file whose pages are not there yet.
    fn empty(color: Color) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = rustix::fs::memfd_create(crate::state::NAME, flags).map_err(|e| {
            failed("make a file in memory", e)
                .remedy("raise the number of open files: `ulimit -n`, 1 for each 64 KiB")
        })?;
        rustix::fs::ftruncate(&made, TILE as u64)
            .and_then(|()| rustix::fs::fcntl_add_seals(&made, SEALS))
            .map_err(|e| failed("size a file in memory", e))?;
        // For its owner alone: it is handed on open, not by name.
        rustix::fs::fchmod(&made, Mode::RUSR | Mode::WUSR)
            .map_err(|e| failed("set the mode of a file in memory", e))?;
        // Opened anew by name: the file as it was made is not counted among the open ones by
        // leases.
        Self::over(color, open(&made, true)?)
    }

    /// Allocates the frame of a page.
    fn touch(&self, page: usize) {
        self.map.0.store(page * PAGE, 0);
    }

    /// Gives the frame of a page back to the system.
    fn untouch(&self, page: usize) -> bool {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, punch, (page * PAGE) as u64, PAGE as u64).is_ok()
    }

    fn lock(&mut self) {
        // Where locking is refused, moved pages are noticed instead.
        self.locked = self.map.0.lock().is_ok();
    }

    /// Fills it with frames of pages that are given up for it, one by one: what is freed is what is
    /// allocated next, unless the system needs a frame in between. Where it tells frames, such a
    /// page is tried again. Says whether there were enough.
    fn fill_from(
        &mut self,
        given_up: &mut dyn Iterator<Item = Page<'_>>,
        known: Option<(&FrameNumbers, &HashSet<u64>)>,
    ) -> bool {
        let mut page = 0;
        while page < TILE_PAGES {
            let Some(own) = given_up.next() else {
                return false;
            };
            // SAFETY: a page of memory whose contents nobody needs any more; it stays mapped. Where
            // it is refused the page stays as it is, and the tile gets another frame.
            let _ = unsafe {
                madvise(
                    own.address() as *mut std::ffi::c_void,
                    PAGE,
                    Advice::LinuxDontNeed,
                )
            };
            self.touch(page);
            let Some((numbers, frames)) = known else {
                page += 1;
                continue;
            };
            let got = numbers.of_address(self.base() as usize + page * PAGE);
            if got.is_some_and(|frame| frames.contains(&frame)) {
                page += 1;
            } else if !self.untouch(page) {
                return false;
            }
        }
        self.lock();
        true
    }

    /// A tile of a server before, by its file. Its color is what that server said.
    ///
    /// # Errors
    /// The file is not what a server makes; no more mappings can be had.
    pub fn adopt(color: Color, file: File) -> Result<Self> {
        let sealed = rustix::fs::fcntl_get_seals(&file) == Ok(SEALS);
        if !sealed || !file.metadata().is_ok_and(|m| m.len() == TILE as u64) {
            return Err(Error::new("this file is no tile of a memory server"));
        }
        let mut tile = Self::over(color, file)?;
        tile.lock();
        tile.note_frames(FrameNumbers::of_this_process().as_ref());
        Ok(tile)
    }

    fn over(color: Color, file: File) -> Result<Self> {
        let map = sys::memory::Mapping::file(&file, TILE, Use::Write, false).map_err(|e| {
            failed("map a tile", e).remedy(
                "raise the number of mappings: `sysctl vm.max_map_count`, 1 for each 64 KiB",
            )
        })?;
        // Before anything is in it: a huge page has all colors.
        map.prefer_large_pages(false);
        Ok(Tile {
            color,
            file,
            map: Arc::new(Mapping(map)),
            frames: Vec::new(),
            locked: false,
            holed: false,
            untrue: false,
        })
    }

    /// The number of its file.
    pub(crate) fn inode(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        Some(self.file.metadata().ok()?.ino())
    }

    /// The frames are what they are now: its color was checked.
    pub(crate) fn note_frames(&mut self, numbers: Option<&FrameNumbers>) {
        if let Some(numbers) = numbers {
            self.frames = numbers.of(&self.pages());
        }
    }

    /// Its pages, one after the other.
    pub fn pages(&self) -> Vec<Page<'_>> {
        self.map.pages()
    }

    /// The mapping, to read its pages. Reading maps pages again that were taken out of it: so it is
    /// noted first whether there are some.
    pub(crate) fn mapping(&mut self) -> Arc<Mapping> {
        self.holed |= self.is_holed();
        Arc::clone(&self.map)
    }

    fn base(&self) -> *mut u8 {
        self.map.0.base()
    }

    /// An open file for someone else: to read and write, or only to read. Whoever has it to read
    /// cannot map it to write, nor open it anew to write, unless he may override the modes of
    /// files.
    ///
    /// # Errors
    /// Too many files are open.
    pub fn open(&self, access: Access) -> Result<File> {
        self.allow(access)?;
        open(&self.file, access == Access::Full)
    }

    /// Who owns the file may open it anew in this way only.
    fn allow(&self, access: Access) -> Result<()> {
        let mode = match access {
            Access::Full => 0o600,
            Access::ReadOnly => 0o400,
        };
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))
            .map_err(|e| failed("set the mode of a tile", e))
    }

    /// Has nobody else it open or mapped?
    pub fn is_alone(&self) -> bool {
        sys::file::is_alone(&self.file)
    }

    /// Are the frames still those that were sorted? Yes where the system tells no frames.
    pub fn is_intact(&self, numbers: Option<&FrameNumbers>) -> bool {
        match numbers {
            Some(numbers) if !self.frames.is_empty() => numbers.of(&self.pages()) == self.frames,
            _ => true,
        }
    }

    /// Clears it. Only for tiles that nobody holds.
    pub fn zero(&mut self) {
        // SAFETY: the whole of the mapping, which this value owns.
        unsafe { std::ptr::write_bytes(self.base(), 0, TILE) };
    }

    /// Fills it from its beginning. Only for tiles that nobody maps yet.
    pub fn fill(&mut self, bytes: &[u8]) {
        // SAFETY: within the mapping, which this value owns.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base(), bytes.len().min(TILE))
        };
    }

    /// Is every byte zero?
    pub fn is_zero(&self) -> bool {
        // SAFETY: the whole of the mapping; nobody else writes while it is ours.
        unsafe { std::slice::from_raw_parts(self.base(), TILE) }
            .iter()
            .all(|b| *b == 0)
    }
}

fn open(file: &impl AsRawFd, writable: bool) -> Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new()
        .read(true)
        .write(writable)
        .open(&path)
        .map_err(|e| Error::io(path, "open a tile", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_alone_until_someone_opens_it_and_again_when_nobody_maps_it() {
        let tile = Tile::fresh(Color(0)).unwrap();
        assert!(tile.is_alone());
        for access in [Access::Full, Access::ReadOnly] {
            let theirs = tile.open(access).unwrap();
            assert!(!tile.is_alone());
            let map = sys::memory::Mapping::file(&theirs, TILE, Use::Read, false).unwrap();
            drop(theirs);
            assert!(!tile.is_alone(), "a mapping holds it: {access:?}");
            drop(map);
            assert!(tile.is_alone());
        }
    }

    #[test]
    fn a_tile_cannot_be_resized_and_is_zero_at_first_and_after_clearing() {
        let mut tile = Tile::fresh(Color(3)).unwrap();
        assert!(tile.is_zero());
        let theirs = tile.open(Access::Full).unwrap();
        assert!(theirs.set_len(0).is_err());
        assert!(theirs.set_len(1 << 20).is_err());
        std::os::unix::fs::FileExt::write_all_at(&theirs, b"secret", 5000).unwrap();
        drop(theirs);
        assert!(!tile.is_zero());
        tile.zero();
        assert!(tile.is_zero());
    }
}
