//! How a cache acts: what it does with writes, which line it replaces, what it shares with the
//! caches before it, what it costs (001 Table 1, §4.1 and §5.2; 004 Table I).
//!
//! All of it is optional: a machine does not say most of it, and schedulers need none. Room
//! `cache` says which value it takes where a platform has none.

use crate::error::{Error, Result};
use crate::time::{Duration, ns};
use crate::words;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writing {
    /// It stays in the cache; the next level gets the line when it is replaced.
    Back,
    /// It goes on to the next level at once.
    Through,
}

/// Which line of a set makes room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The one that was used least recently.
    Lru,
    /// The one that a binary tree of the last uses points to.
    Plru,
    /// The one that was filled first.
    Fifo,
    /// Any, with equal chance.
    Random,
}

/// What a cache holds of the lines in the caches before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inclusion {
    /// All: a line that leaves it leaves the caches before it, too.
    Inclusive,
    /// None: it holds lines that left the caches before it.
    Exclusive,
    /// Whatever was fetched through it and was not replaced since.
    Neither,
}

/// Which address chooses the set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Indexing {
    /// The one in memory: page colors act.
    Physical,
    /// The one in the program.
    Virtual,
}

/// What a cache fetches before it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefetch {
    /// The line behind one that missed.
    NextLine,
    /// The line that comes next where the last ones of a page were equally far apart.
    Stride,
}

/// A time in the best and in the worst case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Where the memory system was not busy (001 §4.1).
    #[serde(rename = "optimistic_ns", with = "ns")]
    pub optimistic: Duration,
    /// Where it was, with a fill.
    #[serde(rename = "pessimistic_ns", with = "ns")]
    pub pessimistic: Duration,
}

/// How a cache acts. What is not known is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Strategy {
    /// What becomes of a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Writing>,
    /// Is a line fetched that is written and is not there?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocate: Option<bool>,
    /// Which line makes room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,
    /// What it holds of the lines in the caches before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inclusion: Option<Inclusion>,
    /// Which address chooses the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<Indexing>,
    /// What it fetches before it is asked; `None`: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetch>,
    /// What an access takes that it serves, where it is the first cache of its processor; that of
    /// others does not count, as their `fill` has all of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<Price>,
    /// How long an access waits that it and the caches before it do not serve, and the next one
    /// does: the whole delay, not what this level adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Price>,
    /// What it takes to write a line to the next level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_back: Option<Price>,
    /// How much longer it takes to get a line that another processor has changed, where a common
    /// cache gives it: that of the first cache of the processor that asks counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervention: Option<Price>,
    /// What it takes to write one access through to the next level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<Price>,
}

impl Strategy {
    /// Is nothing known of it?
    pub fn is_unknown(&self) -> bool {
        *self == Strategy::default()
    }

    /// The prices by the keys that stand for them in a platform file.
    pub fn prices(&self) -> [(&'static str, Option<Price>); 5] {
        [
            ("hit", self.hit),
            ("fill", self.fill),
            ("write_back", self.write_back),
            ("intervention", self.intervention),
            ("word", self.word),
        ]
    }
}

impl Price {
    /// The same in the best and the worst case.
    pub const fn always(time: Duration) -> Self {
        Price {
            optimistic: time,
            pessimistic: time,
        }
    }

    /// Both, one after the other.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Price {
            optimistic: self.optimistic.saturating_add(other.optimistic),
            pessimistic: self.pessimistic.saturating_add(other.pessimistic),
        }
    }

    /// Of two times, the best case first.
    ///
    /// # Errors
    /// The best case takes longer than the worst.
    pub fn new(optimistic: Duration, pessimistic: Duration) -> Result<Self> {
        match optimistic <= pessimistic {
            true => Ok(Price {
                optimistic,
                pessimistic,
            }),
            false => Err(Error::new(format!(
                "the optimistic price {optimistic} is above the pessimistic price {pessimistic}"
            ))
            .remedy("write the optimistic one first")),
        }
    }
}

/// Buffers of page translations: each processor has two alike, one for instructions and one for
/// data, with LRU in each set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translations {
    /// Pages that one holds.
    pub entries: u32,
    /// Its ways; as many as `entries`: any page in any place.
    pub ways: u32,
    /// How long an access waits whose page is not there, beside what it waits for caches. 001 §4.2:
    /// about two misses of a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss: Option<Price>,
}

impl Translations {
    /// The most entries, and the most ways.
    const MOST: (u32, u32) = (1 << 16, 4096);

    /// So many entries in sets of so many ways.
    ///
    /// # Errors
    /// None, too many, or sets that are no power of two.
    pub fn new(entries: u32, ways: u32, miss: Option<Price>) -> Result<Self> {
        let (most, most_ways) = Self::MOST;
        let fits = (1..=most).contains(&entries) && (1..=most_ways).contains(&ways);
        match fits && entries.is_multiple_of(ways) && (entries / ways).is_power_of_two() {
            true => Ok(Translations {
                entries,
                ways,
                miss,
            }),
            false => Err(
                Error::new(format!("{entries} entries in sets of {ways} are no TLB")).remedy(
                    format!("give at most {most} entries, in sets of a power of two"),
                ),
            ),
        }
    }

    /// Its sets.
    pub fn sets(&self) -> u32 {
        self.entries / self.ways
    }
}

/// Names of a set of words and their parser.
macro_rules! words {
    ($name:ident, $what:literal, $($variant:ident = $text:literal),+) => {
        impl $name {
            /// Every one of them.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// As platforms write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text),+
                }
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                words::find($name::ALL, $name::name, $what, text)
            }
        }
    };
}

words!(
    Writing,
    "write strategy",
    Back = "back",
    Through = "through"
);
words!(
    Replacement,
    "replacement",
    Lru = "lru",
    Plru = "plru",
    Fifo = "fifo",
    Random = "random"
);
words!(
    Inclusion,
    "inclusion",
    Inclusive = "inclusive",
    Exclusive = "exclusive",
    Neither = "neither"
);
words!(
    Indexing,
    "indexing",
    Physical = "physical",
    Virtual = "virtual"
);
words!(
    Prefetch,
    "prefetcher",
    NextLine = "next-line",
    Stride = "stride"
);
