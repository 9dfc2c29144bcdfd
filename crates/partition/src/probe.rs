//! Is a page still in the cache? Asked by time, page by page: the primitive that all of finding
//! colors stands on.
//!
//! Lines of a page are read one after the other, each address depending on the value before, in an
//! order that no prefetcher follows. Not a line but some or all of a page are timed together: a
//! counter that steps by more than one says nothing of a single line, and where the offset of lines
//! is hashed, pages compete as wholes while lines of one offset do not. Few lines far apart are
//! better where they compete as wholes do ([`Lines`]).
//!
//! While a thread does not run, others use its cache: a measurement with a gap in it says nothing,
//! and is made again.

use crate::frame::Page;
use crate::geometry::{Geometry, PAGE};
use machine::clock::Clock;
use machine::memory::LINE;
use model::{Error, Result};
use std::hint::black_box;

/// A page by its number in the list that a [`Judge`] knows.
pub type PageId = u32;

/// Tells whether reading some pages drives others out of a cache. A measurement may err; who asks
/// repeats.
pub trait Judge {
    /// Reads the victims, then the whole set, and says of each victim whether it was driven out. At
    /// most [`Judge::batch`] victims, so that they do not drive out each other.
    fn evicted(&mut self, victims: &[PageId], set: &[PageId]) -> Vec<bool>;
    /// How many victims may be asked about at once.
    fn batch(&self) -> usize;
    /// Reads a page, then the whole set, and says how long reading the page again takes, in ticks:
    /// to be compared with what others take at the same time.
    fn ticks(&mut self, page: PageId, set: &[PageId]) -> u64;
    /// From how many ticks on a page may have been driven out: nearer to hits than what says so for
    /// sure.
    fn suspicious(&self) -> u64;
}

/// Lines of a page.
const LINES: usize = PAGE / LINE;

/// Which lines of a page stand for it.
///
/// Prefetchers bring back what stands near to what is read, before it is asked for: the less there
/// is to do on the machine, the more. On an EPYC of model 17, reading all lines of a page that was
/// driven out took 1.54 to 2.07 times as long as a hit, reading every eighth line 1.75 to 2.25
/// times, in less time (`cargo run --release -p warmset-partition --example lines`). Where the
/// index is hashed, lines of one offset do not compete, and too few lines show nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lines {
    /// Every eighth.
    Few,
    /// All.
    Whole,
}

impl Lines {
    /// Their offsets, in the order in which they are read.
    fn order(self) -> &'static [u16] {
        match self {
            Lines::Few => &FEW,
            Lines::Whole => &ORDER,
        }
    }
}

/// How far apart few lines are.
const APART: usize = 8;

/// The order in which lines are timed: a fixed permutation without steady strides.
const ORDER: [u16; LINES] = order(1);
const FEW: [u16; LINES / APART] = order(APART);

const fn order<const COUNT: usize>(apart: usize) -> [u16; COUNT] {
    let mut order = [0_u16; COUNT];
    let mut i = 0;
    while i < COUNT {
        order[i] = (i * apart * LINE) as u16;
        i += 1;
    }
    let mut state = 0x9e37_79b9_u32;
    let mut i = COUNT - 1;
    while i > 0 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let j = (state >> 16) as usize % (i + 1);
        let kept = order[i];
        order[i] = order[j];
        order[j] = kept;
        i -= 1;
    }
    order
}

/// Reads all lines of a page, as fast as may be.
///
/// Not one after the other: what a prefetcher brought in ahead of a scan does not drive out what is
/// in use. On an EPYC (family 25, model 17) a page stays in the L2 of 1 MiB while 4 MiB are read in
/// ascending order, and is gone when they are read in this one.
#[inline(always)]
pub fn read(page: Page<'_>) {
    read_lines(page, Lines::Whole);
}

#[inline(always)]
fn read_lines(page: Page<'_>, lines: Lines) {
    for offset in lines.order() {
        page.read(usize::from(*offset));
    }
}

/// Ticks that reading all lines of a page takes, one after the other.
pub fn time<C: Clock>(clock: C, page: Page<'_>) -> u64 {
    time_lines(clock, page, Lines::Whole)
}

#[inline(never)]
fn time_lines<C: Clock>(clock: C, page: Page<'_>, lines: Lines) -> u64 {
    let nothing = black_box(0_usize);
    let order = lines.order();
    let mut step = 0;
    let start = clock.stamp();
    for offset in order {
        // The next address depends on this value, though only by nothing.
        step = page.read(usize::from(*offset) + step) as usize & nothing;
    }
    black_box(step);
    clock.stamp().saturating_sub(start)
}

/// What reading a page takes, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Which lines of it.
    pub lines: Lines,
    /// When it is in the cache in question.
    pub hit: u64,
    /// When it is not.
    pub miss: u64,
}

