//! Colors and sets of them, written as ranges (`0-3,8`) or as bitmaps (`0x10f`), and super colors
//! (004 §III-C).

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A color of pages, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Color(pub u16);

impl Color {
    /// For indexing.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The super color that this color belongs to when there are `number` of them: color modulo
    /// number (004 eq. 1).
    ///
    /// `None` where there are none.
    pub const fn super_color(self, number: u16) -> Option<Color> {
        match number {
            0 => None,
            n => Some(Color(self.0 % n)),
        }
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of colors, in ascending order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Colors(BTreeSet<Color>);

impl Colors {
    /// The highest color that is read: no cache known has as many.
    pub const HIGHEST: u16 = 4095;

    /// None.
    pub const fn new() -> Self {
        Colors(BTreeSet::new())
    }
    /// Colors `0` to `number - 1`.
    pub fn first(number: u16) -> Self {
        (0..number).map(Color).collect()
    }
    /// The colors of a super color when `colors` colors make `supers` of them (004 eq. 1).
    pub fn of_super(color: Color, supers: u16, colors: u16) -> Self {
        (0..colors)
            .map(Color)
            .filter(|c| c.super_color(supers) == Some(color))
            .collect()
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// None?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Is it one of them?
    pub fn contains(&self, color: Color) -> bool {
        self.0.contains(&color)
    }
    /// Adds one; says whether it was new.
    pub fn insert(&mut self, color: Color) -> bool {
        self.0.insert(color)
    }
    /// In ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Color> + ExactSizeIterator + '_ {
        self.0.iter().copied()
    }
    /// The highest.
    pub fn highest(&self) -> Option<Color> {
        self.0.last().copied()
    }
    /// What both have.
    #[must_use]
    pub fn intersection(&self, other: &Colors) -> Colors {
        Colors(self.0.intersection(&other.0).copied().collect())
    }
    /// What either has.
    #[must_use]
    pub fn union(&self, other: &Colors) -> Colors {
        Colors(self.0.union(&other.0).copied().collect())
    }
    /// What this has and the other has not.
    #[must_use]
    pub fn difference(&self, other: &Colors) -> Colors {
        Colors(self.0.difference(&other.0).copied().collect())
    }
    /// Is all of this in the other?
    pub fn is_subset(&self, other: &Colors) -> bool {
        self.0.is_subset(&other.0)
    }
    /// As a bitmap in hexadecimal, color 0 in the lowest bit.
    pub fn bitmap(&self) -> String {
        let digits = self.highest().map_or(1, |c| c.index() / 4 + 1);
        let text: String = (0..digits)
            .rev()
            .map(|digit| {
                let value = (0..4)
                    .filter(|bit| self.contains(Color((digit * 4 + bit) as u16)))
                    .fold(0, |sum, bit| sum | 1 << bit);
                char::from_digit(value, 16).unwrap_or('0')
            })
            .collect();
        format!("0x{text}")
    }
    /// Are all of them among `0 … number - 1`?
    ///
    /// # Errors
    /// One is beyond the last.
    pub fn check(&self, number: u16) -> Result<()> {
        match self.highest() {
            Some(color) if color.0 >= number => Err(Error::new(format!(
                "color {color} is beyond the last one: there are {number} colors"
            ))
            .remedy(format!("choose among 0-{}", number.saturating_sub(1)))),
            _ => Ok(()),
        }
    }
}

impl FromIterator<Color> for Colors {
    fn from_iter<I: IntoIterator<Item = Color>>(iter: I) -> Self {
        Colors(iter.into_iter().collect())
    }
}

impl FromStr for Colors {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let bad = || {
            Error::new(format!("`{text}` is not a set of colors")).remedy(format!(
                "write numbers and ranges up to {}, such as `0-3,8`, or a bitmap, such as `0x10f`",
                Self::HIGHEST
            ))
        };
        if let Some(digits) = text.strip_prefix("0x") {
            if digits.is_empty() || digits.len() > usize::from(Self::HIGHEST) / 4 + 1 {
                return Err(bad());
            }
            let mut set = Colors::new();
            for (place, digit) in digits.chars().rev().enumerate() {
                let value = digit.to_digit(16).ok_or_else(bad)?;
                set.0.extend(
                    (0..4)
                        .filter(|bit| value >> bit & 1 == 1)
                        .map(|bit| Color((place * 4 + bit) as u16)),
                );
            }
            return Ok(set);
        }
        let mut set = Colors::new();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',').map(str::trim) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let low: u16 = low.trim().parse().map_err(|_| bad())?;
            let high: u16 = high.trim().parse().map_err(|_| bad())?;
            if low > high || high > Self::HIGHEST {
                return Err(bad());
            }
            set.0.extend((low..=high).map(Color));
        }
        Ok(set)
    }
}

impl fmt::Display for Colors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = self.iter().peekable();
        while let Some(low) = rest.next() {
            let mut high = low;
            while let Some(next) = rest.next_if(|n| n.0 == high.0 + 1) {
                high = next;
            }
            parts.push(if low == high {
                low.to_string()
            } else {
                format!("{low}-{high}")
            });
        }
        f.pad(&parts.join(","))
    }
}

impl Serialize for Colors {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Colors {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_bitmaps_say_the_same() {
        let ranges: Colors = "0-3,8".parse().unwrap();
        let bitmap: Colors = "0x10f".parse().unwrap();
        assert_eq!(ranges, bitmap);
        assert_eq!(ranges.to_string(), "0-3,8");
        assert_eq!(bitmap.bitmap(), "0x10f");
        assert!("".parse::<Colors>().unwrap().is_empty());
    }

    #[test]
    fn what_is_no_set_of_colors_is_refused() {
        for text in [
            "3-1", "a", "0x", "0xg", "1,,2", "-1", "99999", "0-4096", "1-", ",",
        ] {
            assert!(text.parse::<Colors>().is_err(), "{text}");
        }
        assert!(format!("0x{}", "f".repeat(2000)).parse::<Colors>().is_err());
    }

    #[test]
    fn a_color_beyond_the_last_is_refused_with_the_last() {
        let e = "3-16"
            .parse::<Colors>()
            .unwrap()
            .check(16)
            .unwrap_err()
            .to_string();
        assert!(e.contains("color 16") && e.contains("0-15"), "{e}");
        assert!("0-15".parse::<Colors>().unwrap().check(16).is_ok());
    }

    /// 004 eq. 1.
    #[test]
    fn super_colors_are_the_color_modulo_their_number() {
        assert_eq!(Colors::of_super(Color(1), 4, 16).to_string(), "1,5,9,13");
        assert_eq!(Color(7).super_color(0), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            colors in prop::collection::btree_set(0u16..=Colors::HIGHEST, 0..40),
        ) {
            let set: Colors = colors.into_iter().map(Color).collect();
            prop_assert_eq!(&set.to_string().parse::<Colors>().unwrap(), &set);
            prop_assert_eq!(&set.bitmap().parse::<Colors>().unwrap(), &set);
        }
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            let _ = text.parse::<Colors>();
        }
    }
}
