//! Finding colors by timing alone: pages that drive each other out are put into groups.

use super::{LEFT_OVER, ROUNDS, SPARE, pool_pages};
use crate::colors::Color;
use crate::evict::{driven_out, reduce};
use crate::geometry::Geometry;
use crate::probe::{Judge, PageId};
use crate::sort::sort;
use model::watch::Watch;
use model::{Error, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::cell::Cell;

/// Colors, each with its pages of the pool: at least one more than there are ways.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) members: Vec<Vec<PageId>>,
    pub(super) confidence: f64,
    pub(super) unplaced: usize,
}

/// What is searched, for how long.
pub(super) struct Search<'a> {
    pub(super) cache: &'a Geometry,
    /// Pages of the pool.
    pub(super) pages: usize,
    /// Is it time to make do with what was found?
    pub(super) late: &'a dyn Fn() -> bool,
    /// Was any page found that others drive out together?
    pub(super) hopeful: &'a Cell<bool>,
    pub(super) watch: &'a dyn Watch,
}

/// Round after round: groups are found among the pages without a color and proven, the same color
/// found twice is joined, and every page is asked against every color, twice, by other pages of the
/// color each time.
pub(super) fn by_timing<J: Judge>(judge: &mut J, search: &Search<'_>) -> Result<Found> {
    let Search {
        cache,
        pages,
        late,
        watch,
        ..
    } = *search;
    let ways = cache.ways as usize;
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut pool: Vec<PageId> = (0..pages as PageId).collect();
    pool.shuffle(&mut random);
    watch.begin(
        &format!("colors of the {}", cache.name()),
        u64::from(cache.colors),
    );
    let mut left = pool.clone();
    let mut sets: Vec<Vec<PageId>> = Vec::new();
    let mut best: Option<Found> = None;
    for _ in 0..ROUNDS {
        let groups = group(judge, &mut random, left, search, sets.len())?;
        let proven = groups.into_iter().filter_map(|g| prove(judge, g, ways));
        sets.extend(proven.collect::<Vec<_>>());
        sets = merge(judge, sets, ways);
        let (members, open) = place(judge, &pool, &sets, ways, watch)?;
        let found = Found::of(members.clone(), &open, pages, cache);
        let complete = found.members.len() == usize::from(cache.colors)
            && open.len() as f64 <= LEFT_OVER * pages as f64;
        if best
            .as_ref()
            .is_none_or(|b| b.confidence <= found.confidence)
        {
            best = Some(found);
        }
        if complete || late() {
            break;
        }
        sets = members;
        left = open;
        left.shuffle(&mut random);
    }
    best.filter(|found| !found.members.is_empty())
        .ok_or_else(|| {
            Error::new(format!(
            "no page of the {} is driven out by {ways} others as a whole: its pages have no color",
            cache.name()
        ))
        .remedy("look at another level; look again when the machine is idle")
        })
}

impl Found {
    /// What is known when these pages are left without a color.
    pub(super) fn of(
        members: Vec<Vec<PageId>>,
        open: &[PageId],
        pages: usize,
        cache: &Geometry,
    ) -> Self {
        let expected = f64::from(cache.colors);
        let number = members.len().max(1) as f64;
        let complete = (number / expected).min(expected / number);
        Found {
            confidence: (1.0 - open.len() as f64 / pages as f64) * complete,
            members,
            unplaced: open.len(),
        }
    }
}

/// A group whose pages drive each other out, without those that are not driven out; `None` where
/// too few are.
fn prove<J: Judge>(judge: &mut J, group: Vec<PageId>, ways: usize) -> Option<Vec<PageId>> {
    let answers = sort(
        judge,
        &group,
        std::slice::from_ref(&group),
        ways + SPARE,
        |_| true,
    );
    let kept: Vec<PageId> = group
        .iter()
        .zip(answers)
        .filter(|(_, color)| color.is_some())
        .map(|(page, _)| *page)
        .collect();
    (kept.len() > ways).then_some(kept)
}

