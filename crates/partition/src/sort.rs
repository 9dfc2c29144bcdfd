//! Sorting pages by color: each against one eviction set a color.
//!
//! How long a page takes that was driven out changes from moment to moment, with what prefetchers
//! have time for and what others do on the machine: no threshold holds for all of a search. A first
//! round asks every page against every color and suspects generously; a second strikes off what was
//! chance. What is left is compared by medians of measurements that were made in turn ([`Duel`]):
//! the color must drive the page out as it drives out a page of its own, and more than any other
//! color does. Else the page starts over, and is left without a color when that does not help.

use crate::colors::Color;
use crate::probe::{Judge, PageId};

/// Measurements of a suspicion, of which most must agree.
const VOTES: usize = 3;
/// With more suspicions than this left, others disturb too much to say anything.
const SUSPECTS: usize = 4;
/// Measurements of which the median is compared.
const TURNS: usize = 5;
/// At least this share of the time that a page of the color takes must a page take to be of the
/// color.
const ALIKE: f64 = 0.88;
/// At most this share of its time against its own color may a page take against another color.
const UNLIKE: f64 = 0.9;
/// How often a page starts over.
const RESTARTS: usize = 4;

/// The color of each page, in their order; `None` where measurements did not agree.
///
/// A color is asked with the first `size` of its pages that are not asked about themselves.
/// `progress` is called with the number of measured pairs of page and color; it says whether to go
/// on.
pub fn sort<J: Judge>(
    judge: &mut J,
    pages: &[PageId],
    sets: &[Vec<PageId>],
    size: usize,
    mut progress: impl FnMut(u64) -> bool,
) -> Vec<Option<Color>> {
    let mut found = vec![None; pages.len()];
    let mut open: Vec<usize> = (0..pages.len()).collect();
    let mut duel = Duel { judge, sets, size };
    for _ in 0..=RESTARTS {
        if open.is_empty() {
            break;
        }
        let mut suspects: Vec<Vec<usize>> = vec![Vec::new(); pages.len()];
        for color in 0..sets.len() {
            for which in &open {
                if duel.suspects(pages[*which], color) {
                    suspects[*which].push(color);
                }
            }
            if !progress(open.len() as u64) {
                return found;
            }
        }
        // Later, so that what disturbed may have passed.
        for which in &open {
            suspects[*which].retain(|color| {
                let votes = (0..VOTES)
                    .filter(|_| duel.suspects(pages[*which], *color))
                    .count();
                2 * votes > VOTES
            });
        }
        open.retain(|which| {
            found[*which] = duel
                .winner(pages[*which], &suspects[*which])
                .map(|color| Color(color as u16));
            found[*which].is_none()
        });
    }
    found
}

/// Colors that compete for pages.
struct Duel<'a, J> {
    judge: &'a mut J,
    sets: &'a [Vec<PageId>],
    size: usize,
}

impl<J: Judge> Duel<'_, J> {
    /// Ticks of a page after the first pages of a color were read, itself not among them.
    fn ticks(&mut self, page: PageId, color: usize) -> u64 {
        let rivals: Vec<PageId> = self.sets[color]
            .iter()
            .copied()
            .filter(|p| *p != page)
            .take(self.size)
            .collect();
        self.judge.ticks(page, &rivals)
    }

    fn suspects(&mut self, page: PageId, color: usize) -> bool {
        self.ticks(page, color) >= self.judge.suspicious()
    }

    /// The color that drives the page out most, if it does so as it drives out its own, and more
    /// than any other.
    fn winner(&mut self, page: PageId, suspects: &[usize]) -> Option<usize> {
        if suspects.is_empty() || suspects.len() > SUSPECTS {
            return None;
        }
        let mut by_suspect = vec![Vec::new(); suspects.len()];
        let mut of_own = vec![Vec::new(); suspects.len()];
        let mut by_others = Vec::new();
        for turn in 0..TURNS {
            for (place, color) in suspects.iter().enumerate() {
                by_suspect[place].push(self.ticks(page, *color));
                // Another page each time, from behind the eviction set where there are enough: one
                // may have been moved.
                let own = self.sets[*color].iter().rev().cycle().nth(turn)?;
                of_own[place].push(self.ticks(*own, *color));
            }
            // Another color each time: one may be near to that of the page.
            let other = (page as usize + turn * 7) % self.sets.len();
            if !suspects.contains(&other) {
                by_others.push(self.ticks(page, other));
            }
        }
        let medians: Vec<u64> = by_suspect.iter().cloned().map(median).collect();
        let (best, own) = medians
            .iter()
            .copied()
            .enumerate()
            .max_by_key(|(_, ticks)| *ticks)?;
        let alike = own as f64 >= ALIKE * median(of_own.swap_remove(best)) as f64;
        let unlike = |ticks: u64| ticks as f64 <= UNLIKE * own as f64;
        // Turn by turn as well: in times when all looks driven out, medians differ by chance.
        let ahead = (0..suspects.len())
            .filter(|place| *place != best)
            .all(|place| {
                unlike(medians[place])
                    && by_suspect[place]
                        .iter()
                        .zip(&by_suspect[best])
                        .all(|(other, best)| other < best)
            });
        let alone = by_others.is_empty() || unlike(median(by_others));
        (alike && ahead && alone).then(|| suspects[best])
    }
}

