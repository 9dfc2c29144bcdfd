//! What the tasks of 004 §IV-A touch: places drawn with replacement, and an array line by line.
//!
//! Each place is drawn by a generator that the task has on its heap (004 Fig. 9), so that every draw
//! reads and changes the generator's line, too.

use cache::Kind;
use simulate::Accesses;

/// Bytes of what is read and written: an `int`.
const INT: u64 = 4;
/// Bytes of a line (004 §IV-A).
const LINE: u64 = 64;
/// One access of so many writes.
const WRITE_EVERY: u64 = 5;

/// Pages of a task by their numbers in memory.
pub(super) struct Pages {
    pages: Vec<u64>,
    page: u64,
}

impl Pages {
    pub(super) fn new(pages: Vec<u64>, page: u64) -> Self {
        Pages { pages, page }
    }

    #[inline]
    fn address(&self, offset: u64) -> u64 {
        self.pages[(offset / self.page) as usize] * self.page + offset % self.page
    }
}

/// Numbers from a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Stream(u64);

impl Stream {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below this number.
    #[inline]
    fn below(&mut self, count: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(count);
        (wide >> 64) as u64
    }
}

/// Jobs that draw places with replacement: four reads, then a write. Before each, the generator is
/// read and changed.
pub(super) struct Drawing {
    memory: Pages,
    generator: u64,
    ints: u64,
    count: u64,
    seed: u64,
    stream: Stream,
    done: u64,
}

impl Drawing {
    /// Over `size` bytes, with `count` accesses a job; the generator lies at an address in memory.
    pub(super) fn new(memory: Pages, generator: u64, size: u64, count: u64, seed: u64) -> Self {
        Drawing {
            memory,
            generator,
            ints: (size / INT).max(1),
            count,
            seed,
            stream: Stream(seed),
            done: 0,
        }
    }
}

impl Accesses for Drawing {
    fn count(&self) -> u64 {
        self.count
    }

    fn writes(&self) -> bool {
        true
    }

    fn begin(&mut self, number: u64) {
        self.stream = Stream(Stream(self.seed ^ number).next());
        self.done = 0;
    }

    #[inline]
    fn next(&mut self) -> (u64, Kind) {
        self.done += 1;
        if self.done % 2 == 1 {
            return (self.generator, Kind::Modify);
        }
        let kind = match self.done / 2 % WRITE_EVERY {
            0 => Kind::Write,
            _ => Kind::Read,
        };
        let offset = self.stream.below(self.ints) * INT;
        (self.memory.address(offset), kind)
    }
}

/// Jobs that read and write an array line by line, from a random one on in each period.
pub(super) struct Going {
    memory: Pages,
    lines: u64,
    count: u64,
    seed: u64,
    at: u64,
}

impl Going {
    /// Over `size` bytes, with `count` accesses a job.
    pub(super) fn new(memory: Pages, size: u64, count: u64, seed: u64) -> Self {
        Going {
            memory,
            lines: (size / LINE).max(1),
            count,
            seed,
            at: 0,
        }
    }
}

impl Accesses for Going {
    fn count(&self) -> u64 {
        self.count
    }

    fn writes(&self) -> bool {
        true
    }

    fn begin(&mut self, number: u64) {
        self.at = Stream(self.seed ^ number).below(self.lines);
    }

    #[inline]
    fn next(&mut self) -> (u64, Kind) {
        let address = self.memory.address(self.at * LINE);
        self.at += 1;
        if self.at == self.lines {
            self.at = 0;
        }
        (address, Kind::Modify)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pages() -> Pages {
        Pages::new(vec![7, 3], 4096)
    }

    #[test]
    fn a_fifth_of_what_is_drawn_is_written_and_places_come_again() {
        let mut drawing = Drawing::new(pages(), 64, 8192, 10_000, 1);
        drawing.begin(0);
        let both: Vec<(u64, Kind)> = (0..10_000).map(|_| drawing.next()).collect();
        let generator = both.iter().step_by(2);
        assert!(generator.copied().all(|seen| seen == (64, Kind::Modify)));
        let all: Vec<(u64, Kind)> = both.into_iter().skip(1).step_by(2).collect();
        let writes = all.iter().filter(|(_, kind)| *kind == Kind::Write).count();
        assert_eq!(writes, 1000);
        let places: BTreeSet<u64> = all.iter().map(|(address, _)| *address).collect();
        assert!(places.len() < 2048, "with replacement some never come");
        assert!(places.len() > 1500);
        assert!(
            places
                .iter()
                .all(|a| [7, 3].contains(&(a / 4096)) && a % 4 == 0)
        );
        let again: Vec<u64> = {
            drawing.begin(0);
            (0..200).map(|_| drawing.next().0).collect()
        };
        let places = all[..100].iter().map(|(a, _)| *a);
        assert!(places.eq(again.into_iter().skip(1).step_by(2)));
        drawing.begin(1);
        drawing.next();
        assert_ne!(all[0].0, drawing.next().0, "another job draws others");
    }

    #[test]
    fn an_array_is_gone_through_line_by_line_from_a_random_place() {
        let mut going = Going::new(pages(), 8192, 300, 5);
        let begins: BTreeSet<u64> = (0..20)
            .map(|number| {
                going.begin(number);
                going.next().0
            })
            .collect();
        assert!(begins.len() > 10, "periods begin at different places");
        going.begin(0);
        let lines: BTreeSet<u64> = (0..128).map(|_| going.next().0 / 64).collect();
        assert_eq!(lines.len(), 128, "each line once");
    }
}
