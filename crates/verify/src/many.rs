//! Several processors: the tests for global EDF and global fixed priorities that compare sums of
//! bounded work (`docs/tests.md` names their papers). Releases come at any time.

use crate::certificate::{Number, Q};
use crate::claim::{Task, q, utilization};
use crate::place::Here;
use crate::single::{deadline_before, demand, is_below, is_below_from};
use num_traits::Zero;

fn density(t: &Task) -> Q {
    &t.wcet / (&t.deadline).min(&t.period)
}

/// Σ δ, the largest δ, and whether w·Σ δ + (m − w)·δ_max ≤ m: GFB for w = 1 and, for priorities by
/// deadline, GDM-DENSITY for w = 2.
pub fn densities(here: &Here<'_>, tasks: &[Task]) -> Result<(Q, Q, bool), String> {
    let sum: Q = tasks.iter().map(density).sum();
    let max = tasks.iter().map(density).max().unwrap_or_default();
    let weight = if here.order.is_fixed() { 2 } else { 1 };
    let deadlines = tasks.iter().map(|t| &t.deadline);
    let mut by_rank: Vec<(usize, &Q)> = here.ranks.iter().copied().zip(deadlines).collect();
    by_rank.sort_unstable();
    let is_monotonic = here.m > 1 && by_rank.is_sorted_by_key(|(_, deadline)| *deadline);
    require!(weight == 1 || is_monotonic, "priorities are not by deadline on several processors");
    let holds = q(weight) * &sum + q(here.m - weight) * &max <= q(here.m);
    Ok((sum, max, holds))
}

/// Do the densities have the sum and the maximum that are stated, and are they small enough?
pub fn densities_fit(here: &Here<'_>, total: &Number, largest: &Number) -> Result<(), String> {
    let (sum, max, holds) = densities(here, &here.reduced(here.order.is_fixed(), false)?)?;
    let as_stated = sum == total.0 && max == largest.0;
    require!(holds && as_stated, "the densities are {sum} in all, and {max} at most");
    Ok(())
}

/// Both sides of BAK: for every k, Σ_i min(D_k, u_i·(D_k + p_i − D_i) + max(0, e_i − λ_k·p_i)) ≤
/// m·D_k − (m − 1)·e_k with λ_k = e_k/D_k.
pub fn bak(tasks: &[Task], m: usize, k: usize) -> [Q; 2] {
    let (window, lambda) = (&tasks[k].deadline, density(&tasks[k]));
    let work = |t: &Task| {
        let carried = (&t.wcet - &lambda * &t.period).max(Q::zero());
        (t.utilization() * (window + &t.period - &t.deadline) + carried).min(window.clone())
    };
    [tasks.iter().map(work).sum(), q(m) * window - q(m - 1) * &tasks[k].wcet]
}

/// Does the inequality of every task hold, with the sides that are stated?
pub fn all_hold(here: &Here<'_>, stated: &[[Number; 2]]) -> Result<(), String> {
    let tasks = here.reduced(false, false)?;
    require!(stated.len() == tasks.len(), "not every task has its inequality");
    for (k, [Number(left), Number(right)]) in stated.iter().enumerate() {
        let [a, b] = bak(&tasks, here.m, k);
        let holds = a <= b && (&a, &b) == (left, right);
        require!(holds, "`{}` has {a} and {b} in its inequality", here.name(k));
    }
    Ok(())
}

fn others(tasks: &[Task], k: usize) -> impl Iterator<Item = usize> {
    (0..tasks.len()).filter(move |i| *i != k)
}

/// ⌊L/p⌋·e + min(e, max(0, L mod p − s)): the jobs within L, and one before them that is s early.
fn work_within(t: &Task, length: &Q, slack: &Q) -> Q {
    let jobs = (length / &t.period).floor();
    let carried = (length - &jobs * &t.period - slack).max(Q::zero()).min(t.wcet.clone());
    jobs * &t.wcet + carried
}

/// Is Σ min(W_i, y) < m·y for all y just above x? At x itself, or equal there and fewer than m of
/// the W_i go on growing.
fn is_short(work: &[Q], m: usize, x: &Q) -> bool {
    let (sum, bound): (Q, Q) = (work.iter().map(|w| w.min(x)).sum(), q(m) * x);
    sum < bound || (sum == bound && work.iter().filter(|w| *w > x).count() < m)
}