/// The middle of an odd number of values.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fake::Fake;

    fn sets(fake: &Fake, from: usize) -> Vec<Vec<PageId>> {
        (0..32)
            .map(|c| {
                (from..fake.colors.len())
                    .filter(|p| fake.colors[*p] == c)
                    .map(|p| p as PageId)
                    .take(18)
                    .collect()
            })
            .collect()
    }

    #[test]
    fn every_page_gets_its_color_though_one_measurement_in_twenty_errs() {
        let mut fake = Fake::new(3000, 32, 16, 20, 3);
        let sets = sets(&fake, 1000);
        assert!(sets.iter().all(|s| s.len() == 18));
        let pages: Vec<PageId> = (0..1000).collect();
        let found = sort(&mut fake, &pages, &sets, 18, |_| true);
        for (page, color) in found.iter().enumerate() {
            if let Some(color) = color {
                assert_eq!(color.0, fake.colors[page], "page {page}");
            }
        }
        assert!(found.iter().flatten().count() >= 995);
    }

    /// How many pages got a color that is not theirs.
    fn wrong(found: &[Option<Color>], fake: &Fake) -> usize {
        let pages = found.iter().zip(&fake.colors);
        pages
            .filter(|(found, true_color)| found.is_some_and(|c| c.0 != **true_color))
            .count()
    }

    #[test]
    fn a_color_that_takes_a_part_of_a_page_along_is_told_from_its_own() {
        for (miss, neighbor) in [(150, 130), (230, 140), (160, 128)] {
            let mut fake = Fake::new(3000, 32, 16, 30, 5);
            (fake.miss, fake.neighbor) = (miss, neighbor);
            let sets = sets(&fake, 1000);
            let pages: Vec<PageId> = (0..1000).collect();
            let found = sort(&mut fake, &pages, &sets, 18, |_| true);
            assert_eq!(wrong(&found, &fake), 0);
            assert!(found.iter().flatten().count() >= 990);
        }
    }

    #[test]
    fn who_disturbs_all_the_time_leaves_pages_without_a_color_not_with_a_wrong_one() {
        for disturbed in [2, 3, 5] {
            let mut fake = Fake::new(3000, 32, 16, disturbed, 6);
            let sets = sets(&fake, 1000);
            let pages: Vec<PageId> = (0..1000).collect();
            let found = sort(&mut fake, &pages, &sets, 18, |_| true);
            let wrong = wrong(&found, &fake);
            assert!(
                wrong <= 5,
                "{wrong} of {} with one in {disturbed}",
                found.iter().flatten().count()
            );
        }
    }

    #[test]
    fn a_page_of_a_color_without_a_set_gets_none() {
        let mut fake = Fake::new(3000, 32, 16, 0, 3);
        let mut sets = sets(&fake, 1000);
        sets.pop();
        let pages: Vec<PageId> = (0..1000).collect();
        let found = sort(&mut fake, &pages, &sets, 18, |_| true);
        for (page, color) in found.iter().enumerate() {
            assert_eq!(
                color.map(|c| c.0),
                Some(fake.colors[page]).filter(|c| *c < 31)
            );
        }
    }

    #[test]
    fn who_stops_keeps_what_is_known() {
        let mut fake = Fake::new(3000, 32, 16, 0, 3);
        let sets = sets(&fake, 1000);
        let found = sort(&mut fake, &[0, 1, 2], &sets, 18, |_| false);
        assert_eq!(found, [None, None, None]);
    }
}
