//! Eviction sets by group testing: the few pages that together drive a page out of a cache.
//!
//! A set that evicts a page holds at least `ways` pages of its color. Split into `ways + 1` groups,
//! one group at least holds none that is needed, and is dropped; what cannot be dropped is the
//! eviction set. The number of measurements is linear in the number of candidates (Vila, Köpf,
//! Morales: Theory and Practice of Finding Eviction Sets, S&P 2019, §V). Measurements err in one
//! direction: a disturbance makes a page look driven out. So "driven out" is believed after
//! [`AGREE`] measurements, "still there" after one.

use crate::probe::{Judge, PageId};
use rand::Rng;
use rand::seq::SliceRandom;

/// So many measurements must agree that a page was driven out.
pub const AGREE: usize = 3;

/// Is the victim driven out by the set?
pub fn evicts<J: Judge>(judge: &mut J, set: &[PageId], victim: PageId) -> bool {
    (0..AGREE).all(|_| judge.evicted(&[victim], set).first() == Some(&true))
}

/// Those of the pages that the set drives out, in their order.
pub fn driven_out<J: Judge>(judge: &mut J, set: &[PageId], pages: &[PageId]) -> Vec<PageId> {
    let mut left = pages.to_vec();
    for _ in 0..AGREE {
        left = left
            .chunks(judge.batch())
            .flat_map(|victims| {
                let answers = judge.evicted(victims, set);
                victims
                    .iter()
                    .zip(answers)
                    .filter(|(_, evicted)| *evicted)
                    .map(|(v, _)| *v)
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    left
}

/// Reduces candidates to an eviction set of the victim with about `ways` pages; `None` where all
/// candidates together do not drive it out, measurements contradict each other too often, or it is
/// `late`.
///
/// In a large set, what else passes through the cache can make up for a page that is needed, and it
/// is dropped. That shows when nothing more can be dropped: then the last dropped groups come back
/// until enough of the color are there.
pub fn reduce<J: Judge, R: Rng>(
    judge: &mut J,
    random: &mut R,
    victim: PageId,
    candidates: &[PageId],
    ways: usize,
    late: &dyn Fn() -> bool,
) -> Option<Vec<PageId>> {
    /// How often dropped groups come back before it gives up.
    const RETURNS: usize = 24;
    let mut set = candidates.to_vec();
    if set.len() < ways || !evicts(judge, &set, victim) {
        return None;
    }
    let mut dropped: Vec<Vec<PageId>> = Vec::new();
    let mut returns = 0;
    while set.len() > ways {
        let before = set.len();
        for group in groups(&set, ways + 1) {
            if late() {
                return None;
            }
            let rest: Vec<PageId> = set.iter().copied().filter(|p| !group.contains(p)).collect();
            if rest.len() >= ways && evicts(judge, &rest, victim) {
                set = rest;
                dropped.push(group);
            }
        }
        if set.len() == before {
            // Replacement that is not strictly by age may need a page or two more than there are
            // ways.
            if set.len() <= ways + 2 {
                break;
            }
            returns += 1;
            if returns > RETURNS {
                return None;
            }
            let back = set.len() / 4 + ways;
            let target = set.len() + back;
            while set.len() < target
                && let Some(group) = dropped.pop()
            {
                set.extend(group);
            }
            set.shuffle(random);
        }
    }
    evicts(judge, &set, victim).then_some(set)
}

/// Splits a set into so many groups of nearly equal size, or one a page where there are fewer.
fn groups(set: &[PageId], number: usize) -> Vec<Vec<PageId>> {
    let number = number.min(set.len()).max(1);
    (0..number)
        .map(|g| set[set.len() * g / number..set.len() * (g + 1) / number].to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fake::Fake;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn random() -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(4)
    }

    #[test]
    fn groups_are_as_many_as_asked_and_hold_every_page_once() {
        for (pages, number) in [(39, 17), (17, 17), (5, 17), (1280, 17), (40, 17)] {
            let set: Vec<PageId> = (0..pages).collect();
            let groups = groups(&set, number);
            assert_eq!(groups.len(), number.min(pages as usize));
            assert_eq!(groups.concat(), set);
        }
    }

    #[test]
    fn an_eviction_set_has_as_many_pages_as_there_are_ways_and_all_of_the_victims_color() {
        let mut fake = Fake::new(1280, 32, 16, 0, 1);
        let candidates: Vec<PageId> = (1..1280).collect();
        let set = reduce(&mut fake, &mut random(), 0, &candidates, 16, &|| false).unwrap();
        assert_eq!(set.len(), 16);
        assert!(
            set.iter()
                .all(|p| fake.colors[*p as usize] == fake.colors[0])
        );
        assert!(fake.asked < 2000, "{} measurements", fake.asked);
    }

    #[test]
    fn too_few_of_a_color_evict_nothing() {
        let mut fake = Fake::new(64, 32, 16, 0, 1);
        let candidates: Vec<PageId> = (1..64).collect();
        assert_eq!(
            reduce(&mut fake, &mut random(), 0, &candidates, 16, &|| false),
            None
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn what_is_found_evicts_in_truth(
            seed in 0u64..1000,
            ways in 2usize..17,
            colors in 1u16..33,
        ) {
            // One measurement in twenty is disturbed.
            let pages = usize::from(colors) * ways * 3;
            let mut fake = Fake::new(pages, colors, ways, 20, seed);
            let candidates: Vec<PageId> = (1..pages as PageId).collect();
            if let Some(set) = reduce(&mut fake, &mut random(), 0, &candidates, ways, &|| false) {
                let rivals = set
                    .iter()
                    .filter(|p| fake.colors[**p as usize] == fake.colors[0])
                    .count();
                // A set may come out one short when three disturbances agree; it is checked by who
                // uses it.
                prop_assert!(rivals + 1 >= ways, "{rivals} of {ways}");
            }
        }
    }
}
