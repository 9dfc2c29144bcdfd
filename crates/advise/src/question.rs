//! What is asked: a set, a platform, a guarantee, what overheads cost.

use analyze::Guarantee;
use analyze::policies::{self, Costs, Limits, PolicyVerdict, Sought};
use model::watch::Watch;
use model::{Assignment, Error, Platform, Result, TaskSet, Timing};
use policy::Spec;

/// A question to the search, as `check` would be asked.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The tasks.
    pub set: &'a TaskSet,
    /// The platform.
    pub platform: &'a Platform,
    /// Whether deadlines may be missed.
    pub guarantee: Guarantee,
    /// What preemptions, migrations and the scheduler cost.
    pub costs: Costs<'a>,
}

impl<'a> Asked<'a> {
    /// The same about another set.
    pub(crate) fn with_set<'b>(&self, set: &'b TaskSet) -> Asked<'b>
    where
        'a: 'b,
    {
        Asked { set, ..*self }
    }

    /// What the heuristics of `check` come to.
    pub(crate) fn sought(&self, spec: &Spec, limits: Limits) -> Result<Sought> {
        policies::seek(
            self.set,
            self.platform,
            spec,
            self.guarantee,
            &self.costs,
            limits,
        )
    }

    /// The assignment that the heuristics of `check` find.
    pub(crate) fn seek(&self, spec: &Spec) -> Result<Option<Assignment>> {
        Ok(match self.sought(spec, Limits::default())? {
            Sought::Holds(assignment) => Some(assignment),
            Sought::NotJudged(_) | Sought::Refused(_) => None,
        })
    }

    /// Does this assignment keep the guarantee, as it is?
    pub(crate) fn holds(&self, spec: &Spec, assignment: &Assignment) -> Result<bool> {
        if let Assignment::Quanta(quanta) = assignment {
            // What is reserved as it is holds no longer WCETs.
            let mut both = self.set.timings().iter().zip(&quanta.reserved);
            if both.any(|(t, reserved)| t.wcet > *reserved) {
                return Ok(false);
            }
        }
        policies::holds_assigned(
            self.set,
            self.platform,
            spec,
            assignment,
            self.guarantee,
            &self.costs,
        )
    }

    /// What `check` says of this assignment.
    pub(crate) fn judge(
        &self,
        spec: &Spec,
        assignment: &Assignment,
        watch: &dyn Watch,
    ) -> Result<PolicyVerdict> {
        let judgment = policies::judge_assigned(
            self.set,
            self.platform,
            spec,
            assignment,
            self.guarantee,
            &self.costs,
            watch,
        )?;
        let verdict = judgment.policies.into_iter().next();
        verdict.ok_or_else(|| Error::new(format!("`{spec}` was not judged")))
    }
}

/// The same tasks with other times.
///
/// # Errors
/// A time of zero.
pub(crate) fn with_timings(set: &TaskSet, timings: Vec<Timing>) -> Result<TaskSet> {
    let changed = TaskSet::to_judge(timings)?;
    let details: Option<Vec<_>> = set.ids().map(|id| set.details(id).cloned()).collect();
    match details {
        Some(details) => changed.with_details(details),
        None => Ok(changed),
    }
}
