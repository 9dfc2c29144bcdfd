//! Which sets of a part each policy keeps, as plain data and as text.
//!
//! Policies judge the same sets, and how far two of them differ is known best from the sets on which
//! they disagree. So a part holds a bit for each set, policy and point, not only how many were kept:
//! any pair of policies, and any two points, can be compared set by set.
//!
//! ```text
//! "kept":["3ff*9 3fe 1c0*2 0*8", …]
//! ```
//!
//! is a row of text for each policy: a word for each point in hexadecimal digits, whose bit *k* is
//! the *k*-th set of the part; `*9` stands behind one that is the same at nine points. Studies of
//! earlier versions have `"accepted":[[10,10,9,…],…]` in its place, and no pairs.

use crate::part::{Counts, Part};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What of a part was kept: by policy, then by point of the axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Which sets: bit *k* is the *k*-th set of the part.
    Sets(Vec<Vec<u16>>),
    /// Only how many, as versions wrote it that kept no pairs.
    Numbers(Vec<Vec<u32>>),
}

impl Kept {
    /// How many sets: by policy, then by point.
    pub fn numbers(&self) -> Vec<Vec<u32>> {
        match self {
            Kept::Sets(rows) => {
                let row = |row: &Vec<u16>| row.iter().map(|bits| bits.count_ones()).collect();
                rows.iter().map(row).collect()
            }
            Kept::Numbers(rows) => rows.clone(),
        }
    }

    /// The sets that a policy keeps at a point, by their places; `None` where only numbers are
    /// known.
    pub fn bits(&self, policy: usize, point: usize) -> Option<u16> {
        match self {
            Kept::Sets(rows) => Some(rows[policy][point]),
            Kept::Numbers(_) => None,
        }
    }

    /// Is it known which sets?
    pub fn has_sets(&self) -> bool {
        matches!(self, Kept::Sets(_))
    }

    /// Does it fit a part of so many sets, judged by so many policies at so many points?
    pub(crate) fn fits(&self, policies: usize, points: usize, sets: u32) -> bool {
        match self {
            Kept::Sets(rows) => {
                let fits = |bits: &u16| u32::from(*bits) >> sets.min(16) == 0;
                rows.len() == policies
                    && rows.iter().all(|r| r.len() == points && r.iter().all(fits))
            }
            Kept::Numbers(rows) => {
                let fits = |count: &u32| *count <= sets;
                rows.len() == policies
                    && rows.iter().all(|r| r.len() == points && r.iter().all(fits))
            }
        }
    }

    /// Does `other` say more, which sets rather than how many? `None` where both contradict each
    /// other.
    pub(crate) fn agreed(&self, other: &Kept) -> Option<bool> {
        match (self, other) {
            (Kept::Sets(_), Kept::Numbers(numbers)) => {
                (self.numbers() == *numbers).then_some(false)
            }
            (Kept::Numbers(numbers), Kept::Sets(_)) => {
                (other.numbers() == *numbers).then_some(true)
            }
            _ => (self == other).then_some(false),
        }
    }
}

/// A line of `counts.jsonl`: one of `kept` and `accepted`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    part: Part,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<Vec<Vec<u32>>>,
}

impl From<Counts> for Line {
    fn from(counts: Counts) -> Line {
        let (kept, accepted) = match counts.kept {
            Kept::Sets(rows) => (Some(rows.iter().map(|row| text_of(row)).collect()), None),
            Kept::Numbers(rows) => (None, Some(rows)),
        };
        Line {
            part: counts.part,
            kept,
            accepted,
        }
    }
}

impl TryFrom<Line> for Counts {
    type Error = String;
    fn try_from(line: Line) -> Result<Counts, String> {
        let kept = match (line.kept, line.accepted) {
            (Some(rows), None) => {
                let rows = rows.iter().map(|row| row_of(row));
                Kept::Sets(rows.collect::<Result<_, String>>()?)
            }
            (None, Some(rows)) => Kept::Numbers(rows),
            _ => return Err("one of `kept` and `accepted` is needed".to_owned()),
        };
        Ok(Counts {
            part: line.part,
            kept,
        })
    }
}

/// Words with how often each comes in a row.
fn text_of(row: &[u16]) -> String {
    let mut text = String::new();
    for run in row.chunk_by(|a, b| a == b) {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = match run.len() {
            1 => write!(text, "{space}{:x}", run[0]),
            count => write!(text, "{space}{:x}*{count}", run[0]),
        };
    }
    text
}

fn row_of(text: &str) -> Result<Vec<u16>, String> {
    let mut row = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let (bits, count) = word.split_once('*').unwrap_or((word, "1"));
        let bad = || format!("`{word}` is no word of sets such as `3ff*9`");
        let bits = u16::from_str_radix(bits, 16).map_err(|_| bad())?;
        let count: u32 = count.parse().map_err(|_| bad())?;
        // No row is longer than all counts of a study: a damaged number takes no memory.
        if row.len() + count as usize > crate::definition::MAX_COUNTS {
            return Err(bad());
        }
        row.extend(std::iter::repeat_n(bits, count as usize));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_is_words_with_how_often_they_come() {
        let row = [0x3ff, 0x3ff, 0x3fe, 0, 0, 0];
        assert_eq!(text_of(&row), "3ff*2 3fe 0*3");
        assert_eq!(row_of("3ff*2 3fe 0*3").unwrap(), row);
        assert_eq!(row_of("").unwrap(), Vec::<u16>::new());
        for bad in ["x", "3ff*", "*3", "10000", "1*99999999999", "1*4294967295"] {
            assert!(row_of(bad).unwrap_err().contains(bad), "{bad}");
        }
    }

    #[test]
    fn what_knows_more_is_kept_where_both_agree() {
        let sets = Kept::Sets(vec![vec![0b101, 0b1]]);
        let (same, other) = (
            Kept::Numbers(vec![vec![2, 1]]),
            Kept::Numbers(vec![vec![2, 2]]),
        );
        assert_eq!(sets.agreed(&same), Some(false));
        assert_eq!(same.agreed(&sets), Some(true));
        assert_eq!(same.agreed(&same), Some(false));
        assert_eq!(sets.agreed(&other), None);
        assert_eq!(sets.agreed(&Kept::Sets(vec![vec![0b011, 0b1]])), None);
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_are_written(row in prop::collection::vec(0u16..4, 0..60)) {
            prop_assert_eq!(row_of(&text_of(&row)).unwrap(), row);
        }
    }
}
