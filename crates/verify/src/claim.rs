//! What has to hold of a claim: that the places hold every task once, where it may be; that WCETs
//! hold their overheads; that the proof of each place is one for this policy and this guarantee,
//! and holds.

use crate::certificate::{Certificate, Claim, Entry, Guarantee, Number, Place, Proof, Q, Refusal};
use crate::certificate::{Rule, Says};
use crate::{costs, many, single};
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

/// U of some tasks.
pub fn utilization(tasks: &[Task]) -> Q {
    tasks.iter().map(Task::utilization).sum()
}

/// The set of a certificate.
pub struct Set<'c> {
    pub guarantee: Guarantee,
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
        let task = |entry: &Entry| {
            let needed = [&entry.wcet_ns, &entry.period_ns, &entry.deadline_ns];
            let others = [&entry.jitter_ns, &entry.blocking_ns, &entry.phase_ns];
            let is_whole = needed.into_iter().chain(others).all(|t| t.0.is_integer());
            if !is_whole || needed.iter().any(|t| t.0.is_zero()) {
                return Err(format!("a time of task `{}` is zero or a fraction", entry.task));
            }
            Ok(Task {
                wcet: entry.wcet_ns.0.clone(),
                period: entry.period_ns.0.clone(),
                deadline: entry.deadline_ns.0.clone(),
                jitter: entry.jitter_ns.0.clone(),
                blocking: entry.blocking_ns.0.clone(),
            })
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

    fn is_hard(&self) -> bool {
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

/// How many processors a place has.
#[derive(Clone, Copy)]
enum Width {
    One,
    Any,
    All,
}

/// The policies that this program has proofs for.
fn policy(name: &str) -> Result<(Order, Width), String> {
    let (base, parameter) = name.split_once(':').unwrap_or((name, ""));
    let known = match (base, parameter) {
        ("p-edf", "") => (Order::Deadlines, Width::One),
        ("c-edf", _) => (Order::Deadlines, Width::Any),
        ("g-edf", "") => (Order::Deadlines, Width::All),
        ("g-fifo", "") => (Order::Any, Width::All),
        ("p-rm", "") | ("p-fp", "rm") => (Order::RateMonotonic, Width::One),
        ("p-fp", "dm") => (Order::DeadlineMonotonic, Width::One),
        ("p-fp", "") => (Order::Given, Width::One),
        ("g-fp", "rm") => (Order::RateMonotonic, Width::All),
        ("g-fp", "dm") => (Order::DeadlineMonotonic, Width::All),
        ("g-fp", "") => (Order::Given, Width::All),
        _ => return Err("this program has no proofs for the policy".to_owned()),
    };
    Ok(known)
}

/// Verifies a claim.
///
/// # Errors
/// One sentence: what is wrong.
pub fn verify(set: &Set<'_>, claim: &Claim) -> Result<(), String> {
    let (order, width) = policy(&claim.policy)?;
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
fn are_places(set: &Set<'_>, claim: &Claim, width: Width) -> Result<(), String> {
    let mut free: BTreeSet<u32> = set.processors.iter().copied().collect();
    let mut counts = vec![0; set.tasks.len()];
    for place in &claim.places {
        let on = |why: &str| Err(format!("on {}: {why}", place.named()));
        let fits = match width {
            Width::One => place.processors.len() == 1,
            Width::Any => !place.processors.is_empty(),
            Width::All => place.processors.len() == set.processors.len(),
        };
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
    let in_order = match (claim.says, claim.stuck) {
        (Says::Yes, None) => counts.iter().all(|count| *count == 1),
        (_, None) => !claim.places.is_empty() && counts.iter().all(|count| *count <= 1),
        (Says::NotShown, Some(stuck)) if stuck < counts.len() => {
            // Each place that the task may use has been tried, with others that are there once.
            let left = free.iter().any(|cpu| set.entries[stuck].allows(&[*cpu]));
            let others = counts.iter().enumerate().filter(|(task, _)| *task != stuck);
            !left && counts[stuck] == claim.places.len() && others.into_iter().all(|o| *o.1 <= 1)
        }
        _ => false,
    };
    match in_order {
        true => Ok(()),
        false => Err("a task is left out, or is in two places".to_owned()),
    }
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

/// The tasks of one place with their overheads.
pub struct Here<'a> {
    pub set: &'a Set<'a>,
    pub order: Order,
    /// Places in the set.
    pub ids: &'a [usize],
    /// In the order of `ids`.
    pub tasks: Vec<Task>,
    /// How many processors.
    pub m: usize,
}

impl<'a> Here<'a> {
    fn of(set: &'a Set<'a>, order: Order, place: &'a Place) -> Self {
        let with_overheads = |(task, wcet): (&usize, &Number)| Task {
            wcet: wcet.0.clone(),
            ..set.tasks[*task].clone()
        };
        let tasks = place.tasks.iter().zip(&place.inflated_ns).map(with_overheads).collect();
        Here { set, order, ids: &place.tasks, tasks, m: place.processors.len() }
    }

    /// The tasks as tests for several processors take them, with delays in their times: e + B in
    /// the place of e and D − J in that of D; if `sporadic`, also p − J in that of p. D ≤ p.
    pub fn with_delays(&self, sporadic: bool) -> Result<Vec<Task>, String> {
        let all = self.less_jitter(sporadic)?;
        match all.iter().position(|t| t.wcet > t.deadline || t.wcet > t.period) {
            Some(k) => Err(format!("`{}` alone is late", self.name(k))),
            None => Ok(all),
        }
    }

    /// The same, where a task may need more than there is.
    pub fn less_jitter(&self, sporadic: bool) -> Result<Vec<Task>, String> {
        let reduce = |t: &Task| Task {
            wcet: &t.wcet + &t.blocking,
            deadline: &t.deadline - &t.jitter,
            period: if sporadic { &t.period - &t.jitter } else { t.period.clone() },
            jitter: Q::zero(),
            blocking: Q::zero(),
        };
        let all: Vec<Task> = self.tasks.iter().map(reduce).collect();
        let fits = |t: &Task| {
            let is_positive = t.deadline > Q::zero() && t.period > Q::zero();
            is_positive && t.deadline <= t.period
        };
        match all.iter().position(|t| !fits(t)) {
            Some(k) => Err(format!("the test does not apply to `{}`", self.name(k))),
            None => Ok(all),
        }
    }

    pub fn name(&self, at: usize) -> &str {
        self.set.name(self.ids[at])
    }

    pub fn ranks(&self) -> Vec<usize> {
        self.order.ranks(self.set, self.ids)
    }

    /// Does the proof hold, and is it one for this policy and this guarantee?
    fn holds(&self, proof: &Proof) -> Result<(), String> {
        let edf = self.order == Order::Deadlines;
        let is_delayed = self.tasks.iter().any(|t| !t.jitter.is_zero() || !t.blocking.is_zero());
        // Exact tests of one processor, for tasks without blocking and jitter.
        let alone = self.m == 1 && !is_delayed;
        match proof {
            Proof::Demand { until, points } if edf && alone => {
                single::demand_holds(&self.tasks, &until.0, points)
            }
            Proof::Responses { jobs } if self.order.is_fixed() && alone => {
                single::responses_hold(&self.tasks, &self.ranks(), jobs)
            }
            Proof::Utilization { total } if !self.set.is_hard() && !self.order.is_fixed() => {
                self.is_bounded(&total.0)
            }
            Proof::Gfb { total, largest } if edf => {
                many::densities_hold(self, &total.0, &largest.0, many::gfb)
            }
            Proof::GdmDensity { total, largest } if self.order.is_fixed() => {
                many::densities_hold(self, &total.0, &largest.0, many::gdm_density)
            }
            Proof::Bak { sides } if edf => many::all_hold(self, sides, many::bak),
            Proof::Bcl { sides } if edf => many::all_hold(self, sides, many::bcl),
            Proof::Bcli { rounds } if edf => many::bcli(self, rounds),
            Proof::Rta { rounds } if edf => many::rta(self, rounds),
            Proof::GfpRta { responses } if self.order.is_fixed() => many::gfp_rta(self, responses),
            _ => Err("the proof is not one for this policy, place and guarantee".to_owned()),
        }
    }

    /// Does a test for this policy refuse the place?
    fn is_refused(&self, refusal: &Refusal) -> Result<(), String> {
        let edf = self.order == Order::Deadlines;
        let at = |task: &usize| {
            let at = self.ids.iter().position(|id| id == task);
            at.ok_or_else(|| format!("task {task} is not there"))
        };
        let fails = match refusal {
            Refusal::Utilization => utilization(&self.tasks) > q(self.m),
            Refusal::Task { task } => {
                let t = &self.tasks[at(task)?];
                t.wcet > t.period || (self.set.is_hard() && &t.wcet + &t.jitter > t.deadline)
            }
            Refusal::Demand { until } if edf && self.m == 1 && self.set.is_hard() => {
                single::demand(&self.tasks, &until.0) > until.0
            }
            Refusal::Late { task, job } if self.order.is_fixed() && self.m == 1 => {
                single::is_late(&self.tasks, &self.ranks(), at(task)?, *job)?
            }
            Refusal::Gfb if edf => !many::gfb(self, &self.less_jitter(false)?)?.2,
            Refusal::GdmDensity if self.order.is_fixed() => {
                !many::gdm_density(self, &self.less_jitter(true)?)?.2
            }
            Refusal::Bak { task } if edf => {
                !many::bak(&self.less_jitter(false)?, self.m, at(task)?).2
            }
            Refusal::Bcl { task } if edf => {
                !many::bcl(&self.less_jitter(false)?, self.m, at(task)?).2
            }
            _ => return Err("the refusal is not one for this policy and place".to_owned()),
        };
        match fails {
            true => Ok(()),
            false => Err("a test is said to refuse the tasks, and does not".to_owned()),
        }
    }

    /// Soft: no task asks for more than a processor, and all together for no more than there is
    /// (Devi, Anderson 2008; Leontyev, Anderson 2010). Blocking counts as execution where several
    /// processors share the tasks.
    fn is_bounded(&self, stated: &Q) -> Result<(), String> {
        let mut tasks = self.tasks.clone();
        if self.m > 1 {
            if tasks.iter().any(|t| !t.jitter.is_zero()) {
                return Err("this proof does not take release jitter".to_owned());
            }
            tasks.iter_mut().for_each(|t| t.wcet += &t.blocking);
        }
        let total = utilization(&tasks);
        if total != *stated || total > q(self.m) {
            return Err(format!("U is stated as {stated} and is {total}, of {}", self.m));
        }
        match tasks.iter().position(|t| t.wcet > t.period) {
            Some(k) => Err(format!("`{}` asks for more than a processor", self.name(k))),
            None => Ok(()),
        }
    }
}

/// Why no schedule of the policy keeps the guarantee: of the tasks as they were given, without
/// overheads, which are upper bounds and refute nothing.
fn refuted(set: &Set<'_>, order: Order, why: &Refusal) -> Result<(), String> {
    let all: Vec<usize> = (0..set.tasks.len()).collect();
    let known = |task: &usize| set.tasks.get(*task).ok_or_else(|| format!("no task {task}"));
    // On one processor every task may be released at the start, if none has a phase.
    let together = set.processors.len() == 1 && set.entries.iter().all(|e| e.phase_ns.0.is_zero());
    let is_so = match why {
        Refusal::Utilization => utilization(&set.tasks) > q(set.processors.len()),
        Refusal::Task { task } => {
            let t = known(task)?;
            t.wcet > t.period || (set.is_hard() && t.wcet > t.deadline)
        }
        Refusal::Demand { until } if together && set.is_hard() && order == Order::Deadlines => {
            single::demand(&set.tasks, &until.0) > until.0
        }
        Refusal::Late { task, job } if together && set.is_hard() && order.is_fixed() => {
            known(task)?;
            single::is_late(&set.tasks, &order.ranks(set, &all), *task, *job)?
        }
        _ => false,
    };
    match is_so {
        true => Ok(()),
        false => Err("what is said to refute the set does not".to_owned()),
    }
}
