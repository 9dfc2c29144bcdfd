//! Evidence for one processor: points of the demand, jobs of busy windows.
//!
//! Sources: as [`crate::uniprocessor::edf`] and [`crate::uniprocessor::fixed_priority`]. Written
//! apart from them: it has to say why, not only whether.

use super::format::{Number, Proof, Refusal};
use super::{Here, big, nanos, search};
use model::{Duration, Extras, Timing};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One as _, ToPrimitive as _, Zero as _};

/// The most points and jobs that a proof lists.
pub(super) const MOST: usize = 100_000;

/// h(t).
pub(super) fn demand(tasks: &[Timing], t: i128) -> i128 {
    let due = tasks.iter().filter(|task| nanos(task.deadline) <= t);
    let jobs = |d: i128, p: i128| (t - d) / p + 1;
    due.map(|task| jobs(nanos(task.deadline), nanos(task.period)) * nanos(task.wcet))
        .sum()
}

/// The latest deadline of a job before t.
fn deadline_before(tasks: &[Timing], t: i128) -> Option<i128> {
    let due = tasks.iter().filter(|task| nanos(task.deadline) < t);
    due.map(|task| {
        let (d, p) = (nanos(task.deadline), nanos(task.period));
        (t - d - 1) / p * p + d
    })
    .max()
}

/// From where the demand has to be looked at: beyond, it fits. `None`: too far away.
fn bound(here: &Here) -> Option<i128> {
    bound_with(here, 0)
}

/// The same for what is due and this blocking.
fn bound_with(here: &Here, blocking: i128) -> Option<i128> {
    let by_load = || {
        let idle = BigRational::one() - here.utilization();
        if idle <= BigRational::zero() {
            return None;
        }
        let mut ahead = BigRational::from_integer(blocking.into());
        let mut longest = 0;
        for t in &here.tasks {
            let (d, p) = (nanos(t.deadline), nanos(t.period));
            match d < p {
                true => {
                    ahead += t.utilization().to_big() * BigRational::from_integer((p - d).into())
                }
                false => longest = longest.max(d - p),
            }
        }
        let bound = (ahead / idle).ceil().to_integer().to_i128()?.max(longest);
        (bound >> 100 == 0).then_some(bound)
    };
    by_load().or_else(|| busy_period(here, blocking))
}

/// The length of the synchronous busy period that begins with this blocking.
fn busy_period(here: &Here, blocking: i128) -> Option<i128> {
    let mut w: i128 = blocking + here.tasks.iter().map(|t| nanos(t.wcet)).sum::<i128>();
    for _ in 0..MOST {
        let jobs = |t: &model::Timing| Integer::div_ceil(&w, &nanos(t.period)) * nanos(t.wcet);
        let next = blocking + here.tasks.iter().map(jobs).sum::<i128>();
        if next == w {
            return Some(w);
        }
        if next >> 100 != 0 {
            return None;
        }
        w = next;
    }
    None
}

/// The points that quick processor-demand analysis visits, to the first at which more is due than
/// fits. Whether that is so, with all points.
fn points(here: &Here, until: i128) -> Option<(bool, Vec<[i128; 2]>)> {
    let mut points = Vec::new();
    let mut open = until + 1;
    while let Some(last) = deadline_before(&here.tasks, open) {
        // The demand is the same from that deadline up to here.
        let h = demand(&here.tasks, last);
        points.push([last, h]);
        if h > last {
            return Some((false, points));
        }
        if points.len() > MOST {
            return None;
        }
        open = h;
    }
    Some((true, points))
}

/// From where the demand, or that of FFDBF, is at most rate·t, and the points that show the same of
/// all times before. An error: when it is more, if that is known; else there are too many points.
pub(super) fn points_below(
    tasks: &[Timing],
    rate: &BigRational,
    due: impl Fn(i128) -> BigRational,
) -> Result<(Number, Vec<[Number; 2]>), Option<i128>> {
    let whole = |n: i128| BigRational::from_integer(n.into());
    let (mut idle, mut ahead) = (rate.clone(), BigRational::zero());
    for t in tasks {
        let u = t.utilization().to_big();
        let early = whole(nanos(t.wcet)) - &u * whole(nanos(t.deadline));
        ahead += early.max(BigRational::zero());
        idle -= u;
    }
    let until = match (ahead.is_zero(), idle.is_zero()) {
        _ if idle < BigRational::zero() => return Err(None),
        (true, _) => 0,
        (false, true) => return Err(None),
        (false, false) => (ahead / idle).ceil().to_integer().to_i128().ok_or(None)?,
    };
    if until >> 100 != 0 {
        return Err(None);
    }
    let mut points = Vec::new();
    let mut open = until + 1;
    while let Some(last) = deadline_before(tasks, open) {
        let h = due(last);
        let from = &h / rate;
        if from > whole(last) || points.len() > MOST {
            return Err((from > whole(last)).then_some(last));
        }
        points.push([last.into(), big(h)]);
        open = from.ceil().to_integer().to_i128().ok_or(None)?;
    }
    Ok((until.into(), points))
}

