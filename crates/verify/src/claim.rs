//! What has to hold of a claim: each task is once where it may be, with its overheads; each place
//! has a proof that is one for this policy and this guarantee, and holds.

use crate::certificate::{Certificate, Claim, Entry, Guarantee, Number, Place, Q};
use crate::certificate::{Refusal, Rule, Says};
use crate::{costs, place::Here};
use num_bigint::BigInt;
use num_traits::Zero;
use std::collections::BTreeSet;

/// A whole number as a fraction.
pub fn q(n: impl Into<BigInt>) -> Q {
    Q::from(n.into())
}

/// A task in numbers, all in whole nanoseconds.
#[derive(Clone)]
pub struct Task {
    pub wcet: Q,
    pub period: Q,
    pub deadline: Q,
    pub jitter: Q,
    pub blocking: Q,
}

impl Task {
    pub fn utilization(&self) -> Q {
        &self.wcet / &self.period
    }

    pub fn is_delayed(&self) -> bool {
        !self.jitter.is_zero() || !self.blocking.is_zero()
    }
}

pub fn utilization(tasks: &[Task]) -> Q {
    tasks.iter().map(Task::utilization).sum()
}

/// The set of a certificate, and its tasks in numbers.
pub struct Set<'c> {
    pub read: &'c Certificate,
    pub tasks: Vec<Task>,
}

impl<'c> Set<'c> {
    pub fn of(read: &'c Certificate) -> Result<Self, String> {
        let m = read.processors.len();
        let different: BTreeSet<u32> = read.processors.iter().copied().collect();
        require!(m > 0 && different.len() == m, "the processors are no list of different numbers");
        let is_square = read.ways.len() == m && read.ways.iter().all(|row| row.len() == m);
        let is_free = read.rule == Rule::OneDelay && read.ways.is_empty();
        require!(is_square || is_free, "there is not one way to resume for every two processors");
        let task = |e: &Entry| {
            let times = [&e.wcet_ns, &e.period_ns, &e.deadline_ns, &e.jitter_ns, &e.blocking_ns];
            let [wcet, period, deadline, jitter, blocking] = times.map(|t| t.0.clone());
            let are_whole = times.iter().chain([&&e.phase_ns]).all(|t| t.0.is_integer());
            let is_time = |t: &&Number| !t.0.is_zero() && t.0 <= q(u64::MAX);
            let are_times = are_whole && times[..3].iter().all(is_time);
            require!(are_times, "a time of task `{}` is zero, a fraction or endless", e.task);
            Ok(Task { wcet, period, deadline, jitter, blocking })
        };
        Ok(Set { read, tasks: read.tasks.iter().map(task).collect::<Result<_, _>>()? })
    }

    /// The same with WCETs in so many thousandths of these, rounded up.
    fn scaled(&self, thousandths: &Q) -> Self {
        let scale = |wcet: &Q| (wcet * thousandths / q(1_000)).ceil();
        let tasks = self.tasks.iter().map(|t| Task { wcet: scale(&t.wcet), ..t.clone() });
        Set { read: self.read, tasks: tasks.collect() }
    }

    /// The way in which a job resumes that was on one processor and comes to another.
    pub fn way(&self, from: u32, to: u32) -> &str {
        let at = |cpu| self.read.processors.iter().position(|p| *p == cpu).unwrap_or(0);
        &self.read.ways[at(from)][at(to)]
    }

    /// Can a task preempt one with a shorter deadline or period, or an earlier release: by jitter or
    /// by blocking?
    pub fn is_unordered(&self) -> bool {
        self.tasks.iter().any(Task::is_delayed)
    }

    pub fn is_hard(&self) -> bool {
        self.read.guarantee == Guarantee::Hard
    }
}

/// Which job goes first. Given: by the priorities of the set, the larger first; without any, by its
/// order. Releases: first in, first out. Then the orders of EDF-WM, EDF-fm, NPS-F and PD2.
#[derive(Clone, Copy, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Order {
    Deadlines, RateMonotonic, DeadlineMonotonic, Given, Releases, Slices, Turns, Servers, Quanta,
}

impl Order {
    pub fn is_fixed(self) -> bool {
        matches!(self, Order::RateMonotonic | Order::DeadlineMonotonic | Order::Given)
    }

