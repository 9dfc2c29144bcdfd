//! How many sets are drawn at a cap: a number that is given, or as many as it takes until every
//! share is known well enough.
//!
//! Sets are added in stages. After each one the 95 % intervals of all shares at the cap are looked
//! at, and it is the last one where none is wider than `until_ci`. Which stage that is depends on
//! the counts of the cap alone, so that it is the same on any number of threads and machines, and
//! after any interruption.

use crate::results::wilson;
use model::{Error, Result};

/// Sets of the first stages, of which each later one is a power of two times. Their least common
/// multiple is small, so that weighted schedulability stays an exact ratio of 64-bit numbers. All
/// are whole parts.
const FIRST: [u64; 4] = [40, 50, 60, 70];

/// The stages with at most so many sets, ascending; all sets are one stage where nothing else is
/// asked for.
///
/// # Errors
/// The first stage has more sets than there may be; a width that is none.
pub(crate) fn stages(sets: u32, until_ci: Option<f64>) -> Result<Vec<u32>> {
    let Some(width) = until_ci else {
        return Ok(vec![sets]);
    };
    check_width(width).map_err(|e| e.at("until_ci"))?;
    let all: Vec<u32> = every().take_while(|stage| *stage <= sets).collect();
    match all.is_empty() {
        true => Err(Error::new(format!(
            "at most {sets} sets, and with `until_ci` at least {} are drawn",
            FIRST[0]
        ))
        .at("sets")
        .remedy("give more, or leave `sets` out")),
        false => Ok(all),
    }
}

fn every() -> impl Iterator<Item = u32> {
    let stages = (0..32u32).flat_map(|power| FIRST.map(|first| first << power));
    stages.map_while(|stage| u32::try_from(stage).ok())
}

/// The sets after which every interval is at most so wide, whatever is counted: the Wilson interval
/// is widest for a share of one half, z / √(n + z²).
///
/// # Errors
/// A width that is none.
pub fn enough_for(width: f64) -> Result<u32> {
    check_width(width)?;
    let widest = |sets: u32| {
        let (low, high) = wilson(sets / 2, sets);
        high - low
    };
    every().find(|sets| widest(*sets) <= width).ok_or_else(|| {
        Error::new(format!("an interval of {width} takes too many sets")).remedy("give a wider one")
    })
}

fn check_width(width: f64) -> Result<()> {
    match (0.001..1.0).contains(&width) {
        true => Ok(()),
        false => Err(Error::new(format!(
            "{width} cannot be the width of a confidence interval of a share"
        ))
        .remedy("give at least 0.001 and less than 1, such as 0.02")),
    }
}

/// Is every share of these counts known as well as asked for?
pub(crate) fn are_narrow(accepted: &[Vec<u32>], sets: u32, width: f64) -> bool {
    accepted.iter().flatten().all(|count| {
        let (low, high) = wilson(*count, sets);
        high - low <= width
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_grow_by_about_a_fifth_and_are_whole_parts() {
        let all = stages(1_000, Some(0.1)).unwrap();
        assert_eq!(all[..9], [40, 50, 60, 70, 80, 100, 120, 140, 160]);
        assert_eq!(all.last(), Some(&960));
        assert!(all.iter().all(|stage| stage.is_multiple_of(10)));
        assert_eq!(stages(1_000, None).unwrap(), [1_000]);
        assert!(stages(39, Some(0.1)).is_err() && stages(100, Some(0.0)).is_err());
        assert!(stages(100, Some(f64::NAN)).is_err() && stages(100, Some(1.0)).is_err());
    }

    /// z = 1.96: 0.02 takes z² / 0.02² − z² = 9,600 sets.
    #[test]
    fn what_is_enough_is_enough_for_any_share() {
        let enough = enough_for(0.02).unwrap();
        assert_eq!(enough, 10_240);
        for count in [0, 1, enough / 3, enough / 2, enough] {
            assert!(are_narrow(&[vec![count]], enough, 0.02));
        }
        assert!(!are_narrow(&[vec![4_480]], 8_960, 0.02));
    }
}
