//! While a memory server serves, it asks again whether what it knows is still true: eviction sets
//! still drive out their own, tiles still have their frames and their colors.
//!
//! Compaction moves pages of the system, which shows in frame numbers; a host moves memory of its
//! guest, which shows in time alone. So all frame numbers are looked at where the system tells
//! them, and some tiles in turn are asked by time. What is found to have another color gets it, or
//! is struck off the books; what is held meanwhile is named to the operator.

use crate::colors::Color;
use crate::geometry::PAGE;
use crate::ledger::{Blame, TileId};
use crate::palette::{How, Palette};
use crate::server::{Books, Core};
use crate::state::numbers;
use crate::tile::{Mapping, TILE_PAGES, Tile};
use machine::threads::on_processor;
use model::watch::Watch;
use model::{CpuSet, Duration, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Tiles that are asked by time in a round, and at once.
const SAMPLE: usize = 4;
/// Tiles of each color that tell which color is which after colors were found anew.
const WITNESSES: usize = 3;
/// Pages of a tile that must be placed for it to be judged.
const ENOUGH: usize = TILE_PAGES / 2;

/// Finds colors anew.
pub type Find = Box<dyn Fn() -> Result<Palette> + Send + Sync>;

/// What a server needs to keep its knowledge true.
pub struct Upkeep {
    palette: Mutex<Palette>,
    on: CpuSet,
    every: Duration,
    find: Find,
}

impl std::fmt::Debug for Upkeep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upkeep")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

/// What a look found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Eviction sets that no longer drive out their own; colors were found anew then.
    pub broken: Vec<Color>,
    /// Tiles that have another color than before, and have it in the books now.
    pub recolored: Vec<TileId>,
    /// Tiles that have lost their color and were struck off.
    pub struck: Vec<TileId>,
    /// Tiles that have lost their color while a client holds them.
    pub untrue: Vec<TileId>,
}

impl Upkeep {
    /// With what is known, asked again this often (zero: never), on processors whose caches are
    /// alike.
    pub fn new(palette: Palette, on: CpuSet, every: Duration, find: Find) -> Self {
        Upkeep {
            palette: Mutex::new(palette),
            on,
            every,
            find,
        }
    }

    /// Have these tiles their color, all pages that can be placed of them?
    ///
    /// # Errors
    /// A processor cannot be used; the user stopped it.
    pub(crate) fn are_true<'a>(
        &self,
        tiles: impl Iterator<Item = &'a Tile>,
        watch: &dyn Watch,
    ) -> Result<Vec<bool>> {
        let tiles: Vec<&Tile> = tiles.collect();
        let pages: Vec<_> = tiles.iter().flat_map(|tile| tile.pages()).collect();
        let seen = self.palette().sort(&pages, &self.on, watch)?;
        let is_true =
            |(tile, seen): (&&Tile, &[Option<Color>])| verdict(seen) == Verdict::Has(tile.color);
        Ok(tiles
            .iter()
            .zip(seen.chunks(TILE_PAGES))
            .map(is_true)
            .collect())
    }

    fn palette(&self) -> std::sync::MutexGuard<'_, Palette> {
        self.palette.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What asking the pages of a tile says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It has this color.
    Has(Color),
    /// Its pages have several.
    Mixed,
    /// Too few pages could be placed.
    Open,
}

fn verdict(pages: &[Option<Color>]) -> Verdict {
    let colors: BTreeSet<Color> = pages.iter().flatten().copied().collect();
    match (pages.iter().flatten().count(), colors.first()) {
        (placed, _) if placed < ENOUGH => Verdict::Open,
        (_, Some(color)) if colors.len() == 1 => Verdict::Has(*color),
        _ => Verdict::Mixed,
    }
}