    /// For each of some tasks (places in the set) its rank among them, 0 the most urgent. Ties go
    /// by the order of the set.
    pub fn ranks(self, set: &Set<'_>, tasks: &[usize]) -> Vec<usize> {
        let key = |task: usize| match self {
            Order::RateMonotonic => set.tasks[task].period.clone(),
            Order::DeadlineMonotonic => set.tasks[task].deadline.clone(),
            Order::Given => -set.read.tasks[task].priority.map_or(q(-1), q),
            _ => Q::zero(),
        };
        let keys: Vec<(Q, usize)> = tasks.iter().map(|task| (key(*task), *task)).collect();
        keys.iter().map(|own| keys.iter().filter(|other| *other < own).count()).collect()
    }
}

/// The policies that this program has proofs for: what goes first, and how many of m processors a
/// place has, unless it may have any number.
fn policy(name: &str, m: usize) -> Result<(Order, Option<usize>), String> {
    let (base, parameter) = name.split_once(':').unwrap_or((name, ""));
    let order = match (base, parameter) {
        ("p-edf" | "g-edf", "") | ("c-edf", _) => Order::Deadlines,
        ("p-rm", "") | ("p-fp" | "g-fp", "rm") => Order::RateMonotonic,
        ("p-fp" | "g-fp", "dm") => Order::DeadlineMonotonic,
        ("p-fp" | "g-fp", "") => Order::Given,
        ("g-fifo", "") => Order::Releases,
        ("edf-wm", _) => Order::Slices,
        ("edf-fm", _) => Order::Turns,
        ("nps-f" | "c-nps-f", _) => Order::Servers,
        ("pd2", "") => Order::Quanta,
        _ => return Err("this program has no proofs for the policy".to_owned()),
    };
    let on_one = base.starts_with("p-") || base.starts_with("edf-");
    Ok((order, if on_one { Some(1) } else { (!base.starts_with("c-")).then_some(m) }))
}

/// Verifies a claim; else one sentence: what is wrong.
pub fn verify(set: &Set<'_>, claim: &Claim) -> Result<(), String> {
    let (order, width) = policy(&claim.policy, set.read.processors.len())?;
    let set = &set.scaled(claim.with.thousandths.as_ref().map_or(&q(1_000), |n| &n.0));
    if let Some(why) = &claim.refutation {
        // A cache delay is an upper bound, and refutes nothing.
        let is_bare = claim.with.cpmd_ns.is_none() && claim.stuck.is_none();
        let is_alone = is_bare && claim.says == Says::Refuted && claim.places.is_empty();
        require!(is_alone, "a refutation is not all that there is");
        return refuted(set, order, width, why);
    }
    let is_split = matches!(order, Order::Slices | Order::Turns | Order::Servers);
    require!(!is_split || claim.says == Says::Yes, "what splitting does not find refutes nothing");
    costs::check(set, order, &claim.costs, &claim.with)?;
    are_places(set, order, claim)?;
    for place in &claim.places {
        let is_wide = width.is_none_or(|width| place.processors.len() == width);
        require!(is_wide, "{:?} are no place of this policy", place.processors);
        let on = |why| format!("on processors {:?}: {why}", place.processors);
        let here = Here::of(set, order, place, &claim.places);
        costs::compare(&here, &claim.costs, claim.says).map_err(on)?;
        match (claim.says, &place.proof, place.refusals.as_slice()) {
            (Says::Yes, Some(proof), []) => here.holds(proof, &claim.costs).map_err(on)?,
            (Says::NotShown, None, all @ [_, ..]) => {
                all.iter().try_for_each(|refusal| here.is_refused(refusal)).map_err(on)?;
            }
            _ => return Err(on("proof and refusals are not those of the claim".to_owned())),
        }
    }
    Ok(())
}

