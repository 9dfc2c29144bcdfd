//! Making tiles: memory is sorted by color, and pages of one color are put together.

use super::{TILE, TILE_PAGES, Tile};
use crate::colors::Color;
use crate::frame::{FrameNumbers, Page, pages};
use crate::palette::Palette;
use machine::memory::Area;
use machine::threads::on_processor;
use model::watch::Watch;
use model::{Bytes, CpuSet, Error, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, HashSet};

/// Allows this process to open a file for each tile of so much memory, as far as it may.
pub fn allow_files(size: Bytes) {
    let wanted = size.get() / TILE as u64 * 2 + 4096;
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let more = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum.map(|most| most.max(wanted)),
    };
    if setrlimit(Resource::Nofile, more).is_err() {
        let most = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Where that is refused as well, making tiles says so when it comes to that.
        let _ = setrlimit(Resource::Nofile, most);
    }
}

/// Are files left for tiles out of so much memory? Better said before it is sorted.
fn check_files(size: Bytes, open: u64, most: u64) -> Result<()> {
    let left = most.saturating_sub(open);
    let tiles = size.get() / TILE as u64;
    if tiles <= left {
        return Ok(());
    }
    Err(Error::new(format!(
        "{size} are {tiles} tiles, each an open file, and this process may open {left} more"
    ))
    .remedy(format!(
        "raise the number of open files (`ulimit -n`, as root), or ask for at most {}",
        Bytes::new(left * TILE as u64)
    )))
}

/// Files that this process has open, and how many it may have.
fn files() -> (u64, u64) {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    (
        open,
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
    )
}

/// Makes tiles of all colors out of so much memory. Runs on one processor, so that frames freed
/// there come back there.
///
/// What could not be kept together, about one page in twenty and the rest of the last tile of each
/// color, goes back to the system.
///
/// # Errors
/// There is not as much memory; the processor cannot be used; too many files or mappings; the user
/// stopped it.
pub fn make(palette: &Palette, size: Bytes, on: &CpuSet, watch: &dyn Watch) -> Result<Vec<Tile>> {
    on_processor(palette.cpu, "making tiles", || {
        make_here(palette, size, on, watch)
    })
}

/// Makes tiles until each color has as many as are wanted of it; there may be more.
///
/// # Errors
/// As [`complete`].
pub fn make_each(
    palette: &Palette,
    wanted: &BTreeMap<Color, usize>,
    on: &CpuSet,
    watch: &dyn Watch,
) -> Result<Vec<Tile>> {
    let mut tiles = Vec::new();
    complete(&mut tiles, wanted, palette, on, watch)?;
    Ok(tiles)
}

/// Sorts more memory as long as colors have fewer tiles than are wanted. Some come off badly: while
/// frames of a color are freed and allocated again, the system may take them for itself, or a busy
/// processor may mix them with others.
///
/// # Errors
/// As [`make`]; sorting more does not help: the tiles that were made are there nevertheless.
pub fn complete(
    tiles: &mut Vec<Tile>,
    wanted: &BTreeMap<Color, usize>,
    palette: &Palette,
    on: &CpuSet,
    watch: &dyn Watch,
) -> Result<()> {
    // A round that brings the worst color nothing may have been disturbed; several are no accident.
    const IN_VAIN: u32 = 3;
    let (mut sorted, mut in_vain) = (0, 0);
    while let Some((color, least)) = shortage(wanted, tiles) {
        let wanting = || format!("{least} tiles of 64 KiB of color {color} are wanting");
        if in_vain == IN_VAIN {
            return Err(Error::new(format!(
                "{} after {} were sorted for them",
                wanting(),
                Bytes::new(sorted)
            ))
            .remedy("try again when the machine is less busy, or ask for less"));
        }
        if !tiles.is_empty() {
            watch.note(&format!("note: {}: more memory is sorted", wanting()));
        }
        // Twice as much as it takes: pages spread unevenly, and not all can be kept.
        let size = (2 * least as u64 + 6) * TILE as u64 * u64::from(palette.colors());
        allow_files(Bytes::new((tiles.len() * TILE) as u64 + size));
        tiles.extend(make(palette, Bytes::new(size), on, watch)?);
        sorted += size;
        if shortage(wanted, tiles).is_some_and(|(_, still)| still >= least) {
            in_vain += 1;
        }
    }
    Ok(())
}

/// The color that has too few by the most, and by how many.
fn shortage(wanted: &BTreeMap<Color, usize>, tiles: &[Tile]) -> Option<(Color, usize)> {
    let mut has: BTreeMap<Color, usize> = BTreeMap::new();
    for tile in tiles {
        *has.entry(tile.color).or_default() += 1;
    }
    let short = |(color, wanted): (&Color, &usize)| {
        let least = wanted.saturating_sub(has.get(color).copied().unwrap_or(0));
        (least > 0).then_some((*color, least))
    };
    wanted
        .iter()
        .filter_map(short)
        .max_by_key(|(_, least)| *least)
}

