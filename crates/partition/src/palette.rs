//! The colors of a cache, known: one eviction set a color, and what follows from it.
//!
//! Knowledge is true as long as pages stay where they are. [`Palette::verify`] asks the eviction
//! sets again; a page that was moved by compaction, or a guest's memory that the host moved, shows
//! as a color that no longer drives out its own.

use crate::colors::Color;
use crate::finder::SPARE;
use crate::frame::{FrameNumbers, Page, pages};
use crate::geometry::{Geometry, PAGE};
use crate::probe::{Judge, PageId, Timed, Times};
use crate::sort::sort;
use machine::clock::Clock;
use machine::memory::Area;
use machine::threads::within;
use machine::with_clock;
use model::watch::Watch;
use model::{CpuId, CpuSet, Duration, Error, Result};
use serde::Serialize;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How colors are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// By frame numbers, which time confirmed.
    FrameNumbers,
    /// By timing alone: frame numbers are withheld or do not tell the color.
    Timing,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            How::FrameNumbers => "frame numbers, confirmed by timing",
            How::Timing => "timing",
        })
    }
}

/// The colors of a cache.
#[derive(Debug)]
pub struct Palette {
    /// The cache.
    pub cache: Geometry,
    /// The processor on which they were found.
    pub cpu: CpuId,
    /// The memory that the eviction sets lie in.
    pub(crate) area: Area,
    /// What hits and misses take, in ticks of the clock.
    pub times: Times,
    /// How colors are known.
    pub how: How,
    /// From 0 to 1: with frame numbers, the share of trials that agreed; by timing, the share of
    /// pages of the pool that got one color, the same from two sortings by different pages of the
    /// colors, times how far the number of colors found agrees with the geometry.
    pub confidence: f64,
    /// The pages of the area that have a color, color by color: the first ones are its eviction
    /// set.
    pub(crate) members: Vec<Vec<PageId>>,
    /// Pages of the pool without a color.
    pub unplaced: usize,
    /// How long finding them took.
    pub took: Duration,
}

/// How true knowledge still is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Checked {
    /// Eviction sets that were asked.
    pub asked: usize,
    /// Of these, how many failed once: measurements err.
    pub once: usize,
    /// Colors whose pages no longer drive each other out.
    pub broken: Vec<Color>,
}

/// From which confidence on colors are given to programs.
pub const SURE: f64 = 0.95;

impl Palette {
    /// Are these all colors, known well enough to rely on?
    pub fn is_sure(&self) -> bool {
        self.colors() == self.cache.colors && self.confidence >= SURE
    }

    /// This, where it can be relied on.
    ///
    /// # Errors
    /// It cannot: colors are missing or too many, or pages could not be told apart.
    pub fn sure(self) -> Result<Self> {
        if self.is_sure() {
            return Ok(self);
        }
        Err(Error::new(format!(
            "the colors of the {} could not be told apart for sure: {} of {} were found, with confidence {:.2} where {SURE} is wanted",
            self.cache.name(),
            self.colors(),
            self.cache.colors,
            self.confidence
        ))
        .remedy("look again when the machine is idle; `warmset color find` shows what was found"))
    }

    /// Pages of an eviction set.
    fn eviction_size(&self) -> usize {
        self.cache.ways as usize + SPARE
    }

    /// How many colors were found.
    pub fn colors(&self) -> u16 {
        self.members.len() as u16
    }

