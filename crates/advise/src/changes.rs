//! Where nothing holds: the smallest changes with which something does. Each is verified by a
//! search with this change alone.

use crate::answer::{Change, Searched, What};
use crate::ground::ByTests;
use crate::question::{Asked, with_timings};
use crate::stretch::{scaled, with_wcet};
use crate::{Pace, grow::WHOLE, pack};
use analyze::policies::Places;
use model::{Duration, Platform, Result};
use policy::Spec;
use policy::catalog::{Needs, Priority};
use std::cmp::Reverse;

/// How many of the policies that come nearest are asked.
const NEAREST: usize = 4;
/// The most tasks of which changes are looked for: those with the largest utilization.
const MOST_TASKS: usize = 40;
/// Periods grow to so many thousandths at most.
const LONGEST: u64 = 8 * WHOLE;
/// So many processors are added at most.
const MORE_PROCESSORS: u32 = 4;

/// The changes, and what was not tried.
pub(crate) struct Found {
    pub changes: Vec<Change>,
    pub not_tried: Vec<String>,
}

/// The changes with which a set holds under some of these policies, the smallest first.
///
/// # Errors
/// As [`analyze::policies::judge`].
pub(crate) fn find(asked: &Asked<'_>, policies: &[Spec], pace: &Pace<'_>) -> Result<Found> {
    let mut near = nearest(asked, policies, pace)?;
    let mut changes = Vec::new();
    let mut not_tried = Vec::new();
    if let Some((thousandths, spec)) = near.first().filter(|(k, _)| *k > 0) {
        changes.push(Change {
            what: What::Wcets {
                thousandths: *thousandths,
            },
            policy: spec.to_string(),
            words: format!(
                "all WCETs {} % shorter, under {spec}",
                percent(WHOLE - *thousandths)
            ),
        });
    }
    let left_out: Vec<String> = near
        .iter()
        .skip(NEAREST)
        .map(|(_, spec)| spec.to_string())
        .collect();
    if !left_out.is_empty() {
        not_tried.push(format!(
            "changes of single tasks were looked for under the {NEAREST} policies that come \
             nearest, not under {}",
            left_out.join(", ")
        ));
    }
    near.truncate(NEAREST);
    let near: Vec<Spec> = near.into_iter().map(|(_, spec)| spec).collect();
    let tasks = by_utilization(asked);
    if asked.set.len() > tasks.len() {
        not_tried.push(format!(
            "changes of single tasks were looked for with the {MOST_TASKS} of the largest \
             utilization, not with the other {}",
            asked.set.len() - tasks.len()
        ));
    }
    for task in tasks {
        pace.step();
        if !pace.goes_on() {
            not_tried.push("changes of further tasks: the search ended before".to_owned());
            break;
        }
        changes.extend(shorter_wcet(asked, &near, task, pace)?);
        changes.extend(longer_period(asked, &near, task, pace)?);
    }
    changes.sort_by_key(|change| size(&change.what));
    changes.extend(more_processors(asked, &near, pace)?);
    Ok(Found { changes, not_tried })
}

/// How much changes, in thousandths.
fn size(what: &What) -> u64 {
    match what {
        What::Wcets { thousandths } | What::Wcet { thousandths, .. } => WHOLE - *thousandths,
        What::Period { thousandths, .. } => *thousandths - WHOLE,
        What::Processors { .. } => 0,
    }
}