impl Core {
    /// Looks again and again until the watch says stop.
    pub(crate) fn stay_true(&self, upkeep: &Upkeep, watch: &dyn Watch) {
        const TICK: Duration = Duration::from_millis(50);
        let mut next = 0;
        let mut failed = false;
        loop {
            let mut waited = Duration::ZERO;
            while waited < upkeep.every || upkeep.every.is_zero() {
                if watch.stopped() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
                waited = waited.saturating_add(TICK);
                let proven = self.prove(upkeep, &Quiet(watch));
                if let Err(e) = &proven
                    && !failed
                    && !watch.stopped()
                {
                    watch.note(&format!(
                        "note: the colors of what came back cannot be asked, it is not handed out: {e}"
                    ));
                }
                failed = proven.is_err();
            }
            match self.look_again(upkeep, &mut next, &Quiet(watch)) {
                Ok(found) => {
                    if found != Found::default() {
                        self.save(watch);
                    }
                }
                Err(_) if watch.stopped() => return,
                Err(e) => watch.note(&format!(
                    "note: what is known could not be asked again: {e}"
                )),
            }
        }
    }

    /// Looks once whether what is known is still true, and mends what is not. `next`: the tile that
    /// is asked by time next.
    ///
    /// # Errors
    /// Colors that had to be found anew are not found; a processor cannot be used.
    pub(crate) fn look_again(
        &self,
        upkeep: &Upkeep,
        next: &mut TileId,
        watch: &dyn Watch,
    ) -> Result<Found> {
        let mut found = Found {
            broken: self.broken_sets(upkeep)?,
            ..Found::default()
        };
        let mut asked: Vec<TileId>;
        if found.broken.is_empty() {
            asked = self.moved();
            if upkeep.palette().how == How::Timing {
                let ids: Vec<TileId> = self.books().tiles.keys().copied().collect();
                let from = ids.partition_point(|id| id < next);
                asked.extend(ids.iter().cycle().skip(from).take(SAMPLE.min(ids.len())));
                *next = ids
                    .get((from + SAMPLE) % ids.len().max(1))
                    .copied()
                    .unwrap_or(0);
            }
        } else {
            watch.note(&format!(
                "note: pages of colors {} no longer drive each other out: memory was moved; colors are found anew",
                found.broken.iter().copied().collect::<crate::Colors>()
            ));
            self.find_anew(upkeep, watch)?;
            asked = self.books().tiles.keys().copied().collect();
        }
        asked.sort_unstable();
        asked.dedup();
        for part in asked.chunks(SAMPLE) {
            let suspects = self.judge(upkeep, part, watch)?;
            // A second time: a measurement errs now and then.
            for (id, first) in suspects {
                let again = self.judge(upkeep, &[id], watch)?;
                if again.first() == Some(&(id, first)) {
                    self.mend(id, first, &mut found, watch);
                }
            }
        }
        Ok(found)
    }

    /// Colors whose eviction sets fail.
    fn broken_sets(&self, upkeep: &Upkeep) -> Result<Vec<Color>> {
        let palette = upkeep.palette();
        on_processor(palette.cpu, "asking for colors", || {
            Ok(palette.verify().broken)
        })
    }

    /// Tiles whose frames are others than they were.
    fn moved(&self) -> Vec<TileId> {
        let books = self.books();
        let numbers = self.numbers.as_ref();
        let moved = books
            .tiles
            .iter()
            .filter(|(_, tile)| !tile.untrue && !tile.is_intact(numbers));
        moved.map(|(id, _)| *id).collect()
    }

    /// Finds colors anew and calls them what they were called before, by tiles that still have one
    /// color.
    fn find_anew(&self, upkeep: &Upkeep, watch: &dyn Watch) -> Result<()> {
        let mut palette = (upkeep.find)()?;
        if palette.how == How::Timing {
            let mut seen = Vec::new();
            let mut asked = vec![0; usize::from(self.colors)];
            let all: Vec<(TileId, Color)> = self
                .books()
                .tiles
                .iter()
                .map(|(id, t)| (*id, t.color))
                .collect();
            for (id, color) in all {
                if asked.get(color.index()).is_none_or(|n| *n >= WITNESSES) {
                    continue;
                }
                asked[color.index()] += 1;
                let mapping = self.books().tiles.get_mut(&id).map(Tile::mapping);
                if let Some(mapping) = mapping {
                    let now = palette.sort(&mapping.pages(), &upkeep.on, watch)?;
                    seen.extend(now.into_iter().flatten().map(|now| (color, now)));
                }
            }
            palette.renumber(&numbers(seen, palette.colors()));
        }
        *upkeep.palette() = palette;
        Ok(())
    }

