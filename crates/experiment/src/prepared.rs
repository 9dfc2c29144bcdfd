//! What experiments stand on: memory of chosen colors, the colors of the task's own code and stack,
//! and what the flooder writes (001 §5.1).
//!
//! The flooder reads and writes all of the cache, and in the task's colors so much that the caches
//! above lose the task's data, too. Kept out of the task's colors, it writes as much memory of
//! other colors: floods are equally long, since time alone empties a cache where a processor is
//! shared with what a hypervisor does not show. It uses large pages, of which it visits the parts
//! of the colors that it may, so that translations of addresses stay; what losing those costs is
//! measured on its own.

use machine::clock::Clock;
use model::watch::Watch;
use model::{Bytes, CpuSet, Error, Result};
use partition::frame::Page;
use partition::geometry::PAGE;
use partition::{Colors, Large, LargeWindow, Palette, Pool, View, probe};
use serde::Serialize;

/// The largest cache that a flood is made for.
const LARGEST: u64 = 64 << 20;

/// Colors and memory of them.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// The colors.
    pub palette: &'a Palette,
    /// Memory sorted by them.
    pub pool: Pool,
    /// What floods: one and a half times the largest cache.
    pub flood: Large,
    /// As much that can only be read (001 §5.3), where it was asked for.
    pub readable: Option<LargeWindow>,
}

impl<'a> Prepared<'a> {
    /// Eight times the cache in small pages for tasks, and one and a half times `largest` for the
    /// flood, and as much to read where it is asked for; sorted on these processors.
    ///
    /// # Errors
    /// There is not as much memory; sorting fails as [`Palette::sort`] does.
    pub fn prepare(
        palette: &'a Palette,
        largest: Bytes,
        readable: bool,
        on: &CpuSet,
        watch: &dyn Watch,
    ) -> Result<Self> {
        let size = Bytes::new(palette.cache.size.get().saturating_mul(8));
        let flood = Bytes::new(largest.get().min(LARGEST) / 2 * 3);
        Ok(Prepared {
            palette,
            pool: Pool::make(palette, size, on, watch)?,
            flood: Large::make(palette, flood, on, watch)?,
            readable: match readable {
                true => Some(Large::make(palette, flood, on, watch)?.read_only()?),
                false => None,
            },
        })
    }

    /// The pages that flood all colors but the sentinel's: of `own` colors so much that caches
    /// above lose them, too; of each other color as many as the cache has ways.
    pub fn everywhere(&self, own: &Colors, sentinel: &Colors) -> Vec<u32> {
        let mut pages = self.flood.of(own);
        pages.truncate(pages.len() / 2);
        let ways = self.palette.cache.ways as usize;
        for color in self.others(&own.union(sentinel)).iter() {
            pages.extend(
                self.flood
                    .of(&Colors::from_iter([color]))
                    .into_iter()
                    .take(ways),
            );
        }
        pages
    }

    /// For each of these pages of the flood: a page that can only be read, of the same color, where
    /// that is the task's.
    ///
    /// # Errors
    /// There are fewer of a color than the flood has.
    pub fn read_instead(
        &self,
        pages: &[u32],
        own: &Colors,
        readable: &LargeWindow,
    ) -> Result<Vec<Option<u32>>> {
        let mut left: Vec<(Vec<u32>, std::vec::IntoIter<u32>)> = own
            .iter()
            .map(|color| {
                let color = Colors::from_iter([color]);
                (self.flood.of(&color), readable.of(&color).into_iter())
            })
            .collect();
        let instead = pages.iter().map(|page| {
            let of_color = left
                .iter_mut()
                .find(|(own, _)| own.binary_search(page).is_ok());
            let Some((_, rivals)) = of_color else {
                return Ok(None);
            };
            let too_few = || {
                Error::new(
                    "the memory that can only be read has too few pages of the task's colors",
                )
                .remedy("run it again: it will have others")
            };
            rivals.next().map(Some).ok_or_else(too_few)
        });
        instead.collect()
    }

    /// As many pages, none of them of the colors that are kept free.
    pub fn beside(&self, own: &Colors, sentinel: &Colors, kept: &Colors) -> Vec<u32> {
        let number = self.everywhere(own, sentinel).len();
        let mut pages = self.flood.of(&self.others(&kept.union(sentinel)));
        pages.truncate(number);
        pages
    }