fn make_here(palette: &Palette, size: Bytes, on: &CpuSet, watch: &dyn Watch) -> Result<Vec<Tile>> {
    let (open, most) = files();
    // A few more are open for a moment.
    check_files(size, open + 16, most)?;
    let mut area = Area::map(size)?;
    let sorted = palette.sort(&pages(&area), on, watch)?;
    let numbers = FrameNumbers::of_this_process();
    // So that pages can be given back one by one.
    area.unlock();
    let mut by_color: BTreeMap<Color, Vec<usize>> = BTreeMap::new();
    for (page, color) in sorted.iter().enumerate() {
        if let Some(color) = color {
            by_color.entry(*color).or_default().push(page);
        }
    }
    let mut tiles: Vec<Tile> = Vec::new();
    // Kept until the end: frames given back now would be the first to come again.
    let mut aside: Vec<Tile> = Vec::new();
    for (color, own) in by_color {
        if watch.stopped() {
            return Err(Error::new("stopped before all tiles were made"));
        }
        let pages: Vec<Page<'_>> = own.iter().map(|p| Page::of(&area, *p)).collect();
        let frames: Option<HashSet<u64>> = numbers
            .as_ref()
            .map(|numbers| numbers.of(&pages).into_iter().flatten().collect());
        let mut given_up = pages.into_iter();
        while given_up.len() >= TILE_PAGES {
            let mut tile = Tile::empty(color)?;
            if tile.fill_from(&mut given_up, numbers.as_ref().zip(frames.as_ref())) {
                tile.note_frames(numbers.as_ref());
                tiles.push(tile);
            } else {
                aside.push(tile);
            }
        }
    }
    // Asked again by time, as tiles: what was moved meanwhile, or could not be told by its frame,
    // shows here.
    let mut doubtful = doubted(&tiles, 0..tiles.len(), palette, on, watch)?;
    // Once more: a measurement errs now and then.
    doubtful = doubted(&tiles, doubtful, palette, on, watch)?;
    for place in doubtful.into_iter().rev() {
        tiles.swap_remove(place);
    }
    if tiles.is_empty() {
        return Err(none_kept(size));
    }
    Ok(tiles)
}

/// Which of these tiles have a page of another color. A page that measurements leave open is
/// believed.
fn doubted(
    tiles: &[Tile],
    asked: impl IntoIterator<Item = usize>,
    palette: &Palette,
    on: &CpuSet,
    watch: &dyn Watch,
) -> Result<Vec<usize>> {
    let asked: Vec<usize> = asked.into_iter().collect();
    let pages: Vec<Page<'_>> = asked
        .iter()
        .flat_map(|place| tiles[*place].pages())
        .collect();
    let seen = palette.sort(&pages, on, watch)?;
    let other = |(place, colors): &(&usize, &[Option<Color>])| {
        colors
            .iter()
            .flatten()
            .any(|color| *color != tiles[**place].color)
    };
    let doubted = asked.iter().zip(seen.chunks(TILE_PAGES)).filter(other);
    Ok(doubted.map(|(place, _)| *place).collect())
}

/// No tile could be made: why, as far as the system tells.
fn none_kept(size: Bytes) -> Error {
    const FORCED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let e = Error::new(format!(
        "out of {size}, no 64 KiB could be kept together in one color"
    ));
    match std::fs::read_to_string(FORCED) {
        Ok(text) if text.contains("[force]") => e.at(FORCED).remedy(
            "files in memory are forced into huge pages, which have all colors: write `never` or `advise` to this file",
        ),
        _ => e.remedy("give more memory, at least 1 MiB a color, or try again when the machine is less busy"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_said_before_memory_is_sorted() {
        assert!(check_files(Bytes::from_mib(1024), 100, 16484).is_ok());
        let e = check_files(Bytes::from_mib(1400), 20, 20000)
            .unwrap_err()
            .to_string();
        assert!(e.contains("22400 tiles") && e.contains("19980 more"), "{e}");
        assert!(
            e.contains(&Bytes::new(19980 * TILE as u64).to_string()),
            "{e}"
        );
        let (open, most) = files();
        assert!(open > 2 && most > open);
    }

    #[test]
    fn the_color_that_has_too_few_is_named() {
        let tiles: Vec<Tile> = [0, 0, 1].map(|c| Tile::fresh(Color(c)).unwrap()).into();
        let short = |wanted: &[(u16, usize)]| {
            let wanted = wanted.iter().map(|(c, n)| (Color(*c), *n)).collect();
            shortage(&wanted, &tiles).map(|(color, least)| (color.0, least))
        };
        assert_eq!(short(&[(0, 2), (1, 1)]), None);
        assert_eq!(short(&[(0, 3), (1, 4)]), Some((1, 3)));
        assert_eq!(short(&[(7, 1)]), Some((7, 1)));
    }
}
