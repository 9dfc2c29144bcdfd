//! Colors in the search: which part of the cache each task gets, where its WCET depends on that.
//!
//! Tasks that never run at the same time may have the same colors: those of one processor. All
//! others need colors of their own, else one of them would execute for longer than its WCET with
//! so many colors says. So there are three ways to give them:
//!
//! - **by processor**: each processor has its colors, and its tasks share them. For a given
//!   placement the best division is found exactly: by bisection over the growth of WCETs, as each
//!   processor needs the fewest colors with which its test passes.
//! - **by task**: each task has its own, in such numbers that utilization is least (exactly, by
//!   dynamic programming). Under policies that move tasks.
//! - **shared**: nobody has colors, and WCETs are those in a shared cache.
//!
//! Placements are looked for with the WCETs of several divisions, since WCETs depend on placements
//! and placements on WCETs. Small sets are searched whole: all placements on processors, each with
//! its best division.

use crate::answer::WayFound;
use crate::candidates::Candidate;
use crate::consider::{self, Looked, State};
use crate::question::Asked;
use crate::{Judged, Options, Pace, Searched};
use analyze::policies::Places;
use model::{Assignment, ClusterSpec, Color, Colors, Result, TaskId, TaskSet};
use policy::Spec;
use policy::catalog::{Needs, Order, Priority};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How colors are given to tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The tasks of a processor share its colors, which no other processor has.
    ByProcessor,
    /// Each task has its own.
    ByTask,
    /// Nobody has colors: all share the cache.
    Shared,
}

/// The colors of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Colored {
    pub way: Way,
    /// By task; `None`: it has none.
    pub colors: Vec<Option<Colors>>,
}

/// A division to begin with: by task, how many colors its WCET is taken with.
struct Start {
    /// `None`: all share the cache.
    counts: Option<Vec<u16>>,
    /// For policies that keep tasks on processors alone: the numbers are too many for all.
    is_for_processors: bool,
}

/// At most so many numbers of colors are tried for all tasks alike.
const MOST_LEVELS: usize = 8;
/// Sets of at most so many tasks are searched whole …
const MOST_TASKS: usize = 6;
/// … where they have at most so many placements.
const MOST_PLACEMENTS: usize = 3_000;
/// No WCET grows beyond this, in thousandths.
const MOST_GROWTH: u64 = 64_000;

/// The plans of all candidates with colors, each judged as `check` judges it.
pub(crate) fn look(
    asked: &Asked<'_>,
    candidates: &[Candidate],
    supply: u16,
    options: &Options,
    pace: &Pace<'_>,
) -> Result<(Vec<Judged>, Vec<WayFound>)> {
    let mut best: Vec<Judged> = Vec::new();
    let mut ways: Vec<WayFound> = Vec::new();
    for start in starts(asked.set, supply) {
        if !pace.goes_on() && !best.is_empty() {
            break;
        }
        let set = start.set(asked.set)?;
        let here = asked.with_set(&set);
        let mut these = Vec::new();
        for candidate in candidates {
            if !start.is_for_processors || is_for_processors(candidate.spec())? {
                these.push(candidate.clone());
            }
        }
        let mut judged = crate::look(&here, these, &options.effort, pace)?;
        for one in &mut judged {
            let colored = match &one.looked.state {
                State::Holds(plan) => give(asked, &start, plan, supply)?,
                _ => None,
            };
            settle(asked, one, colored, pace)?;
            note(&mut ways, one);
        }
        keep_best(&mut best, judged);
    }
    for candidate in candidates {
        if pace.goes_on()
            && let Some(one) = whole(asked, candidate, supply, pace)?
        {
            note(&mut ways, &one);
            keep_best(&mut best, vec![one]);
        }
    }
    ways.sort_by_key(|way| Reverse(way.growth.map(|growth| growth.thousandths)));
    Ok((best, ways))
}

