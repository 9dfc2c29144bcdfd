//! Where pages of a program lie in memory, and which colors they have there (001 §3.1 and §3.2).
//!
//! The color of a page frame is the part of its number that chooses the set of a physically indexed
//! cache. In plain coloring a frame has the color of its number, so that a task with half of the
//! colors has half of the memory. In free coloring frame *a* answers at the addresses
//! *a*‖*color*‖*offset* for every color: any frame may have any color. Tags are wider by the width
//! of the color, and of *n* bits of address memory has at most 2^(*n* − width).

use model::{Color, Error, Result};
use std::collections::HashMap;

/// How frames get their color.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coloring {
    /// By their number.
    Plain,
    /// By the address that they are used at.
    Free,
}

/// Memory in page frames, taken one by one.
#[derive(Clone, Debug)]
pub struct Memory {
    coloring: Coloring,
    frames: u64,
    colors: u64,
    /// Free coloring: how many frames are taken. Plain: of each color.
    taken: Vec<u64>,
}

impl Memory {
    /// So many frames for a cache of so many colors.
    ///
    /// # Errors
    /// No colors or no frames, or colors that are no power of two; free coloring where the
    /// addresses would not fit into 52 bits of frame number.
    pub fn new(coloring: Coloring, frames: u64, colors: u64) -> Result<Self> {
        if !colors.is_power_of_two() {
            return Err(Error::new(format!("{colors} colors"))
                .remedy("a color is a part of an address: give a power of two"));
        }
        // Pages have 2^12 bytes at least, so that 52 bits of a number are addresses of 64 bits.
        let limit = (1 << 52) / colors;
        if frames < colors || frames > limit {
            return Err(Error::new(format!(
                "memory of {frames} frames does not fit {colors} colors"
            ))
            .remedy(format!(
                "give from {colors} to {limit} frames: free coloring halves what addresses reach \
                 with each bit of the color"
            )));
        }
        let counters = match coloring {
            Coloring::Plain => colors as usize,
            Coloring::Free => 1,
        };
        Ok(Memory {
            coloring,
            frames,
            colors,
            taken: vec![0; counters],
        })
    }

    /// Takes a frame of this color. Returns the number of the address at which it has it: the
    /// lowest bits are the color.
    ///
    /// # Errors
    /// None is left; there is no such color.
    pub fn take(&mut self, color: Color) -> Result<u64> {
        let own = self.check(color)?;
        let counter = match self.coloring {
            Coloring::Plain => &mut self.taken[own as usize],
            Coloring::Free => &mut self.taken[0],
        };
        let row = *counter;
        let number = row * self.colors + own;
        let there = match self.coloring {
            Coloring::Plain => number < self.frames,
            Coloring::Free => row < self.frames,
        };
        if !there {
            return Err(Error::new(format!("no frame of color {own} is left"))
                .remedy("give more memory, or more colors"));
        }
        *counter += 1;
        Ok(number)
    }

    /// The number of a color.
    ///
    /// # Errors
    /// There is no such color.
    fn check(&self, color: Color) -> Result<u64> {
        let own = u64::from(color.0);
        match own < self.colors {
            true => Ok(own),
            false => Err(Error::new(format!("there is no color {own}"))
                .remedy(format!("colors are 0 to {}", self.colors - 1))),
        }
    }

    /// How many frames nobody else can have once a task owns so many colors alone: those of its
    /// colors in plain coloring, and none in free coloring, where every frame can have the colors
    /// that are left.
    pub fn reserved(&self, colors: u64) -> u64 {
        match self.coloring {
            // The first colors have one frame more where the colors do not divide the frames.
            Coloring::Plain => {
                let rest = self.frames % self.colors;
                self.frames / self.colors * colors + rest.min(colors)
            }
            Coloring::Free => 0,
        }
    }

