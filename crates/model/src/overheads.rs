//! Some of the seven overheads, such as those that a factor multiplies.

use crate::words::{Overhead, OverheadKind};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Some of the seven overheads of 002 §2.4. Written as their names with commas, or `all`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Overheads(u8);

impl Overheads {
    /// All seven.
    pub const ALL: Overheads = Overheads((1 << Overhead::ALL.len()) - 1);

    /// The set of the overheads in a list.
    pub fn of(overheads: &[Overhead]) -> Self {
        let bit = |overhead: &Overhead| 1 << *overhead as u8;
        Overheads(overheads.iter().map(bit).fold(0, std::ops::BitOr::bitor))
    }

    /// Is it one of them?
    pub const fn has(self, overhead: Overhead) -> bool {
        self.0 & (1 << overhead as u8) != 0
    }

    /// Is what a profile measured of this kind one of them? The watch of an engine interrupts as the
    /// tick does and goes with it; setting one's own timer goes with the release, of which it is a
    /// part.
    pub const fn has_kind(self, kind: OverheadKind) -> bool {
        self.has(match kind {
            OverheadKind::Release | OverheadKind::TimerRearming => Overhead::Release,
            OverheadKind::Scheduling => Overhead::Scheduling,
            OverheadKind::ContextSwitch => Overhead::ContextSwitch,
            OverheadKind::IpiLatency => Overhead::IpiLatency,
            OverheadKind::TimerTransfer => Overhead::TimerTransfer,
            OverheadKind::Tick | OverheadKind::Watch => Overhead::Tick,
        })
    }

    /// They, in the order of the paper.
    pub fn iter(self) -> impl Iterator<Item = Overhead> {
        let all = Overhead::ALL.into_iter();
        all.filter(move |overhead| self.has(*overhead))
    }
}

impl fmt::Display for Overheads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Overheads::ALL {
            return f.write_str("all");
        }
        let names: Vec<&str> = self.iter().map(Overhead::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Overheads {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.trim() == "all" {
            return Ok(Overheads::ALL);
        }
        let one = |name: &str| {
            let known = Overhead::ALL.into_iter().find(|o| o.name() == name.trim());
            known.ok_or_else(|| {
                let all = Overhead::ALL.map(Overhead::name);
                Error::new(format!("there is no overhead `{}`", name.trim()))
                    .remedy(format!("write some of {}, or `all`", all.join(", ")))
            })
        };
        let all = text.split(',').map(one).collect::<Result<Vec<_>>>()?;
        Ok(Overheads::of(&all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_are_written() {
        for text in ["all", "release,scheduling", "cpmd", "tick"] {
            let read: Overheads = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        let seven = "release,scheduling,context-switch,ipi-latency,timer-transfer,tick,cpmd";
        assert_eq!(seven.parse::<Overheads>().unwrap(), Overheads::ALL);
        let wrong = "release,paging".parse::<Overheads>().unwrap_err();
        assert!(wrong.to_string().contains("there is no overhead `paging`"));
        assert!("".parse::<Overheads>().is_err());
    }

    #[test]
    fn every_kind_that_is_measured_is_among_all_and_not_among_cache_delays() {
        let caches = Overheads::of(&[Overhead::Cpmd]);
        for kind in OverheadKind::ALL {
            assert!(Overheads::ALL.has_kind(kind) && !caches.has_kind(kind));
        }
    }
}
