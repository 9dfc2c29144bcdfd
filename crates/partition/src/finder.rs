//! Finding all colors of a cache: by frame numbers where they are true, by timing where they are not.
//!
//! Frame numbers are tried first and believed only when time confirms them: pages of which they say that they compete
//! must drive each other out, others must not ([`Palette::confidence`] is the share of trials that agreed). Where they
//! do not, as in a virtual machine whose host backs it page by page, colors are found by group testing ([`crate::evict`]).

use crate::colors::Color;
use crate::evict::{driven_out, evicts, reduce};
use crate::frame::{FrameNumbers, Page, pages};
use crate::geometry::{Geometry, PAGE, check_page_size};
use crate::palette::{How, Palette};
use crate::probe::{Judge, PageId, Timed, calibrate};
use crate::sort::sort;
use machine::clock::{Clock, Monotonic};
use machine::memory::Area;
use model::watch::Watch;
use model::{Bytes, CpuId, CpuSet, Error, Platform, Result};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// The largest cache that is searched: above it, a pool would take too much memory and time.
const LARGEST: u64 = 64 << 20;
/// Pages of an eviction set beyond the ways: replacement is not strictly by age.
pub const SPARE: usize = 2;
/// Pages of a pool in which every color has enough of them.
///
/// Which pages the system gives is chance: with `x` of a color on average, nearly every color has at least `x - 4 √x`
/// (Poisson), which must reach the ways, the spare pages and a victim.
fn pool_pages(cache: &Geometry) -> usize {
    let least = cache.ways as usize + SPARE + 1;
    let average = (2.0 + (4.0 + least as f64).sqrt()).powi(2);
    (average * f64::from(cache.colors)).ceil() as usize
}

/// Trials of frame numbers.
const TRIALS: usize = 24;
/// The share of trials that must agree before frame numbers are believed.
const BELIEVED: f64 = 0.9;

