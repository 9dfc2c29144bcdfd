//! The tasks of one place, and which proofs and refusals are for its policy and guarantee.

use crate::certificate::{Costs, Number, Place, Proof, Q, Refusal, Rule};
use crate::claim::{Order, Set, Task, q, utilization};
use crate::many::{bak, densities_fit, ffdbf, load};
use crate::slots::{fit, is_plain, serve};
use crate::{many, replay, single};
use num_traits::Zero;

/// The tasks of one place, or of one server in it, with their overheads.
pub struct Here<'a> {
    pub set: &'a Set<'a>,
    pub order: Order,
    /// The place, among all of the claim.
    pub place: &'a Place,
    pub all: &'a [Place],
    /// Places in the set, and the tasks in that order.
    pub ids: Vec<usize>,
    pub tasks: Vec<Task>,
    pub cpus: Vec<u32>,
    pub m: usize,
    pub is_server: bool,
    /// By task its rank among them under fixed priorities, 0 the most urgent.
    pub ranks: Vec<usize>,
}

impl<'a> Here<'a> {
    pub fn of(set: &'a Set<'a>, order: Order, place: &'a Place, all: &'a [Place]) -> Self {
        let with_overheads = |(at, wcet): (usize, &Number)| {
            let given = &set.tasks[place.tasks[at]];
            let window = place.windows_ns.get(at).map_or(&given.deadline, |w| &w.0);
            Task { wcet: wcet.0.clone(), deadline: window.clone(), ..given.clone() }
        };
        let tasks = place.inflated_ns.iter().enumerate().map(with_overheads).collect();
        let (ids, cpus) = (place.tasks.clone(), place.processors.clone());
        let (m, ranks, is_server) = (cpus.len(), order.ranks(set, &ids), false);
        Here { set, order, place, all, ids, tasks, cpus, m, is_server, ranks }
    }

    /// EDF-fm: which part of the jobs of a task runs here.
    pub fn part(&self, at: usize) -> Q {
        self.place.parts.get(at).map_or(q(1), |part| part.0.clone())
    }

    /// Does a job pay for what the kernel is in the midst of?
    pub fn is_charged_hard(&self) -> bool {
        self.set.is_hard() && self.set.read.rule == Rule::AllOverheads
    }

    /// The tasks as LOAD takes them: e + B in the place of e, D − J in that of D.
    pub fn blocked_since_release(&self) -> Vec<Task> {
        let reduce = |t: &Task| Task {
            wcet: &t.wcet + &t.blocking,
            deadline: &t.deadline - &t.jitter,
            ..t.clone()
        };
        self.tasks.iter().map(reduce).collect()
    }

    /// As the other tests for several processors take them: the same and, if `sporadic`, p − J in
    /// the place of p. D ≤ p, and unless they `may_be_late` e ≤ D.
    pub fn reduced(&self, sporadic: bool, may_be_late: bool) -> Result<Vec<Task>, String> {
        let mut all = self.blocked_since_release();
        for task in all.iter_mut().filter(|_| sporadic) {
            task.period -= &task.jitter;
        }
        let in_order = |t: &Task| t.deadline > Q::zero() && t.deadline <= t.period;
        let fits = |t: &Task| in_order(t) && (may_be_late || t.wcet <= t.deadline);
        require!(all.iter().all(fits), "a deadline is not as the test takes it");
        Ok(all)
    }

    pub fn name(&self, at: usize) -> &str {
        &self.set.read.tasks[self.ids[at]].task
    }