impl Times {
    /// From which time on a page was not there.
    ///
    /// Hits hardly vary while misses do, by what prefetchers save and by what a busy machine adds:
    /// the threshold stays near to the hits. Not too near: on an EPYC of model 17, pages of one
    /// other color take a third of a page's lines along, so that it takes 1.4 times as long as a
    /// hit.
    pub fn threshold(self) -> u64 {
        self.hit + (self.miss.saturating_sub(self.hit) / 2).min(self.hit * 3 / 5)
    }
    /// From which time on a page may not have been there, seldom missed, see [`Lines`].
    pub fn suspicious(self) -> u64 {
        self.hit + (self.miss.saturating_sub(self.hit) / 3).min(self.hit / 4)
    }
    /// How many times longer a page takes that is not there.
    pub fn ratio(self) -> f64 {
        self.miss as f64 / self.hit.max(1) as f64
    }
}

/// Below this ratio, hits and misses cannot be told apart.
pub const LEAST_RATIO: f64 = 1.3;

/// Measures both times on pages that together are at least twice the cache.
///
/// `below` is the number of pages to read so that caches of lower levels are empty of a page.
///
/// # Errors
/// There is no difference to see.
pub fn calibrate<C: Clock>(
    clock: C,
    pages: &[Page<'_>],
    lines: Lines,
    below: usize,
    cache: &Geometry,
) -> Result<Times> {
    const TRIES: usize = 24;
    const WARM: usize = 3;
    let stride = (pages.len() / TRIES).max(1);
    let mut hits = Vec::new();
    let mut misses = Vec::new();
    for victim in (0..pages.len()).step_by(stride) {
        // The first time, what is read meanwhile comes from memory.
        let mut hit = u64::MAX;
        for _ in 0..WARM {
            read_lines(pages[victim], lines);
            for next in 1..=below.min(pages.len() - 1) {
                read_lines(pages[(victim + next) % pages.len()], lines);
            }
            // Timing another page first brings its own code and table back.
            time_lines(clock, pages[(victim + 1) % pages.len()], lines);
            hit = hit.min(time_lines(clock, pages[victim], lines));
        }
        hits.push(hit);
        for next in 1..pages.len() {
            read_lines(pages[(victim + next) % pages.len()], lines);
        }
        time_lines(
            clock,
            pages[(victim + pages.len() - 1) % pages.len()],
            lines,
        );
        misses.push(time_lines(clock, pages[victim], lines));
    }
    hits.sort_unstable();
    misses.sort_unstable();
    // Interruptions only add: both are told by the faster ones.
    let times = Times {
        lines,
        hit: hits[hits.len() / 4],
        miss: misses[misses.len() / 4],
    };
    if times.ratio() < LEAST_RATIO {
        return Err(Error::new(format!(
            "pages in the {} and pages driven out of it cannot be told apart: reading one takes {:.2} times as long",
            cache.name(),
            times.ratio()
        ))
        .remedy("look again when the machine is idle; if it stays so, this cache does not act as the platform says"));
    }
    Ok(times)
}

/// Judges by time.
pub struct Timed<'a, C> {
    clock: C,
    pages: Vec<Page<'a>>,
    lines: Lines,
    threshold: u64,
    suspicious: u64,
    /// Sets up to this size are read twice: caches do not replace strictly the oldest.
    twice: usize,
    /// From how many ticks on reading one page tells that something else ran meanwhile.
    gap: u64,
}

/// How often a measurement that was broken into is made again.
const AGAIN: usize = 40;
/// How many times longer than a page from memory a page takes when something else ran meanwhile.
const GAP: u64 = 4;

impl<'a, C: Clock> Timed<'a, C> {
    /// Over these pages, in a cache of this geometry.
    pub fn new(clock: C, pages: Vec<Page<'a>>, times: Times, cache: &Geometry) -> Self {
        Timed {
            clock,
            pages,
            lines: times.lines,
            threshold: times.threshold(),
            suspicious: times.suspicious(),
            twice: cache.ways as usize * 8,
            gap: times.miss.saturating_mul(GAP),
        }
    }

    /// One measurement: ticks of each victim, and whether nothing else ran meanwhile.
    fn once(&self, victims: &[PageId], set: &[PageId]) -> (Vec<u64>, bool) {
        let mut last = self.clock.glance();
        let mut longest = 0;
        let mut look = || {
            let now = self.clock.glance();
            longest = longest.max(now.saturating_sub(last));
            last = now;
        };
        for v in victims {
            read_lines(self.pages[*v as usize], self.lines);
            look();
        }
        let passes = if set.len() <= self.twice { 2 } else { 1 };
        for _ in 0..passes {
            for page in set {
                read_lines(self.pages[*page as usize], self.lines);
                look();
            }
        }
        let times = victims
            .iter()
            .map(|v| {
                let took = time_lines(self.clock, self.pages[*v as usize], self.lines);
                look();
                took
            })
            .collect();
        (times, longest < self.gap)
    }
}

