//! What happens to the cache between two activations: floods of all colors, of others only, or of
//! none (001 §5.1, §5.3).

use crate::prepared::Prepared;
use machine::clock::Clock;
use machine::memory::LINE;
use model::{Error, Result};
use partition::geometry::PAGE;
use partition::{Colors, Large, LargeWindow, View};
use serde::Serialize;
use std::hint::black_box;

/// What happens before an activation of a task, or after a time slice of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Nothing.
    Alone,
    /// A flood of all colors, most of all of those of the task's data.
    Unpartitioned,
    /// As large a flood of all colors but the task's: of its data, its code and its stack.
    Partitioned,
    /// The flood of all colors, page by page; those of the task's colors are read where the other
    /// writes them (001 §5.3).
    SingleWriter,
    /// As large a flood of all colors but those of the task's data.
    DataOnly,
    /// Nothing, for as long as a flood lasts: what time alone takes.
    Waiting,
    /// The lowest level is emptied and nothing else: what no color keeps.
    FirstLevel,
    /// One line of each of many small pages is read: translations of addresses are lost, and hardly
    /// any of the cache.
    Translations,
}

/// All scenarios, in the order in which they are shown.
pub const SCENARIOS: [Scenario; 8] = [
    Scenario::Alone,
    Scenario::Unpartitioned,
    Scenario::Partitioned,
    Scenario::SingleWriter,
    Scenario::DataOnly,
    Scenario::Waiting,
    Scenario::FirstLevel,
    Scenario::Translations,
];

impl Scenario {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Alone => "alone",
            Scenario::Unpartitioned => "unpartitioned",
            Scenario::Partitioned => "partitioned",
            Scenario::SingleWriter => "single-writer",
            Scenario::DataOnly => "data-only",
            Scenario::Waiting => "waiting",
            Scenario::FirstLevel => "first-level",
            Scenario::Translations => "translations",
        }
    }
}

/// Memory that floods, and which pages of it.
#[derive(Debug)]
pub struct Flood<'a> {
    memory: &'a mut Large,
    readable: &'a LargeWindow,
    everywhere: Vec<u32>,
    beside_all: Vec<u32>,
    beside_data: Vec<u32>,
    /// For each page of `everywhere`: what is read in its place by whoever may not write the task's
    /// colors.
    read_instead: Vec<Option<u32>>,
}

impl<'a> Flood<'a> {
    /// For a task with its data in some colors, its code and stack in the `rest`; `watched` are the
    /// sentinel's.
    ///
    /// # Errors
    /// No memory was made that can only be read, or it has too few pages of the task's colors.
    pub fn new(
        prepared: &'a mut Prepared<'_>,
        data: &Colors,
        rest: &Colors,
        watched: &Colors,
    ) -> Result<Self> {
        let everywhere = prepared.everywhere(data, watched);
        let own = data.union(rest);
        let readable = prepared.readable.as_ref().ok_or_else(|| {
            Error::new("no memory was made that can only be read: a defect of this program")
        })?;
        let read_instead = prepared.read_instead(&everywhere, &own, readable)?;
        let beside_all = prepared.beside(data, watched, &own);
        let beside_data = prepared.beside(data, watched, data);
        Ok(Flood {
            memory: &mut prepared.flood,
            readable,
            everywhere,
            beside_all,
            beside_data,
            read_instead,
        })
    }

    /// How much of it is in large pages.
    pub fn large(&self) -> model::Bytes {
        self.memory.large
    }

    /// The flood of a scenario, where it has one; calls `each` after every page.
    pub fn run(&mut self, scenario: Scenario, mut each: impl FnMut()) {
        match scenario {
            Scenario::Unpartitioned => write(self.memory.bytes(), &self.everywhere, each),
            Scenario::Partitioned => write(self.memory.bytes(), &self.beside_all, each),
            Scenario::DataOnly => write(self.memory.bytes(), &self.beside_data, each),
            Scenario::SingleWriter => {
                for (page, instead) in self.everywhere.iter().zip(&self.read_instead) {
                    match instead {
                        Some(page) => read(self.readable.bytes(), &[*page], &mut each),
                        None => write(self.memory.bytes(), &[*page], &mut each),
                    }
                }
            }
            Scenario::Alone | Scenario::Waiting | Scenario::FirstLevel | Scenario::Translations => {
            }
        }
    }
}