    /// The bits of an address that name a color: so much wider are the tags of a cache in free
    /// coloring.
    pub fn color_bits(&self) -> u32 {
        self.colors.trailing_zeros()
    }
}

/// Which frame the next new page gets.
#[derive(Clone, Debug)]
enum Choose {
    /// The one of its own number.
    Same,
    /// Any that is free, of the first `frames`.
    Random { frames: u64, state: u64 },
    /// One of these colors, in turn.
    Colored { memory: Memory, colors: Vec<Color> },
}

/// Where the pages of one address space lie.
#[derive(Clone, Debug)]
pub struct Pages {
    bits: u32,
    choose: Choose,
    frames: HashMap<u64, u64>,
    pages: HashMap<u64, u64>,
    /// The page of the last address and its frame.
    last: (u64, u64),
}

impl Pages {
    /// Every page lies at its own address, as the trace has it.
    ///
    /// # Errors
    /// The size is no power of two, or below 4 KiB.
    pub fn as_traced(size: u64) -> Result<Self> {
        Self::new(size, Choose::Same)
    }

    /// Pages of `size` bytes lie anywhere in the first `frames` frames; the same seed places them
    /// alike.
    ///
    /// # Errors
    /// As [`Pages::as_traced`]; no frames, or more than 2^40.
    pub fn random(size: u64, frames: u64, seed: u64) -> Result<Self> {
        if !(1..=1 << 40).contains(&frames) {
            return Err(Error::new(format!("memory of {frames} frames"))
                .remedy("give from 1 to 2^40 frames"));
        }
        Self::new(
            size,
            Choose::Random {
                frames,
                state: seed,
            },
        )
    }

    /// Pages get these colors in turn.
    ///
    /// # Errors
    /// As [`Pages::as_traced`]; no colors, or one that there is not.
    pub fn colored(size: u64, memory: Memory, colors: Vec<Color>) -> Result<Self> {
        if colors.is_empty() {
            return Err(Error::new("no colors are given").remedy("give at least one"));
        }
        for color in &colors {
            memory.check(*color)?;
        }
        Self::new(size, Choose::Colored { memory, colors })
    }

    fn new(size: u64, choose: Choose) -> Result<Self> {
        if !size.is_power_of_two() || size < 4096 {
            return Err(Error::new(format!("pages of {size} bytes"))
                .remedy("give a power of two from 4 KiB on"));
        }
        Ok(Pages {
            bits: size.trailing_zeros(),
            choose,
            frames: HashMap::new(),
            pages: HashMap::new(),
            last: (u64::MAX, 0),
        })
    }

    /// Does every page lie at its own address?
    pub fn is_as_traced(&self) -> bool {
        matches!(self.choose, Choose::Same)
    }

    /// Bytes of a page.
    pub fn size(&self) -> u64 {
        1 << self.bits
    }

    /// How many pages have a frame.
    pub fn used(&self) -> usize {
        self.frames.len()
    }

    /// The address in memory of an address of the program. A page that is new gets its frame.
    ///
    /// # Errors
    /// There is no frame for it.
    pub fn physical(&mut self, address: u64) -> Result<u64> {
        if self.is_as_traced() {
            return Ok(address);
        }
        let (page, offset) = (address >> self.bits, address & (self.size() - 1));
        if self.last.0 != page {
            self.last = (page, self.frame(page)?);
        }
        Ok(self.last.1 << self.bits | offset)
    }

    /// The address of the program that lies at an address in memory: itself where no page does.
    pub fn program(&self, physical: u64) -> u64 {
        match self.pages.get(&(physical >> self.bits)) {
            Some(page) => page << self.bits | physical & (self.size() - 1),
            None => physical,
        }
    }