/// Keeps of each way the plan that bears most, also where another way bears more with its policy.
fn note(ways: &mut Vec<WayFound>, one: &Judged) {
    let (Some(colored), Some(verdict)) = (&one.colored, &one.verdict) else {
        return;
    };
    let found = WayFound {
        way: colored.way,
        policy: one.looked.candidate.spec().to_string(),
        growth: verdict.growth,
    };
    match ways.iter_mut().find(|way| way.way == found.way) {
        None => ways.push(found),
        Some(known) => {
            let growth = |way: &WayFound| way.growth.map(|growth| growth.thousandths);
            if growth(&found) > growth(known) {
                *known = found;
            }
        }
    }
}

/// Judges a plan with its colors; without colors that suffice it is none.
fn settle(
    asked: &Asked<'_>,
    one: &mut Judged,
    colored: Option<Colored>,
    pace: &Pace<'_>,
) -> Result<()> {
    one.looked.searched.is_exact = false;
    let State::Holds(plan) = &one.looked.state else {
        return Ok(());
    };
    let Some(colored) = colored else {
        let why = "there are fewer colors than its tasks would need".to_owned();
        one.looked.state = State::Fails(why);
        return Ok(());
    };
    let set = asked.set.with_colors(&colored.colors)?;
    let verdict = crate::judge_plan(&asked.with_set(&set), plan, &crate::pace::Within(pace));
    let verdict = match verdict {
        Ok(verdict) => verdict,
        // It ended in the midst of it.
        Err(_) if !pace.goes_on() => {
            one.looked.state = State::NotTried;
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    match verdict.schedulable {
        true => {
            one.verdict = Some(verdict);
            one.colored = Some(colored);
        }
        false => {
            let why = format!(
                "with the colors that there are it fails: {}",
                verdict.reason
            );
            one.looked.state = State::Fails(why);
        }
    }
    Ok(())
}

/// Keeps of each candidate what is best.
fn keep_best(best: &mut Vec<Judged>, more: Vec<Judged>) {
    for one in more {
        let same = |known: &&mut Judged| known.looked.candidate == one.looked.candidate;
        match best.iter_mut().find(same) {
            None => best.push(one),
            Some(known) => {
                let mut both = vec![one, known.clone()];
                crate::sort(&mut both);
                *known = both.swap_remove(0);
            }
        }
    }
}

impl Start {
    fn set(&self, set: &TaskSet) -> Result<TaskSet> {
        let colors: Vec<Option<Colors>> = match &self.counts {
            None => vec![None; set.len()],
            Some(counts) => counts
                .iter()
                .map(|n| (*n > 0).then(|| Colors::first(*n)))
                .collect(),
        };
        set.with_colors(&colors)
    }
}

/// The tasks whose WCETs depend on colors, with their tables.
fn tables(set: &TaskSet) -> impl Iterator<Item = (usize, &model::Wcets)> {
    set.ids().filter_map(|id| {
        let wcets = set.details(id)?.wcets.as_ref()?;
        Some((id.index(), wcets))
    })
}

/// The numbers of colors that change some WCET, ascending.
fn levels(set: &TaskSet, supply: u16) -> Vec<u16> {
    let all: BTreeSet<u16> = tables(set)
        .flat_map(|(_, wcets)| wcets.by_colors().iter().map(|(n, _)| *n))
        .filter(|n| *n <= supply)
        .collect();
    all.into_iter().collect()
}

fn starts(set: &TaskSet, supply: u16) -> Vec<Start> {
    let mut starts = Vec::new();
    if let Some(counts) = least_utilization(set, supply) {
        starts.push(Start {
            counts: Some(counts),
            is_for_processors: false,
        });
    }
    let levels = levels(set, supply);
    let step = levels.len().div_ceil(MOST_LEVELS).max(1);
    for level in levels.into_iter().rev().step_by(step) {
        let mut counts = vec![0; set.len()];
        let mut suffices = true;
        for (task, wcets) in tables(set) {
            counts[task] = level.max(wcets.by_colors()[0].0);
            suffices &= counts[task] <= supply;
        }
        if suffices {
            starts.push(Start {
                counts: Some(counts),
                is_for_processors: true,
            });
        }
    }
    if tables(set).all(|(_, wcets)| wcets.shared().is_some()) {
        starts.push(Start {
            counts: None,
            is_for_processors: false,
        });
    }
    starts
}

/// By task the colors with which the set has the least utilization; `None`: there are not enough
/// for the fewest.
fn least_utilization(set: &TaskSet, supply: u16) -> Option<Vec<u16>> {
    let colors = usize::from(supply);
    // By number of colors: the utilization of the tasks so far, and what each of them has.
    let mut best: Vec<Option<(f64, Vec<u16>)>> = vec![None; colors + 1];
    best[0] = Some((0.0, vec![0; set.len()]));
    for (task, wcets) in tables(set) {
        let period = set.timings()[task].period.nanos().max(1) as f64;
        let mut next: Vec<Option<(f64, Vec<u16>)>> = vec![None; colors + 1];
        for (used, known) in best.iter().enumerate() {
            let Some((utilization, counts)) = known else {
                continue;
            };
            for (n, wcet) in wcets.by_colors() {
                let used = used + usize::from(*n);
                if used > colors {
                    break;
                }
                let sum = utilization + wcet.nanos() as f64 / period;
                if next[used].as_ref().is_none_or(|(known, _)| sum < *known) {
                    let mut counts = counts.clone();
                    counts[task] = *n;
                    next[used] = Some((sum, counts));
                }
            }
        }
        best = next;
    }
    let all = best.into_iter().flatten();
    all.min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, counts)| counts)
}

