//! Sorting pages by color: each against one eviction set a color, in batches.
//!
//! A first round asks every page against every color. What it leaves is asked again until [`AGREE`] measurements and some more agree;
//! a page that no color drives out, or two do, starts over, and is left without a color when that does not help.

use crate::colors::Color;
use crate::evict::AGREE;
use crate::probe::{Judge, PageId};

/// Measurements more than for a single answer: here, every page has as many chances to err as there are colors.
const SURE: usize = 2;
/// How often a page starts over.
const RESTARTS: usize = 4;

/// The color of each page, in their order; `None` where measurements did not agree.
///
/// A color is asked with the first `size` of its pages that are not asked about themselves. `progress` is called with the number of measured pairs of page and color; it says whether to go on.
pub fn sort<J: Judge>(
    judge: &mut J,
    pages: &[PageId],
    sets: &[Vec<PageId>],
    size: usize,
    mut progress: impl FnMut(u64) -> bool,
) -> Vec<Option<Color>> {
    let mut found = vec![None; pages.len()];
    let mut open: Vec<usize> = (0..pages.len()).collect();
    for _ in 0..=RESTARTS {
        if open.is_empty() {
            break;
        }
        let mut candidates: Vec<Vec<u16>> = vec![Vec::new(); pages.len()];
        for (color, set) in sets.iter().enumerate() {
            for which in still_evicted(judge, pages, &open, set, size) {
                candidates[which].push(color as u16);
            }
            if !progress(open.len() as u64) {
                return found;
            }
        }
        for _ in 1..AGREE + SURE {
            for (color, set) in sets.iter().enumerate() {
                let color = color as u16;
                let asked: Vec<usize> = open
                    .iter()
                    .copied()
                    .filter(|which| candidates[*which].contains(&color))
                    .collect();
                let still = still_evicted(judge, pages, &asked, set, size);
                let mut still = still.iter().peekable();
                for which in asked {
                    if still.next_if(|s| **s == which).is_none() {
                        candidates[which].retain(|c| *c != color);
                    }
                }
            }
        }
        open.retain(|which| match candidates[*which][..] {
            [one] => {
                found[*which] = Some(Color(one));
                false
            }
            _ => true,
        });
    }
    found
}

/// Which of the asked pages, given by their place in the list, the set drives out; in their order.
fn still_evicted<J: Judge>(
    judge: &mut J,
    pages: &[PageId],
    asked: &[usize],
    set: &[PageId],
    size: usize,
) -> Vec<usize> {
    let mut still = Vec::new();
    for places in asked.chunks(judge.batch()) {
        let victims: Vec<PageId> = places.iter().map(|p| pages[*p]).collect();
        let rivals: Vec<PageId> = set
            .iter()
            .copied()
            .filter(|p| !victims.contains(p))
            .take(size)
            .collect();
        let answers = judge.evicted(&victims, &rivals);
        still.extend(places.iter().zip(answers).filter(|(_, e)| *e).map(|(p, _)| *p));
    }
    still
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

    #[test]
    fn a_page_of_a_color_without_a_set_gets_none() {
        let mut fake = Fake::new(3000, 32, 16, 0, 3);
        let mut sets = sets(&fake, 1000);
        sets.pop();
        let pages: Vec<PageId> = (0..1000).collect();
        let found = sort(&mut fake, &pages, &sets, 18, |_| true);
        for (page, color) in found.iter().enumerate() {
            assert_eq!(color.map(|c| c.0), Some(fake.colors[page]).filter(|c| *c < 31));
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