    /// So many colors for a task's data, none of them of these, which are those of its code and
    /// stack.
    ///
    /// # Errors
    /// There are fewer.
    pub fn first_beside(&self, kept: &Colors, number: u16) -> Result<Colors> {
        let others = self.others(kept);
        match usize::from(number) <= others.len() {
            true => Ok(others.iter().take(number.into()).collect()),
            false => Err(Error::new(format!(
                "code and stack leave {} colors for the task's data, which is to have {number}",
                others.len()
            ))
            .remedy("give it fewer")),
        }
    }

    /// All colors but these.
    pub fn others(&self, own: &Colors) -> Colors {
        Colors::first(self.palette.colors()).difference(own)
    }

    /// The colors of pages that are there anyway; those that measurements leave open are left out.
    ///
    /// # Errors
    /// As [`Palette::sort`].
    pub fn colors_of(&self, pages: &[Page<'_>], watch: &dyn Watch) -> Result<Colors> {
        let on = CpuSet::from_iter([self.palette.cpu]);
        Ok(self
            .palette
            .sort(pages, &on, watch)?
            .into_iter()
            .flatten()
            .collect())
    }
}

/// The pages of code of functions: where each begins, and the next page, should it reach there.
pub fn code(functions: &[usize]) -> Vec<Page<'static>> {
    let mut pages: Vec<usize> = functions.iter().flat_map(|f| [*f, f + PAGE / 4]).collect();
    for page in &mut pages {
        *page -= *page % PAGE;
    }
    pages.sort_unstable();
    pages.dedup();
    pages.into_iter().filter_map(Page::of_code).collect()
}

/// One activation of a task, as it was measured: what the raw samples are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// The problem size, in the units of the experiment.
    pub size: usize,
    /// The scenario, by its place in the experiment's list.
    pub scenario: usize,
    /// The run, from 0.
    pub run: usize,
    /// How long it took.
    pub ns: f64,
    /// The longest step of the flood before it, in nanoseconds.
    pub step_ns: f64,
    /// How long reading the sentinel took after it, in nanoseconds.
    pub sentinel_ns: f64,
    /// Was it interrupted? Then it does not count.
    pub interrupted: bool,
    /// Did the machine run slower just before or just after? Then it does not count either.
    pub disturbed: bool,
    /// Had somebody else the processor for a moment during the flood? The same.
    pub held: bool,
    /// Did the sentinel lose lines? The same.
    pub emptied: bool,
}

impl Sample {
    /// Does it count?
    pub fn counts(&self) -> bool {
        !self.interrupted && !self.disturbed && !self.held && !self.emptied
    }
}

/// Memory in colors of its own, which nothing of ours touches while a flood goes on. Where it lost
/// lines, something has emptied the cache that no color keeps off: a neighbor on the same core that
/// a hypervisor does not show, or the kernel.
#[derive(Debug)]
pub struct Sentinel {
    view: View,
}

impl Sentinel {
    /// Over these pages.
    pub fn new(view: View) -> Self {
        Sentinel { view }
    }

    /// Brings it into the cache.
    pub fn read(&mut self) {
        for page in self.view.bytes().chunks_exact(PAGE) {
            probe::read(Page::under(page));
        }
    }

    /// How long reading it takes, line after line, in ticks.
    pub fn time<C: Clock>(&mut self, clock: C) -> u64 {
        let pages = self.view.bytes().chunks_exact(PAGE);
        pages
            .map(|page| probe::time(clock, Page::under(page)))
            .sum()
    }
}

/// So many times what one in four takes at most, and no less than two steps of a clock more: how
/// long something takes where nothing disturbs it.
pub fn calm(times: &[u64], factor: f64, step: u64) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let typical = sorted.get(sorted.len() / 4).copied().unwrap_or(0);
    ((typical as f64 * factor) as u64).max(typical + 2 * step)
}

/// The middle value; the mean of both middle ones of an even number; 0 of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calm_is_near_to_the_faster_ones() {
        assert_eq!(
            calm(&[100, 900, 100, 100, 900, 900, 100, 900], 1.05, 1),
            105
        );
        assert_eq!(calm(&[10, 10, 10, 10], 1.05, 26), 62, "a clock that steps");
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
