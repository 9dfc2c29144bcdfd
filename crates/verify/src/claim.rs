//! What has to hold of a claim: that the places hold every task once, where it may be; that WCETs
//! hold their overheads; that the proof of each place is one for this policy and this guarantee,
//! and holds.

use crate::certificate::{Certificate, Claim, Entry, Guarantee, Place, Q, Refusal, Rule, Says};
use crate::{costs, place::Here};
use num_bigint::BigInt;
use num_traits::Zero;
use std::cmp::Reverse;
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
}

pub fn utilization(tasks: &[Task]) -> Q {
    tasks.iter().map(Task::utilization).sum()
}

/// The set of a certificate.
pub struct Set<'c> {
    guarantee: Guarantee,
    pub rule: Rule,
    pub tasks: Vec<Task>,
    processors: &'c [u32],
    ways: &'c [Vec<String>],
    entries: &'c [Entry],
}

impl<'c> Set<'c> {
    /// # Errors
    /// A time that is zero or a fraction, a processor that is listed twice, a table of ways that is
    /// not square.
    pub fn of(read: &'c Certificate) -> Result<Self, String> {
        let m = read.processors.len();
        if m == 0 || read.processors.iter().collect::<BTreeSet<_>>().len() != m {
            return Err("the processors are not a list of different numbers".to_owned());
        }
        let is_square = read.ways.len() == m && read.ways.iter().all(|row| row.len() == m);
        if !is_square && (read.rule != Rule::OneDelay || !read.ways.is_empty()) {
            return Err("there is not one way to resume for every two processors".to_owned());
        }
        let task = |e: &Entry| {
            let needed = [&e.wcet_ns, &e.period_ns, &e.deadline_ns].map(|t| t.0.clone());
            let others = [&e.jitter_ns, &e.blocking_ns, &e.phase_ns].map(|t| t.0.clone());
            let are_whole = needed.iter().chain(&others).all(Q::is_integer);
            if !are_whole || needed.iter().any(Q::is_zero) {
                return Err(format!("a time of task `{}` is zero or a fraction", e.task));
            }
            let ([wcet, period, deadline], [jitter, blocking, _]) = (needed, others);
            Ok(Task { wcet, period, deadline, jitter, blocking })
        };
        Ok(Set {
            guarantee: read.guarantee,
            rule: read.rule,
            tasks: read.tasks.iter().map(task).collect::<Result<_, _>>()?,
            processors: &read.processors,
            ways: &read.ways,
            entries: &read.tasks,
        })
    }

    pub fn name(&self, task: usize) -> &str {
        &self.entries[task].task
    }

    /// The way in which a job resumes that was on one processor and comes to another, both of this
    /// set.
    pub fn way(&self, from: u32, to: u32) -> &str {
        let at = |cpu| self.processors.iter().position(|p| *p == cpu).unwrap_or(0);
        &self.ways[at(from)][at(to)]
    }

    /// Can a task preempt one with a shorter deadline or period: by jitter, by blocking, or by
    /// priorities of its own?
    pub fn is_unordered(&self) -> bool {
        let is_delayed = |t: &Task| !t.jitter.is_zero() || !t.blocking.is_zero();
        self.tasks.iter().any(is_delayed) || self.entries.iter().any(|e| e.priority.is_some())
    }

    pub fn is_hard(&self) -> bool {
        self.guarantee == Guarantee::Hard
    }
}

/// Which job goes first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Deadlines,
    RateMonotonic,
    DeadlineMonotonic,
    /// The priorities of the set, the larger first; without any, its order.
    Given,
    /// First in, first out.
    Any,
}

impl Order {
    pub fn is_fixed(self) -> bool {
        !matches!(self, Order::Deadlines | Order::Any)
    }

    /// For each of some tasks (places in the set) its rank among them, 0 the most urgent. Ties go
    /// by the order of the set.
    pub fn ranks(self, set: &Set<'_>, tasks: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        match self {
            Order::RateMonotonic => order.sort_by_key(|at| &set.tasks[tasks[*at]].period),
            Order::DeadlineMonotonic => order.sort_by_key(|at| &set.tasks[tasks[*at]].deadline),
            Order::Given => order.sort_by_key(|at| Reverse(set.entries[tasks[*at]].priority)),
            Order::Deadlines | Order::Any => {}
        }
        let mut ranks = vec![0; tasks.len()];
        order.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = rank);
        ranks
    }
}

/// The policies that this program has proofs for: what goes first, and how many of m processors a
/// place has, unless it may have any number.
fn policy(name: &str, m: usize) -> Result<(Order, Option<usize>), String> {
    let (base, parameter) = name.split_once(':').unwrap_or((name, ""));
    let known = match (base, parameter) {
        ("p-edf", "") => (Order::Deadlines, Some(1)),
        ("c-edf", _) => (Order::Deadlines, None),
        ("g-edf", "") => (Order::Deadlines, Some(m)),
        ("g-fifo", "") => (Order::Any, Some(m)),
        ("p-rm", "") | ("p-fp", "rm") => (Order::RateMonotonic, Some(1)),
        ("p-fp", "dm") => (Order::DeadlineMonotonic, Some(1)),
        ("p-fp", "") => (Order::Given, Some(1)),
        ("g-fp", "rm") => (Order::RateMonotonic, Some(m)),
        ("g-fp", "dm") => (Order::DeadlineMonotonic, Some(m)),
        ("g-fp", "") => (Order::Given, Some(m)),
        _ => return Err("this program has no proofs for the policy".to_owned()),
    };
    Ok(known)
}