    /// Pages of a color that the search left: more than the cache has ways. Empty beyond the last
    /// color.
    pub fn members(&self, color: Color) -> Vec<Page<'_>> {
        self.members
            .get(color.index())
            .map_or_else(Vec::new, |pages| {
                pages
                    .iter()
                    .map(|p| Page::of(&self.area, *p as usize))
                    .collect()
            })
    }

    /// Sorts pages by color, on all of these processors at once; `None` where measurements did not
    /// agree.
    ///
    /// Each processor must have a cache of the same geometry as the one that colors were found on.
    /// They share nothing but the eviction sets, which are only read.
    ///
    /// # Errors
    /// A processor cannot be used; the user stopped it.
    pub fn sort(
        &self,
        targets: &[Page<'_>],
        on: &CpuSet,
        watch: &dyn Watch,
    ) -> Result<Vec<Option<Color>>> {
        watch.begin(
            "sorting by color",
            targets.len() as u64 * u64::from(self.colors()),
        );
        if self.how == How::FrameNumbers {
            let numbers = FrameNumbers::of_this_process()
                .ok_or_else(|| Error::new("the system no longer tells frame numbers"))?;
            return Ok(self.by_frame_number(&numbers, targets));
        }
        // Parts small enough that a processor that is busy otherwise does not hold up the rest.
        const PART: usize = 1024;
        let parts: Vec<&[Page<'_>]> = targets.chunks(PART).collect();
        let next = AtomicUsize::new(0);
        let results = std::thread::scope(|scope| {
            let workers: Result<Vec<_>> = on
                .iter()
                .map(|cpu| {
                    let (parts, next) = (&parts, &next);
                    within(scope, "sorting", move || {
                        machine::realtime::pin(&CpuSet::from_iter([cpu]))?;
                        let mut done = Vec::new();
                        while !watch.stopped() {
                            let which = next.fetch_add(1, Ordering::Relaxed);
                            let Some(part) = parts.get(which) else { break };
                            let colors = with_clock!(clock => self.sort_part(clock, part, watch));
                            done.push((which, colors));
                        }
                        Ok(done)
                    })
                })
                .collect();
            if workers.is_err() {
                // Those that have begun find nothing left to do.
                next.store(parts.len(), Ordering::Relaxed);
            }
            workers?
                .into_iter()
                .map(|w| {
                    w.join().unwrap_or_else(|_| {
                        Err(Error::new("sorting broke off: a defect of this program"))
                    })
                })
                .collect::<Result<Vec<_>>>()
        })?;
        if watch.stopped() {
            return Err(Error::new("stopped before all pages were sorted"));
        }
        let mut sorted: Vec<(usize, Vec<Option<Color>>)> = results.into_iter().flatten().collect();
        sorted.sort_by_key(|(which, _)| *which);
        Ok(sorted.into_iter().flat_map(|(_, colors)| colors).collect())
    }

    fn by_frame_number(&self, numbers: &FrameNumbers, targets: &[Page<'_>]) -> Vec<Option<Color>> {
        let colors = u64::from(self.cache.colors);
        numbers
            .of(targets)
            .into_iter()
            .map(|frame| Some(Color((frame? % colors) as u16)))
            .collect()
    }

    fn sort_part<C: Clock>(
        &self,
        clock: C,
        part: &[Page<'_>],
        watch: &dyn Watch,
    ) -> Vec<Option<Color>> {
        let mut all = pages(&self.area);
        let own = self.area.base() as usize..self.area.base() as usize + self.area.size();
        // A page of the eviction sets keeps its number, so that it is not among those that shall
        // drive it out.
        let asked: Vec<PageId> = part
            .iter()
            .map(|page| {
                if own.contains(&page.address()) {
                    return ((page.address() - own.start) / PAGE) as PageId;
                }
                all.push(*page);
                (all.len() - 1) as PageId
            })
            .collect();
        let mut judge = Timed::new(clock, all, self.times, &self.cache);
        let size = self.eviction_size();
        sort(&mut judge, &asked, &self.members, size, |pairs| {
            watch.advance(pairs);
            !watch.stopped()
        })
    }

    /// Calls color `c` by `names[c]` from now on. For names that are each given once, one for each
    /// color.
    pub(crate) fn renumber(&mut self, names: &[Color]) {
        let mut members = std::mem::take(&mut self.members);
        let mut renamed = vec![Vec::new(); members.len()];
        for (own, name) in members.iter_mut().zip(names) {
            if let Some(place) = renamed.get_mut(name.index()) {
                *place = std::mem::take(own);
            }
        }
        self.members = renamed;
    }

    /// Does each color still drive out its own? Runs on the calling thread, which should stay on
    /// one processor.
    ///
    /// Several pages of a color are asked, not one: a single page that was moved breaks no set.
    /// Where most of them say that they are not driven out, the color is asked again and again, for
    /// a disturbance looks the same once.
    pub fn verify(&self) -> Checked {
        const ROUNDS: usize = 3;
        let mut broken: Vec<Color> = (0..self.colors()).map(Color).collect();
        let mut once = 0;
        for round in 0..ROUNDS {
            with_clock!(clock => {
                let mut judge = Timed::new(clock, pages(&self.area), self.times, &self.cache);
                broken.retain(|color| !self.drives_out(*color, &mut judge));
            });
            if round == 0 {
                once = broken.len();
            }
            if broken.is_empty() {
                break;
            }
        }
        Checked {
            asked: self.members.len(),
            once,
            broken,
        }
    }

    /// Are most of some pages of a color driven out by others of it?
    fn drives_out(&self, color: Color, judge: &mut dyn Judge) -> bool {
        const ASKED: usize = 5;
        let Some(members) = self.members.get(color.index()) else {
            return false;
        };
        let size = self.eviction_size();
        let out = (0..ASKED).filter(|turn| {
            // Each time another page, and the set without it.
            let mut set: Vec<PageId> = members
                .iter()
                .copied()
                .cycle()
                .skip(*turn)
                .take(members.len())
                .collect();
            set.truncate(size + 1);
            match set.split_first() {
                // What was driven out looks as if it were still there now and then.
                Some((victim, rivals)) => {
                    (0..2).any(|_| judge.evicted(&[*victim], rivals).first() == Some(&true))
                }
                None => false,
            }
        });
        2 * out.count() > ASKED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Lines;
    use crate::probe::fake::Fake;
    use model::Bytes;

    /// Fourteen pages of one color, in a cache of eight ways.
    fn palette() -> Palette {
        Palette {
            cache: Geometry {
                level: 2,
                size: Bytes::from_kib(32),
                ways: 8,
                colors: 1,
                sliced: false,
                shared_by: CpuSet::from_iter([CpuId(0)]),
            },
            cpu: CpuId(0),
            area: Area::map(Bytes::from_kib(56)).unwrap(),
            times: Times {
                lines: Lines::Whole,
                hit: 100,
                miss: 300,
            },
            how: How::Timing,
            confidence: 1.0,
            members: vec![(0..14).collect()],
            unplaced: 0,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn a_moved_page_breaks_no_color_and_many_do() {
        let palette = palette();
        let drives_out = |moved: &[usize], seed| {
            let mut judge = Fake::new(14, 1, 8, 50, seed);
            moved.iter().for_each(|page| judge.colors[*page] = 1);
            palette.drives_out(Color(0), &mut judge)
        };
        for seed in 0..20 {
            assert!(drives_out(&[], seed));
            for page in 0..14 {
                assert!(drives_out(&[page], seed), "page {page}");
            }
            assert!(!drives_out(&[0, 2, 4, 6, 8, 10, 12], seed));
        }
        assert!(!palette.drives_out(Color(1), &mut Fake::new(14, 1, 8, 0, 1)));
    }
}