    fn frame(&mut self, page: u64) -> Result<u64> {
        if let Some(frame) = self.frames.get(&page) {
            return Ok(*frame);
        }
        let used = self.frames.len() as u64;
        let frame = match &mut self.choose {
            Choose::Same => page,
            Choose::Random { frames, state } => {
                if used >= *frames {
                    return Err(full(*frames));
                }
                // From a random frame on, the first that is free.
                let mut frame = next(state) % *frames;
                while self.pages.contains_key(&frame) {
                    frame = (frame + 1) % *frames;
                }
                frame
            }
            Choose::Colored { memory, colors } => {
                let color = colors[(used % colors.len() as u64) as usize];
                memory.take(color)?
            }
        };
        self.frames.insert(page, frame);
        self.pages.insert(frame, page);
        Ok(frame)
    }
}

fn full(frames: u64) -> Error {
    Error::new(format!(
        "the program touches more pages than the {frames} frames of memory"
    ))
    .remedy("give more memory")
}

/// The next of a sequence of random numbers (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn color(n: u64) -> Color {
        Color(n.try_into().unwrap())
    }

    /// 001 §3.1: with half of the colors goes half of the memory. §3.2: with free coloring none.
    #[test]
    fn half_of_the_colors_reserve_half_of_the_memory_or_none() {
        let plain = Memory::new(Coloring::Plain, 1024, 64).unwrap();
        let free = Memory::new(Coloring::Free, 1024, 64).unwrap();
        assert_eq!((plain.reserved(32), free.reserved(32)), (512, 0));
        assert_eq!(free.color_bits(), 6);
    }

    #[test]
    fn plain_coloring_runs_out_of_a_color_and_free_coloring_of_memory() {
        let mut plain = Memory::new(Coloring::Plain, 64, 16).unwrap();
        let mut free = Memory::new(Coloring::Free, 64, 16).unwrap();
        for _ in 0..4 {
            assert_eq!(plain.take(color(3)).unwrap() % 16, 3);
        }
        plain.take(color(3)).unwrap_err();
        plain.take(color(4)).unwrap();
        let numbers: BTreeSet<u64> = (0..64).map(|_| free.take(color(3)).unwrap()).collect();
        assert!(numbers.len() == 64 && numbers.iter().all(|n| n % 16 == 3));
        free.take(color(4)).unwrap_err();
        free.take(color(16)).unwrap_err();
        // Before the first page, too: short traces would not come to it.
        let many = (0..17).map(color).collect();
        Pages::colored(4096, free, many).unwrap_err();
    }

    /// What addresses of 64 bits reach is less by the width of the color.
    #[test]
    fn free_coloring_limits_memory() {
        Memory::new(Coloring::Free, 1 << 46, 64).unwrap();
        Memory::new(Coloring::Free, (1 << 46) + 1, 64).unwrap_err();
    }

    #[test]
    fn addresses_are_mapped_to_one_frame_each_and_back() {
        let memory = Memory::new(Coloring::Free, 300, 16).unwrap();
        let colored = Pages::colored(4096, memory, vec![color(2), color(5)]).unwrap();
        let random = Pages::random(4096, 300, 7).unwrap();
        for mut pages in [colored, random] {
            let mut frames = BTreeSet::new();
            for page in 0..300 {
                let address = page * 0x51_3000 + 17;
                let physical = pages.physical(address).unwrap();
                assert_eq!(physical & 4095, address & 4095);
                assert_eq!(pages.program(physical), address);
                assert_eq!(pages.physical(address).unwrap(), physical);
                assert!(frames.insert(physical >> 12));
            }
            pages.physical(u64::MAX).unwrap_err();
        }
    }

    #[test]
    fn pages_get_their_colors_in_turn() {
        let memory = Memory::new(Coloring::Plain, 160, 16).unwrap();
        let mut pages = Pages::colored(4096, memory, vec![color(2), color(5)]).unwrap();
        let colors: Vec<u64> = (0..4)
            .map(|page| pages.physical(page << 12).unwrap() >> 12 & 15)
            .collect();
        assert_eq!(colors, [2, 5, 2, 5]);
    }
}
