//! The part of the words of a working set that is written (000 §4.1: per word, not per cache line).
//!
//! A walk must cost the same per word whatever is written, so a ratio is one word in every
//! `period`, a power of two up to 128. The paper's ratios are 0, 1/128, 1/64, 1/16, 1/4, 1/2 and 1.

use model::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// One word in so many is written; never, if the period is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteRatio {
    period: u32,
}

impl WriteRatio {
    /// One word in four: the ratio of the figures in 000.
    pub const DEFAULT: WriteRatio = WriteRatio { period: 4 };
    /// The periods that there is a walk for.
    pub const PERIODS: [u32; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];
    /// The ratios of 000 §4.1.
    pub const PAPER: [WriteRatio; 7] = [
        WriteRatio { period: 0 },
        WriteRatio { period: 128 },
        WriteRatio { period: 64 },
        WriteRatio { period: 16 },
        WriteRatio { period: 4 },
        WriteRatio { period: 2 },
        WriteRatio { period: 1 },
    ];

    /// One word in `period`; `None` if there is no walk for it.
    pub fn one_in(period: u32) -> Option<Self> {
        Self::PERIODS
            .contains(&period)
            .then_some(WriteRatio { period })
    }
    /// One word in so many is written; zero: none.
    pub fn period(self) -> u32 {
        self.period
    }
    /// As a part of one.
    pub fn as_f64(self) -> f64 {
        if self.period == 0 {
            0.0
        } else {
            1.0 / f64::from(self.period)
        }
    }
}

impl fmt::Display for WriteRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.period {
            0 => f.pad("0"),
            1 => f.pad("1"),
            period => f.pad(&format!("1/{period}")),
        }
    }
}

impl FromStr for WriteRatio {
    type Err = Error;
    /// Reads `1/4` and `0.25`.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let value: Option<f64> = match text.split_once('/') {
            Some(("1", below)) => below.parse::<u32>().ok().map(|p| 1.0 / f64::from(p)),
            Some(_) => None,
            None => text.parse().ok(),
        };
        // Powers of two: equality is exact.
        Self::PERIODS
            .into_iter()
            .map(|period| WriteRatio { period })
            .find(|ratio| value == Some(ratio.as_f64()))
            .ok_or_else(|| {
                Error::new(format!("`{text}` is no write ratio that can be measured"))
                    .remedy("choose among 0, 1/128, 1/64, 1/32, 1/16, 1/8, 1/4, 1/2 and 1")
            })
    }
}

impl Serialize for WriteRatio {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for WriteRatio {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratios_of_the_paper_read_and_write() {
        for (ratio, text) in WriteRatio::PAPER
            .into_iter()
            .zip(["0", "1/128", "1/64", "1/16", "1/4", "1/2", "1"])
        {
            assert_eq!(ratio.to_string(), text);
            assert_eq!(text.parse::<WriteRatio>().unwrap(), ratio);
            assert_eq!(
                ratio.as_f64().to_string().parse::<WriteRatio>().unwrap(),
                ratio
            );
        }
        for text in ["1/3", "2", "-1", "1/0", "0.3", "", "a/b", "NaN", "1/256"] {
            let e = text.parse::<WriteRatio>().unwrap_err().to_string();
            assert!(e.contains("choose among"), "{text}: {e}");
        }
    }
}
