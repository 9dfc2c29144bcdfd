//! Whether a cache of this machine has page colors, by chance alone: independent of everything that
//! looks for them, so that a search which finds none is held against it ([`works`]).
//!
//! A page is read, then as many random pages as the cache holds, then the page again. Where pages
//! compete as wholes, as many of the others as there are ways have the page's color in about half
//! of such trials: then all of its lines are gone, and otherwise none. Where the lines of a page
//! lie anywhere, some are gone every time.

use crate::NotRun;
use model::CpuId;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::black_box;
use std::time::Instant;

/// Lines of a page, in words of which each names the line to be read next.
#[repr(align(4096))]
struct Page([Line; LINES]);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

const LINES: usize = 64;
/// Every so many lines are read: neighbors come along with what is fetched from further out.
const APART: usize = 8;
/// Lines of a page that are read.
const READ: usize = LINES / APART;
/// Pages after which nothing of one is left in caches before the one at hand: 128 KiB.
const BEFORE: usize = 32;
/// From how many times the time of a page from memory on something else ran meanwhile.
const BROKEN_INTO: u64 = 4;

/// What was seen of one cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// How long a page takes that is there, in nanoseconds: the median.
    pub there: u64,
    /// And one that was driven out by three times what the cache holds.
    pub gone: u64,
    /// Trials after which all of the page was there,
    pub kept: u32,
    /// nothing of it was there,
    pub lost: u32,
    /// or some of it.
    pub between: u32,
}

impl Seen {
    /// Do pages compete as wholes here, as far as was seen? Where others disturb, or lines of a
    /// page go their own ways, trials end between.
    pub fn shows_colors(&self) -> bool {
        let all = self.kept + self.lost + self.between;
        let share = |trials: u32| f64::from(trials) / f64::from(all.max(1));
        self.gone * 2 > self.there * 3
            && share(self.kept) > 0.2
            && share(self.lost) > 0.2
            && share(self.between) < 0.25
    }
}

/// What needs colors works, or could not today.
///
/// Tries again and again, and looks before and after each time whether pages compete as wholes
/// (`shows`). Where they did not, others may have disturbed it.
///
/// # Errors
/// It never worked, and others disturbed it.
///
/// # Panics
/// It failed so often although colors showed before and after: that is a defect.
pub fn works<T>(
    shows: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Result<T, String>,
) -> Result<T, NotRun> {
    const MOST: u32 = 6;
    const CALM: u32 = 3;
    let mut calm = 0;
    let mut last = String::new();
    for _ in 0..MOST {
        let before = shows();
        match attempt() {
            Ok(done) => return Ok(done),
            Err(why) => last = why,
        }
        calm += u32::from(before && shows());
        assert!(
            calm < CALM,
            "pages drive each other out as wholes, and still: {last}"
        );
    }
    Err(NotRun::because(last))
}

/// Tries so many times with a cache of so many ways, each of which holds so many pages, on one of
/// the processors that it serves.
///
/// # Panics
/// This thread may not run there.
pub fn look(ways: usize, pages_of_a_way: usize, cpu: CpuId, trials: u32) -> Seen {
    std::thread::spawn(move || {
        let mut only = CpuSet::new();
        only.set(cpu.0 as usize);
        sched_setaffinity(None, &only).expect("the processor may be used");
        Pool::of(3 * ways * pages_of_a_way).look(ways * pages_of_a_way, trials)
    })
    .join()
    .expect("nothing fails on the way")
}

struct Pool {
    pages: Vec<Page>,
    state: u64,
}

impl Pool {
    fn of(number: usize) -> Self {
        let mut pool = Pool {
            pages: Vec::with_capacity(number),
            state: 0x9e37_79b9_7f4a_7c15,
        };
        for _ in 0..number {
            // Lines one after the other at random, in one circle: nobody fetches them ahead.
            let mut order: [usize; READ] = std::array::from_fn(|line| line * APART);
            for last in (1..READ).rev() {
                order.swap(last, pool.below(last + 1));
            }
            let mut page = Page([Line(0); LINES]);
            for (at, line) in order.iter().enumerate() {
                page.0[*line] = Line(order[(at + 1) % READ] as u32);
            }
            pool.pages.push(page);
        }
        pool
    }

