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
pub fn deadline_before(tasks: &[Task], t: &Q) -> Option<Q> {
    let due = tasks.iter().filter(|task| &task.deadline < t);
    let jobs = |task: &Task| ((t - &task.deadline) / &task.period).ceil() - q(1);
    due.map(|task| jobs(task) * &task.period + &task.deadline).max()
}

/// Does EDF meet every deadline? It does if B(t) + h(t) ≤ t for all t, with deadlines counted from
/// the latest release, and B(t) the longest blocking of the tasks with the last first deadline up to
/// t (Baker 1991; Spuri 1996). A first t at which it fails lies within the synchronous busy period,
/// so that nothing can fail beyond `until` if that is over by then.
pub fn demand_fits(here: &Here<'_>, until: &Q, points: &[[Number; 2]]) -> Result<(), String> {
    let shift = |t: &Task| Task { deadline: &t.deadline - &t.jitter, ..t.clone() };
    let tasks: Vec<Task> = here.tasks.iter().map(shift).collect();
    let most = tasks.iter().map(|t| t.blocking.clone()).max().unwrap_or_default();
    let busy = &most + tasks.iter().map(|k| (until / &k.period).ceil() * &k.wcet).sum::<Q>();
    let rate = if most.is_zero() { q(1) } else { q(1) - &most / until.max(&most) };
    let is_over = !until.is_zero() && busy <= *until;
    let fits = is_over || (most <= *until && is_below_from(&tasks, &rate, until));
    require!(fits, "the demand may fail beyond {until}");
    let first = |t: &Q| tasks.iter().map(|k| &k.deadline).filter(|d| *d <= t).max();
    let blocking = |t: &Q| {
        let last = tasks.iter().filter(|k| Some(&k.deadline) == first(t));
        last.map(|k| k.blocking.clone()).max().unwrap_or_default()
    };
    let due = |t: &Q| demand(&tasks, t) + blocking(t);
    let from = |t: &Q| first(t).filter(|_| !most.is_zero()).cloned().unwrap_or_default();
    is_below(&q(1), due, |t| deadline_before(&tasks, t), from, until, points)
}

/// Is the demand at most rate·t from t on? It is at most U·t + Σ max(0, e − u·D).
pub fn is_below_from(tasks: &[Task], rate: &Q, t: &Q) -> bool {
    let early = |k: &Task| (&k.wcet - k.utilization() * &k.deadline).max(Q::zero());
    let (ahead, idle) = (tasks.iter().map(early).sum::<Q>(), rate - utilization(tasks));
    idle >= Q::zero() && ahead <= idle * t
}

/// Is due(t) ≤ rate·t for all t, if nothing can fail beyond `until`? `due` does not fall `from` some
/// time before t on: if due(t) = h is at most rate·t, then so it is for all times since, from h/rate
/// to t. `last_before` a time that is safe is the last before it at which it can fail, if nothing
/// fails then. So the points have to reach from `until` to where nothing is due, each at or above the
/// last that is left open.
pub fn is_below(
    rate: &Q, due: impl Fn(&Q) -> Q, last_before: impl Fn(&Q) -> Option<Q>, from: impl Fn(&Q) -> Q,
    until: &Q, points: &[[Number; 2]],
) -> Result<(), String> {
    // All times from here on are known to be safe.
    let mut open = until + q(1);
    for [Number(t), Number(stated)] in points {
        let h = due(t);
        require!(h == *stated && h <= rate * t, "{stated} is stated to be due by {t}, and {h} is");
        require!(last_before(&open).is_none_or(|last| last <= *t), "after {t} times are left out");
        open = open.min((h / rate).max(from(t)));
    }
    require!(last_before(&open).is_none(), "what is due before {open} is left out");
    Ok(())
}

/// Does every task meet its deadlines under fixed priorities of these ranks?
/// Job q of the busy window is complete by w if (q + 1)·e + B + Σ ⌈(w + J)/p⌉·e of the more urgent
/// tasks is within w (Tindell, Burns, Wellings 1994). It arrived at q·p − J. The window is over with
/// the first job that is complete before the next can be released.
pub fn responses_hold(here: &Here<'_>, jobs: &[Vec<Number>]) -> Result<(), String> {
    let (tasks, ranks) = (&here.tasks, &here.ranks);
    require!(jobs.len() == tasks.len(), "not every task has its jobs");
    for (k, (task, jobs)) in tasks.iter().zip(jobs).enumerate() {
        let more_urgent = tasks.iter().zip(ranks).filter(|(_, rank)| **rank < ranks[k]);
        let (mut released, mut asked, mut is_over) = (Q::zero(), task.blocking.clone(), false);
        for (job, Number(by)) in jobs.iter().enumerate() {
            asked += &task.wcet;
            let work = |(t, _): (&Task, _)| ((by + &t.jitter) / &t.period).ceil() * &t.wcet;
            let is_done = !by.is_zero() && &asked + more_urgent.clone().map(work).sum::<Q>() <= *by;
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
