//! One processor: the demand of EDF (Baruah, Rosier, Howell 1990; Zhang, Burns 2009) and the busy
//! windows of fixed priorities (Lehoczky 1990).

use crate::certificate::{Number, Q};
use crate::claim::{Task, q, utilization};
use crate::place::Here;
use num_traits::Zero;

/// h(t): the execution of all jobs that are released and due within t, all tasks released at 0.
pub fn demand(tasks: &[Task], t: &Q) -> Q {
    let due = tasks.iter().filter(|task| &task.deadline <= t);
    due.map(|task| (((t - &task.deadline) / &task.period).floor() + q(1)) * &task.wcet).sum()
}

/// The latest deadline of a job before t.
fn deadline_before(tasks: &[Task], t: &Q) -> Option<Q> {
    let due = tasks.iter().filter(|task| &task.deadline < t);
    let jobs = |task: &Task| ((t - &task.deadline) / &task.period).ceil() - q(1);
    due.map(|task| jobs(task) * &task.period + &task.deadline).max()
}

/// Does EDF meet every deadline? It does if U ≤ 1 and h(t) ≤ t for all t.
/// h changes at deadlines only and never falls: if h(t) ≤ t at a point, then also for all times
/// from h(t) to t. So the points have to reach from `until`, beyond which nothing can fail, to
/// where nothing is due, each at or above the last deadline that the ones before leave open.
pub fn demand_fits(here: &Here<'_>, until: &Q, points: &[[Number; 2]]) -> Result<(), String> {
    let tasks = &here.tasks;
    require!(tasks.iter().all(|t| t.wcet <= t.deadline), "a job is due before it can be complete");
    require!(utilization(tasks) <= q(1), "the tasks ask for more than the processor");
    if tasks.iter().all(|t| t.deadline >= t.period) {
        return Ok(());
    }
    require!(fits_from(tasks, until), "the demand may fail beyond {until}");
    // All times from here on are known to be safe.
    let mut open = until + q(1);
    for [Number(t), Number(stated)] in points {
        let h = demand(tasks, t);
        require!(h == *stated && h <= *t, "the demand by {t} is stated as {stated} and is {h}");
        let is_next = deadline_before(tasks, &open).is_none_or(|last| last <= *t);
        require!(is_next, "a deadline between {t} and {open} is left out");
        open = open.min(h);
    }
    require!(deadline_before(tasks, &open).is_none(), "the demand before {open} is left out");
    Ok(())
}

/// Does the demand fit from t on? A first miss lies within the synchronous busy period, which is
/// over by t. Or, for t ≥ max(D − p), the demand is at most U·t + Σ u·(p − D), which is within t
/// from Σ u·max(0, p − D)/(1 − U) on.
fn fits_from(tasks: &[Task], t: &Q) -> bool {
    let is_over = tasks.iter().map(|k| (t / &k.period).ceil() * &k.wcet).sum::<Q>() <= *t;
    let early = |k: &Task| k.utilization() * (&k.period - &k.deadline).max(Q::zero());
    let (ahead, idle) = (tasks.iter().map(early).sum::<Q>(), q(1) - utilization(tasks));
    let is_late = tasks.iter().all(|k| *t >= &k.deadline - &k.period);
    (is_over && !t.is_zero()) || (is_late && idle > Q::zero() && *t >= ahead / idle)
}

/// Does every task meet its deadlines under fixed priorities of these ranks?
/// Job q of the busy window is complete by w if (q + 1)·e + B + Σ ⌈(w + J)/p⌉·e of the more urgent
/// tasks is within w (Tindell, Burns, Wellings 1994). It arrived at q·p − J. The window is over with
/// the first job that is complete before the next can be released.
pub fn responses_hold(here: &Here<'_>, jobs: &[Vec<Number>]) -> Result<(), String> {
    let (tasks, ranks) = (&here.tasks, &here.ranks);
    require!(jobs.len() == tasks.len(), "not every task has its jobs");
    for (k, (task, jobs)) in tasks.iter().zip(jobs).enumerate() {
        let mut released = Q::zero();
        let mut is_over = false;
        for (job, Number(by)) in jobs.iter().enumerate() {
            let is_done = !by.is_zero() && before_done(tasks, ranks, k, job as u64, by) <= *by;
            require!(is_done, "job {job} of its task {k} is not complete by {by}");
            let is_early = by + &task.jitter <= &released + &task.deadline;
            require!(is_early, "job {job} of its task {k} may be late");
            released += &task.period;
            is_over = by + &task.jitter <= released;
        }
        require!(is_over, "the busy window of its task {k} is not followed to its end");
    }
    Ok(())
}

/// (job + 1)·e + B + Σ ⌈(w + J)/p⌉·e over the more urgent tasks.
fn before_done(tasks: &[Task], ranks: &[usize], k: usize, job: u64, w: &Q) -> Q {
    let more_urgent = tasks.iter().zip(ranks).filter(|(_, rank)| **rank < ranks[k]);
    let others: Q = more_urgent.map(|(t, _)| ((w + &t.jitter) / &t.period).ceil() * &t.wcet).sum();
    &tasks[k].wcet * (q(job) + q(1)) + &tasks[k].blocking + others
}
