//! The colors of a cache, known: one eviction set a color, and what follows from it.
//!
//! Knowledge is true as long as pages stay where they are. [`Palette::verify`] asks the eviction sets again; a page that
//! was moved by compaction, or a guest's memory that the host moved, shows as a color that no longer drives out its own.

use crate::colors::Color;
use crate::finder::SPARE;
use crate::frame::{FrameNumbers, Page, pages};
use crate::geometry::Geometry;
use crate::probe::{Judge, PageId, Timed, Times};
use crate::sort::sort;
use machine::clock::Clock;
use machine::memory::Area;
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
    /// From 0 to 1: with frame numbers, the share of trials that agreed; by timing, the share of pages of the pool that
    /// got one color, the same from two sortings by different pages of the colors, times how far the number of colors found
    /// agrees with the geometry.
    pub confidence: f64,
    /// The pages of the area that have a color, color by color: the first ones are its eviction set.
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

    /// Pages of a color that the search left: more than the cache has ways. Empty beyond the last color.
    pub fn members(&self, color: Color) -> Vec<Page<'_>> {
        self.members.get(color.index()).map_or_else(Vec::new, |pages| {
            pages.iter().map(|p| Page::of(&self.area, *p as usize)).collect()
        })
    }

    /// Sorts pages by color, on all of these processors at once; `None` where measurements did not agree.
    ///
    /// Each processor must have a cache of the same geometry as the one that colors were found on. They share nothing
    /// but the eviction sets, which are only read.
    ///
    /// # Errors
    /// A processor cannot be used; the user stopped it.
    pub fn sort(&self, targets: &[Page<'_>], on: &CpuSet, watch: &dyn Watch) -> Result<Vec<Option<Color>>> {
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
            let workers: Vec<_> = on
                .iter()
                .map(|cpu| {
                    let (parts, next) = (&parts, &next);
                    scope.spawn(move || {
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
            workers
                .into_iter()
                .map(|w| {
                    w.join()
                        .unwrap_or_else(|_| Err(Error::new("sorting broke off: a defect of this program")))
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

    fn sort_part<C: Clock>(&self, clock: C, part: &[Page<'_>], watch: &dyn Watch) -> Vec<Option<Color>> {
        let mut all = pages(&self.area);
        let first = all.len() as PageId;
        all.extend_from_slice(part);
        let asked: Vec<PageId> = (first..all.len() as PageId).collect();
        let mut judge = Timed::new(clock, all, self.times, &self.cache);
        let size = self.eviction_size();
        sort(&mut judge, &asked, &self.members, size, |pairs| {
            watch.advance(pairs);
            !watch.stopped()
        })
    }

    /// Calls color `c` by `names[c]` from now on. For names that are each given once, one for each color.
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

    /// Does each color still drive out its own? Runs on the calling thread, which should stay on one processor.
    pub fn verify(&self) -> Checked {
        let broken = with_clock!(clock => {
            let mut judge = Timed::new(clock, pages(&self.area), self.times, &self.cache);
            let mut broken = Vec::new();
            for (color, pages) in self.members.iter().enumerate() {
                let set = &pages[..pages.len().min(self.eviction_size() + 1)];
                // Most of five: what was driven out looks as if it were still there now and then.
                let drives_out = |judge: &mut Timed<'_, _>| {
                    let (victim, rivals) = set.split_first()?;
                    judge.evicted(&[*victim], rivals).first().copied()
                };
                let times = (0..5).filter(|_| drives_out(&mut judge) == Some(true)).count();
                if times < 3 {
                    broken.push(Color(color as u16));
                }
            }
            broken
        });
        Checked {
            asked: self.members.len(),
            broken,
        }
    }
}