    /// Tiles that have another color than the books say, or several.
    fn judge(
        &self,
        upkeep: &Upkeep,
        ids: &[TileId],
        watch: &dyn Watch,
    ) -> Result<Vec<(TileId, Verdict)>> {
        let mut suspects = Vec::new();
        let known: Vec<(TileId, Arc<Mapping>)> = {
            let mut books = self.books();
            let mapping = |id: &TileId| Some((*id, books.tiles.get_mut(id)?.mapping()));
            ids.iter().filter_map(mapping).collect()
        };
        let pages: Vec<_> = known
            .iter()
            .flat_map(|(_, mapping)| mapping.pages())
            .collect();
        if pages.is_empty() {
            return Ok(suspects);
        }
        // Clients are served meanwhile.
        let colors = upkeep.palette().sort(&pages, &upkeep.on, watch)?;
        let mut books = self.books();
        for ((id, _), pages) in known.iter().zip(colors.chunks(TILE_PAGES)) {
            let Some(tile) = books.tiles.get_mut(id) else {
                continue;
            };
            match verdict(pages) {
                Verdict::Has(color) if color == tile.color => {
                    tile.note_frames(self.numbers.as_ref())
                }
                Verdict::Open => {}
                other if tile.untrue && other == Verdict::Mixed => {}
                other => suspects.push((*id, other)),
            }
        }
        Ok(suspects)
    }

    fn mend(&self, id: TileId, seen: Verdict, found: &mut Found, watch: &dyn Watch) {
        let mut books = self.books();
        let Books { ledger, tiles, .. } = &mut *books;
        let Some(tile) = tiles.get_mut(&id) else {
            return;
        };
        let holder = ledger.holder_of(id);
        let of = holder.map_or_else(String::new, |peer| {
            format!(", which process {} holds,", peer.pid)
        });
        match (seen, holder) {
            (Verdict::Has(color), _) => {
                watch.note(&format!(
                    "note: tile {id}{of} was moved from color {} to color {color}",
                    tile.color
                ));
                tile.color = color;
                tile.untrue = holder.is_some();
                tile.note_frames(self.numbers.as_ref());
                ledger.recolor(id, color);
                found.recolored.push(id);
            }
            (_, Some(_)) => {
                watch.note(&format!(
                    "note: tile {id}{of} was moved and has pages of several colors: give it back and take another"
                ));
                tile.untrue = true;
                ledger.mark_untrue(id);
                found.untrue.push(id);
            }
            (_, None) => {
                watch.note(&format!(
                    "note: tile {id} of color {} was moved and has pages of several colors: {} KiB go back to the system",
                    tile.color,
                    TILE_PAGES * PAGE / 1024
                ));
                ledger.strike(id, Blame::None);
                tiles.remove(&id);
                found.struck.push(id);
            }
        }
    }
}

/// Says what is to be said, and shows no progress: nobody asked for it.
struct Quiet<'a>(&'a dyn Watch);

impl Watch for Quiet<'_> {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, text: &str) {
        self.0.note(text);
    }
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_has_a_color_when_enough_of_its_pages_agree() {
        let pages = |has: usize, other: usize| {
            let mut pages = vec![Some(Color(3)); has];
            pages.extend(vec![Some(Color(4)); other]);
            pages.resize(TILE_PAGES, None);
            pages
        };
        assert_eq!(verdict(&pages(16, 0)), Verdict::Has(Color(3)));
        assert_eq!(verdict(&pages(9, 0)), Verdict::Has(Color(3)));
        assert_eq!(verdict(&pages(7, 0)), Verdict::Open);
        assert_eq!(verdict(&pages(15, 1)), Verdict::Mixed);
    }
}
