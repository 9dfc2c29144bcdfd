//! Gives each page of a region the color that is wanted, its contents kept (001 §5.1, the
//! application's interface; §6, recoloring).
//!
//! A page is copied to a page of the color, which then takes its place: `mremap` replaces a mapping
//! in one step, so that any other thread sees the old page or the new one. What another thread
//! writes between copy and step would be lost: the region must rest meanwhile.

use crate::client::Connection;
use crate::colors::Color;
use crate::geometry::PAGE;
use crate::holder::Access;
use crate::ledger::TileId;
use crate::memory::{Received, Reserved};
use crate::tile::TILE_PAGES;
use model::{Error, Result};
use std::collections::BTreeMap;
use sys::memory::{Mapping, Use};

/// A region whose pages have the colors that were asked for.
#[derive(Debug)]
#[must_use = "its tiles are given back with `Connection::uncolor`, or when the connection ends"]
pub struct Recolored {
    base: *mut u8,
    colors: Vec<Color>,
    tiles: Vec<TileId>,
}

// SAFETY: an address and what is known of it; whoever uses the region decides from which thread.
unsafe impl Send for Recolored {}

impl Recolored {
    /// Its first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }
    /// The color of each page.
    pub fn colors(&self) -> &[Color] {
        &self.colors
    }
}

/// Neighboring pages of one color that lie together in a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    /// The first page of the region.
    at: usize,
    pages: usize,
    /// Which tile of the color, and which page of it.
    tile: usize,
    first: usize,
    color: Color,
}

/// Where each page of a region comes to lie: pages of a color in the order of its tiles.
fn runs(colors: &[Color]) -> Vec<Run> {
    let mut used: BTreeMap<Color, usize> = BTreeMap::new();
    let mut runs: Vec<Run> = Vec::new();
    for (at, color) in colors.iter().enumerate() {
        let next = used.entry(*color).or_default();
        let (tile, first) = (*next / TILE_PAGES, *next % TILE_PAGES);
        *next += 1;
        match runs.last_mut() {
            Some(run) if run.color == *color && run.tile == tile => run.pages += 1,
            _ => runs.push(Run {
                at,
                pages: 1,
                tile,
                first,
                color: *color,
            }),
        }
    }
    runs
}

fn failed(doing: &str, e: &std::io::Error) -> Error {
    Error::new(format!("cannot {doing}: {e}")).remedy(
        "raise the number of mappings: `sysctl vm.max_map_count`, 1 for each run of pages of one color",
    )
}

impl Connection {
    /// Gives the pages of a region these colors, one each, in their order. Takes as many tiles as
    /// the colors need; all that the region holds stays, at its addresses. A child that is made by
    /// `fork` shares the pages from then on.
    ///
    /// # Errors
    /// The address is not that of a page; a color is not granted or has not as much memory: nothing
    /// is changed then. No more mappings can be had: pages up to the one named have their color,
    /// and all have their contents.
    ///
    /// # Safety
    /// The region is mapped, readable and writable, and private to this process; nobody writes to
    /// it before this returns; this thread's stack is not part of it.
    pub unsafe fn recolor(&mut self, base: *mut u8, colors: &[Color]) -> Result<Recolored> {
        if !(base as usize).is_multiple_of(PAGE) || colors.is_empty() {
            return Err(
                Error::new(format!("{base:?} with {} pages is no region", colors.len()))
                    .remedy("give the address of a page, and a color for each page"),
            );
        }
        let runs = runs(colors);
        let mut wanted: BTreeMap<Color, usize> = BTreeMap::new();
        for run in &runs {
            let tiles = wanted.entry(run.color).or_default();
            *tiles = (*tiles).max(run.tile + 1);
        }
        let taken = self.take_all(&wanted)?;
        let tiles: Vec<TileId> = taken.values().flatten().map(|(id, _)| *id).collect();
        // SAFETY: as the caller promises.
        let done = unsafe { put(base, colors.len(), &runs, &taken) };
        drop(taken);
        match done {
            Ok(()) => Ok(Recolored {
                base,
                colors: colors.to_vec(),
                tiles,
            }),
            Err((0, e)) => {
                self.return_tiles(&tiles)?;
                Err(e)
            }
            // Tiles that are in use now stay ours until the connection ends.
            Err((_, e)) => Err(e),
        }
    }

