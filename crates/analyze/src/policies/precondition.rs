//! Why a policy cannot be asked about a set.

use super::question::Question;
use super::subject::Way;
use crate::carries;
use crate::verdict::{NotApplicable, implicit_deadlines};
use model::{Duration, Extras, TaskId};
use policy::catalog::Tests;

/// The most tasks of which every placement is decided by the exact test of a processor, and what
/// that is.
const PLACED: (usize, &str) = (
    1_000,
    "each placed by the exact test of a processor, many times over",
);
/// The most tasks that are put into shares or servers.
const SHARED: (usize, &str) = (2_000, "put into shares or servers many times over");
/// As many as there are.
const ANY: (usize, &str) = (usize::MAX, "");

impl Question<'_> {
    /// Why the policy cannot be asked, as a clause.
    pub fn precondition(&self) -> Option<String> {
        let tasks = self.set.timings();
        let (implicit, (most, what)) = match (self.policy.way, self.policy.priority()) {
            (Way::Clusters, None) => (false, ANY),
            (Way::Clusters, Some(_)) | (Way::Slices { .. }, _) => (false, PLACED),
            (Way::Turns { .. } | Way::Slots { .. }, _) => (true, SHARED),
            (Way::Quanta(_), _) => (true, ANY),
        };
        // First: what no schedule of the policy can have, whatever is asked of it.
        let unfit = self.policy.info().unfit;
        if let Some(why) = unfit(self.set, self.platform.usable().len()) {
            return Some(why);
        }
        if self.tests() == Tests::None {
            if !self.policy.is_soft_only() || self.policy.info().soft == Tests::None {
                return Some(format!("no test for `{}` is known", self.policy));
            }
            let name = match self.policy.way {
                Way::Turns { .. } => "EDF-fm".to_owned(),
                _ => self.policy.to_string(),
            };
            return Some(format!(
                "{name} bounds tardiness, but does not promise that no deadline is missed; ask for soft real time"
            ));
        }
        if let (true, Err(NotApplicable::ImplicitDeadlines(task))) =
            (implicit, implicit_deadlines(tasks))
        {
            return Some(format!(
                "it needs deadlines equal to periods, and `{}` has another",
                self.set.name(TaskId(task as u32))
            ));
        }
        if let (false, Some(quantum)) = (self.policy.is_soft_only(), self.policy.quantum())
            && let Some(id) = self.set.ids().find(|id| !self.is_in_quanta(*id, quantum))
        {
            return Some(format!(
                "its periods and phases are whole quanta of {quantum}, and those of `{}` are not",
                self.set.name(id)
            ));
        }
        if self.is_global_fixed()
            && let Some(late) = tasks.iter().position(|t| !t.has_constrained_deadline())
        {
            return Some(format!(
                "its tests need deadlines within periods, and `{}` has a longer one",
                self.set.name(TaskId(late as u32))
            ));
        }
        if let Some(why) = self.not_taken().or_else(|| self.kept_apart.clone()) {
            return Some(why);
        }
        let most = self.limits.most_tasks.map_or(most, |asked| asked.max(most));
        (tasks.len() > most).then(|| format!("beyond a limit of this test: {most} tasks, {what}"))
    }

    /// Are the period and the phase of a task whole quanta? Otherwise no release is at the start of
    /// a quantum for ever, and a job can be late by up to a quantum.
    fn is_in_quanta(&self, id: TaskId, quantum: Duration) -> bool {
        let phase = self.set.details(id).map_or(Duration::ZERO, |d| d.phase);
        let times = [self.set.timings()[id.index()].period, phase];
        times
            .iter()
            .all(|t| t.nanos().is_multiple_of(quantum.nanos()))
    }

    /// What the tests of the policy do not take of blocking and jitter, as a clause.
    fn not_taken(&self) -> Option<String> {
        let extras = self.set.extras();
        let named = |what: &str, has: fn(&Extras) -> bool| {
            let task = extras.iter().position(has)?;
            let name = self.set.name(TaskId(task as u32));
            Some(format!("it does not take {what}, and `{name}` has some"))
        };
        let jitter = || named(carries::JITTER, |x| !x.jitter.is_zero());
        if self.bill.rule.has_interrupts() && carries::has_jitter(extras) {
            // Releases interrupt jobs, and are counted a period apart.
            return jitter().map(|why| format!("with the overheads of releases {why}"));
        }
        let blocking = || named(carries::BLOCKING, |x| !x.blocking.is_zero());
        let on_several = self.site.clusters.iter().any(|c| c.len() > 1);
        match self.tests() {
            Tests::Priorities | Tests::Deadlines => None,
            Tests::Utilization if on_several => jitter(),
            Tests::Utilization => None,
            Tests::None | Tests::Named(_) => jitter().or_else(blocking),
        }
    }
}
