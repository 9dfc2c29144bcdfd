//! Sets with priorities of their own: judged in the order of these, and answered in the order of
//! the set.
//!
//! Every test and packing for given priorities takes the first task for the most urgent one. So a
//! set whose tasks have a `priority` is brought into that order first, and tasks get their numbers
//! back in the answer.

use super::PolicyVerdict;
use super::subject::Subject;
use crate::uniprocessor::fixed_priority::Priority;
use model::{Assignment, Result, TaskId, TaskSet};

/// A set in the order of its priorities.
pub(super) struct Ordered {
    pub set: TaskSet,
    /// The given assignment for the tasks in this order.
    pub given: Option<Assignment>,
    /// By place here, the task of the set as it was given.
    order: Vec<TaskId>,
}

impl Ordered {
    /// The set in another order; `None`: its own order is that of priorities, or the policy asks
    /// for none.
    ///
    /// # Errors
    /// None that a checked set could cause.
    pub fn of(set: &TaskSet, policy: &Subject, given: Option<&Assignment>) -> Result<Option<Self>> {
        if policy.priority() != Some(Priority::Given) || !set.has_priorities() {
            return Ok(None);
        }
        let order = set.by_priority();
        let given = given.map(|assignment| match assignment {
            Assignment::Clustered(c) => {
                let mut here = c.clone();
                here.cluster_of = order.iter().map(|id| c.cluster_of[id.index()]).collect();
                Assignment::Clustered(here)
            }
            other => other.clone(),
        });
        Ok(Some(Ordered {
            set: set.reordered(&order)?,
            given,
            order,
        }))
    }

    /// By place here, the task of the set as it was given.
    pub fn order(&self) -> &[TaskId] {
        &self.order
    }

    /// Gives tasks the numbers and the order that they have in the set.
    pub fn restore(&self, verdict: &mut PolicyVerdict) {
        for bound in &mut verdict.tasks {
            bound.task = self.order[bound.task.index()];
        }
        verdict.tasks.sort_by_key(|b| b.task);
        for cluster in &mut verdict.clusters {
            for placed in &mut cluster.tasks {
                placed.task = self.order[placed.task.index()];
            }
            cluster.tasks.sort_by_key(|p| p.task);
        }
        verdict.assignment = verdict.assignment.take().map(|a| self.restored(a));
    }

    /// The assignment for the tasks in the order of the set.
    pub fn restored(&self, assignment: Assignment) -> Assignment {
        let Assignment::Clustered(mut c) = assignment else {
            return assignment;
        };
        let mut cluster_of = vec![0; c.cluster_of.len()];
        for (id, cluster) in self.order.iter().zip(&c.cluster_of) {
            cluster_of[id.index()] = *cluster;
        }
        c.cluster_of = cluster_of;
        Assignment::Clustered(c)
    }
}
