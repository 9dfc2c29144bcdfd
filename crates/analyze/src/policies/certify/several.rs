//! Evidence for several processors: sums, sides of inequalities, rounds.
//!
//! Sources and equations: the files of the tests in [`crate::global`]. Written apart from them: it
//! has to say why, not only whether.

use super::format::{Number, Proof, Refusal};
use super::{Here, big, nanos, single};
use crate::carries::{self, Carries};
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

/// A proof by the first test for global EDF that accepts and has one.
pub(super) fn edf_proof(here: &Here) -> Option<Proof> {
    let m = here.m;
    if let Some(tasks) = reduced(here, Carries::Deadlines) {
        let (total, largest) = densities(&tasks);
        if gfb_holds(&total, &largest, m) {
            let (total, largest) = (big(total), big(largest));
            return Some(Proof::Gfb { total, largest });
        }
        let rounds = rounds(&tasks, |k, slacks| {
            bcli(&tasks, m, k, slacks).map(|s| (s, s))
        });
        if let Some(rounds) = rounds {
            return Some(Proof::Bcli { rounds });
        }
        // Fractions of its size take longest, so that it comes after what whole numbers show.
        let holds = |(left, right): &(BigRational, BigRational)| left <= right;
        let sides = (0..tasks.len()).map(|k| Some(bak(&tasks, m, k)).filter(holds));
        if let Some(sides) = sides.collect::<Option<Vec<_>>>() {
            let sides = sides.into_iter().map(|(a, b)| [big(a), big(b)]).collect();
            return Some(Proof::Bak { sides });
        }
    }
    rta_proof(here)
        .or_else(|| load_proof(here))
        .or_else(|| ffdbf_proof(here))
        .or_else(|| bar_proof(here))
}

/// A proof by RTA.
fn rta_proof(here: &Here) -> Option<Proof> {
    let (tasks, m) = (reduced(here, Carries::Sporadic)?, here.m);
    let rounds = rounds(&tasks, |k, slacks| {
        let response = rta(&tasks, m, k, slacks)?;
        Some((response, nanos(tasks[k].deadline) - response))
    })?;
    Some(Proof::Rta { rounds })
}

/// A proof by the first test for global fixed priorities that accepts and has one.
pub(super) fn fixed_proof(here: &Here) -> Option<Proof> {
    let tasks = reduced(here, Carries::Sporadic)?;
    if are_by_deadline(here, &tasks) {
        let (total, largest) = densities(&tasks);
        if gdm_holds(&total, &largest, here.m) {
            let (total, largest) = (big(total), big(largest));
            return Some(Proof::GdmDensity { total, largest });
        }
    }
    let responses = gfp(here, &tasks)?.into_iter().map(Number::from);
    Some(Proof::GfpRta {
        responses: responses.collect(),
    })
}

/// Are priorities in the order of the deadlines, on several processors?
fn are_by_deadline(here: &Here, tasks: &[Timing]) -> bool {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|i| here.ranks[*i]);
    here.m >= 2 && order.is_sorted_by_key(|i| tasks[*i].deadline)
}

fn gfb_holds(total: &BigRational, largest: &BigRational, m: i128) -> bool {
    total + whole(m - 1) * largest <= whole(m)
}

fn gdm_holds(total: &BigRational, largest: &BigRational, m: i128) -> bool {
    whole(2) * total + whole(m - 2) * largest <= whole(m)
}

/// Which tests refuse a place, each with the inequality that fails.
pub(super) fn refusals(here: &Here, is_fixed: bool) -> Vec<Refusal> {
    let mut all = Vec::new();
    let m = here.m;
    if is_fixed {
        if let Some(tasks) = asked(here, Carries::Sporadic)
            && are_by_deadline(here, &tasks)
        {
            let (total, largest) = densities(&tasks);
            if !gdm_holds(&total, &largest, m) {
                all.push(Refusal::GdmDensity);
            }
        }
        return all;
    }
    let Some(tasks) = asked(here, Carries::Deadlines) else {
        return all;
    };
    let (total, largest) = densities(&tasks);
    if !gfb_holds(&total, &largest, m) {
        all.push(Refusal::Gfb);
    }
    let exceeds = |k: &usize| {
        let (left, right) = bak(&tasks, m, *k);
        left > right
    };
    let failing = (0..tasks.len()).find(exceeds);
    all.extend(failing.map(|k| Refusal::Bak { task: here.ids[k] }));
    all
}