    /// Does the proof hold, and is it one for this policy and this guarantee?
    pub fn holds(&self, proof: &Proof, costs: &Costs) -> Result<(), String> {
        let (edf, fixed) = (self.order == Order::Deadlines, self.order.is_fixed());
        let (quanta, nps) = (self.order == Order::Quanta, self.order == Order::Servers);
        let due = self.m == 1 && (edf || self.order == Order::Slices);
        let soft =
            !self.set.is_hard() && (edf || matches!(self.order, Order::Releases | Order::Turns));
        match proof {
            Proof::Demand { until, points } if due => single::demand_fits(self, &until.0, points),
            Proof::Responses { jobs } if fixed && self.m == 1 => single::responses_hold(self, jobs),
            Proof::Utilization { total } if soft => self.is_bounded(total),
            Proof::Gfb { total, largest } if edf => densities_fit(self, total, largest),
            Proof::GdmDensity { total, largest } if fixed => densities_fit(self, total, largest),
            Proof::Bak { sides } if edf => many::all_hold(self, sides),
            Proof::Bcli { rounds } if edf => many::bcli(self, rounds),
            Proof::Rta { rounds } if edf => many::rta(self, rounds),
            Proof::GfpRta { responses } if fixed => many::gfp_rta(self, responses),
            Proof::Load { until, points } if edf => load(self, &until.0, points),
            Proof::Ffdbf { speed, until, points } if edf => ffdbf(self, &speed.0, &until.0, points),
            Proof::Bar { until, windows } if edf => many::bar(self, &until.0, windows),
            Proof::Pd2 { quanta: counts, total } if quanta => fit(self, counts, total),
            Proof::NpsF { slot_ns, turns, .. } if nps => serve(self, costs, slot_ns, turns),
            _ => Err("the proof is not one for this policy, place and guarantee".to_owned()),
        }
    }

    /// Does a test for this policy refuse the place?
    pub fn is_refused(&self, refusal: &Refusal) -> Result<(), String> {
        let (edf, fixed) = (self.order == Order::Deadlines, self.order.is_fixed());
        let reduced = |sporadic| self.reduced(sporadic, true);
        let at = |index| self.ids.iter().position(|id| id == index).ok_or("the task is not there");
        let fails = match refusal {
            Refusal::Utilization {} => utilization(&self.tasks) > q(self.m),
            Refusal::Task { index } => {
                let t = &self.tasks[at(index)?];
                t.wcet > t.period || (self.set.is_hard() && &t.wcet + &t.jitter > t.deadline)
            }
            Refusal::Demand { until } if edf && self.m == 1 && self.set.is_hard() => {
                single::demand(&self.tasks, &until.0) > until.0
            }
            Refusal::Miss { index, releases_ns, schedule } if edf || fixed => {
                replay::misses(self, at(index)?, releases_ns, schedule)?
            }
            Refusal::Gfb {} if edf => !many::densities(self, &reduced(false)?)?.2,
            Refusal::GdmDensity {} if fixed => !many::densities(self, &reduced(true)?)?.2,
            Refusal::Bak { index } if edf => !bak(&reduced(false)?, self.m, at(index)?).is_sorted(),
            Refusal::Load { until } if edf => many::load_fails(self, &until.0)?,
            _ => return Err("the refusal is not one for this policy and place".to_owned()),
        };
        require!(fails, "a test is said to refuse the tasks, and does not");
        Ok(())
    }

    /// Soft: no task asks for more than a processor, and all for no more than there is (Devi,
    /// Anderson 2008; Leontyev, Anderson 2010). Under EDF-fm parts of tasks count; those that run
    /// elsewhere, too, go first, and are never late (Anderson, Bud, Devi 2008).
    fn is_bounded(&self, Number(stated): &Number) -> Result<(), String> {
        let in_turns = self.order == Order::Turns;
        require!(!in_turns || self.tasks.iter().all(is_plain), "tasks in turns have D = p");
        let has_jitter = self.tasks.iter().any(|t| !t.jitter.is_zero());
        require!(self.m == 1 || !has_jitter, "this proof does not take release jitter");
        let blocked = |t: &Task| t.utilization() + &t.blocking * q(self.m.min(2) - 1) / &t.period;
        let all: Vec<Q> = self.tasks.iter().map(blocked).collect();
        let total: Q = (0..all.len()).map(|k| &all[k] * self.part(k)).sum();
        let first: Q = (0..all.len()).filter(|k| self.part(*k) < q(1)).map(|k| &all[k]).sum();
        require!(first <= q(1), "tasks that run elsewhere, too, ask for more than the processor");
        let fits = total <= q(self.m) && all.iter().all(|u| *u <= q(1));
        require!(fits && total == *stated, "U is stated as {stated} and is {total}, of {}", self.m);
        Ok(())
    }
}