/// Finds the colors of the cache of a level that serves a processor. Runs on that processor, in a thread of its own.
///
/// # Errors
/// The machine does not tell the geometry; the cache has one color or cannot be searched; no difference is seen; pages
/// do not compete as wholes; the user stopped it.
pub fn find(platform: &Platform, level: u8, cpu: CpuId, watch: &dyn Watch) -> Result<Palette> {
    check_page_size()?;
    let cache = Geometry::of(platform, level, cpu)?;
    let below = (1..level)
        .filter_map(|l| platform.data_cache(l, cpu)?.size)
        .map(Bytes::get)
        .max()
        .unwrap_or(0);
    colorable(&cache)?;
    std::thread::scope(|scope| {
        let search = scope.spawn(|| {
            machine::realtime::pin(&CpuSet::from_iter([cpu]))?;
            #[cfg(target_arch = "x86_64")]
            if let Ok(tsc) = machine::clock::counter() {
                return in_pools(tsc, &cache, below, cpu, watch);
            }
            in_pools(Monotonic, &cache, below, cpu, watch)
        });
        search.join().unwrap_or_else(|_| {
            Err(Error::new(
                "the search for colors broke off: a defect of this program",
            ))
        })
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

/// Searches a pool, and larger ones where a color is missing: what others gave back by colors comes in colors.
fn in_pools<C: Clock>(
    clock: C,
    cache: &Geometry,
    below: u64,
    cpu: CpuId,
    watch: &dyn Watch,
) -> Result<Palette> {
    let mut palette = find_with(clock, 1, cache, below, cpu, watch)?;
    for larger in [2, 4] {
        if palette.colors() == cache.colors {
            break;
        }
        let again = find_with(clock, larger, cache, below, cpu, watch)?;
        if again.confidence > palette.confidence {
            palette = again;
        }
    }
    Ok(palette)
}

fn find_with<C: Clock>(
    clock: C,
    times_the_pool: usize,
    cache: &Geometry,
    below: u64,
    cpu: CpuId,
    watch: &dyn Watch,
) -> Result<Palette> {
    let began = Instant::now();
    let area = Area::map(Bytes::new((pool_pages(cache) * times_the_pool * PAGE) as u64))?;
    let found = {
        let pool = pages(&area);
        // Twice what lower levels hold, so that nothing of a page is left there.
        let below = (below as usize * 2).div_ceil(PAGE).max(4);
        let times = calibrate(clock, &pool, below, cache)?;
        let frames = FrameNumbers::of_this_process();
        let mut judge = Timed::new(clock, pool.clone(), times, cache);
        let physical = frames
            .as_ref()
            .and_then(|numbers| by_frame_number(&mut judge, numbers, &pool, cache));
        match physical {
            Some(found) => (times, How::FrameNumbers, found),
            None => (
                times,
                How::Timing,
                by_timing(&mut judge, pool.len(), cache, watch)?,
            ),
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

/// The share of trials in which pages said to be of one color drove each other out and others did not.
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

/// Colors, each with its pages of the pool: at least one more than there are ways.
#[derive(Debug)]
struct Found {
    members: Vec<Vec<PageId>>,
    confidence: f64,
    unplaced: usize,
}

fn by_timing<J: Judge>(judge: &mut J, pages: usize, cache: &Geometry, watch: &dyn Watch) -> Result<Found> {
    let ways = cache.ways as usize;
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut pool: Vec<PageId> = (0..pages as PageId).collect();
    pool.shuffle(&mut random);
    watch.begin(
        &format!("colors of the {}", cache.name()),
        u64::from(cache.colors),
    );
    let groups = group(
        judge,
        &mut random,
        pool.clone(),
        ways,
        usize::from(cache.colors),
        watch,
    )?;
    if groups.is_empty() {
        return Err(Error::new(format!(
            "no page of the {} is driven out by {ways} others as a whole: its pages have no color",
            cache.name()
        ))
        .remedy("look at another level; look again when the machine is idle"));
    }
    let sets = merge(judge, groups, ways);
    // Every page against every color: what agrees is the confidence.
    let colors = sort(judge, &pool, &sets, ways + SPARE, |_| !watch.stopped());
    stop_if_asked(watch)?;
    let mut sorted: Vec<Vec<PageId>> = vec![Vec::new(); sets.len()];
    for (page, color) in pool.iter().zip(&colors) {
        if let Some(Color(color)) = color {
            sorted[usize::from(*color)].push(*page);
        }
    }
    let unplaced = colors.iter().filter(|c| c.is_none()).count();
    let expected = f64::from(cache.colors);
    let complete = (sets.len() as f64 / expected).min(expected / sets.len() as f64);
    // A color that kept fewer pages than ways cannot drive anything out.
    sorted.retain(|set| set.len() > ways);
    Ok(Found {
        confidence: (1.0 - unplaced as f64 / pages as f64) * complete,
        members: sorted,
        unplaced,
    })
}

fn stop_if_asked(watch: &dyn Watch) -> Result<()> {
    if watch.stopped() {
        return Err(Error::new("stopped before all colors were found"));
    }
    Ok(())
}

/// Groups of pages that compete, each with at least one page more than there are ways.
fn group<J: Judge>(
    judge: &mut J,
    random: &mut ChaCha8Rng,
    mut left: Vec<PageId>,
    ways: usize,
    expected: usize,
    watch: &dyn Watch,
) -> Result<Vec<Vec<PageId>>> {
    /// Victims in a row that nothing drives out before the rest is given up.
    const PATIENCE: usize = 12;
    let mut groups: Vec<Vec<PageId>> = Vec::new();
    let all = left.len();
    let mut failures = 0;
    while left.len() > ways && failures < PATIENCE {
        stop_if_asked(watch)?;
        let Some(victim) = left.pop() else { break };
        let Some(set) = reduce(judge, random, victim, &left, ways) else {
            // It goes to the other end: others of its color may have been lost to a disturbance.
            left.insert(0, victim);
            failures += 1;
            continue;
        };
        let rest: Vec<PageId> = left.iter().copied().filter(|p| !set.contains(p)).collect();
        let mut group = set.clone();
        group.push(victim);
        group.extend(driven_out(judge, &set, &rest));
        // Chance makes a set that drives out far more than a color when the machine is busy: that is no color.
        if group.len() <= ways || group.len() * expected > 3 * all {
            left.insert(0, victim);
            failures += 1;
            continue;
        }
        left.retain(|p| !group.contains(p));
        failures = 0;
        if groups.len() < expected {
            watch.advance(1);
        }
        groups.push(group);
    }
    Ok(groups)
}

/// Joins groups that drive out each other's pages: a color that was found twice.
fn merge<J: Judge>(judge: &mut J, groups: Vec<Vec<PageId>>, ways: usize) -> Vec<Vec<PageId>> {
    let mut merged: Vec<Vec<PageId>> = Vec::new();
    for group in groups {
        let few = &group[..group.len().min(4)];
        let same = merged.iter().position(|other| {
            let set = &other[..other.len().min(ways + SPARE)];
            driven_out(judge, set, few).len() * 2 > few.len()
        });
        match same {
            Some(which) => merged[which].extend(group),
            None => merged.push(group),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fake::Fake;
    use model::watch::Silent;

    fn geometry(colors: u16, ways: u32) -> Geometry {
        Geometry {
            level: 2,
            size: Bytes::new(u64::from(colors) * u64::from(ways) * PAGE as u64),
            ways,
            colors,
            sliced: false,
            shared_by: CpuSet::first(1),
        }
    }

    fn check(fake: &mut Fake, found: &Found, colors: usize) {
        assert_eq!(found.members.len(), colors, "unplaced: {}", found.unplaced);
        let mut seen = Vec::new();
        for set in &found.members {
            let color = fake.colors[set[0] as usize];
            assert!(set.iter().all(|p| fake.colors[*p as usize] == color));
            assert!(!seen.contains(&color), "color {color} was found twice");
            seen.push(color);
        }
    }

    #[test]
    fn all_colors_are_found_without_frame_numbers() {
        for (colors, ways) in [(32, 16), (16, 16), (64, 4), (2, 8)] {
            let pages = pool_pages(&geometry(colors, ways));
            let mut fake = Fake::new(pages, colors, ways as usize, 0, 5);
            let found = by_timing(&mut fake, pages, &geometry(colors, ways), &Silent).unwrap();
            check(&mut fake, &found, usize::from(colors));
            assert_eq!(found.unplaced, 0);
            assert!(found.confidence > 0.999, "{}", found.confidence);
        }
    }

    #[test]
    fn all_colors_are_found_beside_disturbances() {
        let pages = pool_pages(&geometry(32, 16));
        let mut fake = Fake::new(pages, 32, 16, 25, 9);
        let found = by_timing(&mut fake, pages, &geometry(32, 16), &Silent).unwrap();
        check(&mut fake, &found, 32);
        assert!(found.confidence > 0.95, "{}", found.confidence);
    }

    #[test]
    fn a_cache_without_colors_is_refused() {
        // Every page competes with every other, as in a cache hashed by lines; more ways than pages.
        let mut fake = Fake::new(200, 1, 400, 0, 1);
        let e = by_timing(&mut fake, 200, &geometry(8, 16), &Silent)
            .unwrap_err()
            .to_string();
        assert!(e.contains("have no color"), "{e}");
    }

    #[test]
    fn frame_numbers_that_lie_are_not_believed() {
        let mut fake = Fake::new(1280, 32, 16, 0, 2);
        let truth: Vec<Vec<PageId>> = (0..32)
            .map(|c| (0..1280_u32).filter(|p| fake.colors[*p as usize] == c).collect())
            .collect();
        assert_eq!(agreement(&mut fake, &truth, 16), Some(1.0));
        let lies: Vec<Vec<PageId>> = (0..32).map(|c| (c * 40..c * 40 + 40).collect()).collect();
        assert!(agreement(&mut fake, &lies, 16).unwrap() <= 0.6);
    }

    #[test]
    fn caches_that_have_no_colors_say_why() {
        let mut cache = geometry(1, 12);
        assert!(colorable(&cache).unwrap_err().to_string().contains("one color"));
        cache = geometry(32, 16);
        cache.sliced = true;
        assert!(colorable(&cache).unwrap_err().to_string().contains("slices"));
        cache.sliced = false;
        cache.size = Bytes::from_mib(96);
        assert!(colorable(&cache).unwrap_err().to_string().contains("too large"));
    }
}
