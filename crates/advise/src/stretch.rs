//! How far a plan can be stretched, as it is: each question is put to `check`'s own verdict on the
//! given assignment.

use crate::answer::{Factor, OneTask, Stretch};
use crate::consider::Plan;
use crate::question::{Asked, with_timings};
use crate::{Pace, grow::WHOLE};
use analyze::Guarantee;
use analyze::policies::{Costs, PolicyVerdict};
use model::{Duration, Overhead, Overheads, Ratio, Result, TaskSet, Timing};

/// Costs are not stretched beyond this many percent.
const MOST_PERCENT: u64 = 10_000;

/// How far the plan can be stretched. `asked` has the priorities of the plan. Where time is over,
/// what is left is left out.
///
/// # Errors
/// As [`analyze::policies::judge_assigned`].
pub(crate) fn stretch(
    asked: &Asked<'_>,
    plan: &Plan,
    verdict: &PolicyVerdict,
    pace: &Pace<'_>,
) -> Result<Stretch> {
    let mut stretch = Stretch {
        wcets: verdict.growth,
        largest_cpmd: verdict.largest_cpmd,
        ..Stretch::default()
    };
    if is_charged(asked) {
        stretch.delays = factor(asked, plan, pace, Overheads::of(&[Overhead::Cpmd]))?;
        stretch.costs = factor(asked, plan, pace, Overheads::ALL)?;
    }
    for id in asked.set.ids() {
        pace.step();
        let Some(thousandths) = one_task(asked, plan, id.index(), pace)? else {
            continue;
        };
        let wcet = asked.set.timings()[id.index()].wcet;
        stretch.tasks.push(OneTask {
            task: asked.set.name(id),
            wcet,
            largest: scaled(wcet, thousandths),
            thousandths,
        });
    }
    stretch.tasks.sort_by_key(|t| t.thousandths);
    Ok(stretch)
}

/// Is anything charged?
fn is_charged(asked: &Asked<'_>) -> bool {
    asked.costs.profile.is_some() || asked.costs.cpmd.is_some_and(|d| !d.is_zero())
}

/// The most percent of the costs with which a plan holds; `None`: time is over.
fn factor(
    asked: &Asked<'_>,
    plan: &Plan,
    pace: &Pace<'_>,
    on: Overheads,
) -> Result<Option<Factor>> {
    let holds = |percent: u64| -> Result<bool> {
        let Some(ratio) = Ratio::new(percent, 100) else {
            return Ok(false);
        };
        let profile = asked.costs.profile.map(|profile| profile.scaled(ratio, on));
        let times = |d: Duration| {
            let nanos = (u128::from(d.nanos()) * u128::from(percent)).div_ceil(100);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let costs = Costs {
            profile: profile.as_ref(),
            cpmd: asked.costs.cpmd.map(times),
            ..asked.costs
        };
        let stretched = Asked {
            costs,
            set: asked.set,
            platform: asked.platform,
            guarantee: asked.guarantee,
        };
        stretched.holds(&plan.spec, &plan.assignment)
    };
    if holds(MOST_PERCENT)? {
        return Ok(Some(Factor {
            percent: MOST_PERCENT,
            exact: false,
        }));
    }
    let (mut low, mut high) = (100, MOST_PERCENT);
    while high - low > 1 {
        if !pace.goes_on() {
            return Ok(None);
        }
        let middle = low + (high - low) / 2;
        match holds(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(Some(Factor {
        percent: low,
        exact: true,
    }))
}

/// A WCET in thousandths, rounded up.
pub(crate) fn scaled(wcet: Duration, thousandths: u64) -> Duration {
    let nanos = (u128::from(wcet.nanos()) * u128::from(thousandths)).div_ceil(u128::from(WHOLE));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The most thousandths of the WCET of one task with which a plan holds; `None`: time is over.
fn one_task(asked: &Asked<'_>, plan: &Plan, task: usize, pace: &Pace<'_>) -> Result<Option<u64>> {
    let given = asked.set.timings()[task];
    let holds = |thousandths: u64| -> Result<bool> {
        let set = with_wcet(asked.set, task, scaled(given.wcet, thousandths))?;
        asked.with_set(&set).holds(&plan.spec, &plan.assignment)
    };
    let room = room(&given, asked.guarantee);
    let most = u128::from(room.nanos()) * u128::from(WHOLE) / u128::from(given.wcet.nanos().max(1));
    let (mut low, mut high) = (WHOLE, u64::try_from(most).unwrap_or(u64::MAX).max(WHOLE));
    while low < high {
        if !pace.goes_on() {
            return Ok(None);
        }
        let middle = low + (high - low).div_ceil(2);
        match holds(middle)? {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Ok(Some(low))
}

/// Beyond this a single job is too long.
fn room(t: &Timing, guarantee: Guarantee) -> Duration {
    match guarantee {
        Guarantee::Hard => t.deadline.min(t.period),
        Guarantee::Soft => t.period,
    }
}

/// The same set with another WCET of one task.
pub(crate) fn with_wcet(set: &TaskSet, task: usize, wcet: Duration) -> Result<TaskSet> {
    let mut timings = set.timings().to_vec();
    timings[task].wcet = wcet;
    with_timings(set, timings)
}