/// Does the policy keep each task on one processor?
fn is_for_processors(spec: &Spec) -> Result<bool> {
    Ok(spec.needs()? == Needs::Clusters(ClusterSpec::Partitioned))
}

/// The colors of a plan that was found with the WCETs of a division; `None`: there are not enough.
fn give(
    asked: &Asked<'_>,
    start: &Start,
    plan: &consider::Plan,
    supply: u16,
) -> Result<Option<Colored>> {
    let Some(counts) = &start.counts else {
        return Ok(Some(Colored {
            way: Way::Shared,
            colors: vec![None; asked.set.len()],
        }));
    };
    if let Assignment::Clustered(clustered) = &plan.assignment
        && clustered.clusters.iter().all(|c| c.len() == 1)
    {
        let set = match &plan.priorities {
            Some(priorities) => asked.set.with_priorities(priorities)?,
            None => asked.set.clone(),
        };
        let divided = divide(
            &asked.with_set(&set),
            &plan.spec,
            &clustered.cluster_of,
            supply,
        )?;
        return Ok(divided.map(|(_, counts)| by_processor(&set, &clustered.cluster_of, &counts)));
    }
    let sum: u32 = counts.iter().map(|n| u32::from(*n)).sum();
    Ok((sum <= u32::from(supply)).then(|| by_task(counts)))
}

/// Colors one after the other.
fn by_task(counts: &[u16]) -> Colored {
    let mut next = 0;
    let mut take = |n: u16| {
        let from = next;
        next += n;
        (n > 0).then(|| (from..next).map(Color).collect())
    };
    Colored {
        way: Way::ByTask,
        colors: counts.iter().map(|n| take(*n)).collect(),
    }
}

/// The colors of its processor for each task whose WCET depends on them.
fn by_processor(set: &TaskSet, place_of: &[u32], counts: &[u16]) -> Colored {
    let places = by_task(counts).colors;
    let mut colors = vec![None; set.len()];
    for (task, _) in tables(set) {
        colors[task] = places[place_of[task] as usize].clone();
    }
    Colored {
        way: Way::ByProcessor,
        colors,
    }
}

/// The places of a policy with the WCETs of a number of colors.
struct Level<'a> {
    colors: u16,
    places: Places<'a>,
    /// By task here: is its WCET known with so many?
    is_known: Vec<bool>,
}