/// Each round follows from the slacks of the round before, the first from none; no slack falls, and
/// in the last round every task passes. `slack_of`: of a task, for the number that is stated.
fn rounds_hold(
    here: &Here<'_>, rounds: &[Vec<Option<Number>>],
    slack_of: impl Fn(usize, &Q, &[Q]) -> Option<Q>,
) -> Result<(), String> {
    let mut slacks = vec![Q::zero(); here.ids.len()];
    let mut are_complete = slacks.is_empty();
    for round in rounds {
        require!(round.len() == slacks.len(), "a round does not have every task");
        let mut next = slacks.clone();
        for (k, stated) in round.iter().enumerate() {
            let Some(Number(stated)) = stated else { continue };
            let slack = slack_of(k, stated, &slacks).filter(|slack| *slack >= slacks[k]);
            require!(slack.is_some(), "{stated} of `{}` follows from no round", here.name(k));
            next[k] = slack.unwrap_or_default();
        }
        slacks = next;
        are_complete = round.iter().all(Option::is_some);
    }
    require!(are_complete, "in the last round a task does not pass");
    Ok(())
}

/// What the other tasks bring in BCLI: ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)).
fn brought(tasks: &[Task], k: usize, slacks: &[Q]) -> Vec<Q> {
    others(tasks, k).map(|i| work_within(&tasks[i], &tasks[k].deadline, &slacks[i])).collect()
}

/// BCLI: task k has the slack s if Σ min(W_i, S_k) ≤ m·(S_k − s) and the others are short for x =
/// S_k = D_k − e_k, where W_i is what they bring.
pub fn bcli(here: &Here<'_>, rounds: &[Vec<Option<Number>>]) -> Result<(), String> {
    let tasks = here.reduced(false, false)?;
    rounds_hold(here, rounds, |k, slack, slacks| {
        let most = &tasks[k].deadline - &tasks[k].wcet;
        let work = brought(&tasks, k, slacks);
        let sum: Q = work.iter().map(|w| w.min(&most)).sum();
        let holds = sum <= q(here.m) * (&most - slack) && is_short(&work, here.m, &most);
        holds.then(|| slack.clone())
    })
}

/// RTA: R bounds the response time of task k if e_k ≤ R ≤ D_k and the others are short for x = R −
/// e_k, each with the smaller of what EDF lets it bring and what fits the window.
pub fn rta(here: &Here<'_>, rounds: &[Vec<Option<Number>>]) -> Result<(), String> {
    let tasks = here.reduced(true, false)?;
    rounds_hold(here, rounds, |k, response, slacks| {
        let fits = |i: usize| {
            let length = response + &tasks[i].deadline - &tasks[i].wcet - &slacks[i];
            work_within(&tasks[i], &length, &Q::zero())
        };
        let both = others(&tasks, k).map(fits).zip(brought(&tasks, k, slacks));
        let work: Vec<Q> = both.map(|(fits, brought)| fits.min(brought)).collect();
        let (waits, slack) = (response - &tasks[k].wcet, &tasks[k].deadline - response);
        let holds = waits >= Q::zero() && slack >= Q::zero() && is_short(&work, here.m, &waits);
        holds.then_some(slack)
    })
}

/// Work without and with what is carried in, which it is of at most m − 1 tasks: the most in all.
fn carried_in(m: usize, work: impl Iterator<Item = [Q; 2]> + Clone) -> Q {
    let mut more: Vec<Q> = work.clone().map(|[a, b]| (b - a).max(Q::zero())).collect();
    more.sort_unstable_by(|a, b| b.cmp(a));
    work.map(|[without, _]| without).sum::<Q>() + more.iter().take(m - 1).sum::<Q>()
}

/// GFP-RTA: R bounds the response time of task k if Ω(R, z) < m·z for all z just above R − e_k: the
/// work of all more urgent tasks, each clipped at z, of which at most m − 1 carry work in.
pub fn gfp_rta(here: &Here<'_>, responses: &[Number]) -> Result<(), String> {
    let tasks = here.reduced(true, false)?;
    let are_whole = responses.len() == tasks.len() && responses.iter().all(|r| r.0.is_integer());
    require!(are_whole, "not every task has a whole bound");
    for (k, (task, Number(window))) in tasks.iter().zip(responses).enumerate() {
        // Of each more urgent task: without work carried in, and with.
        let bring = |i: usize| {
            let t = &tasks[i];
            let after = (window - &t.wcet).max(Q::zero());
            let carried = work_within(t, &after, &(&t.period - &responses[i].0)) + &t.wcet;
            [work_within(t, window, &Q::zero()), carried]
        };
        let work: Vec<[Q; 2]> =
            others(&tasks, k).filter(|i| here.ranks[*i] < here.ranks[k]).map(bring).collect();
        let interference = |z: &Q| {
            carried_in(here.m, work.iter().map(|both| both.clone().map(|w| w.min(z.clone()))))
        };
        // All is whole, so that between this x and half a nanosecond more Ω is a line.
        let x = window - &task.wcet;
        let above = &x + Q::new(1.into(), 2.into());
        let (left, right) = (interference(&x), q(here.m) * &x);
        let is_short = left < right || (left == right && interference(&above) < q(here.m) * &above);
        let is_bound = x >= Q::zero() && *window <= task.deadline && is_short;
        require!(is_bound, "{window} does not bound the response of `{}`", here.name(k));
    }
    Ok(())
}