/// Lines of a page.
const LINES: usize = PAGE / LINE;
/// Words of a line.
const WORDS: usize = LINE / size_of::<u64>();

/// The n-th line of a page to visit: all of them, by an odd stride that no prefetcher follows. What
/// a prefetcher brings in ahead of a scan does not drive out what is in use (measured:
/// [`partition::probe::read`]).
const fn scattered(n: usize) -> usize {
    (n * 37 + 11) % LINES
}

/// Reads and writes a word of every line of these pages of a memory; calls `each` after every page.
#[inline(never)]
pub fn write(memory: &mut [u8], pages: &[u32], mut each: impl FnMut()) {
    let words: &mut [u64] = bytemuck::cast_slice_mut(memory);
    for page in pages {
        let Some(page) = words.chunks_exact_mut(LINES * WORDS).nth(*page as usize) else {
            continue;
        };
        for n in 0..LINES {
            let word = &mut page[scattered(n) * WORDS];
            *word = black_box(*word).wrapping_add(1);
        }
        each();
    }
}

/// The same of all pages.
pub fn write_all(view: &mut View, each: impl FnMut()) {
    let pages: Vec<u32> = (0..(view.size().get() / PAGE as u64) as u32).collect();
    write(view.bytes(), &pages, each);
}

/// Reads a word of every line of these pages of a memory; calls `each` after every page.
#[inline(never)]
pub fn read(memory: &[u8], pages: &[u32], mut each: impl FnMut()) {
    let words: &[u64] = bytemuck::cast_slice(memory);
    for page in pages {
        let Some(page) = words.chunks_exact(LINES * WORDS).nth(*page as usize) else {
            continue;
        };
        for n in 0..LINES {
            black_box(page[scattered(n) * WORDS]);
        }
        each();
    }
}

/// Reads a word of every page, a different line from page to page; calls `each` after every page.
#[inline(never)]
pub fn touch(view: &mut View, mut each: impl FnMut()) {
    let words: &[u64] = bytemuck::cast_slice(view.bytes());
    for (place, page) in words.chunks_exact(LINES * WORDS).enumerate() {
        black_box(page[place % LINES * WORDS]);
        each();
    }
}

/// The longest of many small steps: where it is much longer than usual, somebody else had the
/// processor meanwhile, such as an interrupt or a hypervisor, which nothing else shows.
#[derive(Debug)]
pub struct Steps<C> {
    clock: C,
    last: u64,
    longest: u64,
}

impl<C: Clock> Steps<C> {
    /// The first step begins now.
    pub fn begin(clock: C) -> Self {
        Steps {
            clock,
            last: clock.glance(),
            longest: 0,
        }
    }

    /// A step ends, the next one begins.
    #[inline]
    pub fn step(&mut self) {
        let now = self.clock.glance();
        self.longest = self.longest.max(now.saturating_sub(self.last));
        self.last = now;
    }

    /// The longest one so far, in ticks.
    pub fn longest(&self) -> u64 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_page_is_visited_once() {
        let mut seen: Vec<usize> = (0..LINES).map(scattered).collect();
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(i, n)| i == *n));
    }

    #[test]
    fn floods_write_their_pages_and_no_others() {
        let mut memory = vec![0_u64; 4 * PAGE / 8];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        let mut pages = 0;
        write(bytes, &[1, 3, 99], || pages += 1);
        assert_eq!(pages, 2);
        let written: Vec<bool> = memory
            .chunks(PAGE / 8)
            .map(|page| page.iter().step_by(WORDS).all(|w| *w == 1))
            .collect();
        assert_eq!(written, [false, true, false, true]);
        assert!(memory[..PAGE / 8].iter().all(|w| *w == 0));
    }

    #[test]
    fn the_longest_step_is_kept() {
        let mut steps = Steps::begin(machine::clock::Monotonic);
        steps.step();
        std::thread::sleep(std::time::Duration::from_millis(2));
        steps.step();
        let longest = steps.longest();
        steps.step();
        assert!(
            longest >= 2_000_000 && steps.longest() >= longest,
            "{longest}"
        );
    }
}
