//! One processor with blocking and release jitter: EDF by demand and by response times, fixed
//! priorities by response times.
//!
//! A job arrives, is released at most J later, and is due D after its arrival; periods separate
//! arrivals. Sections of less urgent jobs keep it from the processor for at most B. Sources:
//!
//! - EDF: Baker 1991 ("Stack-based scheduling of realtime processes", Real-Time Systems 3) for
//!   blocking, Spuri 1996 (INRIA RR-2772) for both: for every t, B(t) + Σ_{D_i − J_i ≤ t} (⌊(t −
//!   D_i + J_i)/p_i⌋ + 1) e_i ≤ t, and U ≤ 1. B(t) is the blocking of the tasks whose D − J is the
//!   largest within t: a section that delays a more urgent task delays them, too, or belongs to a
//!   job that is due within t and is counted.
//! - EDF response times: Spuri 1996, as in [`super::edf_response`], with ⌈(t + J_j)/p_j⌉ jobs
//!   released within t and B(t).
//! - Fixed priorities: Audsley, Burns, Richardson, Tindell, Wellings 1993 ("Applying new scheduling
//!   theory to static priority pre-emptive scheduling"); arbitrary deadlines: Tindell, Burns,
//!   Wellings 1994. Job q of the busy period ends at the least w = (q + 1) e + B + Σ ⌈(w +
//!   J_j)/p_j⌉ e_j, and R = max_q (J + w − q p), as long as w > (q + 1) p − J.
//!
//! Every task's blocking is that of one section, once in a busy period: the priority ceiling
//! protocol, the stack resource policy and sections that cannot be preempted see to that. A yes is
//! sound. Without blocking a no is exact, too; with it, the section may never come when it hurts.

use super::edf::{
    busy_period_from, decide_within as decide_plain_within, demand, violation_bound_from,
};
use super::fixed_priority::Response;
use super::{LIMIT, Work, div};
use crate::verdict::Decision;
use model::{Duration, Extras, Ratio, Timing, exact};
use std::cmp::Ordering;

/// The task with its deadline counted from the latest release: (e, D − J, p).
///
/// Under EDF its jobs keep their absolute deadlines; they only may be released up to J before their
/// arrivals in this set.
pub fn from_latest_release(task: &Timing, extras: &Extras) -> Timing {
    Timing {
        deadline: task.deadline.saturating_sub(extras.jitter),
        ..*task
    }
}

/// Tests whether some job ends too late even if no other job delays it: e > D − J.
fn is_late_alone(tasks: &[Timing], extras: &[Extras]) -> bool {
    let both = tasks.iter().zip(extras);
    both.into_iter()
        .any(|(t, x)| t.wcet.saturating_add(x.jitter) > t.deadline)
}

/// Compares U with 1.
fn load(tasks: &[Timing]) -> Ordering {
    exact::cmp_sum(tasks.iter().map(Timing::utilization), Ratio::ONE)
}

/// Decides EDF on one processor. `extras` has one entry a task.
///
/// # Errors
/// [`LIMIT`].
pub fn decide_edf(tasks: &[Timing], extras: &[Extras], work: &mut Work) -> Decision {
    let load = load(tasks);
    if is_late_alone(tasks, extras) || load == Ordering::Greater {
        return Ok(false);
    }
    let both = tasks.iter().zip(extras);
    let mut shifted: Vec<(Timing, Duration)> = both
        .map(|(t, x)| (from_latest_release(t, x), x.blocking))
        .collect();
    shifted.sort_by_key(|(t, _)| t.deadline);
    let tasks: Vec<Timing> = shifted.iter().map(|(t, _)| *t).collect();
    if !decide_plain_within(&tasks, work)? {
        return Ok(false);
    }
    // Blocking changes only at deadlines: each stretch between two of them has one B, and is
    // searched by itself.
    let mut begin = 0;
    while begin < shifted.len() {
        let from = shifted[begin].0.deadline;
        let end = begin + shifted[begin..].partition_point(|(t, _)| t.deadline == from);
        let blocking = shifted[begin..end].iter().map(|(_, b)| b.nanos()).max();
        let blocking = u128::from(blocking.unwrap_or(0));
        if blocking > 0 {
            let last = match shifted.get(end) {
                Some((next, _)) => u128::from(next.deadline.nanos()) - 1,
                // A full processor never makes up for blocking: no bound ends the search.
                None if load == Ordering::Equal => return Ok(false),
                None => violation_bound_from(&tasks, blocking)
                    .or_else(|| busy_period_from(&tasks, &[], blocking, work))
                    .ok_or(LIMIT)?,
            };
            if !stretch_holds(&tasks, blocking, (u128::from(from.nanos()), last), work)? {
                return Ok(false);
            }
        }
        begin = end;
    }
    Ok(true)
}

