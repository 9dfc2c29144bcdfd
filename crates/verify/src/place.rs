//! The tasks of one place, and which proofs and refusals are for its policy and guarantee.

use crate::certificate::{Number, Place, Proof, Q, Refusal};
use crate::claim::{Order, Set, Task, q, utilization};
use crate::{many, single};
use num_traits::Zero;

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
    pub fn of(set: &'a Set<'a>, order: Order, place: &'a Place) -> Self {
        let with_overheads = |(task, wcet): (&usize, &Number)| Task {
            wcet: wcet.0.clone(),
            ..set.tasks[*task].clone()
        };
        let tasks = place.tasks.iter().zip(&place.inflated_ns).map(with_overheads).collect();
        Here { set, order, ids: &place.tasks, tasks, m: place.processors.len() }
    }

    /// The tasks as tests for several processors take them: e + B in the place of e, D − J in that
    /// of D and, if `sporadic`, p − J in that of p. D ≤ p, and unless they `may_be_late` e ≤ D.
    pub fn reduced(&self, sporadic: bool, may_be_late: bool) -> Result<Vec<Task>, String> {
        let reduce = |t: &Task| Task {
            wcet: &t.wcet + &t.blocking,
            deadline: &t.deadline - &t.jitter,
            period: if sporadic { &t.period - &t.jitter } else { t.period.clone() },
            jitter: Q::zero(),
            blocking: Q::zero(),
        };
        let all: Vec<Task> = self.tasks.iter().map(reduce).collect();
        let fits = |t: &Task| {
            let in_order = t.deadline > Q::zero() && t.deadline <= t.period;
            in_order && (may_be_late || t.wcet <= t.deadline)
        };
        match all.iter().position(|t| !fits(t)) {
            Some(k) => Err(format!("the test does not take `{}`", self.name(k))),
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
    pub fn holds(&self, proof: &Proof) -> Result<(), String> {
        let edf = self.order == Order::Deadlines;
        let is_delayed = self.tasks.iter().any(|t| !t.jitter.is_zero() || !t.blocking.is_zero());
        match proof {
            Proof::Demand { until, points } if edf && self.m == 1 && !is_delayed => {
                single::demand_holds(&self.tasks, &until.0, points)
            }
            Proof::Responses { jobs } if self.order.is_fixed() && self.m == 1 => {
                single::responses_hold(&self.tasks, &self.ranks(), jobs)
            }
            Proof::Utilization { total } if !self.set.is_hard() && !self.order.is_fixed() => {
                self.is_bounded(&total.0)
            }
            Proof::Gfb { total, largest } if edf => {
                many::densities_hold(self, &total.0, &largest.0)
            }
            Proof::GdmDensity { total, largest } if self.order.is_fixed() => {
                many::densities_hold(self, &total.0, &largest.0)
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
    pub fn is_refused(&self, refusal: &Refusal) -> Result<(), String> {
        let edf = self.order == Order::Deadlines;
        let at = |task: &usize| {
            let at = self.ids.iter().position(|id| id == task);
            at.ok_or_else(|| format!("task {task} is not there"))
        };
        let fails = match refusal {
            Refusal::Utilization {} => utilization(&self.tasks) > q(self.m),
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
            Refusal::Gfb {} if edf => !many::densities(self, &self.reduced(false, true)?)?.2,
            Refusal::GdmDensity {} if self.order.is_fixed() => {
                !many::densities(self, &self.reduced(true, true)?)?.2
            }
            Refusal::Bak { task } if edf => {
                !many::bak(&self.reduced(false, true)?, self.m, at(task)?).2
            }
            Refusal::Bcl { task } if edf => {
                !many::bcl(&self.reduced(false, true)?, self.m, at(task)?).2
            }
            _ => return Err("the refusal is not one for this policy and place".to_owned()),
        };
        fails
            .then_some(())
            .ok_or_else(|| "a test is said to refuse the tasks, and does not".to_owned())
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
