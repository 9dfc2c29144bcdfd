//! Evidence for several processors: sums, sides of inequalities, rounds.
//!
//! Sources and equations: the files of the tests in [`crate::global`], which are asked whether. This
//! says why.

use super::format::{Number, Proof, Refusal};
use super::{Here, big, nanos, single};
use crate::carries::{self, Carries};
use crate::global::{bak, bar, bcli, ffdbf, gdm_density, gfb, gfp_rta, load, rta};
use crate::info::TestInfo;
use crate::uniprocessor::fixed_priority::Priority;
use model::Timing;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{ToPrimitive as _, Zero as _};

/// The most rounds of a proof, and the most steps to one bound.
const MOST_ROUNDS: usize = 100;
const MOST_STEPS: usize = 10_000;

/// The tasks with blocking and jitter in their times, if a test could accept them.
fn reduced(here: &Here, carries: Carries) -> Option<Vec<Timing>> {
    let reduced = carries::reduced(carries, &here.tasks, &here.extras).ok()??;
    let fits = |t: &Timing| t.wcet <= t.deadline && t.deadline <= t.period;
    reduced.iter().all(fits).then(|| reduced.into_owned())
}

/// The same, if a test could be asked at all.
fn asked(here: &Here, carries: Carries) -> Option<Vec<Timing>> {
    let reduced = carries::reduced(carries, &here.tasks, &here.extras).ok()??;
    let fits = |t: &Timing| t.deadline <= t.period && !t.deadline.is_zero();
    reduced.iter().all(fits).then(|| reduced.into_owned())
}

fn whole(n: i128) -> BigRational {
    BigRational::from_integer(n.into())
}

fn density(t: &Timing) -> BigRational {
    BigRational::new(nanos(t.wcet).into(), nanos(t.deadline).into())
}

fn densities(tasks: &[Timing]) -> (BigRational, BigRational) {
    let all = || tasks.iter().map(density);
    (all().sum(), all().max().unwrap_or_else(BigRational::zero))
}

/// Does this test accept? The analysis is asked first, whose floating point decides most of it, so
/// that fractions are computed only for what is written down.
fn accepts(test: &TestInfo, tasks: &[Timing], m: i128) -> bool {
    u32::try_from(m).is_ok_and(|m| (test.run)(tasks, m) == Ok(true))
}

/// A proof by the first test for global EDF that accepts and has one.
pub(super) fn edf_proof(here: &Here) -> Option<Proof> {
    let m = here.m;
    let by_deadlines = reduced(here, Carries::Deadlines);
    if let Some(tasks) = &by_deadlines {
        if accepts(&gfb::INFO, tasks, m) {
            let (total, largest) = densities(tasks);
            let (total, largest) = (big(total), big(largest));
            return Some(Proof::Gfb { total, largest });
        }
        // Whole numbers before the fractions of BAK, which take longest of all.
        if let Some(rounds) = bcli_rounds(tasks, m) {
            return Some(Proof::Bcli { rounds });
        }
        if accepts(&bak::INFO, tasks, m) {
            let sides = (0..tasks.len()).map(|k| sides(tasks, m, k));
            let sides = sides.map(|(a, b)| [big(a), big(b)]).collect();
            return Some(Proof::Bak { sides });
        }
    }
    let by_deadlines = by_deadlines.as_deref();
    load_proof(here)
        .or_else(|| ffdbf_proof(by_deadlines?, m))
        .or_else(|| rta_proof(here))
        .or_else(|| bar_proof(by_deadlines?, m))
}

/// The rounds of BCLI, if it accepts.
fn bcli_rounds(tasks: &[Timing], m: i128) -> Option<Vec<Vec<Option<Number>>>> {
    if !accepts(&bcli::INFO, tasks, m) {
        return None;
    }
    rounds(tasks, |k, slacks| {
        slack(tasks, m, k, slacks).map(|s| (s, s))
    })
}

/// A proof by RTA.
fn rta_proof(here: &Here) -> Option<Proof> {
    let (tasks, m) = (reduced(here, Carries::Sporadic)?, here.m);
    if !accepts(&rta::INFO, &tasks, m) {
        return None;
    }
    let rounds = rounds(&tasks, |k, slacks| {
        let response = response(&tasks, m, k, slacks)?;
        Some((response, nanos(tasks[k].deadline) - response))
    })?;
    Some(Proof::Rta { rounds })
}