/// Tests whether B + h(t) ≤ t for all t from `first` to `last`: QPA downwards with B added.
fn stretch_holds(
    tasks: &[Timing],
    blocking: u128,
    (first, last): (u128, u128),
    work: &mut Work,
) -> Decision {
    let mut t = last;
    while t >= first {
        if !work.spend(2 * tasks.len() as u64) {
            return Err(LIMIT);
        }
        // h steps at deadlines alone: if the latest step up to t passes, so does all from there to
        // t.
        let Some(step) = latest_step(tasks, t).filter(|step| *step >= first) else {
            // Nothing steps within the stretch: its beginning decides.
            return Ok(blocking + demand(tasks, first) <= first);
        };
        let needed = blocking + demand(tasks, step);
        if needed > step {
            return Ok(false);
        }
        // Between what is needed and the step, B + h is at most what is needed.
        t = needed.min(step - 1);
    }
    Ok(true)
}

/// The latest absolute deadline up to `t` of jobs that are released together at 0.
fn latest_step(tasks: &[Timing], t: u128) -> Option<u128> {
    let of = |task: &Timing| {
        let beyond = t.checked_sub(u128::from(task.deadline.nanos()))?;
        let period = task.period.nanos();
        Some(u128::from(task.deadline.nanos()) + div(beyond, period) * u128::from(period))
    };
    tasks.iter().filter_map(of).max()
}

/// The worst response time of every task under EDF, from the arrival; `None` where the processor is
/// over-utilized, or past the limit of work. Deadlines may be missed. A full processor that starts
/// late never catches up: `None` as well.
pub fn edf_response_times(
    tasks: &[Timing],
    extras: &[Extras],
    work: &mut Work,
) -> Option<Vec<Duration>> {
    let is_plain = extras.iter().all(Extras::is_none);
    let most_load = if is_plain {
        Ordering::Equal
    } else {
        Ordering::Less
    };
    if load(tasks) > most_load || tasks.iter().zip(extras).any(|(t, x)| x.jitter > t.deadline) {
        return None;
    }
    let shifted: Vec<Timing> = tasks
        .iter()
        .zip(extras)
        .map(|(t, x)| from_latest_release(t, x))
        .collect();
    let jitters: Vec<u64> = extras.iter().map(|x| x.jitter.nanos()).collect();
    let most = extras.iter().map(|x| x.blocking.nanos()).max().unwrap_or(0);
    let busy = busy_period_from(&shifted, &jitters, u128::from(most), work)?;
    let sets = Shifted {
        tasks: &shifted,
        extras,
        jitters: &jitters,
    };
    (0..tasks.len())
        .map(|task| {
            let from_release = sets.response_time(task, busy, work)?;
            Some(
                Duration::from_nanos(u64::try_from(from_release).ok()?)
                    .saturating_add(extras[task].jitter),
            )
        })
        .collect()
}

/// Tasks whose deadlines count from the latest release.
struct Shifted<'a> {
    tasks: &'a [Timing],
    extras: &'a [Extras],
    jitters: &'a [u64],
}

