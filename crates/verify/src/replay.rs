//! A schedule that misses a deadline, replayed part by part.

use crate::certificate::{Number, Piece, Q};
use crate::claim::q;
use crate::place::Here;
use num_traits::Zero;
use std::collections::BTreeSet;

/// Does the schedule leave a job of a task incomplete at its deadline? An error if it is no schedule
/// of the policy.
/// All tasks release jobs at the stated times, at least p apart. In each part, from the end of the
/// one before, the m most urgent of the pending jobs run, of each task the first that is not
/// complete; no job is released or complete within it. Equal urgency goes by the earlier release,
/// then by the order of the set. Blocking and jitter may not come.
pub fn misses(
    here: &Here<'_>, late: usize, releases: &[Vec<Number>], schedule: &[Piece],
) -> Result<bool, String> {
    let tasks = &here.tasks;
    let apart = |k: usize| releases[k].windows(2).all(|r| &r[1].0 - &r[0].0 >= tasks[k].period);
    let are_apart = releases.len() == tasks.len() && (0..tasks.len()).all(apart);
    require!(are_apart, "not all tasks release jobs a period apart");
    let (mut now, mut done) = (Q::zero(), vec![0; tasks.len()]);
    let mut left: Vec<Q> = tasks.iter().map(|t| t.wcet.clone()).collect();
    for Piece { until_ns: Number(until), runs } in schedule {
        let pending = |k: usize| {
            let Number(release) = releases[k].get(done[k]).filter(|r| r.0 <= now)?;
            let due = release + &tasks[k].deadline;
            Some((if here.order.is_fixed() { q(here.ranks[k]) } else { due }, release, k))
        };
        let jobs: BTreeSet<(Q, &Q, usize)> = (0..tasks.len()).filter_map(pending).collect();
        let first: BTreeSet<usize> = jobs.into_iter().take(here.m).map(|job| job.2).collect();
        let are_first = first.iter().map(|k| &here.ids[*k]).eq(runs);
        require!(are_first, "from {now} on other jobs run than those that are stated");
        let next = |r: &Vec<Number>| r.get(r.partition_point(|t| t.0 <= now)).map(|t| t.0.clone());
        let is_cut = releases.iter().filter_map(next).any(|release| release < *until);
        require!(now < *until && !is_cut, "a job is released between {now} and {until}");
        for k in first {
            left[k] -= until - &now;
            require!(left[k] >= Q::zero(), "a job of `{}` completes before {until}", here.name(k));
            if left[k].is_zero() {
                (left[k], done[k]) = (tasks[k].wcet.clone(), done[k] + 1);
            }
        }
        now = until.clone();
    }
    let release = releases[late].get(done[late]);
    Ok(release.is_some_and(|r| &r.0 + &tasks[late].deadline <= now))
}