/// A proof by the first test for global fixed priorities that accepts and has one.
pub(super) fn fixed_proof(here: &Here) -> Option<Proof> {
    let (tasks, m) = (reduced(here, Carries::Sporadic)?, here.m);
    let order = by_rank(here);
    let sorted: Vec<Timing> = order.iter().map(|i| tasks[*i]).collect();
    if are_by_deadline(here, &sorted) && accepts(&gdm_density::INFO, &sorted, m) {
        let (total, largest) = densities(&tasks);
        let (total, largest) = (big(total), big(largest));
        return Some(Proof::GdmDensity { total, largest });
    }
    let bounds = gfp_rta::response_bounds(&sorted, u32::try_from(m).ok()?, Priority::Given);
    let mut responses = vec![Number::from(0_u64); tasks.len()];
    for (task, bound) in order.into_iter().zip(bounds.ok()??) {
        responses[task] = bound.into();
    }
    Some(Proof::GfpRta { responses })
}

/// The tasks of a place, the most urgent first.
fn by_rank(here: &Here) -> Vec<usize> {
    let mut order: Vec<usize> = (0..here.tasks.len()).collect();
    order.sort_by_key(|i| here.ranks[*i]);
    order
}

/// Are tasks, in the order of their priorities, in that of their deadlines, too, on several
/// processors?
fn are_by_deadline(here: &Here, sorted: &[Timing]) -> bool {
    here.m >= 2 && sorted.is_sorted_by_key(|t| t.deadline)
}

/// Which tests refuse a place, each with the inequality that fails.
pub(super) fn refusals(here: &Here, is_fixed: bool) -> Vec<Refusal> {
    let m = here.m;
    let refused = |test: &TestInfo, tasks: &[Timing]| {
        u32::try_from(m).is_ok_and(|m| (test.run)(tasks, m) == Ok(false))
    };
    let mut all = Vec::new();
    if is_fixed {
        if let Some(tasks) = asked(here, Carries::Sporadic) {
            let sorted: Vec<Timing> = by_rank(here).iter().map(|i| tasks[*i]).collect();
            if are_by_deadline(here, &sorted) && refused(&gdm_density::INFO, &sorted) {
                all.push(Refusal::GdmDensity);
            }
        }
        return all;
    }
    let Some(tasks) = asked(here, Carries::Deadlines) else {
        all.extend(load_refusal(here));
        return all;
    };
    if refused(&gfb::INFO, &tasks) {
        all.push(Refusal::Gfb);
    }
    let failing = u32::try_from(m).map(|m| bak::failing(&tasks, m));
    if let Ok(Ok(Some(k))) = failing {
        all.push(Refusal::Bak { index: here.ids[k] });
    }
    all
}

/// Both sides of BAK for task k.
fn sides(tasks: &[Timing], m: i128, k: usize) -> (BigRational, BigRational) {
    let (e, d) = (nanos(tasks[k].wcet), nanos(tasks[k].deadline));
    let lambda = density(&tasks[k]);
    let term = |t: &Timing| {
        let length = whole(d + nanos(t.period) - nanos(t.deadline));
        let more = whole(nanos(t.wcet)) - &lambda * whole(nanos(t.period));
        let all = t.utilization().to_big() * length + more.max(BigRational::zero());
        all.min(whole(d))
    };
    (tasks.iter().map(term).sum(), whole(m * d - (m - 1) * e))
}

/// A proof by LOAD, for the load as it is, not as the test approximates it.
fn load_proof(here: &Here) -> Option<Proof> {
    let tasks = &carries::reduced(Carries::Deadlines, &here.tasks, &here.extras).ok()??;
    if !accepts(&load::INFO, tasks, here.m) {
        return None;
    }
    let (until, points) = load_points(tasks, &load_bound(tasks, here.m)?).ok()?;
    Some(Proof::Load { until, points })
}