/// The pages of each color, and those that have none: what two sortings, by different pages of the
/// colors, do not agree on. A color that keeps fewer pages than there are ways cannot drive
/// anything out, and is dissolved.
fn place<J: Judge>(
    judge: &mut J,
    pool: &[PageId],
    sets: &[Vec<PageId>],
    ways: usize,
    watch: &dyn Watch,
) -> Result<(Vec<Vec<PageId>>, Vec<PageId>)> {
    let mut members = sets.to_vec();
    let mut first: Option<Vec<Option<Color>>> = None;
    loop {
        let colors = sort(judge, pool, &members, ways + SPARE, |_| !watch.stopped());
        stop_if_asked(watch)?;
        let agreed: Vec<Option<Color>> = match &first {
            None => colors.clone(),
            Some(before) => before
                .iter()
                .zip(&colors)
                .map(|(a, b)| a.filter(|a| Some(*a) == *b))
                .collect(),
        };
        let mut sorted: Vec<Vec<PageId>> = vec![Vec::new(); members.len()];
        for (page, color) in pool.iter().zip(&agreed) {
            if let Some(color) = color {
                sorted[color.index()].push(*page);
            }
        }
        if first.is_some() || sorted.iter().all(|set| set.len() <= ways) {
            sorted.retain(|set| set.len() > ways);
            let placed: std::collections::BTreeSet<PageId> =
                sorted.iter().flatten().copied().collect();
            let open = pool
                .iter()
                .copied()
                .filter(|p| !placed.contains(p))
                .collect();
            return Ok((sorted, open));
        }
        first = Some(colors);
        // By the last pages of each color the second time.
        for set in &mut sorted {
            set.reverse();
        }
        members = sorted;
    }
}

pub(super) fn stop_if_asked(watch: &dyn Watch) -> Result<()> {
    if watch.stopped() {
        return Err(Error::new("stopped before all colors were found"));
    }
    Ok(())
}

/// Groups of pages that compete, each with at least one page more than there are ways.
pub(super) fn group<J: Judge>(
    judge: &mut J,
    random: &mut ChaCha8Rng,
    mut left: Vec<PageId>,
    search: &Search<'_>,
    known: usize,
) -> Result<Vec<Vec<PageId>>> {
    /// Victims in a row that nothing drives out before the rest is given up.
    const PATIENCE: usize = 12;
    let mut groups: Vec<Vec<PageId>> = Vec::new();
    let (ways, expected) = (search.cache.ways as usize, usize::from(search.cache.colors));
    // Of a larger pool only as many pages at once: the longer a measurement takes, the likelier is
    // it disturbed.
    let most = pool_pages(search.cache);
    let mut failures = 0;
    while left.len() > ways && failures < PATIENCE && !(search.late)() {
        stop_if_asked(search.watch)?;
        let Some(victim) = left.pop() else { break };
        let candidates = &left[left.len().saturating_sub(most)..];
        let Some(set) = reduce(judge, random, victim, candidates, ways, search.late) else {
            // It goes to the other end: others of its color may have been lost to a disturbance.
            left.insert(0, victim);
            failures += 1;
            continue;
        };
        let rest: Vec<PageId> = left.iter().copied().filter(|p| !set.contains(p)).collect();
        let mut group = set.clone();
        group.push(victim);
        group.extend(driven_out(judge, &set, &rest));
        // Chance makes a set that drives out far more than a color when the machine is busy: that
        // is no color.
        if group.len() <= ways || group.len() * expected > 3 * search.pages {
            left.insert(0, victim);
            failures += 1;
            continue;
        }
        left.retain(|p| !group.contains(p));
        failures = 0;
        if known + groups.len() < expected {
            search.watch.advance(1);
        }
        groups.push(group);
        search.hopeful.set(true);
    }
    Ok(groups)
}

/// Joins groups that drive out each other's pages: a color that was found twice.
fn merge<J: Judge>(judge: &mut J, groups: Vec<Vec<PageId>>, ways: usize) -> Vec<Vec<PageId>> {
    const ASKED: usize = 6;
    let mut merged: Vec<Vec<PageId>> = Vec::new();
    for group in groups {
        let same = merged.iter().position(|other| {
            let mut drives_out = |these: &[PageId], those: &[PageId]| {
                let set = &these[..these.len().min(ways + SPARE)];
                let few = &those[..those.len().min(ASKED)];
                driven_out(judge, set, few).len() * 2 > few.len()
            };
            drives_out(other, &group) || drives_out(&group, other)
        });
        match same {
            Some(which) => merged[which].extend(group),
            None => merged.push(group),
        }
    }
    merged
}
