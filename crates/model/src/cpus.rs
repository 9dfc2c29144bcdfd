//! Processors and sets of them, in the notation of Linux (`0-3,8`).

use crate::error::{Error, Result};
use crate::time::serde_as_text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A processor: one hardware thread, numbered as Linux numbers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuId(pub u32);

impl CpuId {
    /// For indexing.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl fmt::Debug for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.0)
    }
}

/// A set of processors, in ascending order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuSet(BTreeSet<CpuId>);

impl CpuSet {
    /// The highest processor number that is read; Linux knows at most 8192.
    pub const MAX_CPU: u32 = 8191;

    /// No processors.
    pub const fn new() -> Self {
        CpuSet(BTreeSet::new())
    }
    /// Processors `0` to `m - 1`.
    pub fn first(m: u32) -> Self {
        (0..m).map(CpuId).collect()
    }
    /// How many processors.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Is this processor one of them?
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.contains(&cpu)
    }
    /// Adds a processor; says whether it was new.
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        self.0.insert(cpu)
    }
    /// Removes a processor; says whether it was there.
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        self.0.remove(&cpu)
    }
    /// The processors in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = CpuId> + ExactSizeIterator + '_ {
        self.0.iter().copied()
    }
    /// The lowest processor.
    pub fn lowest(&self) -> Option<CpuId> {
        self.0.first().copied()
    }
    /// What both sets have.
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }
    /// What either set has.
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.union(&other.0).copied().collect())
    }
    /// Is all of this in `other`?
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(iter: I) -> Self {
        CpuSet(iter.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = Error;
    /// Reads Linux's list format, `0-3,8`; an empty text is an empty set.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(format!("`{}` is not a list of processors", text.trim()))
                .remedy("write numbers and ranges, such as `0-3,8`")
        };
        let mut set = CpuSet::new();
        for part in text
            .trim()
            .split(',')
            .map(str::trim)
            .filter(|p| !p.is_empty())
        {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let low: u32 = low.trim().parse().map_err(|_| bad())?;
            let high: u32 = high.trim().parse().map_err(|_| bad())?;
            if low > high || high > Self::MAX_CPU {
                return Err(bad());
            }
            set.0.extend((low..=high).map(CpuId));
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut rest = self.iter().peekable();
        while let Some(low) = rest.next() {
            let mut high = low;
            while let Some(next) = rest.next_if(|n| n.0 == high.0 + 1) {
                high = next;
            }
            let comma = if text.is_empty() { "" } else { "," };
            text += &if low == high {
                format!("{comma}{low}")
            } else {
                format!("{comma}{low}-{high}")
            };
        }
        f.pad(&text)
    }
}
impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
serde_as_text!(CpuSet);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_read_and_write() {
        for (text, again) in [
            ("0-3,8\n", "0-3,8"),
            ("", ""),
            ("5", "5"),
            ("3,1,2,0", "0-3"),
            ("0,2,4", "0,2,4"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), again, "{text}");
        }
        for text in ["3-1", "a", "0-99999999", "-1"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }
}