/// A time by which more is due than LOAD allows; 1 where that is so in the long run.
fn load_refusal(here: &Here) -> Option<Refusal> {
    let tasks = &carries::reduced(Carries::Deadlines, &here.tasks, &here.extras).ok()??;
    let bound = load_bound(tasks, here.m)?;
    let utilization: BigRational = tasks.iter().map(|t| t.utilization().to_big()).sum();
    let until = match utilization > bound {
        true => 1,
        false => load_points(tasks, &bound).err()??,
    };
    Some(Refusal::Load {
        until: until.into(),
    })
}

fn load_points(
    tasks: &[Timing],
    bound: &BigRational,
) -> Result<(Number, Vec<[Number; 2]>), Option<i128>> {
    single::points_below(tasks, bound, |t| whole(single::demand(tasks, t)))
}

/// The λ of LOAD; `None`: a task is too dense.
fn load_bound(tasks: &[Timing], m: i128) -> Option<BigRational> {
    let largest = tasks.iter().map(|t| t.density().to_big()).max()?;
    let mu = whole(m) - whole(m - 1) * &largest;
    let below = mu.ceil() - whole(1);
    let first = mu - &below * &largest;
    let other = &below - (&below - whole(1)) * &largest;
    (largest <= whole(1)).then(|| first.max(other))
}

/// A proof by FFDBF, for the speed that it finds.
fn ffdbf_proof(tasks: &[Timing], m: i128) -> Option<Proof> {
    let speed = ffdbf::speed(tasks, u32::try_from(m).ok()?).ok()??.to_big();
    let due = |t: i128| tasks.iter().map(|k| forced(k, &speed, t)).sum();
    let rate = whole(m) - whole(m - 1) * &speed;
    let (until, points) = single::points_below(tasks, &rate, due).ok()?;
    let speed = big(speed);
    Some(Proof::Ffdbf {
        speed,
        until,
        points,
    })
}

/// FF(t): what a task has to execute within t, even on a processor of this speed.
fn forced(task: &Timing, speed: &BigRational, t: i128) -> BigRational {
    let (e, p, d) = (nanos(task.wcet), nanos(task.period), nanos(task.deadline));
    let missing = (d - t % p).max(0);
    let last = whole(e) - speed * whole(missing);
    whole(t / p * e) + last.max(BigRational::zero())
}

/// A proof by BAR, in whole nanoseconds: a coarser unit accepts less.
fn bar_proof(tasks: &[Timing], m: i128) -> Option<Proof> {
    if !accepts(&bar::INFO, tasks, m) {
        return None;
    }
    let longest = nanos(tasks.iter().map(|t| t.wcet).max()?);
    let (mut idle, mut ahead) = (whole(m), whole((2 * m - 1) * longest));
    for t in tasks {
        let u = t.utilization().to_big();
        ahead += &u * whole(nanos(t.period) - nanos(t.deadline));
        idle -= u;
    }
    if m < 2 || idle <= BigRational::zero() {
        return None;
    }
    let until = (ahead / idle).ceil().to_integer().to_i128()?;
    if until >> 100 != 0 {
        return None;
    }
    let mut left = single::MOST;
    let of = |k: usize| windows(tasks, m, k, until, &mut left);
    let windows = (0..tasks.len()).map(of).collect::<Option<_>>()?;
    let until = until.into();
    Some(Proof::Bar { until, windows })
}

/// The windows of a task from the longest down, each with the length from which on the condition
/// holds then: the work of all is no more up to it, and it is due by then. `left`: how many more
/// may be listed.
fn windows(
    tasks: &[Timing],
    m: i128,
    k: usize,
    until: i128,
    left: &mut usize,
) -> Option<Vec<[Number; 2]>> {
    let (e, d) = (nanos(tasks[k].wcet), nanos(tasks[k].deadline));
    let mut listed = Vec::new();
    let mut window = until;
    while window >= d {
        let bring = |i: usize| {
            let t = &tasks[i];
            let both = [
                single::demand(&tasks[i..=i], window),
                work_within(t, window, 0),
            ];
            let (own, limit) = if i == k { (e, d) } else { (0, e - 1) };
            both.map(|work| (work - own).min(window - limit))
        };
        let work: Vec<[i128; 2]> = (0..tasks.len()).map(bring).collect();
        let mut more: Vec<i128> = work.iter().map(|[a, b]| b - a).collect();
        more.sort_unstable_by(|a, b| b.cmp(a));
        let carried: i128 = more.iter().take(usize::try_from(m - 1).ok()?).sum();
        let from = BigRational::new(
            (work.iter().map(|w| w[0]).sum::<i128>() + carried).into(),
            m.into(),
        );
        let from = from + whole(e);
        *left = left.checked_sub(1)?;
        if from > whole(window) {
            return None;
        }
        listed.push([window.into(), big(from.clone())]);
        window = from.ceil().to_integer().to_i128()? - 1;
    }
    Some(listed)
}