/// What divisions are asked of: by number of colors the same set with other WCETs, in the order in
/// which the policy ranks tasks.
struct Divisions {
    sets: Vec<(u16, TaskSet, Vec<bool>)>,
    /// By place here, the task of the set as it was given.
    order: Vec<TaskId>,
    depends: Vec<bool>,
}

impl Divisions {
    fn of(asked: &Asked<'_>, spec: &Spec, supply: u16) -> Result<Self> {
        let set = asked.set;
        let is_given = spec.order()? == Order::Fixed(Priority::Given) && set.has_priorities();
        let order = match is_given {
            true => set.by_priority(),
            false => set.ids().collect(),
        };
        let mut sets = Vec::new();
        for level in levels(set, supply) {
            let mut colors = vec![None; set.len()];
            let mut is_known = vec![true; set.len()];
            for (task, wcets) in tables(set) {
                match wcets.with(level) {
                    Some(_) => colors[task] = Some(Colors::first(level)),
                    None => is_known[task] = false,
                }
            }
            let colored = set.with_colors(&colors)?;
            let colored = if is_given {
                colored.reordered(&order)?
            } else {
                colored
            };
            let is_known = order.iter().map(|id| is_known[id.index()]).collect();
            sets.push((level, colored, is_known));
        }
        let mut depends = vec![false; set.len()];
        for (task, _) in tables(set) {
            depends[task] = true;
        }
        let depends = order.iter().map(|id| depends[id.index()]).collect();
        Ok(Divisions {
            sets,
            order,
            depends,
        })
    }

    /// `None`: the policy cannot be asked so.
    fn levels<'a>(&'a self, asked: &Asked<'a>, spec: &Spec) -> Result<Option<Vec<Level<'a>>>> {
        let mut levels = Vec::with_capacity(self.sets.len());
        for (colors, set, is_known) in &self.sets {
            let places = Places::of(set, asked.platform, spec, asked.guarantee, &asked.costs)?;
            let Some(places) = places.filter(Places::are_single) else {
                return Ok(None);
            };
            levels.push(Level {
                colors: *colors,
                places,
                is_known: is_known.clone(),
            });
        }
        Ok((!levels.is_empty()).then_some(levels))
    }

    /// By place, its tasks, ascending.
    fn tasks_of(&self, place_of: &[u32], places: usize) -> Vec<Vec<u32>> {
        let mut tasks = vec![Vec::new(); places];
        for (here, id) in (0_u32..).zip(&self.order) {
            tasks[place_of[id.index()] as usize].push(here);
        }
        tasks
    }