/// Checks who is where: each task once, on processors that exist and that it may use.
fn are_places(set: &Set<'_>, order: Order, claim: &Claim) -> Result<(), String> {
    let mut free: BTreeSet<u32> = set.read.processors.iter().copied().collect();
    let mut counts = vec![0; set.tasks.len()];
    for place in &claim.places {
        let on = &place.processors;
        let are_free = !on.is_empty() && on.iter().all(|cpu| free.remove(cpu));
        require!(are_free, "a processor of {on:?} does not exist, or is used twice");
        let count = |of: Order| if order == of { place.tasks.len() } else { 0 };
        let are_all = place.inflated_ns.len() == place.tasks.len()
            && place.windows_ns.len() == count(Order::Slices)
            && place.budgets_ns.len() == count(Order::Slices)
            && place.slices.len() == count(Order::Slices)
            && place.parts.len() == count(Order::Turns);
        let are_whole = place.inflated_ns.iter().all(|wcet| wcet.0.is_integer());
        require!(are_all && are_whole, "on {on:?} not every task has a whole WCET and its part");
        require!(place.tasks.is_sorted_by(|a, b| a < b), "on {on:?} tasks are not in their order");
        for task in &place.tasks {
            let is_allowed = set.read.tasks.get(*task).is_some_and(|entry| allows(entry, on));
            require!(is_allowed, "task {task} does not exist, or may not run on {on:?}");
            counts[*task] += 1;
        }
    }
    let is_once = |but| counts.iter().enumerate().all(|(t, n)| Some(t) == but || *n <= 1);
    let in_order = match (claim.says, claim.stuck) {
        (Says::Yes, None) => (0..counts.len()).all(|task| is_whole(set, order, claim, task)),
        (_, None) => !claim.places.is_empty() && is_once(None),
        (Says::NotShown, Some(stuck)) if stuck < counts.len() => {
            // Each place that the task may use has been tried, with others that are there once.
            let left = free.iter().any(|cpu| allows(&set.read.tasks[stuck], &[*cpu]));
            !left && counts[stuck] == claim.places.len() && is_once(Some(stuck))
        }
        _ => false,
    };
    require!(in_order, "a task is left out, or is in two places");
    Ok(())
}

/// Do the places of a claim have all of a task: its execution in slices, with windows one after the
/// other; all of its jobs, on two processors at most; or all of it in one place?
fn is_whole(set: &Set<'_>, order: Order, claim: &Claim, task: usize) -> bool {
    let at = |place: &Place| place.tasks.iter().position(|t| *t == task);
    let here: Vec<_> = claim.places.iter().filter_map(|p| Some((p, at(p)?))).collect();
    let sum = |of: fn(&Place) -> &[Number]| here.iter().map(|(p, at)| &of(p)[*at].0).sum::<Q>();
    let Task { wcet, period, deadline, .. } = &set.tasks[task];
    match order {
        Order::Slices => {
            let windows = sum(|p| &p.windows_ns);
            // A slice that is whole goes by the deadline of its task.
            let fits = windows <= *deadline.min(period) || here.len() == 1;
            let fits = fits && (windows == *deadline || here.len() > 1);
            fits && sum(|p| &p.budgets_ns) >= wcet + &claim.costs.delay_ns.0
        }
        Order::Turns => sum(|p| &p.parts) == q(1) && here.len() <= 2,
        _ => here.len() == 1,
    }
}

fn allows(entry: &Entry, cpus: &[u32]) -> bool {
    entry.processors.as_ref().is_none_or(|own| cpus.iter().all(|cpu| own.contains(cpu)))
}

/// Why no schedule of the policy keeps the guarantee: of the tasks as they were given, without
/// overheads, which are upper bounds and refute nothing.
fn refuted(set: &Set<'_>, order: Order, width: Option<usize>, why: &Refusal) -> Result<(), String> {
    let (cpus, entries) = (&set.read.processors, &set.read.tasks);
    let (tasks, processors) = ((0..entries.len()).collect(), cpus.clone());
    let inflated_ns = set.tasks.iter().map(|t| Number(t.wcet.clone())).collect();
    let together = Place { processors, tasks, inflated_ns, ..Place::default() };
    let all = Here::of(set, order, &together, &[]);
    // Every task may be released at any time, if none has a phase.
    let any_time = set.is_hard() && entries.iter().all(|e| e.phase_ns.0.is_zero());
    let anywhere = width == Some(cpus.len()) && entries.iter().all(|e| allows(e, cpus));
    match why {
        Refusal::Utilization {} | Refusal::Task { .. } => all.is_refused(why),
        Refusal::Demand { .. } if any_time => all.is_refused(why),
        Refusal::Miss { .. } if any_time && anywhere => all.is_refused(why),
        _ => Err("what is said to refute the set does not".to_owned()),
    }
}