impl<C: Clock> Judge for Timed<'_, C> {
    fn evicted(&mut self, victims: &[PageId], set: &[PageId]) -> Vec<bool> {
        let (mut times, mut whole) = self.once(victims, set);
        for _ in 0..AGAIN {
            // What was broken into errs in one direction only: a page that is still there was never
            // driven out.
            if whole || times.iter().all(|t| *t < self.threshold) {
                break;
            }
            (times, whole) = self.once(victims, set);
        }
        times.iter().map(|t| *t >= self.threshold).collect()
    }
    /// One: timing a victim brings its lines back, which drives out some of the next. On an EPYC of
    /// model 17, one in a hundred of the later of four victims took as long as what is still there.
    fn batch(&self) -> usize {
        1
    }
    fn ticks(&mut self, page: PageId, set: &[PageId]) -> u64 {
        let mut least = u64::MAX;
        for _ in 0..=AGAIN {
            let (times, whole) = self.once(&[page], set);
            let took = times.first().copied().unwrap_or(0);
            if whole {
                return took;
            }
            least = least.min(took);
        }
        least
    }
    fn suspicious(&self) -> u64 {
        self.suspicious
    }
}

/// A cache in software that replaces the oldest, with measurements that err: what the logic is
/// tested on.
#[cfg(test)]
pub mod fake {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// See the module.
    #[allow(missing_docs, reason = "for tests alone")]
    pub struct Fake {
        pub colors: Vec<u16>,
        pub ways: usize,
        /// One measurement in so many says evicted where the page is still there.
        pub disturbed: u32,
        pub asked: u64,
        /// Ticks of a page that was driven out; what is there takes 100.
        pub miss: u64,
        /// Ticks of a page that was read against pages of the color next to its own.
        pub neighbor: u64,
        random: ChaCha8Rng,
    }

    impl Fake {
        /// Pages of random colors.
        pub fn new(pages: usize, colors: u16, ways: usize, disturbed: u32, seed: u64) -> Self {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            Fake {
                colors: (0..pages).map(|_| random.random_range(0..colors)).collect(),
                ways,
                disturbed,
                asked: 0,
                miss: 200,
                neighbor: 100,
                random,
            }
        }

        /// Ticks of a page that was not driven out.
        fn kept(&self, page: PageId, set: &[PageId]) -> u64 {
            let color = self.colors[page as usize];
            let near = set
                .iter()
                .filter(|p| self.colors[**p as usize] == color ^ 1)
                .count();
            if near >= self.ways {
                self.neighbor
            } else {
                100
            }
        }
    }

    impl Judge for Fake {
        fn evicted(&mut self, victims: &[PageId], set: &[PageId]) -> Vec<bool> {
            assert!(victims.len() <= self.batch());
            self.asked += 1;
            victims
                .iter()
                .map(|v| {
                    let color = self.colors[*v as usize];
                    let rivals = set
                        .iter()
                        .filter(|p| *p != v && self.colors[**p as usize] == color)
                        .count();
                    rivals >= self.ways
                        || (self.disturbed > 0 && self.random.random_range(0..self.disturbed) == 0)
                })
                .collect()
        }
        fn batch(&self) -> usize {
            (self.ways / 2).max(1)
        }
        fn ticks(&mut self, page: PageId, set: &[PageId]) -> u64 {
            match self.evicted(&[page], set)[..] {
                [true] => self.miss,
                _ => self.kept(page, set),
            }
        }
        fn suspicious(&self) -> u64 {
            125
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_timed_once() {
        let mut order = ORDER;
        order.sort_unstable();
        assert!(
            order
                .iter()
                .enumerate()
                .all(|(i, o)| usize::from(*o) == i * LINE)
        );
        let ascending = ORDER
            .windows(2)
            .filter(|w| w[1] == w[0] + LINE as u16)
            .count();
        assert!(ascending < 4, "a prefetcher would follow {ORDER:?}");
        let mut few = FEW;
        few.sort_unstable();
        assert!(
            few.iter()
                .enumerate()
                .all(|(i, o)| usize::from(*o) == i * APART * LINE)
        );
    }

    #[test]
    fn a_threshold_lies_between_hit_and_miss() {
        let times = Times {
            lines: Lines::Whole,
            hit: 100,
            miss: 200,
        };
        assert_eq!(times.threshold(), 150);
        assert_eq!(times.suspicious(), 125);
        assert_eq!(
            Times { miss: 900, ..times }.threshold(),
            160,
            "near to the hits"
        );
        assert!(times.ratio() > LEAST_RATIO);
    }
}
