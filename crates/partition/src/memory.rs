//! Colored memory as a client has it: one range of addresses over pages of tiles. It stays when the
//! server ends.

use crate::colors::{Color, Colors};
use crate::frame::Page;
use crate::geometry::PAGE;
use crate::holder::Access;
use crate::ledger::TileId;
use crate::tile::TILE_PAGES;
use crate::violation;
use model::{Error, Result};
use std::os::fd::OwnedFd;
use sys::memory::{Mapping, Use};

/// A tile as it comes from the server: its number and its open file.
pub(crate) type Received = (TileId, OwnedFd);

/// How the pages of several colors follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// A tile of 16 pages of one color after the other: few mappings.
    #[default]
    Tiles,
    /// Page by page: any part of the memory lies in all colors alike.
    Pages,
}

/// Colored memory.
#[derive(Debug)]
pub struct Memory {
    map: Mapping,
    /// The color of each page.
    colors: Vec<Color>,
    tiles: Vec<TileId>,
    access: Access,
    layout: Layout,
}

/// A range of addresses without memory behind it, freed again unless it is used.
pub(crate) struct Reserved(Mapping);

fn failed(e: &std::io::Error) -> Error {
    Error::new(format!("cannot map colored memory: {e}")).remedy(
        "raise the number of mappings: `sysctl vm.max_map_count`, 1 for each run of pages of one color",
    )
}

impl Reserved {
    pub fn new(size: usize) -> Result<Self> {
        Mapping::private(size, Use::Reserve)
            .map(Reserved)
            .map_err(|e| failed(&e))
    }

    /// Maps pages of a tile at an offset, in bytes.
    pub fn put(
        &mut self,
        at: usize,
        pages: usize,
        file: &OwnedFd,
        first: usize,
        access: Access,
    ) -> Result<()> {
        let what = match access {
            Access::Full => Use::Write,
            Access::ReadOnly => Use::Read,
        };
        self.0
            .put(at, pages * PAGE, file, (first * PAGE) as u64, what)
            .map_err(|e| failed(&e))
    }

    /// The range.
    pub fn keep(self) -> Mapping {
        self.0
    }
}

impl Memory {
    /// Over these tiles, color by color; of the last ones of each color, only as much as makes
    /// `pages` pages is mapped.
    pub(crate) fn of(
        tiles: &[(Color, Vec<Received>)],
        pages: usize,
        access: Access,
        layout: Layout,
    ) -> Result<Self> {
        let mut reserved = Reserved::new(pages * PAGE)?;
        let number = tiles.len();
        let run = match layout {
            Layout::Tiles => TILE_PAGES,
            Layout::Pages => 1,
        };
        let mut colors = Vec::with_capacity(pages);
        // How many pages of each color are mapped.
        let mut used = vec![0; number];
        for turn in 0.. {
            let at = turn * run;
            if at >= pages {
                break;
            }
            let which = turn % number;
            let (color, own) = &tiles[which];
            let length = run.min(pages - at);
            let Some((_, file)) = own.get(used[which] / TILE_PAGES) else {
                return Err(Error::new("the memory server gave less than was asked for")
                    .remedy("use the same version on both sides"));
            };
            reserved.put(at * PAGE, length, file, used[which] % TILE_PAGES, access)?;
            used[which] += length;
            colors.extend(std::iter::repeat_n(*color, length));
        }
        Ok(Memory {
            map: reserved.keep(),
            colors,
            tiles: tiles
                .iter()
                .flat_map(|(_, own)| own)
                .map(|(id, _)| *id)
                .collect(),
            access,
            layout,
        })
    }

    /// How many tiles of each of `number` colors `pages` pages take.
    pub(crate) fn tiles_of(pages: usize, number: usize, layout: Layout) -> Vec<usize> {
        let units = match layout {
            Layout::Tiles => pages.div_ceil(TILE_PAGES),
            Layout::Pages => pages,
        };
        (0..number)
            .map(|place| {
                let own = units / number + usize::from(place < units % number);
                match layout {
                    Layout::Tiles => own,
                    Layout::Pages => own.div_ceil(TILE_PAGES),
                }
            })
            .collect()
    }

    /// Puts its first `size` bytes in the place of what is mapped at an address, for good: they are
    /// no longer this value's, and are the server's again when the process ends or unmaps them.
    /// Says whether all of it is in place; what is not stays as it was.
    ///
    /// # Safety
    /// What is mapped at `to` belongs to the caller, and its contents are not needed.
    pub unsafe fn place(mut self, size: usize, to: *mut u8) -> bool {
        let pages = (size / PAGE).min(self.colors.len());
        let mut placed = 0;
        while placed < pages {
            // One mapping at a time: a tile's pages lie together, those of page by page do not.
            let same = |page: usize| (self.colors[page], page / TILE_PAGES);
            let run = (placed..pages)
                .take_while(|p| same(*p) == same(placed))
                .count();
            let run = if self.layout == Layout::Pages { 1 } else { run };
            // SAFETY: the place is the caller's, and this value, which is consumed, nobody else's.
            let moved = unsafe { self.map.move_front(run * PAGE, to.add(placed * PAGE)) };
            if moved.is_err() {
                break;
            }
            placed += run;
        }
        self.colors.drain(..placed);
        placed == pages
    }

    /// The first byte.
    pub fn base(&self) -> *mut u8 {
        self.map.base()
    }
    /// In bytes.
    pub fn size(&self) -> usize {
        self.colors.len() * PAGE
    }
    /// To use, or to read only.
    pub fn access(&self) -> Access {
        self.access
    }
    /// Its tiles.
    pub fn tiles(&self) -> &[TileId] {
        &self.tiles
    }
    /// What is in it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped as long as this lives; the server gives a tile to one client alone and
        // touches it again only when nobody maps it, and who writes through the pointer must not
        // hold this.
        unsafe { std::slice::from_raw_parts(self.base(), self.size()) }
    }
    /// What is in it, to be written; empty where it may only be read.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self.access {
            // SAFETY: as above, and it is borrowed for writing here.
            Access::Full => unsafe { std::slice::from_raw_parts_mut(self.base(), self.size()) },
            Access::ReadOnly => &mut [],
        }
    }
    /// The color of a page.
    pub fn color_of(&self, page: usize) -> Option<Color> {
        self.colors.get(page).copied()
    }
    /// Its colors.
    pub fn colors(&self) -> Colors {
        self.colors.iter().copied().collect()
    }
    /// Its pages.
    pub fn pages(&self) -> Vec<Page<'_>> {
        (0..self.colors.len())
            // SAFETY: mapped as long as this lives.
            .map(|i| unsafe { Page::at(self.base().add(i * PAGE)) })
            .collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.access == Access::ReadOnly {
            violation::forget(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_dealt_out_to_colors_in_turn() {
        assert_eq!(Memory::tiles_of(TILE_PAGES * 5, 2, Layout::Tiles), [3, 2]);
        assert_eq!(Memory::tiles_of(1, 3, Layout::Tiles), [1, 0, 0]);
        assert_eq!(Memory::tiles_of(33, 2, Layout::Pages), [2, 1]);
        assert_eq!(Memory::tiles_of(2, 3, Layout::Pages), [1, 1, 0]);
    }
}
