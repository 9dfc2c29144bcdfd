//! Several processors: the tests for global EDF and global fixed priorities that compare sums of
//! bounded work (`docs/tests.md` names their papers). Releases come at any time.

use crate::certificate::{Number, Q};
use crate::claim::{Task, q};
use crate::place::Here;
use num_traits::Zero;

fn density(t: &Task) -> Q {
    &t.wcet / &t.deadline
}

/// Σ δ, the largest δ, and whether the inequality of a test holds for them. GFB: Σ δ + (m − 1)·δ_max
/// ≤ m. GDM-DENSITY, for deadline-monotonic priorities: 2·Σ δ + (m − 2)·δ_max ≤ m.
pub fn densities(here: &Here<'_>, tasks: &[Task]) -> Result<(Q, Q, bool), String> {
    let sum: Q = tasks.iter().map(density).sum();
    let max = tasks.iter().map(density).max().unwrap_or_default();
    if !here.order.is_fixed() {
        let holds = &sum + q(here.m - 1) * &max <= q(here.m);
        return Ok((sum, max, holds));
    }
    let deadlines = tasks.iter().map(|t| &t.deadline);
    let mut by_rank: Vec<(usize, &Q)> = here.ranks.iter().copied().zip(deadlines).collect();
    by_rank.sort_unstable();
    let is_monotonic = here.m > 1 && by_rank.is_sorted_by_key(|(_, deadline)| *deadline);
    require!(is_monotonic, "it is a test for deadline-monotonic priorities on several processors");
    let holds = q(2) * &sum + q(here.m - 2) * &max <= q(here.m);
    Ok((sum, max, holds))
}

/// Do the densities have the sum and the maximum that are stated, and are they small enough?
pub fn densities_fit(here: &Here<'_>, total: &Number, largest: &Number) -> Result<(), String> {
    let (sum, max, holds) = densities(here, &here.reduced(here.order.is_fixed(), false)?)?;
    let as_stated = sum == total.0 && max == largest.0;
    require!(holds && as_stated, "the densities are {sum} in all, and {max} at most");
    Ok(())
}

/// Both sides of an inequality, and whether it holds. BAK: for every k, Σ_i min(D_k, u_i·(D_k + p_i
/// − D_i) + max(0, e_i − λ_k·p_i)) ≤ m·D_k − (m − 1)·e_k with λ_k = e_k/D_k.
pub fn bak(tasks: &[Task], m: usize, k: usize) -> (Q, Q, bool) {
    let (window, lambda) = (&tasks[k].deadline, density(&tasks[k]));
    let work = |t: &Task| {
        let carried = (&t.wcet - &lambda * &t.period).max(Q::zero());
        (t.utilization() * (window + &t.period - &t.deadline) + carried).min(window.clone())
    };
    let left: Q = tasks.iter().map(work).sum();
    let right = q(m) * window - q(m - 1) * &tasks[k].wcet;
    (left.clone(), right.clone(), left <= right)
}

/// BCL: for every k, Σ_{i≠k} min(W_i, S_k) < m·S_k with S_k = D_k − e_k, N_i = ⌊(D_k − D_i)/p_i⌋ +
/// 1 and W_i = N_i·e_i + min(e_i, max(0, D_k − N_i·p_i)); or equality and some 0 < W_i ≤ S_k.
pub fn bcl(tasks: &[Task], m: usize, k: usize) -> (Q, Q, bool) {
    let slack = &tasks[k].deadline - &tasks[k].wcet;
    let work = |i: usize| {
        let t = &tasks[i];
        let jobs = ((&tasks[k].deadline - &t.deadline) / &t.period).floor() + q(1);
        let rest = (&tasks[k].deadline - &jobs * &t.period).max(Q::zero());
        jobs * &t.wcet + rest.min(t.wcet.clone())
    };
    let work: Vec<Q> = others(tasks, k).map(work).collect();
    let left: Q = work.iter().map(|w| w.min(&slack)).sum();
    let right = q(m) * &slack;
    let some_ends = work.iter().any(|w| *w > Q::zero() && *w <= slack);
    let holds = slack >= Q::zero() && (left < right || (left == right && some_ends));
    (left, right, holds)
}

/// Does the inequality of every task hold, with the sides that are stated?
pub fn all_hold(
    here: &Here<'_>, stated: &[[Number; 2]], test: impl Fn(&[Task], usize, usize) -> (Q, Q, bool),
) -> Result<(), String> {
    let tasks = here.reduced(false, false)?;
    require!(stated.len() == tasks.len(), "not every task has its inequality");
    for (k, [left, right]) in stated.iter().enumerate() {
        let (a, b, holds) = test(&tasks, here.m, k);
        let as_stated = a == left.0 && b == right.0;
        require!(holds && as_stated, "`{}` has {a} and {b} in its inequality", here.name(k));
    }
    Ok(())
}

fn others(tasks: &[Task], k: usize) -> impl Iterator<Item = usize> {
    (0..tasks.len()).filter(move |i| *i != k)
}

/// ⌊L/p⌋·e + min(e, max(0, L mod p − s)): what the jobs within L bring, and one before them that
/// is s early.
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
            match slack_of(k, stated, &slacks) {
                Some(slack) if slack >= slacks[k] => next[k] = slack,
                _ => return Err(format!("{stated} of `{}` follows from no round", here.name(k))),
            }
        }
        slacks = next;
        are_complete = round.iter().all(Option::is_some);
    }
    require!(are_complete, "in the last round a task does not pass");
    Ok(())
}

/// BCLI: task k has the slack s if Σ min(W_i, S_k) ≤ m·(S_k − s) and the others are short for x =
/// S_k = D_k − e_k, with W_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)).
pub fn bcli(here: &Here<'_>, rounds: &[Vec<Option<Number>>]) -> Result<(), String> {
    let tasks = here.reduced(false, false)?;
    rounds_hold(here, rounds, |k, slack, slacks| {
        let deadline = &tasks[k].deadline;
        let most = deadline - &tasks[k].wcet;
        let work: Vec<Q> =
            others(&tasks, k).map(|i| work_within(&tasks[i], deadline, &slacks[i])).collect();
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
        let bring = |i: usize| {
            let t = &tasks[i];
            let length = response + &t.deadline - &t.wcet - &slacks[i];
            let fits = work_within(t, &length, &Q::zero());
            fits.min(work_within(t, &tasks[k].deadline, &slacks[i]))
        };
        let waits = response - &tasks[k].wcet;
        let slack = &tasks[k].deadline - response;
        let work: Vec<Q> = others(&tasks, k).map(bring).collect();
        let holds = waits >= Q::zero() && slack >= Q::zero() && is_short(&work, here.m, &waits);
        holds.then_some(slack)
    })
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
            (work_within(t, window, &Q::zero()), carried)
        };
        let work: Vec<(Q, Q)> =
            others(&tasks, k).filter(|i| here.ranks[*i] < here.ranks[k]).map(bring).collect();
        let interference = |z: &Q| {
            let clipped = work.iter().map(|(without, with)| (without.min(z), with.min(z)));
            let mut more: Vec<Q> =
                clipped.clone().map(|(without, with)| (with - without).max(Q::zero())).collect();
            more.sort_unstable_by(|a, b| b.cmp(a));
            clipped.map(|(without, _)| without).sum::<Q>() + more.iter().take(here.m - 1).sum::<Q>()
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