/// The tasks of LOAD, with μ = m − (m − 1)·δ_max, δ_max ≤ 1, and λ: the larger of
/// μ − (⌈μ⌉ − 1)·δ_max and ⌈μ⌉ − 1 − (⌈μ⌉ − 2)·δ_max.
fn load_bound(here: &Here<'_>) -> Result<(Vec<Task>, Q), String> {
    let tasks = here.blocked_since_release();
    require!(tasks.iter().all(|t| t.deadline > q(0)), "a deadline is before the latest release");
    let largest = tasks.iter().map(density).max().unwrap_or_default();
    require!(largest <= q(1), "a task is too dense");
    let mu = q(here.m) - q(here.m - 1) * &largest;
    let whole = mu.ceil() - q(1);
    Ok((tasks, (mu - &whole * &largest).max(&whole - (&whole - q(1)) * &largest)))
}

/// LOAD: h(t) ≤ λ·t for all t.
pub fn load(here: &Here<'_>, until: &Q, points: &[[Number; 2]]) -> Result<(), String> {
    let (tasks, rate) = &load_bound(here)?;
    require!(is_below_from(tasks, rate, until), "the demand may fail beyond {until}");
    is_below(rate, |t| demand(tasks, t), |t| deadline_before(tasks, t), |_| q(0), until, points)
}

/// Does LOAD refuse, by what is due until a time, or in the long run?
pub fn load_fails(here: &Here<'_>, until: &Q) -> Result<bool, String> {
    let (tasks, rate) = load_bound(here)?;
    Ok(utilization(&tasks) > rate || demand(&tasks, until) > rate * until)
}

/// FFDBF: for some speed σ of at least every e/D, Σ FF_i(t) ≤ (m − (m − 1)·σ)·t for all t, with
/// FF_i(t) = ⌊t/p⌋·e + max(0, e − σ·max(0, D − t mod p)). It has the bound of the demand, and between
/// two deadlines it is convex: it fails at one of them if anywhere.
pub fn ffdbf(here: &Here<'_>, speed: &Q, until: &Q, points: &[[Number; 2]]) -> Result<(), String> {
    let tasks = &here.reduced(false, false)?;
    let due_of = |t: &Task, by: &Q| {
        let jobs = (by / &t.period).floor();
        let missing = (&t.deadline + &jobs * &t.period - by).max(Q::zero());
        jobs * &t.wcet + (&t.wcet - speed * missing).max(Q::zero())
    };
    let due = |by: &Q| tasks.iter().map(|t| due_of(t, by)).sum();
    let rate = q(here.m) - q(here.m - 1) * speed;
    let is_speed = *speed <= q(1) && tasks.iter().all(|t| density(t) <= *speed);
    let fits = is_speed && is_below_from(tasks, &rate, until);
    require!(fits, "{speed} is no speed for the tasks, or too much is due beyond {until}");
    is_below(&rate, due, |t| deadline_before(tasks, t), |_| q(0), until, points)
}

/// BAR: for every k and whole L ≥ D_k, Σ I_i and the m − 1 largest J_i − I_i are ≤ m·(L − e_k), where
/// I_i = min(h_i(L), L − e_k + 1), J_i the same of ⌊L/p⌋·e + min(e, L mod p), and of k less e_k, to
/// L − D_k. In all they are at most Σ h_i(L) and m − 1 times the longest e.
pub fn bar(here: &Here<'_>, until: &Q, windows: &[Vec<[Number; 2]>]) -> Result<(), String> {
    let (tasks, m, none) = (&here.reduced(false, false)?, q(here.m), Q::zero());
    let is_sized = windows.len() == tasks.len() && here.m > 1 && *until > none;
    let longest = tasks.iter().map(|t| t.wcet.clone()).max().unwrap_or_default();
    let fits = is_sized && is_below_from(tasks, &(&m - q(2 * here.m - 1) * longest / until), until);
    require!(fits, "not every task has its windows, or one beyond {until} may fail");
    for (task, windows) in tasks.iter().zip(windows) {
        let less = &task.wcet - q(1);
        let due = |window: &Q| {
            let bring = |t: &Task| {
                let is_own = std::ptr::eq(t, task);
                let [own, limit] = if is_own { [&t.wcet, &t.deadline] } else { [&none, &less] };
                let both = [demand(std::slice::from_ref(t), window), work_within(t, window, &none)];
                both.map(|work| (work - own).min(window - limit))
            };
            carried_in(here.m, tasks.iter().map(bring)) / &m + &task.wcet
        };
        let last = |open: &Q| Some(open.ceil() - q(1)).filter(|last| *last >= task.deadline);
        is_below(&q(1), due, last, |_| q(0), until, windows)?;
    }
    Ok(())
}