/// Tenths of a percent as a number.
fn percent(thousandths: u64) -> String {
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

/// Policies with the thousandths of WCETs with which each holds, the nearest first.
fn nearest(asked: &Asked<'_>, policies: &[Spec], pace: &Pace<'_>) -> Result<Vec<(u64, Spec)>> {
    let mut near = Vec::new();
    for spec in policies {
        pace.step();
        let mut low = 0;
        let mut high = WHOLE;
        while high - low > 1 && pace.goes_on() {
            let middle = low + (high - low) / 2;
            let timings = asked.set.timings().iter().map(|t| model::Timing {
                wcet: scaled(t.wcet, middle),
                ..*t
            });
            let set = with_timings(asked.set, timings.collect())?;
            match holds(&asked.with_set(&set), spec)? {
                true => low = middle,
                false => high = middle,
            }
        }
        near.push((low, spec.clone()));
    }
    near.sort_by_key(|(thousandths, _)| Reverse(*thousandths));
    Ok(near)
}

/// Is there a plan that is found quickly: as `check` places tasks, or in one of the other orders?
fn holds(asked: &Asked<'_>, spec: &Spec) -> Result<bool> {
    if asked.seek(spec)?.is_some() {
        return Ok(true);
    }
    let places = Places::of(
        asked.set,
        asked.platform,
        spec,
        asked.guarantee,
        &asked.costs,
    )?;
    // Given priorities are those of the order of the set there.
    let single = places.filter(|p| {
        p.are_single() && p.clusters().len() > 1 && p.priority() != Some(Priority::Given)
    });
    Ok(single.is_some_and(|places| {
        let ground = ByTests::of(&places);
        !pack::all(&ground, asked.set, &mut Searched::default()).is_empty()
    }))
}

/// The first policy that holds.
fn first<'s>(asked: &Asked<'_>, policies: &'s [Spec]) -> Result<Option<&'s Spec>> {
    for spec in policies {
        if holds(asked, spec)? {
            return Ok(Some(spec));
        }
    }
    Ok(None)
}

fn by_utilization(asked: &Asked<'_>) -> Vec<usize> {
    let timings = asked.set.timings();
    let mut tasks: Vec<usize> = (0..timings.len()).collect();
    tasks.sort_by_cached_key(|task| Reverse(timings[*task].utilization()));
    tasks.truncate(MOST_TASKS);
    tasks
}

/// The longest WCET of one task with which the set holds.
fn shorter_wcet(
    asked: &Asked<'_>,
    near: &[Spec],
    task: usize,
    pace: &Pace<'_>,
) -> Result<Option<Change>> {
    let given = asked.set.timings()[task].wcet;
    let at = |thousandths: u64| {
        let nanos = u128::from(given.nanos()) * u128::from(thousandths) / u128::from(WHOLE);
        Duration::from_nanos((nanos as u64).max(1))
    };
    let find = |thousandths: u64| {
        let set = with_wcet(asked.set, task, at(thousandths))?;
        first(&asked.with_set(&set), near)
    };
    let Some(mut spec) = find(1)? else {
        return Ok(None);
    };
    let (mut low, mut high) = (1, WHOLE);
    while high - low > 1 {
        if !pace.goes_on() {
            return Ok(None);
        }
        let middle = low + (high - low) / 2;
        match find(middle)? {
            Some(found) => (low, spec) = (middle, found),
            None => high = middle,
        }
    }
    let name = asked.set.name(model::TaskId(task as u32));
    let to = at(low);
    Ok(Some(Change {
        words: format!(
            "a WCET of `{name}` of {} instead of {} ({} % shorter), under {spec}",
            to.rounded(),
            given.rounded(),
            percent(WHOLE - low)
        ),
        what: What::Wcet {
            task: name,
            from: given,
            to,
            thousandths: low,
        },
        policy: spec.to_string(),
    }))
}

/// The shortest longer period of one task with which the set holds.
fn longer_period(
    asked: &Asked<'_>,
    near: &[Spec],
    task: usize,
    pace: &Pace<'_>,
) -> Result<Option<Change>> {
    let given = asked.set.timings()[task];
    let find = |thousandths: u64| {
        let mut timings = asked.set.timings().to_vec();
        let t = &mut timings[task];
        t.period = scaled(given.period, thousandths);
        if given.has_implicit_deadline() {
            t.deadline = t.period;
        }
        let set = with_timings(asked.set, timings)?;
        first(&asked.with_set(&set), near)
    };
    let Some(mut spec) = find(LONGEST)? else {
        return Ok(None);
    };
    let (mut low, mut high) = (WHOLE, LONGEST);
    while high - low > 1 {
        if !pace.goes_on() {
            return Ok(None);
        }
        let middle = low + (high - low) / 2;
        match find(middle)? {
            Some(found) => (high, spec) = (middle, found),
            None => low = middle,
        }
    }
    let name = asked.set.name(model::TaskId(task as u32));
    let to = scaled(given.period, high);
    Ok(Some(Change {
        words: format!(
            "a period of `{name}` of {} instead of {} ({} % longer), under {spec}",
            to.rounded(),
            given.period.rounded(),
            percent(high - WHOLE)
        ),
        what: What::Period {
            task: name,
            from: given.period,
            to,
            thousandths: high,
        },
        policy: spec.to_string(),
    }))
}

/// Does a platform have the clusters that a policy names? A size may not divide its processors.
fn has_clusters(platform: &Platform, spec: &Spec) -> Result<bool> {
    let clusters = match spec.needs()? {
        Needs::Clusters(clusters) => Some(clusters),
        Needs::Slots { clusters, .. } => clusters,
        Needs::Nothing | Needs::Turns { .. } | Needs::Slices { .. } => None,
    };
    Ok(clusters.is_none_or(|clusters| platform.clusters(clusters).is_ok()))
}

/// The fewest more processors with which the set holds.
fn more_processors(asked: &Asked<'_>, near: &[Spec], pace: &Pace<'_>) -> Result<Option<Change>> {
    let m = asked.platform.usable().len() as u32;
    for more in 1..=MORE_PROCESSORS {
        if !pace.goes_on() {
            return Ok(None);
        }
        // A platform that cannot have so many is no change that can be made.
        let Ok(platform) = asked.platform.scaled(m + more) else {
            return Ok(None);
        };
        let larger = Asked {
            platform: &platform,
            set: asked.set,
            guarantee: asked.guarantee,
            costs: asked.costs,
        };
        let mut found = None;
        for spec in near {
            if has_clusters(&platform, spec)? && holds(&larger, spec)? {
                found = Some(spec);
                break;
            }
        }
        if let Some(spec) = found {
            let processors = (m + more) as usize;
            return Ok(Some(Change {
                words: format!("{processors} processors instead of {m}, under {spec}"),
                what: What::Processors { processors },
                policy: spec.to_string(),
            }));
        }
    }
    Ok(None)
}