impl Shifted<'_> {
    /// The worst time from the latest release of a job of `task` to its end.
    fn response_time(&self, task: usize, busy: u128, work: &mut Work) -> Option<u128> {
        let deadline = u128::from(self.tasks[task].deadline.nanos());
        let mut worst = 0;
        for other in self.tasks {
            let period = u128::from(other.period.nanos().max(1));
            let first = u128::from(other.deadline.nanos());
            let skipped = deadline.saturating_sub(first).div_ceil(period);
            let mut due = first + skipped * period;
            while due - deadline < busy {
                let a = due - deadline;
                worst = worst.max(self.finish(task, a, work)?.saturating_sub(a));
                due += period;
            }
        }
        Some(worst)
    }

    /// L(a): when the job of `task` whose latest release is at `a` finishes in its deadline busy
    /// period.
    fn finish(&self, task: usize, a: u128, work: &mut Work) -> Option<u128> {
        let own = &self.tasks[task];
        let due = a + u128::from(own.deadline.nanos());
        let jobs = div(a, own.period.nanos().max(1)) + 1;
        let own_time = jobs * u128::from(own.wcet.nanos()) + self.blocking(due);
        let mut t = own_time;
        loop {
            if !work.spend(self.tasks.len() as u64) {
                return None;
            }
            let mut next = own_time;
            for (index, other) in self.tasks.iter().enumerate() {
                let Some(beyond) = due.checked_sub(u128::from(other.deadline.nanos())) else {
                    continue;
                };
                if index == task {
                    continue;
                }
                let period = other.period.nanos().max(1);
                let released = released_within(t, period, self.jitters[index]);
                let due_in_time = div(beyond, period) + 1;
                next += released.min(due_in_time) * u128::from(other.wcet.nanos());
            }
            if next == t {
                return Some(t);
            }
            t = next;
        }
    }

    /// B of an interval that ends `due` after it begins.
    fn blocking(&self, due: u128) -> u128 {
        let within = |t: &&Timing| u128::from(t.deadline.nanos()) <= due;
        let Some(last) = self.tasks.iter().filter(within).map(|t| t.deadline).max() else {
            return 0;
        };
        let both = self.tasks.iter().zip(self.extras);
        let of_last = both.filter(|(t, _)| t.deadline == last);
        u128::from(of_last.map(|(_, x)| x.blocking.nanos()).max().unwrap_or(0))
    }
}

/// ⌈(t + J)/p⌉: the most jobs that are released within t.
pub(super) fn released_within(t: u128, period: u64, jitter: u64) -> u128 {
    div(t + u128::from(jitter) + u128::from(period) - 1, period)
}

/// Decides fixed priorities on one processor, the first task the most urgent. `extras` has one
/// entry a task.
///
/// # Errors
/// [`LIMIT`].
pub fn decide_fixed(tasks: &[Timing], extras: &[Extras], work: &mut Work) -> Decision {
    if load(tasks) == Ordering::Greater {
        return Ok(false);
    }
    for task in 0..tasks.len() {
        match fixed_response(tasks, extras, task, work) {
            Response::Within(_) => {}
            Response::Late => return Ok(false),
            Response::Limit => return Err(LIMIT),
        }
    }
    Ok(true)
}

/// The worst response time of every task under fixed priorities, from the arrival; the first task
/// is the most urgent.
pub fn fixed_response_times(tasks: &[Timing], extras: &[Extras]) -> Vec<Response> {
    let mut work = Work::new();
    (0..tasks.len())
        .map(|task| fixed_response(tasks, extras, task, &mut work))
        .collect()
}

/// After so many jobs of a busy period its end is looked for in another way.
const LONG: u128 = 64;

/// The least common multiple of the periods, where it is a time.
///
/// A full processor that begins late is busy for ever. Yet no job responds later than the one a
/// hyperperiod H before it: H more of time ask for H U ≤ H more of work, so that where w solves the
/// equation of job q, w + H suffices for job q + H/p.
fn hyperperiod(tasks: &[Timing]) -> Option<u128> {
    let mut all: u64 = 1;
    for t in tasks {
        all = num_integer::lcm(u128::from(all), u128::from(t.period.nanos().max(1)))
            .try_into()
            .ok()?;
    }
    Some(u128::from(all))
}

