//! WCETs by the number of page colors (or ways of the cache) that a task has for itself: what a
//! part of the cache is worth to it.

use crate::colors::Colors;
use crate::error::{Error, Result};
use crate::time::Duration;

/// The key under which a table has the WCET of a task that shares the whole cache.
pub const SHARED: &str = "shared";

/// The WCETs of a task.
///
/// Invariant: there is one with colors at least; numbers of colors ascend, none is zero, and WCETs
/// do not grow with them; the one of a shared cache is no shorter than any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wcets {
    shared: Option<Duration>,
    by_colors: Vec<(u16, Duration)>,
}

impl Wcets {
    /// A table, from entries in any order.
    ///
    /// # Errors
    /// No entry with colors, two with as many, or none; more colors make a WCET longer.
    pub fn new(shared: Option<Duration>, mut by_colors: Vec<(u16, Duration)>) -> Result<Self> {
        by_colors.sort_unstable();
        let Some((_, longest)) = by_colors.first().copied() else {
            return Err(Error::new("there is no WCET with colors")
                .remedy("add one, such as `\"4\" = \"6ms\"`, or give one time for all"));
        };
        if by_colors[0].0 == 0 {
            return Err(Error::new("a task cannot have 0 colors").remedy(format!(
                "write `{SHARED} = …` for the WCET in a cache that all share"
            )));
        }
        for pair in by_colors.windows(2) {
            let [(few, long), (many, short)] = pair else {
                continue;
            };
            if few == many {
                return Err(
                    Error::new(format!("there are two WCETs with {few} colors")).remedy("give one")
                );
            }
            if short > long {
                return Err(Error::new(format!(
                    "the WCET with {many} colors ({short}) is longer than with {few} ({long})"
                ))
                .remedy("give a task no more colors than help it: leave the longer one out"));
            }
        }
        if let Some(shared) = shared.filter(|shared| *shared < longest) {
            return Err(Error::new(format!(
                "the WCET in a shared cache ({shared}) is shorter than with {} colors ({longest})",
                by_colors[0].0
            ))
            .remedy("leave out the numbers of colors with which the task is slower than without"));
        }
        Ok(Wcets { shared, by_colors })
    }

    /// The WCET while the task shares the cache with all others, where it is known.
    pub fn shared(&self) -> Option<Duration> {
        self.shared
    }

    /// Numbers of colors, ascending, with the WCET of each.
    pub fn by_colors(&self) -> &[(u16, Duration)] {
        &self.by_colors
    }

    /// The WCET with so many colors: that of the largest number in the table that is no larger.
    /// `None`: they are fewer than any.
    pub fn with(&self, colors: u16) -> Option<Duration> {
        let fits = self.by_colors.iter().rev().find(|(n, _)| *n <= colors);
        fits.map(|(_, wcet)| *wcet)
    }

    /// The WCET that stands where nobody has given the task colors: in a shared cache, or the
    /// longest of the table.
    pub fn without(&self) -> Duration {
        self.shared.unwrap_or(self.by_colors[0].1)
    }

    /// The WCET of a task with these colors; `None`: nobody has given it some.
    ///
    /// # Errors
    /// They are fewer than the table has a WCET for.
    pub fn of(&self, colors: Option<&Colors>) -> Result<Duration> {
        let Some(colors) = colors else {
            return Ok(self.without());
        };
        let number = u16::try_from(colors.len()).unwrap_or(u16::MAX);
        self.with(number).ok_or_else(|| {
            Error::new(format!(
                "it has {number} colors, and its WCET is known with {} at least",
                self.by_colors[0].0
            ))
            .remedy("give it more colors, or measure its WCET with fewer")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn more_colors_take_the_next_smaller_entry() {
        let wcets = Wcets::new(Some(ms(12)), vec![(8, ms(5)), (2, ms(9)), (4, ms(6))]).unwrap();
        let with: Vec<_> = (1..=9).map(|n| wcets.with(n)).collect();
        let expected = [0, 9, 9, 6, 6, 6, 6, 5, 5].map(|n| (n > 0).then(|| ms(n)));
        assert_eq!(with, expected);
        assert_eq!(wcets.without(), ms(12));
        let alone = Wcets::new(None, vec![(2, ms(9)), (4, ms(6))]).unwrap();
        assert_eq!(alone.without(), ms(9));
        assert_eq!(alone.of(Some(&"0-4".parse().unwrap())).unwrap(), ms(6));
        let refused = alone.of(Some(&"3".parse().unwrap())).unwrap_err();
        assert!(refused.cause().contains("with 2 at least"), "{refused}");
    }

    #[test]
    fn tables_that_contradict_themselves_are_refused() {
        for (shared, by_colors, cause) in [
            (None, vec![], "no WCET with colors"),
            (None, vec![(0, ms(1))], "0 colors"),
            (
                None,
                vec![(2, ms(1)), (2, ms(1))],
                "two WCETs with 2 colors",
            ),
            (
                None,
                vec![(2, ms(5)), (4, ms(6))],
                "with 4 colors (6ms) is longer",
            ),
            (
                Some(ms(4)),
                vec![(2, ms(5))],
                "(4ms) is shorter than with 2 colors (5ms)",
            ),
        ] {
            let refused = Wcets::new(shared, by_colors).unwrap_err();
            assert!(refused.cause().contains(cause), "{refused}");
        }
    }
}