    /// A number below this one (xorshift).
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % bound
    }

    fn read(&self, page: usize) {
        // Where it is read, not before or later.
        let lines = &self.pages[black_box(page)].0;
        let mut line = 0;
        for _ in 0..READ {
            line = lines[line % LINES].0 as usize;
        }
        black_box(line);
    }

    /// How long reading the page takes, in nanoseconds.
    fn time(&self, page: usize) -> u64 {
        let begin = Instant::now();
        self.read(page);
        begin.elapsed().as_nanos() as u64
    }

    /// The page is read, then the others, then the page again: how long the last takes.
    fn after(&self, page: usize, others: &[usize]) -> u64 {
        self.read(page);
        for other in others {
            self.read(*other);
        }
        self.time(page)
    }

    /// So many random pages other than this one.
    fn others(&mut self, page: usize, number: usize) -> Vec<usize> {
        let all = self.pages.len();
        let mut others: Vec<usize> = (0..all).filter(|other| *other != page).collect();
        for at in 0..number {
            let rest = others.len() - at;
            others.swap(at, at + self.below(rest));
        }
        others.truncate(number);
        others
    }

    fn median(&mut self, number: usize) -> u64 {
        let mut times: Vec<u64> = (0..31)
            .map(|_| {
                let page = self.below(self.pages.len());
                let others = self.others(page, number);
                self.after(page, &others)
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    }

    fn look(&mut self, of_the_cache: usize, trials: u32) -> Seen {
        let there = self.median(BEFORE);
        let gone = self.median(self.pages.len() - 1);
        let mut seen = Seen {
            there,
            gone,
            kept: 0,
            lost: 0,
            between: 0,
        };
        let part = gone.saturating_sub(there) * 3 / 10;
        for _ in 0..trials {
            let page = self.below(self.pages.len());
            let others = self.others(page, of_the_cache);
            match self.after(page, &others) {
                time if time > gone * BROKEN_INTO => {}
                time if time <= there + part => seen.kept += 1,
                time if time >= gone - part => seen.lost += 1,
                _ => seen.between += 1,
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(gone: u64, kept: u32, lost: u32, between: u32) -> Seen {
        Seen {
            there: 50,
            gone,
            kept,
            lost,
            between,
        }
    }

    #[test]
    fn colors_show_where_trials_end_one_way_or_the_other() {
        assert!(seen(130, 180, 170, 50).shows_colors());
        // Nothing is told apart, nothing is driven out, nothing stays, lines go their own ways.
        assert!(!seen(70, 180, 170, 50).shows_colors());
        assert!(!seen(130, 370, 10, 20).shows_colors());
        assert!(!seen(130, 10, 370, 20).shows_colors());
        assert!(!seen(130, 60, 60, 280).shows_colors());
        assert!(!seen(130, 0, 0, 0).shows_colors());
    }

    #[test]
    fn what_works_in_the_end_works() {
        let mut left = 4;
        let done = works(
            || false,
            || {
                left -= 1;
                (left == 0).then_some(7).ok_or("not yet".to_owned())
            },
        );
        assert_eq!(done.unwrap(), 7);
    }

    #[test]
    fn what_others_disturb_could_not_run() {
        let why = works::<()>(|| false, || Err("not today".to_owned())).unwrap_err();
        assert_eq!(why.to_string(), "not today");
    }

    #[test]
    #[should_panic(expected = "as wholes, and still: none found")]
    fn what_fails_in_spite_of_colors_is_a_defect() {
        let _ = works::<()>(|| true, || Err("none found".to_owned()));
    }
}
