//! Finding all colors of a cache: by frame numbers where they are true, by timing where they are
//! not.
//!
//! Frame numbers are tried first and believed only when time confirms them: pages of which they say
//! that they compete must drive each other out, others must not ([`Palette::confidence`] is the
//! share of trials that agreed). Where they do not, as in a virtual machine whose host backs it
//! page by page, colors are found by group testing ([`crate::evict`]).

use crate::evict::evicts;
use crate::frame::{FrameNumbers, Page, pages};
use crate::geometry::{Geometry, PAGE, check_page_size};
use crate::palette::{How, Palette};
use crate::probe::{Judge, Lines, PageId, Timed, calibrate};
use machine::clock::{Clock, Monotonic};
use machine::memory::Area;
use machine::realtime::Priority;
use machine::threads::on_processor;
use model::watch::Watch;
use model::{Bytes, CpuId, Error, Platform, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cell::Cell;
use std::time::{Duration, Instant};

mod timing;
use timing::{Found, Search, by_timing, stop_if_asked};

/// The largest cache that is searched: above it, a pool would take too much memory and time.
const LARGEST: u64 = 64 << 20;
/// Pages of an eviction set beyond the ways: replacement is not strictly by age.
pub const SPARE: usize = 2;
/// Pages of a pool in which every color has enough of them.
///
/// Which pages the system gives is chance: with `x` of a color on average, nearly every color has
/// at least `x - 4 √x` (Poisson), which must reach the ways, the spare pages and a victim.
fn pool_pages(cache: &Geometry) -> usize {
    let least = cache.ways as usize + SPARE + 1;
    let average = (2.0 + (4.0 + least as f64).sqrt()).powi(2);
    (average * f64::from(cache.colors)).ceil() as usize
}

/// How long a search goes on that others disturb; what is not sure then is said to be so
/// ([`Palette::confidence`]).
const LIMIT: Duration = Duration::from_secs(20);
/// And for how long when no page was found that others drive out together.
const HOPE: Duration = Duration::from_secs(5);
/// For how long few lines of pages ([`Lines`]) are tried where they show nothing,
const TRY: Duration = Duration::from_millis(500);
/// and where they show something.
const TRY_ON: Duration = Duration::from_secs(3);
/// How often the pages without a color are searched again, in one pool.
const ROUNDS: usize = 6;
/// The share of pages without a color that is no reason to search again.
const LEFT_OVER: f64 = 0.02;

/// Trials of frame numbers.
const TRIALS: usize = 24;
/// The share of trials that must agree before frame numbers are believed.
const BELIEVED: f64 = 0.9;

/// Finds the colors of the cache of a level that serves a processor. Runs on that processor, in a
/// thread of its own.
///
/// # Errors
/// The machine does not tell the geometry; the cache has one color or cannot be searched; no
/// difference is seen; pages do not compete as wholes; the user stopped it.
pub fn find(platform: &Platform, level: u8, cpu: CpuId, watch: &dyn Watch) -> Result<Palette> {
    check_page_size()?;
    let cache = Geometry::of(platform, level, cpu)?;
    let below = (1..level)
        .filter_map(|l| platform.data_cache(l, cpu)?.size)
        .map(Bytes::get)
        .max()
        .unwrap_or(0);
    colorable(&cache)?;
    on_processor(cpu, "the search for colors", || {
        // Ordinary programs wait meanwhile, where that is permitted; what still breaks in is
        // noticed.
        let _raised = Priority::new(1).map(machine::realtime::raise);
        #[cfg(target_arch = "x86_64")]
        if let Ok(tsc) = machine::clock::counter() {
            return in_pools(tsc, &cache, below, cpu, watch);
        }
        in_pools(Monotonic, &cache, below, cpu, watch)
    })
}

/// Can this cache be partitioned by pages at all?
///
/// # Errors
/// It has one color, its index is hashed over slices, or it is too large to search.
pub fn colorable(cache: &Geometry) -> Result<()> {
    let name = cache.name();
    if cache.colors < 2 {
        return Err(Error::new(format!(
            "the {name} has one color: a way of it is no larger than a page"
        ))
        .remedy("look at the next level"));
    }
    if cache.sliced {
        return Err(Error::new(format!(
            "the {name} is hashed over slices (its number of sets is no power of two): the lines of a page lie in different slices, so that pages have no color"
        ))
        .remedy("look at a lower level, or partition it in hardware (resctrl)"));
    }
    if cache.size.get() > LARGEST {
        return Err(Error::new(format!(
            "the {name} of {} is too large to be searched",
            cache.size
        ))
        .remedy("look at a lower level"));
    }
    Ok(())
}

/// Searches a pool, and larger ones where a color is missing: what others gave back by colors comes
/// in colors.
fn in_pools<C: Clock>(
    clock: C,
    cache: &Geometry,
    below: u64,
    cpu: CpuId,
    watch: &dyn Watch,
) -> Result<Palette> {
    let began = Instant::now();
    let hopeful = Cell::new(false);
    let late = || watch.stopped() || began.elapsed() >= if hopeful.get() { LIMIT } else { HOPE };
    let mut best: Option<Palette> = None;
    let mut why = None;
    // Again until it is sure: what disturbs may pass.
    let few = Few::default();
    for (attempt, larger) in [1, 1, 2, 4].into_iter().cycle().enumerate() {
        let lines = few.lines(attempt);
        match find_with(
            clock,
            (larger, lines),
            cache,
            below,
            cpu,
            (&late, &hopeful, &few),
            watch,
        ) {
            Ok(palette) => {
                if best
                    .as_ref()
                    .is_none_or(|b| b.confidence < palette.confidence)
                {
                    best = Some(palette);
                }
            }
            Err(e) => {
                why = Some(e);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        if watch.stopped() || late() || best.as_ref().is_some_and(Palette::is_sure) {
            break;
        }
    }
    match (best, why) {
        (Some(mut palette), _) => {
            palette.took = model::Duration::from_nanos(began.elapsed().as_nanos() as u64);
            Ok(palette)
        }
        (None, Some(why)) => Err(why),
        (None, None) => stop_if_asked(watch).and(Err(Error::new("no pool was searched"))),
    }
}

/// Whether few lines of a page do ([`Lines`]): as long as they have not been in vain, and for good
/// once they have shown anything.
#[derive(Default)]
struct Few {
    do_show: Cell<bool>,
    in_vain: Cell<u32>,
}

impl Few {
    /// What to try next.
    fn lines(&self, attempt: usize) -> Lines {
        const ENOUGH: u32 = 2;
        match self.do_show.get() || self.in_vain.get() < ENOUGH || attempt.is_multiple_of(2) {
            true => Lines::Few,
            false => Lines::Whole,
        }
    }
    /// They were tried where hits and misses could be told apart.
    fn shown(&self, anything: bool) {
        self.do_show.set(self.do_show.get() || anything);
        self.in_vain.set(self.in_vain.get() + u32::from(!anything));
    }
}

fn find_with<C: Clock>(
    clock: C,
    (times_the_pool, lines): (usize, Lines),
    cache: &Geometry,
    below: u64,
    cpu: CpuId,
    (late, hopeful, few): (&dyn Fn() -> bool, &Cell<bool>, &Few),
    watch: &dyn Watch,
) -> Result<Palette> {
    let began = Instant::now();
    let found_any = Cell::new(false);
    let late = || {
        hopeful.set(hopeful.get() || found_any.get());
        late()
            || (lines == Lines::Few
                && began.elapsed() >= if found_any.get() { TRY_ON } else { TRY })
    };
    let area = Area::map(Bytes::new(
        (pool_pages(cache) * times_the_pool * PAGE) as u64,
    ))?;
    // A run makes its watchdog by a fork, and writes to all of its pages afterwards.
    area.keep_from_children();
    let found = {
        let pool = pages(&area);
        // Twice what lower levels hold, so that nothing of a page is left there.
        let below = (below as usize * 2).div_ceil(PAGE).max(4);
        let times = calibrate(clock, &pool, lines, below, cache)?;
        let frames = FrameNumbers::of_this_process();
        let mut judge = Timed::new(clock, pool.clone(), times, cache);
        let physical = frames
            .as_ref()
            .and_then(|numbers| by_frame_number(&mut judge, numbers, &pool, cache));
        match physical {
            Some(found) => (times, How::FrameNumbers, found),
            None => {
                let search = Search {
                    cache,
                    pages: pool.len(),
                    late: &late,
                    hopeful: &found_any,
                    watch,
                };
                let found = by_timing(&mut judge, &search);
                if lines == Lines::Few {
                    few.shown(found_any.get());
                }
                (times, How::Timing, found?)
            }
        }
    };
    let (times, how, found) = found;
    Ok(Palette {
        cache: cache.clone(),
        cpu,
        area,
        times,
        how,
        confidence: found.confidence,
        members: found.members,
        unplaced: found.unplaced,
        took: model::Duration::from_nanos(began.elapsed().as_nanos() as u64),
    })
}

/// Do frame numbers tell the truth? Then the colors, with the share of trials that agreed.
fn by_frame_number<J: Judge>(
    judge: &mut J,
    numbers: &FrameNumbers,
    pool: &[Page<'_>],
    cache: &Geometry,
) -> Option<Found> {
    let colors = u64::from(cache.colors);
    let ways = cache.ways as usize;
    let mut all: Vec<Vec<PageId>> = vec![Vec::new(); usize::from(cache.colors)];
    for (page, frame) in numbers.of(pool).into_iter().enumerate() {
        all[(frame? % colors) as usize].push(page as PageId);
    }
    let confidence = agreement(judge, &all, ways)?;
    if confidence < BELIEVED {
        return None;
    }
    Some(Found {
        members: all,
        confidence,
        unplaced: 0,
    })
}

/// The share of trials in which pages said to be of one color drove each other out and others did
/// not.
fn agreement<J: Judge>(judge: &mut J, colors: &[Vec<PageId>], ways: usize) -> Option<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut agreed = 0;
    for trial in 0..TRIALS {
        let own = &colors[random.random_range(0..colors.len())];
        let (victim, rivals) = own.split_first()?;
        let agrees = if trial % 2 == 0 {
            let set = rivals.get(..ways + SPARE)?;
            evicts(judge, set, *victim)
        } else {
            // As many pages, two of a color.
            let others: Vec<PageId> = colors
                .iter()
                .filter(|c| c.first() != Some(victim))
                .flat_map(|c| c.iter().take(2).copied())
                .take(ways + SPARE)
                .collect();
            !evicts(judge, &others, *victim)
        };
        agreed += u32::from(agrees);
    }
    Some(f64::from(agreed) / TRIALS as f64)
}

#[cfg(test)]
mod tests;
