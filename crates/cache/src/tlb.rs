//! Buffers of page translations: one of instructions and one of data for each processor.

use crate::array::Arrays;
use model::strategy::{Price, Replacement, Translations};
use model::{Error, Result};
use std::str::FromStr;

/// Entries and ways, written as `64:4`; all LRU. From a platform with what a miss costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(Translations);

impl From<Translations> for Size {
    fn from(of: Translations) -> Self {
        Size(of)
    }
}

impl FromStr for Size {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(format!("`{text}` is no TLB")).remedy(
                "write entries and ways such as `64:4`, at most 65536 entries in sets of a power \
                 of two; `64` is fully associative",
            )
        };
        let (entries, ways) = text.split_once(':').unwrap_or((text, text));
        let number = |text: &str| text.parse().map_err(|_| bad());
        Translations::new(number(entries)?, number(ways)?, None)
            .map(Size)
            .map_err(|_| bad())
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.0.entries, self.0.ways)
    }
}

impl Size {
    /// What a miss costs, where the platform says it.
    pub fn miss(self) -> Option<Price> {
        self.0.miss
    }
}

/// One buffer.
#[derive(Clone)]
pub struct Tlb {
    pages: Arrays,
    sets: u64,
    /// Pages looked up.
    pub accesses: u64,
    /// Pages that were not there.
    pub misses: u64,
}

impl Tlb {
    /// An empty one.
    pub fn new(size: Size) -> Self {
        let mut pages = Arrays::default();
        pages.add(
            size.0.sets() as usize,
            size.0.ways as usize,
            Replacement::Lru,
            0,
        );
        Tlb {
            pages,
            sets: u64::from(size.0.sets()),
            accesses: 0,
            misses: 0,
        }
    }

    /// Looks a page up. Was it there?
    pub fn translate(&mut self, page: u64) -> bool {
        self.accesses += 1;
        let set = (page & (self.sets - 1)) as usize;
        let there = self.pages.use_line(0, set, page).is_some();
        if !there {
            self.misses += 1;
            self.pages.put(0, set, page, 0);
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_beyond_its_entries_miss() {
        let mut tlb = Tlb::new("4:2".parse().unwrap());
        for page in [0, 1, 2, 3, 0, 1, 2, 3, 4, 0] {
            tlb.translate(page);
        }
        // Pages 0, 2 and 4 share two ways.
        assert_eq!((tlb.accesses, tlb.misses), (10, 6));
    }

    #[test]
    fn what_is_no_tlb_is_refused() {
        for text in ["", "0", "64:0", "64:5", "24:2", "x:4", "65537", "64:4:1"] {
            text.parse::<Size>().unwrap_err();
        }
        assert_eq!("64".parse::<Size>().unwrap().0.sets(), 1);
    }
}