/// Verifies a claim.
///
/// # Errors
/// One sentence: what is wrong.
pub fn verify(set: &Set<'_>, claim: &Claim) -> Result<(), String> {
    let (order, width) = policy(&claim.policy, set.processors.len())?;
    match (claim.says, &claim.refutation) {
        (Says::Refuted, Some(why)) if claim.places.is_empty() && claim.stuck.is_none() => {
            return refuted(set, order, why);
        }
        (Says::Refuted, _) | (_, Some(_)) => {
            return Err("a refutation is missing, or is not all that there is".to_owned());
        }
        (Says::Yes | Says::NotShown, None) => {}
    }
    costs::check(set, &claim.costs)?;
    are_places(set, claim, width)?;
    for place in &claim.places {
        let on = |why| format!("on {}: {why}", place.named());
        costs::compare(set, order, &claim.costs, place, claim.says).map_err(on)?;
        let here = Here::of(set, order, place);
        match (claim.says, &place.proof, place.refusals.as_slice()) {
            (Says::Yes, Some(proof), []) => here.holds(proof).map_err(on)?,
            (Says::NotShown, None, all @ [_, ..]) => {
                all.iter().try_for_each(|refusal| here.is_refused(refusal)).map_err(on)?;
            }
            _ => return Err(on("proof and refusals are not those of the claim".to_owned())),
        }
    }
    Ok(())
}

/// Checks who is where: each task once, on processors that exist and that it may use.
fn are_places(set: &Set<'_>, claim: &Claim, width: Option<usize>) -> Result<(), String> {
    let mut free: BTreeSet<u32> = set.processors.iter().copied().collect();
    let mut counts = vec![0; set.tasks.len()];
    for place in &claim.places {
        let on = |why: &str| Err(format!("on {}: {why}", place.named()));
        let size = place.processors.len();
        let fits = size > 0 && width.is_none_or(|width| size == width);
        if !fits || !place.processors.iter().all(|cpu| free.remove(cpu)) {
            return on("it is no place of this policy, or a processor is used twice");
        }
        let is_whole = place.inflated_ns.iter().all(|wcet| wcet.0.is_integer());
        if place.tasks.len() != place.inflated_ns.len() || !is_whole {
            return on("not every task has a whole WCET");
        }
        if !place.tasks.is_sorted_by(|a, b| a < b) {
            return on("the tasks are not in their order");
        }
        for task in &place.tasks {
            match (counts.get_mut(*task), set.entries.get(*task)) {
                (Some(count), Some(entry)) if entry.allows(&place.processors) => *count += 1,
                _ => return on("a task does not exist, or may not run there"),
            }
        }
    }
    let is_once =
        |but: Option<usize>| counts.iter().enumerate().all(|(t, n)| Some(t) == but || *n <= 1);
    let in_order = match (claim.says, claim.stuck) {
        (Says::Yes, None) => counts.iter().all(|count| *count == 1),
        (_, None) => !claim.places.is_empty() && is_once(None),
        (Says::NotShown, Some(stuck)) if stuck < counts.len() => {
            // Each place that the task may use has been tried, with others that are there once.
            let left = free.iter().any(|cpu| set.entries[stuck].allows(&[*cpu]));
            !left && counts[stuck] == claim.places.len() && is_once(Some(stuck))
        }
        _ => false,
    };
    in_order.then_some(()).ok_or_else(|| "a task is left out, or is in two places".to_owned())
}

impl Entry {
    fn allows(&self, cpus: &[u32]) -> bool {
        self.processors.as_ref().is_none_or(|own| cpus.iter().all(|cpu| own.contains(cpu)))
    }
}

impl Place {
    /// For people.
    fn named(&self) -> String {
        let list: Vec<String> = self.processors.iter().take(9).map(u32::to_string).collect();
        format!("processor {}", list.join(","))
    }
}

/// Why no schedule of the policy keeps the guarantee: of the tasks as they were given, without
/// overheads, which are upper bounds and refute nothing.
fn refuted(set: &Set<'_>, order: Order, why: &Refusal) -> Result<(), String> {
    let ids: Vec<usize> = (0..set.tasks.len()).collect();
    let m = set.processors.len();
    let all = Here { set, order, ids: &ids, tasks: set.tasks.clone(), m };
    // Every task may be released at the start, if none has a phase.
    let together = set.is_hard() && set.entries.iter().all(|e| e.phase_ns.0.is_zero());
    match why {
        Refusal::Utilization {} | Refusal::Task { .. } => all.is_refused(why),
        Refusal::Demand { .. } | Refusal::Late { .. } if together => all.is_refused(why),
        _ => Err("what is said to refute the set does not".to_owned()),
    }
}
