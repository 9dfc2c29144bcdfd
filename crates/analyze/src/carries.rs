//! How tests take blocking and release jitter: what each row of the registry carries, and how a set
//! is reduced for it.
//!
//! A job arrives, is released within J, and is due D after its arrival; arrivals are p apart.
//! Blocking by less urgent jobs delays it for at most B while it is among the m most urgent
//! released jobs.
//!
//! **Blocking on several processors: e + B.** While such a job is blocked it counts as executing.
//! Then at every instant the m most urgent jobs execute, each for at most e + B: a schedule of the
//! policy for the longer executions, in which every job ends when it ends in truth (the
//! suspension-oblivious accounting of Brandenburg and Anderson 2010). What a test promises for
//! executions up to e + B holds. This is so for every policy with one priority a job.
//!
//! **Jitter, tests for EDF that look at deadlines: (e, D − J, p).** Let a job arrive in the reduced
//! set at a + J. Its deadline is the same instant, arrivals are p apart, and its release is not
//! later, only maybe earlier. Where D − J ≤ p the job before is done by then (up to the first
//! miss), so that a job that is ready early is like one that has executed already. The proofs of
//! GFB, BAK, BCL, BCLI, BAR, LOAD and FFDBF bound the work of others by the jobs whose deadlines
//! lie in a window before the missed one, p apart, and what a job carries into it by its deadline
//! or by what it must have executed since its arrival: earlier release adds to neither. LOAD takes
//! D − J > p, too: its proof follows the pending jobs of a task back to the one that found none
//! pending, which is ready no later than it arrives in the reduced set.
//!
//! **Jitter, all other tests: (e, D − J, p − J).** Releases are at least p − J apart, and a job
//! that is done D − J after its release is in time. For fixed priorities, which look at no
//! deadline, that is a sporadic task of the same priority. For RTA, which lays jobs out from their
//! releases, it bounds how near two jobs come: one ends at a + D − s at the latest, the next is
//! released at a + p at the earliest, as in the reduced set.

use crate::verdict::{Decision, NotApplicable};
use model::{Duration, Extras, TaskSet, Timing};
use std::borrow::Cow;

/// Decides a set with blocking and jitter.
pub type Decide = fn(&[Timing], &[Extras], u32) -> Decision;

/// What a test takes besides the timing of a set.
#[derive(Clone, Copy, Debug)]
pub enum Carries {
    /// Neither blocking nor jitter.
    Nothing,
    /// Blocking as execution, no jitter.
    Blocking,
    /// Blocking as execution, deadlines less jitter, the same periods.
    Deadlines,
    /// Blocking as execution, deadlines and periods less jitter.
    Sporadic,
    /// Both, in an analysis of its own.
    Own(Decide),
}

impl Carries {
    /// For the table of the documentation.
    pub const fn words(self) -> &'static str {
        match self {
            Carries::Nothing => "neither",
            Carries::Blocking => "blocking",
            Carries::Deadlines | Carries::Sporadic | Carries::Own(_) => "both",
        }
    }

    /// How, in a sentence for the documentation.
    pub const fn sentence(self) -> &'static str {
        match self {
            Carries::Nothing => "Blocking and release jitter: refused.",
            Carries::Blocking => "Blocking B: e + B in the place of e. Release jitter: refused.",
            Carries::Deadlines => "Blocking B and release jitter J: it decides (e + B, D − J, p).",
            Carries::Sporadic => {
                "Blocking B and release jitter J: it decides (e + B, D − J, p − J)."
            }
            Carries::Own(_) => "Blocking and release jitter: in its own analysis.",
        }
    }
}

/// The longest jitter and blocking of a set are of these kinds.
pub const JITTER: &str = "release jitter";
/// See [`JITTER`].
pub const BLOCKING: &str = "blocking";

/// Tests whether a set has jitter.
pub fn has_jitter(extras: &[Extras]) -> bool {
    extras.iter().any(|x| !x.jitter.is_zero())
}

/// Tests whether a set has blocking.
pub fn has_blocking(extras: &[Extras]) -> bool {
    extras.iter().any(|x| !x.blocking.is_zero())
}

/// Refuses what there is of `extras`.
///
/// # Errors
/// Some task has jitter or blocking.
pub fn none(extras: &[Extras]) -> Result<(), NotApplicable> {
    no_jitter(extras)?;
    match has_blocking(extras) {
        true => Err(NotApplicable::NotTaken(BLOCKING)),
        false => Ok(()),
    }
}

fn no_jitter(extras: &[Extras]) -> Result<(), NotApplicable> {
    match has_jitter(extras) {
        true => Err(NotApplicable::NotTaken(JITTER)),
        false => Ok(()),
    }
}

/// The set to decide in the place of one with extras; `Ok(None)`: no test accepts it.
///
/// # Errors
/// The test does not carry what the set has.
pub fn reduced<'t>(
    carries: Carries,
    tasks: &'t [Timing],
    extras: &[Extras],
) -> Result<Option<Cow<'t, [Timing]>>, NotApplicable> {
    if extras.iter().all(Extras::is_none) {
        return Ok(Some(Cow::Borrowed(tasks)));
    }
    let shorter_period = match carries {
        Carries::Nothing | Carries::Own(_) => {
            return none(extras).map(|()| Some(Cow::Borrowed(tasks)));
        }
        Carries::Blocking => {
            no_jitter(extras)?;
            false
        }
        Carries::Deadlines => false,
        Carries::Sporadic => true,
    };
    let mut out = Vec::with_capacity(tasks.len());
    for (t, x) in tasks.iter().zip(extras) {
        let wcet = t.wcet.saturating_add(x.blocking);
        if wcet.saturating_add(x.jitter) > t.deadline
            && matches!(carries, Carries::Deadlines | Carries::Sporadic)
        {
            return Ok(None);
        }
        if shorter_period && x.jitter >= t.period {
            return Err(NotApplicable::Precondition(
                "release jitter is shorter than the period",
            ));
        }
        let less = if shorter_period {
            x.jitter
        } else {
            Duration::ZERO
        };
        out.push(Timing {
            wcet,
            deadline: t.deadline.saturating_sub(x.jitter),
            period: t.period.saturating_sub(less),
        });
    }
    Ok(Some(Cow::Owned(out)))
}

/// Indices of tasks in the order of their priorities, and the tasks in the order of the set.
pub type Ordered<'t> = (Vec<usize>, Cow<'t, [Timing]>);

/// The tasks as sporadic ones without extras, and their indices in the order of the given
/// deadlines, by which deadline-monotonic priorities go whatever jitter leaves of them. `Ok(None)`:
/// no test accepts the set.
///
/// # Errors
/// Jitter as long as a period.
pub fn by_deadline<'t>(
    tasks: &'t [Timing],
    extras: &[Extras],
) -> Result<Option<Ordered<'t>>, NotApplicable> {
    let Some(reduced) = reduced(Carries::Sporadic, tasks, extras)? else {
        return Ok(None);
    };
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|i| tasks[*i].deadline);
    Ok(Some((order, reduced)))
}

/// The timings and extras of a set in the order of its given priorities, the most urgent first.
pub fn by_priority(set: &TaskSet) -> (Vec<Timing>, Vec<Extras>) {
    let order = set.by_priority();
    let timings = order.iter().map(|id| set.timings()[id.index()]).collect();
    let extras = match set.extras() {
        [] => Vec::new(),
        extras => order.iter().map(|id| extras[id.index()]).collect(),
    };
    (timings, extras)
}