/// The response time of the task at `place` below those before it.
fn fixed_response(tasks: &[Timing], extras: &[Extras], place: usize, work: &mut Work) -> Response {
    let task = &tasks[place];
    let (e, p, d) = (
        u128::from(task.wcet.nanos()),
        u128::from(task.period.nanos()),
        u128::from(task.deadline.nanos()),
    );
    let jitter = u128::from(extras[place].jitter.nanos());
    let blocking = u128::from(extras[place].blocking.nanos());
    let higher = || tasks[..place].iter().zip(extras);
    let (mut worst, mut finish) = (0, 0);
    let mut jobs = u128::MAX;
    // Times count from the release of the first job, which arrived J before.
    for q in 0_u128.. {
        let mut w = (finish + e).max((q + 1) * e + blocking);
        loop {
            if w + jitter > q * p + d {
                return Response::Late;
            }
            if !work.spend(1 + place as u64) {
                return Response::Limit;
            }
            let interference: u128 = higher()
                .map(|(h, x)| {
                    released_within(w, h.period.nanos(), x.jitter.nanos())
                        * u128::from(h.wcet.nanos())
                })
                .sum();
            let next = (q + 1) * e + blocking + interference;
            if next <= w {
                break;
            }
            w = next;
        }
        finish = w;
        worst = worst.max(w + jitter - q * p);
        if w + jitter <= (q + 1) * p || q + 1 >= jobs {
            break;
        }
        if q == LONG {
            jobs = hyperperiod(&tasks[..=place]).map_or(u128::MAX, |h| h / p.max(1));
        }
    }
    // At most the deadline, which is a duration.
    Response::Within(Duration::from_nanos(
        u64::try_from(worst).unwrap_or(u64::MAX),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(e: u64, p: u64, d: u64) -> Timing {
        Timing {
            wcet: Duration::from_nanos(e),
            period: Duration::from_nanos(p),
            deadline: Duration::from_nanos(d),
        }
    }
    fn extras(blocking: u64, jitter: u64) -> Extras {
        Extras {
            blocking: Duration::from_nanos(blocking),
            jitter: Duration::from_nanos(jitter),
        }
    }
    fn edf(tasks: &[Timing], extras: &[Extras]) -> Decision {
        decide_edf(tasks, extras, &mut Work::new())
    }

    /// Two jobs of 3 every 10 under one of 4: R = J + B + 4 + 3 · ⌈(w + J)/10⌉ by hand.
    #[test]
    fn fixed_priorities_with_jitter_and_blocking_by_hand() {
        let set = [task(3, 10, 10), task(4, 20, 20)];
        let times = |x: [Extras; 2]| fixed_response_times(&set, &x);
        let within = |t| Response::Within(Duration::from_nanos(t));
        assert_eq!(times([extras(0, 0); 2]), [within(3), within(7)]);
        // w = 4 + 3 · ⌈(7 + 2)/10⌉ = 7.
        assert_eq!(times([extras(2, 2), extras(0, 5)]), [within(7), within(12)]);
        // w = 4 + 3 · ⌈(10 + 4)/10⌉ = 10: the second job comes six after the first.
        assert_eq!(times([extras(0, 4), extras(0, 0)]), [within(7), within(10)]);
        // Its own blocking counts once: w = 6 + 4 + 3 · ⌈(13 + 0)/10⌉ = 16.
        assert_eq!(times([extras(0, 0), extras(6, 0)]), [within(3), within(16)]);
        assert_eq!(times([extras(4, 4), extras(0, 0)])[0], Response::Late);
    }

    /// EDF: 5 due at 10 and 5 due at 20 leave 5 before the first deadline and 10 before the second.
    #[test]
    fn edf_bears_blocking_up_to_the_slack_and_no_longer() {
        let set = [task(5, 40, 10), task(5, 40, 20)];
        for (blocking, jitter, says) in [
            ([5, 10], [0, 0], true),
            ([6, 0], [0, 0], false),
            ([0, 11], [0, 0], false),
            ([0, 0], [5, 0], true),
            ([0, 0], [6, 0], false),
            // The second deadline lies at 14 with jitter: 10 of demand and 4 of blocking fit.
            ([4, 4], [0, 6], true),
            ([5, 5], [0, 6], false),
            // Both at 10 and 5 + 5: no room for blocking.
            ([0, 0], [0, 10], true),
            ([1, 0], [0, 10], false),
        ] {
            let x = [
                extras(blocking[0], jitter[0]),
                extras(blocking[1], jitter[1]),
            ];
            assert_eq!(edf(&set, &x), Ok(says), "{blocking:?} {jitter:?}");
            let times = edf_response_times(&set, &x, &mut Work::new()).unwrap();
            let all_in_time = times.iter().zip(&set).all(|(r, t)| *r <= t.deadline);
            assert_eq!(all_in_time, says, "{blocking:?} {jitter:?}: {times:?}");
        }
    }

    #[test]
    fn a_full_processor_with_blocking_is_never_accepted_and_ends() {
        let set = [task(1, 2, 2), task(2, 4, 4)];
        assert_eq!(edf(&set, &[extras(0, 0), extras(0, 0)]), Ok(true));
        assert_eq!(edf(&set, &[extras(1, 0), extras(0, 0)]), Ok(true));
        assert_ne!(edf(&set, &[extras(0, 0), extras(1, 0)]), Ok(true));
        let long = u64::MAX;
        let hostile = [task(long, long, long), task(1, long, long)];
        assert_eq!(edf(&hostile, &[extras(long, long); 2]), Ok(false));
        assert_eq!(
            decide_fixed(&hostile, &[extras(long, long); 2], &mut Work::new()),
            Ok(false)
        );
    }
}
