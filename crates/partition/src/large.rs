//! Memory in large pages, its 4 KiB parts sorted by color: what floods some colors and leaves
//! translations of addresses alone.
//!
//! A large page has all colors. Who wants to use some of them only visits its parts of these
//! colors: one translation serves all of them, so that what a flood does to caches is told from
//! what it does to translations (001 §4.2).

use crate::colors::{Color, Colors};
use crate::frame::pages;
use crate::geometry::PAGE;
use crate::palette::Palette;
use machine::memory::Area;
use model::watch::Watch;
use model::{Bytes, CpuSet, Error, Result};

/// Memory in large pages, as far as the system gives some.
#[derive(Debug)]
pub struct Large {
    area: Area,
    colors: Vec<Option<Color>>,
    /// How much of it is in large pages in fact.
    pub large: Bytes,
}

impl Large {
    /// So much memory, sorted on these processors.
    ///
    /// # Errors
    /// There is not as much memory; sorting fails as [`Palette::sort`] does.
    pub fn make(palette: &Palette, size: Bytes, on: &CpuSet, watch: &dyn Watch) -> Result<Self> {
        let area = Area::map_large(size)?;
        let colors = palette.sort(&pages(&area), on, watch)?;
        let large = area.in_large_pages();
        Ok(Large {
            area,
            colors,
            large,
        })
    }

    /// How much there is.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.area.size() as u64)
    }

    /// The memory, all of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the whole of the area, which is this value's alone, present and borrowed for as
        // long.
        unsafe { std::slice::from_raw_parts_mut(self.area.base().cast(), self.area.size()) }
    }

    /// The same memory for reading only: from now on no one can write it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn read_only(mut self) -> Result<LargeWindow> {
        self.area
            .protect()
            .map_err(|e| Error::new(format!("cannot take the right to write away: {e}")))?;
        Ok(LargeWindow(self))
    }

    /// Which pages of 4 KiB have one of these colors, ascending.
    pub fn of(&self, colors: &Colors) -> Vec<u32> {
        (0..(self.area.size() / PAGE) as u32)
            .filter(|page| self.colors[*page as usize].is_some_and(|c| colors.contains(c)))
            .collect()
    }
}

/// [`Large`] memory that its holder may read and not write (single-writer partitioning, 001 §5.3):
/// the mapping enforces it.
#[derive(Debug)]
pub struct LargeWindow(Large);

impl LargeWindow {
    /// The memory, all of it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the whole of the area, which is this value's alone, readable, and which nobody
        // can write.
        unsafe { std::slice::from_raw_parts(self.0.area.base().cast(), self.0.area.size()) }
    }

    /// As [`Large::of`].
    pub fn of(&self, colors: &Colors) -> Vec<u32> {
        self.0.of(colors)
    }
}
