//! Walking a working set, line by line: in order, at random, or along pointers; some of the lines
//! are written.
//!
//! A line is 64 bytes. At random: in the order of a full-period congruential generator, so that the
//! order takes no memory and the addresses are known ahead (many accesses are under way at once).
//! Along pointers: each line says where the next one is, in one random cycle through all of them,
//! so that every access waits for the one before it.

use crate::{Touch, Units};
use machine::touched::Apart;
use model::{Bytes, Pattern};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a line.
pub const LINE: u64 = 64;
/// Lines between two looks at whether to stop.
const LOOK_EVERY: u64 = 1024;
/// What a write ratio of one is.
const WHOLE: u32 = 1 << 16;

/// One line of a working set. Any bytes are a valid one.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default, Debug)]
pub struct Line {
    /// The line that comes after it.
    next: u32,
    /// How often it was written.
    written: u32,
    rest: [u32; 14],
}

/// Where a working set lies: memory that is its owner's alone, such as memory of one color.
pub trait Store: Send {
    /// All of its lines, as many every time.
    fn lines(&mut self) -> &mut [Line];
}

impl Store for Vec<Line> {
    fn lines(&mut self) -> &mut [Line] {
        self
    }
}

impl Store for Apart<Line> {
    fn lines(&mut self) -> &mut [Line] {
        self.values()
    }
}

/// The next place at random: every line comes once before any comes again.
#[inline]
fn drawn(mut at: u32, mask: u32, count: usize) -> u32 {
    loop {
        // Full period for a modulus that is a power of two: odd increment, multiplier ≡ 1 (mod 4).
        at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & mask;
        if (at as usize) < count {
            return at;
        }
    }
}

/// Which line is visited next, and whether it is written: the one description of a walk, for one that
/// runs and for what a model is told.
#[derive(Clone, Debug)]
struct Course {
    lines: u32,
    pattern: Pattern,
    /// Modulus of the generator less one: the smallest power of two that is no less than the number
    /// of lines, less one.
    mask: u32,
    /// How much of a write comes due with every line, in parts of [`WHOLE`].
    write_part: u32,
    due: u32,
    at: u32,
}

impl Course {
    fn new(lines: u32, write_ratio: f64, pattern: Pattern) -> Self {
        let power = lines.max(1).checked_next_power_of_two();
        Course {
            lines,
            pattern,
            mask: power.map_or(u32::MAX, |power| power - 1),
            write_part: (write_ratio.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32,
            due: 0,
            at: 0,
        }
    }

    /// Goes on to the next line, which `linked` says where lines say it themselves. Is it written?
    ///
    /// There is at least one line.
    #[inline(always)]
    fn go_on(&mut self, linked: impl FnOnce(u32) -> u32) -> bool {
        self.at = match self.pattern {
            Pattern::Random => drawn(self.at, self.mask, self.lines as usize),
            Pattern::Sequential | Pattern::Chase => linked(self.at),
        };
        self.due += self.write_part;
        let write = self.due >= WHOLE;
        if write {
            self.due -= WHOLE;
        }
        write
    }
}

/// Walks; a unit is the visit of one line.
pub struct Walk {
    store: Box<dyn Store>,
    course: Course,
}

impl Walk {
    /// A working set of this size (at least one line), of which `write_ratio` (between 0 and 1) is
    /// written. Its memory is touched when this returns.
    pub fn new(size: Bytes, write_ratio: f64, pattern: Pattern, seed: u64) -> Self {
        Self::over(
            Box::new(vec![Line::default(); line_count(size, LINE) as usize]),
            write_ratio,
            pattern,
            seed,
        )
    }

    /// As [`Walk::new`], over memory that the caller gives: all of it is the working set. A store
    /// without lines is walked by doing nothing.
    pub fn over(mut store: Box<dyn Store>, write_ratio: f64, pattern: Pattern, seed: u64) -> Self {
        let lines = store.lines();
        let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        for (line, next) in cycle(count, pattern, seed) {
            lines[line as usize] = Line {
                next,
                ..Line::default()
            };
        }
        Walk {
            store,
            course: Course::new(count, write_ratio, pattern),
        }
    }