    /// By place the fewest colors with which WCETs may grow most, and that growth, in thousandths.
    fn best(
        &self,
        levels: &mut [Level<'_>],
        tasks: &[Vec<u32>],
        supply: u16,
    ) -> Option<(u64, Vec<u16>)> {
        let mut best = (WHOLE, self.fewest(levels, tasks, supply, WHOLE)?);
        // It fails somewhere below: no WCET of an hour fits into a period.
        let (mut low, mut high) = (WHOLE, 2 * WHOLE);
        while high < MOST_GROWTH {
            let Some(counts) = self.fewest(levels, tasks, supply, high) else {
                break;
            };
            best = (high, counts);
            (low, high) = (high, 2 * high);
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.fewest(levels, tasks, supply, middle) {
                Some(counts) => (low, best) = (middle, (middle, counts)),
                None => high = middle,
            }
        }
        Some(best)
    }

    /// By place the fewest colors with which it holds its tasks, with WCETs in these thousandths;
    /// `None`: together they are too many.
    fn fewest(
        &self,
        levels: &mut [Level<'_>],
        tasks: &[Vec<u32>],
        supply: u16,
        growth: u64,
    ) -> Option<Vec<u16>> {
        for level in levels.iter_mut() {
            level.places.grow(growth);
        }
        let mut counts = Vec::with_capacity(tasks.len());
        let mut left = supply;
        for (place, tasks) in tasks.iter().enumerate() {
            let depends = tasks.iter().any(|t| self.depends[*t as usize]);
            let count = match depends {
                false => levels[0].places.holds(place, tasks).then_some(0),
                true => levels
                    .iter()
                    .find(|level| {
                        level.colors <= left
                            && tasks.iter().all(|t| level.is_known[*t as usize])
                            && level.places.holds(place, tasks)
                    })
                    .map(|level| level.colors),
            }?;
            left -= count;
            counts.push(count);
        }
        Some(counts)
    }
}

const WHOLE: u64 = crate::grow::WHOLE;

/// The best division of the colors among processors for one placement.
fn divide(
    asked: &Asked<'_>,
    spec: &Spec,
    place_of: &[u32],
    supply: u16,
) -> Result<Option<(u64, Vec<u16>)>> {
    let divisions = Divisions::of(asked, spec, supply)?;
    let Some(mut levels) = divisions.levels(asked, spec)? else {
        return Ok(None);
    };
    let places = levels[0].places.clusters().len();
    let tasks = divisions.tasks_of(place_of, places);
    Ok(divisions.best(&mut levels, &tasks, supply))
}

/// The best of all placements on processors, each with its best division, of a small set.
fn whole(
    asked: &Asked<'_>,
    candidate: &Candidate,
    supply: u16,
    pace: &Pace<'_>,
) -> Result<Option<Judged>> {
    let Candidate::Policy(spec) = candidate else {
        return Ok(None);
    };
    if asked.set.len() > MOST_TASKS || !is_for_processors(spec)? {
        return Ok(None);
    }
    let divisions = Divisions::of(asked, spec, supply)?;
    let Some(mut levels) = divisions.levels(asked, spec)? else {
        return Ok(None);
    };
    let places = levels[0].places.clusters().len();
    let mut searched = Searched::default();
    let mut best: Option<(u64, Vec<u16>, Vec<u32>)> = None;
    let all = placements(asked.set.len(), places, asked.set.has_affinities());
    if all.len() > MOST_PLACEMENTS {
        return Ok(None);
    }
    for place_of in all {
        if !pace.goes_on() {
            return Ok(None);
        }
        let is_allowed =
            |(here, id): (u32, &TaskId)| levels[0].places.may(here, place_of[id.index()] as usize);
        if !(0_u32..).zip(&divisions.order).all(is_allowed) {
            continue;
        }
        searched.placements += 1;
        let tasks = divisions.tasks_of(&place_of, places);
        if let Some((growth, counts)) = divisions.best(&mut levels, &tasks, supply)
            && best.as_ref().is_none_or(|(known, ..)| growth > *known)
        {
            best = Some((growth, counts, place_of));
        }
    }
    let Some((_, counts, place_of)) = best else {
        return Ok(None);
    };
    let plan = consider::Plan {
        spec: spec.clone(),
        assignment: levels[0].places.assignment(place_of.clone()),
        priorities: None,
        found_by: format!(
            "all {} placements, each with its best division of the colors",
            searched.placements
        ),
    };
    let mut one = Judged {
        looked: Looked {
            candidate: candidate.clone(),
            state: State::Holds(plan),
            searched,
        },
        verdict: None,
        colored: None,
    };
    settle(
        asked,
        &mut one,
        Some(by_processor(asked.set, &place_of, &counts)),
        pace,
    )?;
    one.looked.searched.is_exact = true;
    Ok(Some(one))
}

/// All placements of so many tasks; where processors are alike, those that differ by their names
/// alone once.
fn placements(tasks: usize, places: usize, are_different: bool) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..tasks {
        let mut longer = Vec::new();
        for begun in &all {
            let used = begun.iter().max().map_or(0, |p| *p as usize + 1);
            let most = if are_different {
                places
            } else {
                (used + 1).min(places)
            };
            for place in 0..most as u32 {
                let mut next = begun.clone();
                next.push(place);
                longer.push(next);
            }
        }
        all = longer;
        if all.len() > MOST_PLACEMENTS {
            break;
        }
    }
    all
}