fn others(tasks: &[Timing], k: usize) -> impl Iterator<Item = usize> {
    (0..tasks.len()).filter(move |i| *i != k)
}

/// Rounds over all slacks until every task passes; `None` if nothing changes before. `pass` gives
/// what is written of a task, and its slack.
fn rounds(
    tasks: &[Timing],
    pass: impl Fn(usize, &[i128]) -> Option<(i128, i128)>,
) -> Option<Vec<Vec<Option<Number>>>> {
    let mut slacks = vec![0; tasks.len()];
    let mut rounds = Vec::new();
    for _ in 0..MOST_ROUNDS {
        let passed: Vec<Option<(i128, i128)>> =
            (0..tasks.len()).map(|k| pass(k, &slacks)).collect();
        let written = passed.iter().map(|p| p.map(|(n, _)| Number::from(n)));
        rounds.push(written.collect());
        let next: Vec<i128> = passed.iter().map(|p| p.map_or(0, |(_, s)| s)).collect();
        if passed.iter().all(Option::is_some) {
            return Some(rounds);
        }
        if next == slacks {
            return None;
        }
        slacks = next;
    }
    None
}

/// ⌊L/p⌋·e + min(e, max(0, L mod p − s)).
fn work_within(t: &Timing, length: i128, slack: i128) -> i128 {
    let (e, p) = (nanos(t.wcet), nanos(t.period));
    length / p * e + e.min((length % p - slack).max(0))
}

/// The slack of task k by BCLI.
fn slack(tasks: &[Timing], m: i128, k: usize, slacks: &[i128]) -> Option<i128> {
    let d = nanos(tasks[k].deadline);
    let most = d - nanos(tasks[k].wcet);
    let work: Vec<i128> = others(tasks, k)
        .map(|i| work_within(&tasks[i], d, slacks[i]))
        .collect();
    let sum: i128 = work.iter().map(|w| *w.min(&most)).sum();
    let growing = work.iter().filter(|w| **w > most).count() as i128;
    match sum.cmp(&(m * most)) {
        std::cmp::Ordering::Less => Some(most - Integer::div_ceil(&sum, &m)),
        std::cmp::Ordering::Equal if growing < m => Some(0),
        _ => None,
    }
}

/// The bound of the response time of task k by RTA.
fn response(tasks: &[Timing], m: i128, k: usize, slacks: &[i128]) -> Option<i128> {
    let (e, d) = (nanos(tasks[k].wcet), nanos(tasks[k].deadline));
    let mut x = 0;
    for _ in 0..MOST_STEPS {
        let bring = |i: usize| {
            let t = &tasks[i];
            let length = e + x + nanos(t.deadline) - nanos(t.wcet) - slacks[i];
            work_within(t, length, 0).min(work_within(t, d, slacks[i]))
        };
        let mut work: Vec<i128> = others(tasks, k).map(bring).collect();
        let least = short_from(&mut work, m);
        if least <= x {
            return Some(e + x);
        }
        if e + least > d {
            return None;
        }
        x = least;
    }
    None
}

/// The least whole x from which on Σ min(W_i, y) < m·y for all larger y: where the sum, which is
/// concave, crosses the line.
fn short_from(work: &mut [i128], m: i128) -> i128 {
    work.sort_unstable();
    let mut below = 0;
    for at in 0..=work.len() {
        let growing = (work.len() - at) as i128;
        let from = if at == 0 { 0 } else { work[at - 1] };
        if growing < m {
            let crossing = Integer::div_ceil(&below, &(m - growing)).max(from);
            if work.get(at).is_none_or(|next| crossing <= *next) {
                return crossing;
            }
        }
        below += work.get(at).copied().unwrap_or(0);
    }
    below
}