    fn steps(&mut self, number: u64) {
        let lines = self.store.lines();
        if lines.is_empty() {
            return;
        }
        for _ in 0..number {
            let write = self.course.go_on(|at| lines[at as usize].next);
            let line = &mut lines[self.course.at as usize];
            if write {
                line.written = line.written.wrapping_add(1);
            } else {
                black_box(line.written);
            }
        }
    }
}

/// The accesses of a walk as a model of caches is told of them: the same lines in the same order as
/// [`Walk`] visits, and the same ones written, where a line has 64 bytes; lines of as many bytes as
/// the model's in the same kind of order where those are shorter, so that all are visited.
#[derive(Clone, Debug)]
pub struct Steps {
    course: Course,
    line: u64,
    /// Along pointers: by line the next one.
    next: Vec<u32>,
}

impl Steps {
    /// Of a walk with these options, in a model with lines of so many bytes. Working sets of more
    /// than 2^32 lines are walked as such of that size.
    pub fn new(size: Bytes, write_ratio: f64, pattern: Pattern, seed: u64, line: u64) -> Self {
        let line = line.clamp(1, LINE);
        let lines = line_count(size, line);
        let next = match pattern {
            Pattern::Chase => {
                let mut next = vec![0; lines as usize];
                for (from, to) in cycle(lines, pattern, seed) {
                    next[from as usize] = to;
                }
                next
            }
            Pattern::Sequential | Pattern::Random => Vec::new(),
        };
        Steps {
            course: Course::new(lines, write_ratio, pattern),
            line,
            next,
        }
    }

    /// How many lines the working set has.
    pub const fn lines(&self) -> u32 {
        self.course.lines
    }

    /// Goes on from this line; none of what writes had come due is left.
    pub fn begin(&mut self, at: u32) {
        self.course.at = at % self.course.lines;
        self.course.due = 0;
    }

    /// The next access.
    #[inline]
    pub fn step(&mut self) -> Touch {
        let (lines, next) = (self.course.lines, &self.next);
        let write = self.course.go_on(|at| match next.get(at as usize) {
            Some(next) => *next,
            None if at + 1 == lines => 0,
            None => at + 1,
        });
        Touch {
            offset: u64::from(self.course.at) * self.line,
            bytes: size_of::<u32>() as u32,
            write,
        }
    }
}

/// Lines of so many bytes in a working set, at least one.
fn line_count(size: Bytes, line: u64) -> u32 {
    u32::try_from(size.get().div_ceil(line))
        .unwrap_or(u32::MAX)
        .max(1)
}

/// Which line comes after which: in order, or in a random cycle through all.
fn cycle(lines: u32, pattern: Pattern, seed: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut order: Vec<u32> = (0..lines).collect();
    if pattern == Pattern::Chase {
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    }
    let count = lines as usize;
    (0..count).map(move |place| (order[place], order[(place + 1) % count]))
}

impl Units for Walk {
    fn units(&mut self, count: u64, stop: &AtomicBool) {
        let mut left = count;
        while left > 0 && !stop.load(Ordering::Relaxed) {
            let now = left.min(LOOK_EVERY);
            self.steps(now);
            left -= now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 4 KiB are 256 lines of the 486's 16 bytes; longer lines are visited by parts of 64 bytes.
    #[test]
    fn all_lines_of_a_model_are_visited() {
        for (line, visited) in [(16, 256), (32, 128), (64, 64), (128, 64)] {
            for pattern in [Pattern::Sequential, Pattern::Random, Pattern::Chase] {
                let mut steps = Steps::new(Bytes::from_kib(4), 0.0, pattern, 1, line);
                assert_eq!(steps.lines(), visited);
                let places = (0..visited).map(|_| steps.step().offset);
                let mut places: Vec<u64> = places.collect();
                places.sort_unstable();
                let all: Vec<u64> = (0..u64::from(visited))
                    .map(|n| n * line.min(LINE))
                    .collect();
                assert_eq!(places, all, "{line} {pattern:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_line_is_visited_once_a_round_and_the_ratio_is_kept(
            lines in 1u64..300,
            ratio in 0u32..=8,
            pattern in prop_oneof![
                Just(Pattern::Sequential),
                Just(Pattern::Random),
                Just(Pattern::Chase),
            ],
            seed in any::<u64>(),
        ) {
            let mut walk = Walk::new(
                Bytes::new(lines * LINE),
                f64::from(ratio) / 8.0,
                pattern,
                seed,
            );
            prop_assert_eq!(walk.store.lines().len() as u64, lines);
            let mut seen = vec![0; lines as usize];
            let mut told = Steps::new(
                Bytes::new(lines * LINE),
                f64::from(ratio) / 8.0,
                pattern,
                seed,
                LINE,
            );
            for _ in 0..3 * lines {
                let written = |walk: &mut Walk, line: u64| {
                    walk.store.lines()[line as usize].written
                };
                let touch = told.step();
                let line = touch.offset / LINE;
                let before = written(&mut walk, line);
                walk.steps(1);
                // What the model is told of is what was done.
                prop_assert_eq!(u64::from(walk.course.at), line);
                prop_assert_eq!(written(&mut walk, line) - before, u32::from(touch.write));
                seen[walk.course.at as usize] += 1;
            }
            prop_assert!(seen.iter().all(|s| *s == 3), "{:?}", seen);
            let written: u64 = walk
                .store
                .lines()
                .iter()
                .map(|l| u64::from(l.written))
                .sum();
            prop_assert_eq!(written, 3 * lines * u64::from(ratio) / 8);
        }
    }
}