/// Why EDF meets every deadline of tasks that it holds.
pub(super) fn demand_proof(here: &Here) -> Result<Proof, String> {
    const TOO_MANY: &str = "its proof would have more than 100000 points of the demand";
    if here.is_delayed() {
        let shifted = here.since_latest_release();
        let (until, points) = points_with_blocking(&shifted).ok_or(TOO_MANY)?;
        return Ok(Proof::Demand { until, points });
    }
    if here.tasks.iter().all(|t| t.deadline >= t.period) {
        return Ok(Proof::Demand {
            until: Number::from(0_u64),
            points: Vec::new(),
        });
    }
    let until = bound(here).ok_or(TOO_MANY)?;
    match points(here, until).ok_or(TOO_MANY)? {
        (true, points) => Ok(Proof::Demand {
            until: until.into(),
            points: points.into_iter().map(|p| p.map(Number::from)).collect(),
        }),
        (false, _) => Err("the demand of a processor is more than fits".to_owned()),
    }
}

/// From where blocking and demand fit, and the points that show the same of all times before, as
/// [`crate::uniprocessor::delayed`] decides it. `None`: they do not, or there are too many.
fn points_with_blocking(here: &Here) -> Option<(Number, Vec<[Number; 2]>)> {
    let tasks = &here.tasks;
    let blocking = |i: &usize| nanos(here.extras[*i].blocking);
    let most = (0..tasks.len()).map(|i| blocking(&i)).max()?;
    let until = bound_with(here, most)?;
    let mut points = Vec::new();
    let mut open = until + 1;
    while let Some(last) = deadline_before(tasks, open) {
        let firsts = tasks.iter().map(|t| nanos(t.deadline));
        let first = firsts.filter(|d| *d <= last).max()?;
        let latest = (0..tasks.len()).filter(|i| nanos(tasks[*i].deadline) == first);
        let due = demand(tasks, last) + latest.map(|i| blocking(&i)).max()?;
        if due > last || points.len() > MOST {
            return None;
        }
        points.push([last.into(), due.into()]);
        // Blocking falls at the first deadlines of tasks.
        open = if most > 0 { due.max(first) } else { due };
    }
    Some((until.into(), points))
}

/// A time by which more is due than fits. `None`: it all fits, or that is not known.
pub(super) fn too_much(here: &Here) -> Option<Refusal> {
    if here.utilization() > BigRational::one() {
        return None;
    }
    let (fits, points) = points(here, bound(here)?)?;
    let last = points.last().filter(|_| !fits)?;
    Some(Refusal::Demand {
        until: last[0].into(),
    })
}

/// By task: the jobs of its busy window, each with the time at which it is complete; or the job
/// that is late. With blocking and jitter, if they are `delayed`.
fn jobs(here: &Here, k: usize, delayed: bool) -> Result<Result<Vec<i128>, u32>, String> {
    let task = &here.tasks[k];
    let (e, p, d) = (nanos(task.wcet), nanos(task.period), nanos(task.deadline));
    let higher = || (0..here.tasks.len()).filter(|i| here.ranks[*i] < here.ranks[k]);
    let extras = |i: usize| match delayed {
        true => here.extras[i],
        false => Extras::NONE,
    };
    let (blocking, jitter) = (nanos(extras(k).blocking), nanos(extras(k).jitter));
    let mut jobs = Vec::new();
    let mut w = e;
    for q in 0..MOST as i128 {
        w = w.max((q + 1) * e);
        let mut steps = 0;
        loop {
            if w + jitter > q * p + d {
                return Ok(Err(q as u32));
            }
            let others = higher().map(|i| {
                let t = &here.tasks[i];
                let within = w + nanos(extras(i).jitter);
                Integer::div_ceil(&within, &nanos(t.period)) * nanos(t.wcet)
            });
            let next = (q + 1) * e + blocking + others.sum::<i128>();
            if next <= w {
                break;
            }
            w = next;
            steps += 1;
            if steps > MOST {
                return Err("a response time takes more than 100000 steps".to_owned());
            }
        }
        jobs.push(w);
        if w + jitter <= (q + 1) * p {
            return Ok(Ok(jobs));
        }
    }
    Err("a busy window has more than 100000 jobs".to_owned())
}

/// Why fixed priorities meet every deadline of tasks that they hold.
pub(super) fn response_proof(here: &Here) -> Result<Proof, String> {
    let of = |k: usize| match jobs(here, k, true)? {
        Ok(jobs) => Ok(jobs.into_iter().map(Number::from).collect()),
        Err(_) => Err("a response time is too long".to_owned()),
    };
    Ok(Proof::Responses {
        jobs: (0..here.tasks.len())
            .map(of)
            .collect::<Result<_, String>>()?,
    })
}

/// A schedule with a job that is late, if all tasks are released together and nothing delays them.
pub(super) fn late(here: &Here) -> Option<Refusal> {
    if here.utilization() > BigRational::one() {
        return None;
    }
    let (k, job) = (0..here.tasks.len()).find_map(|k| match jobs(here, k, false) {
        Ok(Err(job)) => Some((k, u64::from(job))),
        _ => None,
    })?;
    let task = &here.tasks[k];
    let released = task.period.nanos().checked_mul(job)?;
    search::together(
        here,
        Duration::from_nanos(released).saturating_add(task.deadline),
    )
}

/// U of a place as a number of the document.
pub(super) fn utilization_proof(here: &Here) -> Proof {
    let total = match here.m > 1 {
        true => here.blocked_utilization(),
        false => {
            let both = here.tasks.iter().zip(here.parts());
            both.map(|(t, part)| t.utilization().to_big() * part).sum()
        }
    };
    Proof::Utilization { total: big(total) }
}
