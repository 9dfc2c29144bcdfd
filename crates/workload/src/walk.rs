//! Walking a working set, line by line: in order, at random, or along pointers; some of the lines are written.
//!
//! A line is 64 bytes. At random: in the order of a full-period congruential generator, so that the order takes no memory
//! and the addresses are known ahead (many accesses are under way at once). Along pointers: each line says where the
//! next one is, in one random cycle through all of them, so that every access waits for the one before it.

use crate::Units;
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

#[repr(align(64))]
#[derive(Clone, Copy, Default)]
struct Line {
    next: u32,
    written: u32,
}

/// Walks; a unit is the visit of one line.
pub struct Walk {
    lines: Vec<Line>,
    pattern: Pattern,
    /// How much of a write comes due with every line, in parts of [`WHOLE`].
    write_part: u32,
    due: u32,
    at: u32,
    /// Modulus of the generator less one: the smallest power of two that is no less than the number of lines, less one.
    mask: u32,
}

impl Walk {
    /// A working set of this size (at least one line), of which `write_ratio` (between 0 and 1) is written. Its memory is
    /// touched when this returns.
    pub fn new(size: Bytes, write_ratio: f64, pattern: Pattern, seed: u64) -> Self {
        let count = u32::try_from(size.get().div_ceil(LINE))
            .unwrap_or(u32::MAX)
            .max(1);
        let mut lines = vec![Line::default(); count as usize];
        let mut order: Vec<u32> = (0..count).collect();
        if pattern == Pattern::Chase {
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        }
        for (place, line) in order.iter().enumerate() {
            lines[*line as usize].next = order[(place + 1) % order.len()];
        }
        Walk {
            lines,
            pattern,
            write_part: (write_ratio.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32,
            due: 0,
            at: 0,
            mask: count.checked_next_power_of_two().map_or(u32::MAX, |p| p - 1),
        }
    }

    /// The next line at random: every line comes once before any comes again.
    #[inline]
    fn drawn(&mut self) -> u32 {
        loop {
            // Full period for a modulus that is a power of two: odd increment, multiplier ≡ 1 (mod 4).
            self.at = self.at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & self.mask;
            if (self.at as usize) < self.lines.len() {
                return self.at;
            }
        }
    }

    #[inline]
    fn visit(&mut self, index: u32) {
        self.due += self.write_part;
        let Some(line) = self.lines.get_mut(index as usize) else {
            return;
        };
        if self.due >= WHOLE {
            self.due -= WHOLE;
            line.written = line.written.wrapping_add(1);
        } else {
            black_box(line.written);
        }
    }

    fn step(&mut self) {
        let index = match self.pattern {
            Pattern::Random => self.drawn(),
            Pattern::Sequential | Pattern::Chase => {
                self.at = self.lines[self.at as usize].next;
                self.at
            }
        };
        self.visit(index);
    }
}

impl Units for Walk {
    fn units(&mut self, count: u64, stop: &AtomicBool) {
        let mut left = count;
        while left > 0 && !stop.load(Ordering::Relaxed) {
            let now = left.min(LOOK_EVERY);
            for _ in 0..now {
                self.step();
            }
            left -= now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_line_is_visited_once_a_round_and_the_ratio_is_kept(
            lines in 1u64..300, ratio in 0u32..=8, pattern in prop_oneof![
                Just(Pattern::Sequential), Just(Pattern::Random), Just(Pattern::Chase),
            ], seed in any::<u64>(),
        ) {
            let mut walk = Walk::new(Bytes::new(lines * LINE), f64::from(ratio) / 8.0, pattern, seed);
            prop_assert_eq!(walk.lines.len() as u64, lines);
            let mut seen = vec![0; lines as usize];
            for _ in 0..3 * lines {
                walk.step();
                seen[walk.at as usize] += 1;
            }
            prop_assert!(seen.iter().all(|s| *s == 3), "{:?}", seen);
            let written: u64 = walk.lines.iter().map(|l| u64::from(l.written)).sum();
            prop_assert_eq!(written, 3 * lines * u64::from(ratio) / 8);
        }
    }
}