/// Both sides of BAK for task k.
fn bak(tasks: &[Timing], m: i128, k: usize) -> (BigRational, BigRational) {
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
    let (tasks, m) = (&here.tasks, here.m);
    let largest = tasks.iter().map(|t| t.density().to_big()).max()?;
    if here.is_delayed() || largest > whole(1) {
        return None;
    }
    let mu = whole(m) - whole(m - 1) * &largest;
    let below = mu.ceil() - whole(1);
    let first = mu - &below * &largest;
    let rate = first.max(&below - (&below - whole(1)) * &largest);
    let due = |t: i128| whole(single::demand(tasks, t));
    let (until, points) = single::points_below(tasks, &rate, due)?;
    Some(Proof::Load { until, points })
}

/// One over the step of the speeds that FFDBF tries.
const SPEEDS: i128 = 50;

/// A proof by FFDBF, for the first speed that does.
fn ffdbf_proof(here: &Here) -> Option<Proof> {
    let (tasks, m) = (reduced(here, Carries::Deadlines)?, here.m);
    let largest = tasks.iter().map(density).max()?;
    let step = |n: i128| BigRational::new(n.into(), SPEEDS.into());
    let above = (1..=SPEEDS).map(step).filter(|speed| *speed > largest);
    std::iter::once(largest.clone())
        .chain(above)
        .find_map(|speed| {
            let due = |t: i128| tasks.iter().map(|k| forced(k, &speed, t)).sum();
            let rate = whole(m) - whole(m - 1) * &speed;
            let (until, points) = single::points_below(&tasks, &rate, due)?;
            let speed = big(speed.clone());
            Some(Proof::Ffdbf {
                speed,
                until,
                points,
            })
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
fn bar_proof(here: &Here) -> Option<Proof> {
    let (tasks, m) = (reduced(here, Carries::Deadlines)?, here.m);
    let longest = nanos(tasks.iter().map(|t| t.wcet).max()?);
    let (mut idle, mut ahead) = (whole(m), whole((2 * m - 1) * longest));
    for t in &tasks {
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
    let of = |k: usize| windows(&tasks, m, k, until, &mut left);
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
fn bcli(tasks: &[Timing], m: i128, k: usize, slacks: &[i128]) -> Option<i128> {
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
fn rta(tasks: &[Timing], m: i128, k: usize, slacks: &[i128]) -> Option<i128> {
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

/// A bound of the response time of every task by GFP-RTA.
fn gfp(here: &Here, tasks: &[Timing]) -> Option<Vec<i128>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|i| here.ranks[*i]);
    let mut bounds = vec![0; tasks.len()];
    for (rank, k) in order.iter().enumerate() {
        let higher: Vec<(Timing, i128)> = order[..rank]
            .iter()
            .map(|i| (tasks[*i], bounds[*i]))
            .collect();
        bounds[*k] = respond(&tasks[*k], &higher, here.m)?;
    }
    Some(bounds)
}

/// The bound of one task below others, which have theirs.
fn respond(task: &Timing, higher: &[(Timing, i128)], m: i128) -> Option<i128> {
    let (e, most) = (nanos(task.wcet), nanos(task.deadline) - nanos(task.wcet));
    let mut x = 0;
    for _ in 0..MOST_STEPS {
        let work: Vec<(i128, i128)> = higher
            .iter()
            .map(|(t, bound)| {
                let after = (e + x - nanos(t.wcet)).max(0);
                let carried = work_within(t, after, nanos(t.period) - bound) + nanos(t.wcet);
                (work_within(t, e + x, 0), carried)
            })
            .collect();
        if !exceeds(&work, x, m) {
            return Some(e + x);
        }
        if exceeds(&work, most, m) {
            return None;
        }
        // For fixed work no solution is below the first one.
        let (mut low, mut high) = (x, most);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match exceeds(&work, middle, m) {
                true => low = middle,
                false => high = middle,
            }
        }
        x = high;
    }
    None
}

/// Is Ω(z) ≥ m·z for some z just above x?
fn exceeds(work: &[(i128, i128)], x: i128, m: i128) -> bool {
    let twice_omega = |z: i128| {
        let clipped = work.iter().map(|(a, b)| ((2 * a).min(z), (2 * b).min(z)));
        let mut more: Vec<i128> = clipped.clone().map(|(a, b)| (b - a).max(0)).collect();
        more.sort_unstable_by(|a, b| b.cmp(a));
        let carrying = usize::try_from(m - 1).unwrap_or(0);
        clipped.map(|(a, _)| a).sum::<i128>() + more.iter().take(carrying).sum::<i128>()
    };
    let at = twice_omega(2 * x);
    at > m * 2 * x || (at == m * 2 * x && twice_omega(2 * x + 1) >= m * (2 * x + 1))
}