    /// Gives the pages of a region back and puts ordinary ones in their place; what it holds stays.
    ///
    /// # Errors
    /// There is no memory for ordinary pages; the server is gone: the region stays as it is then.
    ///
    /// # Safety
    /// As [`Connection::recolor`]; the region is still mapped as that left it.
    pub unsafe fn uncolor(&mut self, region: Recolored) -> Result<()> {
        let size = region.colors.len() * PAGE;
        let mut fresh =
            Mapping::private(size, Use::Write).map_err(|e| failed("map ordinary memory", &e))?;
        // SAFETY: both are as large, and nobody writes to the region, as the caller promises.
        unsafe {
            std::ptr::copy_nonoverlapping(region.base, fresh.base(), size);
            fresh.move_front(size, region.base)
        }
        .map_err(|e| failed("put ordinary memory in place", &e))?;
        self.return_tiles(&region.tiles)
    }

    /// Takes tiles of several colors, all or none.
    fn take_all(
        &mut self,
        wanted: &BTreeMap<Color, usize>,
    ) -> Result<BTreeMap<Color, Vec<Received>>> {
        let mut taken = BTreeMap::new();
        for (color, tiles) in wanted {
            match self.take(*color, *tiles, Access::Full, None) {
                Ok((own, _)) => {
                    taken.insert(*color, own);
                }
                Err(e) => {
                    let tiles: Vec<TileId> = taken.values().flatten().map(|(id, _)| *id).collect();
                    drop(taken);
                    self.return_tiles(&tiles)?;
                    return Err(e);
                }
            }
        }
        Ok(taken)
    }
}

/// Copies all pages aside and puts the copies in place. On an error: with the number of pages that
/// are in place.
///
/// # Safety
/// As [`Connection::recolor`].
unsafe fn put(
    base: *mut u8,
    pages: usize,
    runs: &[Run],
    tiles: &BTreeMap<Color, Vec<Received>>,
) -> std::result::Result<(), (usize, Error)> {
    let none = |e| (0, e);
    let mut aside = Reserved::new(pages * PAGE).map_err(none)?;
    for run in runs {
        let Some((_, file)) = tiles.get(&run.color).and_then(|own| own.get(run.tile)) else {
            return Err(none(Error::new(
                "the memory server gave less than was asked for",
            )));
        };
        aside
            .put(run.at * PAGE, run.pages, file, run.first, Access::Full)
            .map_err(none)?;
    }
    let mut aside = aside.keep();
    // SAFETY: all of the copy is mapped now, and the region is, as the caller promises; they are
    // apart.
    unsafe { std::ptr::copy_nonoverlapping(base, aside.base(), pages * PAGE) };
    for run in runs {
        // Runs follow each other without gaps: what is left of the copy begins with this one.
        // SAFETY: the region may be replaced, as the caller promises.
        unsafe { aside.move_front(run.pages * PAGE, base.add(run.at * PAGE)) }.map_err(|e| {
            let what = format!("put page {} of {pages} in place", run.at);
            (run.at, failed(&what, &e))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_color_lie_together_in_its_tiles() {
        let colors: Vec<Color> = [5, 5, 1, 5].map(Color).to_vec();
        let seen: Vec<_> = runs(&colors)
            .iter()
            .map(|r| (r.at, r.pages, r.color.0, r.tile, r.first))
            .collect();
        assert_eq!(seen, [(0, 2, 5, 0, 0), (2, 1, 1, 0, 0), (3, 1, 5, 0, 2)]);
        let many = vec![Color(0); TILE_PAGES + 3];
        let seen: Vec<_> = runs(&many)
            .iter()
            .map(|r| (r.at, r.pages, r.tile, r.first))
            .collect();
        assert_eq!(seen, [(0, TILE_PAGES, 0, 0), (TILE_PAGES, 3, 1, 0)]);
    }
}
